"""Numbers of a problem by name, and their effect on its program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Indices
from designopt.collocation.statement.problem import ContinuedTime, Phase, TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError
from designopt.collocation.statement.terms import Constraint, Integral
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.transcription import Transcription
from designopt.dynamics.signals import Signal


@dataclass(frozen=True, eq=False)
class Directions:
    """The effect of one unit of each of the numbers `names` (k) on a program, not scaled: on its fixed `variables` (n,
    k), the limits of its `rows` (m, k), and the `numbers` (p, k) of its functions."""

    names: tuple[str, ...]
    variables: Floats
    rows: Floats
    numbers: Floats


def all_names(problem: TrajectoryProblem) -> list[str]:
    """The numbers of a problem on which its optimum depends: fixed parameters, data, fixed times and end states."""
    names = [v.name for v in problem.variables if not isinstance(problem.parameters.get(v.name), tuple | None)]
    data = [(phase.name, v.name) for phase in problem.phases for v in phase.system.data]
    entries = Counter(name for _, name in data)
    names += [*entries, *(f"{phase}.{name}" for phase, name in data if entries[name] > 1)]
    for phase in problem.phases:
        if isinstance(phase.t0, float) and not isinstance(phase.t0, ContinuedTime) and not _is_timed(phase):
            names.append(f"{phase.name}.t0")
        if isinstance(phase.tf, float) and not _is_timed(phase):
            names.append(f"{phase.name}.tf")
        for side, boxes in (("initial", phase.initial), ("final", phase.final)):
            names += [f"{phase.name}.{side}.{name}" for name, box in boxes.items() if isinstance(box, float)]
    return names


def _is_timed(phase: Phase) -> bool:
    """Whether samples at given times move over the mesh with the ends of their phase."""
    entries: list[Constraint | Integral] = [*phase.samples.values(), *phase.integrals.values()]
    return any(entry.at is not None and not entry.at.of_duration for entry in entries)


def directions(
    problem: TrajectoryProblem, transcription: Transcription, bounds: ProgramBounds, names: Sequence[str]
) -> Directions:
    """The effect of each of `names`. Raises `ProblemError` (bad_statement) for names that are not numbers of the
    problem.

    A parameter, or a data entry of all phases that have it, is given by its name; "phase.entry" is that of one phase.
    "phase.t0" and "phase.tf" are fixed times, "phase.initial.x" and "phase.final.x" fixed end values. A signal is
    shifted as a whole; a time shifts the samples of signals over time, and the phase that follows. Times of phases with
    samples at given times are excluded.
    """
    shape = len(names)
    moves = Directions(
        tuple(names),
        np.zeros((transcription.layout.size, shape)),
        np.zeros((len(transcription.row_scale), shape)),
        np.zeros((len(bounds.parameters), shape)),
    )
    for k, name in enumerate(names):
        moves_of_name = list(_moves(problem, transcription, name))
        if not moves_of_name:
            number_names = ", ".join(all_names(problem)) or "none"
            text = f"is not a number of the problem; those known that may change are {number_names}"
            raise ProblemError("bad_statement", name, text)
        for table, indices, by in moves_of_name:
            getattr(moves, table)[indices, k] += by
    free = ((bounds.low < bounds.high)[:, None] & (moves.variables != 0.0)).any(axis=0)
    if free.any():
        text = "is an unknown of the problem, free in a range: the optimum does not depend on it"
        raise ProblemError("bad_statement", names[int(free.argmax())], text)
    return moves


def _moves(
    problem: TrajectoryProblem, transcription: Transcription, name: str
) -> Iterator[tuple[str, Floats | list[int], Floats | float]]:
    """The table, its indices and the changes for one unit of `name`."""
    if name in transcription.layout.parameters:
        yield "variables", [transcription.layout.parameters[name]], 1.0
        return
    of_phase, _, entry = name.partition(".")
    for i, phase in enumerate(problem.phases):
        if name in {v.name for v in phase.system.data}:
            yield from _data_directions(transcription, i, name)
        if phase.name != of_phase or not entry:
            continue
        side, _, variable = entry.partition(".")
        if entry in {v.name for v in phase.system.data}:
            yield from _data_directions(transcription, i, entry)
        elif entry in ("t0", "tf") and not _is_timed(phase):
            yield from _time_directions(problem, transcription, i, entry)
            following = problem.phases[i + 1] if entry == "tf" and i + 1 < len(problem.phases) else None
            if following is not None and isinstance(following.t0, ContinuedTime):
                yield from _time_directions(problem, transcription, i + 1, "t0")
        elif side in ("initial", "final") and variable in getattr(phase, side):
            phase_layout, names = transcription.layout.phases[i], transcription.problem_functions.points[i].names
            j = names.index(variable)
            if j < phase_layout.states.shape[1]:
                yield "variables", [int(phase_layout.states[0 if side == "initial" else -1, j])], 1.0
            else:
                (block,) = [b for b in transcription.blocks if b.names == (f"{side} {variable} of {phase.name}",)]
                yield "rows", [block.first], 1.0


def _data_directions(
    transcription: Transcription, i: int, entry: str
) -> Iterator[tuple[str, Floats | list[int], float]]:
    layout, point = transcription.layout.phases[i], transcription.problem_functions.points[i]
    if entry in point.constant_names:
        yield "numbers", [layout.constants + point.constant_names.index(entry)], 1.0
    else:
        for _, columns in _signals(transcription, i):
            yield "numbers", columns[:, point.signal_names.index(entry)].tolist(), 1.0


def _signals(transcription: Transcription, i: int) -> Iterator[tuple[Floats, Indices]]:
    """Fractions (n,) of phase i at which its signals are sampled, and their indices (n, signals) in the program."""
    phase_layout = transcription.layout.phases[i]
    parts = [(phase_layout.mesh.fractions[phase_layout.mesh.first :], phase_layout.signals, phase_layout.numbers_end)]
    pairs = zip(transcription.problem_functions.samples, transcription.layout.samples, strict=True)
    parts += [(at.fractions, at.signals, at.end) for sample, at in pairs if sample.phase == i]
    for fractions, begin, end in parts:
        yield fractions, np.arange(begin, end).reshape(len(fractions), -1)


def _time_directions(
    problem: TrajectoryProblem, transcription: Transcription, i: int, name: str
) -> Iterator[tuple[str, Floats | list[int], Floats | float]]:
    layout, point, phase = transcription.layout.phases[i], transcription.problem_functions.points[i], problem.phases[i]
    if name in layout.times:
        yield "variables", [layout.times[name]], 1.0
        return
    yield "numbers", [layout.constants + len(point.constant_names) + layout.fixed_times.index(name)], 1.0
    for fractions, columns in _signals(transcription, i):
        share = 1.0 - fractions if name == "t0" else fractions
        for j, entry in enumerate(point.signal_names):
            signal = phase.data[entry]
            if isinstance(signal, Signal) and not signal.of_duration and isinstance(phase.tf, float):
                t0 = float(phase.t0) if isinstance(phase.t0, float) else 0.0
                yield "numbers", columns[:, j].tolist(), signal.slope(t0 + fractions * (phase.tf - t0)) * share
