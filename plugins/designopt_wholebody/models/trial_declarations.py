"""Inputs and outputs of the model ``wholebody_trial``: designs, scenarios, outputs and arrays."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from designopt.plugin import Array as ArrayOf
from designopt.plugin import InputFile
from designopt.plugin import Quantity as Q
from designopt_wholebody.trial.analysis import Preparation
from designopt_wholebody.trial.figures import ANGLES, JOINTS

#: Types of rows of the constraints, in the order of the arrays.
KINDS = ("rigid", "spherical", "universal", "revolute", "ellipsoid")


class TrialPreparation(TypedDict, total=False):
    """How the trial is prepared."""

    preparation: Annotated[Preparation, Q("", "of coordinates, step by step", default="filtered_consistent")]
    cutoff: Annotated[float, Q("Hz", "of the filters", gt=0, default=6.0)]
    max_gap: Annotated[
        float,
        Q(
            "s",
            "gaps up to which markers are interpolated where their segment has fewer than three",
            ge=0,
            default=0.0,
        ),
    ]
    weighting: Annotated[
        Literal["lengths", "equal"], Q("", "of coordinates: by the segments' sizes, or all equal", default="lengths")
    ]
    contact_weight: Annotated[
        float, Q("", "of segments that may touch plates in the search for consistency", gt=0, default=1.0)
    ]
    hold_contacts: Annotated[Literal["no", "yes"], Q("", "whether centres of pressure stay in place", default="no")]
    body: Annotated[str, Q("", "bundled model of the body", default="wholebody21")]
    grip: Annotated[Literal["closed", "open"], Q("", "of the bundled push-up", default="closed")]
    ellipsoid: Annotated[float, Q("", "factor on the radii of the surfaces under the scapulae", gt=0, default=1.0)]
    hidden: Annotated[
        str, Q("", "marker that is hidden in the middle half of the trial; none by default", default="none")
    ]
    trunk_mass: Annotated[float, Q("", "factor on head, thorax, girdle and pelvis", gt=0, default=1.0)]
    arm_mass: Annotated[float, Q("", "factor on arms and hands", gt=0, default=1.0)]
    leg_mass: Annotated[float, Q("", "factor on legs and feet", gt=0, default=1.0)]


class TrialSource(TypedDict, total=False):
    """A trial: files of a laboratory, or a bundled synthetic one without them."""

    exercise: Annotated[Literal["pushup", "walk"], Q("", "the bundled trial", default="pushup")]
    recording: Annotated[InputFile, Q("", "C3D or TRC file of the trial")]
    static: Annotated[InputFile, Q("", "C3D or TRC file of the static posture")]
    reactions: Annotated[InputFile, Q("", "MOT, STO or CSV file of ground reactions, for a recording without plates")]
    functional: Annotated[
        InputFile, Q("", "C3D or TRC file of the movement by which a marker set finds functional joints")
    ]
    mass: Annotated[float, Q("kg", "of the subject", gt=0)]
    seed: Annotated[int, Q("", "of the markers' errors in the bundled trials", ge=0, default=1)]


_MEANINGS = {
    "force": ("", "peak joint force of both sides, in body weights"),
    "compression": ("", "peak compression, in body weights"),
    "traction": ("", "peak traction, in body weights"),
    "shear": ("", "peak shear, in body weights"),
    "torque": ("N m/kg", "peak joint torque of both sides"),
    "off_axis": ("N m/kg", "peak torque perpendicular to the axis of a revolute joint"),
}

_FIGURES: dict[str, Any] = {
    "used": Annotated[float, Q("", "share of frames with joint loads")],
    "marker_distance": Annotated[float, Q("m", "RMS distance of landmarks from the measured ones")],
    "violation": Annotated[float, Q("", "RMS norm of the constraints: distances in m, directions as they are")],
    "iterations": Annotated[float, Q("", "mean of a frame's search for consistency; 0 without")],
    "residual_force": Annotated[float, Q("N", "RMS residual force between motion and plates")],
    "residual_force_peak": Annotated[float, Q("N", "its largest norm")],
    "residual_torque": Annotated[float, Q("N m", "RMS residual torque between motion and plates")],
    "residual_torque_peak": Annotated[float, Q("N m", "its largest norm")],
    "torque_noise": Annotated[float, Q("N m", "RMS of joint torques above the frequency noise_above")],
    "rebuilt_error": NotRequired[
        Annotated[float, Q("m", "RMS distance of the hidden marker from its rebuilt place; none without")]
    ],
    "cycles": Annotated[float, Q("", "number of complete cycles")],
    "agreement_bias": NotRequired[
        Annotated[float, Q("m", "norm of the mean difference of landmarks from the measured ones")]
    ],
    "agreement_coverage": NotRequired[
        Annotated[float, Q("", "share of these differences in the 95 % ellipsoid of covariance")]
    ],
    "agreement_thesis": NotRequired[
        Annotated[float, Q("", "share in the ellipsoid of 1.96 deviations along the axes")]
    ],
    "force_error": NotRequired[
        Annotated[float, Q("N", "RMS error of joint forces; none for files, whose truth is not known")]
    ],
    "torque_error": NotRequired[
        Annotated[float, Q("N m", "RMS error of joint torques; none for files, whose truth is not known")]
    ],
    **{
        f"{joint}_{part}": NotRequired[Annotated[float, Q(unit, f"{joint}: {meaning}; none if the body has none")]]
        for joint in JOINTS
        for part, (unit, meaning) in _MEANINGS.items()
    },
    **{
        f"{name}_range": NotRequired[Annotated[float, Q("rad", "of the angle, of the side that moves more")]]
        for name in ANGLES
    },
}

TrialOutputs = TypedDict("TrialOutputs", _FIGURES)  # type: ignore[misc]

ARRAYS = {
    "time": ArrayOf(("time",), "s", "of the frames"),
    "angles": ArrayOf(("time", "angle"), "rad", "joint angles"),
    "angle_names": ArrayOf(("angle",), "", "of angles: joint and turn", dtype="str"),
    "moments": ArrayOf(("time", "moment"), "N m", "of joints about the axes of their angles, with the angles' signs"),
    "moment_names": ArrayOf(("moment",), "", "of moments: joint and turn", dtype="str"),
    "forces": ArrayOf(("time", "joint", "axis"), "N", "joint forces, laboratory axes"),
    "torques": ArrayOf(("time", "joint", "axis"), "N m", "joint torques, laboratory axes"),
    "joint_names": ArrayOf(("joint",), "", "of forces and torques", dtype="str"),
    "residual_forces": ArrayOf(("time", "axis"), "N", "on the root"),
    "residual_torques": ArrayOf(("time", "axis"), "N m", "on the root"),
    "distances": ArrayOf(("time",), "m", "RMS distance of landmarks from the measured ones"),
    "violations": ArrayOf(("time",), "", "norm of the constraints: distances in m, directions as they are"),
    "frame_iterations": ArrayOf(("time",), "", "of the search for consistency"),
    "frame_increments": ArrayOf(("time",), "", "norm of the last step of the search for consistency"),
    "frame_seconds": ArrayOf(
        ("time",), "s", "processor time of the search for consistency; it differs from run to run"
    ),
    "status": ArrayOf(("time",), "", "of each frame; below 100 it has a result"),
    "torque_sizes": ArrayOf(
        ("time", "both_sides"), "N m/kg", f"norms of joint torques, larger side: {', '.join(JOINTS)}"
    ),
    "force_sizes": ArrayOf(("time", "both_sides"), "", f"norms of joint forces in body weights: {', '.join(JOINTS)}"),
    "sticks": ArrayOf(("time", "stick", "end", "axis"), "m", "lines from joint to joint"),
    "raw_sticks": ArrayOf(("time", "stick", "end", "axis"), "m", "the same by the measured landmarks"),
    "simulated_sticks": ArrayOf(("time", "stick", "end", "axis"), "m", "by a simulation with the forces found"),
    "surfaces": ArrayOf(("time", "vertex", "axis"), "m", "outlines of ellipsoids, NaN between them"),
    "ground_forces": ArrayOf(("time", "segment", "2", "axis"), "", "point m and force N on each segment"),
    "violations_by_type": ArrayOf(("time", "type"), "", f"RMS of the constraints, as violations: {', '.join(KINDS)}"),
    "raw_violations_by_type": ArrayOf(("time", "type"), "", f"RMS by the measured landmarks: {', '.join(KINDS)}"),
    "differences": ArrayOf(("difference", "axis"), "m", "of landmarks from the measured ones"),
    "cycle": ArrayOf(("instant",), "", "percent of a cycle"),
    "angle_mean": ArrayOf(("instant", "usual_angle"), "rad", f"mean of the cycles, right side: {', '.join(ANGLES)}"),
    "angle_deviation": ArrayOf(("instant", "usual_angle"), "rad", "standard deviation over the cycles"),
    "torque_mean": ArrayOf(("instant", "both_sides"), "N m/kg", "mean of the cycles of torque_sizes"),
    "torque_deviation": ArrayOf(("instant", "both_sides"), "N m/kg", "standard deviation over the cycles"),
    "moment_mean": ArrayOf(("instant", "moment"), "N m", "mean of the cycles of moments"),
    "moment_deviation": ArrayOf(("instant", "moment"), "N m", "standard deviation over the cycles"),
}
