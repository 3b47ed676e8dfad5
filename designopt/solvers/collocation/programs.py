"""Solution of the programs of a study on a worker, one after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.collocation import (
    Guess,
    Options,
    ProblemError,
    Program,
    Solution,
    TrajectoryProblem,
    inference,
    peak_values,
    sensitivities,
    spread,
)
from designopt.collocation.estimation.fitting import is_measured, measured_guess
from designopt.collocation.estimation.saving import estimate_arrays
from designopt.collocation.solution.saving import to_arrays
from designopt.collocation.solution.sparsity import sparsity_arrays
from designopt.collocation.solve.attempts import persist
from designopt.collocation.solve.guess.multistart import perturbed
from designopt.collocation.solve.guess.rollout import rollout
from designopt.collocation.solve.guess.warm import solve_near
from designopt.collocation.solve.pulses import without_pulses
from designopt.collocation.solve.refine import refine
from designopt.collocation.solve.solve import checked
from designopt.collocation.transcription.functions.functions import state, with_compiled
from designopt.problem import ProgramSolution
from designopt.solvers.collocation.trajectory import StudyTrajectory


class ChainState:
    """The start of the next program of a chain: a solution and the iterations of a cold solve."""

    def __init__(self, solution: Solution, cold: int) -> None:
        self.solution, self.cold = solution, cold


class StudyPrograms:
    """Solves the programs of a study on a worker; the problem is stated and built once. `program_count` is the
    number of programs.

    `deviations` are standard deviations of numbers by name; their effect on each optimum is computed. `confidence` is
    the level of the intervals of estimated parameters.
    """

    def __init__(
        self,
        study: StudyTrajectory,
        options: Options,
        program_count: int,
        deviations: Mapping[str, float] = MappingProxyType({}),
        confidence: float = 0.95,
    ) -> None:
        self._study, self._program_count = study, program_count
        self._options = options
        self._deviations, self._confidence = deviations, confidence

    def check(self) -> None:
        """Raises `ProblemError` for mistakes in the statement of the model or of the study; nothing is solved."""
        base = self._study.base
        Program(replace(base, phases=[replace(phase, start=None) for phase in base.phases]), self._options)

    @cached_property
    def _trajectory_and_program(self) -> tuple[StudyTrajectory, Program]:
        """The problem and its program, common to all designs."""
        study, options = self._study, self._options
        if (mean := study.with_mean) is not None:  # the bounding variable has no guess, and so no scale
            program = Program(mean.base, replace(options, compile="never", scales={}))
            study = study.with_objective_size(1.0 / program.transcription.cost_scale)
        base = study.base
        problem_functions = state(base, residual=options.residual_for(base))
        return study, Program(
            base, options, problem_functions=with_compiled(problem_functions, options, self._program_count)
        )

    @property
    def _program(self) -> Program:
        return self._trajectory_and_program[1]

    def solve(self, x: Floats, seed: int, before: Any) -> ProgramSolution:
        """See `designopt.problem.Programs`: `seed` 0 is the unperturbed guess."""
        try:
            problem = self._trajectory_and_program[0].at(x)
            first = replace(self._first_solution(problem, self._guess(problem, seed), before), seed=seed)
            solution = self._checked_solution(problem, first)
        except ProblemError as error:
            return ProgramSolution(False, {}, {}, error.status, str(error))
        last = solution if self._options.refine is not None else first  # a chain keeps one mesh
        cold = max(last.iterations, before.cold) if before is not None else last.iterations
        design_result = self._solved_design(problem, x, solution, ChainState(last, cold))
        if before is not None:  # a chain has one structure
            return design_result
        return replace(design_result, arrays={**design_result.arrays, **sparsity_arrays(self._program.sparsity)})

    def _guess(self, problem: TrajectoryProblem, seed: int) -> Guess | None:
        """The initial guess: measured trajectories, or trajectories perturbed with random numbers of `seed`; parameters
        from the design."""
        guess = measured_guess(problem) if is_measured(problem) else None
        if seed:
            perturbed_guess = perturbed(problem, guess, np.random.default_rng(seed))
            guess = Guess(perturbed_guess.phases, {**perturbed_guess.parameters, **problem.guess})
        return rollout(problem, guess) if self._options.rollout else guess

    def _first_solution(self, problem: TrajectoryProblem, guess: Guess | None, before: ChainState | None) -> Solution:
        if before is None:
            return self._cold(problem, guess)
        if self._options.refine is None:
            near = solve_near(self._program, problem, before.solution, before.cold)
            return replace(self._persistent_solution(problem, guess, near), warm_path=near.warm_path)
        solution = self._program.attempt(
            problem, guess=Guess.from_solution(before.solution)
        )  # on the mesh before refinement
        return solution if solution.success else self._cold(problem, guess)

    def _cold(self, problem: TrajectoryProblem, guess: Guess | None) -> Solution:
        solution = self._persistent_solution(problem, guess, self._program.attempt(problem, guess=guess))
        return without_pulses(self._program, problem, solution) if solution.success else solution

    def _persistent_solution(self, problem: TrajectoryProblem, guess: Guess | None, solution: Solution) -> Solution:
        """`solution`, or after a failure the result of further attempts."""
        return persist(self._program, problem, guess, solution) if self._options.persistent else solution

    def _checked_solution(self, problem: TrajectoryProblem, solution: Solution) -> Solution:
        """Refined, with all accuracy checks."""
        refinement = self._options.refinement
        if solution.success and refinement is not None:
            program = Program(problem, self._options, problem_functions=self._program.problem_functions)
            solution = refine(program, solution, refinement, self._guess(problem, solution.seed))
        return checked(problem, self._program.problem_functions, solution) if solution.success else solution

    def _sensitivity_figures(
        self, problem: TrajectoryProblem, solution: Solution
    ) -> tuple[dict[str, float], tuple[str, ...]]:
        """Sensitivity of the optimum to the numbers with a deviation, in the study's units, and warnings."""
        study, deviations = self._study, dict(self._deviations)
        try:
            s = sensitivities(problem, solution, list(deviations), self._options)
        except ProblemError as error:
            return {}, (str(error),)
        sign, spreads = study.problem.objectives[0].sign, spread(s, deviations)
        factors = {p.name: p.factor for p in study.problem.space.parameters}
        figures = {f"deviation({name})": value for name, value in deviations.items()}
        figures["deviation(objective)"] = spreads.objective
        for name, slope in s.derivatives_of("objective").items():
            figures[f"d(objective)/d({name})"] = sign * slope
        for result in study.optimum_names:
            figures[f"deviation(optimum({result}))"] = spreads.parameters[result] / factors[result]
            for name, slope in zip(s.names, s.parameters[result].tolist(), strict=True):
                figures[f"d(optimum({result}))/d({name})"] = slope / factors[result]
        return figures, s.doubts

    def _fit_figures(
        self, problem: TrajectoryProblem, solution: Solution
    ) -> tuple[dict[str, float], dict[str, NDArray[Any]], tuple[str, ...]]:
        """Estimates of the released parameters from measurements, in the study's units: figures, arrays, and
        warnings."""
        study = self._study
        try:
            estimates = inference(problem, solution, level=self._confidence, options=self._options)
        except ProblemError as error:
            return {}, {}, (str(error),)
        figures = {
            "fit(chi_squared)": estimates.chi_squared,
            "fit(degrees_of_freedom)": float(estimates.degrees_of_freedom),
            "fit(p_value)": estimates.p_value,
            "fit(rank)": float(estimates.rank),
            "fit(dimension)": float(estimates.dimension),
        }
        parameters = {p.name: p for p in study.problem.space.parameters}
        for name in study.optimum_names:
            interval, p = estimates.unknowns.get(name), parameters[name]
            if interval is not None:
                ends = sorted((end - p.offset) / p.factor for end in (interval.low, interval.high))
                figures[f"low(optimum({name}))"], figures[f"high(optimum({name}))"] = ends
                figures[f"standard_error(optimum({name}))"] = interval.deviation / abs(p.factor)
        doubts = tuple(f"the measurements do not determine {text}" for text in estimates.undetermined)
        return figures, estimate_arrays(estimates), (*estimates.doubts, *doubts)

    def _solved_design(
        self, trajectory_problem: TrajectoryProblem, x: Floats, solution: Solution, state: ChainState
    ) -> ProgramSolution:
        problem = self._study.problem
        design = dict(zip(problem.space.names, self._study.design(x, solution.parameters).tolist(), strict=True))
        penalty = self._study.penalty(solution)
        figures = {
            **solution.figures,
            **peak_values(self._study.base, solution),
            **{f"optimum({name})": design[name] for name in self._study.optimum_names},
            "program(objective)": problem.objectives[0].sign * (solution.objective - penalty),
            "program(iterations)": float(solution.iterations),
            "program(error_estimate)": solution.error_estimate,
            "program(resimulation_error)": max(phase.resimulation_error for phase in solution.phases.values()),
        }
        if any(rate.penalty > 0.0 for rate in self._study.controls.rates.values()):
            figures["program(rate_penalty)"] = penalty
        messages, arrays = [solution.message, *solution.warnings], to_arrays(solution)
        if solution.success and self._deviations:
            of_numbers, doubts = self._sensitivity_figures(trajectory_problem, solution)
            figures |= of_numbers
            messages += [f"Sensitivities: {text}." for text in doubts]
        if solution.success and is_measured(self._study.base):
            of_fit, of_arrays, doubts = self._fit_figures(trajectory_problem, solution)
            figures, arrays = figures | of_fit, arrays | of_arrays
            messages += [f"Intervals: {text}." for text in doubts]
        status = solution.status.name.lower()
        return ProgramSolution(solution.success, figures, arrays, status, " ".join(messages), state)
