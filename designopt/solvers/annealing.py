"""Global searches for one objective through SciPy: differential evolution and dual annealing.

Both work in coordinates from 0 to 1 over the range of each parameter (of its logarithm on a log scale), whole numbers
and choices rounded when a design is made, and compare designs by order: feasible ones by the objective, then infeasible
ones by how far they pass limits, then invalid, then failed ones. A design that was asked for before costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from designopt.lazy import scipy
from designopt.plugin import InvalidSetting, Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.solvers.local import NelderMead
from designopt.solvers.points import INFEASIBLE, Points, merits, starting_points
from designopt.space import Matrix

Polish = Annotated[bool, Quantity("", "end with a simplex search (nelder_mead) from the best design")]


@solver("differential_evolution", version=1)
class DifferentialEvolution:
    """Differential evolution, Storn & Price (1997), with a weight redrawn for each generation, through SciPy.

    Each design competes with a trial made of others; a generation is one batch. It ends by itself when the objectives
    of the population, all feasible, are alike. ``start_from`` gives the best of its designs a place in the first
    population, the rest of which is a Latin hypercube.
    """

    uses_start: ClassVar[bool] = True
    objectives: ClassVar[Literal["one", "several", "any"]] = "one"

    population: (
        Annotated[
            int, Quantity("", "designs that compete; not given: 15 for each parameter, 10 at least", ge=5, le=100_000)
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
        Quantity("", "what a trial is made of: base, number of differences, how parameters are exchanged"),
    ] = "best1bin"
    weight_low: Annotated[float, Quantity("", "smallest factor of the differences, F", ge=0.0, lt=2.0)] = 0.5
    weight_high: Annotated[float, Quantity("", "largest factor of the differences, F", gt=0.0, lt=2.0)] = 1.0
    rate: Annotated[
        float, Quantity("", "share of parameters that a trial takes from the differences, CR", ge=0, le=1)
    ] = 0.7
    tolerance: Annotated[
        float, Quantity("", "standard deviation of the objectives, relative to their mean, that ends it", ge=0.0)
    ] = 0.01
    generations: Annotated[int, Quantity("", "generations after which it is ended", ge=1)] = 1000
    polish: Polish = False

    def minimum_budget(self, problem: Problem) -> int:
        """Evaluations of the first population."""
        return self._size(problem)

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` when there is not one objective, or the weights are the wrong way round."""
        _check("differential_evolution", problem)
        if self.weight_low > self.weight_high:
            raise InvalidSetting("weight_low", f"is above weight_high ({self.weight_high:g})")

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Ask for generation after generation; all random numbers come from `rng`. Returns why it ended."""
        self.check(problem)
        points = _points(problem, evaluate, start)
        d = len(problem.space.free)
        # From a child: SciPy would spawn one from the generator's seed and ignore its state.
        first = scipy.stats.qmc.LatinHypercube(d, rng=np.random.default_rng(rng.integers(0, 2**63, size=2))).random(
            self._size(problem)
        )
        known = _best_known(points, start, len(first))
        first[: len(known)] = known

        def alike(intermediate_result: Any) -> bool:
            energies = intermediate_result.population_energies
            if energies.max() >= INFEASIBLE:
                return False
            return bool(np.std(energies) <= self.tolerance * abs(np.mean(energies)))

        found = scipy.optimize.differential_evolution(
            lambda U: _merits_at(points, U.T),
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
            _simplex(points)(found.x)
        if found.nit >= self.generations and not alike(found):
            return "it reached its largest number of generations"
        return "it converged: the objectives of the population are alike"

    def _size(self, problem: Problem) -> int:
        return self.population or max(10, 15 * len(problem.space.free))


@solver("dual_annealing", version=1)
class DualAnnealing:
    """Generalised simulated annealing with restarts, Xiang et al. (1997, 2013), through SciPy.

    One design after the other: for models that take no time, or objectives with very many local optima. A worse design
    is accepted by a chance that falls with the temperature; one that is not feasible never is when the present one is.
    It begins at the best design of ``start_from``, else at random.
    """

    uses_start: ClassVar[bool] = True
    objectives: ClassVar[Literal["one", "several", "any"]] = "one"

    temperature: Annotated[
        float, Quantity("", "at the start, in the objective's unit; differences below it hardly count", gt=0.01, le=5e4)
    ] = 5230.0
    restart: Annotated[
        float, Quantity("", "temperature, relative to that at the start, at which it restarts", gt=0.0, lt=1.0)
    ] = 2e-5
    visit: Annotated[float, Quantity("", "tail of the steps: larger ones jump farther", gt=1.0, le=3.0)] = 2.62
    accept: Annotated[
        float, Quantity("", "the lower, the less likely a worse design is accepted", gt=-1e4, le=-5.0)
    ] = -5.0
    iterations: Annotated[int, Quantity("", "temperatures, with two designs for each parameter at each", ge=1)] = 1000
    polish: Polish = False

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` when there is not one objective."""
        _check("dual_annealing", problem)

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Ask for one design after the other; all random numbers come from `rng`. Returns why it ended."""
        self.check(problem)
        points = _points(problem, evaluate, start)
        known = _best_known(points, start, 1)
        found = scipy.optimize.dual_annealing(
            lambda u: float(_merits_at(points, u[None])[0]),
            [(0.0, 1.0)] * len(problem.space.free),
            maxiter=self.iterations,
            initial_temp=self.temperature,
            restart_temp_ratio=self.restart,
            visit=self.visit,
            accept=self.accept,
            maxfun=np.inf,
            rng=rng,
            no_local_search=True,  # it would take differences of merits
            x0=known[0] if len(known) else None,
        )
        if self.polish:
            _simplex(points)(found.x)
        return "it reached its last temperature"


def _check(name: str, problem: Problem) -> None:
    if not problem.space.free:
        raise InvalidSetting("use", f"{name} needs a parameter that is free")
    if len(problem.objectives) != 1:
        raise InvalidSetting("use", f"{name} has one objective; this study has {len(problem.objectives)}")


def _points(problem: Problem, evaluate: Evaluate, start: Outcomes) -> Points:
    return Points(problem, evaluate, lambda outcomes: outcomes.objectives, start)


def _merits_at(points: Points, U: Matrix) -> Matrix:
    return np.concatenate([merits(point.outcomes) for point in points.at(U)])


def _best_known(points: Points, start: Outcomes, count: int) -> Matrix:
    """Coordinates of the best designs of `start` that have a result, `count` at most (k, d)."""
    some = min(count, int((~start.failed).sum()))
    if not some:
        return np.empty((0, len(points.problem.space.free)))
    return starting_points(points, start, start.objectives[:, 0], some)


def _simplex(points: Points) -> Callable[[Matrix], str]:
    settings = {"simplex": 0.02}
    return NelderMead(**settings).searching(points)
