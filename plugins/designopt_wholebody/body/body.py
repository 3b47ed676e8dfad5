"""A rigid body in natural coordinates: which numbers describe it, and where its points and directions are.

Coordinates of a body are triples (points and unit vectors in the laboratory's frame). A point of the body is a sum of
its triples with constant coefficients, r = C q with C = c ⊗ I3 (Nunes 2017, 2.12-2.16); so is a direction. Everything
else (joints, weight, contact, rotation) is built from these coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.body.inertia import MassProperties


@dataclass(frozen=True, eq=False)
class BodySegment:
    """A segment of a subject.

    `start` is the position of its first coordinate in q. `base` (3, k) are the vectors X' that the coordinates span in
    local axes: the unit vectors, after the difference of the two basic points if there are two; `first` (3,) is the
    first basic point. `local` contains landmarks in the segment's frame. A rod (layout 2p) has local coordinates along
    its own line only.
    """

    name: str
    layout: str
    start: int
    points: tuple[str, ...]
    vectors: tuple[str, ...]
    first: Floats
    base: Floats
    inertia: MassProperties
    local: Mapping[str, Floats]
    mirrored: bool = False

    @property
    def triples(self) -> int:
        """Number of points and vectors."""
        return len(self.points) + len(self.vectors)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return 3 * self.triples

    @property
    def columns(self) -> slice:
        """Where its coordinates are in q."""
        return slice(self.start, self.start + self.size)

    @property
    def rod(self) -> bool:
        return self.layout == "2p"

    @property
    def condition(self) -> float:
        """Condition number of X': large for basic points close together or vectors almost parallel."""
        return float(np.linalg.cond(self.base))

    @cached_property
    def _inverse(self) -> Floats:
        """X'^-1, of a rod the pseudoinverse."""
        return np.asarray(np.linalg.pinv(self.base))

    def direction(self, local: Floats) -> Floats:
        """(..., triples) coefficients of the direction `local` (..., 3): c = X'^-1 d'."""
        c = np.asarray(local) @ self._inverse.T
        if len(self.points) == 2:
            return np.asarray(np.concatenate([-c[..., :1], c], axis=-1))
        return np.asarray(np.concatenate([np.zeros_like(c[..., :1]), c], axis=-1))

    def point(self, local: Floats) -> Floats:
        """(..., triples) coefficients of the point `local` (..., 3) of the segment's frame (2.14, 2.15)."""
        c = self.direction(np.asarray(local) - self.first)
        c[..., 0] += 1.0
        return c

    def landmark(self, name: str) -> Floats:
        """(triples,) coefficients of a landmark; raises `KeyError` with a sentence where the body has none."""
        if name not in self.local:
            raise KeyError(f"segment '{self.name}' has no landmark '{name}'; it has {', '.join(self.local)}")
        return self.point(self.local[name])

    def mass_matrix(self) -> Floats:
        """(triples, triples) M4 of the constant mass matrix M = M4 ⊗ I3 (2.22-2.27)."""
        m, d = self.inertia.mass, self.inertia.centre - self.first
        if self.rod:
            return m / 6.0 * np.array([[2.0, 1.0], [1.0, 2.0]])
        J = self.inertia.tensor
        inverse = np.linalg.inv(self.base)
        pi = 0.5 * np.trace(J) * np.eye(3) - J + m * np.outer(d, d)
        M4 = np.empty((4, 4))
        M4[0, 0] = m
        M4[0, 1:] = M4[1:, 0] = m * inverse @ d
        M4[1:, 1:] = inverse @ pi @ inverse.T
        if len(self.points) == 2:
            E4 = np.eye(4)
            E4[1, 0] = -1.0
            M4 = E4.T @ M4 @ E4
        return M4

    def axes(self, q: Floats) -> Floats:
        """(..., 3, 3) axes of the frame as columns for coordinates q (..., n) of the whole body."""
        return np.asarray(np.swapaxes(self.direction(np.eye(3)) @ self.triples_of(q), -1, -2))

    def position(self, q: Floats, coefficients: Floats) -> Floats:
        """(..., 3) point or direction of constant `coefficients` (triples,); of velocities for q̇, and so on."""
        return np.asarray(coefficients @ self.triples_of(q))

    def triples_of(self, q: Floats) -> Floats:
        """(..., triples, 3) its points and vectors in q (..., n)."""
        return q[..., self.columns].reshape((*q.shape[:-1], self.triples, 3))
