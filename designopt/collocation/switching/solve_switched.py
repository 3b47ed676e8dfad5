"""Controls with discrete levels: relaxed, rounded by their integrals, and the rest solved again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from designopt.arrays import Vector
from designopt.collocation.solution.solution import PhaseSolution, Solution
from designopt.collocation.solve.solve import solve
from designopt.collocation.statement.checks import check_names
from designopt.collocation.statement.guess import Guess
from designopt.collocation.statement.options import Options
from designopt.collocation.statement.problem import Phase, TrajectoryProblem
from designopt.collocation.statement.stated_values import MOST_INTERVALS, ProblemError, ends
from designopt.collocation.statement.symbols import Symbols
from designopt.collocation.statement.terms import Constraint, Samples
from designopt.collocation.switching.sum_up import deviation, sum_up, sum_up_one_of

#: Name of the constraint that exactly one of several switches is on.
ONE_OF = "one of {}"
#: Tolerance for the range of a control as a whole number of steps.
WHOLE = 1e-9


@dataclass(frozen=True)
class Switch:
    """A control that is constant on equal `pieces` of a phase, with levels a `step` apart between its bounds; without a
    step it is at one of the two, off or on. With `others` (controls from 0 to 1, like itself), exactly one of all is
    on. Raises `ValueError` for invalid numbers.
    """

    pieces: int
    step: float | None = None
    exclusive_with: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.pieces, int) or isinstance(self.pieces, bool) or not 1 <= self.pieces <= MOST_INTERVALS:
            raise ValueError(f"pieces is {self.pieces!r}: give an integer from 1 to {MOST_INTERVALS}")
        if self.step is not None and not 0.0 < self.step < math.inf:
            raise ValueError(f"step is {self.step!r}: give a positive number")
        if isinstance(self.exclusive_with, str):
            raise ValueError(f"others is {self.exclusive_with!r}: give a row of names")
        if self.step is not None and self.exclusive_with:
            raise ValueError("one of several switches is on or off: leave out its step")


@dataclass(frozen=True, eq=False)
class Switched:
    """The solution of a problem with switches, `rounded`, and with any values between their levels, `relaxed`.

    `levels` (pieces,) by phase and name. `gap` is the cost of rounding, relative to the relaxed objective, which is a
    lower bound if the problem is convex in the relaxed controls; the gap goes to zero with the length of the pieces if
    the switches enter rates linearly. `integral_deviation` is the largest difference of the integrals of a relaxed and
    a rounded control, in its unit times s, at most `bound`.
    """

    rounded: Solution
    relaxed: Solution
    levels: Mapping[str, Mapping[str, Vector]]
    gap: float
    integral_deviation: float
    bound: float

    @property
    def success(self) -> bool:
        """Whether the rounded solution may be used."""
        return self.rounded.success


def solve_switched(
    problem: TrajectoryProblem,
    switches: Mapping[str, Switch | int],
    options: Options | None = None,
    guess: Guess | None = None,
    *,
    gap: float | None = None,
    rounds: int = 4,
) -> Switched:
    """The solution of `problem` with `switches` by the names of controls; an integer is the number of pieces of an
    on-off switch.

    The relaxed problem is solved, the controls are rounded by their integrals (Sager, Bock, Diehl 2012), and the rest
    is solved again with them, from the relaxed solution. With a `gap` the pieces are doubled until the cost of rounding
    is less, at most `rounds` times. A failed solve is a solution with its status: if the relaxed one fails, the rounded
    one is the same. Raises `ProblemError` for names that are not controls, and for bounds that are not a whole number
    of steps apart.
    """
    switch_of = {name: s if isinstance(s, Switch) else Switch(s) for name, s in switches.items()}
    solution = _solved(problem, switch_of, options, guess)
    for _ in range(rounds):
        if gap is None or not solution.relaxed.success or (solution.success and solution.gap <= gap):
            break
        switch_of = {name: replace(s, pieces=2 * s.pieces) for name, s in switch_of.items()}
        solution = _solved(problem, switch_of, options, Guess.from_solution(solution.relaxed))
    return solution


def relaxed_problem(problem: TrajectoryProblem, switches: Mapping[str, Switch]) -> TrajectoryProblem:
    """`problem` with relaxed switches: any values between their levels, constant on their pieces."""
    _check(problem, switches)
    phases = []
    for phase in problem.phases:
        phase_switches = _of_phase(phase, switches)
        pieces = {name: switch.pieces for name, switch in phase_switches.items()}
        samples = dict(phase.samples)
        for name, switch in phase_switches.items():
            pieces |= dict.fromkeys(switch.exclusive_with, switch.pieces)
            if switch.exclusive_with:  # once on each piece: elsewhere it would be redundant
                middles = Samples((np.arange(switch.pieces) + 0.5) / switch.pieces, of_duration=True)
                samples[ONE_OF.format(name)] = Constraint(_Sum((name, *switch.exclusive_with)), 1.0, 1.0, at=middles)
        phases.append(replace(phase, held_controls={**phase.held_controls, **pieces}, samples=samples))
    return replace(problem, phases=phases)


def rounded_problem(
    problem: TrajectoryProblem, switches: Mapping[str, Switch], relaxed: Solution
) -> tuple[TrajectoryProblem, dict[str, dict[str, Vector]], float, float]:
    """`problem` with the switches fixed at the rounded values of the `relaxed` solution; the levels, the largest
    deviation of an integral, and its bound."""
    phases, levels, worst, bound = [], {}, 0.0, 0.0
    for phase in problem.phases:
        solved = relaxed.phases[phase.name]
        of_phase: dict[str, Vector] = {}
        for name, switch in _of_phase(phase, switches).items():
            names = (name, *switch.exclusive_with)
            means = np.stack([_means(solved, n, switch.pieces) for n in names], axis=1)
            widths = np.full(switch.pieces, (solved.tf - solved.t0) / switch.pieces)
            if switch.exclusive_with:
                rounded, most = sum_up_one_of(means, widths), float(len(names) - 1)
            else:
                low, high, step = _range(phase, name, switch)
                rounded, most = sum_up(means[:, 0], widths, low, high, step)[:, None], 0.5 * step
            of_phase |= dict(zip(names, rounded.T, strict=True))
            worst = max(worst, deviation(means, rounded, widths))
            bound = max(bound, most * float(widths[0]))
        levels[phase.name] = of_phase
        held_controls = {**phase.held_controls, **{n: tuple(values.tolist()) for n, values in of_phase.items()}}
        phases.append(replace(phase, held_controls=held_controls))
    return replace(problem, phases=phases), levels, worst, bound


def gap_of(rounded: Solution, relaxed: Solution) -> float:
    """The cost of rounding, relative to the size of the relaxed objective."""
    return (rounded.objective - relaxed.objective) / max(abs(relaxed.objective), 1e-12)


def _solved(
    problem: TrajectoryProblem, switches: Mapping[str, Switch], options: Options | None, guess: Guess | None
) -> Switched:
    relaxed = solve(relaxed_problem(problem, switches), options, guess)
    if not relaxed.success:
        return Switched(relaxed, relaxed, {}, math.nan, math.nan, math.nan)
    stated, levels, worst, bound = rounded_problem(problem, switches, relaxed)
    rounded = with_rounding_advice(stated, solve(stated, options, Guess.from_solution(relaxed)))
    return Switched(rounded, relaxed, levels, gap_of(rounded, relaxed), worst, bound)


def with_rounding_advice(problem: TrajectoryProblem, solution: Solution) -> Solution:
    """`solution`, for a problem with rounded switches; the message of a failure explains that these may be incompatible
    with fixed final values."""
    fixed = [
        f"{phase.name}: {name}"
        for phase in problem.phases
        for name, box in phase.final.items()
        if ends(box)[0] == ends(box)[1]
    ]
    if solution.success or not fixed:
        return solution
    text = (
        "The relaxed problem is solved, but the problem with rounded switches is not: rounding"
        f" moves the motion away from the fixed final values ({', '.join(fixed)}). Give these a range, as (low, high),"
        " or the switches more pieces."
    )
    return replace(solution, message=f"{text} {solution.message}")


@dataclass(frozen=True)
class _Sum:
    names: tuple[str, ...]

    def __call__(self, v: Symbols) -> Any:
        return sum(v[name] for name in self.names)


def _of_phase(phase: Phase, switches: Mapping[str, Switch]) -> dict[str, Switch]:
    names = {v.name for v in phase.system.controls}
    return {name: switch for name, switch in switches.items() if name in names}


def _range(phase: Phase, name: str, switch: Switch) -> tuple[float, float, float]:
    """The lowest and the highest level of a switch, and their distance."""
    variable = next(v for v in phase.system.controls if v.name == name)
    low, high = phase.bounds.get(name, (variable.low, variable.high))
    return low, high, high - low if switch.step is None else switch.step


def _check(problem: TrajectoryProblem, switches: Mapping[str, Switch]) -> None:
    controls = list(dict.fromkeys(v.name for phase in problem.phases for v in phase.system.controls))
    _check_names("switches", [n for name, s in switches.items() for n in (name, *s.exclusive_with)], controls)
    for phase in problem.phases:
        for name, switch in _of_phase(phase, switches).items():
            where = f"{phase.name}: switches.{name}"
            for control in (name, *switch.exclusive_with):
                if control in phase.held_controls:
                    text = (
                        f"the phase holds '{control}', but a switch is constant on its own pieces: remove one of them"
                    )
                    raise ProblemError("bad_statement", where, text)
                for side, boxes in (("initial", phase.initial), ("final", phase.final)):
                    if control in boxes:
                        text = (
                            f"'{control}' has an {side} value"
                            if side == "initial"
                            else f"'{control}' has a final value"
                        )
                        text += ", a switch has the level that its relaxed value is rounded to: leave it out"
                        raise ProblemError("bad_statement", where, text)
                low, high, step = _range(phase, control, switch)
                if not (math.isfinite(low) and math.isfinite(high) and low < high):
                    text = f"'{control}' lies between {low:g} and {high:g}: a switch has two finite levels"
                    raise ProblemError("bad_bounds", where, text)
                if switch.exclusive_with and (low, high) != (0.0, 1.0):
                    text = f"'{control}' lies between {low:g} and {high:g}: one of several switches is 0 or 1"
                    raise ProblemError("bad_bounds", where, text)
                if abs((high - low) / step - round((high - low) / step)) > WHOLE:
                    text = f"the range from {low:g} to {high:g} is not a multiple of the step {step:g}"
                    raise ProblemError("bad_bounds", where, text)


def _check_names(where: str, names: Sequence[str], controls: Sequence[str]) -> None:
    check_names(where, names, controls, "control", "bad_statement")
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ProblemError("bad_statement", f"{where}.{name}", "is in two switches: remove one of them")


def _means(solution: PhaseSolution, name: str, pieces: int) -> Vector:
    """The values (pieces,) of a control that is constant on each."""
    middles = (np.arange(pieces) + 0.5) / pieces
    return np.asarray(solution.at(middles)[name])
