"""Drawings of a shared wire model: bones as lines, and the wires."""

from __future__ import annotations

import numpy as np
from designopt_mechanics.anatomy.companion import Anatomy
from designopt_mechanics.scene import drawing
from designopt_mechanics.tree import GROUND, Point
from designopt_mechanics.tree_rows import TreeRows

from designopt.arrays import Vector
from designopt_muscle.wires.share import WireSharing


def drawn(anatomy: Anatomy, q: Vector, found: WireSharing) -> dict[str, Vector]:
    """`skeleton` (n, v, 3) and `paths` (n, w, v, 3) m of joints `q` (n, m); NaN without an answer."""
    rows = TreeRows(anatomy.tree, compiled=False)
    z = np.concatenate([np.where(np.isfinite(q), q, np.nan), found.pose], axis=1)
    bones = [
        [Point(frame.name), Point(frame.name, tuple(2.0 * np.asarray(frame.body.centre)))]
        for frame in anatomy.tree.frames
        if frame.body is not None
    ]
    points = [point for wire in anatomy.wires for point in wire.points]
    places = rows.positions(points, z)
    paths = np.full((len(z), len(anatomy.wires), max(len(w.points) for w in anatomy.wires), 3), np.nan)
    at = 0
    for i, wire in enumerate(anatomy.wires):
        paths[:, i, : len(wire.points)] = places[:, at : at + len(wire.points)]
        at += len(wire.points)
    return {"skeleton": drawing(rows, [[Point(GROUND), Point(GROUND)], *bones], z), "paths": paths}
