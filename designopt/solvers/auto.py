"""Automatic choice of a solver, with its reason."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from designopt.counts import of_number, plural
from designopt.plugin import Quantity, Use, find, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.solvers.evolution.many_objectives import PARTITIONS
from designopt.study.sections.execution.stages import population

#: Gaussian processes are used up to this number of evaluations and objectives, for evaluations longer than this (s),
#: which justify their own computing time.
FEW, FRONTS, WORTHWHILE = 300, 4, 0.005
#: Minimum number of generations for reference directions.
MIN_GENERATIONS = 5


@dataclass(frozen=True)
class SolverChoice:
    """A solver by name, its settings, and the reason for it."""

    name: str
    settings: Mapping[str, Any]
    why: str

    def __str__(self) -> str:
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        return f"{self.name}{f' ({settings})' if settings else ''}: {self.why}"

    @property
    def use(self) -> Use[Any]:
        """The solver with all its settings."""
        plugin = find("solver", self.name)
        return Use(plugin, Use(plugin, self.settings).all_settings)


@solver("auto", version=1)
class Auto:
    """Chooses a solver from the budget, the cost of an evaluation, the objectives and the parameters.

    Up to about 300 evaluations, unless they are very cheap: Gaussian processes (`gp`, up to four objectives). Beyond,
    for several objectives: `nsga2`; from three on `nsga3` if its directions have at least five generations. For one
    objective: `cma_es` if all parameters are real and always active, else `genetic`. Limits do not affect the choice.
    Populations fit the budget. The choice is recorded in the store and shown at the start of the stage; a resume with a
    larger budget keeps it.
    """

    needs_budget: ClassVar[bool] = True

    evaluations: Annotated[
        int, Quantity("", "planned designs; default: those of the budget when the study is read", ge=1)
    ]
    cost: Annotated[float, Quantity("s", "duration of one evaluation; default: seconds or more", gt=0.0)] | None = None

    @property
    def _suits_gaussian_process(self) -> bool:
        """Whether evaluations are few and expensive enough for a Gaussian process."""
        return self.evaluations <= FEW and (self.cost is None or self.cost >= WORTHWHILE)

    def wants_gradient(self) -> bool:
        """Whether the chosen solver uses the model's derivatives (`gp` does)."""
        return self._suits_gaussian_process

    def wants_cheap(self) -> bool:
        """Whether the chosen solver uses cheap evaluations (`gp` does)."""
        return self._suits_gaussian_process

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` without free parameters or objectives."""
        self.choice(problem).use.build().check(problem)

    def minimum_budget(self, problem: Problem) -> int:
        """The minimum budget of the chosen solver."""
        choice = self.choice(problem)
        has = find("solver", choice.name).has("minimum_budget")
        return int(choice.use.build().minimum_budget(problem)) if has else 0

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str | None:
        """Report the choice, and search with the chosen solver."""
        choice = self.choice(problem)
        evaluate.note("solver_chosen", str(choice))
        end_reason: str | None = choice.use.build().solve(problem, evaluate, rng, start)
        return end_reason

    def choice(self, problem: Problem) -> SolverChoice:
        """The solver for `problem`."""
        m, d, n = len(problem.objectives), len(problem.space.free), self.evaluations
        facts = f"planned for {n} {of_number(n, 'design')}, {plural(m, 'objective')} and {plural(d, 'parameter')}"
        if self._suits_gaussian_process and 1 <= m <= FRONTS:
            return SolverChoice("gp", {}, f"{facts}: a surrogate search needs the fewest designs")
        settings = {"population": population(n, 100)}
        if m > 1:
            directions = sum(math.comb(m + p - 1, p) for p in PARTITIONS.get(m, ()))
            if m > 2 and directions and n >= MIN_GENERATIONS * directions:
                return SolverChoice(
                    "nsga3", {}, f"{facts}: {directions} reference directions distribute designs along the front"
                )
            return SolverChoice("nsga2", settings, f"{facts}: an evolutionary search that preserves diversity")
        if d > 1 and not problem.space.conditional and all(p.kind == "real" for p in problem.space.free):
            return SolverChoice("cma_es", {}, f"{facts}, all of them real: covariance matrix adaptation")
        why = (
            "covariance matrix adaptation needs at least two parameters"
            if d == 1
            else "not all of them real and always active"
        )
        return SolverChoice("genetic", settings, f"{facts}, {why}")
