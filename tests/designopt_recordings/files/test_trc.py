"""TRC files: the shared walk by value, units, rates, missing markers, headers that lie."""

from collections.abc import Callable

import numpy as np
import pytest
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.trc import read_trc
from designopt_recordings.recording import Recording

from designopt.plugin import InputFile

GOOD = """PathFileType\t4\t(X/Y/Z)\twalk.trc
DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames
100.0\t100.0\t3\t2\tmm\t100.0\t1\t3
Frame#\tTime\tLASI\t\t\tRASI\t\t
\t\tX1\tY1\tZ1\tX2\tY2\tZ2

1\t0.00\t100\t900\t-120\t100\t910\t130
2\t0.01\t101\t901\t-121\t101\t911\t131
3\t0.02\t102\t902\t-122\t102\t912\t132
"""


def read(text: str, **options: str) -> Recording:
    return read_trc(InputFile("walk.trc", text.encode()), **options)


def test_positions_are_metres_with_y_up() -> None:
    walk = read(GOOD)
    assert walk.rate == 100.0
    assert walk.time.tolist() == [0.0, 0.01, 0.02]
    np.testing.assert_allclose(walk.marker("RASI")[2], [0.102, 0.912, 0.132], rtol=1e-15)
    assert walk.notes == ()


@pytest.mark.parametrize(
    ("up", "expected"),
    [("y", [0.1, 0.9, -0.12]), ("z", [0.1, -0.12, -0.9]), ("x", [-0.9, 0.1, -0.12]), ("-y", [0.1, -0.9, 0.12])],
)
def test_another_vertical_axis_is_turned_up(up: str, expected: list[float]) -> None:
    np.testing.assert_allclose(read(GOOD, up=up).marker("LASI")[0], expected, rtol=1e-15)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n\n", "\n"),  # no empty line below the axes
        lambda text: text.replace("100.0\t100.0\t3", "  100.0\t\t  100.0\t\t3"),  # columns that do not match the keys'
        lambda text: text.replace("NumFrames\tNumMarkers", "NumMarkers\tNumFrames").replace("3\t2\tmm", "2\t3\tmm"),
        lambda text: text.replace("\t132", "\t132\t\t"),
        lambda text: text.replace("LASI\t\t\t", "LASI\t\t\t").replace("X2\tY2\tZ2", "X9\tY9\tZ9"),
    ],
)
def test_layout_makes_no_difference(change: Callable[[str], str]) -> None:
    changed, good = read(change(GOOD)), read(GOOD)
    assert changed.marker_names == good.marker_names
    assert (changed.markers == good.markers).all()
    assert changed.notes == ()


def test_subjects_are_taken_off_the_names_where_they_stay_unique() -> None:
    assert read(GOOD.replace("LASI", "Anna:LASI").replace("RASI", "Anna:RASI")).marker_names == ("LASI", "RASI")
    recording = read(GOOD.replace("LASI", "Anna:ASI").replace("RASI", "Bert:ASI"))
    assert recording.marker_names == ("Anna:ASI", "Bert:ASI")
    assert recording.notes == ("two subjects have markers of the same name; labels keep the subject's prefix",)


def test_empty_cells_nan_and_zeros_are_missing_markers() -> None:
    text = GOOD.replace("\t101\t901\t-121\t", "\t\t\t\t").replace("102\t912\t132", "0.0\t0.0\t0.0")
    walk = read(text.replace("1\t0.00\t100", "1\t0.00\tNaN"))
    assert walk.missing().tolist() == [[True, False], [True, False], [False, True]]
    assert np.isnan(walk.markers[walk.missing()]).all()  # all three coordinates
    assert "1 positions are exactly zero in all coordinates; they are treated as missing" in walk.notes
    assert "missing markers in 'LASI' (2), 'RASI' (1) of 3 rows" in walk.notes


def test_counts_of_the_header_that_lie_are_noted() -> None:
    walk = read(GOOD.replace("100.0\t3\t2\tmm", "100.0\t300\t41\tmm"))
    assert walk.notes == (
        "the header says 300 frames, the file has 3; the file may be truncated",
        "the header says 41 markers, the file has 2",
    )


def test_times_decide_the_rate_where_the_header_says_another() -> None:
    walk = read(GOOD.replace("\n100.0\t100.0", "\n50.0\t50.0"))
    np.testing.assert_allclose(walk.rate, 100.0)
    assert walk.notes == ("the header says 50 Hz, the times are those of 100 Hz: the times are used",)


def test_times_that_are_rounded_keep_the_rate_of_the_header() -> None:
    rows = "".join(f"{i + 1}\t{i / 120:.3f}\t100\t900\t-120\t100\t910\t130\n" for i in range(200))
    head = GOOD[: GOOD.index("1\t0.00")].replace("\n100.0\t100.0\t3", "\n120\t120\t200")
    walk = read(head + rows)
    assert walk.rate == 120.0
    assert walk.notes == ()


@pytest.mark.parametrize(("unit", "factor"), [("m", 1.0), ("cm", 100.0), ("mm", 1000.0), ("M", 1.0)])
def test_the_unit_of_the_header_is_converted(unit: str, factor: float) -> None:
    rows = f"1\t0.0\t{0.1 * factor}\t{0.9 * factor}\t{-0.12 * factor}\t0.1\t0.9\t0.1\n"
    walk = read(GOOD[: GOOD.index("1\t0.00")].replace("mm", unit) + rows)
    np.testing.assert_allclose(walk.marker("LASI")[0], [0.1, 0.9, -0.12], rtol=1e-14)


def test_metres_in_a_file_that_says_millimetres_are_refused_unless_the_unit_is_given() -> None:
    text = GOOD.replace("mm", "m")
    with pytest.raises(RecordingError, match=r"walk.trc, line 3: the file says m, .* they are probably in mm"):
        read(text)
    assert (read(text, unit="mm").markers == read(GOOD).markers).all()
    small = GOOD
    for number in ("100", "101", "102", "900", "901", "902", "120", "121", "122", "910", "911", "912"):
        small = small.replace(f"\t{number}", f"\t0.{number}").replace(f"\t-{number}", f"\t-0.{number}")
    small = small.replace("\t130", "\t0.130").replace("\t131", "\t0.131").replace("\t132", "\t0.132")
    small = small.replace("0.100.0", "100.0")
    with pytest.raises(RecordingError, match=r"line 3: the file says mm, .* they are probably in m:"):
        read(small)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "walk.trc: the file is empty"),
        ("time\ta\n0\t1\n", "line 1: a TRC file begins with 'PathFileType'"),
        (GOOD[: GOOD.index("Frame#")], "line 3: the file ends before the first frame"),
        (GOOD[: GOOD.index("1\t0.00")], "line 5: the file ends before the first frame"),
        (GOOD.replace("Units", "Length"), "line 2: the header has no 'Units'"),
        (GOOD.replace("\tmm\t100.0\t1\t3", ""), "line 3: the header has no value for 'Units'"),
        (GOOD.replace("\tmm", "\tfurlong"), "line 3: the unit of length is 'furlong'"),
        (GOOD.replace("\n100.0\t100.0", "\nfast\t100.0"), "line 3: DataRate is 'fast'"),
        (GOOD.replace("\n100.0\t100.0", "\n-1\t100.0"), "line 3: DataRate is '-1'"),
        (GOOD.replace("Frame#", "Image"), "line 4: the labels must begin with 'Frame#' and 'Time'"),
        (GOOD.replace("RASI", "LASI"), "line 4: columns 1 and 2 are both 'LASI'"),
        (GOOD.replace("RASI", ""), "line 5: 6 axes for 1 markers in line 4"),
        (GOOD.replace("\tX2\tY2\tZ2", ""), "line 5: 3 axes for 2 markers in line 4"),
        (GOOD.replace("X1\tY1", "A\tB"), "line 5: this line must name the axes"),
        (GOOD.replace("901", "9O1"), "line 8: column 'LASI Y': '9O1' is not a number"),
        (GOOD.replace("901", "901,5"), "line 8: column 'LASI Y': '901,5' has a decimal comma"),
        (GOOD.replace("\t0.02", "\t0.01"), "line 9: the time 0.01 s is not later than 0.01 s in line 8"),
        (GOOD.replace("2\t0.01", "2\t0.03").replace("3\t0.02", "3\t0.04"), "line 8: the time advances by 0.03 s here"),
        (GOOD[:-8], "line 9: 7 values, but 8 columns have a label; the file ends in the middle of this row"),
    ],
)
def test_unreadable_input_is_refused_with_the_line(text: str, message: str) -> None:
    with pytest.raises(RecordingError) as refused:
        read(text)
    assert message in str(refused.value)


def test_the_shared_walk(shared: Callable[[str], InputFile]) -> None:
    walk = read_trc(shared("mocap/walk_fullbody_opensim/markers_walk.trc"))
    assert (walk.rate, walk.markers.shape) == (100.0, (238, 41, 3))  # README of the data
    assert walk.notes == ()
    assert not walk.missing().any()
    np.testing.assert_allclose(walk.time, np.arange(238) / 100.0, atol=5e-4)
    # first frame of the file, mm: R.Shoulder, and L.Toe, the last marker
    head = shared("mocap/walk_fullbody_opensim/markers_walk.trc").content.decode().splitlines()[6].split()
    np.testing.assert_allclose(1000.0 * walk.marker("R.Shoulder")[0], [float(x) for x in head[2:5]], rtol=1e-14)
    np.testing.assert_allclose(1000.0 * walk.marker("L.Toe")[0], [float(x) for x in head[-3:]], rtol=1e-14)
    assert 1.2 < walk.marker("R.Shoulder")[:, 1].mean() < 1.6  # metres, Y up
