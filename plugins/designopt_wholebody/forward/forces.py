"""Generalised forces of a simulation: weight, springs with dampers between points and at joints, and given forces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.dynamics.loads import GRAVITY
from designopt_wholebody.forward.joint_springs import JointSpringForce
from designopt_wholebody.model.schema import GROUND, PointSpring
from designopt_wholebody.subject import Subject

#: Below this distance of its ends the direction of a spring is not defined.
_SHORTEST = 1e-9


@dataclass(frozen=True, eq=False)
class Forces:
    """The forces of a simulation of `subject`.

    `springs` act between points, `joint_springs` about the axes of joints; those of the subject's model file act only
    if they are given here, too. `external` is a function of time (s) that gives further generalised forces (n,), for
    example those that inverse dynamics found.
    """

    subject: Subject
    springs: tuple[PointSpring, ...] = ()
    gravity: Floats = field(default_factory=GRAVITY.copy)
    external: Callable[[float], Floats] | None = None
    joint_springs: tuple[JointSpringForce, ...] = ()
    _weight: Floats = field(init=False, repr=False)
    _ends: tuple[Floats, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weight = np.zeros(self.subject.n)
        for body in self.subject.bodies.values():
            c = body.point(body.inertia.centre)
            weight[body.columns] = np.outer(c, body.inertia.mass * self.gravity).ravel()
        object.__setattr__(self, "_weight", weight)
        object.__setattr__(self, "_ends", tuple(self._difference(spring) for spring in self.springs))

    def _difference(self, spring: PointSpring) -> Floats:
        """(3, n + 1): the vector from the first to the second point is this times (q, 1)."""
        rows = np.zeros((3, self.subject.n + 1))
        for sign, (segment, landmark) in ((-1.0, spring.first), (1.0, spring.second)):
            if segment == GROUND:
                rows[:, -1] += sign * self.subject.landmarks[landmark]
                continue
            body = self.subject.bodies[segment]
            rows[:, body.columns] += sign * np.kron(body.landmark(landmark), np.eye(3))
        return rows

    def value(self, t: float, q: Floats, qdot: Floats) -> Floats:
        """(n,) generalised forces."""
        Q = self._weight.copy()
        if self.external is not None:
            Q += self.external(t)
        for spring, B in zip(self.springs, self._ends, strict=True):
            _, e, _, tension = self._state(spring, B, q, qdot)
            Q -= B[:, :-1].T @ (tension * e)
        for joint_spring in self.joint_springs:
            Q += joint_spring.value(q, qdot)
        return Q

    def derivatives(self, q: Floats, qdot: Floats) -> tuple[Floats, Floats]:
        """(n, n) K = -∂Q/∂q and C = -∂Q/∂q̇ (Nunes 2017, 2.42-2.45, with dimensions corrected)."""
        n = self.subject.n
        K, C = np.zeros((n, n)), np.zeros((n, n))
        for spring, B in zip(self.springs, self._ends, strict=True):
            s, e, w, tension = self._state(spring, B, q, qdot)
            P = np.eye(3) - np.outer(e, e)
            along = np.outer(e, e)
            stiffness = tension / s * P + spring.stiffness * along + spring.damping / s * np.outer(e, w) @ P
            K += B[:, :-1].T @ stiffness @ B[:, :-1]
            C += B[:, :-1].T @ (spring.damping * along) @ B[:, :-1]
        for joint_spring in self.joint_springs:
            more_K, more_C = joint_spring.derivatives(q, qdot)
            K, C = K + more_K, C + more_C
        return K, C

    def _state(self, spring: PointSpring, B: Floats, q: Floats, qdot: Floats) -> tuple[float, Floats, Floats, float]:
        d, w = B[:, :-1] @ q + B[:, -1], B[:, :-1] @ qdot
        s = max(float(np.linalg.norm(d)), _SHORTEST)
        e = d / s
        return s, e, w, spring.stiffness * (s - spring.rest) + spring.damping * float(e @ w) - spring.push

    def potential_energy(self, q: Floats) -> Floats:
        """(f,) energy J of weight and springs for q (f, n); forces given over time have none."""
        energy = -q @ self._weight
        for spring, B in zip(self.springs, self._ends, strict=True):
            s = np.linalg.norm(q @ B[:, :-1].T + B[:, -1], axis=1)
            energy = energy + 0.5 * spring.stiffness * (s - spring.rest) ** 2 - spring.push * s
        if self.joint_springs:
            energy = energy + np.array(
                [sum(joint_spring.energy(frame) for joint_spring in self.joint_springs) for frame in q]
            )
        return np.asarray(energy)
