"""NSGA-II on arrays: the loop of Deb, Pratap, Agarwal & Meyarivan (2002) with the operators of pymoo.

pymoo stores an object for every individual, which takes more than half of the time of a search. Here a population is
four arrays. Operators, random numbers and the order of designs are those of pymoo's NSGA-II; a test compares the
designs of both bit by bit.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.solvers.evolution.pymoo_search import EXHAUSTED, Crossover, Mutation, variation

#: Maximum rounds of mating per generation to find new designs.
ROUNDS = 100


@dataclass(frozen=True)
class Population:
    """Individuals: search coordinates (n, d), objectives (n, m), constraint (n,; 0 feasible) and crowding (n,)."""

    S: Floats
    F: Floats
    violation: Floats
    crowding: Floats

    @classmethod
    def from_outcomes(cls, S: Floats, outcomes: Outcomes) -> Population:
        """Designs with their outcomes. A failed design has no objectives; its constraint alone ranks it."""
        F = np.where(np.isfinite(outcomes.objectives), outcomes.objectives, 0.0)
        return cls(S, F, outcomes.rank_violation, np.full(len(S), np.nan))

    def __len__(self) -> int:
        return len(self.S)

    def take(self, rows: NDArray[Any]) -> Population:
        """Some individuals."""
        return Population(self.S[rows], self.F[rows], self.violation[rows], self.crowding[rows])

    def join(self, second: Population) -> Population:
        """The union of two populations."""
        pairs = zip(vars(self).values(), vars(second).values(), strict=True)
        return Population(*(np.concatenate(pair) for pair in pairs))


class Elitist:
    """A search for a front: the `alive`, at most `size` of them, and all proposed designs."""

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator,
        start: Outcomes,
        size: int,
        crossover: Crossover | Mapping[str, Any],
        mutation: Mutation | Mapping[str, Any],
    ) -> None:
        from pymoo.core.problem import Problem as Box
        from pymoo.operators.survival.rank_and_crowding.metrics import get_crowding_function
        from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

        space = problem.space
        self._space, self._rng, self._size = space, rng, size
        self._box = Box(
            n_var=len(space.free), n_obj=len(problem.objectives), n_ieq_constr=1, xl=space.lower, xu=space.upper
        )
        self._operators = variation(crossover, mutation, space)
        self._sorting, self._crowding = NonDominatedSorting(), get_crowding_function("cd")
        self._proposals = {row.tobytes() for row in start.X + 0.0}
        start_population = Population.from_outcomes(space.to_search(start.X), start).take(~start.failed)
        if len(start_population) > size:
            start_population = self._survivors(start_population, size)
        rows = self._rows(start_population.S)
        self.alive = start_population.take(np.array([i for i, row in enumerate(rows) if row not in rows[:i]], np.intp))
        self._missing = size - len(start_population)
        self._proposals.update(rows)

    def first(self) -> Floats:
        """The unknown part of the first population (n, d), at random."""
        return self._new_points(self._random(self._missing), set()) if self._missing else self.alive.S[:0]

    def children(self, count: int) -> Floats:
        """New designs (count, d) by mating; random ones if mating finds none; fewer if there are no more."""
        offspring, rows_so_far = self.alive.S[:0], set[bytes]()
        for _ in range(ROUNDS if len(self.alive) else 0):
            offspring = np.concatenate(
                [offspring, self._new_points(self._children(count - len(offspring)), rows_so_far)]
            )[:count]
            if len(offspring) == count:
                break
        return offspring if len(offspring) else self._new_points(self._random(100 * self._size), set())[:count]

    def request(self, S: Floats) -> Floats:
        """Record designs as proposed; returns rows of ``X``."""
        self._proposals.update(self._rows(S))
        return self._space.from_search(S)

    def coordinates(self, S: Floats, X: Floats) -> Floats:
        """The coordinates of designs `X` (n, d), requested as `S`: their own if others were made in their place, before
        a result was corrected."""
        if np.array_equal(self._space.from_search(S), X):
            return S
        self._proposals.update(row.tobytes() for row in X + 0.0)
        return self._space.to_search(X)

    def hear(self, S: Floats, outcomes: Outcomes) -> None:
        """Take in the outcomes of designs; the best survive."""
        self.alive = self.alive.join(Population.from_outcomes(S, outcomes))
        self.select()

    def select(self) -> None:
        """Select the survivors, and compute rank and crowding among them."""
        self.alive = self._survivors(self.alive, self._size)

    # ---------------------------------------------------------------------------------------------------- designs

    def _random(self, count: int) -> Floats:
        return self._box.xl + (self._box.xu - self._box.xl) * self._rng.random((count, self._box.n_var))  # type: ignore[no-any-return]

    def _rows(self, S: Floats) -> list[bytes]:
        """Byte keys of the rows of ``X``: different points may round to the same integer."""
        return [row.tobytes() for row in self._space.from_search(S) + 0.0] if len(S) else []

    def _new_points(self, S: Floats, rows_so_far: set[bytes]) -> Floats:
        """The first of each design that was neither proposed nor `rows_so_far`."""
        keep = []
        for row in self._rows(S):
            keep.append(row not in rows_so_far and row not in self._proposals)
            rows_so_far.add(row)
        return S[keep]

    # ----------------------------------------------------------------------------------------------------- mating

    def _children(self, count: int) -> Floats:
        """Children of tournament winners, `count` or one more."""
        rng, crossover, mutation = self._rng, self._operators["crossover"], self._operators["mutation"]
        pairs = math.ceil(count / 2)
        parents = self.alive.S[self._winners(2 * pairs)].reshape(pairs, 2, -1).swapaxes(0, 1)
        children: Floats = parents.copy()
        cross = rng.random(pairs) < crossover.prob.value
        if cross.any():
            children[:, cross] = crossover._do(self._box, parents, random_state=rng)[:, cross]
        S: Floats = children.reshape(2 * pairs, -1)
        mutants = mutation._do(self._box, S, random_state=rng)
        mutates = rng.random(len(S)) <= mutation.prob.value
        S[mutates] = mutants[mutates]
        return S

    def _winners(self, count: int) -> NDArray[np.intp]:
        """Winners of binary tournaments: by the constraint, then dominance, then crowding, then at random."""
        rng, alive = self._rng, self.alive
        permutations = [rng.permutation(len(alive)) for _ in range(math.ceil(2 * count / len(alive)))]
        a, b = np.concatenate(permutations)[: 2 * count].reshape(count, 2).T
        Fa, Fb, ga, gb = alive.F[a], alive.F[b], alive.violation[a], alive.violation[b]
        a_lower, b_lower = (Fa < Fb).any(axis=1), (Fa > Fb).any(axis=1)
        better = np.where(a_lower == b_lower, _order(alive.crowding[a], alive.crowding[b]), _order(a_lower, b_lower))
        better = np.where((ga > 0.0) | (gb > 0.0), _order(gb, ga), better)
        winners = np.where(better > 0, a, b)
        for i in np.flatnonzero(better == 0).tolist():
            winners[i] = rng.choice([a[i], b[i]])
        return winners

    # --------------------------------------------------------------------------------------------------- survival

    def _survivors(self, population: Population, count: int) -> Population:
        """The best `count`: feasible ones by front and crowding, then the others by their constraint."""
        from pymoo.util.randomized_argsort import randomized_argsort

        with np.errstate(all="ignore"):  # objectives near the largest double overflow in distances
            feasible, infeasible = (
                np.flatnonzero(population.violation <= 0.0),
                np.flatnonzero(~(population.violation <= 0.0)),
            )
            infeasible = infeasible[np.argsort(population.violation[infeasible])]
            room = min(count, len(feasible))
            survivors = [np.empty(0, np.intp)]
            for front in self._sorting.do(population.F[feasible], n_stop_if_ranked=room):
                rows = feasible[front]
                crowding = self._crowding.do(population.F[rows])
                population.crowding[rows] = crowding
                surplus = len(rows) - room
                if surplus > 0:
                    order = randomized_argsort(crowding, order="descending", random_state=self._rng)
                    rows = rows[order[:-surplus]]
                survivors.append(rows)
                room -= len(rows)
            rows_of_fronts = np.concatenate(survivors)
            return population.take(np.concatenate([rows_of_fronts, infeasible[: count - len(rows_of_fronts)]]))


def _order(a: Any, b: Any) -> NDArray[np.int64]:
    """1 if `a` is larger, -1 if `b` is, else 0."""
    return np.asarray(np.greater(a, b).astype(np.int64) - np.less(a, b))


def generations(search: Elitist, evaluate: Evaluate, offspring: int) -> str:
    """Evaluate generation after generation until `evaluate` ends; returns why no new design remains."""
    S = search.first()
    if not len(S):
        search.select()
        S = search.children(offspring) if len(search.alive) else S
    while len(S):
        search.hear(S, evaluate(search.request(S)))
        S = search.children(offspring)
    return EXHAUSTED


def one_by_one(search: Elitist, evaluate: Evaluate, look_ahead: int) -> str:
    """Evaluate design after design, with `look_ahead` of them pending, until `evaluate` ends.

    Pairs of children come from the current population, which does not depend on the workers: results arrive in the
    order of the requests.
    """
    search.select()
    waiting, under_way = deque(search.first()), deque[Floats]()

    def ask() -> Floats:
        if not waiting:
            waiting.extend(search.children(2))
        if not waiting:
            return search.request(search.alive.S[:0])
        S = waiting.popleft()[None]
        under_way.append(S)
        return search.request(S)

    def tell(outcomes: Outcomes) -> None:
        search.hear(search.coordinates(under_way.popleft(), outcomes.X), outcomes)

    evaluate.ahead(ask, tell, look_ahead)
    return EXHAUSTED
