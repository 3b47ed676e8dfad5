"""STO and MOT files: what is read from the shared trials, what was assumed, what is refused and where."""

from collections.abc import Callable

import numpy as np
import pytest
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_table
from designopt_recordings.files.storage import read_storage
from designopt_recordings.table import TimeTable

from designopt.plugin import InputFile

HEAD = "a title\nversion=1\nnRows=3\nnColumns=3\ninDegrees=yes\nendheader\n"
ROWS = "time\tknee_angle\tpelvis_tx\n0.0\t10\t0.5\n0.01\t11\t0.6\n0.02\t12\t0.7\n"


def read(text: str | bytes, name: str = "trial.mot") -> TimeTable:
    return read_storage(InputFile(name, text if isinstance(text, bytes) else text.encode()))


def test_a_small_table_is_read_as_it_stands() -> None:
    table = read(HEAD + ROWS)
    assert table.title == "a title"
    assert table.names == ("knee_angle", "pelvis_tx")
    assert table.time.tolist() == [0.0, 0.01, 0.02]
    assert table.values.tolist() == [[10, 0.5], [11, 0.6], [12, 0.7]]
    assert table.in_degrees
    assert table.notes == ()
    assert table.assumption == ""


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text.replace("\t", "   "),
        lambda text: "\ufeff" + text,
        lambda text: text.encode("utf-16"),
        lambda text: text.replace("endheader", "EndHeader"),
        lambda text: text.replace("inDegrees=yes", "indegrees = YES"),
        lambda text: text.replace("\n", "\t\t\t\n"),
        lambda text: text.replace("endheader\n", "Angles are in degrees.\n\nendheader\n\n"),
        lambda text: text.replace("a title", "Bécane").encode("latin-1"),
        lambda text: text + "\n\n",
        lambda text: text[:-1],
    ],
)
def test_line_ends_blanks_and_encodings_make_no_difference(change: Callable[[str], str | bytes]) -> None:
    assert read(change(HEAD + ROWS)).values.tolist() == read(HEAD + ROWS).values.tolist()


def test_the_data_decide_where_the_header_counts_otherwise() -> None:
    wrong = HEAD.replace("nRows=3", "nRows=30").replace("nColumns=3", "nColumns=40")
    assert read(wrong + ROWS).notes == (
        "the header says 30 rows, the file has 3; the file may be truncated",
        "the header says 40 columns, the file has 3",
    )


@pytest.mark.parametrize(
    ("head", "in_degrees", "assumption"),
    [
        ("t\nversion=1\nendheader\n", False, "radians (it has a version)"),
        ("t\ndatacolumns 3\ndatarows 3\nrange 0 1\nendheader\n", True, "degrees (old header without a version)"),
        ("t\nversion=1\ninDegrees=no\nendheader\n", False, ""),
    ],
)
def test_assumed_units_of_rotations_are_reported_with_them(head: str, in_degrees: bool, assumption: str) -> None:
    table = read(head + ROWS)
    assert table.in_degrees is in_degrees
    notes = table.radians(["knee_angle"]).notes
    assert assumption in " ".join(notes)
    assert (assumption == "") == (table.assumption == "")


def test_speeds_of_rotations_are_in_the_unit_of_their_angles() -> None:
    """As in OpenSim, whose conversion scales the columns of rotational coordinates and of their speeds."""
    paths = [f"/jointset/j/{name}" for name in ("knee/value", "knee/speed", "tx/value", "tx/speed")]
    rows = "\t".join(["time", *paths]) + "\n0.0\t180\t90\t0.5\t2\n0.01\t180\t90\t0.5\t2\n"
    table = read(HEAD.replace("nColumns=3", "nColumns=5").replace("nRows=3", "nRows=2") + rows).radians(["knee"])
    assert table.values[0].tolist() == pytest.approx([np.pi, 0.5 * np.pi, 0.5, 2.0])


def test_cells_without_a_number_are_nan_and_counted() -> None:
    text = HEAD + ROWS.replace("\t11\t", "\t-1.#IND00\t").replace("\t0.7", "\t") + "0.03\tNaN\tinf\n"
    table = read(text)
    assert np.isnan(table.values).tolist() == [[False, False], [True, False], [False, True], [True, True]]
    assert "cells without a number in 'knee_angle' (2), 'pelvis_tx' (2) of 4 rows" in table.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "trial.mot: the file is empty"),
        ("time\ta\n0\t1\n", "trial.mot: there is no line 'endheader'"),
        (HEAD, "line 6: there are no column labels below 'endheader'"),
        (HEAD + "time\ta\n", "line 7: there are no rows of numbers"),
        (HEAD + ROWS.replace("time", "x"), "line 7: the first column is 'x'; it must be 'time'"),
        (HEAD + ROWS.replace("pelvis_tx", "knee_angle"), "line 7: columns 2 and 3 are both 'knee_angle'"),
        (HEAD + ROWS.replace("knee_angle", ""), "line 7: column 2 has no label"),
        (HEAD + ROWS.removeprefix("time\tknee_angle\tpelvis_tx\n"), "line 7: the label of column 1 is the number 0.0"),
        (HEAD + ROWS.replace("11", "eleven"), "line 9: column 'knee_angle': 'eleven' is not a number"),
        (HEAD + ROWS.replace("0.6", "0,6"), "line 9: column 'pelvis_tx': '0,6' has a decimal comma"),
        (HEAD + ROWS.replace("0.6", "1_0"), "line 9: column 'pelvis_tx': '1_0' is not a number"),
        (HEAD + ROWS.replace("0.01", "0.0"), "line 9: the time 0 s is not later than 0 s in line 8"),
        (HEAD + ROWS.replace("0.01", "NaN"), "line 9: the time 'NaN' is not a number"),
        (HEAD + ROWS.replace("\t0.6", ""), "line 9: 2 values, but 3 columns have a label"),
        (HEAD + ROWS.replace("\t0.6", "\t0.6\t8"), "line 9: 4 values, but 3 columns have a label"),
        (HEAD + ROWS[:-7], "line 10: 2 values, but 3 columns have a label; the file ends in the middle of this row"),
        (HEAD.replace("=yes", "=perhaps") + ROWS, "line 5: inDegrees is 'perhaps'; it must be yes or no"),
        (HEAD.replace("nRows=3", "inDegrees=no") + ROWS, "line 5: indegrees is 'yes' here and 'no' in line 3"),
        (HEAD.replace("nRows=3", "DataType=Vec3") + ROWS, "line 3: DataType is 'Vec3'; only tables of numbers"),
        (HEAD + ROWS.replace("0.6", "0.6\0"), "line 9: this is not a text file"),
    ],
)
def test_unreadable_input_is_refused_with_the_line(text: str, message: str) -> None:
    with pytest.raises(RecordingError) as refused:
        read(text)
    assert message in str(refused.value)


def test_an_unknown_ending_is_answered_with_the_known_ones() -> None:
    with pytest.raises(RecordingError, match=r"trial.xlsx: tables are read from .sto, .mot and .csv"):
        read_table(InputFile("trial.xlsx", b""))


# --------------------------------------------------------------------------------------- the trials of ../shared/data


@pytest.mark.parametrize(
    ("path", "rows", "columns", "in_degrees"),
    [  # sizes: headers of the files, README of the data
        ("opensim/motion/arm26_InverseKinematics.mot", 121, 11, True),
        ("opensim/motion/arm26_kinematics.sto", 121, 2, False),
        ("opensim/motion/gait10dof18musc_walk_IK.mot", 151, 10, True),
        ("opensim/motion/gait2392_walk1_IK.mot", 211, 23, True),
        ("opensim/motion/gait2392_kinematics.sto", 351, 23, False),
        ("opensim/motion/subject01_walk_grf.mot", 1501, 18, True),
        ("opensim/motion/walk_armless_coordinates.mot", 238, 39, True),
        ("mocap/walk_fullbody_opensim/grf_walk.mot", 4778, 18, False),
        ("mocap/walk_fullbody_opensim/id_walk.sto", 1350, 31, False),
        ("opensim/reference/walk_armless_MocoInverse_4.6.sto", 45, 115, False),
    ],
)
def test_shared_tables_have_the_size_and_unit_they_say(
    shared: Callable[[str], InputFile], path: str, rows: int, columns: int, in_degrees: bool
) -> None:
    table = read_table(shared(path))
    assert table.values.shape == (rows, columns)
    assert table.in_degrees is in_degrees
    assert table.notes == ()
    assert np.isfinite(table.values).all()


def test_the_old_header_of_the_arm_is_read_in_degrees_and_its_extra_columns_are_there(
    shared: Callable[[str], InputFile],
) -> None:
    table = read_table(shared("opensim/motion/arm26_InverseKinematics.mot"))
    radians = table.radians(["r_shoulder_elev", "r_elbow_flex"])
    assert any("assumed to be in degrees" in note for note in radians.notes)
    assert radians.column("r_elbow_flex")[0] == np.radians(0.89932091)  # as OpenSim 4.6 reads it
    assert (radians.column("r_acromion_tx") == table.column("r_acromion_tx")).all()


def test_a_header_that_says_forty_columns_of_thirty_two_is_noted(shared: Callable[[str], InputFile]) -> None:
    table = read_table(shared("mocap/walk_fullbody_opensim/coordinates.sto"))
    assert table.notes == ("the header says 40 columns, the file has 32",)
    assert table.label("knee_angle_r") == "/jointset/walker_knee_r/knee_angle_r/value"
