"""Differential evolution: a global search for one objective, generation by generation."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from designopt.lazy import scipy
from designopt.plugin import InvalidSetting, Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.solvers.scipy_searches.checks import check_free, check_single
from designopt.solvers.scipy_searches.nelder_mead import Polish, polish
from designopt.solvers.scipy_searches.points import INFEASIBLE, comparison_points, merits_at
from designopt.solvers.scipy_searches.starts import best_known


@solver("differential_evolution", version=1)
class DifferentialEvolution:
    """Differential evolution, Storn & Price (1997), with a weight redrawn for each generation, through SciPy.

    Each design competes with a trial design made of others; a generation is one batch. It ends when the whole
    population is feasible and its objectives agree within the tolerance. The best designs of ``start_from`` enter the
    first population; a Latin hypercube completes it.
    """

    objectives: ClassVar[Literal["one", "several", "any"]] = "one"

    population: (
        Annotated[
            int, Quantity("", "designs that compete; default: 15 for each parameter, at least 10", ge=5, le=100_000)
        ]
        | None
    ) = None
    strategy: Annotated[
        Literal[
            "best1bin",
            "best1exp",
            "rand1bin",
            "rand1exp",
            "rand2bin",
            "rand2exp",
            "randtobest1bin",
            "randtobest1exp",
            "currenttobest1bin",
            "currenttobest1exp",
            "best2bin",
            "best2exp",
        ],
        Quantity("", "composition of a trial: base vector, number of differences, crossover"),
    ] = "best1bin"
    weight_low: Annotated[float, Quantity("", "smallest factor of the differences, F", ge=0.0, lt=2.0)] = 0.5
    weight_high: Annotated[float, Quantity("", "largest factor of the differences, F", gt=0.0, lt=2.0)] = 1.0
    rate: Annotated[float, Quantity("", "crossover probability of a parameter, CR", ge=0, le=1)] = 0.7
    tolerance: Annotated[
        float, Quantity("", "standard deviation of the objectives, relative to their mean, that ends it", ge=0.0)
    ] = 0.01
    generations: Annotated[int, Quantity("", "maximum number of generations", ge=1)] = 1000
    polish: Polish = False

    def minimum_budget(self, problem: Problem) -> int:
        """Size of the first population."""
        return self._size(problem)

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` unless there is one objective, and for weights in the wrong order."""
        check_free("differential_evolution", problem)
        check_single("differential_evolution", problem)
        if self.weight_low > self.weight_high:
            raise InvalidSetting("weight_low", f"is above weight_high ({self.weight_high:g})")

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Search generation by generation; all random numbers come from `rng`. Returns why it ended."""
        self.check(problem)
        points = comparison_points(problem, evaluate, start)
        d = len(problem.space.free)
        # From a child: SciPy would spawn one from the generator's seed and ignore its state.
        first = scipy.stats.qmc.LatinHypercube(d, rng=np.random.default_rng(rng.integers(0, 2**63, size=2))).random(
            self._size(problem)
        )
        start_points = best_known(points, start, len(first))
        first[: len(start_points)] = start_points

        def alike(intermediate_result: Any) -> bool:
            energies = intermediate_result.population_energies
            if energies.max() >= INFEASIBLE:
                return False
            return bool(np.std(energies) <= self.tolerance * abs(np.mean(energies)))

        minimum = scipy.optimize.differential_evolution(
            lambda U: merits_at(points, U.T),
            [(0.0, 1.0)] * d,
            strategy=self.strategy,
            maxiter=self.generations,
            init=first,
            mutation=(self.weight_low, self.weight_high) if self.weight_low < self.weight_high else self.weight_low,
            recombination=self.rate,
            tol=0.0,
            atol=-1.0,  # `alike` decides: SciPy's own test would compare merits of infeasible designs
            rng=rng,
            polish=False,
            vectorized=True,
            updating="deferred",
            callback=alike,
        )
        if self.polish:
            polish(points, minimum.x)
        if minimum.nit >= self.generations and not alike(minimum):
            return "it reached its maximum number of generations"
        return "it converged: the objectives of the population are alike"

    def _size(self, problem: Problem) -> int:
        return self.population or max(10, 15 * len(problem.space.free))
