"""Functional joint centres and axes come back from a synthetic movement; regressions with the length of the leg."""

from dataclasses import replace

import numpy as np
import pytest
from designopt_recordings.files.write import trc_text
from designopt_recordings.recording import Recording
from designopt_wholebody.models.trial import WholebodyTrial
from designopt_wholebody.synthetic.walk import walk
from designopt_wholebody.trial.functional import functional_joint
from designopt_wholebody.trial.marker_set import HipCentre, MarkerSet, read_marker_set
from scipy.spatial.transform import Rotation

from designopt.plugin import InputFile, InvalidDesign

PELVIS, THIGH = ("P1", "P2", "P3", "P4"), ("T1", "T2", "T3")
HIP, AXIS = np.array([-0.06, -0.09, 0.08]), np.array([0.1, 0.05, 1.0]) / np.linalg.norm([0.1, 0.05, 1.0])
ON_PELVIS = np.array([[0.0, 0.0, -0.12], [0.0, 0.0, 0.12], [-0.15, 0.02, -0.05], [-0.15, 0.01, 0.05]])
ON_THIGH = np.array([[0.02, -0.15, 0.06], [0.05, -0.25, 0.02], [-0.03, -0.3, 0.05]])
TIME = np.arange(200) / 50.0


def movement(turning, noise=0.0, seed=0):
    """Markers of a pelvis that walks away and of a thigh that turns about the hip by `turning` (n, 3) rad."""
    rng = np.random.default_rng(seed)
    pelvis = Rotation.from_rotvec(0.3 * np.sin(np.outer(TIME, [1.1, 0.7, 0.4])))
    path = np.column_stack([0.2 * TIME, 1.0 + 0.02 * np.sin(TIME), 0.1 * np.cos(TIME)])
    thigh = Rotation.from_rotvec(turning)
    markers = [pelvis.apply(np.tile(p, (200, 1))) + path for p in ON_PELVIS]
    markers += [pelvis.apply(HIP + thigh.apply(np.tile(p, (200, 1)))) + path for p in ON_THIGH]
    stacked = np.stack(markers, axis=1)
    centre = pelvis.apply(np.tile(HIP, (200, 1))) + path
    return Recording(50.0, TIME, (*PELVIS, *THIGH), stacked + noise * rng.standard_normal(stacked.shape)), centre


ARC = np.column_stack([0.3 * np.sin(2.0 * TIME), 0.15 * np.sin(1.3 * TIME), 0.5 * np.sin(TIME)])
HINGE = 0.6 * np.sin(1.5 * TIME)[:, None] * AXIS


@pytest.mark.parametrize(("noise", "tolerance"), [(0.0, 1e-9), (0.001, 1.5e-3)], ids=["exact", "1 mm of noise"])
def test_the_centre_of_a_hip_comes_back_from_its_movement(noise, tolerance):
    recording, centre = movement(ARC, noise)
    markers = read_marker_set(
        b"marker_set: m\nlandmarks:\n  CAQ_R: {functional: centre, proximal: [P1, P2, P3, P4], distal: [T1, T2, T3]}\n",
        "m",
    )
    calibrated = markers.calibrate(recording)
    exact, _ = movement(ARC)
    placed = calibrated.place_landmarks(exact, ("CAQ_R",))["CAQ_R"]
    assert np.abs(placed - centre).max() < tolerance
    gap = exact.markers.copy()
    gap[7, 0] = np.nan
    placed = calibrated.place_landmarks(replace(exact, markers=gap), ("CAQ_R",))["CAQ_R"]
    assert np.flatnonzero(np.isnan(placed[:, 0])).tolist() == [7]


@pytest.mark.parametrize(("noise", "tolerance"), [(0.0, 1e-9), (0.001, 0.02)], ids=["exact", "1 mm of noise"])
def test_the_axis_of_a_hinge_comes_back_and_has_landmarks_beside_markers(noise, tolerance):
    recording, centre = movement(HINGE, noise)
    joint = functional_joint(recording, PELVIS, THIGH, hinge=True)
    local = joint.axis * np.sign(joint.axis[2])
    turned = Rotation.align_vectors(joint.shape - joint.shape.mean(0), ON_PELVIS - ON_PELVIS.mean(0))[0]
    assert np.linalg.norm(local - turned.apply(AXIS)) < tolerance  # rad
    text = (
        b"marker_set: m\nlandmarks:\n"
        b"  CL_R: {functional: axis, proximal: [P1, P2, P3, P4], distal: [T1, T2, T3], near: P2}\n"
        b"  CM_R: {functional: axis, proximal: [P1, P2, P3, P4], distal: [T1, T2, T3], near: P2,\n"
        b"    along: [P1, P2], by: 0.1}\n"
    )
    placed = read_marker_set(text, "m").calibrate(recording).place_landmarks(movement(HINGE)[0], ("CL_R", "CM_R"))
    line = placed["CM_R"] - placed["CL_R"]
    assert np.linalg.norm(line, axis=1) == pytest.approx(0.1)
    away = np.linalg.norm(np.cross(centre - placed["CL_R"], line / 0.1), axis=1)
    assert away.max() < max(tolerance * 0.2, 1e-9)  # the axis runs through the hip


@pytest.mark.parametrize(
    ("turning", "proximal", "hinge", "text"),
    [
        (HINGE, PELVIS, False, "about one axis only"),
        (0.02 * HINGE, PELVIS, True, "hardly turn"),
        (ARC, ("P1", "P2", "P9"), False, "no marker 'P9'"),
        (ARC, ("P1", "P2"), False, "do not fix a segment"),
        (ARC, ("P1", "P2", "T3"), False, "P1, P2, T3 move by .* they are not on one segment"),
    ],
)
def test_a_movement_that_does_not_determine_a_joint_is_refused(turning, proximal, hinge, text):
    with pytest.raises(ValueError, match=text):
        functional_joint(movement(turning)[0], proximal, THIGH, hinge=hinge)


def test_a_movement_with_too_few_complete_frames_is_refused():
    recording, _ = movement(ARC)
    markers = recording.markers.copy()
    markers[10:, 0] = np.nan
    with pytest.raises(ValueError, match="10 frames of the movement have all markers"):
        functional_joint(replace(recording, markers=markers), PELVIS, THIGH, hinge=False)


def test_harringtons_regression_with_the_leg_counts_its_length_along_the_markers():
    names = ("LASI", "RASI", "LPSI", "RPSI", "RKNE", "RANK")
    points = [[0, 1, -0.12], [0, 1, 0.12], [-0.15, 1, -0.05], [-0.15, 1, 0.05], [0, 0.6, 0.12], [-0.4, 0.6, 0.12]]
    spines = (("LASI", "RASI"), ("LPSI", "RPSI"))
    placed = HipCentre("harrington_leg", "right", *spines, leg=("RASI", "RKNE", "RANK"))  # 0.8 m by the bent knee
    centre = MarkerSet("m", {"CAQ_R": placed}).place_landmarks(
        Recording(1.0, np.zeros(1), names, np.array([points])), ("CAQ_R",)
    )
    expected = (-0.24 * 0.15 - 0.0099, 1.0 - (0.16 * 0.24 + 0.04 * 0.8 + 0.0071), 0.28 * 0.15 + 0.16 * 0.24 + 0.0079)
    assert centre["CAQ_R"][0] == pytest.approx(expected)
    for method, leg in (("harrington_leg", ()), ("bell", ("RASI", "RANK")), ("harrington_leg", ("RASI",))):
        with pytest.raises(ValueError, match="has a leg"):
            HipCentre(method, "right", *spines, leg=leg)


def test_a_study_names_the_movement_and_a_marker_set_without_it_is_refused():
    trial = walk(cycles=1, rate=20.0, skin=0.0, noise=0.0)
    recording, landmarks = trial.recording, trial.recording.marker_names
    proximal = [name for name in ("CIAS_R", "CIAS_L", "PMCP", "CAL") if name in landmarks][:3]
    distal = [name for name in ("CL_R", "CM_R", "CAQ_R") if name in landmarks]
    text = f"marker_set: m\nlandmarks:\n  CAQ_R: {{functional: centre, proximal: {proximal}, distal: {distal}}}\n"
    model = WholebodyTrial(marker_set=InputFile("m.yaml", text.encode()))
    files = {"recording": InputFile("w.trc", trc_text(recording).encode())}
    conditions = {**files, "static": files["recording"], "mass": 80.0}
    with pytest.raises(InvalidDesign, match="'CAQ_R' is functional: name a recording"):
        model.evaluate({"body": "lower_limbs7"}, conditions)
    with pytest.raises(InvalidDesign, match="'CAQ_R': CL_R, CM_R do not fix"):
        model.evaluate({"body": "lower_limbs7"}, {**conditions, "functional": files["recording"]})
