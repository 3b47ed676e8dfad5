"""Walks of one amputee at any speed and with any device, continued from a first walk in small steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

from designopt.collocation import Guess, Program, Solution, TrajectoryProblem
from designopt.plugin import Diverged
from designopt_walking.amputee.programs import MIDDLE
from designopt_walking.amputee.start import AmputeeStart

#: Speeds (m/s) of the first walk, in the order in which they are tried.
SPEEDS = (0.9, 1.2)
#: Iterations after which a step from a neighbouring walk has failed.
WARM_ITERATIONS = 200
#: Steps between neighbouring walks: of the speed (m/s), and of the level of a parameter of the device (`level`).
SPEED_STEP, LEVEL_STEP = 0.1, 0.25
#: Relative decrease of the objective below which a walk is polished.
POLISHED = 1e-5
#: Relative difference of the objectives of starts that agree.
AGREE = 1e-3


@dataclass(frozen=True, eq=False)
class Predicted:
    """A solved walk, the `way` to it ("warm", "cold" or the name of its start), and the number of solves.

    `objectives` are those of all starts that were solved, the result's among them.
    """

    solution: Solution
    way: str
    attempts: int
    objectives: tuple[float, ...]

    @property
    def spread(self) -> float:
        """Of the objectives of all starts, relative to the least."""
        return max(self.objectives) / min(self.objectives) - 1.0

    @property
    def agreeing(self) -> int:
        """Number of starts that end in the least objective."""
        least = min(self.objectives)
        return sum(value <= least * (1.0 + AGREE) for value in self.objectives)


def level(value: float, middle: float) -> float:
    """The level of a parameter, 0 at its `middle` value: logarithmic above, nearly linear down to zero."""
    return math.log((1.0 + 2.0 * value / middle) / 3.0)


def value_at(level: float, middle: float) -> float:
    """The value of a parameter at a `level`."""
    return middle * (3.0 * math.exp(level) - 1.0) / 2.0


class AmputeeWalks:
    """Walks on a mesh of `intervals`.

    The first has the middle device at one of `SPEEDS`, and is solved from the walk with help of `start`. From it the
    middle device is taken to other speeds in steps of `SPEED_STEP`, warm or else cold, and at
    a speed to other devices in steps of `LEVEL_STEP`: waypoints, which are solved once, each from the one before with
    its multipliers. A design is solved from the last waypoint before it. Waypoints do not depend on designs: results
    are the same in any order, on any number of workers, which share them through files (`SharedWalks`).
    """

    def __init__(self, start: AmputeeStart, intervals: int) -> None:
        self.start, self.programs, self.intervals = start, start.programs, intervals
        self._middle = self.programs.device(MIDDLE)
        self._middles: dict[float, Solution] = {}
        self._waypoints: dict[tuple[float, tuple[int, ...]], Solution] = {}

    def free_problem(self, speed: float) -> TrajectoryProblem:
        """The program in which all device parameters are unknowns, which starts from the middle walk."""
        stated = self.programs.problem(speed, {})
        (phase,) = stated.phases
        starting = replace(phase, start=lambda _values, _rng: self.middle(speed).phase)
        return replace(stated, phases=[starting], guess=self._middle)

    def walk(self, speed: float, values: Mapping[str, float]) -> Predicted:
        """The walk at `speed` (m/s) with these `values` of all device parameters: warm from a waypoint, else cold.

        Raises `Diverged` with the status of the last solve where neither is solved.
        """
        problem = self.programs.problem(speed, values)
        levels = (level(values[name], middle) / LEVEL_STEP for name, middle in self._middle.items())
        near = self._waypoint(speed, tuple(map(int, levels)))
        way, attempts = "warm", 1
        solution = self._continued(near, speed, values)
        if not solution.success:
            way, attempts = "cold", 2
            solution = self.programs.solve(problem, Guess.from_solution(near), self.intervals)
        if not solution.success:
            raise _unsolved(solution)
        return self._result(problem, solution, way, attempts, (solution.objective,))

    def best_device(self, speed: float, fixed: Mapping[str, float]) -> Predicted:
        """The walk whose program chooses all device parameters that are not `fixed`: from three starts (the walk with
        help, the middle walk, the better of both results), polished until the objective stops falling.

        Raises `Diverged` where no start is solved.
        """
        problem = self.programs.problem(speed, fixed)
        objectives: list[float] = []
        best: tuple[Solution, str] | None = None
        starts = {"help": self.start.helped(speed), "middle walk": self.middle(speed)}
        attempts = len(starts)
        for name, start in starts.items():
            last = self.programs.solve(problem, Guess.from_solution(start), self.intervals)
            if last.success:
                objectives.append(last.objective)
                if best is None or last.objective < best[0].objective:
                    best = last, name
        if best is None:
            raise _unsolved(last)
        gain = 1.0
        while gain > POLISHED:
            polished = self.programs.solve(problem, Guess.from_solution(best[0]), self.intervals)
            attempts += 1
            gain = 1.0 - polished.objective / best[0].objective if polished.success else 0.0
            if polished.success:
                objectives.append(polished.objective)
            if gain > 0.0:
                best = polished, f"{best[1]}, polished"
        return self._result(problem, best[0], best[1], attempts, tuple(objectives))

    def confirmed(self, speed: float, values: Mapping[str, float], predicted: Predicted) -> Predicted:
        """The walk with these `values` on twice the intervals, from the `predicted` one; it need not be solved."""
        problem = self.programs.problem(speed, values)
        finer = self.programs.solve(problem, Guess.from_solution(predicted.solution), 2 * self.intervals)
        return replace(predicted, solution=self.programs.checked(problem, finer) if finer.success else finer)

    def middle(self, speed: float) -> Solution:
        """The walk with the middle device at `speed` (m/s). Raises `Diverged` where the way to it ends before."""
        solution = self._at_speed(round(speed, 6))
        if not solution.success:
            raise Diverged(
                f"no walk with the middle device at {speed:g} m/s, from which designs start, was reached in steps of"
                f" {SPEED_STEP:g} m/s from {self._first[0]:g} m/s: {solution.message}",
                reason=f"start_{solution.status.name.lower()}",
            )
        return solution

    @cached_property
    def _first(self) -> tuple[float, Solution, Program]:
        """The first walk (its speed, and the last attempt where none is solved) and the program of warm starts."""
        for speed in SPEEDS:
            problem, guess = self.programs.problem(speed, self._middle), Guess.from_solution(self.start.helped(speed))
            solution = self._shared("first", speed, partial(self.programs.solve, problem, guess, self.intervals))
            if solution.success:
                break
        # the same guess makes the same scales, those of the solution's multipliers
        return speed, solution, self.programs.program(problem, guess, self.intervals, WARM_ITERATIONS)

    def _at_speed(self, speed: float) -> Solution:
        """The walk with the middle device, or the first on the way to it that is not solved."""
        first_speed, first, _ = self._first
        steps = math.ceil(round(abs(speed - first_speed) / SPEED_STEP, 6))
        if steps == 0:
            return first
        if speed not in self._middles:
            nearer = first_speed + math.copysign((steps - 1) * SPEED_STEP, speed - first_speed)
            previous = self._at_speed(round(nearer, 6))
            at_speed = partial(self._middle_at, speed, previous)
            self._middles[speed] = self._shared("middle", speed, at_speed) if previous.success else previous
        return self._middles[speed]

    def _middle_at(self, speed: float, previous: Solution) -> Solution:
        """The walk with the middle device from the `previous` one at a nearer speed: warm, else cold with the scales
        of the program of warm starts, which others continue from it."""
        solution = self._continued(previous, speed, self._middle)
        if solution.success:
            return solution
        problem, scales = (
            self.programs.problem(speed, self._middle),
            Guess.from_solution(self.start.helped(self._first[0])),
        )
        return self.programs.program(problem, scales, self.intervals).solve(problem, Guess.from_solution(previous))

    def _waypoint(self, speed: float, levels: tuple[int, ...]) -> Solution:
        """The walk with the device at whole `levels` (in steps), or the last on the way to it that is solved."""
        if not any(levels):
            return self.middle(speed)
        key = round(speed, 6), levels
        if key not in self._waypoints:
            previous = self._waypoint(speed, tuple(n - (n > 0) + (n < 0) for n in levels))
            numbers = zip(levels, self._middle.items(), strict=True)
            values = {name: value_at(n * LEVEL_STEP, middle) for n, (name, middle) in numbers}
            solution = self._shared(f"at {levels}", speed, partial(self._continued, previous, speed, values))
            self._waypoints[key] = solution if solution.success else previous
        return self._waypoints[key]

    def _shared(self, which: str, speed: float, solve: Callable[[], Solution]) -> Solution:
        """A solution on the way at `speed` (m/s) that another worker or run has computed, else that of `solve`."""
        return self.start.shared.solution(f"{which}, {speed:.6f} m/s, {self.intervals} intervals", solve)

    def _continued(self, previous: Solution, speed: float, values: Mapping[str, float]) -> Solution:
        program = self._first[2]
        return program.solve(self.programs.problem(speed, values), warm="full", previous=previous)

    def _result(
        self, problem: TrajectoryProblem, solution: Solution, way: str, attempts: int, objectives: tuple[float, ...]
    ) -> Predicted:
        return Predicted(self.programs.checked(problem, solution), way, attempts, objectives)


def _unsolved(solution: Solution) -> Diverged:
    return Diverged(solution.message, reason=solution.status.name.lower())
