"""A subject: a model with the lengths of a static posture and a body mass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.plugin import closest
from designopt_wholebody.body.body import BodySegment
from designopt_wholebody.body.frames import axes_of, with_derived
from designopt_wholebody.body.inertia import MassProperties, is_possible, mass_of, mass_properties
from designopt_wholebody.constraints.constraints import Constraints
from designopt_wholebody.constraints.rows import onto_ellipsoid, state_constraints
from designopt_wholebody.model.schema import BodyModel, Joint, Segment


class SubjectError(ValueError):
    """No body can be made of a model with these landmarks and mass; the message names the landmark or the segment."""


@dataclass(frozen=True, eq=False)
class Subject:
    """Bodies by name in the order of q, the constraints between them, and the static posture `q0` (n,).

    `landmarks` (3,) are those of the static posture, `mass` the body mass in kg, `model` the model file.
    """

    model: BodyModel
    mass: float
    landmarks: Mapping[str, Floats]
    bodies: Mapping[str, BodySegment]
    constraints: Constraints
    q0: Floats

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return len(self.q0)

    def mass_blocks(self) -> tuple[Floats, ...]:
        """M of each body, (size, size), in the order of q."""
        return tuple(np.asarray(np.kron(body.mass_matrix(), np.eye(3))) for body in self.bodies.values())

    def mass_matrix(self) -> Floats:
        """(n, n) constant, block diagonal mass matrix."""
        M = np.zeros((self.n, self.n))
        for body, block in zip(self.bodies.values(), self.mass_blocks(), strict=True):
            M[body.columns, body.columns] = block
        return M

    def centre_of_mass(self, q: Floats) -> Floats:
        """(..., 3) of the whole body for q (..., n); of velocities for q̇."""
        total = np.zeros((*q.shape[:-1], 3))
        for body in self.bodies.values():
            total += body.inertia.mass * body.position(q, body.point(body.inertia.centre))
        return np.asarray(total / sum(body.inertia.mass for body in self.bodies.values()))


def make_subject(
    model: BodyModel, landmarks: Mapping[str, ArrayLike] | None = None, mass: float | None = None
) -> Subject:
    """The subject of `mass` kg whose static `landmarks` (3,) m are given; the model's own where they are not.

    Given landmarks replace the model's altogether; derived ones are computed. Raises `SubjectError` for landmarks that
    are missing or not finite, axes that are not perpendicular, masses and inertia that no body can have, and bodies
    whose coordinates are too close together to describe them.
    """
    mass = model.mass if mass is None else float(mass)
    if not (np.isfinite(mass) and mass > 0.0):
        raise SubjectError(f"the body mass must be positive, not {mass:g} kg")
    given_landmarks = model.landmarks if landmarks is None else landmarks
    positions: dict[str, Floats] = {}
    for name, value in given_landmarks.items():
        positions[name] = np.array(value, dtype=float)
        if positions[name].shape != (3,) or not np.isfinite(positions[name]).all():
            raise SubjectError(f"landmark '{name}' has no finite position (3,) in the static posture")
    positions = with_derived(model, positions)
    frames = {name: _frame(model, name, positions) for name in model.segments}
    _project_onto_surfaces(model, positions, frames)
    bodies: dict[str, BodySegment] = {}
    start = 0
    for name, segment in model.segments.items():
        bodies[name] = _body(model, name, segment, start, positions, frames[name], mass)
        start += bodies[name].size
    q0 = np.concatenate([_static(body, positions, frames[name]) for name, body in bodies.items()])
    constraints = state_constraints(bodies, model.joints, positions, q0)
    return Subject(model, mass, positions, bodies, constraints, q0)


def _needed_position(model: BodyModel, name: str, positions: Mapping[str, Floats]) -> Floats:
    if name not in positions:
        parts = model.derived.get(name)
        mean_of = f" (the mean of {', '.join(parts)})" if parts else ""
        near = closest(name, positions)
        hint = f"; did you mean '{near}'?" if near else ""
        raise SubjectError(
            f"landmark '{name}'{mean_of} of model '{model.model}' is missing in the static posture{hint}"
        )
    return positions[name]


def _frame(model: BodyModel, name: str, positions: Mapping[str, Floats]) -> tuple[Floats, Floats]:
    """Origin and axes of a segment; a rod has its first point and its own line as x."""
    segment = model.segments[name]
    for landmark in segment.points:
        _needed_position(model, landmark, positions)
    if segment.frame is None:
        first, second = (positions[point] for point in segment.points)
        line = second - first
        length = float(np.linalg.norm(line))
        if length < 1e-6:
            raise SubjectError(f"the points of rod '{name}' coincide")
        return first, np.column_stack([line / length, np.zeros(3), np.zeros(3)])
    frame_landmarks = [segment.frame.origin]
    for axis in (segment.frame.u, segment.frame.v, segment.frame.w):
        factors = axis if isinstance(axis, tuple) else axis.cross
        for factor in factors:
            frame_landmarks.extend([factor] if isinstance(factor, str) else factor)
    for landmark in frame_landmarks:
        if landmark not in ("u", "v", "w"):
            _needed_position(model, landmark, positions)
    axes = axes_of(segment.frame, positions, mirrored=name in model.mirrored)
    if not np.isfinite(axes).all():
        raise SubjectError(f"the landmarks of the frame of '{name}' lie on one line or coincide")
    if np.abs(axes.T @ axes - np.eye(3)).max() > 1e-6 or np.linalg.det(axes) < 0.0:
        raise SubjectError(f"the axes of '{name}' are not perpendicular and right-handed; check its frame")
    return positions[segment.frame.origin], axes


def _project_onto_surfaces(
    model: BodyModel, positions: dict[str, Floats], frames: Mapping[str, tuple[Floats, Floats]]
) -> None:
    for joint in model.joints.values():
        if joint.type == "ellipsoid":
            origin, axes = frames[joint.proximal]
            for point in joint.points:
                _needed_position(model, point, positions)
                positions[point] = origin + axes @ onto_ellipsoid(joint, axes.T @ (positions[point] - origin))


def _body(
    model: BodyModel,
    name: str,
    segment: Segment,
    start: int,
    positions: Mapping[str, Floats],
    frame: tuple[Floats, Floats],
    mass: float,
) -> BodySegment:
    origin, axes = frame
    is_left = name in model.mirrored
    names = _landmarks(model, name, segment)
    for landmark in names:
        if landmark not in segment.landmarks:
            _needed_position(model, landmark, positions)
    local = {landmark: axes.T @ (positions[landmark] - origin) for landmark in names if landmark in positions}
    if mass_of(segment.inertia, mass) <= 0.0:
        raise SubjectError(f"segment '{name}' of a body of {mass:g} kg has no mass")
    if segment.layout == "2p":
        length = local[segment.points[1]][0]
        inertia = MassProperties(mass_of(segment.inertia, mass), np.array([0.5 * length, 0.0, 0.0]), np.zeros((3, 3)))
    else:
        for landmark in (*(segment.inertia.length or ()), *segment.inertia.centre_at):
            _needed_position(model, landmark, positions)
        inertia = mass_properties(segment.inertia, mass, positions, origin, axes, mirrored=is_left)
        if not is_possible(inertia):
            raise SubjectError(f"no mass distribution has the inertia of segment '{name}'; check its tensor")
    unit = np.eye(3)
    columns = [unit["uvw".index(v)] for v in segment.vectors]
    first = local[segment.points[0]]
    if len(segment.points) == 2:
        columns.insert(0, local[segment.points[1]] - first)
    base = np.column_stack(columns)
    body = BodySegment(
        name, segment.layout, start, segment.points, segment.vectors, first, base, inertia, local, is_left
    )
    if not segment.layout == "2p" and body.condition > 1e3:
        raise SubjectError(
            f"the points and vectors of segment '{name}' are nearly linearly dependent (condition "
            f"{body.condition:.0f});"
            " choose points farther apart or other vectors"
        )
    return body


def _landmarks(model: BodyModel, name: str, segment: Segment) -> list[str]:
    """Landmarks of a segment: its own, some of which a posture may lack, and those of joints that name it."""
    names = [*segment.points, *segment.landmarks]
    for joint in model.joints.values():
        names.extend(_joint_points(joint, name))
    if model.root is not None and model.root.segment == name:
        names.append(model.root.point)
    names.extend(model.contacts.get(name, ()))
    return list(dict.fromkeys(names))


def _joint_points(joint: Joint, segment: str) -> list[str]:
    names = [joint.at] if joint.at is not None and segment in (joint.proximal, joint.distal) else []
    return [*names, *joint.points] if segment == joint.distal else names


def _static(body: BodySegment, positions: Mapping[str, Floats], frame: tuple[Floats, Floats]) -> Floats:
    vectors = [frame[1][:, "uvw".index(v)] for v in body.vectors]
    return np.concatenate([*(positions[point] for point in body.points), *vectors])
