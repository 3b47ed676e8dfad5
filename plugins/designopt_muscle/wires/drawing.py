"""Drawings of a shared wire model: bones as lines, wires with their load."""

from __future__ import annotations

import numpy as np
from designopt_mechanics.anatomy.companion import Anatomy
from designopt_mechanics.anatomy.laws import Muscle
from designopt_mechanics.scene import drawing
from designopt_mechanics.tree import GROUND, Point
from designopt_mechanics.tree_rows import TreeRows
from numpy.typing import NDArray

from designopt_muscle.wires.share import WireSharing

Vector = NDArray[np.float64]


def drawn(anatomy: Anatomy, q: Vector, found: WireSharing) -> dict[str, Vector]:
    """`skeleton` (n, v, 3) m, `paths` (n, w, v, 3) m and `load` (n, w) of joints `q` (n, m); NaN without an answer."""
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
    load = np.array(found.tensions)
    for i, wire in enumerate(anatomy.wires):
        paths[:, i, : len(wire.points)] = places[:, at : at + len(wire.points)]
        at += len(wire.points)
        law = anatomy.laws[wire.name]
        if isinstance(law, Muscle):
            j = found.sharing.balance.columns.index(wire.name)
            load[:, i] = found.sharing.activations[:, j]
        else:
            load[:, i] /= max(float(np.nanmax(load[:, i], initial=0.0)), 1e-300)
    return {"skeleton": drawing(rows, [[Point(GROUND), Point(GROUND)], *bones], z), "paths": paths, "load": load}
