"""Forces from outside on segments (plates, weights, hands of others), and the loads of joints that follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt_wholebody.dynamics.rotation import angular_matrix
from designopt_wholebody.subject import Subject

#: m/s^2, Y up.
GRAVITY = np.array([0.0, -9.81, 0.0])


@dataclass(frozen=True, eq=False)
class Loads:
    """Wrenches exerted on segments: `force` (f, k, 3) N and `moment` (f, k, 3) N m about the laboratory's origin.

    `bodies` names the segment of each of the k wrenches. Raises `ValueError` for shapes that do not fit.
    """

    bodies: tuple[str, ...]
    force: Floats
    moment: Floats

    def __post_init__(self) -> None:
        expected_shape = (len(self.force), len(self.bodies), 3)
        if self.force.shape != expected_shape or self.moment.shape != expected_shape:
            raise ValueError(
                f"force {self.force.shape} and moment {self.moment.shape} of {len(self.bodies)} loads are"
                f" {expected_shape}"
            )

    @staticmethod
    def zero(frames: int) -> Loads:
        """No loads at all."""
        return Loads((), np.zeros((frames, 0, 3)), np.zeros((frames, 0, 3)))

    def at_frames(self, frames: Integers | slice) -> Loads:
        """The loads of some of the frames."""
        return Loads(self.bodies, self.force[frames], self.moment[frames])

    @property
    def complete_frames(self) -> Mask:
        """(f,) frames in which every load is a finite number."""
        return np.asarray(np.isfinite(self.force).all(axis=(1, 2)) & np.isfinite(self.moment).all(axis=(1, 2)))


def generalised_forces(subject: Subject, q: Floats, loads: Loads, gravity: Floats = GRAVITY) -> Floats:
    """(f, n) generalised forces of weight and `loads` for q (f, n) (Nunes 2017, 2.31, 5.9; torques as Gᵀ h)."""
    Q = np.zeros_like(q)
    for body in subject.bodies.values():
        weight = np.outer(body.point(body.inertia.centre), body.inertia.mass * gravity)
        Q[:, body.columns] += weight.reshape(-1)
    for k, name in enumerate(loads.bodies):
        body = subject.bodies[name]
        first = body.triples_of(q)[:, 0]
        force = loads.force[:, k]
        Q[:, body.start : body.start + 3] += force
        about_first = loads.moment[:, k] - np.cross(first, force)
        Q[:, body.columns] += np.einsum("fis,fi->fs", angular_matrix(body, q), about_first)
    return Q


@dataclass(frozen=True, eq=False)
class JointLoads:
    """Joint forces `force` (f, k, 3) N and torques `torque` (f, k, 3) N m in the laboratory's axes.

    They act on the segment `bodies[k]`, away from the root, at joint `joints[k]`; on the other segment act their
    opposites. `residual_force` (f, 3) acts on the root at its root point and `residual_torque` (f, 3) on the root: what
    motion and measured loads leave unexplained (0 for a subject that hangs on the ground). Frames without a result are
    NaN.
    """

    joints: tuple[str, ...]
    bodies: tuple[str, ...]
    force: Floats
    torque: Floats
    residual_force: Floats
    residual_torque: Floats

    def at(self, joint: str) -> tuple[Floats, Floats]:
        """(f, 3) force and torque of one joint; raises `KeyError` with a sentence for an unknown one."""
        if joint not in self.joints:
            raise KeyError(f"there is no joint '{joint}' in the tree; known: {', '.join(self.joints)}")
        k = self.joints.index(joint)
        return self.force[:, k], self.torque[:, k]

    def difference(self, second: JointLoads) -> float:
        """Largest difference in any force (N) or torque (N m) of frames that both have."""
        pairs = (
            (self.force, second.force),
            (self.torque, second.torque),
            (self.residual_force, second.residual_force),
            (self.residual_torque, second.residual_torque),
        )
        return max(float(np.nanmax(np.abs(a - b), initial=0.0)) for a, b in pairs)
