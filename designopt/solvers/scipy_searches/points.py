"""Evaluated points of the unit cube for SciPy's searches: each evaluated once, in batches, and differentiated.

The searches work in coordinates from 0 to 1 over the range of each parameter (of its logarithm on a log scale).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Mask
from designopt.problem import Evaluate, Outcomes, Problem

#: Merits from here on are those of infeasible designs.
INFEASIBLE = 1e100


def merits(outcomes: Outcomes, objective: int = 0) -> Floats:
    """One number (n,) per design that gives its order: the objective of that number of a feasible one, far more for any
    other.

    The order is exact: feasible designs by the objective, then infeasible ones by violation, invalid, failed. The
    gap between them has no meaning: merits are for searches that compare.
    """
    rank = outcomes.rank_violation
    values = np.clip(outcomes.objectives[:, objective], -INFEASIBLE, INFEASIBLE)
    return np.asarray(np.where(rank == 0.0, values, INFEASIBLE * (1.0 + rank)))


@dataclass(frozen=True)
class EvaluatedPoint:
    """An evaluated design: its outcomes (one row) and the measured values (k,), NaN without a result."""

    outcomes: Outcomes
    values: Floats

    @property
    def ok(self) -> bool:
        """Whether all values are available."""
        return bool(np.isfinite(self.values).all()) and not self.outcomes.failed[0]


class EvaluatedPoints:
    """Values of designs by their coordinates; `measure` computes them (n, k) from outcomes. None is evaluated twice.

    `start` are outcomes of an earlier stage; those of another store without the derivatives that this problem records
    are not used.
    """

    def __init__(
        self, problem: Problem, evaluate: Evaluate, measure: Callable[[Outcomes], Floats], start: Outcomes | None = None
    ) -> None:
        self.problem = problem
        self._evaluate = evaluate
        self._measure = measure
        self._points_by_key: dict[bytes, EvaluatedPoint] = {}
        self._designs: dict[bytes, Floats] = {}
        if start is not None and len(start):
            complete = _complete(problem, start)
            if complete.any():
                self._add(start if complete.all() else start.take(complete))
            for u, x in zip(self.coordinates(start.X), start.X, strict=True):
                self._designs[u.tobytes()] = x

    def __len__(self) -> int:
        return len(self._points_by_key)

    def objectives(self, number: int) -> Floats:
        """The values (n,) of the objective of this number in the order of evaluation; infinite without a feasible
        design."""
        values = np.array([merits(point.outcomes, number)[0] for point in self._points_by_key.values()])
        return np.where(values < INFEASIBLE, values, np.inf)

    def coordinates(self, X: Floats) -> Floats:
        """The coordinates of designs `X` (n, d)."""
        space = self.problem.space
        return np.clip((space.to_search(X) - space.lower) / (space.upper - space.lower), 0.0, 1.0) + 0.0

    def designs(self, U: Floats) -> Floats:
        """The designs at coordinates `U` (n, d); those of `start` exactly as they were."""
        U = np.clip(U, 0.0, 1.0) + 0.0
        X = self.problem.space.in_box(U)
        for i, u in enumerate(U):
            X[i] = self._designs.get(u.tobytes(), X[i])
        return X + 0.0  # no -0.0: it would be a different design

    def scale(self, X: Floats) -> Floats:
        """The derivatives (n, d) of the designs `X` with respect to their coordinates."""
        space = self.problem.space
        log = np.array([p.scale == "log" for p in space.free])
        return (space.upper - space.lower) * np.where(log, X, 1.0)

    def at(self, U: Floats) -> list[EvaluatedPoint]:
        """The points at coordinates `U` (n, d), in their order; new ones are evaluated in one batch."""
        X = self.designs(U)
        keys = [x.tobytes() for x in X]
        new = {key: i for i, key in reversed(list(enumerate(keys))) if key not in self._points_by_key}
        if new:
            self._add(self._evaluate(X[sorted(new.values())]))
        return [self._points_by_key[key] for key in keys]

    def _add(self, outcomes: Outcomes) -> None:
        values = np.where(outcomes.failed[:, None], np.nan, self._measure(outcomes))
        for i, x in enumerate(outcomes.X + 0.0):
            self._points_by_key[x.tobytes()] = EvaluatedPoint(outcomes.take(np.array([i])), values[i])

    def differences(self, u: Floats, step: float, *, central: bool) -> Floats:
        """Derivatives (k, d) of the values at `u` (d,) with respect to its coordinates, from one batch of d (central: 2
        d) designs.

        Forward differences become backward at the upper bound; central ones become one-sided of second order at both
        bounds. If a neighbour has no result, the other side is used, with first order; NaN if both sides have none.
        """
        u = np.clip(u, 0.0, 1.0)
        inward = np.where(u + step <= 1.0, step, -step)
        first = inward
        second = np.where((u - step >= 0.0) & (u + step <= 1.0), -inward, 2.0 * inward) if central else None
        moves = first[None] if second is None else np.vstack([first, second])
        d = len(u)
        U = np.vstack([u, *(u + np.diag(move) for move in moves)])
        centre, *around = self.at(U)
        slopes = np.full((len(centre.values), d), np.nan)
        if not centre.ok:
            return slopes
        missing = []
        for j in range(d):
            beside = [(float(U[1 + i * d + j, j] - u[j]), around[i * d + j]) for i in range(len(moves))]
            good = [(h, point.values) for h, point in beside if point.ok]
            if len(good) == 2:
                (a, at_a), (b, at_b) = good
                # The parabola through here and the two points: second order for any two steps.
                slopes[:, j] = (b * b * (at_a - centre.values) - a * a * (at_b - centre.values)) / (a * b * (b - a))
            elif good:
                slopes[:, j] = (good[0][1] - centre.values) / good[0][0]
            else:
                missing.append(j)
        if missing and not central:  # the other side
            back = [j for j in missing if 0.0 <= u[j] - inward[j] <= 1.0]
            for j, point in zip(back, self.at(u - np.diag(inward)[back]) if back else [], strict=True):
                if point.ok:
                    slopes[:, j] = (point.values - centre.values) / ((u[j] - inward[j]) - u[j])
        return slopes


def _complete(problem: Problem, start: Outcomes) -> Mask:
    """Which outcomes (n,) contain derivatives, or cannot have any."""
    is_complete = np.array(start.failed | (not problem.gradients))
    for name, values in start.figures.items():
        if name.startswith("d("):
            is_complete |= np.isfinite(values).any(axis=1)
    return is_complete


def comparison_points(problem: Problem, evaluate: Evaluate, start: Outcomes) -> EvaluatedPoints:
    """The points of a search that compares designs by an objective."""
    return EvaluatedPoints(problem, evaluate, lambda outcomes: outcomes.objectives, start)


def merits_at(points: EvaluatedPoints, U: Floats, objective: int = 0) -> Floats:
    """The `merits` (n,) of the designs at coordinates `U` (n, d) in the objective of that number."""
    return np.concatenate([merits(point.outcomes, objective) for point in points.at(U)])
