"""The shortest path through the hole of a torus: a geodesic of its tube tangent to the straight segments at both ends.

As in OpenSim a path with a torus passes through its hole, around the tube where the straight segment is closest to the
circle in its middle. The cylinder tangent to the tube at this place gives a first path. The unknowns are the point
where the path meets the tube and the length of the geodesic from there, solved such that both tangents pass through the
ends (Newton's method, all frames at once).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Mask
from designopt_mechanics.surfaces.circle import around_cylinder
from designopt_mechanics.surfaces.touch import Touch, cross

#: Points of a segment among which the one closest to the circle is sought, and the steps that refine it.
_SAMPLES, _REFINED = 65, 30
#: Steps of the integration along an arc.
_STEPS = 32
_NEWTON = 20
#: Differences that make Newton's matrix, a step that ends the iteration, the longest step (rad, and tube radii).
_DIFFERENCE, _SETTLED, _LONGEST = 1e-6, 1e-10, 0.3


@dataclass(frozen=True)
class _Torus:
    """A tube of radius `tube` around a circle of radius `ring` about z."""

    tube: float
    ring: float

    def points(self, around: Floats, across: Floats) -> Floats:
        """(n, 3) at the angles `around` the axis and `across` the tube."""
        out = self.ring + self.tube * np.cos(across)
        return np.column_stack([out * np.cos(around), out * np.sin(around), self.tube * np.sin(across)])

    def angles(self, x: Floats) -> tuple[Floats, Floats]:
        """The angles of the points of the tube closest to `x` (n, 3)."""
        out = np.hypot(x[:, 0], x[:, 1])
        return np.arctan2(x[:, 1], x[:, 0]), np.arctan2(x[:, 2], out - self.ring)

    def frame(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Normal and unit vector around the axis (n, 3), and the curvature around the axis (n,), at points `x`."""
        around, across = self.angles(x)
        c, s, height = np.cos(around), np.sin(around), np.sin(across)
        level = np.cos(across)
        normal = np.column_stack([level * c, level * s, height])
        return normal, np.column_stack([-s, c, np.zeros(len(x))]), level / (self.ring + self.tube * level)

    def geodesic(self, x: Floats, t: Floats, length: Floats) -> tuple[Floats, Floats]:
        """Point and tangent after `length` (n,) from `x` along the unit tangent `t` (Runge-Kutta method, order 4)."""
        h = (length / _STEPS)[:, None]
        for _ in range(_STEPS):
            k1, l1 = t, self._bend(x, t)
            k2, l2 = t + 0.5 * h * l1, self._bend(x + 0.5 * h * k1, t + 0.5 * h * l1)
            k3, l3 = t + 0.5 * h * l2, self._bend(x + 0.5 * h * k2, t + 0.5 * h * l2)
            k4, l4 = t + h * l3, self._bend(x + h * k3, t + h * l3)
            x = self.points(*self.angles(x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)))
            t = self.tangent(x, t + h / 6.0 * (l1 + 2.0 * l2 + 2.0 * l3 + l4))
        return x, t

    def tangent(self, x: Floats, way: Floats) -> Floats:
        """(n, 3) unit tangents at `x` along a way."""
        normal, _, _ = self.frame(x)
        t = way - (way * normal).sum(axis=1, keepdims=True) * normal
        return np.asarray(t / np.maximum(np.linalg.norm(t, axis=1, keepdims=True), 1e-300))

    def _bend(self, x: Floats, t: Floats) -> Floats:
        normal, along, around = self.frame(x)
        part = (t * along).sum(axis=1) ** 2
        curvature = ((t * t).sum(axis=1) - part) / self.tube + part * around
        return np.asarray(-curvature[:, None] * normal)


def around_torus(a: Floats, b: Floats, tube: float, ring: float, quadrant: str) -> Touch:
    """The path from `a` to `b` (n, 3) through a torus: a tube of radius `tube` around a circle of radius `ring`.

    A `quadrant` names the half of the circle that the path can touch. Where the iteration does not settle, the path
    stays that around the touching cylinder.
    """
    torus = _Torus(tube, ring)
    centre = ring * _closest(a, b, ring, quadrant)
    inward = -centre / ring
    upward = np.broadcast_to(np.array([0.0, 0.0, -1.0]), a.shape)
    axes = np.stack([inward, upward, cross(inward, upward)], axis=1)

    def local(points: Floats) -> Floats:
        return np.asarray((axes @ (points - centre)[:, :, None])[:, :, 0])

    def back(points: Floats) -> Floats:
        return np.asarray((axes.transpose(0, 2, 1) @ points[:, :, None])[:, :, 0] + centre)

    guess = around_cylinder(local(a), local(b), tube, np.inf, "+x")
    first, last, arc = back(guess.first), back(guess.last), np.array(guess.arc)
    indices = np.flatnonzero(guess.is_engaged)
    touches = np.array(guess.is_engaged)
    if len(indices):
        start, end, length, is_settled = _shot(torus, a[indices], b[indices], first[indices], arc[indices])
        converged = is_settled & (length > 0)
        good = indices[converged]
        first[good], last[good], arc[good] = start[converged], end[converged], length[converged]
        touches[indices[is_settled & (length <= 0)]] = False
    return Touch(touches, first, last, arc)


def _closest(a: Floats, b: Floats, ring: float, quadrant: str) -> Floats:
    """(n, 3) unit vectors from the axis to the point of the circle that is closest to the segment from `a` to `b`."""
    along = b - a

    def at(share: Floats) -> Floats:
        return np.asarray(a + share[:, None] * along)

    def far(share: Floats) -> Floats:
        x = at(share)
        return np.asarray(x[:, 2] ** 2 + (np.hypot(x[:, 0], x[:, 1]) - ring) ** 2)

    shares = np.linspace(0.0, 1.0, _SAMPLES)
    distances = np.stack([far(np.full(len(a), share)) for share in shares])
    if quadrant != "all":
        axis, sign = "xyz".index(quadrant[1]), 1.0 if quadrant[0] == "+" else -1.0
        passes_through = np.stack([sign * at(np.full(len(a), share))[:, axis] for share in shares]) > 0
        distances = np.where(passes_through | ~passes_through.any(axis=0), distances, np.inf)
    best = shares[distances.argmin(axis=0)]
    low, high = np.maximum(best - shares[1], 0.0), np.minimum(best + shares[1], 1.0)
    golden = 0.5 * (np.sqrt(5.0) - 1.0)
    for _ in range(_REFINED):
        lower, upper = high - golden * (high - low), low + golden * (high - low)
        nearer = far(lower) < far(upper)
        low, high = np.where(nearer, low, lower), np.where(nearer, upper, high)
    x = at(0.5 * (low + high))
    out = np.maximum(np.hypot(x[:, 0], x[:, 1]), 1e-300)
    return np.column_stack([x[:, 0] / out, x[:, 1] / out, np.zeros(len(a))])


def _shot(torus: _Torus, a: Floats, b: Floats, first: Floats, arc: Floats) -> tuple[Floats, Floats, Floats, Mask]:
    """First and last point on the tube, length of the geodesic between them, and whether they are found."""
    unknown = np.column_stack([*torus.angles(first), arc / torus.tube])
    is_settled = np.zeros(len(a), dtype=np.bool_)
    left = np.arange(len(a))
    for _ in range(_NEWTON):
        n = len(left)
        trials = np.tile(unknown[left], (4, 1))
        for i in range(3):
            trials[(i + 1) * n : (i + 2) * n, i] += _DIFFERENCE
        misses = _misses(torus, trials, np.tile(a[left], (4, 1)), np.tile(b[left], (4, 1)))[0].reshape(4, n, 3)
        jacobian = (misses[1:] - misses[0]).transpose(1, 2, 0) / _DIFFERENCE
        regular = np.abs(np.linalg.det(jacobian)) > 1e-12
        jacobian = np.where(regular[:, None, None], jacobian, np.eye(3))
        step = -np.linalg.solve(jacobian, misses[0][:, :, None])[:, :, 0]
        size = np.abs(step).max(axis=1)
        unknown[left] += step * np.minimum(1.0, _LONGEST / np.maximum(size, 1e-300))[:, None]
        is_settled[left] = (size <= _SETTLED) & regular
        left = left[(size > _SETTLED) & regular]
        if not len(left):
            break
    _, x, t = _misses(torus, unknown, a, b)
    start = torus.points(unknown[:, 0], unknown[:, 1])
    onward = (((start - a) * torus.tangent(start, start - a)).sum(axis=1) > 0) & (((b - x) * t).sum(axis=1) > 0)
    return start, x, unknown[:, 2] * torus.tube, is_settled & onward


def _misses(torus: _Torus, unknown: Floats, a: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
    """The distances (n, 3) by which the way from `a` is off the tangent plane and the tangent at the end misses `b`;
    that end."""
    x = torus.points(unknown[:, 0], unknown[:, 1])
    way = x - a
    off = (torus.frame(x)[0] * way).sum(axis=1) / np.linalg.norm(way, axis=1)
    x, t = torus.geodesic(x, torus.tangent(x, way), unknown[:, 2] * torus.tube)
    normal, _, _ = torus.frame(x)
    onward = b - x
    onward = onward / np.linalg.norm(onward, axis=1, keepdims=True)
    across = cross(t, normal)
    return np.column_stack([off, (onward * across).sum(axis=1), (onward * normal).sum(axis=1)]), x, t
