"""Inverse dynamics of rods in a number of operations that grows with the number of rods."""

from __future__ import annotations

from typing import Any

import numpy as np

from designopt_mechanics.rods.basis import basis, curvature_terms, split
from designopt_mechanics.rods.tree import RodTree


def inverse_dynamics(tree: RodTree, q: Any, dq: Any, d2q: Any, anchor: Any = None) -> Any:
    """(..., 3 n) generalised forces beside the weight. `anchor` (..., 3) is the ground's acceleration."""
    B = basis(tree, q)
    rates, second = split(tree, dq), split(tree, d2q)
    first = B.first
    rho = sum((e * a[..., None] for e, a in zip(first, second, strict=True)), curvature_terms(B, *rates))
    m, com, sign = tree.column("mass"), tree.column("com"), tree.column("sign")
    rho = rho * sign[:, None]
    ends: list[Any] = []  # accelerations of far ends
    for k, parent in enumerate(tree.parents):
        before = _anchor_position(rho[..., k, :], anchor) if parent < 0 else ends[parent]
        ends.append(before + rho[..., k, :])
    centres = np.stack(ends, axis=-2) - (1.0 - com)[:, None] * rho
    inertia_forces = m[:, None] * (centres - np.array(tree.gravity))
    loads: list[Any] = [0.0 * inertia_forces[..., k, :] for k in range(tree.n)]  # of what hangs on each rod
    for k in reversed(range(tree.n)):
        if tree.parents[k] >= 0:
            loads[tree.parents[k]] = loads[tree.parents[k]] + loads[k] + inertia_forces[..., k, :]
    load_rows = np.stack(loads, axis=-2)
    spread = (m * (tree.column("second") - com**2))[:, None] * rho
    pull = sign[:, None] * (load_rows + com[:, None] * inertia_forces + spread)
    efforts = [(e * pull).sum(-1) for e in first]
    return np.concatenate(
        [efforts[0] + tree.column("Ix") * second[0], efforts[1] + tree.column("Iy") * second[1], efforts[2]], axis=-1
    )


def _anchor_position(zero: Any, anchor: Any) -> Any:
    return 0.0 * zero if anchor is None else np.asarray(anchor) + 0.0 * zero
