"""Who survives a generation of AGE-MOEA (Panichella 2019), as a selection for pymoo's genetic algorithm.

pymoo has this algorithm too, but only together with a compiler (numba) of 150 MB; the numbers are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from designopt.arrays import Integers, Matrix

#: Distances and norms below this count as this: they are divided by.
SMALL = 1e-8


def survival() -> Any:
    """A new `pymoo.core.survival.Survival`."""
    from pymoo.core.survival import Survival
    from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

    class GeometrySurvival(Survival):  # type: ignore[misc]
        """Fronts by rank; the last one that fits only in part by its designs' scores."""

        def __init__(self) -> None:
            super().__init__(filter_infeasible=True)

        def _do(self, problem: Any, pop: Any, *rest: Any, n_survive: int, **more: Any) -> Any:
            F = pop.get("F")
            fronts = NonDominatedSorting().do(F, n_stop_if_ranked=n_survive)
            rank = np.full(len(F), np.iinfo(int).max)
            for i, front in enumerate(fronts):
                rank[front] = i
            score = scores(F, rank, len(fronts))
            pop.set("rank", rank)
            pop.set("crowding", score)
            last = len(fronts) - 1
            selected = rank < last
            candidates = np.flatnonzero(rank == last)
            best_first = candidates[np.argsort(score[candidates])[::-1]]
            selected[best_first[: n_survive - int(selected.sum())]] = True
            return pop[selected]

    return GeometrySurvival()


def scores(F: Matrix, rank: Integers, fronts: int) -> Matrix:
    """How much each of the designs `F` (n, m) deserves to survive among those of its front; larger is better.

    The first front is scored by nearness to the ideal point and distance from each other (`front_scores`), the others
    by nearness alone; the last of several counts nothing, as it is cut without regard to the first one's shape.
    """
    first = np.round(F[rank == 0], 12)
    ideal = F[rank == 0].min(axis=0)
    score = np.zeros(len(F))
    score[rank == 0], p, span = front_scores(first, ideal)
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(1, fronts - 1):
            distance = np.sum(np.abs(F[rank == i] / span - ideal) ** p, axis=1) ** (1.0 / p)
            score[rank == i] = 1.0 / distance
    return score


def front_scores(F: Matrix, ideal: Matrix) -> tuple[Matrix, float, Matrix]:
    """Scores of a front `F` (n, m), the exponent p of its shape and the span of its objectives (m,)."""
    n, m = F.shape
    if n < m:
        return np.zeros(n), 1.0, F.max(axis=0)
    F = F - ideal
    extreme = _corners(F)
    span = _span(F, extreme)
    F = F / span
    p = _exponent(F, extreme)
    norm = np.sum(np.abs(F) ** p, axis=1) ** (1.0 / p)
    norm[norm < SMALL] = 1.0
    apart = np.sum(np.abs(F[:, None] - F) ** p, axis=2) ** (1.0 / p)
    apart = np.maximum(apart, SMALL) / norm[:, None]

    score = np.zeros(n)
    score[extreme] = np.inf
    taken = np.zeros(n, dtype=bool)
    taken[extreme] = True
    nearest = np.sort(apart[taken], axis=0)[:2]  # distances to the two nearest designs that are taken
    while not taken.all():
        distance = np.where(taken, -np.inf, nearest.sum(axis=0))
        best = int(np.argmax(distance))
        taken[best] = True
        score[best] = distance[best]
        nearest = np.sort(np.vstack([nearest, apart[best]]), axis=0)[:2]
    return score, p, span


def _corners(F: Matrix) -> Integers:
    """The designs nearest to each of the axes."""
    n, m = F.shape
    if n <= m:
        return np.arange(n)
    corners: list[int] = []
    for axis in 1e-6 + np.eye(m):
        distance = _from_line(F, axis)
        distance[corners] = np.inf
        corners.append(int(np.argmin(distance)))
    return np.array(corners)


def _from_line(F: Matrix, direction: Matrix) -> Matrix:
    """Squared distances of points from the line through the origin."""
    along = (F @ direction) / (direction @ direction)
    return np.asarray(np.sum((F - along[:, None] * direction) ** 2, axis=1))


def _span(F: Matrix, extreme: Integers) -> Matrix:
    """Where the plane through the extreme designs cuts the axes; the largest values where it does not."""
    span = F.max(axis=0)
    try:
        plane = np.linalg.solve(F[extreme], np.ones(F.shape[1]))
    except np.linalg.LinAlgError:
        plane = np.zeros(F.shape[1])
    if np.all(np.isfinite(plane)) and np.all(plane > 0.0) and np.all(np.isfinite(1.0 / plane)):
        span = 1.0 / plane
    return np.where(span == 0.0, 1.0, span)


def _exponent(F: Matrix, extreme: Integers) -> float:
    """p of the norm in which the design in the middle of the front is as far from the ideal point as the corners."""
    distance = _from_line(F, np.ones(F.shape[1]))
    distance[extreme] = np.inf
    middle = F[np.argmin(distance)]
    with np.errstate(all="ignore"):
        p = np.log(F.shape[1]) / np.log(1.0 / np.mean(middle))
    return 1.0 if np.isnan(p) or p <= 0.1 else float(min(p, 20.0))
