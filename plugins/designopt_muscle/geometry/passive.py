"""What the passive forces of a model do in many frames: forces on bodies, and generalised forces at coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt_muscle.geometry.geometry import measure, path_length
from designopt_muscle.geometry.kinematics import Kinematics, cross, kinematics, rotate
from designopt_muscle.geometry.paths import WrappedPath, wrapped_paths
from designopt_muscle.osim.model import GROUND, Bushing, CoordinateForce, OsimModel


@dataclass(frozen=True, eq=False)
class PassiveAction:
    """Passive forces in n frames: `values` (n, f) of the f forces by name: N m or N at a coordinate, the tension N
    along a path, the norm of the force N of a bushing. `coordinates` (n,) are generalised forces at coordinates,
    `bodies` (n, 6) force (N) and moment (N m) about the origin of the ground on bodies.
    """

    names: tuple[str, ...]
    values: Floats
    coordinates: dict[str, Floats]
    bodies: dict[str, Floats]

    def moments(self, model: OsimModel, motion: Kinematics) -> Floats:
        """(n, m) generalised forces at the free coordinates of a model, all that acts on bodies included."""
        total, n = dict(self.coordinates), len(self.values)
        for name in model.names:
            wrench = sum((w for b, w in self.bodies.items() if b in motion.beyond[name]), np.zeros((n, 6)))
            along = motion.moving[name] * wrench[:, :3] + motion.turning[name] * wrench[:, 3:]
            _add(total, name, along.sum(axis=1))
        return at_coordinates(model, total, motion.coordinates)


def at_coordinates(model: OsimModel, forces: Mapping[str, Floats], values: Mapping[str, Floats]) -> Floats:
    """(n, m) at the free coordinates of generalised `forces` (n,) by name; those of driven ones are at the drivers."""
    total = {name: np.array(forces.get(name, np.zeros(len(next(iter(values.values())))))) for name in model.names}
    for coupler in model.couplers:
        total[coupler.independent] += total[coupler.dependent] * coupler.function.slope(values[coupler.independent])
    return np.column_stack([total[name] for name in model.free])


def passive_action(model: OsimModel, values: Mapping[str, Floats], rates: Mapping[str, Floats]) -> PassiveAction:
    """The passive forces of a model for `values` and `rates` (n,) of its coordinates by name.

    Coordinates that are not given have their defaults and do not move; those that couplers drive are computed.
    """
    motion = kinematics(model, dict(values))
    n = len(motion.origin[GROUND])
    speeds = {name: np.asarray(rates.get(name, np.zeros(n)), dtype=float) for name in model.names}
    for coupler in model.couplers:
        slope = coupler.function.slope(motion.coordinates[coupler.independent])
        speeds[coupler.dependent] = slope * speeds[coupler.independent]
    surfaces = {wrap.name: wrap for wrap in model.wraps}
    action = PassiveAction(tuple(f.name for f in model.passive), np.zeros((n, len(model.passive))), {}, {})
    for i, force in enumerate(model.passive):
        if isinstance(force, CoordinateForce):
            q, u = motion.coordinates[force.coordinate], speeds[force.coordinate]
            action.values[:, i] = force.law.force(q, u)
            _add(action.coordinates, force.coordinate, action.values[:, i])
        elif isinstance(force, Bushing):
            action.values[:, i] = _bushing(force, motion, speeds, action.bodies)
        else:
            names = model.names
            rate = np.stack([speeds[name] for name in names])
            for path in wrapped_paths(force, surfaces, motion):
                slopes = np.zeros((len(names), n))
                length = measure(path, motion, names, slopes)
                speed = (slopes * rate).sum(axis=0)[path.frames]
                action.values[path.frames, i] = force.law.tension(length, speed)
                _pull(path, action.values[:, i], action.bodies)
    return action


def _add(sums: dict[str, Floats], name: str, part: Floats) -> None:
    sums[name] = sums[name] + part if name in sums else part


def _pull(path: WrappedPath, tension: Floats, bodies: dict[str, Floats]) -> None:
    """Add the forces of a path with a `tension` (n,) on the bodies of its nodes."""
    for node, slope in zip(path.nodes, path_length(path)[1], strict=True):
        wrench = np.zeros((len(tension), 6))
        force = -tension[path.frames, None] * slope
        wrench[path.frames] = np.concatenate([force, cross(node.x, force)], axis=1)
        _add(bodies, node.body, wrench)


def _bushing(force: Bushing, motion: Kinematics, speeds: Mapping[str, Floats], bodies: dict[str, Floats]) -> Floats:
    """Add the force and moment of a bushing on both bodies; the norm (n,) of its force.

    The deflections are the body-fixed angles x-y-z and the position of the second frame in the first, and the forces
    those along them (Simbody's ``LinearBushing``).
    """
    (body, pose), (second, second_pose) = force.frames
    turn, at = motion.rotation[body] @ pose[:3, :3], motion.position(body, pose[:3, 3])
    second_turn, second_at = motion.rotation[second] @ second_pose[:3, :3], motion.position(second, second_pose[:3, 3])
    back = turn.transpose(0, 2, 1)
    relative, offset = back @ second_turn, rotate(back, second_at - at)
    spin, speed = _relative_speed(motion, speeds, body, second, second_at)
    angles = np.stack(
        [
            np.arctan2(-relative[:, 1, 2], relative[:, 2, 2]),
            np.arcsin(np.clip(relative[:, 0, 2], -1.0, 1.0)),
            np.arctan2(-relative[:, 0, 1], relative[:, 0, 0]),
        ],
        axis=1,
    )
    rates = _angle_rates(angles)
    angle_speed = rotate(rates, rotate(second_turn.transpose(0, 2, 1), spin))
    pull = -force.stiffness[3:] * offset - force.damping[3:] * rotate(back, speed)
    twist = -force.stiffness[:3] * angles - force.damping[:3] * angle_speed
    pull_in_ground = rotate(turn, pull)
    moment = rotate(second_turn, rotate(rates.transpose(0, 2, 1), twist)) + cross(second_at, pull_in_ground)
    wrench = np.concatenate([pull_in_ground, moment], axis=1)
    _add(bodies, second, wrench)
    _add(bodies, body, -wrench)
    return np.asarray(np.linalg.norm(pull, axis=1))


def _relative_speed(
    motion: Kinematics, speeds: Mapping[str, Floats], body: str, second: str, at: Floats
) -> tuple[Floats, Floats]:
    """Angular velocity of `second` relative to `body` and the velocity of its point `at`, seen from `body` (n, 3)."""
    spin, slide = np.zeros_like(at), np.zeros_like(at)
    for name, rate in speeds.items():
        sign = float(second in motion.beyond[name]) - float(body in motion.beyond[name])
        spin += sign * motion.turning[name] * rate[:, None]
        slide += sign * motion.moving[name] * rate[:, None]
    return spin, slide + cross(spin, at)


def _angle_rates(angles: Floats) -> Floats:
    """(n, 3, 3) from the angular velocity in the turned frame to the rates of its body-fixed angles x-y-z."""
    s, c = np.sin(angles), np.cos(angles)
    matrix = np.zeros((len(angles), 3, 3))
    matrix[:, 0, 0], matrix[:, 0, 1] = c[:, 2] / c[:, 1], -s[:, 2] / c[:, 1]
    matrix[:, 1, 0], matrix[:, 1, 1] = s[:, 2], c[:, 2]
    matrix[:, 2, 0], matrix[:, 2, 1] = -s[:, 1] * c[:, 2] / c[:, 1], s[:, 1] * s[:, 2] / c[:, 1]
    matrix[:, 2, 2] = 1.0
    return matrix
