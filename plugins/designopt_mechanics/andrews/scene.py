"""The drawing of the mechanism."""

from __future__ import annotations

from functools import cache

from designopt.arrays import Vector
from designopt_mechanics import scene
from designopt_mechanics.andrews.mechanism import EA, RR, SC, SD, SS, XC, YC, ZF, ZT, D, E, U, open_tree
from designopt_mechanics.tree import Point
from designopt_mechanics.tree_rows import TreeRows

_LINES = (
    (Point("k1"), Point("k1", (RR, 0.0, 0.0))),
    (Point("k2"), Point("k2", (-D, 0.0, 0.0))),
    (Point("k3"), Point("k3", (0.0, -SS, 0.0)), Point("k3", (SD, -SC, 0.0)), Point("k3")),
    (Point("k5"), Point("k5", (ZT, 0.0, 0.0))),
    (Point("k4"), Point("k4", (0.0, -(E - EA), 0.0)), Point("k4", (0.0, -E, 0.0))),
    (Point("k7"), Point("k7", (0.0, -U, 0.0))),
    (Point("k6"), Point("k6", (ZF, 0.0, 0.0))),
    (Point("ground", (XC, YC, 0.0)), Point("k3", (SD, -SC, 0.0))),
)


def drawing(angles: Vector) -> Vector:
    """(n, vertices, 2) m for all angles (n, 7) in the order of `mechanism.ANGLES`."""
    return scene.drawing(_rows(), _LINES, angles, axes=(0, 1))


@cache
def _rows() -> TreeRows:
    return TreeRows(open_tree(), compiled=False)
