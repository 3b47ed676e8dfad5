"""A trial from markers to joint loads: truth of the synthetic push-up, gaps, plates, statuses."""

from dataclasses import replace

import numpy as np
import pytest
from designopt_recordings.files.read import read_recording
from designopt_recordings.files.write import trc_text
from designopt_recordings.frames import FrameStatus
from designopt_recordings.recording import Recording
from designopt_recordings.signals.filters import lowpass
from designopt_wholebody.consistency.positions import Method
from designopt_wholebody.model.library import load_model
from designopt_wholebody.subject import Subject, SubjectError, make_subject
from designopt_wholebody.synthetic.pushup import pushup
from designopt_wholebody.synthetic.synthetic_trial import INTERNAL, SyntheticTrial
from designopt_wholebody.trial.agreement import agreement
from designopt_wholebody.trial.analysis import Analysis, Settings, analyse, neighbour_status, reach
from designopt_wholebody.trial.landmarks import find_landmarks, raw_coordinates, static_subject, stillest
from designopt_wholebody.trial.marker_set import OWN_NAMES, MarkerSet, Offset, read_marker_set
from newton_euler import newton_euler
from numpy.typing import NDArray

from designopt.plugin import InputFile
from designopt.study.language.errors import StudyError

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def clean() -> SyntheticTrial:
    """One push-up at 25 Hz, its markers free of errors."""
    return pushup("closed", cycles=1, rate=25.0, skin=0.0, noise=0.0)


@pytest.fixture(scope="module")
def noisy() -> SyntheticTrial:
    return pushup("closed", cycles=1, rate=25.0)


@pytest.fixture(scope="module")
def analysed(noisy: SyntheticTrial) -> Analysis:
    return analyse(noisy.subject, noisy.recording, Settings(preparation="consistent"))


@pytest.fixture(scope="module")
def by_lengths(noisy: SyntheticTrial) -> Analysis:
    return analyse(noisy.subject, noisy.recording, Settings(weighting="lengths", cutoff=3.0))


@pytest.fixture(scope="module")
def equally(noisy: SyntheticTrial) -> Analysis:
    return analyse(noisy.subject, noisy.recording, Settings(weighting="equal", cutoff=3.0))


def test_the_push_up_is_consistent_balanced_and_on_four_plates(clean: SyntheticTrial) -> None:
    assert np.abs(clean.subject.constraints.values(clean.motion.q)).max() < 1e-9
    assert np.abs(clean.loads.residual_force).max() < 1e-9
    assert np.abs(clean.loads.residual_torque).max() < 1e-9
    weight = 9.81 * sum(body.inertia.mass for body in clean.subject.bodies.values())
    lift = clean.contact.force[:, :, 1]
    assert lift.min() > 50.0
    assert lift.sum(axis=1).mean() == pytest.approx(weight, rel=0.02)
    assert lift[:, :2].sum(axis=1).mean() / weight == pytest.approx(0.65, abs=0.1)
    thorax = clean.subject.bodies["thorax"]
    height = thorax.position(clean.motion.q, thorax.landmark("IJ"))[:, 1]
    assert np.ptp(height) > 0.1


def test_without_errors_of_markers_the_truth_comes_back(clean: SyntheticTrial) -> None:
    analysis = analyse(clean.subject, clean.recording, Settings(preparation="consistent"))
    assert analysis.complete_frames.all()
    assert (analysis.status[2:-2] == FrameStatus.OK).all()
    # epicondyles are 0.2 mm off the axis of the elbow, so that humerus and ulna see them apart
    assert np.abs(analysis.motion.q - clean.motion.q).max() < 2e-3
    assert np.abs(analysis.loads.torque - clean.loads.torque).max() < 0.05
    assert np.abs(analysis.loads.residual_force).max() < 0.05
    assert analysis.landmark_distance.max() < 2e-4


def test_inverse_dynamics_of_a_trial_is_that_of_newton_and_euler(analysed: Analysis) -> None:
    check = newton_euler(analysed.subject, analysed.motion, analysed.plates.loads)
    assert analysed.loads.difference(check) < 1e-9


def test_each_plate_carries_its_hand_or_foot(analysed: Analysis) -> None:
    for bearing in analysed.plates.bearings:
        assert {bearing.segments[k] for k in np.unique(bearing.segment_indices)} == {bearing.plate}


def test_skin_motion_leaves_residual_loads_that_filters_reduce(analysed: Analysis, by_lengths: Analysis) -> None:
    sizes = [np.sqrt(np.mean(a.loads.residual_force[5:-5] ** 2)) for a in (analysed, by_lengths)]
    assert sizes[1] < 0.8 * sizes[0]
    assert 0.005 < analysed.landmark_distance.mean() < 0.02
    assert np.abs(analysed.violation).max() < 1e-9


def test_filters_after_consistency_spoil_it_and_a_second_search_does_not(noisy: SyntheticTrial) -> None:
    last = analyse(noisy.subject, noisy.recording, Settings(preparation="consistent_filtered", cutoff=2.0))
    assert last.violation[5:-5].max() > 1e-6
    raw = analyse(noisy.subject, noisy.recording, Settings(preparation="raw"))
    assert raw.consistency is None
    assert raw.violation.mean() > 20.0 * last.violation.mean()


@pytest.mark.parametrize("method", ["recursion", "schur"])
def test_erased_samples_and_frames_are_marked_and_no_other_frame_changes(noisy: SyntheticTrial, method: Method) -> None:
    """10 % of the samples and three whole frames erased, a plate without a value in one frame: the erased frames are
    marked, those beside them say so where their accelerations differ, all others are the same to the last digits."""
    rng = np.random.default_rng(16)
    markers = noisy.recording.markers.copy()
    lost = rng.uniform(size=markers.shape[:2]) < 0.5
    lost[:, :] &= np.isin(np.arange(len(markers)), [*range(10, 19), *range(40, 44)])[:, None]
    lost[[4, 30, 31]] = True
    assert 0.1 < lost.mean() < 0.2
    markers[lost] = np.nan
    plate = noisy.recording.plates[1]
    force = plate.force.copy()
    force[24] = np.nan
    plates = (noisy.recording.plates[0], replace(plate, force=force), *noisy.recording.plates[2:])
    recording = replace(noisy.recording, markers=markers, plates=plates)
    settings = Settings(preparation="consistent", method=method)
    analysed = analyse(noisy.subject, noisy.recording, settings)
    analysis = analyse(noisy.subject, recording, settings)
    erased = lost.any(axis=1)
    beside = (np.convolve(erased, np.ones(5), "same") > 0.0) & ~erased
    assert (analysis.status[[4, 30, 31]] == FrameStatus.MISSING_MARKER).all()
    assert np.isnan(analysis.motion.q[[4, 30, 31]]).all()
    assert analysis.status[24] == FrameStatus.MISSING_LOAD
    assert np.isfinite(analysis.motion.q[24]).all()
    assert np.isnan(analysis.loads.force[24]).all()
    assert set(np.flatnonzero(analysis.status >= FrameStatus.REBUILT)) == {*np.flatnonzero(erased), 24}
    assert set(np.flatnonzero(analysis.status == FrameStatus.BESIDE)) == set(np.flatnonzero(beside))
    assert set(np.flatnonzero(analysed.status)) == {0, 1, len(markers) - 2, len(markers) - 1}
    assert (analysed.status[[0, 1, -2, -1]] == FrameStatus.EDGE).all()
    assert np.abs(analysis.motion.q[~erased] - analysed.motion.q[~erased]).max() < 1e-12
    same = np.setdiff1d(np.flatnonzero(~erased & ~beside), [24])
    assert len(same) > 15
    assert np.array_equal(analysis.status[same], analysed.status[same])
    for name in ("force", "torque", "residual_force", "residual_torque"):
        difference = getattr(analysis.loads, name)[same] - getattr(analysed.loads, name)[same]
        assert np.abs(difference).max() < 1e-12


@pytest.mark.parametrize(("rate", "cutoff", "frames"), [(100.0, None, 2), (100.0, 6.0, 2 + 6), (200.0, 4.0, 2 + 17)])
def test_frames_within_reach_of_the_filter_are_beside_a_gap(rate: float, cutoff: float | None, frames: int) -> None:
    """A filter reaches as far as its response to one sample is above a tenth of its peak."""
    assert reach(rate, cutoff) == frames
    if cutoff is not None:
        impulse = np.zeros((401, 1))
        impulse[200] = 1.0
        response = np.abs(lowpass(impulse, rate, cutoff)[:, 0]) / lowpass(impulse, rate, cutoff).max()
        assert response[200 + frames - 2 - 1] > 0.1 > response[200 + frames - 2 + 1]
    status = neighbour_status(np.arange(101) == 50, frames)
    assert (status == FrameStatus.BESIDE).sum() == 2 * frames
    assert (status == FrameStatus.EDGE).sum() == 2 * frames
    assert status[50] == FrameStatus.OK


def test_short_gaps_of_whole_segments_are_interpolated_where_that_is_asked_for(noisy: SyntheticTrial) -> None:
    """Just enough markers are interpolated for the rigid fit: three of the head, and those of a hand."""
    names = noisy.recording.marker_names
    head = [names.index(name) for name in names if name in noisy.subject.bodies["head"].local]
    markers = noisy.recording.markers.copy()
    markers[20:23, head] = np.nan
    markers[30:42, head] = np.nan
    recording = replace(noisy.recording, markers=markers)
    settings = Settings(preparation="consistent", max_gap=0.2)
    analysis = analyse(noisy.subject, recording, settings)
    assert (analysis.status[20:23] == FrameStatus.INTERPOLATED).all()
    assert (analysis.status[30:42] == FrameStatus.MISSING_MARKER).all()  # 0.48 s
    assert analysis.complete_frames[20:23].all()
    complete = analyse(noisy.subject, noisy.recording, Settings(preparation="consistent"))
    assert np.abs(analysis.motion.q - complete.motion.q)[20:23].max() < 0.05
    elsewhere = np.setdiff1d(np.arange(len(markers)), [*range(20, 23), *range(30, 42)])
    assert np.abs(analysis.motion.q - complete.motion.q)[elsewhere].max() < 1e-12
    without = analyse(noisy.subject, recording, replace(settings, max_gap=0.0))
    assert (without.status[20:23] == FrameStatus.MISSING_MARKER).all()


def test_files_in_metres_and_in_millimetres_give_the_same_loads(noisy: SyntheticTrial) -> None:
    loads = []
    for unit in ("m", "mm"):
        file = InputFile(f"{unit}.trc", trc_text(noisy.recording, unit=unit).encode())
        recording = replace(read_recording(file), plates=noisy.recording.plates)
        loads.append(analyse(noisy.subject, recording, Settings(preparation="filtered", cutoff=6.0)).loads)
    assert loads[0].difference(loads[1]) < 1e-9


def test_an_unloaded_plate_gives_zeros_whatever_its_centre_of_pressure(noisy: SyntheticTrial) -> None:
    plate = noisy.recording.plates[0]
    idle = replace(plate, force=np.zeros_like(plate.force), moment=np.zeros_like(plate.moment))
    recording = replace(noisy.recording, plates=(idle, *noisy.recording.plates[1:]))
    analysis = analyse(noisy.subject, recording, Settings(preparation="raw", inverse="velocity_transformation"))
    assert analysis.complete_frames.all()
    assert (analysis.plates.loads.force[:, analysis.plates.loads.bodies.index("hand_R")] == 0.0).all()


def test_landmarks_inside_the_body_are_rebuilt_from_their_segments(
    noisy: SyntheticTrial, clean: SyntheticTrial
) -> None:
    assert not set(INTERNAL) & set(noisy.recording.marker_names)
    landmarks = find_landmarks(clean.subject, clean.recording, OWN_NAMES)
    for name, segment in (("CAL", "pelvis"), ("GU_R", "scapula_R"), ("CAQ_L", "pelvis"), ("CAC", "thorax")):
        body = clean.subject.bodies[segment]
        truth = body.position(clean.motion.q, body.landmark(name))
        assert np.abs(landmarks.positions[name] - truth).max() < 1e-9


def test_a_fit_keeps_pronation_out_of_the_ulna(clean: SyntheticTrial) -> None:
    """The radius is turned by 150 degrees: raw coordinates of ulna and radius are theirs, not one for both."""
    landmarks = find_landmarks(clean.subject, clean.recording, OWN_NAMES)
    raw = raw_coordinates(clean.subject, landmarks.positions)
    assert np.abs(raw - clean.motion.q).max() < 2e-3


def test_hidden_markers_come_back_within_skin_motion(noisy: SyntheticTrial) -> None:
    names = noisy.recording.marker_names
    markers = noisy.recording.markers.copy()
    markers[10:40, names.index("C7")] = np.nan
    landmarks = find_landmarks(noisy.subject, replace(noisy.recording, markers=markers), OWN_NAMES)
    away = np.linalg.norm(landmarks.positions["C7"] - noisy.recording.marker("C7"), axis=1)
    assert 0.0 < away[10:40].max() < 0.04
    assert (away[:10] == 0.0).all()
    assert (landmarks.status[10:40] == FrameStatus.REBUILT).all()


def test_weights_by_the_sizes_of_segments_reduce_the_error_of_joint_torques(
    noisy: SyntheticTrial, by_lengths: Analysis, equally: Analysis
) -> None:
    errors = []
    for analysis in (by_lengths, equally):
        assert analysis.complete_frames.all()
        errors.append(np.sqrt(np.mean((analysis.loads.torque - noisy.loads.torque)[5:-5] ** 2)))
    assert errors[0] < 0.7 * errors[1]


def test_held_contacts_keep_hands_and_feet_at_their_measured_places(noisy: SyntheticTrial, equally: Analysis) -> None:
    free = equally
    fixed = analyse(noisy.subject, noisy.recording, Settings(hold_contacts=True, weighting="equal", cutoff=3.0))
    body = noisy.subject.bodies["hand_R"]
    first = [body.triples_of(a.motion.q)[:, 0] - body.triples_of(a.raw)[:, 0] for a in (free, fixed)]
    away = [np.linalg.norm(f[fixed.complete_frames & free.complete_frames], axis=1).mean() for f in first]
    assert away[1] < 0.5 * away[0]


def test_a_static_recording_gives_the_subject_at_its_stillest(clean: SyntheticTrial) -> None:
    subject = static_subject(load_model("wholebody21"), clean.static, OWN_NAMES, 81.6)
    assert np.allclose(subject.q0, clean.subject.q0)
    positions = np.zeros((10, 2, 3))
    positions[:, 0, 0] = [0, 1, 2, 3, 3.01, 3.02, 3.03, 4, 5, 6]
    assert stillest(positions, 4) == slice(3, 7)
    positions[4, 1, 1] = np.nan
    assert stillest(positions, 9) == slice(0, 1)
    positions[:, 1] = np.nan
    assert stillest(positions, 2) is None
    empty = replace(clean.static, markers=np.full_like(clean.static.markers, np.nan))
    with pytest.raises(SubjectError, match="is missing in all frames of the static recording"):
        static_subject(load_model("wholebody21"), empty, OWN_NAMES, 81.6)


def test_a_segment_without_markers_is_reported(noisy: SyntheticTrial) -> None:
    names = [name for name in noisy.recording.marker_names if name not in ("CIAS_R", "CIAS_L", "PMCP", "AuxP")]
    recording = replace(noisy.recording, marker_names=tuple(names), markers=noisy.recording.selected(names))
    with pytest.raises(ValueError, match="cannot be placed: its segment has fewer than three"):
        analyse(noisy.subject, recording)


def test_a_marker_set_names_places_beside_markers() -> None:
    text = b"""\
marker_set: mine
landmarks:
  A: m1
  B: [m1, m2]
  C: {at: [m2], along: [m1, m2], by: 0.5}
  F: {at: [m1, m2], right: [m1, m2], forward: [m1, D], by: [1.0, 2.0, 3.0]}
"""
    markers = read_marker_set(text, "mine.yaml")
    positions = np.array([[[0.0, 0, 0], [2.0, 0, 0], [9.0, 9, 9]]])
    recording = Recording(1.0, np.zeros(1), ("m1", "m2", "D"), positions)
    landmarks = markers.place_landmarks(recording, ("A", "B", "C", "D", "E", "F"))
    assert {name: p[0].tolist() for name, p in landmarks.items()} == {
        "A": [0, 0, 0],
        "B": [1, 0, 0],
        "C": [2.5, 0, 0],
        "D": [9, 9, 9],
        # right is x, forward is y and z alike, up is x × forward
        "F": pytest.approx([4.0, -np.sqrt(0.5), 3.0 * np.sqrt(0.5)]),
    }
    with pytest.raises(ValueError, match="no marker 'm3' for landmark 'A'"):
        MarkerSet("x", {"A": "m3"}).place_landmarks(recording, ("A",))
    with pytest.raises(StudyError) as raised:
        read_marker_set(text.replace(b"by: 0.5", b"bye: 0.5"), "mine.yaml")
    assert raised.value.issues[0].line == 5
    assert isinstance(markers.landmarks["C"], Offset)


def test_a_model_without_contacts_has_no_plate_loads(noisy: SyntheticTrial) -> None:
    subject: Subject = make_subject(load_model("arm7"), noisy.subject.landmarks)
    # the arm's hand may be loaded, feet are not there
    analysis = analyse(subject, noisy.recording, Settings(preparation="raw"))
    assert analysis.plates.loads.bodies == ("hand_R",)


@pytest.mark.parametrize(
    ("kind", "level", "coverage"),
    [("chi_squared", 0.95, 0.95), ("chi_squared", 0.9, 0.9), ("thesis", 0.95, 0.721), ("thesis", 0.9, 0.561)],
)
def test_the_coverage_of_normal_differences(kind: str, level: float, coverage: float) -> None:
    rng = np.random.default_rng(1)
    second = rng.normal(size=(40_000, 3))
    first = second + rng.normal(size=second.shape) * [1.0, 0.2, 3.0] + [0.5, 0.0, -1.0]
    limits = agreement(first, second, level=level, kind=kind)  # type: ignore[arg-type]
    assert limits.coverage == pytest.approx(coverage, abs=0.01)
    assert np.allclose(limits.axis_coverage, level, atol=0.01)
    assert np.allclose(limits.bias, [0.5, 0.0, -1.0], atol=0.05)


def test_correlated_differences_have_a_turned_ellipsoid() -> None:
    rng = np.random.default_rng(2)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    d = rng.normal(size=(40_000, 3)) * [0.1, 1.0, 4.0] @ turn.T
    limits = agreement(d, np.zeros_like(d))
    assert limits.coverage == pytest.approx(0.95, abs=0.01)
    assert np.allclose(limits.radii, 2.796 * np.array([0.1, 1.0, 4.0]), rtol=0.02)  # sqrt of chi-squared, 3 dimensions
    assert np.allclose(np.abs(np.einsum("ij,ij->j", limits.axes, turn)), 1.0, atol=1e-3)


def test_missing_frames_are_left_out_and_too_few_are_refused() -> None:
    d = np.random.default_rng(3).normal(size=(20, 3))
    gaps = d.copy()
    gaps[[3, 7], 1] = np.nan
    limits = agreement(gaps, np.zeros_like(d))
    assert limits.count == 18
    assert np.allclose(limits.bias, np.delete(d, [3, 7], axis=0).mean(axis=0))
    with pytest.raises(ValueError, match="3 differences are too few"):
        agreement(d[:3], d[:3])
    with pytest.raises(ValueError, match="shape"):
        agreement(d[:, :2], d[:, :2])
    with pytest.raises(ValueError, match="between 0 and 1, not 1"):
        agreement(d, d, level=1.0)
    with pytest.raises(ValueError, match="there is no ellipsoid"):
        agreement(d, d, kind="box")  # type: ignore[arg-type]
