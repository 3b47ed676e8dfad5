"""The rows of bodies and joints (Nunes 2017, 2.6-2.11, 4.4-4.12), with constants measured in a static posture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.body.body import BodySegment
from designopt_wholebody.constraints.constraints import Constraints, RowName
from designopt_wholebody.constraints.quadratic import (
    QuadraticRows,
    VectorExpression,
    axis,
    basic_point,
    expression,
    unit_vector,
)
from designopt_wholebody.model.schema import GROUND, Joint


def state_constraints(
    bodies: Mapping[str, BodySegment], joints: Mapping[str, Joint], landmarks: Mapping[str, Floats], q: Floats
) -> Constraints:
    """Every row of `bodies` and `joints`; q (n,) is the static posture, in which each of them vanishes.

    Order: rigidity of each body in the order of q, then the joints in theirs. A joint of type revolute has six rows,
    of which one depends on the others.
    """
    return _RowBuilder(bodies, landmarks, q).all(joints)


class _RowBuilder:
    def __init__(self, bodies: Mapping[str, BodySegment], landmarks: Mapping[str, Floats], q: Floats) -> None:
        self.bodies, self.landmarks, self.q = bodies, landmarks, q
        self.rows, self.products = QuadraticRows(), QuadraticRows()
        self.names: list[RowName] = []

    def all(self, joints: Mapping[str, Joint]) -> Constraints:
        for body in self.bodies.values():
            self._rigid(body)
        for name, joint in joints.items():
            getattr(self, f"_{joint.type}")(joint)
            self._name_rows(joint.type, name)
        n = len(self.q)
        products = self.products.rows_of(n) if len(self.products) else None
        return Constraints(n, self.rows.rows_of(n + len(self.products)), tuple(self.names), products)

    def _name_rows(self, kind: str, owner: str, per_metre: float = 1.0) -> None:
        """Give the rows stated since the last call their name."""
        self.names.extend([RowName(kind, owner, per_metre)] * (len(self.rows) - len(self.names)))

    def _static(self, a: VectorExpression, b: VectorExpression) -> float:
        return float(a.value(self.q) @ b.value(self.q))

    def _add_constant_product(self, a: VectorExpression, b: VectorExpression) -> None:
        """a · b keeps its static value."""
        self.rows.dot(a, b, self._static(a, b))

    def _rigid(self, body: BodySegment) -> None:
        vectors = [unit_vector(body, k) for k in range(len(body.vectors))]
        if len(body.points) == 2:
            line = basic_point(body, 0) - basic_point(body, 1)
            length = float(np.sqrt(self._static(line, line)))
            self._add_constant_product(line, line)
            self._name_rows("rigid", body.name, 0.5 / length)
        for vector in vectors:
            self.rows.dot(vector, vector, 1.0)
        self._name_rows("rigid", body.name, 0.5)
        for i, first in enumerate(vectors):
            for second in vectors[i + 1 :]:
                self._add_constant_product(first, second)
        self._name_rows("rigid", body.name)
        if len(body.points) == 2:
            for vector in vectors:
                self._add_constant_product(vector, line)
            self._name_rows("rigid", body.name, 1.0 / length)

    def _point(self, segment: str, landmark: str) -> VectorExpression:
        if segment == GROUND:
            return VectorExpression(constant=self.landmarks[landmark])
        body = self.bodies[segment]
        return expression(body, body.landmark(landmark))

    def _spherical(self, joint: Joint) -> None:
        assert joint.at is not None
        self.rows.vector(self._point(joint.proximal, joint.at) - self._point(joint.distal, joint.at))

    def _universal(self, joint: Joint) -> None:
        self._spherical(joint)
        assert joint.axes is not None
        first, second = joint.axes
        self._add_constant_product(axis(self.bodies[joint.proximal], first), axis(self.bodies[joint.distal], second))

    def _revolute(self, joint: Joint) -> None:
        self._spherical(joint)
        direction = axis_in(joint, self.bodies, self.landmarks, self.q)
        self.rows.vector(self._direction(joint.proximal, direction) - self._direction(joint.distal, direction))

    def _direction(self, segment: str, direction: Floats) -> VectorExpression:
        if segment == GROUND:
            return VectorExpression(constant=direction)
        body = self.bodies[segment]
        return expression(body, body.direction(body.axes(self.q).T @ direction))

    def _ellipsoid(self, joint: Joint) -> None:
        """p of each point as lifted coordinates, and pᵀ H p = 1."""
        thorax = self.bodies[joint.proximal]
        centre = expression(thorax, thorax.point(np.array(joint.centre)))
        H = ellipsoid_form(joint)
        for name in joint.points:
            from_centre = self._point(joint.distal, name) - centre
            start = len(self.q) + len(self.products)
            for local in "uvw":
                self.products.dot(axis(thorax, local), from_centre)
            p = VectorExpression({start: 1.0})
            self.rows.dot(p, p, 1.0, weights=H)


def axis_in(joint: Joint, bodies: Mapping[str, BodySegment], landmarks: Mapping[str, Floats], q: Floats) -> Floats:
    """(3,) unit axis of a revolute joint in the static posture q (n,), laboratory's frame."""
    if isinstance(joint.axis, str):
        return axis(bodies[joint.proximal], joint.axis).value(q)
    assert joint.axis is not None
    line = landmarks[joint.axis[1]] - landmarks[joint.axis[0]]
    return np.asarray(line / np.linalg.norm(line))


def ellipsoid_form(joint: Joint) -> Floats:
    """(3, 3) H = T D Tᵀ with D = diag(1/r²) and T the axes of the ellipsoid in the proximal frame."""
    assert joint.radii is not None
    T = np.eye(3)
    for k, angle in enumerate(np.deg2rad(joint.attitude)):
        c, s = np.cos(angle), np.sin(angle)
        i, j = (k + 1) % 3, (k + 2) % 3
        turn = np.eye(3)
        turn[i, i] = turn[j, j] = c
        turn[i, j], turn[j, i] = -s, s
        T = T @ turn
    return np.asarray(T @ np.diag(1.0 / np.array(joint.radii) ** 2) @ T.T)


def onto_ellipsoid(joint: Joint, local: Sequence[float] | Floats) -> Floats:
    """The point of the surface on the ray from the centre through `local` (3,), in the proximal frame.

    So the scapula's points, known roughly, lie on the surface in the static posture.
    """
    centre = np.array(joint.centre)
    offset = np.asarray(local) - centre
    return np.asarray(centre + offset / np.sqrt(float(offset @ ellipsoid_form(joint) @ offset)))
