"""A family of walks of one amputee at any speed and with any device, continued from a first walk in small steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from designopt.collocation import Guess, Program, Solution
from designopt.plugin import Diverged
from designopt_walking.amputee.programs import best_walk, refuse_interrupted
from designopt_walking.amputee.start import AmputeeStart
from designopt_walking.programs.gait import walk_step

#: Speeds (m/s) of the first walk, in the order in which they are tried.
SPEEDS = (0.9, 1.2)
#: Iterations after which a step from a neighbouring walk has failed.
WARM_ITERATIONS = 200
#: Steps between neighbouring walks: of the speed (m/s), and of the level of a parameter of the device (`level`).
SPEED_STEP, LEVEL_STEP = 0.1, 0.25


@dataclass(frozen=True, eq=False)
class ContinuedWalk:
    """A walk, solved or not, the `way` to it ("warm" or "cold"), and the number of `solves`."""

    solution: Solution
    way: str
    solves: int


def level(value: float, middle: float) -> float:
    """The level of a parameter, 0 at its `middle` value: logarithmic above, nearly linear down to zero."""
    return math.log((1.0 + 2.0 * value / middle) / 3.0)


def value_at(level: float, middle: float) -> float:
    """The value of a parameter at a `level`."""
    return middle * (3.0 * math.exp(level) - 1.0) / 2.0


class WalkFamily:
    """Walks on a mesh of `intervals`, continued from the first walk of one `middle_device`.

    The first has the middle device at one of `SPEEDS`, and is solved from the walk with help of `start`, on a slope
    warm or else cold from that on ground `nearer` to level. From it the middle device is taken to other speeds in
    steps of `SPEED_STEP`, warm or else cold, and at a speed to other devices in steps of `LEVEL_STEP`: waypoints, which
    are solved once, each from the one before with its multipliers. A design is solved from the last waypoint before it.
    Waypoints do not depend on designs: results are the same in any order, on any number of workers, which share them
    through files (`SharedWalks`).
    """

    def __init__(
        self,
        start: AmputeeStart,
        intervals: int,
        middle_device: Mapping[str, float],
        nearer: WalkFamily | None = None,
    ) -> None:
        self.start, self.programs, self.intervals, self.nearer = start, start.programs, intervals, nearer
        self.middle_device = middle_device
        self.name = ", ".join(f"{name} {value:g}" for name, value in middle_device.items())
        self._middles: dict[float, Solution] = {}
        self._waypoints: dict[tuple[float, tuple[int, ...]], Solution] = {}

    def walk(self, speed: float, values: Mapping[str, float]) -> ContinuedWalk:
        """The walk at `speed` (m/s) with these `values` of all device parameters: warm from a waypoint, else cold; it
        need not be solved.

        Raises `Diverged` where the way to the middle device at this speed ends before.
        """
        levels = (level(values[name], middle) / LEVEL_STEP for name, middle in self.middle_device.items())
        near = self._waypoint(speed, tuple(map(int, levels)))
        solution = self._continue(near, speed, values)
        if solution.success:
            return ContinuedWalk(solution, "warm", 1)
        solution = self.programs.solve(self.programs.problem(speed, values), Guess.from_solution(near), self.intervals)
        return ContinuedWalk(solution, "cold", 2)

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
    def _first(self) -> tuple[float, Solution]:
        """The speed of the first walk, and the walk; the last attempt where none is solved."""
        if self.nearer is not None:
            speed, solution = self.nearer._first
            if solution.success:
                solution = self._shared_solution("first", speed, partial(self._middle_at, speed, solution))
            return speed, solution
        for speed in SPEEDS:
            solution = self._shared_solution("first", speed, partial(self._from_help, speed))
            if solution.success:
                break
        return speed, solution

    def _from_help(self, speed: float) -> Solution:
        """The polished walk from the one with help."""
        problem = self.programs.problem(speed, self.middle_device)
        solution = self.programs.solve(problem, Guess.from_solution(self.start.helped_iterate(speed)), self.intervals)
        refinements = self.programs.polish(problem, solution, self.intervals) if solution.success else []
        return best_walk([solution, *refinements])

    @cached_property
    def _scales(self) -> Guess:
        """The guess of the first walk on level ground: it makes the same scales, those of all multipliers."""
        if self.nearer is not None:
            return self.nearer._scales
        return Guess.from_solution(self.start.helped_iterate(self._first[0]))

    @cached_property
    def _warm_program(self) -> Program:
        speed = (self.nearer or self)._first[0]
        problem = self.programs.problem(speed, self.middle_device)
        return self.programs.program(problem, self._scales, self.intervals, WARM_ITERATIONS)

    def _at_speed(self, speed: float) -> Solution:
        """The walk with the middle device, or the first on the way to it that is not solved."""
        first_speed, first = self._first
        steps = math.ceil(round(abs(speed - first_speed) / SPEED_STEP, 6))
        if steps == 0:
            return first
        if speed not in self._middles:
            nearer = first_speed + math.copysign((steps - 1) * SPEED_STEP, speed - first_speed)
            previous = self._at_speed(round(nearer, 6))
            at_speed = partial(self._middle_at, speed, previous)
            self._middles[speed] = self._shared_solution("middle", speed, at_speed) if previous.success else previous
        return self._middles[speed]

    def _middle_at(self, speed: float, previous: Solution) -> Solution:
        """The walk with the middle device from the `previous` one at a nearer speed, or on ground nearer to level:
        warm, else cold with the scales of the program of warm starts, which others continue from it."""
        solution = self._continue(previous, speed, self.middle_device)
        if solution.success:
            return solution
        problem = self.programs.problem(speed, self.middle_device)
        program = self.programs.program(problem, self._scales, self.intervals)
        with walk_step(speed, self.intervals):
            return refuse_interrupted(program.solve(problem, Guess.from_solution(previous)))

    def _waypoint(self, speed: float, levels: tuple[int, ...]) -> Solution:
        """The walk with the device at whole `levels` (in steps), or the last on the way to it that is solved."""
        if not any(levels):
            return self.middle(speed)
        key = round(speed, 6), levels
        if key not in self._waypoints:
            previous = self._waypoint(speed, tuple(n - (n > 0) + (n < 0) for n in levels))
            numbers = zip(levels, self.middle_device.items(), strict=True)
            values = {name: value_at(n * LEVEL_STEP, middle) for n, (name, middle) in numbers}
            solution = self._shared_solution(f"at {levels}", speed, partial(self._continue, previous, speed, values))
            self._waypoints[key] = solution if solution.success else previous
        return self._waypoints[key]

    def _shared_solution(self, start_name: str, speed: float, solve: Callable[[], Solution]) -> Solution:
        """A solution on the way at `speed` (m/s) that another worker or run has computed, else that of `solve`."""
        return self.start.shared.solution(
            f"{start_name} from {self.name}, {speed:.6f} m/s, {self.intervals} intervals", solve
        )

    def _continue(self, previous: Solution, speed: float, values: Mapping[str, float]) -> Solution:
        problem = self.programs.problem(speed, values)
        with walk_step(speed, self.intervals):
            return refuse_interrupted(self._warm_program.solve(problem, warm="full", previous=previous))


def solve_failure(solution: Solution) -> Diverged:
    """The failure of a design whose last solve is `solution`."""
    return Diverged(solution.message, reason=solution.status.name.lower())
