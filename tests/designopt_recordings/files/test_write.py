"""Written tables and recordings are read back to the last bit."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_recording, read_table
from designopt_recordings.files.storage import read_storage
from designopt_recordings.files.trc import read_trc
from designopt_recordings.files.write import csv_text, motion_text, storage_text, trc_text
from designopt_recordings.recording import Recording
from designopt_recordings.table import TimeTable
from hypothesis import given
from hypothesis import strategies as st

from designopt.plugin import InputFile

NUMBERS = st.floats(allow_infinity=False, width=64)


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20),
    st.booleans(),
    st.sampled_from([".sto", ".mot", ".csv"]),
)
def test_a_table_goes_to_a_file_and_back_without_a_changed_bit(
    rows: list[tuple[float, float]], in_degrees: bool, ending: str
) -> None:
    time = np.cumsum(np.full(len(rows), 1 / 3))
    table = TimeTable(time, ("/jointset/hip/flexion/value", "a label"), np.array(rows), in_degrees, "a title")
    text = {".sto": storage_text, ".mot": motion_text, ".csv": csv_text}[ending](table)
    back = read_table(InputFile("t" + ending, text.encode()))
    np.testing.assert_array_equal(back.values, table.values)
    np.testing.assert_array_equal(back.time, table.time)
    title = "" if ending == ".csv" else table.title
    assert (back.names, back.in_degrees, back.title) == (table.names, table.in_degrees, title)


def test_headers_are_those_that_opensim_reads() -> None:
    table = TimeTable(np.array([0.0]), ("a",), np.array([[1.0]]), title="Forces")
    assert storage_text(table) == (
        "Forces\ninDegrees=no\nnColumns=2\nnRows=1\nDataType=double\nversion=3\nendheader\ntime\ta\n0.0\t1.0\n"
    )
    assert motion_text(table) == "Forces\ninDegrees=no\nnColumns=2\nnRows=1\nversion=1\nendheader\ntime\ta\n0.0\t1.0\n"
    untitled = replace(table, title="")
    assert storage_text(untitled).startswith("inDegrees=no\n")
    assert read_storage(InputFile("t.sto", storage_text(untitled).encode())).title == ""


def small(markers: np.ndarray) -> Recording:
    time = np.arange(len(markers)) / 120.0
    return Recording(120.0, time, ("LASI", "R ASI"), markers)


def test_a_recording_goes_to_a_trc_file_and_back_without_a_changed_bit() -> None:
    markers = np.random.default_rng(1).normal(size=(50, 2, 3))
    markers[3:7, 1] = np.nan
    original = small(markers)
    back = read_trc(InputFile("t.trc", trc_text(original).encode()))
    np.testing.assert_array_equal(back.markers, original.markers)
    np.testing.assert_array_equal(back.time, original.time)
    assert (back.rate, back.marker_names) == (original.rate, original.marker_names)
    millimetres = read_trc(InputFile("t.trc", trc_text(original, unit="mm").encode()))
    np.testing.assert_allclose(millimetres.markers, original.markers, rtol=1e-15)


def test_the_shared_walk_goes_to_a_file_and_back(shared: Callable[[str], InputFile]) -> None:
    walk = read_recording(shared("mocap/walk_fullbody_opensim/markers_walk.trc"))
    back = read_recording(InputFile("back.trc", trc_text(walk).encode()))
    assert (back.markers == walk.markers).all()


def test_values_that_a_file_cannot_hold_are_refused() -> None:
    origin = np.ones((2, 2, 3))
    origin[1, 0] = 0.0
    with pytest.raises(RecordingError, match="'LASI' is exactly at the origin in frame 2"):
        trc_text(small(origin))
    with pytest.raises(RecordingError, match="unit of length is 'yard'"):
        trc_text(small(np.ones((2, 2, 3))), unit="yard")
    with pytest.raises(RecordingError, match="cannot be a label"):
        storage_text(TimeTable(np.zeros(1), ("a\tb",), np.zeros((1, 1))))
