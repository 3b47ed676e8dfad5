"""Joint forces as compression, traction and shear, and torque off a joint's axis (Nunes 2017, 5.47)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.dynamics.loads import JointLoads
from designopt_wholebody.model.schema import GROUND
from designopt_wholebody.subject import Subject


@dataclass(frozen=True, eq=False)
class ForceParts:
    """The parts of the load of one joint, each (f,): `compression`, `traction` and `shear` N, none negative; `off_axis`
    N m.

    Compression and traction are the parts along the axis of the proximal segment that its joint names, pressed into or
    pulled out of it; shear is the rest. `off_axis` is the torque perpendicular to the axis of a revolute joint,
    which ligaments and bones bear, and 0 for other joints.
    """

    compression: Floats
    traction: Floats
    shear: Floats
    off_axis: Floats


def force_parts(subject: Subject, q: Floats, loads: JointLoads, joint: str) -> ForceParts:
    """Parts of the force and torque of `joint` for q (f, n).

    The torque actuators of inverse dynamics give the smallest joint forces: muscles, which pull bones together, add to
    compression. Raises `ValueError` for a joint whose model names no axis of compression.
    """
    joint_model = subject.model.joints.get(joint)
    if joint_model is None or joint_model.compression is None:
        available = [name for name, j in subject.model.joints.items() if j.compression is not None]
        raise ValueError(f"joint '{joint}' has no axis of compression; {', '.join(available) or 'none'} have one")
    force, torque = loads.at(joint)
    on_distal = loads.bodies[loads.joints.index(joint)] == joint_model.distal
    proximal = subject.bodies[joint_model.proximal]
    index = "uvw".index(joint_model.compression)
    assert joint_model.at is not None
    inwards = np.sign((proximal.inertia.centre - proximal.local[joint_model.at])[index])
    along = inwards * np.einsum("fi,fi->f", force, proximal.axes(q)[:, :, index]) * (-1.0 if on_distal else 1.0)
    shear = np.sqrt(np.maximum(0.0, np.einsum("fi,fi->f", force, force) - along**2))
    off_axis = np.zeros(len(q))
    off_axis[~np.isfinite(along)] = np.nan
    if joint_model.type == "revolute":
        axis = _axis(subject, q, joint)
        off_axis = np.linalg.norm(torque - np.einsum("fi,fi->f", torque, axis)[:, None] * axis, axis=1)
    return ForceParts(np.maximum(along, 0.0), np.maximum(-along, 0.0), shear, off_axis)


def _axis(subject: Subject, q: Floats, joint: str) -> Floats:
    """(f, 3) axis of a revolute joint, as its distal segment carries it."""
    joint_model = subject.model.joints[joint]
    if isinstance(joint_model.axis, str):
        static = subject.bodies[joint_model.proximal].axes(subject.q0)[:, "uvw".index(joint_model.axis)]
    else:
        assert joint_model.axis is not None
        line = subject.landmarks[joint_model.axis[1]] - subject.landmarks[joint_model.axis[0]]
        static = line / np.linalg.norm(line)
    carrier = subject.bodies[joint_model.distal if joint_model.proximal == GROUND else joint_model.proximal]
    return carrier.position(q, carrier.direction(carrier.axes(subject.q0).T @ static))
