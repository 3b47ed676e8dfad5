"""Functional joints of a subject: markers at joint centres and on axes that a recorded movement gives, for scaling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from designopt_muscle.geometry.kinematics import Kinematics, kinematics
from designopt_muscle.markers.status import MarkerError
from designopt_muscle.osim.markers import OsimMarker
from designopt_muscle.osim.model import GROUND, Joint, OsimModel
from designopt_recordings.recording import Recording
from designopt_wholebody.trial.functional import carried, functional_joint

from designopt.arrays import Floats
from designopt.plugin import Quantity as Q
from designopt.study.language.findings import nearest_or_all

#: Markers that fix a segment, and angles of a ball joint.
_CLUSTER, _ANGLES = 3, 3


@dataclass(frozen=True)
class FunctionalJoint:
    """A joint whose centre, or axis of a hinge, is found by the movement of its two segments."""

    proximal: Annotated[
        tuple[str, ...], Q("", "three or more markers fixed to the proximal segment; those on the model's body if none")
    ] = ()
    distal: Annotated[tuple[str, ...], Q("", "the same of the distal segment")] = ()
    near: Annotated[tuple[str, ...], Q("", "of a hinge: one or two markers of the static pose beside its axis")] = ()
    weight: Annotated[float, Q("", "of each of its markers in the static pose", gt=0)] = 1.0

    def names(self, joint: str) -> tuple[str, ...]:
        """Names of the markers at it: ``hip_r_centre``, or ``knee_r_RKNE`` on the axis beside the marker RKNE."""
        return tuple(f"{joint}_{name}" for name in self.near or ("centre",))


@dataclass(frozen=True, eq=False)
class FunctionalMarkers:
    """Markers at functional joints: where they are on the model, fixed there, and in the `static` pose, whose other
    markers it has too; `notes` say how well the movement gives each joint."""

    on_model: tuple[OsimMarker, ...]
    static: Recording
    notes: tuple[str, ...]


def functional_markers(
    model: OsimModel,
    markers: tuple[OsimMarker, ...],
    recordings: tuple[Recording, Recording],
    joints: Mapping[str, FunctionalJoint],
) -> FunctionalMarkers:
    """Markers at the `joints`, by the `recordings` of the static pose and of the movement.

    A joint is carried by the proximal markers from the movement into the static pose. On the model it is the origin of
    the joint on its child; a marker on the axis of a hinge is, there and in the static pose, the point nearest to the
    marker that it is `near`.

    Raises `MarkerError` for joints and markers that are not there, and for a movement that does not determine a joint.
    """
    static, movement = recordings
    default_pose = kinematics(model, {})
    joint_markers, columns, notes = [], [], []
    for name, functional in joints.items():
        joint = next(joint for joint in model.joints if joint.name == name)
        proximal, distal = (
            stated_markers or _on_body(body, markers, recordings)
            for stated_markers, body in ((functional.proximal, joint.parent), (functional.distal, joint.child))
        )
        try:
            fit = functional_joint(movement, proximal, distal, hinge=bool(functional.near))
            cluster = np.stack([_static_marker(static, marker) for marker in proximal], axis=1)
        except ValueError as error:
            raise MarkerError(f"functional joint '{name}': {error}") from None
        point, ahead = (carried(fit.shape, cluster, p) for p in (fit.point, fit.point + fit.axis))
        notes.append(f"functional joint '{name}': its segments carry it {1e3 * fit.rms:.1f} mm (RMS) apart")
        origin = joint.in_child[:3, 3]
        for marker, near in zip(functional.names(name), functional.near or ("",), strict=True):
            location, column = origin, point
            if near:
                location = _on_axis(model, joint, default_pose, _marker(markers, name, near))
                along = ahead - point
                beside = _static_marker(static, near) - point
                column = point + (beside * along).sum(axis=1, keepdims=True) * along
            if not np.isfinite(column).all(axis=1).any():
                required_names = ", ".join((*proximal, near) if near else proximal)
                raise MarkerError(f"functional joint '{name}': no frame of the static pose has all of {required_names}")
            joint_markers.append(OsimMarker(marker, joint.child, location, fixed=True))
            columns.append(column)
    static = replace(
        static,
        marker_names=(*static.marker_names, *(m.name for m in joint_markers)),
        markers=np.concatenate([static.markers, np.stack(columns, axis=1)], axis=1),
    )
    return FunctionalMarkers(tuple(joint_markers), static, tuple(notes))


def join_recordings(recordings: Sequence[Recording]) -> Recording:
    """The frames of all `recordings` one after the other, with NaN where one lacks a marker."""
    names = tuple(dict.fromkeys(name for recording in recordings for name in recording.marker_names))
    parts = []
    for recording in recordings:
        part = np.full((len(recording.time), len(names), 3), np.nan)
        part[:, [names.index(name) for name in recording.marker_names]] = recording.markers
        parts.append(part)
    markers, rate = np.concatenate(parts), recordings[0].rate
    return Recording(rate, np.arange(len(markers)) / rate, names, markers)


def determined_balls(
    model: OsimModel, markers: tuple[OsimMarker, ...], recordings: tuple[Recording, Recording]
) -> list[str]:
    """The joints with three angles whose centre a movement gives by the markers on the model; `recordings` are the
    static pose and the movement."""
    balls = [joint for joint in model.joints if joint.parent != GROUND and len(_turns(model, joint.name)) == _ANGLES]
    joint_names = []
    for joint in balls:
        try:
            functional_markers(model, markers, recordings, {joint.name: FunctionalJoint()})
        except MarkerError:
            continue
        joint_names.append(joint.name)
    return joint_names


def hinge_mistakes(model: OsimModel, joints: Mapping[str, FunctionalJoint]) -> Iterator[tuple[str, str]]:
    """The joint and the mistake, of joints that are not on the model, and of axes of joints that are no hinges."""
    names = [joint.name for joint in model.joints]
    for name, functional in joints.items():
        if name not in names:
            yield name, f"'{name}' is not a joint{nearest_or_all(name, sorted(names))}"
        elif functional.near and len(turns := _turns(model, name)) != 1:
            by = ", ".join(turns) or "no coordinate"
            yield name, f"near is for the axis of a hinge, and '{name}' turns by {by}: leave it out"


def _turns(model: OsimModel, joint: str) -> list[str]:
    """The angles of a joint that are free to move."""
    return [c.name for c in model.coordinates if c.joint == joint and c.rotational and not c.locked]


def _on_body(body: str, markers: tuple[OsimMarker, ...], recordings: tuple[Recording, Recording]) -> tuple[str, ...]:
    """The markers of the model on a body that both recordings have."""

    def recorded(name: str) -> bool:
        return all(name in r.marker_names and np.isfinite(r.marker(name)).any() for r in recordings)

    names = tuple(m.name for m in markers if m.body == body and recorded(m.name))
    if len(names) < _CLUSTER:
        raise MarkerError(
            f"the model has {len(names)} markers on '{body}' that static pose and movement have"
            f" ({', '.join(names) or 'none'}); name three or more by proximal or distal of the functional joint"
        )
    return names


def _static_marker(static_recording: Recording, name: str) -> Floats:
    if name not in static_recording.marker_names:
        raise ValueError(
            f"the static pose has no marker '{name}'{nearest_or_all(name, sorted(static_recording.marker_names))}"
        )
    return static_recording.marker(name)


def _marker(markers: tuple[OsimMarker, ...], joint: str, name: str) -> OsimMarker:
    by_name = {marker.name: marker for marker in markers}
    if name not in by_name:
        near = nearest_or_all(name, sorted(by_name))
        raise MarkerError(f"functional joint '{joint}': '{name}' is not a marker of the model{near}")
    return by_name[name]


def _on_axis(model: OsimModel, joint: Joint, default_pose: Kinematics, marker: OsimMarker) -> Floats:
    """(3,) the point on the axis of a hinge nearest to a marker in the default pose, on the child."""
    rotation, origin = default_pose.rotation[joint.child][0], joint.in_child[:3, 3]
    axis = rotation.T @ default_pose.turning[_turns(model, joint.name)[0]][0]
    axis = axis / np.linalg.norm(axis)
    position = default_pose.position(marker.body, marker.location)[0]
    beside = rotation.T @ (position - default_pose.origin[joint.child][0]) - origin
    return np.asarray(origin + (beside @ axis) * axis)
