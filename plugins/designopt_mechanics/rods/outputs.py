"""Forces on rods and what follows from a motion of them: elastic forces, drives, loads, energies, places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt_mechanics.rods.basis import basis, split
from designopt_mechanics.rods.tree import RodTree


@dataclass(frozen=True, eq=False)
class Energies:
    """J, each (...): kinetic, of the weight (0 with all centres of mass at the origin) and of the elastic lengths."""

    kinetic: Any
    weight: Any
    elastic: Any


def places(tree: RodTree, q: Any) -> tuple[Any, Any]:
    """(..., n, 3) m of the far ends and of the centres of mass, from an anchor at the origin."""
    B = basis(tree, q)
    return _sums(tree, B.length[..., None] * B.u)


def velocities(tree: RodTree, q: Any, dq: Any) -> tuple[Any, Any]:
    """(..., n, 3) m/s of the far ends and of the centres of mass."""
    return _sums(tree, _rates(tree, q, dq))


def energies(tree: RodTree, q: Any, dq: Any) -> Energies:
    """The energies of a state."""
    m, com = tree.column("mass"), tree.column("com")
    _, centres = places(tree, q)
    _, v = velocities(tree, q, dq)
    rod_rates = _rates(tree, q, dq)
    dphi, dpsi, _ = split(tree, dq)
    about_centre = m * (tree.column("second") - com**2)
    kinetic = 0.5 * (
        m * (v**2).sum(-1)
        + about_centre * (rod_rates**2).sum(-1)
        + tree.column("Ix") * dphi**2
        + tree.column("Iy") * dpsi**2
    ).sum(-1)
    weight = -(m * (centres * np.array(tree.gravity)).sum(-1)).sum(-1)
    stretch = split(tree, q)[2] - tree.column("rest_length")
    return Energies(kinetic, weight, 0.5 * (tree.column("stiffness") * stretch**2).sum(-1))


def elastic_forces(tree: RodTree, q: Any, dq: Any) -> Any:
    """(..., n) N along the lengths: -k (l - l0) - d dl/dt."""
    _, _, length = split(tree, q)
    _, _, rate = split(tree, dq)
    return -tree.column("stiffness") * (length - tree.column("rest_length")) - tree.column("damping") * rate


def _rates(tree: RodTree, q: Any, dq: Any) -> Any:
    return sum(e * rate[..., None] for e, rate in zip(basis(tree, q).first, split(tree, dq), strict=True))


def _sums(tree: RodTree, vectors: Any) -> tuple[Any, Any]:
    """Sums of rods' vectors (..., n, 3) from the root to the far ends, and to the centres of mass."""
    rho = vectors * tree.column("sign")[:, None]
    ends: list[Any] = []
    for k, parent in enumerate(tree.parents):
        ends.append(rho[..., k, :] if parent < 0 else ends[parent] + rho[..., k, :])
    far = np.stack(ends, axis=-2)
    return far, far - (1.0 - tree.column("com"))[:, None] * rho
