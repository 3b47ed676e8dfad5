"""Direct collocation: trajectories and free parameters of a study are the variables of one sparse program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from designopt.arrays import Floats
from designopt.canonical_form import plain
from designopt.collocation import Options, ProblemError
from designopt.collocation.estimation.fitting import is_measured
from designopt.collocation.postoptimal.directions import all_names
from designopt.collocation.statement.mesh import SchemeName
from designopt.collocation.statement.options import MOST_STARTS
from designopt.collocation.statement.stated_values import MOST_INTERVALS
from designopt.lazy import scipy
from designopt.plugin import InvalidSetting, Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.solvers.collocation import sweep
from designopt.solvers.collocation.controls import Controls, RateLimits
from designopt.solvers.collocation.programs import StudyPrograms
from designopt.solvers.collocation.requested_programs import (
    RequestedPrograms,
    best,
    model_differences,
    starts_message,
    verification_message,
)
from designopt.solvers.collocation.trajectory import StudyTrajectory, study_trajectory

#: Settings that the options of a program may reject.
SETTINGS = ("form", "degree", "midpoint_control", "refine", "ipopt")
#: Settings that the model's own evaluations share with the programs: what decides accuracy and optimum of a solve.
OF_SOLVE = (
    "scheme",
    "intervals",
    "degree",
    "midpoint_control",
    "form",
    "refine",
    "mesh_check",
    "tolerance",
    "max_iterations",
    "hessian",
    "scales",
    "ipopt",
    "rollout",
)
OF_EVALUATIONS = (*OF_SOLVE, "starts")
#: Confidence level of the intervals of an estimate.
USUAL_LEVEL = 0.95


@dataclass(frozen=True)
class Refine:
    """Mesh refinement, Patterson, Hager & Rao (2015)."""

    tolerance: Annotated[float, Quantity("", "admissible relative error of every interval", gt=0)] = 1e-5
    method: Annotated[
        Literal["split", "hp"], Quantity("", "divide intervals, or raise the degree of radau intervals first")
    ] = "split"
    rounds: Annotated[int, Quantity("", "maximum number of refinements", ge=1)] = 8
    max_degree: Annotated[int, Quantity("", "of radau intervals with hp", ge=1, le=9)] = 8


@solver("collocation", version=1)
class Collocation:
    """Direct collocation: trajectories and free real parameters as variables of one sparse nonlinear program.

    For models with equations (`trajectory_problem`). The single objective and the limits are expressions of the figures
    of the trajectory problem; scenarios are phases of one program with shared parameters. Integers, choices and the
    parameters in `sweep` are fixed; each combination of their values is one program. The model then evaluates every
    optimum. Hermite-Simpson, trapezoidal and Radau schemes (Betts 2010); a failed program reports its cause. Programs
    run on the workers, and each is recorded once.
    """

    needs_parameters: ClassVar[bool] = False
    objectives: ClassVar[Literal["one", "several", "any"]] = "one"
    later_settings: ClassVar[tuple[str, ...]] = (
        "ipopt",
        "persistent",
        "rates",
        "held",
        "deviations",
        "confidence",
    )

    scheme: Annotated[
        Literal["auto", SchemeName],
        Quantity("", "auto: hermite_simpson; radau with algebraic variables, refinement or a degree"),
    ] = "auto"
    intervals: Annotated[int, Quantity("", "of the mesh of every phase", ge=1, le=MOST_INTERVALS)] = 50
    degree: Annotated[int, Quantity("", "of radau; default: 3, or 5 for a fine refinement", ge=1, le=9)] | None = None
    midpoint_control: Annotated[
        Literal["free", "linear"], Quantity("", "of hermite_simpson; linear avoids oscillating controls")
    ] = "free"
    form: Annotated[
        Literal["auto", "explicit", "residual"], Quantity("", "of the equations; auto: residual if the model has one")
    ] = "auto"
    refine: Annotated[Refine | None, Quantity("", "refinement of the mesh; default: none")] = None
    mesh_check: Annotated[
        float, Quantity("", "relative error above which a mesh is refined without 'refine'; 0: never", ge=0)
    ] = 1e-4
    tolerance: Annotated[float, Quantity("", "of the solver, relative to the ranges of variables", gt=0, lt=1)] = 1e-8
    max_iterations: Annotated[int, Quantity("", "of the solver, for one solve", ge=1)] = 1000
    time_limit: Annotated[float, Quantity("s", "of the solver, for one solve; default: none", gt=0)] | None = None
    hessian: Annotated[
        Literal["exact", "lbfgs"], Quantity("", "lbfgs for models whose second derivatives are too large")
    ] = "exact"
    compile: Annotated[
        Literal["auto", "never", "always"], Quantity("", "compile the model's functions; auto: if that saves time")
    ] = "auto"
    scales: Annotated[
        Mapping[str, float], Quantity("", "scales of variables by name, instead of automatic ones", gt=0)
    ] = field(default_factory=dict)
    ipopt: Annotated[
        Mapping[str, float | str], Quantity("", "settings of IPOPT and its linear solver by their own names")
    ] = field(default_factory=dict)
    rollout: Annotated[bool, Quantity("", "start from a simulation with the guessed controls")] = False
    persistent: Annotated[bool, Quantity("", "try other strategies after a failure, in a fixed order")] = True
    starts: Annotated[
        int, Quantity("", "number of different guesses to solve from; the best result counts", ge=1, le=MOST_STARTS)
    ] = 1
    sweep: Annotated[
        Mapping[str, int | list[float | str | bool]],
        Quantity("", "fixed parameters with their levels (a list, or their number)"),
    ] = field(default_factory=dict)
    chain: Annotated[
        int,
        Quantity(
            "", "points of a sweep that are each solved from the one before; the first of a chain is solved cold", ge=1
        ),
    ] = 16
    verify: Annotated[int, Quantity("", "points of a sweep that are also solved cold, drawn at random", ge=0)] = 0
    rates: Annotated[Mapping[str, RateLimits], Quantity("", "controls by name with limited or penalised rates")] = (
        field(default_factory=dict)
    )
    held: Annotated[
        Mapping[str, int],
        Quantity(
            "", "controls by name that are constant on this number of equal pieces of a phase", ge=1, le=MOST_INTERVALS
        ),
    ] = field(default_factory=dict)
    deviations: Annotated[
        Mapping[str, float],
        Quantity(
            "",
            "standard deviations of data, fixed parameters, times and ends, in the model's units: sensitivities of each"
            " optimum",
            ge=0,
        ),
    ] = field(default_factory=dict)
    confidence: Annotated[float, Quantity("", "confidence level of estimates from measurements", gt=0, lt=1)] = (
        USUAL_LEVEL
    )
    margin: Annotated[
        float,
        Quantity("", "relative tightening of limits, so that the model's evaluation meets them", ge=0, lt=0.1),
    ] = 1e-4

    _points_cache: tuple[Problem, StudyTrajectory, Floats] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` for a study that cannot be stated as a program."""
        if _has_missing_scenarios(problem):
            return
        study, points = self._points(problem)
        if (count := len(points) * self.starts) > sweep.MOST_POINTS:
            text = (
                f"with {len(points)} points of the sweep they make {count} programs; at most "
                f"{sweep.MOST_POINTS} are allowed"
            )
            raise InvalidSetting("starts", text)
        variables = study.base.scaled_names
        if unknown := [name for name in self.scales if name not in variables]:
            text = f"the trajectory problem has no such variable; known: {', '.join(variables)}"
            raise InvalidSetting(f"scales.{unknown[0]}", text)
        base = study.at(points[0])
        if self.confidence != USUAL_LEVEL and not is_measured(base):
            text = "the trajectory problem is not fitted to measurements: there are no intervals; leave it out"
            raise InvalidSetting("confidence", text)
        for name in self.deviations:
            if name not in (numbers := all_names(base)):
                text = (
                    f"the trajectory problem has no such number that is fixed (it has {', '.join(numbers) or 'none'})"
                )
                raise InvalidSetting(f"deviations.{name}", text)
        try:
            self.program(problem).check()
        except ProblemError as error:
            if error.where.split(".")[0] in SETTINGS:
                raise InvalidSetting(error.where, str(error).removeprefix(f"{error.where}: ")) from error
            name = error.where.split(": ")[-1].removeprefix("held_controls.")
            if name in self.held:
                raise InvalidSetting(f"held.{name}", str(error)) from error
            raise InvalidSetting("use", f"{error.status}: {error}") from error

    def minimum_budget(self, problem: Problem) -> int:
        """One evaluation per point of the sweep, for its optimum."""
        return 0 if _has_missing_scenarios(problem) else len(self._points(problem)[1])

    def options(self) -> Options:
        """Options of each program."""
        return Options.from_settings(
            {name: plain(getattr(self, name)) for name in (*OF_SOLVE, "time_limit", "compile", "persistent")}
        )

    def evaluation_options(self) -> dict[str, Any]:
        """Settings for the solves of the model's own evaluations, so that these agree with the programs on the mesh
        with which these end; none if they are the defaults of evaluations, which check no mesh."""
        usual = type(self)()
        options = {
            name: plain(getattr(self, name)) for name in OF_EVALUATIONS if getattr(self, name) != getattr(usual, name)
        }
        if options == {"mesh_check": 0.0}:
            return {}
        return options if self.refine is not None else {**options, "mesh_check": self.mesh_check}

    def program(self, problem: Problem) -> StudyPrograms:
        """The object that solves the programs on a worker."""
        study, points = self._points(problem)
        count = len(points) * self.starts + min(self.verify, len(points))
        return StudyPrograms(study, self.options(), count, self.deviations, self.confidence)

    def _points(self, problem: Problem) -> tuple[StudyTrajectory, Floats]:
        """The trajectory problem, and the points of the sweep (n, d) along their path; stated once for a problem."""
        if self._points_cache is None or self._points_cache[0] is not problem:
            controls = Controls.from_settings(self.rates, self.held)
            study = study_trajectory(problem, tuple(self.sweep), self.margin, controls=controls)
            levels = sweep.levels(problem, self.sweep)
            self._points_cache = problem, study, sweep.points(problem, levels, study.first(), study.optimum_names)
        return self._points_cache[1], self._points_cache[2].copy()

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Solve all programs, then evaluate the best design of each point. Returns how the programs ended."""
        study, points = self._points(problem)
        columns = [problem.space.names.index(name) for name in study.optimum_names]
        good = np.flatnonzero(start.feasible) if len(start) else np.empty(0, np.int64)
        if len(good):  # start from the best design of the previous stage
            points[:, columns] = start.X[good[np.argmin(start.objectives[good, 0])], columns]
        programs = self._programs(problem, points, columns, rng)
        results = evaluate.programs(programs.X, programs.chains.tolist(), programs.seeds.tolist())
        counts = Counter(results.reasons).most_common()
        rows = best(problem, programs, results, len(points))
        if (text := verification_message(programs, results)) is not None:
            evaluate.note("programs_differ", text)
        rows = rows[rows >= 0]
        if len(rows):
            X = programs.X[rows].copy()
            for name, column in zip(study.optimum_names, columns, strict=True):
                X[:, column] = results.figures[f"optimum({name})"][rows]
            outcomes = evaluate(X)
            differences = model_differences(
                problem,
                outcomes,
                results.figures["program(objective)"][rows],
                errors=results.figures.get("program(error_estimate)", np.full(len(results), np.nan))[rows],
                starts=self.starts,
                controls=study.controls,
            )
            for kind, text in differences:
                evaluate.note(kind, text)
        ends = ", ".join(f"{count} {reason}" for reason, count in counts)
        apart = starts_message(problem, programs, results)
        return f"{len(results)} program{'s' if len(results) > 1 else ''}: {ends}{apart}"

    def _spread(self, dimension: int, rng: np.random.Generator) -> Floats:
        """Free parameters of further starts (starts - 1, dimension), in [0, 1): a Latin hypercube."""
        count = self.starts - 1
        return (
            np.asarray(scipy.stats.qmc.LatinHypercube(dimension, rng=rng).random(count))
            if count
            else np.empty((0, dimension))
        )

    def _programs(
        self, problem: Problem, points: Floats, columns: list[int], rng: np.random.Generator
    ) -> RequestedPrograms:
        """All programs: each point in its chain, then from other guesses, then cold solves for verification."""
        space, n = problem.space, len(points)
        numbers = np.arange(n)
        X, seeds, owners = [points], [np.zeros(n, np.int64)], [numbers]
        for share in self._spread(len(space.lower), rng):
            sample = space.in_box(share[None])
            starts = points.copy()
            starts[:, columns] = sample[0, columns]
            X.append(space.impute(starts))
            seeds.append(np.full(n, int(rng.integers(1, 2**31))))
            owners.append(numbers)
        later = np.flatnonzero(numbers % self.chain > 0)
        cold_points = np.sort(rng.permutation(later)[: self.verify])
        X.append(points[cold_points])
        seeds.append(np.zeros(len(cold_points), np.int64))
        owners.append(cold_points)
        designs = np.concatenate(X)
        chains = numbers // self.chain
        alone = chains[-1] + 1 + np.arange(len(designs) - n)
        cold = np.arange(len(designs)) >= len(designs) - len(cold_points)
        return RequestedPrograms(
            designs, np.concatenate([chains, alone]), np.concatenate(seeds), np.concatenate(owners), cold
        )


def _has_missing_scenarios(problem: Problem) -> bool:
    """Whether values of scenarios are missing: this has its own message."""
    return any(value is None for scenario in problem.scenarios for value in scenario.values.values())
