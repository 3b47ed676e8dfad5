"""Net joint moments about the axes of joint angles: what muscles must balance."""

from __future__ import annotations

import numpy as np
from designopt_mechanics.moment_balance import MomentBalance
from designopt_recordings.frames import FrameStatus

from designopt.arrays import Floats
from designopt_wholebody.consistency.rates import Motion
from designopt_wholebody.dynamics.loads import JointLoads
from designopt_wholebody.model.schema import GROUND, Angles
from designopt_wholebody.subject import Subject


def moment_balance(subject: Subject, motion: Motion, loads: JointLoads) -> MomentBalance:
    """The moment that each joint angle needs, without carriers of force yet: rows "elbow_R.flexion" and so on.

    A row is the generalised force of its angle: the joint torque on the distal segment times the angle's axis, signed
    as the angle. Angles between segments that no joint connects (the scapula on the thorax) have no row. Frames without
    a result, and frames in which an angle is not defined, are not finite (`FrameStatus.NOT_FINITE`).
    Raises `ValueError` for a model without joint angles.
    """
    rows: list[str] = []
    moments: list[Floats] = []
    for name, angles in subject.model.angles.items():
        joint = _joint(subject, loads, angles)
        if joint is None:
            continue
        _, torque = loads.at(joint)
        if loads.bodies[loads.joints.index(joint)] != angles.of:
            torque = -torque
        axes = angle_axes(subject, motion.q, angles)
        for k, (turn, sign) in enumerate(angles.names.items()):
            rows.append(f"{name}.{turn}")
            moments.append(sign * np.einsum("fi,fi->f", axes[:, k], torque))
    if not rows:
        raise ValueError(f"model '{subject.model.model}' declares no joint angle")
    values = np.stack(moments, axis=1)
    bad = ~np.isfinite(values).all(axis=1)
    return MomentBalance(
        time=motion.time,
        rows=tuple(rows),
        columns=(),
        arms=np.zeros((*values.shape, 0)),
        moments=values,
        row_units=("N m",) * len(rows),
        status=np.where(bad, int(FrameStatus.NOT_FINITE), 0),
    )


def angle_axes(subject: Subject, q: Floats, angles: Angles) -> Floats:
    """(f, 3, 3) unit axes of the three turns of a joint's angles, in the laboratory's axes: [:, k] is that of turn k.

    The first is fixed in the proximal segment, the last in the distal one, the middle one is perpendicular to both
    (Grood & Suntay 1983).
    """
    names = "XYZ"
    first, last = (names.index(angles.sequence[k]) for k in (0, 2))
    distal = subject.bodies[angles.of].axes(q)
    if angles.relative_to == GROUND:
        proximal = np.broadcast_to(np.eye(3), distal.shape)
    else:
        proximal = subject.bodies[angles.relative_to].axes(q)
    first_axis, third_axis = proximal[:, :, first], distal[:, :, last]
    second_axis = np.cross(third_axis, first_axis)
    length = np.linalg.norm(second_axis, axis=1, keepdims=True)
    second_axis = second_axis / np.where(length > 0.0, length, np.nan)
    if angles.sequence != "ZXY":
        second_axis = -second_axis
    return np.stack([first_axis, second_axis, third_axis], axis=1)


def _joint(subject: Subject, loads: JointLoads, angles: Angles) -> str | None:
    for name, body in zip(loads.joints, loads.bodies, strict=True):
        joint = subject.model.joints[name]
        ends = (angles.of, angles.relative_to)
        if {joint.proximal, joint.distal} == {*ends} and body in ends:
            return name
    return None
