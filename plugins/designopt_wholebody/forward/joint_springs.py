"""Springs, dampers and actuators about the axes of revolute joints.

The angle is that of a vector of the distal segment in the plane across the axis: θ = atan2(e·p, e·d), where d and
p = n × d move with the proximal segment and e = d in the static posture. Both products are quadratic in q, so that the
generalised force τ ∂θ/∂q and its derivatives are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.model.schema import GROUND, Joint, TurningSpring
from designopt_wholebody.subject import Subject


@dataclass(frozen=True, eq=False)
class JointSpringForce:
    """A `spring` about an axis; e·d = ½ q̂ᵀ A q̂ and e·p = ½ q̂ᵀ B q̂ with q̂ = (q, 1), A and B (n + 1, n + 1)."""

    spring: TurningSpring
    A: Floats
    B: Floats

    def angle(self, q: Floats) -> float:
        """θ rad for q (n,)."""
        a, b, _, _ = self._products(q)
        return float(np.arctan2(b, a))

    def value(self, q: Floats, qdot: Floats) -> Floats:
        """(n,) generalised forces."""
        g = self._slope(q)
        return np.asarray(self._torque(q, float(g @ qdot)) * g)

    def energy(self, q: Floats) -> float:
        """J of the spring, and of its actuator."""
        angle = self.angle(q)
        return 0.5 * self.spring.stiffness * (angle - self._rest) ** 2 - self.spring.torque * angle

    def derivatives(self, q: Floats, qdot: Floats) -> tuple[Floats, Floats]:
        """(n, n) -∂Q/∂q and -∂Q/∂q̇."""
        a, b, da, db = self._products(q)
        square = a * a + b * b
        g = (a * db - b * da) / square
        H = np.outer(db, da) - np.outer(da, db) + a * self.B[:-1, :-1] - b * self.A[:-1, :-1]
        H = H / square - 2.0 * np.outer(g, a * da + b * db) / square
        tau = self._torque(q, float(g @ qdot))
        c = self.spring.damping
        K = self.spring.stiffness * np.outer(g, g) + c * np.outer(g, H.T @ qdot) - tau * H
        return K, c * np.outer(g, g)

    @property
    def _rest(self) -> float:
        return float(np.deg2rad(self.spring.rest))

    def _torque(self, q: Floats, rate: float) -> float:
        s = self.spring
        return -s.stiffness * (self.angle(q) - self._rest) - s.damping * rate + s.torque

    def _products(self, q: Floats) -> tuple[float, float, Floats, Floats]:
        longer = np.append(q, 1.0)
        Aq, Bq = self.A @ longer, self.B @ longer
        return 0.5 * float(longer @ Aq), 0.5 * float(longer @ Bq), Aq[:-1], Bq[:-1]

    def _slope(self, q: Floats) -> Floats:
        a, b, da, db = self._products(q)
        return np.asarray((a * db - b * da) / (a * a + b * b))


def joint_springs(subject: Subject) -> tuple[JointSpringForce, ...]:
    """The springs on the joints of a subject's model."""
    joints = subject.model.joints.values()
    return tuple(_joint_spring(subject, joint, joint.spring) for joint in joints if joint.spring is not None)


def _joint_spring(subject: Subject, joint: Joint, spring: TurningSpring) -> JointSpringForce:
    axis = _static_axis(subject, joint)
    across = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    d = across / np.linalg.norm(across)
    e = _direction(subject, joint.distal, d)
    matrices = []
    for fixed_direction in (d, np.cross(axis, d)):
        product = e.T @ _direction(subject, joint.proximal, fixed_direction)
        matrices.append(product + product.T)
    return JointSpringForce(spring, matrices[0], matrices[1])


def _static_axis(subject: Subject, joint: Joint) -> Floats:
    if isinstance(joint.axis, str):
        return subject.bodies[joint.proximal].axes(subject.q0)[:, "uvw".index(joint.axis)]
    assert joint.axis is not None
    line = subject.landmarks[joint.axis[1]] - subject.landmarks[joint.axis[0]]
    return np.asarray(line / np.linalg.norm(line))


def _direction(subject: Subject, segment: str, static: Floats) -> Floats:
    """(3, n + 1): the direction that is `static` in the static posture is this times (q, 1)."""
    rows = np.zeros((3, subject.n + 1))
    if segment == GROUND:
        rows[:, -1] = static
        return rows
    body = subject.bodies[segment]
    rows[:, body.columns] = np.kron(body.direction(body.axes(subject.q0).T @ static), np.eye(3))
    return rows
