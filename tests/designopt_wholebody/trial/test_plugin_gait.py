"""A recorded walk against the vendor's own joint moments (shared data; skipped where it is absent)."""

import os
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from designopt_recordings.files.read import read_recording
from designopt_recordings.files.text import input_file
from designopt_recordings.recording import Recording
from designopt_wholebody.kinematics.posture import rotation
from designopt_wholebody.model.library import load_model
from designopt_wholebody.subject import Subject
from designopt_wholebody.trial.analysis import Analysis, Settings, analyse
from designopt_wholebody.trial.landmarks import static_subject
from designopt_wholebody.trial.marker_set import MarkerSet, bundled_marker_set, read_marker_set
from numpy.typing import NDArray

Array = NDArray[np.float64]
SHARED = Path(os.environ.get("DESIGNOPT_SHARED", Path(__file__).parents[4] / "shared"))
FOLDER = SHARED / "data" / "mocap" / "plugin_gait_fullbody"


def legs() -> MarkerSet:
    return bundled_marker_set("plugin_gait_legs")


@pytest.fixture(scope="module")
def walk() -> Recording:
    if not FOLDER.is_dir():
        pytest.skip("the shared recordings (../shared/data/mocap/plugin_gait_fullbody, or DESIGNOPT_SHARED) are absent")
    pytest.importorskip("ezc3d")
    return read_recording(input_file(FOLDER / "Movement_trial.c3d"))


@pytest.fixture(scope="module")
def subject(walk: Recording) -> Subject:
    static = read_recording(input_file(FOLDER / "Static_trial.c3d"))
    return static_subject(load_model("lower_limbs7"), static, legs(), walk.parameters["Bodymass"])


@pytest.fixture(scope="module")
def filtered(walk: Recording, subject: Subject) -> Analysis:
    return analyse(subject, walk, Settings(preparation="filtered", cutoff=6.0), legs())


def compared(walk: Recording, analysis: Analysis, side: str, result: str, joint: str, part: int) -> tuple[float, float]:
    """Correlation and RMS difference of norms per kg, on the frames that the data's README names."""
    assert walk.results is not None
    chosen = (np.linalg.norm(walk.results.result(f"{side}KneeForce"), axis=1) > 2.0) & analysis.complete_frames
    assert chosen.sum() > 60
    theirs = np.linalg.norm(walk.results.result(f"{side}{result}"), axis=1)[chosen]
    ours = np.linalg.norm(analysis.loads.at(f"{joint}_{side}")[part], axis=1)[chosen] / analysis.subject.mass
    return float(np.corrcoef(theirs, ours)[0, 1]), float(np.sqrt(np.mean((theirs - ours) ** 2)))


@pytest.mark.parametrize("side", ["R", "L"])
@pytest.mark.parametrize(
    ("result", "joint", "part", "correlation", "difference"),
    [
        ("AnkleMoment", "ankle", 1, 0.99, 0.03),  # asked for
        ("KneeForce", "knee", 0, 0.99, 0.25),  # asked for: the correlation
        ("AnkleForce", "ankle", 0, 0.99, 0.25),
        ("KneeMoment", "knee", 1, 0.98, 0.03),
        ("HipMoment", "hip", 1, 0.97, 0.06),
    ],
)
def test_joint_loads_are_those_of_the_vendor(
    walk: Recording,
    filtered: Analysis,
    side: str,
    result: str,
    joint: str,
    part: int,
    correlation: float,
    difference: float,
) -> None:
    r, rms = compared(walk, filtered, side, result, joint, part)
    assert r > correlation
    assert rms < difference


@pytest.mark.parametrize("side", ["R", "L"])
def test_consistent_feet_keep_the_moment_of_the_ankle(walk: Recording, subject: Subject, side: str) -> None:
    analysis = analyse(subject, walk, Settings(cutoff=6.0, contact_weight=100.0), legs())
    assert analysis.complete_frames.all()
    r, rms = compared(walk, analysis, side, "AnkleMoment", "ankle", 1)
    assert r > 0.99
    assert rms < 0.03
    assert compared(walk, analysis, side, "KneeForce", "knee", 0)[0] > 0.99


def test_the_vendors_knees_and_ankles_move_apart(walk: Recording) -> None:
    """Why no consistent body has the vendor's knee moments: its knees and ankles are 39 cm apart standing, and come to
    34 cm with a deviation of 2.6 cm walking; the lateral skin markers keep their distance to 0.7 cm."""
    static = read_recording(input_file(FOLDER / "Static_trial.c3d"))
    for pair, deviation in ((("RFEO", "RTIO"), 0.026), (("RKNE", "RANK"), 0.0064)):
        standing, walking = (np.linalg.norm(r.marker(pair[0]) - r.marker(pair[1]), axis=1) for r in (static, walk))
        assert standing.std() < 5e-4
        assert walking.std() == pytest.approx(deviation, rel=0.05)
        assert (standing.mean() - walking.mean() > 0.04) == (pair[0] == "RFEO")


def test_consistency_by_skin_markers_keeps_the_moment_of_the_hip(walk: Recording) -> None:
    markers = bundled_marker_set("plugin_gait_skin")
    static = read_recording(input_file(FOLDER / "Static_trial.c3d"))
    subject = static_subject(load_model("lower_limbs7"), static, markers, walk.parameters["Bodymass"])
    analysis = analyse(subject, walk, Settings(cutoff=6.0), markers)
    assert analysis.complete_frames.all()
    assert analysis.landmark_distance.mean() < 0.022
    for (
        side
    ) in "RL":  # the vendor's knees are 4 cm behind the plane of these: their moments differ, 0.23 and 0.26 N m/kg
        for result, joint, part, correlation, difference in (
            ("HipMoment", "hip", 1, 0.97, 0.06),
            ("KneeForce", "knee", 0, 0.99, 0.22),
            ("KneeMoment", "knee", 1, 0.88, 0.28),
        ):
            r, rms = compared(walk, analysis, side, result, joint, part)
            assert r > correlation
            assert rms < difference


def test_the_whole_body_explains_the_plates_to_a_tenth_of_its_weight(walk: Recording) -> None:
    """2.7, 5.6 and 2.0 % of body weight forwards, upwards and sideways where plates carry both feet (frames 66 to 277);
    the vendor's own centre of mass leaves 3, 7 and 3 %. The plates carry 89.5 kg in the mean, the file says 85."""
    markers = bundled_marker_set("plugin_gait_full")
    static = read_recording(input_file(FOLDER / "Static_trial.c3d"))
    subject = static_subject(load_model("wholebody17"), static, markers, walk.parameters["Bodymass"])
    analysis = analyse(subject, walk, Settings(preparation="filtered", cutoff=6.0), markers)
    assert analysis.complete_frames.all()
    share = np.sqrt(np.mean(analysis.loads.residual_force[66:278] ** 2, axis=0)) / (9.81 * subject.mass)
    assert (share < [0.03, 0.06, 0.025]).all()


def test_the_model_of_a_trial_takes_files_of_a_laboratory(walk: Recording) -> None:
    from designopt_wholebody.models.trial import WholebodyTrial

    trial = WholebodyTrial(markers="plugin_gait_legs")
    trial.check()
    scenario = {
        "recording": input_file(FOLDER / "Movement_trial.c3d"),
        "static": input_file(FOLDER / "Static_trial.c3d"),
    }
    outputs, arrays = trial.evaluate(
        {"body": "lower_limbs7", "preparation": "filtered"},
        scenario,  # type: ignore[arg-type]
        frozenset({"status"}),
    )
    assert len(arrays["status"]) == 323
    assert outputs["used"] == 1.0
    assert 1.6 < outputs["ankle_torque"] < 1.7  # 1.66 N m/kg by the vendor
    # legs alone, without a truth: nothing is known about arms and errors
    assert not {"shoulder_force", "humerus_flexion_range", "force_error", "torque_error", "rebuilt_error"} & set(
        outputs
    )


def test_plates_are_hit_by_one_foot_after_the_other(filtered: Analysis) -> None:
    order = []
    for bearing in filtered.plates.bearings:
        carried = bearing.segment_indices[bearing.segment_indices >= 0]
        assert len(np.unique(carried)) == 1
        order.append(bearing.segments[carried[0]])
    assert order == ["foot_L", "foot_R", "foot_L", "foot_R"]


def test_the_laboratory_may_be_turned_and_shifted_and_markers_shuffled(
    walk: Recording, subject: Subject, filtered: Analysis
) -> None:
    turn = rotation([0.0, 1.0, 0.0], np.array(0.8))
    shift = np.array([3.0, 0.0, -1.5])
    shuffled = np.random.default_rng(1).permutation(len(walk.marker_names))
    plates = tuple(
        replace(
            p,
            force=p.force @ turn.T,
            moment=p.moment @ turn.T + np.cross(shift, p.force @ turn.T),
            corners=None if p.corners is None else p.corners @ turn.T + shift,
        )
        for p in walk.plates
    )
    moved = replace(
        walk,
        marker_names=tuple(walk.marker_names[k] for k in shuffled),
        markers=walk.markers[:, shuffled] @ turn.T + shift,
        plates=plates,
    )
    analysis = analyse(subject, moved, Settings(preparation="filtered", cutoff=6.0), legs())
    assert np.abs(analysis.loads.torque - filtered.loads.torque @ turn.T).max() < 1e-9
    assert np.abs(analysis.loads.force - filtered.loads.force @ turn.T).max() < 1e-8


def test_left_and_right_may_be_mirrored(walk: Recording, filtered: Analysis) -> None:
    M = np.array([1.0, 1.0, -1.0])

    def mirrored(recording: Recording) -> Recording:
        # what the right side shows of the mirrored subject is what the left side showed
        names = tuple({"L": "R", "R": "L"}[n[0]] + n[1:] if n[0] in "LR" else n for n in recording.marker_names)
        plates = tuple(
            replace(p, force=p.force * M, moment=-p.moment * M, corners=None if p.corners is None else p.corners * M)
            for p in recording.plates
        )
        return replace(recording, marker_names=names, markers=recording.markers * M, plates=plates, results=None)

    text = files("designopt_wholebody.trial").joinpath("marker_sets", "plugin_gait_legs.yaml").read_text()
    # axis points lie to the left of both legs: to the right in the mirror
    flipped = text.replace("by: -0.0", "by: +0.0").replace("by: 0.0", "by: -0.0").replace("by: +0.0", "by: 0.0")
    markers = read_marker_set(flipped.encode(), "mirrored.yaml")
    static = mirrored(read_recording(input_file(FOLDER / "Static_trial.c3d")))
    subject = static_subject(load_model("lower_limbs7"), static, markers, walk.parameters["Bodymass"])
    analysis = analyse(subject, mirrored(walk), Settings(preparation="filtered", cutoff=6.0), markers)
    for joint in ("ankle", "knee", "hip"):
        for side, opposite in (("R", "L"), ("L", "R")):
            force, torque = analysis.loads.at(f"{joint}_{side}")
            F, T = filtered.loads.at(f"{joint}_{opposite}")
            assert np.abs(torque + T * M).max() < 1e-9
            assert np.abs(force - F * M).max() < 1e-8
