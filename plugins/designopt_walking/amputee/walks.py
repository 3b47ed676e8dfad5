"""Walks of one amputee at any speed and with any device: the best of the families that were continued to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from designopt.collocation import Guess, Solution, TrajectoryProblem
from designopt.plugin import Diverged
from designopt_walking.amputee.family import ContinuedWalk, WalkFamily, unsolved
from designopt_walking.amputee.programs import MIDDLES
from designopt_walking.amputee.start import AmputeeStart

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


class AmputeeWalks:
    """Walks on a mesh of `intervals`: of each design the one with the least objective among the `WalkFamily` of every
    middle device in `MIDDLES`. Families differ in their gait, and stay in it."""

    def __init__(self, start: AmputeeStart, intervals: int) -> None:
        self.start, self.programs, self.intervals = start, start.programs, intervals
        self._families = [WalkFamily(start, intervals, device) for device in self.programs.devices(MIDDLES)]

    def free_problem(self, speed: float) -> TrajectoryProblem:
        """The program in which all device parameters are unknowns, which starts from the middle walk."""
        stated = self.programs.problem(speed, {})
        (phase,) = stated.phases
        starting = replace(phase, start=lambda _values, _rng: self.middle(speed).phase)
        return replace(stated, phases=[starting], guess=self._families[0].middle_device)

    def middle(self, speed: float) -> Solution:
        """The walk of the first family with its middle device. Raises `Diverged` where it is not reached."""
        return self._families[0].middle(speed)

    def walk(self, speed: float, values: Mapping[str, float]) -> Predicted:
        """The walk at `speed` (m/s) with these `values` of all device parameters.

        Raises `Diverged` with the reason of the first family where none is solved.
        """
        continued: list[ContinuedWalk] = []
        failures: list[Diverged] = []
        for family in self._families:
            try:
                continued.append(family.walk(speed, values))
            except Diverged as error:
                failures.append(error)
        if not continued:
            raise failures[0]
        best = min(continued, key=lambda walk: walk.solution.objective)
        objectives = tuple(walk.solution.objective for walk in continued)
        problem, solves = self.programs.problem(speed, values), sum(walk.solves for walk in continued)
        return self._result(problem, best.solution, best.way, solves, objectives)

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
            raise unsolved(last)
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

    def _result(
        self, problem: TrajectoryProblem, solution: Solution, way: str, attempts: int, objectives: tuple[float, ...]
    ) -> Predicted:
        return Predicted(self.programs.checked(problem, solution), way, attempts, objectives)
