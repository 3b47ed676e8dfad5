"""Relations between parameters as smooth constraints of a search: known beforehand, with their derivatives."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Matrix
from designopt.solvers.scipy_searches.points import EvaluatedPoints
from designopt.study.language.expressions.derivative import derivatives
from designopt.study.language.expressions.expression import Expression

#: Distance kept from the edge of a relation, relative to its sides: what touches it may break it by rounding.
MARGIN = 1e-9


class Relations:
    """The relations of a problem at search coordinates: at most 0 where they hold. Equalities are left out."""

    def __init__(self, points: EvaluatedPoints) -> None:
        self._points = points
        self._sides = [_sides(r) for r in points.problem.space.relations if r.root.kind != "=="]
        _, middle = self._columns(np.full(len(points.problem.space.free), 0.5))
        self._sizes = [_size(less, more, middle) for less, more in self._sides]

    def __len__(self) -> int:
        return len(self._sides)

    def values(self, u: Matrix) -> Matrix:
        """``smaller side - larger side``, relative to the size of both in the middle, with the margin (k,)."""
        _, columns = self._columns(u)
        values = [
            (less.evaluate(columns) - more.evaluate(columns)) / size + MARGIN if _known(less, more, columns) else -1.0
            for (less, more), size in zip(self._sides, self._sizes, strict=True)
        ]
        return np.asarray(np.nan_to_num(np.array(values, dtype=float), nan=1.0, posinf=1e6, neginf=-1e6))

    def slopes(self, u: Matrix) -> Matrix:
        """The derivatives of `values` by the coordinates (k, d)."""
        X, columns = self._columns(u)
        free = self._points.problem.space.free
        rows = np.zeros((len(self._sides), len(free)))
        for row, (less, more), size in zip(rows, self._sides, self._sizes, strict=True):
            if _known(less, more, columns):
                for side, sign in ((less, 1.0), (more, -1.0)):
                    of = derivatives(side, columns)
                    row += [sign * float(of.get(p.name, 0.0)) / size for p in free]
        return np.asarray(np.nan_to_num(rows * self._points.scale(X), nan=0.0, posinf=1e6, neginf=-1e6))

    def _columns(self, u: Matrix) -> tuple[Matrix, dict[str, float]]:
        X = self._points.designs(u[None])
        return X, self._points.problem.space.values(X[0].tolist())


def _sides(relation: Expression) -> tuple[Expression, Expression]:
    """The side that has to be the smaller one, and the other."""
    left, right = (Expression(part) for part in relation.root.parts)
    return (left, right) if relation.root.kind in ("<=", "<") else (right, left)


def _known(less: Expression, more: Expression, columns: dict[str, float]) -> bool:
    """Whether all that the relation names is active; it holds where not."""
    return less.names | more.names <= columns.keys()


def _size(less: Expression, more: Expression, columns: dict[str, float]) -> float:
    size = float(abs(less.evaluate(columns)) + abs(more.evaluate(columns))) if _known(less, more, columns) else 1.0
    return size if np.isfinite(size) and size > 0.0 else 1.0
