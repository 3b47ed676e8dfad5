"""Outputs and arrays of the model ``four_bar_knee``."""

from __future__ import annotations

from typing import Annotated, TypedDict

from designopt.plugin import Array, Quantity

Q = Quantity

#: Range of `centre_offset` (m) of a knee that the load keeps straight. Below 1 mm a heel that is some mm farther back
#: than modelled reverses its sign.
STABLE = (1e-3, 0.1)


class KneeOutputs(TypedDict):
    """Outputs of one response; with several initial states those of the response with the lowest rho."""

    rho: Annotated[
        float,
        Q(
            "",
            "correlation of simulated and recorded knee angle over the analysis window",
            usual=(0.9, 1.0),
            mistakes="does thigh_deg count from the vertical, not from a tilted pelvis? Do period and leg fit?",
        ),
    ]
    rho_best: Annotated[float, Q("", "rho of the best start (rho itself is of the worst)")]
    peak_flexion: Annotated[float, Q("deg", "largest knee angle of a cycle, mean over the analysis window")]
    peak_error: Annotated[
        float, Q("deg", "peak_flexion less the recorded peak: negative if the knee bends less", usual=(-15.0, 15.0))
    ]
    rms_error: Annotated[float, Q("deg", "root mean square difference to the recorded knee angle", usual=(0.0, 5.0))]
    period_n: Annotated[
        float,
        Q(
            "",
            "cycles after which the knee angle repeats, 1 to 4; 0 is longer, irregular or leaving a motion",
            usual=(1, 4),
        ),
    ]
    repeat_error: Annotated[float, Q("deg", "misfit of the window to itself one cycle earlier; 360: no such cycle")]
    section_n: Annotated[float, Q("", "cycles after which the state at phase 0 repeats, 1 to 4; 0 as for period_n")]
    floquet_modulus: Annotated[
        float, Q("", "largest multiplier of the motion of period T, stable below 1; 999: none was found", usual=(0, 1))
    ]
    flip_margin: Annotated[
        float,
        Q("", "1 + smallest real multiplier of that motion (1 at most); period doubled below 0; -998: none found"),
    ]
    subharmonic: Annotated[float, Q("deg", "largest amplitude below 1, and between 1 and 2, per cycle")]
    subharmonic_half: Annotated[float, Q("deg", "amplitude at 1/2 per cycle")]
    subharmonic_third: Annotated[float, Q("deg", "amplitude at 1/3 per cycle")]
    toe_clearance: Annotated[float, Q("m", "lowest toe above the ground in the recorded swing", usual=(0.0, 0.1))]
    mean_normal_force: Annotated[float, Q("N", "heel and toe together, mean")]
    contact_duty: Annotated[float, Q("", "share of the time with the foot on the ground")]
    max_stop_force: Annotated[float, Q("N", "largest force of the stop of the straight knee; no prediction")]
    hip_moment_peak: Annotated[float, Q("N m", "largest moment of the driven hip, in size; no prediction")]
    hip_work: Annotated[float, Q("J", "positive work of hip and trunk on the leg below the thigh, per cycle")]
    damper_work: Annotated[float, Q("J", "dissipated by the damper per cycle")]
    centre_height: Annotated[float, Q("m", "instant centre of the straight knee above A")]
    centre_offset: Annotated[
        float,
        Q(
            "m",
            "that centre behind the line from hip to heel; positive: the load keeps the knee straight",
            usual=STABLE,
        ),
    ]
    min_phi: Annotated[float, Q("deg", "smallest knee angle; negative is hyperextension")]
    settled_cycles: Annotated[float, Q("", "cycles before the response repeats; all of them when it never does")]
    cycles_simulated: Annotated[
        float, Q("", "fewer than the setting when the walk has settled into a motion that repeats")
    ]
    gait_angle_residual: Annotated[float, Q("deg", "largest root mean square misfit of a gait angle's series")]
    gait_hip_residual: Annotated[float, Q("m", "largest root mean square misfit of the hip path's series")]


ARRAYS = {
    "time": Array(("time",), "s", "analysis window, end point included"),
    "phase": Array(("time",), "", "time in gait cycles"),
    "knee_angle": Array(("time",), "deg", "simulated, flexion positive"),
    "knee_angle_recorded": Array(("time",), "deg", "of the recorded gait"),
    "knee_peaks": Array(("cycle",), "deg", "largest knee angle of each trailing cycle"),
    "spectrum_frequency": Array(("frequency",), "", "per gait cycle"),
    "spectrum_amplitude": Array(("frequency",), "deg", "of the knee angle over the trailing cycles"),
    "walk": Array(("frame", "joint", "axis"), "m", "joints of the last two cycles, ground-fixed frame"),
    "heel_force": Array(("time",), "N", "normal force of the ground"),
    "toe_force": Array(("time",), "N", "normal force of the ground"),
    "damper_force": Array(("time",), "N", "tension positive"),
    "hip_moment": Array(("time",), "N m", "of the hip on the leg below the thigh, flexion positive"),
    "hip_power": Array(("time",), "W", "of hip and trunk on the leg below the thigh"),
    "centre_flexion": Array(("pose",), "deg", "knee angles of the path of the instant centre"),
    "centre_path": Array(("pose", "axis"), "m", "instant centre of the shank seen from A, thigh upright"),
}
