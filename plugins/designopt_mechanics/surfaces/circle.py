"""Shortest paths around cylinders and spheres in closed form; arrays of n pairs, in the frame of the surface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Mask
from designopt_mechanics.surfaces.touch import Touch


def around_cylinder(a: Floats, b: Floats, radius: float, length: float, quadrant: str) -> Touch:
    """A cylinder about z: unrolled, the path is a straight line."""
    circle = _circle(a[:, :2], b[:, :2], radius, quadrant)
    plane_length = circle.before + radius * circle.angle + circle.after
    rise = b[:, 2] - a[:, 2]
    slope = rise / np.where(plane_length > 0, plane_length, 1.0)
    z_first = a[:, 2] + slope * circle.before
    z_last = b[:, 2] - slope * circle.after
    off = (np.abs(z_first) > 0.5 * length) & (np.abs(z_last) > 0.5 * length)
    return Touch(
        circle.is_engaged & ~off,
        np.column_stack([circle.first, z_first]),
        np.column_stack([circle.last, z_last]),
        np.asarray(radius * circle.angle * np.sqrt(1.0 + slope**2)),
    )


def around_sphere(a: Floats, b: Floats, radius: float, quadrant: str) -> Touch:
    """A sphere: the path stays in the plane of its ends and the centre."""
    u = a / np.maximum(np.linalg.norm(a, axis=1, keepdims=True), 1e-300)
    v = b - (b * u).sum(axis=1, keepdims=True) * u
    size = np.linalg.norm(v, axis=1, keepdims=True)
    level = size[:, 0] > 1e-12 * np.linalg.norm(b, axis=1)
    spare = np.eye(3)[np.abs(u).argmin(axis=1)]
    spare = spare - (spare * u).sum(axis=1, keepdims=True) * u
    v = np.where(level[:, None], v, spare)
    v = v / np.linalg.norm(v, axis=1, keepdims=True)

    def flat(points: Floats) -> Floats:
        return np.column_stack([(points * u).sum(axis=1), (points * v).sum(axis=1)])

    side = None
    if quadrant != "all":
        axis = np.eye(3)["xyz".index(quadrant[1])] * (1.0 if quadrant[0] == "+" else -1.0)
        side = np.column_stack([u @ axis, v @ axis])
    circle = _circle(flat(a), flat(b), radius, quadrant, side)

    def solid(points: Floats) -> Floats:
        return np.asarray(points[:, :1] * u + points[:, 1:] * v)

    return Touch(circle.is_engaged, solid(circle.first), solid(circle.last), radius * circle.angle)


@dataclass(frozen=True, eq=False)
class _Circle:
    is_engaged: Mask
    first: Floats
    last: Floats
    angle: Floats
    before: Floats
    after: Floats


def _circle(a: Floats, b: Floats, radius: float, quadrant: str, side: Floats | None = None) -> _Circle:
    """The path around a circle (n, 2); `side` (n, 2) or (2,) is the direction of the named side."""
    da, db = np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)
    outside = (da > radius) & (db > radius)
    da, db = np.where(outside, da, 2.0 * radius), np.where(outside, db, 2.0 * radius)
    at_a, at_b = np.arctan2(a[:, 1], a[:, 0]), np.arctan2(b[:, 1], b[:, 0])
    angle, start, end = {}, {}, {}
    for sense in (1.0, -1.0):
        start[sense] = at_a + sense * np.arccos(radius / da)
        end[sense] = at_b - sense * np.arccos(radius / db)
        turn = np.mod(sense * (end[sense] - start[sense]), 2.0 * np.pi)
        angle[sense] = np.where(turn > 2.0 * np.pi - 1e-9, 0.0, turn)
    along = b - a
    span = np.maximum((along**2).sum(axis=1), 1e-300)
    share = -(a * along).sum(axis=1) / span
    nearest = a + np.clip(share, 0.0, 1.0)[:, None] * along
    hits = (np.linalg.norm(nearest, axis=1) < radius) & (share > 0.0) & (share < 1.0)
    if quadrant == "all":
        positive, wraps = angle[1.0] <= angle[-1.0], hits
    else:
        if side is None:
            side = np.eye(2)["xy".index(quadrant[1])] * (1.0 if quadrant[0] == "+" else -1.0)

        def on(points: Floats) -> Floats:
            return np.asarray((points * side).sum(axis=1))

        middle = {s: start[s] + 0.5 * s * angle[s] for s in (1.0, -1.0)}
        heights = {s: on(np.column_stack([np.cos(middle[s]), np.sin(middle[s])])) for s in middle}
        # a way round that is nearly a whole turn has its middle on the named side, too
        both_sides = (heights[1.0] > 0) & (heights[-1.0] > 0)
        positive = np.where(both_sides, angle[1.0] <= angle[-1.0], heights[1.0] >= heights[-1.0])
        a_on, b_on = on(a) > 0, on(b) > 0
        through = (a_on != b_on) & (on(nearest) < 0)
        wraps = (~a_on & ~b_on) | hits | through
    wrap_angle = np.where(positive, angle[1.0], angle[-1.0])
    first, last = np.where(positive, start[1.0], start[-1.0]), np.where(positive, end[1.0], end[-1.0])
    return _Circle(
        np.asarray(outside & wraps),
        radius * np.column_stack([np.cos(first), np.sin(first)]),
        radius * np.column_stack([np.cos(last), np.sin(last)]),
        wrap_angle,
        np.sqrt(da**2 - radius**2),
        np.sqrt(db**2 - radius**2),
    )
