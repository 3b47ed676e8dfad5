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
    parts: list[Floats] = []
    gap = np.full((len(positions), 1, 3), np.nan)
    at = 0
    for line in lines:
        parts += [positions[:, at : at + len(line)], gap]
        at += len(line)
    return np.concatenate(parts[:-1], axis=1)[:, :, list(axes)]
