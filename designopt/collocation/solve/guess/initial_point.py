"""Initial point of a solve: a guess, completed where necessary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solve.guess.first_values import algebraic_values, unknown_rates
from designopt.collocation.statement.guess import Guess, PhaseGuess, SampledTrajectory
from designopt.collocation.statement.problem import Phase, TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError, check_names
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.functions.functions import ProblemFunctions
from designopt.collocation.transcription.layout import Layout


def default_trajectory(phase: Phase, trajectory: PhaseGuess | None = None, before: float = 0.0) -> SampledTrajectory:
    """The lines of `phase.guess`, or straight ones between fixed ends, else the middle of finite bounds, or 0 within
    them.

    The times are those of `trajectory`, if given; else the middle of their ranges, and `before` is the start of a phase
    that follows another. Raises `ProblemError` (bad_guess).
    """
    for name, ends in phase.guess.items():
        if np.shape(ends) != (2,) or not all(isinstance(value, Real) for value in ends):
            text = f"is {ends!r}: give its first and its last value, (from, to)"
            raise ProblemError("bad_guess", f"{phase.name}: guess.{name}", text)
    values = {}
    states = {v.name for v in phase.system.states}
    for name, limits in phase.ranges.items():
        stated_ends = (side[name] for side in (phase.initial_ranges, phase.final_ranges) if name in side)
        fixed_ends = [low for low, high in stated_ends if low == high] or [middle(limits) if name in states else 0.0]
        line = phase.guess.get(name, (fixed_ends[0], fixed_ends[-1]))
        values[name] = np.clip(np.array(line, float), *limits)
    check_names(f"{phase.name}: guess", phase.guess, values, "variable", "bad_guess")
    t0, tf = (trajectory.t0, trajectory.tf) if trajectory else _default_times(phase, before)
    return SampledTrajectory(np.array([0.0, 1.0]), values, t0, tf)


def guessed_parameters(problem: TrajectoryProblem, guess: Guess) -> dict[str, float]:
    """The parameters of `guess`, else of the problem's own guess, else the middle of their ranges."""
    middles = {name: middle(limits) for name, limits in problem.parameter_ranges.items()}
    return {**middles, **problem.guess, **guess.parameters}


def within_ranges(problem: TrajectoryProblem, guess: Guess) -> dict[str, float]:
    """The guessed parameters, clipped to their ranges."""
    values = guessed_parameters(problem, guess)
    return {name: float(np.clip(values[name], *limits)) for name, limits in problem.parameter_ranges.items()}


def _default_times(phase: Phase, before: float) -> tuple[float, float]:
    tf = middle(phase.tf_range)
    if phase.t0_range is None:
        return before, max(tf, before + 1e-3)
    t0 = middle(phase.t0_range)
    if phase.guess_duration is not None:
        tf = float(np.clip(t0 + phase.guess_duration, *phase.tf_range))
    # ranges with one middle: as far apart as they allow
    return (t0, tf) if t0 < tf else (phase.t0_range[0], phase.tf_range[1])


def initial_point(
    functions: ProblemFunctions, problem: TrajectoryProblem, layout: Layout, boxes: ProgramBounds, guess: Guess
) -> Floats:
    """All variables (n,) at `guess`, not scaled, within their boxes.

    Omitted unknown rates are the slopes of the guessed states; algebraic variables solve their equations if possible.
    Raises `ProblemError` (bad_guess) for unknown names and numbers that are not finite.
    """
    point = np.zeros(layout.size)
    _check(problem, guess)
    parameters = within_ranges(problem, guess)
    for name, index in layout.parameters.items():
        point[index] = parameters[name]
    before = 0.0
    for i, (phase, phase_layout) in enumerate(zip(problem.phases, layout.phases, strict=True)):
        phase_guess = guess.phases.get(phase.name)
        if phase_guess is None and phase.start is not None:
            phase_guess = phase.start(parameters, None)
        default = default_trajectory(phase, phase_guess, before)
        before = default.tf
        fractions = phase_layout.mesh.fractions
        guess_values = {
            **default.only(phase.guess).at(fractions),
            **(_values(phase, phase_guess, fractions) if phase_guess else {}),
        }
        values = {**default.at(fractions), **guess_values}
        if functions.points[i].form:
            slopes = unknown_rates(phase, values, fractions, default.tf - default.t0)
            values.update({name: trajectory for name, trajectory in slopes.items() if name not in guess_values})
        if any(v.name not in guess_values for v in phase.system.algebraic):
            algebraic = algebraic_values(phase, values, parameters, fractions, default.t0, default.tf)
            values.update({name: trajectory for name, trajectory in algebraic.items() if name not in guess_values})
        for j, name in enumerate(functions.points[i].names):
            trajectory = values[name]
            if not np.isfinite(trajectory).all():
                raise ProblemError("bad_guess", f"{phase.name}: {name}", "is not finite everywhere")
            if j < functions.points[i].nx:
                point[phase_layout.states[:, j]] = trajectory
            else:
                point[phase_layout.point[:, j]] = trajectory[phase_layout.mesh.first :]
        time_of = {"t0": default.t0, "tf": default.tf}
        for name, index in phase_layout.times.items():
            point[index] = time_of[name]
    low, high = boxes.low, boxes.high
    return np.asarray(np.clip(point, low, high))


def _values(phase: Phase, trajectory: PhaseGuess, fractions: Floats) -> Mapping[str, Floats]:
    """The values of the phase's variables in a given trajectory."""
    names = list(phase.ranges)
    outputs = {v.name for v in phase.system.outputs} - set(names)  # of a solution
    values = {name: array for name, array in trajectory.at(fractions).items() if name not in outputs}
    if unknown := sorted(set(values) - set(names)):
        text = f"there is no such variable; known: {', '.join(names)}"
        raise ProblemError("bad_guess", f"{phase.name}: {unknown[0]}", text)
    for name, array in values.items():
        if np.shape(array) != fractions.shape:
            text = f"has the shape {np.shape(array)}, not that of the fractions, {fractions.shape}"
            raise ProblemError("bad_guess", f"{phase.name}: {name}", text)
    return values


def _check(problem: TrajectoryProblem, guess: Guess) -> None:
    names = [phase.name for phase in problem.phases]
    if unknown := sorted(set(guess.phases) - set(names)):
        raise ProblemError("bad_guess", unknown[0], f"there is no such phase; known: {', '.join(names)}")
    for name, trajectory in guess.phases.items():
        if not (math.isfinite(trajectory.t0) and math.isfinite(trajectory.tf) and trajectory.t0 < trajectory.tf):
            raise ProblemError("bad_guess", name, f"runs from {trajectory.t0} to {trajectory.tf}")
    parameters = [v.name for v in problem.variables]
    for table, parameter_values in (("guess", problem.guess), ("parameters", guess.parameters)):
        check_names(table, parameter_values, parameters, "parameter", "bad_guess")
        for name, value in parameter_values.items():
            if not isinstance(value, Real) or not math.isfinite(value):
                raise ProblemError("bad_guess", f"{table}.{name}", f"is {value!r}, not a finite number")


def middle(limits: tuple[float, float]) -> float:
    """The middle of a finite range; else 0, or the nearest value within it."""
    low, high = limits
    if math.isfinite(low) and math.isfinite(high):
        return 0.5 * (low + high)
    return float(np.clip(0.0, low, high))
