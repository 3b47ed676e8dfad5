"""Detection of regular grids of parameter values in a study's stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats

if TYPE_CHECKING:
    from designopt.store.result import Result

#: A stage is a grid if it has at least this share of the nodes (relations may remove some).
FILLED = 0.5


@dataclass(frozen=True)
class Grid:
    """Nodes over two parameters: `x` (p,), `y` (q,), and `rows` (q, p) of the outcomes, -1 without one."""

    x: Floats
    y: Floats
    rows: NDArray[np.intp]

    def take(self, values: Floats) -> Floats:
        """`values` (n,) at the nodes, (q, p); NaN without one."""
        return np.where(self.rows >= 0, values[self.rows], np.nan)


def grid_over(result: Result, x: int, y: int) -> Grid | None:
    """The grid over columns `x` and `y` of the space, from the stage with the most nodes; None if there is none.

    Other parameters must not vary within it. A grid has at least three values along one axis and two along the other.
    It includes designs of other stages on its nodes.
    """
    return _largest(result, (x, y))


def scan_over(result: Result, x: int) -> Grid | None:
    """The same along one column: at least three values of `x`, all other parameters constant; `Grid.y` is a single
    0."""
    return _largest(result, (x,))


def _largest(result: Result, columns: tuple[int, ...]) -> Grid | None:
    grids = []
    for stage in dict.fromkeys(result.stage.tolist()):
        grid = _grid(result.outcomes.X, np.flatnonzero(result.stage == stage), columns)
        if grid is not None:
            grids.append(grid)
    return max(grids, key=lambda grid: int(np.sum(grid.rows >= 0)), default=None)


def _grid(X: Floats, rows: NDArray[np.intp], columns: tuple[int, ...]) -> Grid | None:
    """The grid over `columns` made by the designs `rows` of one stage, completed from all designs `X`."""
    other_columns = [j for j in range(X.shape[1]) if j not in columns]
    if any(len(np.unique(X[rows, j])) > 1 for j in other_columns):
        return None
    xs = np.unique(X[rows, columns[0]])
    ys = np.unique(X[rows, columns[1]]) if len(columns) > 1 else np.zeros(1)
    if max(len(xs), len(ys)) < 3 or min(len(xs), len(ys)) < len(columns) or FILLED * len(xs) * len(ys) > len(rows):
        return None
    slice_rows = np.flatnonzero((X[:, other_columns] == X[rows[0], other_columns]).all(axis=1))
    y = X[slice_rows, columns[1]] if len(columns) > 1 else np.zeros(len(slice_rows))
    at_x = np.minimum(np.searchsorted(xs, X[slice_rows, columns[0]]), len(xs) - 1)
    at_y = np.minimum(np.searchsorted(ys, y), len(ys) - 1)
    on = (xs[at_x] == X[slice_rows, columns[0]]) & (ys[at_y] == y)
    grid_rows = np.full((len(ys), len(xs)), -1, dtype=np.intp)
    grid_rows[at_y[on], at_x[on]] = slice_rows[on]
    return Grid(xs, ys, grid_rows)
