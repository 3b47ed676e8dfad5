"""Directions of rods and the derivatives of their vectors, for numbers and for expressions alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.lazy import casadi as ca
from designopt_mechanics.rods.tree import RodTree


@dataclass(frozen=True, eq=False)
class Basis:
    """The basis of each rod: cos psi, sin psi and length (..., n), and the vectors u, h, w, b (..., n, 3) of section
    2.2."""

    C: Any
    S: Any
    length: Any
    u: Any
    h: Any
    w: Any
    b: Any

    @property
    def first(self) -> tuple[Any, Any, Any]:
        """e^phi, e^psi, e^l: derivatives of the length times u."""
        return (self.length * self.C)[..., None] * self.h, self.length[..., None] * self.w, self.u


def objects(column: Any) -> Any:
    """(k,) array of objects of a CasADi column (k, 1)."""
    entries = np.empty(column.numel(), dtype=object)
    entries[:] = ca.vertsplit(column)
    return entries


def split(tree: RodTree, q: Any) -> tuple[Any, Any, Any]:
    """Azimuths, elevations and lengths (..., n) of coordinates (..., 3 n). Raises `ValueError` for another size."""
    array = np.asarray(q)
    if array.shape[-1:] != (3 * tree.n,):
        raise ValueError(f"coordinates of {tree.n} rods have shape (..., {3 * tree.n}), not {array.shape}")
    n = tree.n
    return array[..., :n], array[..., n : 2 * n], array[..., 2 * n :]


def basis(tree: RodTree, q: Any) -> Basis:
    """Directions at coordinates `q` (..., 3 n)."""
    phi, psi, length = split(tree, q)
    c, s, C, S = np.cos(phi), np.sin(phi), np.cos(psi), np.sin(psi)
    zero = 0.0 * C
    return Basis(
        C=C,
        S=S,
        length=length,
        u=np.stack([C * c, C * s, S], axis=-1),
        h=np.stack([-s, c, zero], axis=-1),
        w=np.stack([-S * c, -S * s, C], axis=-1),
        b=np.stack([c, s, zero], axis=-1),
    )


def curvature_terms(B: Basis, dphi: Any, dpsi: Any, dl: Any) -> Any:
    """gamma (..., n, 3): the part of the second rate of the length times u that the rates alone make."""
    length, C, S = B.length, B.C, B.S
    along_h = 2.0 * (dl * C * dphi - length * S * dphi * dpsi)
    return (
        -(length * C * dphi**2)[..., None] * B.b
        - (length * dpsi**2)[..., None] * B.u
        + along_h[..., None] * B.h
        + (2.0 * dl * dpsi)[..., None] * B.w
    )
