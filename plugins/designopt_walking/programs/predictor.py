"""Predictions of one walker at any speed and for any device: starts, warm starts, several starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from designopt.collocation import Guess, PhaseGuess, Program, Solution, StartRecord, TrajectoryProblem, checked
from designopt.collocation.solution.status import Status
from designopt_walking.programs.gait import GaitRanges, check_speed, forward_range, program_options
from designopt_walking.programs.predict import Effort, predicted_walk
from designopt_walking.programs.synthetic import SyntheticWalk, track_synthetic
from designopt_walking.walker import Walker

#: Iterations after which a warm start has failed, and any start.
WARM, MOST = 150, 500
#: Relative difference of costs below which starts agree.
SAME = 1e-3


@dataclass(frozen=True)
class PredictionMesh:
    """Intervals of the half cycle, tolerance of the solver, and the scheme: Hermite-Simpson, or Radau of degree 3."""

    intervals: int = 25
    tolerance: float = 1e-5
    scheme: Literal["hermite_simpson", "radau"] = "hermite_simpson"


@dataclass(frozen=True, eq=False)
class WalkPredictor:
    """Predicted walks of a `walker`; one program serves all speeds and parameters of its devices.

    The first trajectories are `first` (such as a recorded walk), else a synthetic walk that is tracked first. A design
    starts warm, with multipliers, from the walk with the least parameters at the same speed, which is solved once; if
    that fails, cold. The result depends on the design alone, not on those before it.
    """

    walker: Walker
    gait: GaitRanges = field(default_factory=GaitRanges)
    effort: Effort = field(default_factory=Effort)
    mesh: PredictionMesh = field(default_factory=PredictionMesh)
    first: PhaseGuess | None = None
    _starts: dict[float, Solution] = field(default_factory=dict, init=False, repr=False)
    _walks: dict[float, Solution] = field(default_factory=dict, init=False, repr=False)
    _programs: dict[int, Program] = field(default_factory=dict, init=False, repr=False)

    def problem(self, speed: float) -> TrajectoryProblem:
        """The program at `speed` (m/s), whose first trajectories are computed when it is solved.

        Raises `GaitError`.
        """
        check_speed(speed, self.gait, forward_range(self.walker))
        phase = replace(self._stated.phases[0], data={"speed": speed}, start=self._phase_start(speed))
        return replace(self._stated, phases=[phase])

    @cached_property
    def _stated(self) -> TrajectoryProblem:
        """The statement of which all problems have the system and the functions."""
        return predicted_walk(self.walker, self.gait, self.effort, 1.0)

    def start(self, speed: float, rng: np.random.Generator | None = None) -> Solution:
        """The tracked synthetic walk at `speed`; with `rng` one with other amplitudes."""
        if rng is not None:
            return self._tracked(SyntheticWalk.perturbed(speed, rng))
        if speed not in self._starts:
            self._starts[speed] = self._tracked(SyntheticWalk(speed))
        return self._starts[speed]

    def _tracked(self, walk: SyntheticWalk) -> Solution:
        return track_synthetic(self.walker, self.gait, walk, self.mesh.intervals)

    def _phase_start(self, speed: float) -> Any:
        def start(parameters: Mapping[str, float], rng: np.random.Generator | None) -> PhaseGuess:
            if rng is None and self.first is not None:
                return self.first
            return self.start(speed, rng).phase

        return start

    def solve(
        self,
        speed: float,
        parameters: Mapping[str, float] | None = None,
        *,
        near: Solution | None = None,
        starts: int = 1,
        seed: int = 0,
    ) -> Solution:
        """The walk at `speed` (m/s) with these `parameters` of devices; those that are missing are chosen.

        `near` is another solution of this predictor, from which it starts warm; `starts` are further synthetic walks
        with other amplitudes, of which the best result counts. `Solution.warm_path` lists what was tried,
        `Solution.starts` the costs. A failed solve is a solution with its status. Raises `GaitError`.
        """
        problem = replace(self.problem(speed), parameters=dict(parameters or {}))
        tried: list[str] = []
        previous = near if near is not None else self._anchor(speed, problem)
        solution: Solution | None = None
        if previous is not None and previous.success:
            solution = self._program(problem, WARM).solve(problem, warm="full", previous=previous)
            tried.append("full")
        if solution is None or not (solution.success or solution.status is Status.CANCELLED):
            solution = self._program(problem, MOST).solve(problem)
            tried.append("cold")
        return replace(self._best(problem, solution, starts, seed), warm_path=tuple(tried))

    def chain(self, speeds: list[float], parameters: Mapping[str, float] | None = None) -> list[Solution]:
        """The walks at `speeds` in turn, each from the one before."""
        solutions: list[Solution] = []
        for speed in speeds:
            near = next((s for s in reversed(solutions) if s.success), None)
            solutions.append(self.solve(speed, parameters, near=near))
        return solutions

    def checked(self, speed: float, solution: Solution) -> Solution:
        """`solution` with its error estimate and re-simulations of all intervals."""
        problem = self.problem(speed)
        return checked(problem, self._program(problem, MOST).statement, solution)

    def _anchor(self, speed: float, problem: TrajectoryProblem) -> Solution | None:
        """The walk with the least parameters at this speed; None for a walker without any."""
        least = {v.name: v.low for v in problem.variables if np.isfinite(v.low)}
        if not least or problem.parameters == least:
            return None
        if speed not in self._walks:
            at_least = replace(problem, parameters=least)
            self._walks[speed] = self._program(at_least, MOST).solve(at_least)
        return self._walks[speed]

    def _program(self, problem: TrajectoryProblem, iterations: int) -> Program:
        """The program with a limit of iterations; all have the same expressions and scales."""
        if iterations not in self._programs:
            mesh = self.mesh
            options = program_options(mesh.intervals, mesh.tolerance, max_iterations=iterations, scheme=mesh.scheme)
            built = next(iter(self._programs.values()), None)
            first = built.problem if built else problem
            statement = built.statement if built else None
            self._programs[iterations] = Program(first, options, statement=statement)
        return self._programs[iterations]

    def _best(self, problem: TrajectoryProblem, first: Solution, starts: int, seed: int) -> Solution:
        records = [StartRecord(0, first.status, first.objective, first.iterations)]
        best = first
        for i in range(1, starts):
            tracked = self.start(float(problem.phases[0].data["speed"]), np.random.default_rng([seed, i]))
            solution = self._program(problem, MOST).solve(problem, guess=Guess({"motion": tracked.phase}))
            records.append(StartRecord(i, solution.status, solution.objective, solution.iterations))
            if solution.success and (not best.success or solution.objective < best.objective):
                best = solution
        return replace(best, starts=tuple(records))


def agreeing(solution: Solution) -> int:
    """How many starts reached the cost of the best, within 0.1 %."""
    solved = [record.objective for record in solution.starts if record.status.success]
    return sum(objective <= solution.objective * (1.0 + SAME) for objective in solved)


def spread_of_costs(solution: Solution) -> float:
    """The range of the costs of the solved starts, relative to the best; 0 with one."""
    solved = [record.objective for record in solution.starts if record.status.success]
    return (max(solved) - min(solved)) / abs(min(solved)) if solved else 0.0
