"""C3D files: markers, results, channels, events by value; damaged files are refused with their section."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.c3d import read_c3d

from designopt.plugin import InputFile

Make = Callable[..., InputFile]
Shared = Callable[[str], InputFile]

POINTS = 1000.0 * np.random.default_rng(0).normal(size=(20, 3, 3))


# ------------------------------------------------------------------------------------------------- files made here


def test_markers_are_metres_with_y_up_and_missing_ones_are_nan(made_c3d: Make) -> None:
    points = POINTS.copy()
    points[4:6, 1] = np.nan
    recording = read_c3d(made_c3d(points, ["A", "B", "C"], parameters={"POINT": {"Y_SCREEN": ["+Z"]}}))
    x, y, z = np.moveaxis(points.astype(np.float32).astype(float) / 1000.0, 2, 0)
    np.testing.assert_allclose(recording.markers, np.stack([x, z, -y], axis=2), rtol=1e-15)
    assert np.argwhere(recording.missing()).tolist() == [[4, 1], [5, 1]]
    assert recording.notes == ("3.3% of the positions of markers are missing",)


def test_the_vertical_axis_and_the_unit_of_the_file_can_be_replaced(made_c3d: Make) -> None:
    file = made_c3d(POINTS, ["A", "B", "C"])
    recording = read_c3d(file)
    assert recording.notes == ("the file does not say which axis is vertical (POINT:Y_SCREEN); Z is assumed",)
    upright = read_c3d(file, up="y", unit="cm")
    np.testing.assert_allclose(upright.markers, POINTS.astype(np.float32) / 100.0, rtol=1e-6)


def test_metres_declared_as_millimetres_are_refused(made_c3d: Make) -> None:
    with pytest.raises(RecordingError, match=r"made.c3d, parameters of POINT: the file says mm, .* probably in m:"):
        read_c3d(made_c3d(POINTS / 1e6, ["A", "B", "C"]))
    with pytest.raises(RecordingError, match=r"the unit of length is 'ell'"):
        read_c3d(made_c3d(POINTS, ["A", "B", "C"], unit="ell"))


@pytest.mark.parametrize(
    ("labels", "names", "note"),
    [
        (["Anna:A", "Anna:B", "Anna:C"], ("A", "B", "C"), None),
        (["Anna:A", "Bert:A", "C"], ("Anna:A", "Bert:A", "C"), "two subjects have markers of the same name"),
        (["A", "*12", "C"], ("A", "C"), "1 trajectories without a label are skipped"),
        (["A", "A", "C"], ("A", "A#2", "C"), "markers with the same label are numbered: A"),
    ],
)
def test_labels_lose_prefixes_and_stay_unique(
    made_c3d: Make, labels: list[str], names: tuple[str, ...], note: str | None
) -> None:
    recording = read_c3d(made_c3d(POINTS, labels, parameters={"POINT": {"Y_SCREEN": ["+Z"]}}))
    assert recording.marker_names == names
    assert all(note in line for line in recording.notes) if note else recording.notes == ()


def test_stored_results_are_no_markers_and_have_si_units(made_c3d: Make) -> None:
    point = {
        "Y_SCREEN": ["+Z"],
        "ANGLES": ["knee"],
        "ANGLE_UNITS": ["deg"],
        "MOMENTS": ["hip"],
        "MOMENT_UNITS": ["Nmm"],
    }
    recording = read_c3d(made_c3d(POINTS, ["A", "knee", "hip"], parameters={"POINT": point}))
    assert recording.marker_names == ("A",)
    assert recording.results is not None
    assert (recording.results.kinds, recording.results.units) == (("angle", "moment"), ("rad", "N·m"))
    np.testing.assert_allclose(recording.results.result("knee"), np.radians(POINTS[:, 1]), rtol=1e-6)
    np.testing.assert_allclose(recording.results.result("hip"), POINTS[:, 2] / 1000.0, rtol=1e-6)


def test_channels_keep_values_and_units_and_equal_labels_are_numbered(made_c3d: Make) -> None:
    analog = np.random.default_rng(1).normal(size=(200, 3))
    recording = read_c3d(
        made_c3d(POINTS, ["A", "B", "C"], analog=analog, channels=[("e", "V"), ("e", "V"), ("f", "N")])
    )
    assert recording.analog is not None
    assert (recording.analog.rate, recording.analog.names) == (1000.0, ("e", "e#2", "f"))
    np.testing.assert_allclose(recording.analog.values, analog, rtol=1e-6, atol=1e-7)
    assert recording.analog.units == ("V", "V", "N")


def test_events_are_in_seconds_and_in_order(made_c3d: Make) -> None:
    event = {
        "USED": [2], "LABELS": ["Foot Off", "Foot Strike"], "CONTEXTS": ["Left", "Right"],
        "TIMES": np.array([[1.0, 0.0], [2.5, 1.25]]),
    }  # fmt: skip
    marked = read_c3d(made_c3d(POINTS, ["A", "B", "C"], parameters={"EVENT": event})).events
    assert [(e.label, e.side, e.time) for e in marked] == [("Foot Strike", "Right", 1.25), ("Foot Off", "Left", 62.5)]


# ------------------------------------------------------------------------------------------------------ damaged files


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda b: b"", "made.c3d, header: this is not a C3D file"),
        (lambda b: b[:600], "header: this is not a C3D file, or only the beginning of one"),
        (lambda b: b[:1] + b"\x51" + b[2:], "header: this is not a C3D file"),
        (lambda b: b[:-900], r"data section: \d+ of 20 frames are in the file; it is truncated"),
        (lambda b: b[:515] + b"\x07" + b[516:], "parameter section: the processor type is 7"),
        (lambda b: b"\xff" + b[1:], "header: the parameter section is declared at block 255, outside the file"),
        (lambda b: b[:2] + b"\x09" + b[3:], "parameter POINT:USED: it is 3, the header says 9"),
        (lambda b: b[:6] + b"\xff\x7f" + b[8:], "header: the last frame .* is before the first"),
        (lambda b: b[:8] + b"\xff\x00" + b[10:], "parameter POINT:FRAMES: it is 20, the header says"),
        (lambda b: b[:16] + b"\xff\x7f" + b[18:], "header: the data are declared at block 32767, outside the file"),
        (lambda b: b[:20] + b"\x00\x00\x80\xff" + b[24:], "header: the frame rate is -inf Hz"),
        (lambda b: b[:12] + b"\x00\x00\x00\x00" + b[16:], "header: the scale is 0"),
    ],
)
def test_a_damaged_file_is_refused_with_its_section(
    made_c3d: Make, damage: Callable[[bytes], bytes], message: str
) -> None:
    good = made_c3d(POINTS, ["A", "B", "C"])
    with pytest.raises(RecordingError, match=message):
        read_c3d(InputFile("made.c3d", damage(good.content)))


def test_a_parameter_that_reaches_beyond_its_record_is_refused(made_c3d: Make) -> None:
    good = made_c3d(POINTS, ["A", "B", "C"]).content
    at = good.index(b"LABELS") + len(b"LABELS") + 2 + 2  # name, offset, type and number of dimensions
    for offset, value, message in ((at, 255, "is longer than its record"), (at - 2, 9, "has an unknown type")):
        with pytest.raises(RecordingError, match=rf"parameter section: .*'LABELS' {message}"):
            read_c3d(InputFile("made.c3d", good[:offset] + bytes([value]) + good[offset + 1 :]))


@pytest.mark.parametrize("key", ["SCALE", "OFFSET"])
def test_channels_without_scales_would_crash_the_library_and_are_refused(made_c3d: Make, key: str) -> None:
    good = made_c3d(POINTS, ["A", "B", "C"], analog=np.ones((200, 2)), channels=[("a", "V"), ("b", "V")]).content
    at = good.index(key.encode(), good.index(b"GEN_SCALE") + 9)
    damaged = good[:at] + b"Q" + good[at + 1 :]
    with pytest.raises(RecordingError, match=f"parameter ANALOG:{key}: it has 0 values for 2 channels"):
        read_c3d(InputFile("made.c3d", damaged))


def test_the_copy_for_the_library_is_removed(made_c3d: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = made_c3d(POINTS, ["A", "B", "C"])
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    read_c3d(file)
    assert list(folder.iterdir()) == []


def test_a_missing_library_is_named_with_the_command_that_installs_it(
    made_c3d: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = made_c3d(POINTS, ["A", "B", "C"])
    monkeypatch.setitem(sys.modules, "ezc3d", None)
    with pytest.raises(RecordingError, match=r"pip install 'designopt\[mocap\]'"):
        read_c3d(file)


#: Markers of the Plug-in Gait model (README of the data).
PLUG_IN_GAIT = """
LFHD RFHD LBHD RBHD C7 T10 CLAV STRN RBAK
LSHO LUPA LELB LFRM LWRA LWRB LFIN RSHO RUPA RELB RFRM RWRA RWRB RFIN
LASI RASI LPSI RPSI LTHI LKNE LTIB LANK LHEE LTOE RTHI RKNE RTIB RANK RHEE RTOE
"""


# ------------------------------------------------------------------- the recordings of ../shared/data/mocap, by README


def test_the_full_body_walk(shared: Shared) -> None:
    walk = read_c3d(shared("mocap/plugin_gait_fullbody/Movement_trial.c3d"))
    assert (walk.rate, len(walk.time)) == (120.0, 323)
    assert walk.time[0] == 694 / 120  # frames 694-1016
    assert walk.analog is not None
    assert walk.analog.rate == 1080.0
    assert len(PLUG_IN_GAIT.split()) == 39
    assert np.isfinite(walk.selected(PLUG_IN_GAIT.split())).all()
    assert walk.marker("LFHD")[:, 1].min() > walk.marker("LTOE")[:, 1].max()  # Y is up
    assert (walk.parameters["Bodymass"], walk.parameters["Height"]) == (85.0, 1679.0)
    assert walk.results is not None
    force, moment = walk.results.result("LAnkleForce"), walk.results.result("LHipMoment")
    np.testing.assert_allclose(np.nanmax(np.abs(force)), 13.8, atol=0.05)  # N/kg, though said to be N
    np.testing.assert_allclose(np.nanmax(np.abs(moment)), 1.02, atol=0.01)  # N·m/kg, though N·mm
    assert {"LTIO", "LFEO", "CentreOfMass"} <= set(walk.marker_names)


def test_the_treadmill_walk_has_its_gaps(shared: Shared) -> None:
    walk = read_c3d(shared("mocap/walk_treadmill_c3d/walking5.c3d"))
    assert (walk.rate, walk.markers.shape) == (250.0, (1103, 40, 3))
    assert round(100 * walk.missing().mean()) == 46
    assert walk.analog is not None
    assert (walk.analog.rate, walk.analog.values.shape) == (2000.0, (8824, 12))


def test_the_shoulder_girdle_has_two_subjects_and_its_channels(shared: Shared) -> None:
    girdle = read_c3d(shared("mocap/shoulder_girdle/markers_analogs.c3d"))
    assert (girdle.rate, girdle.markers.shape) == (100.0, (580, 51, 3))
    assert {"STER", "XIPH", "CLAV_SC", "SCAP_AA", "SCAP_IA", "EPICm", "STYLu", "gauche_ext"} <= set(girdle.marker_names)
    assert girdle.analog is not None
    assert (girdle.analog.rate, girdle.analog.values.shape[1]) == (2000.0, 38)
    assert girdle.plates == ()


def test_the_wheelchair_trial_lacks_its_known_clusters(shared: Shared) -> None:
    push = read_c3d(shared("mocap/wheelchair_clusters/kinematics_racing_propulsion.c3d"), up="y")
    assert push.markers.shape == (700, 41, 3)
    np.testing.assert_allclose(push.rate, 70.0, rtol=1e-3)
    missing = dict(zip(push.marker_names, push.missing().mean(axis=0), strict=True))
    scapulae = [missing[f"Scapula{side}{i}"] for side in "LR" for i in (1, 2, 3)]
    assert (round(100 * min(scapulae)), round(100 * max(scapulae))) == (10, 41)
    assert round(100 * missing["Sternum"]) == 97
    probe = read_c3d(shared("mocap/wheelchair_clusters/kinematics_racing_probing_olecrane_R.c3d"), up="y")
    assert len(probe.time) == 140
