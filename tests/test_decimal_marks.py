"""Tables with semicolons: a point beside decimal commas may separate thousands, and is refused."""

import pytest
from designopt_knee.gait_file import parse
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.delimited import read_csv
from designopt_regulator.identification.table import BadData, read_columns

from designopt.decimal_marks import mixed_marks
from designopt.plugin import InputFile, InvalidSetting

MESSAGE = "'1.050', and '0,25' in line 2: write all with one decimal mark"
NAMES = ("time", "input", "output")


def test_the_first_number_with_another_mark_is_named() -> None:
    assert mixed_marks([(2, ["0,25", "3"]), (3, ["0,50", " 1.050 "])]) == (3, MESSAGE)
    assert mixed_marks([(2, ["0.25"]), (5, ["-1,5E+02"])]) == (
        5,
        "'-1,5E+02', and '0.25' in line 2: write all with one decimal mark",
    )


@pytest.mark.parametrize("cells", [["0,25", "1,050"], ["0.25", "1.5e-3"], ["12.03.2024", "0,5"], ["0,5", "v1.2"], []])
def test_numbers_of_one_mark_and_other_texts_are_accepted(cells: list[str]) -> None:
    assert mixed_marks([(2, cells)]) is None


def test_a_recording_with_both_marks_is_refused() -> None:
    with pytest.raises(RecordingError, match=f"line 3: {MESSAGE}"):
        read_csv(InputFile("forces.csv", b"time;force [N]\n0,25;900\n0,50;1.050\n"))


def test_a_gait_with_both_marks_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=f"line 3: {MESSAGE}"):
        parse("time;force\n0,25;900\n0,50;1.050\n")


def test_a_record_of_a_plant_with_both_marks_is_refused() -> None:
    file = InputFile("record.csv", b"time [s];input [W];output [K]\n0,25;900;1\n0,50;1.050;1\n")
    with pytest.raises(BadData, match=f"record.csv:3: {MESSAGE}"):
        read_columns(file, NAMES, "time [s],input [%],output [K]")
