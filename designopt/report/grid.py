"""Finding the regular grids of parameter values that a study's stages have scanned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from designopt.run.result import Result

Matrix = NDArray[np.float64]

#: A stage is a grid when it has at least this share of the nodes (relations may have cut some off).
FILLED = 0.5


@dataclass(frozen=True)
class Grid:
    """Nodes over two parameters: `x` (p,), `y` (q,), and `rows` (q, p) of the outcomes, -1 where there is none."""

    x: Matrix
    y: Matrix
    rows: NDArray[np.intp]

    def take(self, values: Matrix) -> Matrix:
        """`values` (n,) at the nodes, (q, p); NaN where there is none."""
        return np.where(self.rows >= 0, values[self.rows], np.nan)


def grid_over(result: Result, x: int, y: int) -> Grid | None:
    """The grid over columns `x` and `y` of the space, from the stage that has the most nodes; None if there is none.

    Further parameters must not vary within it. A grid has at least three values along one axis and two along the other.
    A design that an earlier stage asked for belongs to the grid of a later one too.
    """
    best: Grid | None = None
    for stage in dict.fromkeys(result.stage.tolist()):
        grid = _grid(result, np.flatnonzero(result.stage == stage), x, y)
        if grid is not None and (best is None or np.sum(grid.rows >= 0) > np.sum(best.rows >= 0)):
            best = grid
    return best


def _grid(result: Result, rows: NDArray[np.intp], x: int, y: int) -> Grid | None:
    X = result.outcomes.X
    rest = [j for j in range(X.shape[1]) if j not in (x, y)]
    if not len(rows) or any(len(np.unique(X[rows, j])) > 1 for j in rest):
        return None
    xs, ys = np.unique(X[rows, x]), np.unique(X[rows, y])
    if min(len(xs), len(ys)) < 2 or max(len(xs), len(ys)) < 3 or FILLED * len(xs) * len(ys) > len(rows):
        return None
    places = np.full((len(ys), len(xs)), -1, dtype=np.intp)
    same = rows
    if rest:
        same = np.flatnonzero((X[:, rest] == X[rows[0], rest]).all(axis=1))
    at_x, at_y = np.searchsorted(xs, X[same, x]), np.searchsorted(ys, X[same, y])
    at_x, at_y = np.minimum(at_x, len(xs) - 1), np.minimum(at_y, len(ys) - 1)
    on = (xs[at_x] == X[same, x]) & (ys[at_y] == X[same, y])
    places[at_y[on], at_x[on]] = same[on]
    return Grid(xs, ys, places)
