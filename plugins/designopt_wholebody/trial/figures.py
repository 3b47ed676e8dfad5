"""Numbers that sum up an analysed trial."""

from __future__ import annotations

import numpy as np
from designopt_recordings.signals.filters import highpass

from designopt.arrays import Floats, Mask
from designopt_wholebody.dynamics.decomposition import force_parts
from designopt_wholebody.trial.analysis import Analysis

#: Joints of which loads are summed up, both sides together, by the name in the outputs and the name in the models.
JOINTS = {
    "sternoclavicular": "sternoclavicular",
    "acromioclavicular": "acromioclavicular",
    "shoulder": "glenohumeral",
    "elbow": "elbow",
    "wrist": "wrist",
    "hip": "hip",
    "knee": "knee",
    "ankle": "ankle",
}


#: Angles whose ranges are summed up, by the name in the outputs: joint of the model's angles and turn.
ANGLES = {
    "scapula_protraction": ("scapula", "protraction"),
    "scapula_elevation": ("scapula", "elevation"),
    "humerus_flexion": ("humerus", "flexion"),
    "humerus_abduction": ("humerus", "abduction"),
    "elbow_flexion": ("elbow", "flexion"),
    "hip_flexion": ("hip", "flexion"),
    "knee_flexion": ("knee", "flexion"),
    "ankle_dorsiflexion": ("ankle", "dorsiflexion"),
}


def rms(values: Floats) -> float:
    """Root mean square of all finite numbers; 0 without any."""
    finite = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0


def peak(values: Floats) -> float:
    """Maximum of all finite numbers; 0 without any."""
    return float(np.nanmax(values, initial=0.0))


def joint_figures(analysis: Analysis, inner: Mask) -> dict[str, float]:
    """Figures of each of `JOINTS`, over the frames `inner` (n,) and both sides: peak force and its parts in body
    weights, peak torque and torque off the joint's axis in N m/kg. A joint that the model does not have has none."""
    subject, loads = analysis.subject, analysis.loads
    weight = 9.81 * subject.mass
    figures_of_joints: dict[str, float] = {}
    for name, joint in JOINTS.items():
        if not any(f"{joint}_{side}" in loads.joints for side in "RL"):
            continue
        joint_values = dict.fromkeys(("force", "compression", "traction", "shear", "torque", "off_axis"), 0.0)
        for side in "RL":
            if f"{joint}_{side}" not in loads.joints:
                continue
            force, torque = (part[inner] for part in loads.at(f"{joint}_{side}"))
            parts = force_parts(subject, analysis.motion.q, loads, f"{joint}_{side}")
            sizes = {
                "force": np.linalg.norm(force, axis=1) / weight,
                "compression": parts.compression[inner] / weight,
                "traction": parts.traction[inner] / weight,
                "shear": parts.shear[inner] / weight,
                "torque": np.linalg.norm(torque, axis=1) / subject.mass,
                "off_axis": parts.off_axis[inner] / subject.mass,
            }
            for part, values in sizes.items():
                joint_values[part] = max(joint_values[part], peak(values))
        figures_of_joints.update({f"{name}_{part}": value for part, value in joint_values.items()})
    return figures_of_joints


def joint_sizes(analysis: Analysis) -> tuple[Floats, Floats]:
    """(n, joints) norms of forces in body weights and of torques in N m/kg of `JOINTS`, the larger of both sides.

    NaN for joints that the model does not have, and in frames without a result.
    """
    loads = analysis.loads
    shape = (len(analysis.status), len(JOINTS))
    sizes = (np.full(shape, np.nan), np.full(shape, np.nan))
    for j, joint in enumerate(JOINTS.values()):
        for side in "RL":
            if f"{joint}_{side}" in loads.joints:
                for size_of, part in zip(sizes, loads.at(f"{joint}_{side}"), strict=True):
                    size_of[:, j] = np.fmax(size_of[:, j], np.linalg.norm(part, axis=1))
    return sizes[0] / (9.81 * analysis.subject.mass), sizes[1] / analysis.subject.mass


def ranges(analysis: Analysis, inner: Mask) -> dict[str, float]:
    """The range (rad) of each of `ANGLES` over the frames `inner` (n,), on the side that moves more; angles that are
    not known are left out."""
    range_of = {}
    for name, (joint, turn) in ANGLES.items():
        angles = [analysis.angles.angle(full) for s in "RL" if (full := f"{joint}_{s}.{turn}") in analysis.angles.names]
        spans = [np.ptp(finite_angles) for angle in angles if len(finite_angles := angle[inner & np.isfinite(angle)])]
        if spans:
            range_of[f"{name}_range"] = float(max(spans))
    return range_of


def usual_angles(analysis: Analysis) -> Floats:
    """(n, angles) rad of `ANGLES`, right side; NaN for angles that the model does not have, and without a result."""
    names, values = analysis.angles.names, np.full((len(analysis.status), len(ANGLES)), np.nan)
    for k, (joint, turn) in enumerate(ANGLES.values()):
        if f"{joint}_R.{turn}" in names:
            values[:, k] = analysis.angles.angle(f"{joint}_R.{turn}")
    return values


def torque_noise(analysis: Analysis, rate: float, above: float) -> float:
    """RMS N m of the joint torques above `above` Hz."""
    torque = analysis.loads.torque
    return rms(highpass(torque.reshape(len(torque), -1), rate, above))
