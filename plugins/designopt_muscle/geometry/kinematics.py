"""Where the bodies of a model are, and how they move with each coordinate, in many frames at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from designopt.arrays import Vector
from designopt_muscle.osim.model import GROUND, Axis, OsimModel
from designopt_muscle.osim.poses import inverse


@dataclass(frozen=True, eq=False)
class Kinematics:
    """Poses of n frames. `coordinates` maps every coordinate to its values (n,), those that couplers drive too.

    `rotation` (n, 3, 3) and `origin` (n, 3) of each body. `turning` and `moving` (n, 3) of each coordinate are the
    angular velocity and the velocity, at the origin of the ground, of everything beyond its joint per unit rate.
    """

    model: OsimModel
    coordinates: dict[str, Vector]
    rotation: dict[str, Vector]
    origin: dict[str, Vector]
    turning: dict[str, Vector]
    moving: dict[str, Vector]

    @cached_property
    def beyond(self) -> dict[str, frozenset[str]]:
        """Of each coordinate, the bodies that move with it."""
        below = {GROUND: {GROUND}, **{joint.child: {joint.child} for joint in self.model.joints}}
        for joint in reversed(self.model.joints):
            below[joint.parent] |= below[joint.child]
        child = {joint.name: joint.child for joint in self.model.joints}
        return {c.name: frozenset(below[child[c.joint]]) for c in self.model.coordinates}

    def position(self, body: str, points: Vector) -> Vector:
        """Points (3,) or (n, 3) of a body in the ground."""
        return self.origin[body] + turned(self.rotation[body], points)


def kinematics(model: OsimModel, values: dict[str, Vector]) -> Kinematics:
    """Poses for the `values` (n,) of the free coordinates; driven ones are computed, others take their defaults.

    Raises `ValueError` for names that are no coordinates and arrays that do not fit.
    """
    if unknown := sorted(set(values) - set(model.names)):
        raise ValueError(f"'{unknown[0]}' is not a coordinate of the model '{model.name}'")
    sizes = {len(v) for v in values.values()}
    if len(sizes) > 1:
        raise ValueError(f"coordinates have {sorted(sizes)} frames; all must have the same number")
    n = sizes.pop() if sizes else 1
    q = {c.name: np.asarray(values.get(c.name, np.full(n, c.default)), dtype=np.float64) for c in model.coordinates}
    for coupler in model.couplers:
        q[coupler.dependent] = coupler.function.value(q[coupler.independent])
    rotation = {GROUND: np.broadcast_to(np.eye(3), (n, 3, 3))}
    origin = {GROUND: np.zeros((n, 3))}
    turning = {name: np.zeros((n, 3)) for name in model.names}
    moving = {name: np.zeros((n, 3)) for name in model.names}
    for joint in model.joints:
        base = rotation[joint.parent] @ joint.in_parent[:3, :3]
        at = origin[joint.parent] + turned(rotation[joint.parent], joint.in_parent[:3, 3])
        for step in joint.translations:
            at = at + turned(base, step.axis) * _value(step, q, n)[:, None]
        for step in joint.translations:
            if step.coordinate:
                rate = step.function.slope(q[step.coordinate])
                moving[step.coordinate] += turned(base, step.axis) * rate[:, None]
        turn = base
        for step in joint.rotations:
            if step.coordinate:
                rate = step.function.slope(q[step.coordinate])
                omega = turned(turn, step.axis) * rate[:, None]
                turning[step.coordinate] += omega
                moving[step.coordinate] += cross(at, omega)
            turn = turn @ rotations(step.axis, _value(step, q, n))
        back = inverse(joint.in_child)
        rotation[joint.child] = turn @ back[:3, :3]
        origin[joint.child] = at + turned(turn, back[:3, 3])
    return Kinematics(model, q, rotation, origin, turning, moving)


def _value(step: Axis, q: dict[str, Vector], n: int) -> Vector:
    return step.function.value(q[step.coordinate] if step.coordinate else np.zeros(n))


def rotations(axis: Vector, angle: Vector) -> Vector:
    """(n, 3, 3) turns by `angle` (n,) about the unit vector `axis` (3,) (Rodrigues)."""
    x, y, z = axis
    k = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    s, c = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
    return np.asarray(np.eye(3) + s * k + (1.0 - c) * (k @ k))


def turned(rotation: Vector, vector: Vector) -> Vector:
    """(n, 3) R v of R (n, 3, 3) and v (3,) or (n, 3)."""
    return np.asarray((rotation * vector[..., None, :]).sum(axis=-1))


def cross(a: Vector, b: Vector) -> Vector:
    """(..., 3) a x b."""
    x = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    y = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    z = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return np.stack([x, y, z], axis=-1)
