"""Numbers of a program that may change without rebuilding it: boxes, limits, data, signals, fixed times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from designopt.arrays import Floats, Indices
from designopt.collocation.statement.problem import Duration, EndValue, Phase, TrajectoryProblem, is_added
from designopt.collocation.statement.stated_values import ProblemError, check_names
from designopt.collocation.transcription.functions.functions import ProblemFunctions
from designopt.collocation.transcription.functions.points import CollocationPoint
from designopt.collocation.transcription.functions.program_variants import check_names_of
from designopt.collocation.transcription.functions.samples import sample_numbers
from designopt.collocation.transcription.layout import Block, Layout, PhaseLayout, pieces_of
from designopt.dynamics.signals import Signal

#: Tolerance of given values beyond the bounds of their control.
INSIDE = 1e-9


@dataclass(frozen=True, eq=False)
class ProgramBounds:
    """Limits of all variables (n,) and of all rows (m,), and the parameters of the program's functions. Not scaled."""

    low: Floats
    high: Floats
    row_low: Floats
    row_high: Floats
    parameters: Floats

    def box(self, variable: int) -> tuple[float, float]:
        """The limits of one variable, by its index."""
        return float(self.low[variable]), float(self.high[variable])

    @cached_property
    def free_count(self) -> int:
        """Number of variables that are not fixed."""
        return int((self.low < self.high).sum())

    @cached_property
    def equality_count(self) -> int:
        """Number of equality rows."""
        return int((self.row_low == self.row_high).sum())


def boxes(
    functions: ProblemFunctions, problem: TrajectoryProblem, layout: Layout, blocks: tuple[Block, ...]
) -> ProgramBounds:
    """The numbers of `problem`, which is that of `functions` or differs from it in numbers alone.

    Raises `ProblemError` (bad_bounds) for empty boxes, unknown names, and signals that are too short.
    """
    if problem is not functions.problem:
        _check_same(functions.problem, problem)
    low, high = np.full(layout.size, -math.inf), np.full(layout.size, math.inf)
    parameters = []
    for i, (phase, point, phase_layout) in enumerate(zip(problem.phases, functions.points, layout.phases, strict=True)):
        _limit_variables(phase, point, phase_layout, low, high)
        fixed_times = _limit_times(phase, phase_layout, low, high)
        begin = phase.t0_range or problem.phases[i - 1].tf_range
        if not begin[0] < phase.tf_range[1]:
            text = f"{phase.tf_range[1]:g} is not after t0 = {begin[0]:g}: a phase must have a positive duration"
            raise ProblemError("bad_bounds", f"{phase.name}: tf", text)
        constants = [_number(phase, name) for name in point.constant_names]
        fractions = phase_layout.mesh.fractions[phase_layout.mesh.first :]
        times = fixed_times[0] + fractions * (fixed_times[1] - fixed_times[0]) if len(fixed_times) == 2 else None
        signals = [_signal_values(phase, name, fractions, times) for name in point.signal_names]
        parameters += [np.array([*constants, *fixed_times]), np.array(signals).T.ravel()]
    for sample, at in zip(functions.samples, layout.samples, strict=True):
        parameters.append(sample_numbers(problem.phases[sample.phase], sample, at))
    _limit_parameters(problem, layout, low, high)
    _limit_integrals(problem, layout, low, high)
    row_low, row_high = _row_limits(functions.problem, problem, blocks)
    return ProgramBounds(low, high, row_low, row_high, np.concatenate([*parameters, np.empty(0)]))


def _limit_variables(phase: Phase, point: CollocationPoint, layout: PhaseLayout, low: Floats, high: Floats) -> None:
    """The boxes of all variables along the phases, and of the states at both ends."""
    for side in ("bounds", "initial", "final"):
        check_names(f"{phase.name}: {side}", getattr(phase, side), point.names, "variable")
    ranges = [_limits(f"{phase.name}: bounds.{name}", phase.ranges[name]) for name in point.names]
    for limits, of_names in zip((low, high), np.array(ranges).T, strict=True):
        limits[layout.states[: layout.mesh.first]] = of_names[: point.nx]
        layout.at_points(limits)[:] = of_names
    for j, (name, box) in enumerate(zip(point.names, ranges, strict=True)):
        for side, side_ranges, slot in (("initial", phase.initial_ranges, 0), ("final", phase.final_ranges, -1)):
            if name in side_ranges:
                a, b = _limits(f"{phase.name}: {side}.{name}", side_ranges[name])
                a, b = max(a, box[0]), min(b, box[1])
                if a > b:
                    kind = "state" if j < point.nx else "variable"
                    value = getattr(phase, side)[name]
                    text = f"{value} is outside the bounds {box[0]:g} to {box[1]:g} of the {kind}: change one"
                    raise ProblemError("bad_bounds", f"{phase.name}: {side}.{name}", text)
                if j < point.nx:  # rows that the problem adds limit the others
                    low[layout.states[slot, j]], high[layout.states[slot, j]] = a, b
        if _hold_text(phase, name):
            _hold(phase, name, box, layout, layout.point[:, j], low, high)


def _pieces(phase: Phase) -> list[str]:
    """Held controls in words."""
    return [f"{name}: {count}{_hold_text(phase, name)}" for name, count in phase.pieces.items()]


def _hold_text(phase: Phase, name: str) -> str:
    """A word for a control with given values."""
    return "" if isinstance(phase.held_controls.get(name, 0), int) else " given values"


def _hold(
    phase: Phase, name: str, box: tuple[float, float], layout: PhaseLayout, indices: Indices, low: Floats, high: Floats
) -> None:
    """The values of a control on its pieces as the boxes of all its points, within its own `box`."""
    label = f"{phase.name}: held_controls.{name}"
    values = np.asarray(phase.held_controls[name], float)
    if values.min() < box[0] - INSIDE or values.max() > box[1] + INSIDE:
        text = f"{values.min():g} to {values.max():g} is outside the bounds {box[0]:g} to {box[1]:g} of the control"
        raise ProblemError("bad_bounds", label, text)
    mesh = layout.mesh
    of_intervals = pieces_of(mesh, len(values), label)
    # the last slot of each interval and those within it are its own
    of_slots = np.repeat(of_intervals, [scheme.steps for scheme in mesh.schemes])
    of_points = values[np.concatenate([of_intervals[:1], of_slots])[mesh.first :]]
    low[indices] = high[indices] = np.clip(of_points, *box)


def _limit_times(phase: Phase, layout: PhaseLayout, low: Floats, high: Floats) -> list[float]:
    """The boxes of free times; returns the fixed ones."""
    fixed_times = []
    for name, time_range in (("t0", phase.t0_range), ("tf", phase.tf_range)):
        if time_range is None:
            continue
        a, b = _limits(f"{phase.name}: {name}", time_range)
        if name in layout.times:
            low[layout.times[name]], high[layout.times[name]] = a, b
        elif a < b:
            text = "was one number when the program was built: give one, or build it again"
            raise ProblemError("bad_bounds", f"{phase.name}: {name}", text)
        elif not math.isfinite(a):
            raise ProblemError("bad_bounds", f"{phase.name}: {name}", f"is {a}: give a finite time or a range")
        else:
            fixed_times.append(a)
    return fixed_times


def _limit_parameters(problem: TrajectoryProblem, layout: Layout, low: Floats, high: Floats) -> None:
    check_names("parameters", problem.parameters, list(problem.parameter_ranges), "parameter")
    for name, index in layout.parameters.items():
        low[index], high[index] = _limits(f"parameters.{name}", problem.parameter_ranges[name])


def _limit_integrals(problem: TrajectoryProblem, layout: Layout, low: Floats, high: Floats) -> None:
    for i, phase in enumerate(problem.phases):
        for j, (name, integral) in enumerate(phase.integrals.items()):
            position = f"{phase.name}: integrals.{name}"
            limits = _limits(position, (integral.low, integral.high))
            if (i, j) in layout.integrals:
                index = layout.integrals[i, j]
                low[index], high[index] = limits
            elif limits != (-math.inf, math.inf):
                text = "had no limits when the program was built: build it again"
                raise ProblemError("bad_bounds", position, text)


def _row_limits(
    built_problem: TrajectoryProblem, problem: TrajectoryProblem, blocks: tuple[Block, ...]
) -> tuple[Floats, Floats]:
    lows, highs = [], []
    for block in blocks:
        limits = (0.0, 0.0)
        if block.kind in ("path", "sample", "ends"):
            name = block.names[0].split("[")[0]
            phase = problem.phases[block.phase]
            tables = {"path": (phase.path, "path"), "sample": (phase.samples, "samples")}
            table, of_phase = tables.get(block.kind, (problem.constraints, ""))
            position = f"{phase.name}: {of_phase}" if of_phase else "constraints"
            c = table.get(name)
            if c is not None:
                limits = _limits(f"{position}.{name}", (c.low, c.high))
            elif isinstance(built_problem.constraints[name].value, Duration):  # ranges of times that no longer overlap
                limits = (0.0, math.inf)
            else:  # end values that are no longer limited
                limits = (-math.inf, math.inf)
        lows.append(np.full(block.rows.size, limits[0]))
        highs.append(np.full(block.rows.size, limits[1]))
    return np.concatenate([*lows, np.empty(0)]), np.concatenate([*highs, np.empty(0)])


def _limits(position: str, limits: tuple[float, float]) -> tuple[float, float]:
    """The limits as they are. Raises `ProblemError` (bad_bounds) for NaN and an empty range."""
    low, high = limits
    if math.isnan(low) or math.isnan(high):
        text = " to ".join(dict.fromkeys(f"{end:g}" for end in limits))
        raise ProblemError("bad_bounds", position, f"is {text}: give numbers, infinite ones where there is no limit")
    if low > high or low == math.inf or high == -math.inf:
        raise ProblemError("bad_bounds", position, f"nothing lies between {low:g} and {high:g}: swap or widen them")
    return low, high


def _check_same(built_problem: TrajectoryProblem, problem: TrajectoryProblem) -> None:
    """Checks that a variant has the phases, constraints and integrals of the program's problem."""
    pairs = [("phases", [p.name for p in built_problem.phases], [p.name for p in problem.phases])]
    constraint_names = [[n for n, c in p.constraints.items() if not is_added(c)] for p in (built_problem, problem)]
    pairs.append(("constraints", constraint_names[0], constraint_names[1]))
    for a, b in zip(built_problem.phases, problem.phases, strict=False):
        pairs.append((f"{b.name}: path", list(a.path), list(b.path)))
        pairs.append((f"{b.name}: samples", list(a.samples), list(b.samples)))
        pairs.append((f"{b.name}: integrals", list(a.integrals), list(b.integrals)))
        pairs.append((f"{b.name}: held", _pieces(a), _pieces(b)))
        pairs.append((f"{b.name}: t0", [str(a.t0 is None)], [str(b.t0 is None)]))
    for position, before, after in pairs:
        check_names_of(position, before, after)
    for name, c in problem.constraints.items():
        if isinstance(c.value, Duration) and name not in built_problem.constraints:
            text = "may lie before t0, which it could not when the program was built: build it again"
            raise ProblemError("bad_bounds", f"{c.value.phase}: tf", text)
        if isinstance(c.value, EndValue) and name not in built_problem.constraints:
            text = "was not given when the program was built: build it again"
            raise ProblemError("bad_bounds", f"{c.value.phase}: {c.value.side}.{c.value.name}", text)


def _number(phase: Phase, name: str) -> float:
    position = f"{phase.name}: data.{name}"
    value = phase.data.get(name, math.nan)
    if isinstance(value, Signal):
        raise ProblemError("bad_bounds", position, "was a number when the program was built: build it again")
    if not math.isfinite(value):
        raise ProblemError("bad_bounds", position, f"is {value}: give a finite number")
    return float(value)


def _signal_values(phase: Phase, name: str, fractions: Floats, times: Floats | None) -> Floats:
    signal = phase.data.get(name)
    position = f"{phase.name}: data.{name}"
    if not isinstance(signal, Signal):
        raise ProblemError("bad_bounds", position, "was a signal when the program was built: build it again")
    if not signal.of_duration and times is None:
        raise ProblemError("bad_bounds", position, "a phase with free ends needs a signal over its duration, 0 to 1")
    try:
        return signal.at(fractions if signal.of_duration or times is None else times)
    except ValueError as error:
        raise ProblemError("bad_bounds", position, str(error)) from error
