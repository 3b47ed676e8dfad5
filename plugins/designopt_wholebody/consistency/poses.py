"""Poses of rigid bodies for many frames at once: natural coordinates from them, the fit to measured coordinates.

A body's coordinates are triples z = R x, or R x + p for a point, with x constant. Poses move by twists ξ = (v, ω):
z becomes exp(ω) z, and v is added to points. Arrays are (bodies, ..., frames); the last body is the ground, which has
no triples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt_wholebody.consistency.stacked import cross, product, rotate
from designopt_wholebody.subject import Subject


@dataclass(frozen=True, eq=False)
class Shapes:
    """Triples of rigid bodies of four triples each.

    `local` (b, 4, 3) are they in axes of the body, points less the first one; `point` (b, 4, 1, 1) is 1 for points and
    0 for unit vectors; `axes` (b, 3, 4) makes the axes of a body of its triples.
    """

    local: Floats
    point: Floats
    axes: Floats

    @classmethod
    def of_subject(cls, subject: Subject) -> Shapes:
        """Shapes in the static posture; no body is a rod."""
        bodies = list(subject.bodies.values())
        local, point = np.empty((len(bodies), 4, 3)), np.zeros((len(bodies), 4, 1, 1))
        for b, body in enumerate(bodies):
            triples, points = body.triples_of(subject.q0).copy(), len(body.points)
            triples[:points] -= triples[0]
            local[b], point[b, :points] = triples @ body.axes(subject.q0), 1.0
        return cls(local, point, np.stack([body.direction(np.eye(3)) for body in bodies]))


@dataclass(frozen=True, eq=False)
class Poses:
    """`rotation` (b + 1, 3, 3, f), `origin_of_body` (b + 1, 3, f) m of first points less `origin` (3, f), `triples`
    (b, 4, 3, f) that follow from them, less `origin` too."""

    shapes: Shapes
    origin: Floats
    rotation: Floats
    origin_of_body: Floats
    triples: Floats

    @classmethod
    def near(cls, shapes: Shapes, triples: Floats, origin: Floats) -> tuple[Poses, Mask]:
        """Poses near measured `triples` (b, 4, 3, f), less `origin`, and (f,) where axes of a body are left-handed.

        Axes are made perpendicular one after the other: this is where a search begins, not a fit.
        """
        u, v, w = product(shapes.axes[..., None], triples).swapaxes(0, 1)
        is_left_handed = (np.asarray(cross(u, v) * w).sum(axis=1) < 0.0).any(axis=0)
        u = u / _size(u)
        v = v - (u * v).sum(axis=1, keepdims=True) * u
        v = v / _size(v)
        R = np.stack([u, v, cross(u, v)], axis=2)
        points = shapes.point.sum(axis=1)
        middle = (shapes.point[:, :, 0] * shapes.local).sum(axis=1) / points[:, 0]
        p = (shapes.point * triples).sum(axis=1) / points - rotate(R, middle)
        identity = np.broadcast_to(np.eye(3)[None, :, :, None], (1, *R.shape[1:]))
        rotation, translation = np.concatenate([R, identity]), np.concatenate([p, -origin[None]])
        return cls(shapes, origin, rotation, translation, _triples(shapes, rotation, translation)), is_left_handed

    def at_frames(self, frames: Integers) -> Poses:
        """Those of some of the frames."""
        parts = (
            np.take(part, frames, axis=-1) for part in (self.origin, self.rotation, self.origin_of_body, self.triples)
        )
        return Poses(self.shapes, *parts)

    def coordinates(self) -> Floats:
        """(f, n) natural coordinates."""
        z = self.triples + self.shapes.point * self.origin
        return np.ascontiguousarray(z.reshape(-1, z.shape[-1]).T)

    def at(self, bodies: Integers, local: Floats) -> Floats:
        """(g, 3, f) points of `bodies` (g,) that are `local` (g, 3) from their first points, less `origin`."""
        return np.asarray(rotate(self.rotation[bodies], local) + self.origin_of_body[bodies])

    def moved(self, twists: Floats) -> Poses:
        """Poses after `twists` (b, 6, f); the ground stays."""
        v, w = twists[:, :3], twists[:, 3:]
        square = (w * w).sum(axis=1)
        small = square < 1e-8
        angle = np.sqrt(np.where(small, 1.0, square))
        sine = np.where(small, 1.0 - square / 6.0, np.sin(angle) / angle)[:, None]
        cosine = np.where(small, 0.5 - square / 24.0, (1.0 - np.cos(angle)) / angle**2)[:, None]

        def exp(a: Floats) -> Floats:
            across = cross(w, a)
            return np.asarray(a + sine * across + cosine * cross(w, across))

        R, p = self.rotation.copy(), self.origin_of_body.copy()
        for k in range(3):
            R[:-1, :, k] = exp(R[:-1, :, k])
        p[:-1] = exp(p[:-1]) + v
        return Poses(self.shapes, self.origin, R, p, _triples(self.shapes, R, p))

    def fit(self, triples: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """H (b + 1, 6, 6, f) and g (b + 1, 6, f) of ½ ξᵀ H ξ - gᵀ ξ, the weighted squares of the distances of all
        triples from the measured `triples` (b, 4, 3, f), less `origin`, to first order of ξ; `weights` (b, 4, 3, 1)."""
        z, points = self.triples, self.shapes.point
        bodies, _, _, frames = z.shape
        H, g = np.zeros((bodies + 1, 6, 6, frames)), np.zeros((bodies + 1, 6, frames))
        pull = weights * (triples - z)
        g[:-1, :3] = (points * pull).sum(axis=1)
        g[:-1, 3:] = cross(z, pull).sum(axis=1)
        of_points = points * weights
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            y, z_, wy, wz = z[:, :, j], z[:, :, k], weights[:, :, j], weights[:, :, k]
            H[:-1, i, i] = of_points[:, :, i].sum(axis=1)
            H[:-1, 3 + i, 3 + i] = (wy * z_ * z_ + wz * y * y).sum(axis=1)
            # ω x z has the components ω_j z_k - ω_k z_j, ...
            H[:-1, 3 + j, 3 + k] = H[:-1, 3 + k, 3 + j] = -(weights[:, :, i] * y * z_).sum(axis=1)
            H[:-1, i, 3 + j] = H[:-1, 3 + j, i] = (of_points[:, :, i] * z_).sum(axis=1)
            H[:-1, i, 3 + k] = H[:-1, 3 + k, i] = -(of_points[:, :, i] * y).sum(axis=1)
        return H, g


def _size(a: Floats) -> Floats:
    return np.asarray(np.sqrt((a * a).sum(axis=1, keepdims=True)))


def _triples(shapes: Shapes, rotation: Floats, origin_of_body: Floats) -> Floats:
    z = shapes.point * origin_of_body[:-1, None]
    for k in range(3):
        z += rotation[:-1, None, :, k] * shapes.local[:, :, k, None, None]
    return np.asarray(z)
