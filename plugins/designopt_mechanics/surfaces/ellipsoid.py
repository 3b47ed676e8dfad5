"""The shortest path around an ellipsoid: a geodesic tangent to the straight segments at both ends, found by shooting.

On the sphere to which the ellipsoid is scaled, the tangent points of an end form a circle: one unknown angle. From
there the geodesic is integrated; the angle and the arc length are solved such that the tangent at its other end passes
through the other end of the path (Newton's method, all frames at once).
"""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats, Mask
from designopt_mechanics.surfaces.circle import around_sphere
from designopt_mechanics.surfaces.touch import Touch, cross

#: Steps of the integration: the first number that gives so many for each mean half axis of the longest arc.
_STEPS, _DENSITY = (16, 32, 64, 128), 16.0
#: Points that measure a plane section.
_POINTS = 129
_NEWTON = 15
#: Differences that make Newton's matrix, and a step that ends the iteration (rad, and shares of the mean half axis).
_DIFFERENCE, _SETTLED = 1e-6, 1e-10
#: Longest step of Newton's method, as the one that ends it.
_LONGEST = 0.3


def around_ellipsoid(a: Floats, b: Floats, axes: Floats, quadrant: str) -> Touch:
    """The path from `a` to `b` (n, 3) around the ellipsoid with half `axes` (3,) in its frame.

    It starts from the plane section of the scaled sphere, and stays it where the iteration does not settle.
    """
    guess = around_sphere(a / axes, b / axes, 1.0, quadrant)
    indices = np.flatnonzero(guess.is_engaged)
    first, last = guess.first * axes, guess.last * axes
    arc = _section(guess, axes)
    if not len(indices):
        return Touch(guess.is_engaged, first, last, arc)
    angle, length, is_settled = _shot(a[indices], b[indices], axes, guess.first[indices], arc[indices])
    start = _Silhouette(a[indices] / axes)
    _, x, t = _misses(start, angle, length, a[indices], b[indices], axes)
    converged = is_settled & (length > 0) & (((b[indices] - x) * t).sum(axis=1) > 0)
    good = indices[converged]
    first[good], last[good], arc[good] = (start.points(angle) * axes)[converged], x[converged], length[converged]
    touches = np.array(guess.is_engaged)
    touches[indices[is_settled & (length <= 0)]] = False
    return Touch(touches, first, last, arc)


def _shot(a: Floats, b: Floats, axes: Floats, guess: Floats, length: Floats) -> tuple[Floats, Floats, Mask]:
    """The angle on the silhouette and the length (n,) of the geodesic from there that leads to `b`, and whether they
    are found; from the points `guess` (n, 3) of the scaled sphere and a `length`."""
    angle, length = _Silhouette(a / axes).angle(guess), np.array(length)
    is_settled = np.zeros(len(a), dtype=np.bool_)
    size = float(axes.mean())
    left = np.arange(len(a))
    for _ in range(_NEWTON):
        n = len(left)
        ends, targets = np.tile(a[left], (3, 1)), np.tile(b[left], (3, 1))
        angles, lengths = np.tile(angle[left], 3), np.tile(length[left], 3)
        angles[n : 2 * n] += _DIFFERENCE
        lengths[2 * n :] += _DIFFERENCE * size
        error, by_angle, by_length = np.split(
            _misses(_Silhouette(ends / axes), angles, lengths, ends, targets, axes)[0], 3
        )
        by_angle, by_length = (by_angle - error) / _DIFFERENCE, (by_length - error) / _DIFFERENCE
        determinant = by_angle[:, 0] * by_length[:, 1] - by_angle[:, 1] * by_length[:, 0]
        determinant = np.where(np.abs(determinant) > 1e-300, determinant, 1e-300)
        turn = -(error[:, 0] * by_length[:, 1] - error[:, 1] * by_length[:, 0]) / determinant
        grow = -(by_angle[:, 0] * error[:, 1] - by_angle[:, 1] * error[:, 0]) / determinant
        step = np.maximum(np.abs(turn), np.abs(grow))
        shorter = np.minimum(1.0, _LONGEST / np.maximum(step, 1e-300))
        angle[left] += shorter * turn
        length[left] += shorter * grow * size
        is_settled[left] = step <= _SETTLED
        left = left[step > _SETTLED]
        if not len(left):
            break
    return angle, length, is_settled


class _Silhouette:
    """The circle of the unit sphere at which tangents from `a` (n, 3) touch it."""

    def __init__(self, a: Floats) -> None:
        distance = np.linalg.norm(a, axis=1, keepdims=True)
        self.axis = a / distance
        self.middle = self.axis / distance
        self.radius = np.sqrt(np.maximum(1.0 - 1.0 / distance**2, 0.0))
        spare = np.eye(3)[np.abs(self.axis).argmin(axis=1)]
        first_axis = cross(self.axis, spare)
        self.first_axis = first_axis / np.linalg.norm(first_axis, axis=1, keepdims=True)
        self.across = cross(self.axis, self.first_axis)

    def points(self, angle: Floats) -> Floats:
        c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
        return np.asarray(self.middle + self.radius * (c * self.first_axis + s * self.across))

    def angle(self, points: Floats) -> Floats:
        return np.asarray(np.arctan2((points * self.across).sum(axis=1), (points * self.first_axis).sum(axis=1)))


def _misses(
    start: _Silhouette, angle: Floats, length: Floats, a: Floats, b: Floats, axes: Floats
) -> tuple[Floats, Floats, Floats]:
    """The distances (n, 2), across and off the surface, by which the tangent at the end of the geodesic misses `b`, and
    that end."""
    x = start.points(angle) * axes
    t = x - a
    x, t = _geodesic(x, t / np.linalg.norm(t, axis=1, keepdims=True), length, axes)
    normal = x / axes**2
    normal = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    way = b - x
    way = way / np.linalg.norm(way, axis=1, keepdims=True)
    across = cross(t, normal)
    return np.column_stack([(way * across).sum(axis=1), (way * normal).sum(axis=1)]), x, t


def _geodesic(x: Floats, t: Floats, length: Floats, axes: Floats) -> tuple[Floats, Floats]:
    """The point and the tangent after `length` (n,) along the geodesic from `x` with the unit tangent `t`."""
    longest = float(np.abs(length).max(initial=0.0)) / float(axes.mean())
    steps = next((n for n in _STEPS if n >= _DENSITY * longest), _STEPS[-1])
    h = (length / steps)[:, None]

    def bend(at: Floats, along: Floats) -> Floats:
        normal = at / axes**2
        curvature = (along**2 / axes**2).sum(axis=1) / (normal**2).sum(axis=1)
        return np.asarray(-curvature[:, None] * normal)

    for _ in range(steps):  # the classical method of order 4
        k1, l1 = t, bend(x, t)
        k2, l2 = t + 0.5 * h * l1, bend(x + 0.5 * h * k1, t + 0.5 * h * l1)
        k3, l3 = t + 0.5 * h * l2, bend(x + 0.5 * h * k2, t + 0.5 * h * l2)
        k4, l4 = t + h * l3, bend(x + h * k3, t + h * l3)
        x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        t = t + h / 6.0 * (l1 + 2.0 * l2 + 2.0 * l3 + l4)
    return x, t


def _section(guess: Touch, axes: Floats) -> Floats:
    """The length of the plane section between the points of `guess`, which is of the scaled sphere."""
    u = guess.first
    v = guess.last - (guess.last * u).sum(axis=1, keepdims=True) * u
    v = v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300)
    long_way = guess.arc > np.pi
    v = np.where(long_way[:, None], -v, v)
    share = np.linspace(0.0, 1.0, _POINTS)[:, None, None] * guess.arc[:, None]
    points = (np.cos(share) * u + np.sin(share) * v) * axes
    return np.asarray(np.linalg.norm(np.diff(points, axis=0), axis=2).sum(axis=0))
