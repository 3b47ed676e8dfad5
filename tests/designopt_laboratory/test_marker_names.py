"""Markers recorded under other names than the model has: refused where the pose needs them, with the likely names."""

from dataclasses import replace

import numpy as np
import pytest
import walking_laboratory as laboratory
from designopt_laboratory.model import LaboratoryTrial
from designopt_muscle.markers.names import suggest_names

from designopt.plugin import InputFile, InvalidSetting

WALK, STANDING = laboratory.walk(cycles=0.6), laboratory.standing()
PELVIS = {"RASI": "R.ASIS", "LASI": "L_asis", "RPSI": "R_psi", "LPSI": "left psi"}


def trc(trial, names=None, **changes):
    marker_names = tuple((names or {}).get(name, name) for name in trial.recording.marker_names)
    return replace(trial, recording=replace(trial.recording, marker_names=marker_names, **changes)).trc()


def walker(**settings):
    return LaboratoryTrial(
        **{"model": InputFile("walker.osim", laboratory.model_text()), "until": "angles", **settings}
    )


def refused(trial, **settings):
    with pytest.raises(InvalidSetting) as error:
        laboratory.raise_mistake(walker(**settings), trial)
    return error.value


@pytest.mark.parametrize(
    ("recorded", "on_model", "partner"),
    [
        ("RASI", ["R.ASIS", "L.ASIS"], "R.ASIS"),
        ("SACR", ["V.Sacral", "Sternum"], "V.Sacral"),
        ("ana:r_knee", ["LKNE", "RKNE"], "RKNE"),
        ("ASIS_l", ["ASIS_R"], None),
        ("Head", ["RTOE", "LTOE"], None),
    ],
)
def test_a_recorded_name_suggests_the_one_on_the_model_of_the_same_side(recorded, on_model, partner):
    assert suggest_names([recorded], on_model).get(recorded) == partner


def test_a_pelvis_under_other_names_is_refused_with_the_names_that_were_meant():
    error = refused({"recording": InputFile("walk.trc", trc(WALK, PELVIS))})
    assert error.name == "recording"
    assert "walk.trc: the pose of pelvis lacks the markers RASI, RPSI, LASI, LPSI. Recorded, but not on" in str(error)
    for name, recorded in PELVIS.items():
        assert f"'{name}' for '{recorded}'" in str(error)
    assert "rename_markers" in str(error)


def test_the_static_pose_is_judged_alike():
    trial = {"recording": InputFile("walk.trc", WALK.trc()), "static": InputFile("static.trc", trc(STANDING, PELVIS))}
    assert refused(trial, scale_to_static=True).name == "static"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"RTHI": "wand", "RKNE": "stick"},
            "the pose of femur_r lacks the markers RTHI, RKNE",
        ),  # bodies beyond it have markers
        (
            {"RTOE": "M1", "RMT5": "M2", "RHEE": "M3", "LTOE": "LTO"},
            "the pose of calcn_l lacks the markers",
        ),  # nothing else shows it
    ],
)
def test_a_body_whose_pose_is_lost_by_other_names_is_refused(change, text):
    assert text in str(refused({"recording": InputFile("walk.trc", trc(WALK, change))}))


def test_empty_trajectories_of_a_needed_body_are_refused():
    markers = WALK.recording.markers.copy()
    markers[:, [WALK.recording.marker_names.index(name) for name in PELVIS]] = np.nan
    text = str(refused({"recording": InputFile("walk.trc", trc(WALK, markers=markers))}))
    assert "Without any position: RASI, RPSI, LASI, LPSI" in text


def test_markers_that_were_not_measured_need_no_name(analysed):
    feet = [name for name in WALK.recording.marker_names if name[1:] in ("HEE", "TOE", "MT5")]
    trial = {"recording": InputFile("walk.trc", trc(WALK, {name: f"x{i}" for i, name in enumerate(feet)}))}
    assert "the pose of ankle_angle_r, ankle_angle_l lacks the markers" in str(refused(trial))
    figures, _ = analysed(trial, until="angles", marker_weights=dict.fromkeys(feet, 0.0))
    assert figures["usable"] == 1.0


def test_renamed_markers_give_the_angles_of_the_model_s_names(analysed):
    plain = {"recording": InputFile("walk.trc", WALK.trc()), "static": InputFile("static.trc", STANDING.trc())}
    changed = {
        "recording": InputFile("walk.trc", trc(WALK, PELVIS)), "static": InputFile("static.trc", trc(STANDING, PELVIS)),
    }  # fmt: skip
    settings = {"until": "angles", "scale_to_static": True}
    _, expected = analysed(plain, "angles", **settings)
    names = {recorded: name for name, recorded in PELVIS.items()}
    _, arrays = analysed(changed, "angles", rename_markers=names, **settings)
    assert np.array_equal(arrays["angles"], expected["angles"])


def test_wrong_names_in_the_settings_are_named_at_their_keys():
    trial = {"recording": InputFile("walk.trc", WALK.trc())}
    model = walker(
        rename_markers={"KNEE": "RKNEE"}, marker_weights={"RTHY": 0.3, "RASI": 2.0}, weighted_markers=["RASI", "LSAI"]
    )
    mistakes = [(m.name, m.key, "did you mean" in m.message) for m in model.check_scenario(trial)]
    assert mistakes == [
        ("marker_weights", "RTHY", True), ("weighted_markers.1", None, True), ("rename_markers", "KNEE", True),
    ]  # fmt: skip
    model = walker(rename_markers={"RKNN": "RKNE"})
    without = {"recording": InputFile("walk.trc", trc(WALK, {"RKNE": "RKN"}))}
    assert "rename_markers names 'RKNN', which is not recorded; did you mean 'RKN'" in " ".join(model.remarks(without))
    twice = {"recording": InputFile("walk.trc", trc(WALK, {"RKNE": "stick", "RTHI": "wand"}))}
    assert "another marker of this name" in str(refused(twice, rename_markers={"stick": "RKNE", "wand": "RKNE"}))
