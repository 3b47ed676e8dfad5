"""CSV files: separators, comments, times in ms, what is refused and where."""

from collections.abc import Callable

import numpy as np
import pytest
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.delimited import read_csv
from designopt_recordings.files.read import read_table
from designopt_recordings.table import TimeTable

from designopt.plugin import InputFile

GOOD = "time,hip moment,knee_angle\n0.0,1.5,-0.25\n0.1,2.5,0.5\n"


def read(text: str) -> TimeTable:
    return read_csv(InputFile("t.csv", text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace("time", "t"),
        GOOD.replace("time", "Time (s)"),
        GOOD.replace(",", ";"),
        GOOD.replace(",", ";").replace(".", ","),
        GOOD.replace(",", "\t"),
        GOOD.replace("hip moment", '"hip moment"'),
        "# recorded in 2024\n\n" + GOOD.replace("\n0.1", "\n# a comment\n0.1"),
        "time [ms],hip moment,knee_angle\n0,1.5,-0.25\n100,2.5,0.5\n",
        GOOD.replace("\n", ",\n"),
    ],
)
def test_separators_comments_and_units_of_time_make_no_difference(text: str) -> None:
    table = read(text)
    assert table.names == ("hip moment", "knee_angle")
    assert table.time.tolist() == [0.0, 0.1]
    assert table.values.tolist() == [[1.5, -0.25], [2.5, 0.5]]


def test_a_comment_says_the_unit_of_rotations() -> None:
    assert read("# inDegrees = yes\n" + GOOD).in_degrees
    assert not read(GOOD).in_degrees
    assert "assumed to be in radians" in " ".join(read(GOOD).radians(["knee_angle"]).notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# only this\n", "t.csv: there are only comments"),
        (GOOD.replace("time", "x"), "line 1: the first column is 'x'; it must be 'time' (s) or 'time_ms'"),
        (GOOD.replace("knee_angle", "hip moment"), "line 1: columns 2 and 3 are both 'hip moment'"),
        (GOOD.replace("2.5", "2.5.1"), "line 3: column 'hip moment': '2.5.1' is not a number"),
        (GOOD.replace("2.5", "2,5"), "line 3: 4 values, but 3 columns have a label"),
        ("# inDegrees=maybe\n" + GOOD, "line 1: inDegrees is 'maybe'"),
        (GOOD.splitlines()[0], "line 1: there are no rows of numbers"),
        (GOOD.replace("2.5", '"' + "9" * 200_000), "line 3: 1 values, but 3 columns have a label"),
    ],
)
def test_unreadable_input_is_refused_with_the_line(text: str, message: str) -> None:
    with pytest.raises(RecordingError) as refused:
        read(text)
    assert message in str(refused.value)


def test_shared_moments_of_the_arm(shared: Callable[[str], InputFile]) -> None:
    table = read_table(shared("opensim/reference/arm26_inverse_dynamics.csv"))
    assert table.names == ("r_shoulder_elev_moment", "r_elbow_flex_moment")
    assert table.values.shape == (121, 2)
    np.testing.assert_allclose(np.diff(table.time), 1 / 120, atol=1e-6)
