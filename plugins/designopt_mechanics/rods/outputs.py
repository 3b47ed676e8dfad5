"""Forces on rods and what follows from a motion of them: elastic forces, drives, loads, energies, places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt_mechanics.rods.basis import basis, split
from designopt_mechanics.rods.dynamics import turning_moments
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
    return _chained(tree, B.length[..., None] * B.u)


def velocities(tree: RodTree, q: Any, dq: Any) -> tuple[Any, Any]:
    """(..., n, 3) m/s of the far ends and of the centres of mass."""
    return _chained(tree, _rates(tree, q, dq))


def energies(tree: RodTree, q: Any, dq: Any) -> Energies:
    """Of a state."""
    m, com = tree.column("mass"), tree.column("com")
    _, centres = places(tree, q)
    _, v = velocities(tree, q, dq)
    stretched = _rates(tree, q, dq)
    dphi, dpsi, _ = split(tree, dq)
    about_h, about_w = turning_moments(tree, basis(tree, q))
    about_centre = m * (tree.column("second") - com**2)
    kinetic = 0.5 * (
        m * (v**2).sum(-1) + about_centre * (stretched**2).sum(-1) + about_h * dphi**2 + about_w * dpsi**2
    ).sum(-1)
    weight = -(m * (centres * np.array(tree.gravity)).sum(-1)).sum(-1)
    stretch = split(tree, q)[2] - tree.column("rest_length")
    return Energies(kinetic, weight, 0.5 * (tree.column("stiffness") * stretch**2).sum(-1))


def elastic_forces(tree: RodTree, q: Any, dq: Any) -> Any:
    """(..., n) N along the lengths: -k (l - l0) - d dl/dt."""
    _, _, length = split(tree, q)
    _, _, rate = split(tree, dq)
    return -tree.column("stiffness") * (length - tree.column("rest_length")) - tree.column("damping") * rate


def coordinate_drives(tree: RodTree, azimuth: Any, elevation: Any, axial: Any) -> Any:
    """(..., 3 n) generalised forces of drives (..., n) in the near joint of each rod.

    The moments are conjugate to the angles of a rod less those of its parent (of a root to its own), the axial force to
    the length: positive lengthens.
    """
    return np.concatenate([_less_children(tree, azimuth), _less_children(tree, elevation), np.asarray(axial)], axis=-1)


def torque_drives(tree: RodTree, q: Any, torques: Any) -> Any:
    """(..., 3 n) generalised forces of torque vectors (..., n, 3) N m in the near joints, each back on the parent."""
    phi, _, length = split(tree, q)
    net = np.stack([_less_children(tree, np.asarray(torques)[..., k]) for k in range(3)], axis=-1)
    about = np.sin(phi) * net[..., 0] - np.cos(phi) * net[..., 1]  # t = (sin phi, -cos phi, 0)
    return np.concatenate([net[..., 2], about, 0.0 * length], axis=-1)


def point_forces(tree: RodTree, q: Any, forces: Mapping[str, tuple[float, Any]]) -> Any:
    """(..., 3 n) generalised forces of `forces`: by rod the fraction of its length, and a force (..., 3) N there.

    Raises `ValueError` for an unknown rod.
    """
    first = basis(tree, q).first
    total = 0.0 * np.asarray(q)
    names = [rod.name for rod in tree.rods]
    for name, (part, force) in forces.items():
        if name not in names:
            raise ValueError(f"forces: there is no rod '{name}'")
        k = names.index(name)
        weights = np.zeros(tree.n)
        weights[k] = tree.rods[k].sign * part
        i = tree.parents[k]
        while i >= 0:
            weights[i] = tree.rods[i].sign
            i = tree.parents[i]
        pull = np.asarray(force)[..., None, :]
        total = total + np.concatenate([weights * (e * pull).sum(-1) for e in first], axis=-1)
    return total


def drives_of(tree: RodTree, forces: Any) -> tuple[Any, Any]:
    """The moments (..., n) in the near joints of azimuth and elevation that make generalised `forces` (..., 3 n)."""
    azimuth, elevation, _ = split(tree, forces)
    return _with_descendants(tree, azimuth), _with_descendants(tree, elevation)


def drive_powers(tree: RodTree, dq: Any, azimuth: Any, elevation: Any) -> tuple[Any, Any]:
    """W, each (..., n), of the moments of `coordinate_drives` on the joints that they turn."""
    dphi, dpsi, _ = split(tree, dq)
    of_azimuth = np.asarray(azimuth) * (dphi - _of_parent(tree, dphi))
    return of_azimuth, np.asarray(elevation) * (dpsi - _of_parent(tree, dpsi))


def _of_parent(tree: RodTree, values: Any) -> Any:
    return np.stack([values[..., p] if p >= 0 else 0.0 * values[..., 0] for p in tree.parents], axis=-1)


def _less_children(tree: RodTree, moments: Any) -> Any:
    moment_rows = np.asarray(moments)
    parts = [
        moment_rows[..., i] - sum((moment_rows[..., c] for c in kids), 0.0) for i, kids in enumerate(tree.children)
    ]
    return np.stack(parts, axis=-1)


def _with_descendants(tree: RodTree, forces: Any) -> Any:
    parts = [forces[..., i] for i in range(tree.n)]
    for i in reversed(range(tree.n)):
        if tree.parents[i] >= 0:
            parts[tree.parents[i]] = parts[tree.parents[i]] + parts[i]
    return np.stack(parts, axis=-1)


def _rates(tree: RodTree, q: Any, dq: Any) -> Any:
    return sum(e * rate[..., None] for e, rate in zip(basis(tree, q).first, split(tree, dq), strict=True))


def _chained(tree: RodTree, vectors: Any) -> tuple[Any, Any]:
    """Sums of rods' vectors (..., n, 3) from the root to the far ends, and to the centres of mass."""
    rho = vectors * tree.column("sign")[:, None]
    ends: list[Any] = []
    for k, parent in enumerate(tree.parents):
        ends.append(rho[..., k, :] if parent < 0 else ends[parent] + rho[..., k, :])
    far = np.stack(ends, axis=-2)
    return far, far - (1.0 - tree.column("com"))[:, None] * rho
