"""Gaps: what is known is rebuilt exactly, what is measured never changes, every sample has its status."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_recording
from designopt_recordings.frames import FrameStatus
from designopt_recordings.gaps.fill import fill, interpolate_gaps
from designopt_recordings.gaps.rigid import fit, fit_triad, shape, spread
from designopt_recordings.recording import Recording
from scipy.spatial.transform import Rotation

from designopt.plugin import InputFile

FRAMES = 200
TIME = np.arange(FRAMES) / 100.0
NAMES = ("A", "B", "C", "D")
LOCAL = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.01], [0.02, 0.12, 0.0], [0.05, 0.05, 0.08]])


def moving() -> np.ndarray:
    """A rigid cluster of four markers (200, 4, 3) that turns and travels smoothly."""
    angles = np.stack([0.8 * np.sin(2 * np.pi * TIME), 0.4 * TIME, np.cos(3.0 * TIME)], axis=1)
    turns = Rotation.from_euler("zyx", angles).as_matrix()
    origin = np.stack([TIME, 1.0 + 0.1 * np.sin(5.0 * TIME), 0.2 * TIME], axis=1)
    return np.einsum("fij,kj->fki", turns, LOCAL) + origin[:, None]


def recording(markers: np.ndarray, names: tuple[str, ...] = NAMES) -> Recording:
    return Recording(100.0, TIME[: len(markers)], names, markers)


@pytest.mark.parametrize("method", ["rigid", "triad"])
def test_a_marker_of_a_rigid_cluster_is_rebuilt_to_round_off(method: str) -> None:
    truth = moving()
    gapped = truth.copy()
    gapped[50:80, 3] = np.nan
    gapped[60:61, 0] = np.nan  # only two are left: interpolated
    gapped[190:, 1] = np.nan  # to the end
    filled = fill(recording(gapped), {"shank": NAMES}, method=method)  # type: ignore[arg-type]
    rebuilt = filled.status == FrameStatus.REBUILT
    assert rebuilt[50:80, 3].all()
    assert rebuilt[190:, 1].all()
    assert (filled.status == FrameStatus.INTERPOLATED).sum() == 1
    elsewhere = rebuilt.copy()
    elsewhere[60] = False
    np.testing.assert_allclose(filled.recording.markers[elsewhere], truth[elsewhere], atol=1e-12)
    np.testing.assert_allclose(filled.recording.markers, truth, atol=1e-6)
    assert filled.misfit["shank"] < 1e-12


def test_measured_positions_never_change_and_exactly_the_erased_ones_are_marked() -> None:
    generator = np.random.default_rng(5)
    truth = moving() + 1e-3 * generator.normal(size=(FRAMES, 4, 3))
    erased = generator.uniform(size=(FRAMES, 4)) < 0.1  # 10 % of the samples
    erased[70:73] = True  # and three whole frames
    gapped = np.where(erased[:, :, None], np.nan, truth)
    filled = fill(recording(gapped), {"shank": NAMES})
    assert ((filled.status != FrameStatus.OK) == erased).all()
    assert (filled.recording.markers[~erased] == truth[~erased]).all()
    assert not (filled.status == FrameStatus.MISSING_MARKER).any()
    assert (filled.frames[70:73] == FrameStatus.INTERPOLATED).all()
    assert 0.5e-3 < filled.misfit["shank"] < 3e-3


def test_a_gap_longer_than_allowed_stays_and_is_reported() -> None:
    gapped = moving()
    gapped[20:60, :2] = np.nan
    filled = fill(recording(gapped), {"shank": NAMES}, longest=0.2)
    assert (filled.status[20:60, :2] == FrameStatus.MISSING_MARKER).all()
    assert np.isnan(filled.recording.markers[20:60, :2]).all()
    assert (filled.frames >= 100).sum() == 40
    assert filled.report() == ["A: 40 missing of 200 frames", "B: 40 missing of 200 frames"]
    assert (fill(recording(gapped), {"shank": NAMES}, longest=0.5).frames < 100).all()


def test_landmarks_of_the_static_trial_are_added_and_rebuilt() -> None:
    truth = moving()
    static = recording(truth[:1] + 0.3)
    dynamic = recording(truth[:, :3], NAMES[:3])
    filled = fill(dynamic, {"shank": NAMES}, static)
    assert filled.recording.marker_names == NAMES
    np.testing.assert_allclose(filled.recording.marker("D"), truth[:, 3], atol=1e-12)
    assert filled.report() == ["D: 200 rebuilt of 200 frames"]


def test_markers_of_no_cluster_are_interpolated() -> None:
    gapped = moving()
    gapped[50:55, 0] = np.nan
    filled = fill(recording(gapped), {})
    assert (filled.status[50:55, 0] == FrameStatus.INTERPOLATED).all()
    np.testing.assert_allclose(filled.recording.markers, moving(), atol=1e-5)


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        ({"shank": ("A", "B", "X")}, "cluster 'shank': neither the recording nor the static one has a marker 'X'"),
        ({"shank": ("A", "B", "A")}, "cluster 'shank' has 2 markers; a rigid body needs three"),
        (
            {"shank": ("A", "B", "C")},
            "cluster 'shank': no frame has all of A, B, C in the recording; give a static one",
        ),
    ],
)
def test_a_cluster_without_a_shape_is_refused(clusters: dict[str, tuple[str, ...]], message: str) -> None:
    gapped = moving()
    gapped[::2, 0], gapped[1::2, 1] = np.nan, np.nan
    with pytest.raises(RecordingError, match=message):
        fill(recording(gapped), clusters)


def test_a_static_recording_must_have_the_whole_cluster() -> None:
    static = recording(moving()[:1, :3], NAMES[:3])
    with pytest.raises(RecordingError, match="cluster 'shank': there is no marker 'D'"):
        fill(recording(moving()), {"shank": NAMES}, static)


def test_markers_on_a_line_fix_no_pose() -> None:
    line = np.linspace(0.0, 1.0, 4)[:, None] * [1.0, 2.0, 3.0]
    assert not spread(line)
    assert spread(LOCAL)
    with pytest.raises(RecordingError, match="its markers lie on a line"):
        fill(recording(np.tile(line, (FRAMES, 1, 1))), {"rod": NAMES})


# ------------------------------------------------------------------------------------------------------ rigid fits


def test_a_fit_finds_the_pose_of_scipy() -> None:
    generator = np.random.default_rng(7)
    turns = Rotation.random(50, random_state=1)
    noisy = turns.apply(np.zeros(3))[:, None] + np.stack([t.apply(LOCAL) for t in turns])
    noisy = noisy + [1.0, 2.0, 3.0] + 1e-3 * generator.normal(size=noisy.shape)
    rotation, translation, rms = fit(LOCAL, noisy)
    for f in range(50):
        expected, _ = Rotation.align_vectors(noisy[f] - noisy[f].mean(axis=0), LOCAL - LOCAL.mean(axis=0))
        np.testing.assert_allclose(rotation[f], expected.as_matrix(), atol=1e-7)
    np.testing.assert_allclose(np.linalg.det(rotation), 1.0)
    carried = np.einsum("fij,kj->fki", rotation, LOCAL) + translation[:, None]
    np.testing.assert_allclose(rms, np.sqrt(np.mean(np.sum((noisy - carried) ** 2, axis=2), axis=1)))


def test_a_flat_cluster_is_not_mirrored() -> None:
    flat = LOCAL[:3]
    turned = Rotation.from_euler("x", 170, degrees=True).apply(flat)[None]
    for method in (fit, fit_triad):
        rotation, _, rms = method(flat, turned)
        np.testing.assert_allclose(rotation[0], Rotation.from_euler("x", 170, degrees=True).as_matrix(), atol=1e-12)
        assert rms[0] < 1e-15


def test_the_mean_shape_averages_noise() -> None:
    noisy = moving() + 2e-3 * np.random.default_rng(8).normal(size=(FRAMES, 4, 3))
    _, _, rms = fit(shape(noisy), LOCAL[None])
    assert rms[0] < 2e-3 / np.sqrt(FRAMES) * 3


def test_interpolation_keeps_to_gaps_between_samples() -> None:
    values = np.sin(3.0 * TIME)[:, None]
    values[:5] = values[50:60] = values[-5:] = np.nan
    filled, where = interpolate_gaps(TIME, values, 0.1)
    assert np.flatnonzero(where).tolist() == list(range(50, 60))
    np.testing.assert_allclose(filled[50:60, 0], np.sin(3.0 * TIME[50:60]), atol=5e-5)
    assert not interpolate_gaps(TIME, values, 0.09)[1].any()


# ------------------------------------------------------------------------------------------------ the shared recordings


def test_hidden_markers_of_the_walk_come_back_within_skin_motion(shared: Callable[[str], InputFile]) -> None:
    walk = read_recording(shared("mocap/plugin_gait_fullbody/Movement_trial.c3d"))
    pelvis = ("LASI", "RASI", "LPSI", "RPSI")
    hidden = walk.markers.copy()
    hidden[100:200, walk.marker_names.index("LASI")] = np.nan
    filled = fill(replace(walk, markers=hidden), {"pelvis": pelvis})
    error = np.linalg.norm(filled.recording.marker("LASI")[100:200] - walk.marker("LASI")[100:200], axis=1)
    # "15-28 mm mean error for a marker rebuilt from three others" (whole_body_natural_coordinates, section 9)
    assert 1e-3 < error.mean() < 28e-3


def test_scapula_clusters_of_the_wheelchair_are_distinguished_into_rebuilt_and_missing(
    shared: Callable[[str], InputFile],
) -> None:
    push = read_recording(shared("mocap/wheelchair_clusters/kinematics_racing_propulsion.c3d"), up="y")
    static = read_recording(shared("mocap/wheelchair_clusters/kinematics_racing_static.c3d"), up="y")
    clusters = {f"scapula_{side}": [f"Scapula{side}{i}" for i in (1, 2, 3)] for side in "LR"}
    filled = fill(push, clusters, static)
    columns = [push.marker_names.index(name) for names in clusters.values() for name in names]
    before, after = push.missing()[:, columns], filled.recording.missing()[:, columns]
    assert after.sum() < before.sum()
    marked = filled.status[:, columns]
    assert (after == (marked == FrameStatus.MISSING_MARKER)).all()
    assert (before == (marked != FrameStatus.OK)).all()
