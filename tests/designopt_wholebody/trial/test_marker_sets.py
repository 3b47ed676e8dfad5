"""Bodies and marker sets of the user: hip centres by regression, clusters, mistakes by position."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from designopt_recordings.files.read import read_recording
from designopt_recordings.files.text import input_file
from designopt_recordings.recording import Recording
from designopt_wholebody.model.library import load_model
from designopt_wholebody.models.trial import WholebodyTrial
from designopt_wholebody.trial.landmarks import find_landmarks, static_subject
from designopt_wholebody.trial.marker_set import HipCentre, bundled_marker_set, read_marker_set

from designopt.plugin import InputFile, InvalidDesign, InvalidSetting

DATA = Path(os.environ.get("DESIGNOPT_SHARED", Path(__file__).parents[4] / "shared")) / "data"


@pytest.mark.parametrize(
    ("method", "centre"),
    [
        # m forwards, upwards, to the right of the middle of the anterior spines, for 240 mm width and 150 mm depth
        ("harrington", (-0.24 * 0.150 - 0.0099, -0.30 * 0.240 - 0.0109, 0.33 * 0.240 + 0.0073)),
        ("bell", (-0.19 * 0.240, -0.30 * 0.240, 0.36 * 0.240)),
    ],
)
def test_a_hip_centre_follows_the_regression_in_the_axes_of_the_pelvis(method, centre):
    x, y, z = centre
    names = ("LASI", "RASI", "LPSI", "RPSI")
    spines = np.array([[0.0, 1.0, -0.12], [0.0, 1.0, 0.12], [-0.15, 1.0, -0.05], [-0.15, 1.0, 0.05]])
    turn = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    for side, sign in (("right", 1.0), ("left", -1.0)):
        placed = HipCentre(method, side, ("LASI", "RASI"), ("LPSI", "RPSI"))
        markers = replace(bundled_marker_set("plugin_gait"), landmarks={"CAQ_R": placed})
        for axes in (np.eye(3), turn):
            recording = Recording(1.0, np.zeros(1), names, (spines @ axes.T)[None])
            expected = axes @ np.array([x, 1.0 + y, sign * z])
            assert markers.place_landmarks(recording, ("CAQ_R",))["CAQ_R"][0] == pytest.approx(expected)


def test_clusters_carry_the_landmarks_of_markers_that_a_trial_lacks():
    """gait2392: medial and lateral markers of knees and ankles were taken off before the walk."""
    folder = DATA / "opensim" / "pipeline_gait2392"
    if not folder.is_dir():
        pytest.skip("the public subject (../shared/data/opensim/pipeline_gait2392, or DESIGNOPT_SHARED) is not there")
    static, walk = (read_recording(input_file(folder / f"subject01_{name}.trc")) for name in ("static", "walk1"))
    markers = bundled_marker_set("helen_hayes")
    assert not {"R.Knee.Med", "R.Knee.Lat"} & set(walk.marker_names)
    subject = static_subject(load_model("lower_limbs7"), static, markers, 72.6)
    landmarks = find_landmarks(subject, walk, markers)
    assert (landmarks.status < 100).all()
    width = {}
    for recording, positions in (
        (static, markers.place_landmarks(static, ("CM_R", "CL_R"))),
        (walk, landmarks.positions),
    ):
        width[recording is walk] = np.linalg.norm(positions["CM_R"] - positions["CL_R"], axis=1)
    assert width[True].std() < 1e-9  # m: the cluster is rigid
    assert width[True].mean() == pytest.approx(width[False].mean(), abs=1e-3)
    with pytest.raises(ValueError, match=r"no marker 'R\.Knee\.Lat' for landmark 'CL_R'"):
        replace(markers, static=()).place_landmarks(walk, ("CL_R",))


def test_hip_centres_by_skin_markers_are_near_the_vendors():
    folder = DATA / "mocap" / "plugin_gait_fullbody"
    if not folder.is_dir():
        pytest.skip("the recording (../shared/data/mocap/plugin_gait_fullbody, or DESIGNOPT_SHARED) is not there")
    static = read_recording(input_file(folder / "Static_trial.c3d"))
    centres = bundled_marker_set("plugin_gait").place_landmarks(static, ("CAQ_R", "CAQ_L"))
    for side in "RL":  # Davis et al. 1991 by leg length there: 2.2 and 2.3 cm away
        assert np.linalg.norm(centres[f"CAQ_{side}"] - static.marker(f"{side}FEP"), axis=1).max() < 0.025


BODY = b"""\
model: right_leg
based_on: lower_limbs7
only: [pelvis, thigh_R, shank_R, foot_R]
sides: right
"""


UNKNOWN_SEGMENT = b"marker_set: m\nclusters: {thigh_L: [a]}\n"
UNKNOWN_METHOD = b"marker_set: m\nlandmarks:\n  CAQ_R: {hip_centre: bel, side: right}\n"
SWAPPED, MISSPELT = BODY.replace(b"thigh_R", b"thing_R"), BODY.replace(b"sides", b"side")


@pytest.mark.parametrize(
    ("settings", "name", "text"),
    [
        ({"body_file": SWAPPED}, "body_file", "line 3, column 16: .*did you mean 'thigh_R'"),
        ({"body_file": MISSPELT}, "body_file", "line 4, column 1: .*did you mean 'sides'"),
        ({"body_file": b"model: [", "markers": "own_names"}, "body_file", "line 1"),
        ({"body_file": BODY, "marker_set": UNKNOWN_SEGMENT}, "marker_set", "no segment 'thigh_L'"),
        ({"marker_set": UNKNOWN_METHOD}, "marker_set", "line 3"),
        ({"markers": "plugin_gate"}, "markers", "did you mean 'plugin_gait'"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_body_or_a_marker_set_is_named_with_its_position(settings, name, text):
    files = {k: InputFile(f"{k}.yaml", v) if isinstance(v, bytes) else v for k, v in settings.items()}
    with pytest.raises(InvalidSetting, match=text) as error:
        WholebodyTrial(**files).check()
    assert error.value.name == name


def test_a_study_takes_the_users_body_in_place_of_a_bundled_one():
    model = WholebodyTrial(
        body_file=InputFile("whole.yaml", b"model: mine\nbased_on: wholebody17\n"), cycles=1, rate=20.0
    )
    model.check()
    trial = {"exercise": "walk"}
    ours, _ = model.evaluate({}, trial)
    bundled, _ = WholebodyTrial(cycles=1, rate=20.0).evaluate({"body": "wholebody17"}, trial)
    assert ours == bundled
    with pytest.raises(InvalidDesign, match="body_file replaces the input body"):
        model.evaluate({"body": "wholebody21"}, trial)


def test_the_positions_of_a_marker_set_are_read_with_all_new_keys():
    text = b"marker_set: m\nlandmarks: {}\nclusters: {thigh_R: [a, b, c]}\nstatic: [k]\n"
    markers = read_marker_set(text, "m.yaml")
    extended = markers.with_clusters(load_model("lower_limbs7"))
    assert extended.segments["thigh_R"].landmarks[-3:] == ("a", "b", "c")
    assert set("abc") <= set(extended.landmarks)
