"""Predictions of one walker at any speed and for any device: starts, warm starts, several starts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from designopt.collocation import Guess, PhaseGuess, Program, Solution, StartRecord, TrajectoryProblem
from designopt.collocation.solution.solution import Status
from designopt_walking.programs.gait import (
    GaitError,
    GaitRanges,
    check_speed,
    forward_range,
    program_options,
    walk_step,
    with_interval_errors,
)
from designopt_walking.programs.predict import Effort, predicted_walk
from designopt_walking.programs.synthetic import SyntheticWalk, track_synthetic
from designopt_walking.programs.tendons import with_tendon_forces
from designopt_walking.walker import Walker

#: Iterations after which a warm start has failed, and any start.
WARM, MOST = 150, 500
#: Shares of the range of a chosen parameter at which the devices lie from whose walks the search starts.
DEVICES = (0.2, 0.8)
#: Relative difference of costs below which starts agree.
SAME = 1e-3
#: The speed (m/s) at which walks are solved from a tracked walk, and the steps in which they are taken to others.
USUAL_SPEED, SPEED_STEP = 1.2, 0.1
#: The metabolic weight (kg m/J) up to which walks are solved from a tracked walk, and the factor between heavier ones.
LIGHT_CHARGE, CHARGE_STEP = 1.0, 4.0
#: Most intervals of a tracked walk: it is a rough start, and would take longer than the prediction on a fine mesh.
TRACKED = 25


@dataclass(frozen=True)
class PredictionMesh:
    """Intervals of the half cycle, tolerance of the solver, and the scheme: Hermite-Simpson, or Radau of degree 3."""

    intervals: int = 25
    tolerance: float = 1e-5
    scheme: Literal["hermite_simpson", "radau"] = "hermite_simpson"


@dataclass(frozen=True, eq=False)
class WalkPredictor:
    """Predicted walks of a `walker`; one program serves all speeds and parameters of its devices.

    The first trajectories are `first` (such as a recorded walk), else a synthetic walk that is tracked first; a walk
    with a metabolic weight above `LIGHT_CHARGE` is solved near that with a smaller one, one with a pull near that of
    the predictor `gentler`, which has a smaller pull, else cold from there. Without
    `first`, walks at other speeds than `USUAL_SPEED` start warm, with multipliers, from the one a `SPEED_STEP` nearer
    to it: from tracked walks fast ones end in dearer optima (at 1.4 m/s by 2 %). A design starts warm from the walk
    with the least parameters at the same speed. Where parameters are chosen, the search starts from the walks with
    devices at `DEVICES` of their ranges, too: programs that choose have local optima. These neighbours are solved once;
    where a warm start fails, a cold one follows. The result depends on the design alone, not on those before it.

    A walker with compliant tendons needs itself `on_rigid_tendons`: the walk on these is found first, its own starts
    there.
    """

    walker: Walker
    gait: GaitRanges = field(default_factory=GaitRanges)
    effort: Effort = field(default_factory=Effort)
    mesh: PredictionMesh = field(default_factory=PredictionMesh)
    first: PhaseGuess | None = None
    gentler: WalkPredictor | None = None
    on_rigid_tendons: Walker | None = None
    _starts: dict[tuple[float, int], Solution] = field(default_factory=dict, repr=False)  # of all meshes
    _walks: dict[float, Solution] = field(default_factory=dict, init=False, repr=False)
    _programs: dict[int, Program] = field(default_factory=dict, init=False, repr=False)

    def problem(self, speed: float) -> TrajectoryProblem:
        """The program at `speed` (m/s), whose first trajectories are computed when it is solved.

        Raises `GaitError`.
        """
        check_speed(speed, self.gait, forward_range(self.walker))
        phase = replace(self._problem_statement.phases[0], data={"speed": speed}, start=self._phase_start(speed))
        return replace(self._problem_statement, phases=[phase])

    @cached_property
    def finer(self) -> WalkPredictor:
        """The same predictor on twice the intervals."""
        return replace(self, mesh=replace(self.mesh, intervals=2 * self.mesh.intervals))

    @cached_property
    def _easier_predictor(self) -> WalkPredictor | None:
        """The predictor with a smaller metabolic weight or pull, whose walks start those of this one: tracked walks do
        not lead to walks whose excitations count next to nothing, and with a pull forward to dear ones."""
        weight = self.effort.metabolic
        if weight <= LIGHT_CHARGE:
            return self.gentler
        return replace(self, effort=replace(self.effort, metabolic=max(LIGHT_CHARGE, weight / CHARGE_STEP)))

    @cached_property
    def _rigid(self) -> WalkPredictor | None:
        """The predictor of the walker with rigid tendons; None where this is its walker."""
        if self.on_rigid_tendons is None:
            return None
        gentler = None if self.gentler is None else self.gentler._rigid
        return replace(self, walker=self.on_rigid_tendons, gentler=gentler, on_rigid_tendons=None)

    @cached_property
    def _problem_statement(self) -> TrajectoryProblem:
        """The statement of which all problems have the system and the functions."""
        return predicted_walk(self.walker, self.gait, self.effort, 1.0)

    def start(self, speed: float, rng: np.random.Generator | None = None) -> Solution:
        """The tracked synthetic walk at `speed`, on rigid tendons; with `rng` one with other amplitudes."""
        intervals = min(self.mesh.intervals, TRACKED)
        walker = self.on_rigid_tendons or self.walker
        if rng is not None:
            return track_synthetic(walker, self.gait, SyntheticWalk.perturbed(speed, rng), intervals)
        if (speed, intervals) not in self._starts:
            solution = track_synthetic(walker, self.gait, SyntheticWalk(speed), intervals)
            self._starts[speed, intervals] = solution
        return self._starts[speed, intervals]

    def _phase_start(self, speed: float) -> Any:
        def start(parameters: Mapping[str, float], rng: np.random.Generator | None) -> PhaseGuess:
            if rng is None and self.first is not None:
                return with_tendon_forces(self.walker, self.first)
            if rng is None and self._easier_predictor is not None:
                return self._easier_predictor.solve(speed, parameters).phase
            if rng is None and self._rigid is not None:
                return with_tendon_forces(self.walker, self._rigid.solve(speed, parameters).phase)
            return with_tendon_forces(self.walker, self.start(speed, rng).phase)

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
        with other amplitudes. The best result counts. `Solution.warm_path` lists what was tried,
        `Solution.starts` the costs. A failed solve is a solution with its status. Raises `GaitError`.
        """
        problem = replace(self.problem(speed), parameters=dict(parameters or {}))
        if near is not None:
            solutions = [self._solve(problem, near)]
        elif problem.parameters == self._least_parameters(problem):
            solutions = [self._neighbour(speed)]
        else:
            solutions = [self._solve(problem, self._neighbour(speed)), *self._from_devices(problem, speed)]
        return self._best(problem, solutions, starts, seed)

    def confirmed(self, speed: float, parameters: Mapping[str, float], coarse: Solution, starts: int = 1) -> Solution:
        """The walk on twice the intervals near the `coarse` one of this predictor, or where none is found near it, from
        tracked walks, as on the coarse mesh."""
        problem = replace(self.problem(speed), parameters=dict(parameters))
        near = self._solve_near(problem, coarse, self.finer.mesh.intervals, WARM)
        if near.success or near.status is Status.CANCELLED:
            return near
        return self.finer.solve(speed, parameters, starts=starts)

    def _solve_near(self, problem: TrajectoryProblem, previous: Solution, intervals: int, iterations: int) -> Solution:
        """The walk on a mesh of `intervals` near the `previous` one of another mesh or cost, without its multipliers;
        it need not be solved."""
        mesh = self.mesh
        options = program_options(intervals, mesh.tolerance, max_iterations=iterations, scheme=mesh.scheme)
        problem_functions = next((program.problem_functions for program in self._programs.values()), None)
        with walk_step(problem.phases[0].data["speed"], intervals):
            program = Program(problem, options, Guess.from_solution(previous), problem_functions=problem_functions)
            return replace(program.solve(warm="near", previous=previous), warm_path=("near",))

    def _from_devices(self, problem: TrajectoryProblem, speed: float) -> Iterator[Solution]:
        """The walks with chosen parameters from those with devices inside the ranges; none if all are given."""
        free_variables = [v for v in problem.variables if v.name not in problem.parameters]
        for shares in itertools.product(DEVICES, repeat=len(free_variables)) if free_variables else ():
            device = {v.name: v.low + share * (v.high - v.low) for v, share in zip(free_variables, shares, strict=True)}
            fixed = replace(problem, parameters={**problem.parameters, **device})
            walk = self._solve(fixed, self._neighbour(speed))
            yield self._solve(problem, walk) if walk.success else walk

    def _solve(self, problem: TrajectoryProblem, near: Solution | None) -> Solution:
        """Warm from `near`, else cold; `Solution.warm_path` lists what was tried."""
        attempts: list[str] = []
        solution: Solution | None = None
        with walk_step(problem.phases[0].data["speed"], self.mesh.intervals):
            if near is not None and near.success:
                solution = self._program(problem, WARM).solve(problem, warm="full", previous=near)
                attempts.append("full")
            if solution is None or not (solution.success or solution.status is Status.CANCELLED):
                solution = self._program(problem, MOST).solve(problem)
                attempts.append("cold")
        return replace(solution, warm_path=tuple(attempts))

    def chain(self, speeds: list[float], parameters: Mapping[str, float] | None = None) -> list[Solution]:
        """The walks at `speeds` in turn, each from the one before."""
        solutions: list[Solution] = []
        for speed in speeds:
            near = next((s for s in reversed(solutions) if s.success), None)
            solutions.append(self.solve(speed, parameters, near=near))
        return solutions

    def checked(self, speed: float, solution: Solution) -> Solution:
        """`solution` with the errors of its intervals."""
        return with_interval_errors(self.problem(speed), solution)

    def _least_parameters(self, problem: TrajectoryProblem) -> dict[str, float]:
        """The least parameters of the devices."""
        return {v.name: v.low for v in problem.variables if np.isfinite(v.low)}

    def _neighbour(self, speed: float) -> Solution:
        """The walk with the least parameters at this speed."""
        key = round(speed, 6)
        if key not in self._walks:
            problem = self.problem(speed)
            problem = replace(problem, parameters=self._least_parameters(problem))
            nearer = self._nearer_speed_walk(speed)
            walk = self._near_easier(problem, speed) if nearer is None else None
            self._walks[key] = self._solve(problem, nearer) if walk is None else walk
        return self._walks[key]

    def _near_easier(self, problem: TrajectoryProblem, speed: float) -> Solution | None:
        """The walk near that with a smaller metabolic weight or pull; None without these, or if it is not solved."""
        if self._easier_predictor is None or self.first is not None:
            return None
        easier = self._easier_predictor.solve(speed, self._least_parameters(problem))
        if not easier.success:
            return None
        walk = self._solve_near(problem, easier, self.mesh.intervals, MOST)
        return walk if walk.success or walk.status is Status.CANCELLED else None

    def _nearer_speed_walk(self, speed: float) -> Solution | None:
        """The walk with the least parameters a step nearer to the usual speed; None where walks start there."""
        steps = math.ceil(round(abs(speed - USUAL_SPEED) / SPEED_STEP, 6))
        if self.first is not None or steps == 0:
            return None
        nearer = USUAL_SPEED + math.copysign((steps - 1) * SPEED_STEP, speed - USUAL_SPEED)
        try:
            check_speed(nearer, self.gait, forward_range(self.walker))
        except GaitError:  # the ranges are those of another speed
            return None
        return self._neighbour(round(nearer, 6))

    def _program(self, problem: TrajectoryProblem, iterations: int) -> Program:
        """The program with a limit of iterations; all have the same expressions and scales."""
        if iterations not in self._programs:
            mesh = self.mesh
            options = program_options(mesh.intervals, mesh.tolerance, max_iterations=iterations, scheme=mesh.scheme)
            built = next(iter(self._programs.values()), None)
            first = built.problem if built else problem
            problem_functions = built.problem_functions if built else None
            self._programs[iterations] = Program(first, options, problem_functions=problem_functions)
        return self._programs[iterations]

    def _best(self, problem: TrajectoryProblem, solutions: list[Solution], starts: int, seed: int) -> Solution:
        """The solved walk of least objective among `solutions` and those of further `starts`."""
        for i in range(1, starts):
            speed = float(problem.phases[0].data["speed"])
            start = self.start(speed, np.random.default_rng([seed, i]))
            guess = Guess({"motion": with_tendon_forces(self.walker, start.phase)})
            with walk_step(speed, self.mesh.intervals):
                solutions.append(self._program(problem, MOST).solve(problem, guess=guess))
        records = [StartRecord(i, s.status, s.objective, s.iterations) for i, s in enumerate(solutions)]
        best = min(solutions, key=lambda s: (not s.success, s.objective if s.success else 0.0))
        return replace(best, starts=tuple(records))


def agreeing(solution: Solution) -> int:
    """How many starts reached the cost of the best, within 0.1 %."""
    objectives = [record.objective for record in solution.starts if record.status.success]
    return sum(objective <= solution.objective * (1.0 + SAME) for objective in objectives)


def spread_of_costs(solution: Solution) -> float:
    """The range of the costs of the solved starts, relative to the best; 0 with one."""
    objectives = [record.objective for record in solution.starts if record.status.success]
    return (max(objectives) - min(objectives)) / abs(min(objectives)) if objectives else 0.0
