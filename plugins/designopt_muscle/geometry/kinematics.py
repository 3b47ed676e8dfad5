"""Where the bodies of a model are, and how they move with each coordinate, in many frames at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from designopt.arrays import Vector
from designopt_muscle.osim.functions import is_constant
from designopt_muscle.osim.model import GROUND, Axis, Joint, OsimModel
from designopt_muscle.osim.places import inverse


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
    for joint, steps in _moving_steps(model):
        parent = rotation[joint.parent]
        turn = parent @ joint.in_parent[:3, :3]
        at = origin[joint.parent] + turned(parent, joint.in_parent[:3, 3])
        for step in steps.translations:
            along = turned(turn, step.axis)
            at = at + along * _value(step, q, n)[:, None]
            if step.coordinate:
                moving[step.coordinate] += along * step.function.slope(q[step.coordinate])[:, None]
        for step, cross_product in steps.rotations:
            if step.coordinate:
                omega = turned(turn, step.axis) * step.function.slope(q[step.coordinate])[:, None]
                turning[step.coordinate] += omega
                moving[step.coordinate] += cross(at, omega)
            turn = turn @ _rotations(cross_product, _value(step, q, n))
        rotation[joint.child] = turn @ steps.back[:3, :3]
        origin[joint.child] = at + turned(turn, steps.back[:3, 3])
    return Kinematics(model, q, rotation, origin, turning, moving)


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps of a joint that are not always 0; rotations with the matrix of their axis' cross product."""

    translations: tuple[Axis, ...]
    rotations: tuple[tuple[Axis, Vector], ...]
    back: Vector


@lru_cache(maxsize=8)
def _moving_steps(model: OsimModel) -> tuple[tuple[Joint, _Steps], ...]:
    def moves(step: Axis) -> bool:
        return not is_constant(step.function) or bool(step.function.value(np.zeros(1))[0])

    def steps(joint: Joint) -> _Steps:
        rotations = tuple((step, _cross_matrix(step.axis)) for step in joint.rotations if moves(step))
        return _Steps(tuple(step for step in joint.translations if moves(step)), rotations, inverse(joint.in_child))

    return tuple((joint, steps(joint)) for joint in model.joints)


def _value(step: Axis, q: dict[str, Vector], n: int) -> Vector:
    return step.function.value(q[step.coordinate] if step.coordinate else np.zeros(n))


def _cross_matrix(axis: Vector) -> Vector:
    x, y, z = axis
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def rotations(axis: Vector, angle: Vector) -> Vector:
    """(n, 3, 3) turns by `angle` (n,) about the unit vector `axis` (3,) (Rodrigues)."""
    return _rotations(_cross_matrix(axis), angle)


def _rotations(k: Vector, angle: Vector) -> Vector:
    s, c = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
    return np.asarray(_UNIT + s * k + (1.0 - c) * (k @ k))


_UNIT = np.eye(3)


def turned(rotation: Vector, vector: Vector) -> Vector:
    """(n, 3) R v of R (n, 3, 3) and v (3,) or (n, 3)."""
    return np.asarray((rotation * vector[..., None, :]).sum(axis=-1))


def cross(a: Vector, b: Vector) -> Vector:
    """(..., 3) a x b."""
    product = np.empty(np.broadcast_shapes(a.shape, b.shape))
    product[..., 0] = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    product[..., 1] = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    product[..., 2] = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return product
