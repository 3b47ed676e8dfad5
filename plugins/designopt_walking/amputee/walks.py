"""Walks of one amputee at any speed and with any device: the best of the families that were continued to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from designopt.collocation import Guess, Solution, TrajectoryProblem
from designopt.plugin import Diverged
from designopt_walking.amputee.family import ContinuedWalk, WalkFamily, solve_failure
from designopt_walking.amputee.programs import MIDDLES, best_walk
from designopt_walking.amputee.start import AmputeeStart

#: Relative difference of the objectives of starts that agree.
AGREE = 1e-3


@dataclass(frozen=True, eq=False)
class Prediction:
    """A solved walk, the `way` to it ("warm", "cold" or the name of its start), and the number of solves.

    `objectives` are those of all starts that were solved, the result's among them; `failures` are sentences on the
    starts that were not.
    """

    solution: Solution
    way: str
    attempts: int
    objectives: tuple[float, ...]
    failures: tuple[str, ...] = ()

    @property
    def spread(self) -> float:
        """The spread of the objectives of all starts, relative to the least."""
        return max(self.objectives) / min(self.objectives) - 1.0

    @property
    def agreeing(self) -> int:
        """Number of starts that end in the least objective."""
        least = min(self.objectives)
        return sum(value <= least * (1.0 + AGREE) for value in self.objectives)


class AmputeeWalks:
    """Walks on a mesh of `intervals`: of each design the one with the least objective among the `WalkFamily` of every
    middle device in `MIDDLES`. Families differ in their gait, and stay in it; on a slope each continues that on ground
    `nearer` to level."""

    def __init__(self, start: AmputeeStart, intervals: int, nearer: AmputeeWalks | None = None) -> None:
        self.start, self.programs, self.intervals = start, start.programs, intervals
        devices = self.programs.devices(MIDDLES)
        before: Sequence[WalkFamily | None] = [None] * len(devices) if nearer is None else nearer.families
        pairs = zip(devices, before, strict=True)
        self.families: list[WalkFamily] = [WalkFamily(start, intervals, device, family) for device, family in pairs]

    def free_problem(self, speed: float) -> TrajectoryProblem:
        """The program in which all device parameters are unknowns, which starts from the middle walk."""
        problem = self.programs.problem(speed, {})
        (phase,) = problem.phases
        starting = replace(phase, start=lambda _values, _rng: self.middle(speed).phase)
        return replace(problem, phases=[starting], guess=self.families[0].middle_device)

    def middle(self, speed: float) -> Solution:
        """The walk of the first family with its middle device. Raises `Diverged` where it is not reached."""
        return self.families[0].middle(speed)

    def walk(self, speed: float, values: Mapping[str, float]) -> Prediction:
        """The walk at `speed` (m/s) with these `values` of all device parameters.

        Raises `Diverged` with the reason of the first family where none is solved.
        """
        walks: list[ContinuedWalk] = []
        failures: dict[str, Diverged] = {}
        for family in self.families:
            try:
                walk = family.walk(speed, values)
            except Diverged as error:
                failures[family.name] = error
                continue
            walks.append(walk)
            if not walk.solution.success:
                failures[family.name] = solve_failure(walk.solution)
        converged_walks = [walk for walk in walks if walk.solution.success]
        if not converged_walks:
            raise next(iter(failures.values()))
        best = min(converged_walks, key=lambda walk: walk.solution.objective)
        objectives = tuple(walk.solution.objective for walk in converged_walks)
        problem, solves = self.programs.problem(speed, values), sum(walk.solves for walk in walks)
        result = Prediction(best.solution, best.way, solves, objectives, sentences(failures))
        return self._with_checks(problem, result)

    def best_device(self, speed: float, fixed: Mapping[str, float]) -> Prediction:
        """The walk whose program chooses all device parameters that are not `fixed`: from the walk with help and those
        of all families with their middle devices; the best result is polished until the objective stops falling.

        Raises `Diverged` with the reason of the first start where none is solved.
        """
        problem = self.programs.problem(speed, fixed)
        starts: dict[str, Callable[[], Solution]] = {"help torques": partial(self.start.helped_iterate, speed)}
        starts |= {family.name: partial(family.middle, speed) for family in self.families}
        solutions: list[tuple[Solution, str]] = []
        failures: dict[str, Diverged] = {}
        attempts = 0
        for name, start in starts.items():
            try:
                guess = Guess.from_solution(start())
            except Diverged as error:
                failures[name] = error
                continue
            solution = self.programs.solve(problem, guess, self.intervals)
            attempts += 1
            if solution.success:
                solutions.append((solution, name))
            else:
                failures[name] = solve_failure(solution)
        if not solutions:
            raise next(iter(failures.values()))
        objectives = [solution.objective for solution, _ in solutions]
        best, way = min(solutions, key=lambda start: start[0].objective)
        refinements = self.programs.polish(problem, best, self.intervals)
        attempts += len(refinements)
        objectives += [solution.objective for solution in refinements if solution.success]
        walk = best_walk([best, *refinements])
        if walk is not best:
            best, way = walk, f"{way}, polished"
        return self._with_checks(problem, Prediction(best, way, attempts, tuple(objectives), sentences(failures)))

    def confirmed(self, speed: float, values: Mapping[str, float], prediction: Prediction) -> Prediction:
        """The walk with these `values` on twice the intervals, near the `prediction`; it need not be solved."""
        problem = self.programs.problem(speed, values)
        finer = self.programs.solve_finer(problem, prediction.solution, 2 * self.intervals)
        return replace(prediction, solution=self.programs.checked(problem, finer) if finer.success else finer)

    def _with_checks(self, problem: TrajectoryProblem, prediction: Prediction) -> Prediction:
        return replace(prediction, solution=self.programs.checked(problem, prediction.solution))


def sentences(failures: Mapping[str, Diverged]) -> tuple[str, ...]:
    """Sentences on starts that were not solved, by their names."""
    return tuple(f"from {name}: no walk ({error.reason})" for name, error in failures.items())
