"""Results that could be read as another number than the program wrote are refused, not guessed."""

import math
from pathlib import Path
from typing import Any

import pytest
from designopt_external.program.sources import MissingResult, check, read, single_number

FILE = "out"


def result(text: str, /, **section: Any) -> float:
    """The number that an output takes from `text`, whose format is the first key of `section`."""
    return single_number(section, read(section, Path(), {FILE: text}))  # type: ignore[arg-type]


@pytest.mark.parametrize("take", ["max", "min", "largest", "mean", "sum", "rms"])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_number_that_is_nan_is_not_passed_over_wherever_it_stands(take: str, position: int) -> None:
    numbers = ["1", "2", "3"]
    numbers[position] = "NaN"
    assert math.isnan(result(f'{{"peak": [{", ".join(numbers)}]}}', json=FILE, path="peak", take=take))
    assert math.isnan(result("peak\n" + "\n".join(numbers), csv=FILE, column="peak", take=take))


def test_reductions_of_numbers_are_those_of_python() -> None:
    text = "[-3, 2, 0.5]"
    assert [result(f'{{"x": {text}}}', json=FILE, path="x", take=t) for t in ("max", "min", "largest")] == [2, -3, 3]


@pytest.mark.parametrize(
    ("text", "section", "message"),
    [
        ("a,b\n1,5,2,5\n", {"column": "b"}, "row 1 has 4 cells, more than the 2 of the first line: 1,5,2,5; a decimal"),
        ("1,2\n3,4,5\n", {"column": 2, "take": "max"}, "row 2 has 3 cells, more than the 2 of the first line"),
        ("b;b\n1;2\n", {"column": "b"}, "there are 2 columns 'b'; give the number of one"),
        ("1 2,5\n", {"column": 2}, "row 1: '1 2' has several numbers; ',' separates the cells"),
    ],
    ids=["decimal commas", "a longer row", "columns of one name", "spaces and decimal commas"],
)
def test_an_ambiguous_table_is_refused(text: str, section: dict[str, Any], message: str) -> None:
    with pytest.raises(MissingResult) as caught:
        result(text, csv=FILE, **section)
    assert message in str(caught.value)


def test_empty_cells_at_the_end_of_a_row_are_none() -> None:
    assert result("a,b\n1,2,\n", csv=FILE, column="b") == 2.0


@pytest.mark.parametrize(
    ("text", "pattern", "message"),
    [
        ("sag 1.5e3 mm", r"sag ([0-9.]+)", "takes 1.5, a part of '1.5e3': state in the pattern what follows"),
        ("sag 1,5 mm", r"sag ([0-9.]+)", "takes 1, a part of '1,5'"),
        ("sag 12.5 mm", r"sag (\d+)", "takes 12, a part of '12.5'"),
        ("sag -1.#IND mm", r"sag ([-0-9.]+)", "takes -1., a part of '-1.#IND'"),
        ("sag = 123.4 mm", r"sag.*([0-9.]+) mm", "takes 4, a part of '123.4': write .*? before the group"),
        ("sag = 123.4 mm", r"sag.*\s*([0-9.]+)", "takes 4, a part of '123.4'"),
        ("sag = 123.4 mm", r"sag.*(?P<v>[0-9.]+)", "takes 4, a part of '123.4'"),
        ("sag = 123.4 mm", r"sag.*?=.* *([0-9.]+) mm", "takes 4, a part of '123.4'"),
    ],
    ids=[
        *("an exponent", "a decimal comma", "decimals", "a name of no number", "a greedy wildcard", "spaces after it"),
        *("a group with a name", "a lazy wildcard before it"),
    ],
)
def test_a_pattern_that_takes_a_part_of_a_number_is_refused(text: str, pattern: str, message: str) -> None:
    with pytest.raises(MissingResult) as caught:
        result(text, text=FILE, pattern=pattern)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "pattern", "value"),
    [
        ("sag = 123.4 mm", r"sag.*?([0-9.]+)", 123.4),
        ("sag = 123.4 mm", r"sag.*(\s\S+) mm", 123.4),
        ("12,500", r"^(\d+),", 12.0),
        ("done in 12.", r"in (\d+)", 12.0),
        ("  1.0000112.0000", r"^.{8}(.{8})", 112.0),
    ],
    ids=["a lazy wildcard", "a space in the group", "a comma in the pattern", "the end of a sentence", "columns"],
)
def test_a_pattern_that_states_where_its_number_ends_is_followed(text: str, pattern: str, value: float) -> None:
    assert result(text, text=FILE, pattern=pattern) == value


def test_decimal_commas_in_columns_of_a_text_are_refused_and_commas_between_columns_are_not() -> None:
    for column in (1, 2, 3):
        with pytest.raises(MissingResult, match=r"line 1: '1,5' has a decimal comma, or two numbers in one field"):
            result("1,5 2,5\n", text=FILE, column=column)
    assert result("1, 2, 3\n", text=FILE, column=3) == 3.0
    assert result("1,2,3\n", text=FILE, column=3) == 3.0
    assert result("1.5,2 7\n", text=FILE, column=3) == 7.0


@pytest.mark.parametrize(
    ("column", "unit", "is_mistake"),
    [
        ("force [N]", "kN", True),
        ("force [N]", "mm", True),
        ("force [N]", "N", False),
        ("length [um]", "µm", False),
        ("force [N]", "", False),
        ("force [case 3]", "N", False),
    ],
)
def test_a_unit_is_not_another_one_than_that_in_the_head_of_its_column(
    column: str, unit: str, is_mistake: bool
) -> None:
    message = (
        f"'{unit}' is not the unit of the column '{column}'; write unit: N, it is converted, or give the number of the"
        " column"
    )
    mistakes = [m.message for m in check({"csv": FILE, "column": column, "unit": unit}, "outputs.x")]
    assert mistakes == ([message] if is_mistake else [])


SAGS = "sag = 1.5 mm\nsag = ****** mm\n"


@pytest.mark.parametrize(
    ("text", "section", "message"),
    [
        (SAGS, {}, "line 2: '******' is no number, where 'sag = ([-0-9.]+) mm' expects one: the program had too few"),
        (SAGS, {"take": "max"}, "line 2: '******' is no number"),
        (SAGS, {"match": 2}, "line 2: '******' is no number"),
        ("sag = 1.5 mm\nsag = -Infinity mm\n", {}, "line 2: '-Infinity' is no number"),
        ("sag = NaN mm\n", {}, "line 1: 'NaN' is no number"),
    ],
    ids=["last", "reduced", "chosen", "infinity", "alone"],
)
def test_stars_in_place_of_a_number_are_not_passed_over(text: str, section: dict[str, Any], message: str) -> None:
    with pytest.raises(MissingResult) as caught:
        result(text, text=FILE, pattern="sag = ([-0-9.]+) mm", **section)
    assert message in str(caught.value)


def test_stars_before_the_number_that_counts_do_no_harm() -> None:
    text = "sag = ****** mm\nsag = 1.5 mm\n"
    section: dict[str, Any] = {"text": FILE, "pattern": r"sag = ([-[(0-9.]+) mm"}
    assert result(text, **section) == result(text, match=2, **section) == 1.5
    numbers = read(section, Path(), {FILE: text})  # type: ignore[arg-type]
    assert math.isnan(numbers[0])  # of an array
    assert numbers[1:] == [1.5]
    escaped = {"text": FILE, "pattern": r"sag\(x\) = (?:-)?(?P<size>[\d.]+)"}
    with pytest.raises(MissingResult, match="is no number"):
        result("sag(x) = 1.0\nsag(x) = -***\n", **escaped)


def test_stars_that_may_be_a_heading_decide_no_choice() -> None:
    text = "**** sag ****\nsag 3.5\nsag 4.5\n"
    with pytest.raises(MissingResult, match=r"match 2 is '3.5' if '\*\*\*\*' in line 1 stands for a number, and"):
        result(text, text=FILE, pattern=r"sag\s+([\d.]+)", match=2)
    assert result(text, text=FILE, pattern=r"^sag\s+([\d.]+)", match=2) == 4.5


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("force 3\nforce information\n", r"(?i)force\s*([-\d.]+)"),
        ("3 bananas\n", r"(\d)"),
        ("shift 3\nshift nanometers 5\n", r"shift\s*(\d)"),
    ],
    ids=["begin", "inside", "unit"],
)
def test_a_part_of_a_word_is_not_in_place_of_a_number(text: str, pattern: str) -> None:
    assert read({"text": FILE, "pattern": pattern}, Path(), {FILE: text}) == [3.0]


def test_the_group_of_a_pattern_is_known_behind_a_class_with_a_bracket() -> None:
    with pytest.raises(MissingResult, match="line 2: '\\*\\*\\*' is no number"):
        result("sag 3\nsag ***\n", text=FILE, pattern=r"[]()]?sag (\d)")


def test_a_key_that_an_object_has_twice_is_refused_where_it_is_the_result() -> None:
    text = '{"sag": 1.5, "loads": {"peak": 2}, "sag": 3.5, "other": {"x": 1, "x": 2}}'
    assert result(text, json=FILE, path="loads.peak") == 2.0
    for path in ("sag", "other.x"):
        with pytest.raises(MissingResult, match=rf"out: '{path}' occurs several times"):
            result(text, json=FILE, path=path)
