"""Inputs and outputs of the model ``laboratory_trial``: designs, scenarios, outputs and arrays."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from designopt_mechanics.sharing.statement.criteria import CriterionName
from designopt_muscle.geometry.drawing import SCENE_AXES

from designopt.plugin import Array, InputFile
from designopt.plugin import Quantity as Q


class AssumedErrors(TypedDict, total=False):
    """Assumed errors of quantities that are not known exactly, as values of a design (for sensitivity indices) or of
    scenarios (for bands).

    Factors of design and scenario multiply, their lengths add as squares.
    """

    size_factor: Annotated[
        float, Q("", "on the lengths of all bodies, muscles and marker places", gt=0, default=1.0, sampled=(0.97, 1.03))
    ]
    mass_factor: Annotated[float, Q("", "on the masses of all bodies", gt=0, default=1.0, sampled=(0.95, 1.05))]
    strength: Annotated[float, Q("", "factor on the forces of all muscles", gt=0, default=1.0, sampled=(0.8, 1.2))]
    fibre_factor: Annotated[float, Q("", "on the optimal fibre lengths", gt=0, default=1.0, sampled=(0.95, 1.05))]
    slack_factor: Annotated[
        float, Q("", "on the slack lengths of the tendons", gt=0, default=1.0, sampled=(0.98, 1.02))
    ]
    skin: Annotated[float, Q("m", "RMS motion of the skin under each marker", ge=0, default=0.0, sampled=(0.0, 0.01))]
    placement: Annotated[
        float, Q("m", "RMS error of each marker's place on its body", ge=0, default=0.0, sampled=(0.0, 0.01))
    ]
    seed: Annotated[int, Q("", "of these errors of markers", ge=0, default=1, sampled=(1, 1_000_000))]


class LaboratoryDesign(AssumedErrors, total=False):
    """Values of a design."""

    cutoff: Annotated[float, Q("Hz", "of the low-pass filter of coordinates; 0: none", ge=0, default=6.0)]
    marker_weight: Annotated[
        float, Q("", "of the markers that the setting 'weighted_markers' names", ge=0, default=1.0)
    ]
    load_cutoff: Annotated[float, Q("Hz", "of the low-pass filter of force plates; 0: none", ge=0, default=0.0)]
    criterion: Annotated[CriterionName, Q("", "what the sharing minimises", default="power")]
    exponent: Annotated[float, Q("", "of the criterion 'power'", ge=1, le=50, default=2.0)]


class TrialConditions(AssumedErrors, total=False):
    """One trial: its files and its labels."""

    recording: Annotated[InputFile, Q("", "markers of the trial, with plates and EMG or without (C3D or TRC)")]
    motion: Annotated[InputFile, Q("", "coordinates in place of markers (MOT, STO or CSV)")]
    static: Annotated[InputFile, Q("", "markers of a static pose, for the setting 'scaling' (C3D or TRC)")]
    functional: Annotated[
        list[InputFile], Q("", "markers of the movements that give the setting 'functional_joints' (C3D or TRC)")
    ]
    subject_model: Annotated[
        InputFile, Q("", "a model (.osim) that is scaled already, in place of the setting 'model'")
    ]
    mass: Annotated[float, Q("kg", "of the subject; that of the set-up of the scaling, or of the model", gt=0)]
    reactions: Annotated[InputFile, Q("", "table of ground reactions, for a recording without plates (MOT, STO, CSV)")]
    external_loads: Annotated[
        InputFile, Q("", "OpenSim's assignment of the columns of 'reactions' to bodies (XML); by position without")
    ]
    time_offset: Annotated[
        float, Q("s", "added to the times of plates and reactions that are not synchronous to the motion", default=0.0)
    ]
    emg: Annotated[InputFile, Q("", "measured activity (MOT, STO, CSV, C3D); by default the recording")]
    targets: Annotated[
        InputFile, Q("", "coordinates that the weighted ones follow in inverse kinematics (MOT, STO or CSV)")
    ]
    subject: Annotated[str, Q("", "label of the subject", default="")]
    group: Annotated[str, Q("", "label of the group, whose curves are summarised together", default="")]


class TrialFigures(TypedDict):
    """Figures of a trial: from `residual_force` on over the usable frames within its cycles, of the window without a
    cycle."""

    frames: Annotated[float, Q("", "frames in the window")]
    usable: Annotated[float, Q("", "share of them with a pose, and with all loads where moments are computed")]
    cycles: Annotated[float, Q("", "complete cycles of both sides")]
    mass: Annotated[float, Q("kg", "of the model")]
    doubts: Annotated[
        float,
        Q(
            "",
            "sentences on poses, loads, residuals and reserves that make the trial doubtful",
            notable=True,
            listed_by="doubts",
        ),
    ]
    marker_rms: NotRequired[Annotated[float, Q("m", "RMS distance of measured markers from the model's")]]
    marker_max: NotRequired[Annotated[float, Q("m", "largest distance of one")]]
    residual_force: NotRequired[Annotated[float, Q("N", "RMS force that motion and loads leave at the root")]]
    residual_moment: NotRequired[Annotated[float, Q("N m", "RMS moment that they leave there")]]
    residual_force_share: NotRequired[
        Annotated[float, Q("", "largest residual force over the largest force of the ground; guideline 0.05")]
    ]
    residual_moment_share: NotRequired[
        Annotated[
            float,
            Q("", "largest residual moment over that force times the height of the centre of mass; guideline 0.01"),
        ]
    ]
    peak_moment: NotRequired[
        Annotated[float, Q("N m/kg", "largest net moment of a joint in the cycles (window without one), per mass")]
    ]
    mean_cost: NotRequired[Annotated[float, Q("", "of the criterion, mean over the frames of the cycles")]]
    peak_activation: NotRequired[Annotated[float, Q("", "of any muscle in the cycles")]]
    mean_activation: NotRequired[Annotated[float, Q("", "over muscles and frames of the cycles")]]
    infeasible_frames: NotRequired[Annotated[float, Q("", "frames beyond the muscles and reserves", notable=True)]]
    peak_reserve: NotRequired[
        Annotated[float, Q("", "largest generalised force of a reserve in the cycles, in N m or N")]
    ]
    reserve_share: NotRequired[
        Annotated[float, Q("", "largest force of a reserve over the largest net moment of its coordinate; usual 0.1")]
    ]
    emg_correlation: NotRequired[
        Annotated[float, Q("", "between activations and measured activity, mean over the measured muscles")]
    ]
    metabolic_rate: NotRequired[Annotated[float, Q("W/kg", "of all muscles, without the basal rate, mean over time")]]
    peak_joint_force: NotRequired[Annotated[float, Q("", "largest joint force in the cycles, in body weights")]]
    smallest_scale: NotRequired[Annotated[float, Q("", "smallest scale factor of a body along an axis")]]
    largest_scale: NotRequired[Annotated[float, Q("", "largest one")]]
    static_rms: NotRequired[
        Annotated[
            float, Q("m", "RMS distance of the markers of the static pose from the scaled model's, before placing")
        ]
    ]
    static_max: NotRequired[Annotated[float, Q("m", "largest distance of one")]]


ARRAYS = {
    "time": Array(("time",), "s", "of the frames"),
    "pose_status": Array(("time",), "", "of poses and loads: usable below 100"),
    "angles": Array(("time", "coordinate"), "", "coordinates, filtered, in rad or m"),
    "rates": Array(("time", "coordinate"), "", "of the coordinates, in rad/s or m/s"),
    "coordinate_names": Array(("coordinate",), "", "of the coordinates", dtype="str"),
    "markers": Array(("marker",), "", "names of the markers of model and recording", dtype="str"),
    "marker_errors": Array(("time", "marker"), "m", "distance of each measured marker from the model's"),
    "measured_markers": Array(("time", "marker", "axis"), "m", "positions of the measured markers, Y up"),
    "bodies": Array(("body",), "", "names of the bodies", dtype="str"),
    "body_masses": Array(("body",), "kg", "of the subject's model"),
    "scale_factors": Array(("body", "axis"), "", "along x, y and z of each body; 1 where it is not scaled"),
    "static_markers": Array(("static_marker",), "", "markers of the static pose on the model", dtype="str"),
    "static_errors": Array(("static_marker",), "m", "their distance from the scaled model's, before they are placed"),
    "feet": Array(("foot",), "", "right and left", dtype="str"),
    "foot_forces": Array(("time", "foot", "axis"), "N", "of the ground on each foot"),
    "foot_points": Array(("time", "foot", "axis"), "m", "centre of pressure of each foot"),
    "foot_torques": Array(("time", "foot", "axis"), "N m", "of the ground on each foot, at that point"),
    "moment_names": Array(("moment",), "", "coordinates with a net moment", dtype="str"),
    "moments": Array(("time", "moment"), "", "net moments, in N m or N"),
    "powers": Array(("time", "moment"), "W", "of the net moments"),
    "residuals": Array(("time", "residual"), "", "force (N) and moment (N m) that are left at the root"),
    "muscles": Array(("muscle",), "", "names", dtype="str"),
    "coordinates": Array(("row",), "", "names of the coordinates that muscles balance", dtype="str"),
    "activations": Array(("time", "muscle"), "", "NaN in frames without a solution"),
    "forces": Array(("time", "muscle"), "N", "along the tendon, active and passive"),
    "muscle_moments": Array(("time", "row", "muscle"), "", "of each muscle, in N m or N"),
    "net_moments": Array(("time", "row"), "", "that muscles and reserves balance, in N m or N"),
    "reserves": Array(("time", "row"), "", "in N m or N"),
    "shortfall": Array(("time", "row"), "", "what is missing in infeasible frames, in N m or N"),
    "strength_factor": Array(("time",), "", "on the strength, that makes a frame feasible"),
    "status": Array(("time",), "", "of the sharing: 0 to 20 balanced, 100 infeasible, above that no solution"),
    "signals": Array(("time", "muscle"), "", "measured activity, scaled; NaN for muscles without"),
    "muscle_lengths": Array(("time", "muscle"), "m", "of muscles with their tendons"),
    "moment_arms": Array(("time", "row", "muscle"), "", "m, or 1 of translations"),
    "fibre_lengths": Array(("time", "muscle"), "", "in optimal lengths"),
    "fibre_speeds": Array(("time", "muscle"), "", "in maximum speeds of shortening; negative when shortening"),
    "muscle_powers": Array(("time", "muscle"), "W", "of muscles with their tendons; positive when shortening"),
    "metabolic_rates": Array(("time", "muscle"), "W", "heat and work of each muscle"),
    "joints": Array(("joint",), "", "with reactions", dtype="str"),
    "reactions": Array(("time", "joint", "component"), "N", "force of the parent on the child, in the chosen axes"),
    "reaction_moments": Array(("time", "joint", "component"), "N m", "about the centre of the joint on the child"),
    "reaction_points": Array(("time", "joint", "component"), "m", "this centre, from the origin of the chosen axes"),
    "cycle_sides": Array(("cycle",), "", "right or left", dtype="str"),
    "cycle_times": Array(("cycle", "end"), "s", "foot strikes at which cycles begin and end"),
    "percent": Array(("percent",), "", "of the cycle"),
    "curve_kinds": Array(("curve",), "", "quantities: angle, moment, power, activation ...", dtype="str"),
    "curve_names": Array(("curve",), "", "coordinates, muscles, joints", dtype="str"),
    "curve_units": Array(("curve",), "", "of the curves", dtype="str"),
    "curves": Array(("cycle", "percent", "curve"), "", "over normalised cycles; NaN where a cycle has a gap"),
    "labels": Array(("label",), "", "subject, group and trial", dtype="str"),
    "scaled_model": Array(("line",), "", "the subject's model file (.osim)", dtype="str"),
    "skeleton": Array(("time", "vertex", "space"), "m", "drawing of the bones: x, -z, y", components=SCENE_AXES),
    "paths": Array(("time", "muscle", "vertex", "space"), "m", "drawing of the muscles, as skeleton"),
    "doubts": Array(("doubt",), "", "what is doubtful in the trial, and the way out", dtype="str"),
    "notes": Array(("note",), "", "these, and what was read, assumed and left out", dtype="str"),
}
