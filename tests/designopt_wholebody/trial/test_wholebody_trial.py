"""The model of a trial: outputs of the bundled push-up, designs and files that cannot be used, its studies."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from designopt_recordings.files.write import trc_text
from designopt_wholebody.models.trial import WholebodyTrial
from designopt_wholebody.synthetic.pushup import pushup
from designopt_wholebody.synthetic.walk import walk
from designopt_wholebody.trial.figures import ANGLES, JOINTS

import designopt
from designopt.plugin import Diverged, InputFile, InvalidDesign, InvalidSetting
from designopt.report.parts.designs.influence import influence
from designopt.study.load import study_from_file
from designopt.testing import check_model

STUDIES = Path(__file__).parents[3] / "studies"
OURS = (
    "pushup_loads",
    "preprocessing",
    "pushup_consistency",
    "segments_17_21",
    "inertia_sensitivity",
    "hidden_markers",
    "gait_consistency",
    "shoulder_girdle",
)
QUICK = {"cycles": 1, "rate": 25.0}


@pytest.fixture(scope="module")
def trial() -> WholebodyTrial:
    model = WholebodyTrial(**QUICK)  # type: ignore[arg-type]
    model.check()
    model.prepare()
    return model


def test_it_keeps_the_rules_for_models() -> None:
    check_model(WholebodyTrial, designs=[{"preparation": "filtered", "body": "arm7"}], scenarios=[{}], settings=QUICK)


def test_the_open_grip_spares_the_elbow_and_loads_the_shoulder(trial: WholebodyTrial) -> None:
    # the conclusion of Nunes 2017 for the elbow
    closed, opened = (trial.evaluate({"grip": grip}, {})[0] for grip in ("closed", "open"))  # type: ignore[typeddict-item]
    assert opened["elbow_torque"] < 0.8 * closed["elbow_torque"]
    assert opened["shoulder_torque"] > closed["shoulder_torque"]
    for outputs in (closed, opened):
        assert outputs["used"] > 0.95
        assert outputs["violation"] < 1e-9
        assert 0.2 < outputs["elbow_force"] < 0.8  # body weights
        assert outputs["torque_error"] > 0.0


def test_filters_reduce_noise_and_consistency_removes_violations(trial: WholebodyTrial) -> None:
    outputs = {
        name: trial.evaluate({"preparation": name, "cutoff": 4.0}, {})[0] for name in ("raw", "filtered", "consistent")
    }  # type: ignore[typeddict-item]
    assert outputs["filtered"]["torque_noise"] < 0.5 * outputs["raw"]["torque_noise"]
    assert outputs["consistent"]["violation"] < 1e-6 * outputs["raw"]["violation"]
    assert outputs["raw"]["iterations"] == 0.0


def test_masses_of_groups_of_segments_change_loads_of_these(trial: WholebodyTrial) -> None:
    plain, heavy = (trial.evaluate({"preparation": "filtered", "leg_mass": f}, {})[0] for f in (1.0, 1.3))  # type: ignore[typeddict-item]
    assert heavy["residual_force"] > plain["residual_force"] + 10.0  # plates carry the true mass
    assert heavy["elbow_torque"] == pytest.approx(plain["elbow_torque"], rel=1e-9)


def test_a_hidden_marker_comes_back_within_skin_motion(trial: WholebodyTrial) -> None:
    plain = trial.evaluate({"preparation": "filtered"}, {})[0]
    hidden, arrays = trial.evaluate({"preparation": "filtered", "hidden": "CALC_R"}, {}, frozenset({"status"}))
    assert "rebuilt_error" not in plain
    assert 0.002 < hidden["rebuilt_error"] < 0.03  # the skin moves by 5 mm on each axis
    assert (arrays["status"] == 20).sum() == 27  # rebuilt in the middle half of 51 frames
    with pytest.raises(Diverged, match="cannot be rebuilt"):
        trial.evaluate({"hidden": "EU_R"}, {})
    with pytest.raises(InvalidDesign, match="there is no marker 'CALX_R'; did you mean CALC_R"):
        trial.evaluate({"hidden": "CALX_R"}, {})


def test_seventeen_segments_have_no_girdle(trial: WholebodyTrial) -> None:
    outputs = trial.evaluate({"body": "wholebody17", "preparation": "filtered"}, {})[0]
    assert not [name for name in outputs if name.startswith("acromioclavicular")]
    assert outputs["shoulder_force"] > 0.1


def test_arrays_have_the_frames_of_the_trial(trial: WholebodyTrial) -> None:
    search = {"frame_iterations", "frame_increments", "frame_seconds"}
    names = frozenset({"time", "angles", "forces", "status", "sticks", "torque_sizes", *search})
    outputs, arrays = trial.evaluate({}, {}, names)
    assert set(arrays) == names
    assert len(arrays["time"]) == len(arrays["angles"]) == len(arrays["sticks"]) == 51
    assert arrays["forces"].shape == (51, 20, 3)
    assert arrays["sticks"].shape == (51, 25, 2, 3)
    assert arrays["torque_sizes"][5:-5, list(JOINTS).index("elbow")].max() == pytest.approx(outputs["elbow_torque"])
    assert outputs["iterations"] == pytest.approx(arrays["frame_iterations"][arrays["status"] < 100].mean())
    assert (arrays["frame_increments"] < 1e-10).all()
    assert (arrays["frame_seconds"] > 0.0).all()
    assert set(outputs) >= {f"{joint}_force" for joint in JOINTS}
    assert np.isfinite(list(outputs.values())).all()


def test_a_walk_is_a_trial_of_its_own_cut_at_the_hips_extension() -> None:
    walking = WholebodyTrial(cycles=2, rate=25.0)
    names = frozenset({"angle_mean", "ground_forces", "violations_by_type", "raw_violations_by_type", "differences"})
    outputs, arrays = walking.evaluate({"cutoff": 8.0}, {"exercise": "walk"}, names)
    assert outputs["cycles"] == 1.0  # the trial does not begin with one
    assert 30.0 < np.rad2deg(outputs["hip_flexion_range"]) < 60.0
    knee = np.rad2deg(arrays["angle_mean"][:, list(ANGLES).index("knee_flexion")])
    assert 5.0 < knee.min() < 25.0 < 35.0 < knee.max() < 65.0
    assert np.nanmax(arrays["ground_forces"][:, :, 1, 1]) > 0.8 * 81.6 * 9.81
    assert arrays["violations_by_type"].max() < 1e-9
    assert (arrays["raw_violations_by_type"].max(axis=0) > 1e-3).all()
    # normal differences would be 0.95 and 0.72; those of sinusoids on the skin are close to it
    assert outputs["agreement_coverage"] == pytest.approx(0.95, abs=0.03)
    assert outputs["agreement_thesis"] == pytest.approx(0.72, abs=0.05)
    assert len(arrays["differences"]) > 1000


def test_a_simulation_with_the_forces_found_stays_with_the_motion(trial: WholebodyTrial) -> None:
    arrays = trial.evaluate({}, {}, frozenset({"sticks", "simulated_sticks", "raw_sticks"}))[1]
    away = np.linalg.norm(arrays["simulated_sticks"] - arrays["sticks"], axis=-1).max(axis=(1, 2))
    assert away[0] < 1e-12
    assert away[:25].max() < 0.005  # one second
    assert 0.002 < np.linalg.norm(arrays["raw_sticks"] - arrays["sticks"], axis=-1).max() < 0.1


def test_the_surface_under_the_scapula_is_a_design(trial: WholebodyTrial) -> None:
    outputs = [trial.evaluate({"body": "arm7", "ellipsoid": f}, {})[0] for f in (0.8, 1.0)]
    assert outputs[0]["marker_distance"] != outputs[1]["marker_distance"]
    assert 0.003 < outputs[1]["marker_distance"] < 0.02


def test_unusable_input_is_reported_in_a_sentence(trial: WholebodyTrial) -> None:
    with pytest.raises(InvalidDesign, match="there is no model 'body9'"):
        trial.evaluate({"body": "body9"}, {})
    with pytest.raises(InvalidDesign, match="cut-off of 20 Hz is not possible at 25 Hz"):
        trial.evaluate({"cutoff": 20.0}, {})
    with pytest.raises(InvalidDesign, match="needs the file of a static posture"):
        trial.evaluate({}, {"recording": InputFile("walk.trc", b"nothing")})
    with pytest.raises(InvalidDesign, match=r"walk\.trc"):
        trial.evaluate({}, {"recording": InputFile("walk.trc", b"nothing"), "static": InputFile("s.trc", b"x")})
    with pytest.raises(InvalidSetting, match="line 1, column 1: 'marker_set' is missing"):
        WholebodyTrial(marker_set=InputFile("m.yaml", b"landmarks: {}\n")).check()
    with pytest.raises(
        InvalidSetting, match=r"there is no marker set 'girdle'; known: own_names, .*plugin_gait_full, plugin"
    ):
        WholebodyTrial(markers="girdle").check()
    with pytest.raises(InvalidDesign, match="there is no angle 'elbow' to cut cycles by"):
        WholebodyTrial(cycle_angle="elbow", **QUICK).evaluate({"preparation": "raw"}, {})  # type: ignore[arg-type]


def test_files_that_do_not_tell_enough_are_reported_in_a_sentence(trial: WholebodyTrial) -> None:
    pushups = pushup("closed", cycles=1, rate=25.0)
    file = InputFile("trial.trc", trc_text(pushups.recording).encode())
    with pytest.raises(InvalidDesign, match="does not contain the mass of the subject; give mass"):
        trial.evaluate({}, {"recording": file, "static": file})
    marks = np.stack([pushups.subject.landmarks[name] for name in pushups.subject.model.landmarks])[None]
    posture = replace(
        pushups.recording, time=np.zeros(1), marker_names=tuple(pushups.subject.model.landmarks), markers=marks
    )
    static = InputFile("static.trc", trc_text(posture).encode())
    files = {"recording": file, "static": static, "mass": 80.0}
    with pytest.raises(InvalidDesign, match="no columns of ground reactions"):
        trial.evaluate({}, {**files, "reactions": InputFile("grf.csv", b"time,a\n0,1\n0.1,2\n")})  # type: ignore[typeddict-item]
    with pytest.raises(InvalidDesign, match=r"landmark '\w+' is missing in all frames|landmark '\w+'.* is missing"):
        trial.evaluate({}, {**files, "static": file})  # type: ignore[typeddict-item]


def test_a_mirrored_recording_and_forces_that_pull_are_named_by_the_check(trial: WholebodyTrial) -> None:
    recording = walk(cycles=1, rate=50.0).recording
    mirrored = replace(recording, markers=recording.markers * np.array([1.0, 1.0, -1.0]), plates=())
    assert trial.remarks({"recording": InputFile("walk.trc", trc_text(replace(recording, plates=())).encode())}) == []
    (note,) = trial.remarks({"recording": InputFile("walk.trc", trc_text(mirrored).encode())})
    assert re.search(r"^walk\.trc: the left markers .* is the recording mirrored", note)
    text = b"time,ground_force_vx,ground_force_vy,ground_force_vz,ground_force_px,ground_force_py,ground_force_pz\n"
    rows = b"".join(b"%.2f,0,%.1f,0,0,0,0\n" % (0.01 * k, -700.0) for k in range(20))
    walk_file = InputFile("walk.trc", trc_text(replace(recording, plates=())).encode())
    files = {"recording": walk_file, "reactions": InputFile("grf.csv", text + rows), "mass": 70.0}
    assert "grf.csv: the ground pulls with up to 700 N: reverse the sign of the forces, which act on the subject" in (
        trial.remarks(files)
    )


@pytest.mark.parametrize("name", OURS)
def test_studies_of_trials_are_valid(name: str) -> None:
    study = study_from_file(STUDIES / f"{name}.yaml")
    assert study.model.plugin.name == "wholebody_trial"
    assert json.dumps(study.name) == f'"{name}"'


def test_the_study_of_masses_asks_for_their_influence_and_recommends_none(tmp_path: Path) -> None:
    study = designopt.load(STUDIES / "inertia_sensitivity.yaml", overrides=["stages.0.solver.base=2"])
    assert not study.definition.objectives
    result = study.run(tmp_path / "s.study")
    section = influence(result)
    assert section is not None
    assert result.recommended() is None
