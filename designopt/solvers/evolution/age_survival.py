"""Survival selection of AGE-MOEA (Panichella 2019) for pymoo's genetic algorithm.

pymoo contains this algorithm too, but requires a compiler (numba) of 150 MB for it; the numbers are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from designopt.arrays import Integers, Matrix

#: Lower bound of distances and norms that are divisors.
SMALL = 1e-8


def survival() -> Any:
    """A new `pymoo.core.survival.Survival`."""
    from pymoo.core.survival import Survival
    from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

    class GeometrySurvival(Survival):  # type: ignore[misc]
        """Fronts by rank; the last front that fits only in part is cut by score."""

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
    """Survival scores (n,) of the designs `F` (n, m) within their fronts; larger is better.

    The first front is scored by proximity to the ideal point and diversity (`front_scores`), the others by proximity
    alone; the last of several fronts has score 0.
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
    """Scores (n,) of a front `F` (n, m), the exponent p of its shape and the span of its objectives (m,)."""
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
    selected = np.zeros(n, dtype=bool)
    selected[extreme] = True
    nearest = np.sort(apart[selected], axis=0)[:2]  # distances to the two nearest selected designs
    while not selected.all():
        distance = np.where(selected, -np.inf, nearest.sum(axis=0))
        best = int(np.argmax(distance))
        selected[best] = True
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
    """Intercepts of the plane through the extreme designs; the largest values if there are none."""
    span = F.max(axis=0)
    try:
        plane = np.linalg.solve(F[extreme], np.ones(F.shape[1]))
    except np.linalg.LinAlgError:
        plane = np.zeros(F.shape[1])
    if np.all(np.isfinite(plane)) and np.all(plane > 0.0) and np.all(np.isfinite(1.0 / plane)):
        span = 1.0 / plane
    return np.where(span == 0.0, 1.0, span)


def _exponent(F: Matrix, extreme: Integers) -> float:
    """Exponent p of the norm in which the central design is as far from the ideal point as the corners."""
    distance = _from_line(F, np.ones(F.shape[1]))
    distance[extreme] = np.inf
    middle = F[np.argmin(distance)]
    with np.errstate(all="ignore"):
        p = np.log(F.shape[1]) / np.log(1.0 / np.mean(middle))
    return 1.0 if np.isnan(p) or p <= 0.1 else float(min(p, 20.0))
