"""Where the bodies of a model are, and how they move with each coordinate, in many frames at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from designopt_mechanics.surfaces.touch import cross as cross

from designopt.arrays import Floats, Integers
from designopt_muscle.osim.functions import Polynomial, is_constant
from designopt_muscle.osim.model import GROUND, Axis, Joint, OsimModel
from designopt_muscle.osim.poses import inverse


@dataclass(frozen=True, eq=False)
class Kinematics:
    """Poses of n frames. `coordinates` maps every coordinate to its values (n,), those that couplers drive too.

    `rotation` (n, 3, 3) and `origin` (n, 3) of each body. `turning` and `moving` (n, 3) of each coordinate are the
    angular velocity and the velocity, at the origin of the ground, of everything beyond its joint per unit rate.
    """

    model: OsimModel
    coordinates: Mapping[str, Floats]
    rotation: Mapping[str, Floats]
    origin: Mapping[str, Floats]
    turning: Mapping[str, Floats]
    moving: Mapping[str, Floats]

    @cached_property
    def beyond(self) -> dict[str, frozenset[str]]:
        """The bodies that move with each coordinate."""
        below = {GROUND: {GROUND}, **{joint.child: {joint.child} for joint in self.model.joints}}
        for joint in reversed(self.model.joints):
            below[joint.parent] |= below[joint.child]
        child = {joint.name: joint.child for joint in self.model.joints}
        return {c.name: frozenset(below[child[c.joint]]) for c in self.model.coordinates}

    def position(self, body: str, points: Floats) -> Floats:
        """Points (3,) or (n, 3) of a body in the ground."""
        return self.origin[body] + rotate(self.rotation[body], points)

    def take(self, frames: Integers) -> Kinematics:
        """Some of the frames, or the same ones several times; arrays are taken when they are used."""
        parts = (self.coordinates, self.rotation, self.origin, self.turning, self.moving)
        return Kinematics(self.model, *(_Frames(part, frames) for part in parts))


@dataclass(frozen=True, eq=False)
class _Frames(Mapping[str, Floats]):
    """Some `frames` of the `arrays`: at the rate of force plates those of all bodies would fill the memory."""

    arrays: Mapping[str, Floats]
    frames: Integers

    def __getitem__(self, name: str) -> Floats:
        return self.arrays[name][self.frames]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)


def kinematics(model: OsimModel, values: dict[str, Floats]) -> Kinematics:
    """Poses for the `values` (n,) of the free coordinates; driven ones are computed, others take their defaults.

    Raises `ValueError` for names that are no coordinates and arrays that do not fit.
    """
    if unknown := sorted(set(values) - set(model.names)):
        raise ValueError(f"'{unknown[0]}' is not a coordinate of the model '{model.name}'")
    sizes = {len(v) for v in values.values()}
    if len(sizes) > 1:
        raise ValueError(f"coordinates have {sorted(sizes)} frames; all must have the same number")
    n = sizes.pop() if sizes else 1
    q = all_coordinates(model, values, n)
    rotation = {GROUND: np.broadcast_to(np.eye(3), (n, 3, 3))}
    origin = {GROUND: np.zeros((n, 3))}
    turning = {name: np.zeros((n, 3)) for name in model.names}
    moving = {name: np.zeros((n, 3)) for name in model.names}
    joints, about = _moving_steps(model)
    angles = [_value(step, q, n) for _, steps in joints for step, _ in steps.rotations]
    turns = iter(_rotations(about, np.array(angles).reshape(-1, n)))
    turned_by: list[tuple[str, Floats, Floats]] = []
    for joint, steps in joints:
        turn, at = _offset(rotation[joint.parent], origin[joint.parent], steps.ahead)
        for step, unit in steps.translations:
            along = _axis_in_ground(turn, step.axis, unit)
            at = at + along * _value(step, q, n)[:, None]
            if step.coordinate:
                moving[step.coordinate] += _per_rate(along, step, q)
        for step, unit in steps.rotations:
            if step.coordinate:
                omega = _per_rate(_axis_in_ground(turn, step.axis, unit), step, q)
                turning[step.coordinate] += omega
                turned_by.append((step.coordinate, at, omega))
            turn = turn @ next(turns)
        rotation[joint.child], origin[joint.child] = _offset(turn, at, steps.back)
    if turned_by:
        names, points, omegas = zip(*turned_by, strict=True)
        for name, velocity in zip(names, cross(np.array(points), np.array(omegas)), strict=True):
            moving[name] += velocity
    return Kinematics(model, q, rotation, origin, turning, moving)


def all_coordinates(model: OsimModel, values: dict[str, Floats], n: int) -> dict[str, Floats]:
    """Values (n,) of every coordinate: those in `values`, defaults for others, and those that couplers drive."""
    q = {
        c.name: np.asarray(values[c.name], dtype=np.float64) if c.name in values else np.full(n, c.default)
        for c in model.coordinates
    }
    for coupler in model.couplers:
        q[coupler.dependent] = coupler.function.value(q[coupler.independent])
    return q


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps of a joint that are not always 0, with the number of a unit axis (see `_axis_in_ground`).

    `ahead` and `back` are the poses (3, 3), (3,) of the joint in the parent and of the child in it; None where a
    rotation or translation is none.
    """

    translations: tuple[tuple[Axis, int], ...]
    rotations: tuple[tuple[Axis, int], ...]
    ahead: tuple[Floats | None, Floats | None]
    back: tuple[Floats | None, Floats | None]


@lru_cache(maxsize=8)
def _moving_steps(model: OsimModel) -> tuple[tuple[tuple[Joint, _Steps], ...], tuple[Floats, Floats]]:
    """The joints of a model; of all their rotations (r) in turn, the matrices (r, 1, 3, 3) of the axis' cross product
    and its square."""

    def moves(step: Axis) -> bool:
        return not is_constant(step.function) or bool(step.function.value(np.zeros(1))[0])

    def parts(pose: Floats) -> tuple[Floats | None, Floats | None]:
        turn, shift = pose[:3, :3], pose[:3, 3]
        return None if (turn == np.eye(3)).all() else turn, shift if shift.any() else None

    def steps(joint: Joint) -> _Steps:
        rotations = tuple((s, _unit(s.axis)) for s in joint.rotations if moves(s))
        translations = tuple((s, _unit(s.axis)) for s in joint.translations if moves(s))
        return _Steps(translations, rotations, parts(joint.in_parent), parts(inverse(joint.in_child)))

    joints = tuple((joint, steps(joint)) for joint in model.joints)
    about = np.array([_cross_matrices(s.axis) for _, parts in joints for s, _ in parts.rotations])
    cross_products, squares = about.reshape(-1, 2, 1, 3, 3).swapaxes(0, 1)
    return joints, (cross_products, squares)


def _offset(rotation: Floats, origin: Floats, pose: tuple[Floats | None, Floats | None]) -> tuple[Floats, Floats]:
    """Rotation (n, 3, 3) and origin (n, 3) of a frame fixed with a pose in another one."""
    turn, shift = pose
    return (
        rotation if turn is None else rotation @ turn,
        origin if shift is None else origin + rotate(rotation, shift),
    )


def _axis_in_ground(turn: Floats, axis: Floats, unit: int) -> Floats:
    """(n, 3) an axis of a joint in the ground: mostly that with the number `unit`, -1 if it is none of x, y and z."""
    return rotate(turn, axis) if unit < 0 else turn[:, :, unit] * axis[unit]


def _unit(axis: Floats) -> int:
    indices = np.flatnonzero(axis)
    return int(indices[0]) if len(indices) == 1 else -1


def _value(step: Axis, q: dict[str, Floats], n: int) -> Floats:
    return step.function.value(q[step.coordinate] if step.coordinate else np.zeros(n))


def _per_rate(along: Floats, step: Axis, q: dict[str, Floats]) -> Floats:
    """`along` (n, 3) times the rate of the `step` per unit rate of its coordinate, which mostly is the step itself."""
    return along if step.function == _ITSELF else along * step.function.slope(q[step.coordinate])[:, None]


_ITSELF = Polynomial((1.0, 0.0))


def _cross_matrices(axis: Floats) -> tuple[Floats, Floats]:
    x, y, z = axis
    k = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return k, k @ k


def rotations(axis: Floats, angle: Floats) -> Floats:
    """(n, 3, 3) turns by `angle` (n,) about the unit vector `axis` (3,) (Rodrigues)."""
    return _rotations(_cross_matrices(axis), angle)


def _rotations(about: tuple[Floats, Floats], angle: Floats) -> Floats:
    s, c = np.sin(angle)[..., None, None], np.cos(angle)[..., None, None]
    return np.asarray(_UNIT + s * about[0] + (1.0 - c) * about[1])


_UNIT = np.eye(3)


def rotate(rotation: Floats, vector: Floats) -> Floats:
    """(n, 3) R v of R (n, 3, 3) and v (3,) or (n, 3)."""
    x, y, z = (rotation[..., i] * vector[..., i, None] for i in range(3))
    return np.asarray(x + y + z)
