"""Inverse and forward dynamics of rods in a number of operations that grows with the number of rods.

Forward dynamics takes the places of the joints as unknowns: the kinetic energy couples only the two ends of a rod, so
that the matrix has a 3 x 3 block for each rod and one for each rod and its parent, and is eliminated from the tips to
the roots (section 4 of the specification).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt_mechanics.rods.basis import Basis, basis, curved, split
from designopt_mechanics.rods.tree import RodTree, SingularConfiguration

#: Nearest approach to the singular coordinates at which accelerations are still given.
_UPRIGHT, _SHORT = 1e-6, 1e-9


@dataclass(frozen=True, eq=False)
class RodDynamics:
    """Generalised `forces` (..., 3 n) that a motion needs, and vectors of each rod (..., n, 3).

    `ends` and `centres` are the accelerations of far ends and centres of mass, `loads` the forces at the near ends.
    """

    forces: Any
    ends: Any
    centres: Any
    loads: Any


def inverse_dynamics(tree: RodTree, q: Any, dq: Any, d2q: Any, anchor: Any = None) -> Any:
    """(..., 3 n) generalised forces beside the weight. `anchor` (..., 3) is the ground's acceleration."""
    return motion(tree, q, dq, d2q, anchor).forces


def motion(tree: RodTree, q: Any, dq: Any, d2q: Any, anchor: Any = None) -> RodDynamics:
    """`inverse_dynamics` with accelerations and the forces in the joints."""
    B = basis(tree, q)
    rates, second = split(tree, dq), split(tree, d2q)
    first = B.first
    rho = sum((e * a[..., None] for e, a in zip(first, second, strict=True)), curved(B, *rates))
    m, com, sign = tree.column("mass"), tree.column("com"), tree.column("sign")
    rho = rho * sign[:, None]
    ends: list[Any] = []
    for k, parent in enumerate(tree.parents):
        before = _anchored(rho[..., k, :], anchor) if parent < 0 else ends[parent]
        ends.append(before + rho[..., k, :])
    far = np.stack(ends, axis=-2)
    centres = far - (1.0 - com)[:, None] * rho
    inertia_forces = m[:, None] * (centres - np.array(tree.gravity))
    loads: list[Any] = [0.0 * inertia_forces[..., k, :] for k in range(tree.n)]  # of what hangs on each rod
    for k in reversed(range(tree.n)):
        if tree.parents[k] >= 0:
            loads[tree.parents[k]] = loads[tree.parents[k]] + loads[k] + inertia_forces[..., k, :]
    carried = np.stack(loads, axis=-2)
    spread = (m * (tree.column("second") - com**2))[:, None] * rho
    pull = sign[:, None] * (carried + com[:, None] * inertia_forces + spread)
    efforts = [(e * pull).sum(-1) for e in first]
    forces = np.concatenate(
        [efforts[0] + tree.column("Ix") * second[0], efforts[1] + tree.column("Iy") * second[1], efforts[2]], axis=-1
    )
    return RodDynamics(forces, far, centres, carried + inertia_forces)


def forward_dynamics(tree: RodTree, q: Any, dq: Any, forces: Any, anchor: Any = None) -> Any:
    """(..., 3 n) accelerations under generalised `forces` (..., 3 n) beside the weight.

    Raises `SingularConfiguration` for numbers with |cos psi| below 1e-6 or a length below 1e-9.
    """
    B = basis(tree, q)
    _refuse_singular(tree, B)
    rates = split(tree, dq)
    sign, m, com = tree.column("sign"), tree.column("mass"), tree.column("com")
    spread = m * (tree.column("second") - com**2)
    gamma = curved(B, *rates) * sign[:, None]
    u, h, w = (v * sign[:, None] for v in (B.u, B.h, B.w))
    F = split(tree, forces)
    about_h, about_w = tree.column("Ix"), tree.column("Iy")
    to_h, to_w = 1.0 / (B.length * B.C), 1.0 / B.length
    one = np.eye(3)
    turning = (about_h * to_h**2)[..., None, None] * _outer(h, h) + (about_w * to_w**2)[..., None, None] * _outer(w, w)
    p = (F[0] * to_h)[..., None] * h + (F[1] * to_w)[..., None] * w + F[2][..., None] * u
    p = p + (turning * gamma[..., None, :]).sum(-1)
    D: list[Any] = [(m * com**2 + spread)[k] * one + turning[..., k, :, :] for k in range(tree.n)]
    far = m * com
    near = m * (1.0 - com)
    right: list[Any] = [p[..., k, :] + far[k] * np.array(tree.gravity) for k in range(tree.n)]
    coupled = [(m * com * (1.0 - com) - spread)[k] * one - turning[..., k, :, :] for k in range(tree.n)]
    for k, parent in enumerate(tree.parents):
        if parent >= 0:
            D[parent] = D[parent] + (m * (1.0 - com) ** 2 + spread)[k] * one + turning[..., k, :, :]
            right[parent] = right[parent] - p[..., k, :] + near[k] * np.array(tree.gravity)
        elif anchor is not None:
            right[k] = right[k] - (coupled[k] * np.asarray(anchor)[..., None, :]).sum(-1)
    solved: list[Any] = [None] * tree.n
    for k in reversed(range(tree.n)):
        back = _solve(D[k], np.concatenate([coupled[k], right[k][..., None]], axis=-1))
        solved[k] = back
        parent = tree.parents[k]
        if parent >= 0:
            D[parent] = D[parent] - _times(coupled[k], back[..., :3])
            right[parent] = right[parent] - (coupled[k] * back[..., 3][..., None, :]).sum(-1)
    ends: list[Any] = []
    bent: list[Any] = []
    for k, parent in enumerate(tree.parents):
        moved, before = solved[k][..., 3], _anchored(right[k], anchor)
        if parent >= 0:
            before = ends[parent]
            moved = moved - (solved[k][..., :3] * before[..., None, :]).sum(-1)
        ends.append(moved)
        bent.append(moved - before)
    change = np.stack(bent, axis=-2) - gamma
    return np.concatenate([(change * h).sum(-1) * to_h, (change * w).sum(-1) * to_w, (change * u).sum(-1)], axis=-1)


def _anchored(zero: Any, anchor: Any) -> Any:
    return 0.0 * zero if anchor is None else np.asarray(anchor) + 0.0 * zero


def _refuse_singular(tree: RodTree, B: Basis) -> None:
    if np.asarray(B.C).dtype == object:
        return
    for what, values, least in (("cos psi", np.abs(B.C), _UPRIGHT), ("length", B.length, _SHORT)):
        bad = ~(values >= least)
        if bad.any():
            rod = tree.rods[int(np.argwhere(bad)[0][-1])].name
            raise SingularConfiguration(
                f"rod '{rod}': {what} is below {least:g}; azimuth and length have no direction there: turn the axes so"
                " that no rod comes near the axis of the azimuths"
            )


def _outer(a: Any, b: Any) -> Any:
    return a[..., :, None] * b[..., None, :]


def _times(A: Any, B: Any) -> Any:
    return (A[..., :, :, None] * B[..., None, :, :]).sum(-2)


def _solve(D: Any, right: Any) -> Any:
    """X with D X = right for symmetric positive definite D (..., 3, 3) and right (..., 3, k), by D = L d L'."""
    d0 = D[..., 0, 0:1]
    l10, l20 = D[..., 1, 0:1] / d0, D[..., 2, 0:1] / d0
    d1 = D[..., 1, 1:2] - l10 * D[..., 1, 0:1]
    l21 = (D[..., 2, 1:2] - l20 * D[..., 1, 0:1]) / d1
    d2 = D[..., 2, 2:3] - l20 * D[..., 2, 0:1] - l21 * l21 * d1
    y0 = right[..., 0, :]
    y1 = right[..., 1, :] - l10 * y0
    y2 = right[..., 2, :] - l20 * y0 - l21 * y1
    x2 = y2 / d2
    x1 = y1 / d1 - l21 * x2
    x0 = y0 / d0 - l10 * x1 - l20 * x2
    return np.stack([x0, x1, x2], axis=-2)
