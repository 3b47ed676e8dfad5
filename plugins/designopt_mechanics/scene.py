"""Drawings of a tree over the rows of a motion: lines through points of frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt_mechanics.tree import Point
from designopt_mechanics.tree_rows import TreeRows


def drawing(rows: TreeRows, lines: Sequence[Sequence[Point]], z: ArrayLike, axes: Sequence[int] = (0, 1, 2)) -> Floats:
    """(n, vertices, axes) m: the points of one line after the other, NaN between lines."""
    positions = rows.positions([point for line in lines for point in line], z)
    return with_gaps(positions, [len(line) for line in lines])[:, :, list(axes)]


def with_gaps(vertices: Floats, sizes: Sequence[int]) -> Floats:
    """The `vertices` (n, sum of sizes, 3) of lines of these `sizes`, one after the other, with NaN between lines."""
    lines = np.split(vertices, np.cumsum(sizes)[:-1], axis=1)
    gap = np.full((len(vertices), 1, 3), np.nan)
    return np.concatenate([part for line in lines for part in (line, gap)][:-1], axis=1)
