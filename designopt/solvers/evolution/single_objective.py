"""Evolutionary algorithms for one objective: a genetic algorithm through pymoo, and CMA-ES."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections import deque
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.solvers.ends import apart_note
from designopt.solvers.evolution.pymoo_search import (
    EXHAUSTED,
    Generations,
    check_single,
)
from designopt.space import Space


@solver("genetic", version=1)
class Genetic(Generations):
    """A real-coded genetic algorithm for one objective, through pymoo: robust, for all kinds of parameters.

    The best `population` of parents and children survive; binary tournaments select parents. Search coordinates,
    failures and ``start_from`` as in nsga2.
    """

    objectives: ClassVar[Literal["one", "several", "any"]] = "one"

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` without free parameters or unless there is one objective."""
        check_single("genetic", problem)

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Search generation by generation; all random numbers come from `rng`."""
        from pymoo.algorithms.soo.nonconvex.ga import GA, FitnessSurvival

        self.check(problem)
        return self.search(GA, FitnessSurvival, problem, evaluate, rng, start)


@solver("cma_es", version=1)
class CMAES:
    """CMA-ES, Hansen & Ostermeier (2001), Hansen (2016), with restarts, through the package ``cma`` of its authors.

    Samples designs from a normal distribution whose mean, step size and covariance adapt to the better half of each
    generation. The method of choice for one expensive, ill-conditioned or non-separable objective of 2 to about 100
    continuous parameters. Integers and choices are rounded, with a standard deviation of at least a quarter of a step;
    for many of them genetic is better.

    Only the order of designs counts: feasible ones by objective, then infeasible ones by violation, then invalid, then
    failed ones. A converged run restarts at a random point with a population larger by the factor `growth` (Auger &
    Hansen 2005). Bounds are handled by reflection. The first mean is the best design of ``start_from``, else the centre
    of the space. A repeated design costs nothing. With `restarts` the stage ends after that number of restarts.
    """

    needs_budget: ClassVar[bool] = True
    objectives: ClassVar[Literal["one", "several", "any"]] = "one"
    suits_parameters: ClassVar[int] = 2

    population: (
        Annotated[
            int, Quantity("", "designs of a generation; default: 4 + 3 ln(parameters), at least 6", ge=6, le=100_000)
        ]
        | None
    ) = None
    step: Annotated[
        float, Quantity("", "initial standard deviation as a share of each parameter's range", gt=0.0, le=1.0)
    ] = 0.3
    restarts: (
        Annotated[int, Quantity("", "restarts after the first run; default: until the budget ends", ge=0)] | None
    ) = None
    growth: Annotated[float, Quantity("", "factor of the population at each restart", ge=1.0, le=10.0)] = 2.0
    tolerance: Annotated[
        float,
        Quantity(
            "",
            "a run has converged when its best objectives differ by less than this share of their size",
            ge=0.0,
            lt=1.0,
        ),
    ] = 1e-11

    def minimum_budget(self, problem: Problem) -> int:
        """Size of the first generation."""
        return self._size(len(problem.space.free))

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` without free parameters or unless there is one objective."""
        check_single("cma_es", problem)

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> str:
        """Search generation by generation; all random numbers come from `rng`."""
        self.check(problem)
        space = problem.space
        memory = _Memory(space, evaluate, rng, start)
        size = float(self._size(len(space.free)))
        centre = _centre(space, start)
        runs, begins = 0, []
        while self.restarts is None or runs <= self.restarts:
            requests, begin = memory.requests, len(memory)
            has_order = self._run(memory, centre, int(size), rng)
            if memory.requests == requests and not memory.ask_at_random(int(size)):
                return EXHAUSTED
            if has_order:  # else no information was gained: the population stays
                runs += 1
                begins.append(begin)
                size = min(size * self.growth, LARGEST)
            centre = rng.random(len(space.free))
        return (
            f"all {runs} searches have converged{apart_note(problem, memory.objectives(), begins)}"
            if runs > 1
            else "the search has converged"
        )

    def _size(self, d: int) -> int:
        return self.population or max(6, 4 + int(3 * np.log(d)))

    def _run(self, memory: _Memory, centre: Floats, size: int, rng: np.random.Generator) -> bool:
        """One run from `centre` (shares of the ranges) to convergence; False if its designs could not be ordered."""
        space = memory.space
        d = len(space.free)
        strategy = _strategy(space, centre, self.step, size, rng)
        generations = 10 + math.ceil(30 * d / size)  # Hansen (2016), section B.3
        best: deque[tuple[float, float]] = deque(maxlen=generations)
        idle = 0
        while True:
            with _suppress_warnings():
                S = np.array(strategy.ask())
            requests = memory.requests
            order = memory.order(space.in_box(S[:, :d]))
            idle = idle + 1 if memory.requests == requests else 0
            if np.all(order[:, 0] == order[0, 0]) and order[0, 0] > 1.0 and len(np.unique(order)) <= 2:
                return False
            rank = np.unique(order, axis=0, return_inverse=True)[1].reshape(-1)
            with _suppress_warnings():
                strategy.tell(list(S), rank.astype(float).tolist())
                has_converged = not RESTS.isdisjoint(strategy.stop())
            ranking = order[np.argsort(rank, kind="stable")]
            best.append((float(ranking[0, 0]), float(ranking[0, 1])))
            if has_converged or idle >= generations or self._rests(np.array(best), ranking[: size // 2], generations):
                return True

    def _rests(self, best: Floats, better_half: Floats, generations: int) -> bool:
        """Whether the objectives of the last generations, and of the better half of the present one, are all equal
        within tolerance."""
        recent = np.vstack([best, better_half])
        if len(best) < generations or np.any(recent[:, 0] > 0.0):
            return False
        f = recent[:, 1]
        return bool(f.max() - f.min() <= self.tolerance * np.abs(f).max())


#: Maximum population.
LARGEST = 10_000.0

#: Termination criteria of `cma` (Hansen 2016, section B.3) that do not use objective values, because it receives ranks.
RESTS = frozenset(
    {"tolx", "tolupsigma", "tolfacupx", "tolconditioncov", "noeffectaxis", "noeffectcoord", "tolxstagnation"}
)


def _strategy(space: Space, centre: Floats, step: float, size: int, rng: np.random.Generator) -> Any:
    """A new strategy in shares of the ranges, of two parameters at least: `cma` does not support one."""
    width = space.upper - space.lower
    least = [0.0 if p.kind == "real" else 0.25 / w for p, w in zip(space.free, width.tolist(), strict=True)]
    missing = max(0, 2 - len(centre))
    with _suppress_warnings():
        import cma

        return cma.CMAEvolutionStrategy(
            [*centre.tolist(), *[0.5] * missing],
            step,
            {
                "bounds": [0.0, 1.0],
                "popsize": size,
                "minstd": [*least, *[0.0] * missing],
                "randn": lambda n, d: rng.standard_normal((n, d)),
                "seed": np.nan,  # leave NumPy's global generator unchanged
                "verbose": -9,
                "verb_log": 0,
                "verb_disp": 0,
                "signals_filename": None,  # read no options from the working folder
            },
        )


@contextlib.contextmanager
def _suppress_warnings() -> Iterator[None]:
    """Suppress irrelevant warnings of ``cma`` (about matplotlib, equal ranks)."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _centre(space: Space, start: Outcomes) -> Floats:
    """The best known design in shares of the ranges, or the centre."""
    with_result = start.take(~start.failed)
    if not len(with_result):
        return np.full(len(space.free), 0.5)
    best = np.lexsort((with_result.objectives[:, 0], with_result.rank_violation))[:1]
    S = space.to_search(with_result.X[best])[0]
    return np.asarray(np.clip((S - space.lower) / (space.upper - space.lower), 0.0, 1.0))


class _Memory:
    """Evaluates new designs, and ranks all results: (rank of violation, objective)."""

    def __init__(self, space: Space, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> None:
        self.space = space
        self.requests = 0
        self._evaluate = evaluate
        self._rng = rng
        self._order: dict[bytes, tuple[float, float]] = {}
        self._add(start)

    def __len__(self) -> int:
        return len(self._order)

    def objectives(self) -> Floats:
        """The objective (n,) of all designs in the order of evaluation; infinite for infeasible ones."""
        return np.array([value if violation == 0.0 else np.inf for violation, value in self._order.values()])

    def order(self, X: Floats) -> Floats:
        """Pairs (n, 2) that sort designs `X` from the best to the worst."""
        X = X + 0.0
        rows = [row.tobytes() for row in X]
        new = {row: i for i, row in reversed(list(enumerate(rows))) if row not in self._order}
        if new:
            self.requests += len(new)
            self._add(self._evaluate(X[sorted(new.values())]))
        return np.array([self._order[row] for row in rows])

    def ask_at_random(self, count: int) -> bool:
        """Evaluate up to `count` new random designs; False if there are none."""
        X = self.space.in_box(self._rng.random((100 * count, len(self.space.free)))) + 0.0
        new = {row.tobytes(): row for row in X if row.tobytes() not in self._order}
        if new:
            self.order(np.array(list(new.values())[:count]))
        return bool(new)

    def _add(self, outcomes: Outcomes) -> None:
        f = np.where(outcomes.rank_violation > 0.0, 0.0, outcomes.objectives[:, 0])
        for row, g, value in zip(outcomes.X + 0.0, outcomes.rank_violation.tolist(), f.tolist(), strict=True):
            self._order[row.tobytes()] = g, value
