"""Wrong units, signs, files and models of a laboratory are named with the way out, before a run or as its reason."""

import re
from dataclasses import replace

import numpy as np
import pytest
import walking_laboratory as laboratory
from designopt_laboratory.folder.contents import contents_of
from designopt_laboratory.model import LaboratoryTrial
from designopt_laboratory.trial.functional import FunctionalJoint

import designopt
from designopt.plugin import Diverged, InputFile, InvalidSetting
from designopt.study.language.errors import StudyError

WALK, STANDING = laboratory.walk(cycles=0.6), laboratory.standing()
TRC, MOT, TEXT = InputFile("walk.trc", WALK.trc()), InputFile("walk.mot", WALK.mot()), laboratory.model_text()
OWN = InputFile("own.osim", TEXT)
SETUP = b"<OpenSimDocument><CMCTool/></OpenSimDocument>"
FEMUR = (
    b"<OpenSimDocument><ScaleTool><ModelScaler><ScaleSet><objects><Scale><scales>1 1 1</scales><segment>femur</segment>"
    b"</Scale></objects></ScaleSet></ModelScaler></ScaleTool></OpenSimDocument>"
)


def walker(text=TEXT, **settings):
    return LaboratoryTrial(model=InputFile("walker.osim", text), **settings)


def reactions(factor):
    plates = tuple(replace(plate, force=factor * plate.force, moment=factor * plate.moment) for plate in WALK.plates)
    return InputFile("walk.mot", replace(WALK, plates=plates).mot(6))


def pose(walk, name, **changes):
    return InputFile(name, replace(walk, recording=replace(walk.recording, **changes)).trc())


@pytest.mark.parametrize(
    ("settings", "name", "text"),
    [
        ({"scaling": InputFile("s.xml", SETUP)}, "scaling", "s.xml: .*<ScaleTool> .* is expected"),
        ({"scaling": InputFile("s.xml", FEMUR)}, "scaling", "s.xml: 'femur' has a factor .* did you mean 'femur_l'"),
        ({"tasks": InputFile("t.xml", SETUP)}, "tasks", "t.xml: .*no <IKTaskSet>"),
        ({"marker_set": InputFile("m.xml", b"walk")}, "marker_set", "m.xml: .*not well-formed XML"),
        ({"text": re.sub(rb"<mass>[^<]*<", b"<mass>0<", TEXT)}, "model", "walker.osim has no mass"),
    ],
)
def test_set_up_files_and_models_that_cannot_serve_are_named_at_their_setting(settings, name, text):
    (mistake,) = [mistake for mistake in walker(**settings).check() if mistake.name == name]
    assert re.search(text, mistake.message)


UNWEIGHTED = dict.fromkeys(WALK.recording.marker_names, 0.0)
EMPTY = pose(WALK, "walk.trc", markers=np.full_like(WALK.recording.markers, np.nan))
SMALL = pose(STANDING, "static.trc", markers=0.1 * STANDING.recording.markers)


@pytest.mark.parametrize(
    ("settings", "conditions", "name", "text"),
    [
        ({}, {"recording": EMPTY}, "recording", "walk.trc: no marker has a position in any frame"),
        ({"scale_to_static": True}, {"recording": TRC, "static": SMALL}, "static", "check the unit of the static pose"),
        ({"scale_to_static": True}, {"recording": TRC, "static": TRC}, "recording", "the static pose moves: half of"),
        ({"window": (5.0, 9.0)}, {"recording": TRC}, "window", "the window from 5 to 9 s is beyond the record"),
        (
            {"functional_joints": {"knee_r": FunctionalJoint()}, "scale_to_static": True},
            {"recording": TRC, "functional": [InputFile("turn.trc", WALK.trc())], "subject_model": OWN},
            "functional",
            r"turn.trc: the movement .* but own.osim is the subject's own \(subject_model\): leave out one",
        ),
        ({}, {"recording": EMPTY, "emg": InputFile("emg.csv", b"nonsense")}, "emg", "emg.csv"),
        ({"marker_weights": UNWEIGHTED}, {"recording": TRC}, "recording", "no marker of the model has a weight"),
        (
            {},
            {"recording": TRC, "reactions": MOT, "external_loads": InputFile("loads.xml", SETUP)},
            "external_loads",
            "loads.xml",
        ),
        (
            {"text": re.sub(rb"(?s)<MarkerSet.*</MarkerSet>", b"", TEXT)},
            {"recording": TRC},
            "recording",
            "name a file of them with the setting marker_set",
        ),
    ],
)
def test_files_that_cannot_serve_are_named_at_their_condition(settings, conditions, name, text):
    with pytest.raises(InvalidSetting, match=text) as error:
        laboratory.raise_mistake(walker(**settings), conditions)
    assert error.value.name == name


def test_all_mistakes_in_the_files_of_a_trial_are_reported_together():
    plates = tuple(replace(plate, moment=1000.0 * plate.moment) for plate in WALK.plates)
    far = InputFile("walk.mot", replace(WALK, plates=plates).mot())
    several = walker(window=(5.0, 9.0), marker_weights={"RASSI": 1.0}, cycles="events")
    mistakes = several.check_scenario({"recording": TRC, "reactions": far})
    assert [mistake.name for mistake in mistakes] == ["marker_weights", "recording", "window", "reactions", "reactions"]
    assert "in mm?" in mistakes[-1].message
    empty = {name: InputFile(f"{name}.trc", b"") for name in ("recording", "static")}
    empty |= {"reactions": InputFile("r.mot", b""), "external_loads": InputFile("l.xml", b"<a>")}
    assert {mistake.name for mistake in walker().check_scenario(empty)} == set(empty)
    functional = {"recording": TRC, "functional": [TRC, InputFile("arc.trc", b"")]}
    assert [mistake.name for mistake in walker().check_scenario(functional)] == ["functional"]


def test_a_static_pose_that_cannot_be_read_is_an_error_of_its_folder(tmp_path):
    laboratory.write(tmp_path)
    (tmp_path / "static.trc").write_text("")
    with pytest.raises(ValueError, match=r"the static pose cannot be read.*\n  static.trc: the file is empty"):
        LaboratoryTrial.folder_study(tmp_path, tmp_path / "s.yaml", "s")


RENAMED = tuple(name.replace("RKNE", "XKNE") for name in WALK.recording.marker_names)


@pytest.mark.parametrize(
    ("conditions", "text"),
    [
        ({"reactions": reactions(0.001)}, "check the unit of the forces"),
        ({"reactions": reactions(0.0)}, "check the unit of the forces"),
        ({"mass": 67400.0}, "is 1e+03 times that of walker.osim: check its unit"),
        ({"recording": pose(WALK, "walk.trc", marker_names=RENAMED)}, "recorded, but not on the model, without effect"),
    ],
)
def test_probable_mistakes_are_announced_before_the_run(conditions, text):
    trial = {"recording": TRC, "reactions": MOT, **conditions}
    model = walker()
    assert not model.check_scenario(trial)
    assert text in " ".join(model.remarks(trial))
    assert text not in " ".join(model.remarks({"recording": TRC, "reactions": MOT}))


@pytest.mark.parametrize(
    ("in_degrees", "factor", "text"),
    [("yes", 1.0, "perhaps in radians"), ("no", 50.0, "probably in degrees"), ("yes", 50.0, ""), ("no", 1.0, "")],
)
def test_coordinates_in_another_unit_of_angles_are_announced(in_degrees, factor, text):
    rows = "".join(f"{0.02 * i:.2f}\t{0.1 * factor}\t{-0.01 * factor * i}\t{0.01 * factor * i}\n" for i in range(50))
    head = (
        f"m\nnRows=50\nnColumns=4\ninDegrees={in_degrees}\nendheader\ntime\tpelvis_tilt\tknee_angle_r\tknee_angle_l\n"
    )
    remarks = " ".join(walker(until="angles").remarks({"motion": InputFile("walk.mot", (head + rows).encode())}))
    assert text in remarks
    assert text or ("perhaps in" not in remarks and "probably in" not in remarks)


def test_a_coordinate_of_the_opposite_sign_is_announced_by_the_range_of_the_model():
    text = re.sub(rb"(?s)(knee_angle_l.*?<range>-2.2) 2.2", rb"\1 0.1", TEXT, count=1)
    rows = "".join(f"{0.02 * i:.2f}\t{1.2 * i}\n" for i in range(50))
    table = f"m\nnRows=50\nnColumns=2\ninDegrees=yes\nendheader\ntime\tknee_angle_l\n{rows}"
    remarks = walker(text, until="angles").remarks({"motion": InputFile("walk.mot", table.encode())})
    assert remarks[0].startswith(
        "walk.mot: knee_angle_l is outside the range of -126.1 to 5.73 deg of the model in 68%"
    )
    assert remarks[0].endswith("; within it with the opposite sign: reverse it")


def test_a_static_pose_as_trial_is_announced():
    pose_file = InputFile("static.trc", STANDING.trc())
    trial = {"recording": pose_file, "static": pose_file}
    assert "static.trc is the static pose, too" in " ".join(walker(scale_to_static=True, until="angles").remarks(trial))


def test_a_trial_without_a_usable_frame_says_why():
    model = walker(until="forces")
    trial = {"recording": TRC, "reactions": reactions(0.001)}
    with pytest.raises(Diverged, match=r"no frame has moments\. .*check the unit of the forces"):
        model.evaluate({}, trial, frozenset(), model.prepare_scenario(trial))


def test_a_recording_without_positions_is_no_trial_of_a_folder(tmp_path):
    (tmp_path / "walk.trc").write_bytes(EMPTY.content)
    assert contents_of(tmp_path).unused_files == {"walk.trc": "has no marker in any frame"}


def test_a_trial_in_which_nothing_moves_is_no_static_pose_beside_one(tmp_path):
    for name in ("static.trc", "walk_01.trc"):
        (tmp_path / name).write_bytes(STANDING.trc())
    contents = contents_of(tmp_path)
    assert contents.statics == ["static.trc"]
    assert contents.unused_files == {"walk_01.trc": "nothing moves in it, and the static pose is static.trc"}
    (tmp_path / "static.trc").unlink()
    assert contents_of(tmp_path).statics == ["walk_01.trc"]


def test_all_mistakes_of_the_settings_are_reported_at_their_positions(tmp_path):
    (tmp_path / "walker.osim").write_bytes(TEXT)
    (tmp_path / "walk.trc").write_bytes(WALK.trc())
    text = (
        "study: s\nmodel:\n  use: laboratory_trial\n  model: walker.osim\n  joints: [hip_r, kne_r]\n  window: [1, 0]\n"
        "  coordinate_weights: {R_knee: 1}\n  scale_factors: {femur: [1, 1, 1]}\n  feet: {left: calcn_r}\n"
        "scenarios:\n  - {name: a, recording: walk.trc}\nsolver: {use: evaluate}\n"
    )
    (tmp_path / "study.yaml").write_text(text)
    with pytest.raises(StudyError) as error:
        designopt.load(tmp_path / "study.yaml")
    issues = {issue.path: (issue.line, issue.column) for issue in error.value.issues}
    lines = text.splitlines()
    for path, line, word in (
        ("model.joints.1", 5, "kne_r"), ("model.window", 6, "[1"), ("model.coordinate_weights", 7, "R_knee"),
        ("model.scale_factors", 8, "femur"), ("model.feet.left", 9, "calcn_r"),
    ):  # fmt: skip
        assert issues[path] == (line, lines[line - 1].index(word) + 1)
    assert "'knee_angle_r'" in str(error.value)  # the knee of the right side


def test_markers_far_from_those_of_the_model_are_refused_with_the_likely_causes():
    tenfold = pose(STANDING, "walk.trc", markers=10.0 * STANDING.recording.markers)
    model = LaboratoryTrial(model=InputFile("walker.osim", laboratory.model_text()), until="angles")
    with pytest.raises(Diverged, match=r"walk: the markers are .* m \(RMS\) from those of the model: check the unit"):
        model.evaluate({}, {"recording": tenfold}, {"angles"}, model.prepare_scenario({"recording": tenfold}))
