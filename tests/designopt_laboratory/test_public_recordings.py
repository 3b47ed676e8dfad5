"""Public recordings as a laboratory has them: C3D with four plates and a generic model; a full-body walk of OpenSim."""

import numpy as np
import pytest
from designopt_recordings.files.read import read_table

from designopt.plugin import InputFile

#: Plug-in Gait on the bodies of gait2392: body and place (m) of the right and middle markers.
SIDED = {
    "ASI": ("pelvis", 0.02, 0.03, 0.128), "PSI": ("pelvis", -0.16, 0.04, 0.044), "THI": ("femur", 0.02, -0.2, 0.09),
    "KNE": ("femur", 0.0, -0.404, 0.05), "TIB": ("tibia", 0.02, -0.2, 0.06), "ANK": ("tibia", -0.005, -0.41, 0.053),
    "HEE": ("calcn", -0.02, 0.02, -0.005), "TOE": ("calcn", 0.18, 0.03, -0.01), "SHO": ("torso", -0.03, 0.44, 0.15),
}  # fmt: skip
MIDDLE = {"C7": (-0.1, 0.45), "T10": (-0.12, 0.2), "CLAV": (0.06, 0.38), "STRN": (0.1, 0.22)}


def plug_in_gait() -> bytes:
    def marker(name: str, body: str, *spot: float) -> str:
        location = " ".join(map(str, spot))
        return f'<Marker name="{name}"><body>{body}</body><location>{location}</location></Marker>'

    text = "".join(marker(name, "torso", x, y, 0.0) for name, (x, y) in MIDDLE.items())
    for name, (body, x, y, z) in SIDED.items():
        for side, sign in (("R", 1.0), ("L", -1.0)):
            on = body if body in ("pelvis", "torso") else f"{body}_{side.lower()}"
            text += marker(f"{side}{name}", on, x, y, sign * z)
    return (
        f'<OpenSimDocument Version="30000"><MarkerSet><objects>{text}</objects></MarkerSet></OpenSimDocument>'.encode()
    )


def test_a_c3d_with_four_plates_and_a_generic_model_gives_the_moments_of_a_walk(analysed, shared):
    """pyCGM's sample: plates are hit by the right and the left foot in turn, 4, 3, 2, 1."""
    settings = {
        "model": shared("opensim/pipeline_gait2392/gait2392_generic.osim"),
        "marker_set": InputFile("plug_in_gait.xml", plug_in_gait()),
        "scale_to_static": True,
        "until": "moments",
    }
    folder = "mocap/plugin_gait_fullbody"
    trial = {
        "recording": shared(f"{folder}/Movement_trial.c3d"),
        "static": shared(f"{folder}/Static_trial.c3d"),
        "mass": 85.0,
    }
    names = ("moments", "moment_names", "foot_forces", "cycle_sides", "notes", "pose_status")
    figures, arrays = analysed(trial, *names, **settings, design={"load_cutoff": 20.0})
    assert figures["marker_rms"] < 0.025
    assert figures["mass"] == pytest.approx(85.0)
    assert figures["residual_force"] < 0.1 * 85.0 * 9.81
    assert sorted(arrays["cycle_sides"]) == ["left", "right"]
    loaded = np.linalg.norm(arrays["foot_forces"], axis=2) > 0.0
    strikes = [np.flatnonzero(np.diff(loaded[:, foot].astype(int)) == 1).tolist() for foot in (0, 1)]
    assert np.abs(np.array(strikes) - [[41, 165], [104, 228]]).max() <= 3  # frames
    beside = arrays["pose_status"] == 105
    assert beside[:40].all()  # nobody stands on a plate yet
    assert not beside[70:280].any()
    for side in "rl":
        ankle = arrays["moments"][:, list(arrays["moment_names"]).index(f"ankle_angle_{side}")] / 85.0
        assert 0.9 < -np.nanmin(ankle) < 1.7  # N m/kg of plantar flexion


def test_a_full_body_walk_has_the_moments_of_opensim(analysed, shared):
    """Data of Rajagopal et al. 2016: the model of the subject, markers and plates alone, against OpenSim's moments."""
    folder = "mocap/walk_fullbody_opensim"
    trial = {"recording": shared(f"{folder}/markers_walk.trc"), "reactions": shared(f"{folder}/grf_walk.mot")}
    model = shared("opensim/models/walk_scaled_80musc.osim")
    figures, arrays = analysed(trial, "moments", "moment_names", model=model, until="moments")
    assert figures["marker_rms"] < 0.015
    theirs = read_table(shared(f"{folder}/id_walk.sto"))
    for name in ("hip_flexion", "hip_adduction", "knee_angle", "ankle_angle"):
        for side in "rl":
            ours = arrays["moments"][:, list(arrays["moment_names"]).index(f"{name}_{side}")]
            true = np.interp(
                arrays["time"], theirs.time, theirs.column(f"{name}_{side}_moment"), left=np.nan, right=np.nan
            )
            common = np.isfinite(ours) & np.isfinite(true)
            assert common.sum() > 120
            assert np.corrcoef(ours[common], true[common])[0, 1] > 0.95  # 0.968 to 0.998
            assert np.sqrt(np.mean((ours - true)[common] ** 2)) < 9.0  # N m of 62 to 144
