"""Tables in the text files of programs: columns of fixed width that touch, and rows that cannot be told from others."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from designopt_external.program.sources import MissingResult, SourceSection, read, table_position

from designopt import evaluation_progress
from designopt.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "external_programs.md"

#: The stresses at three nodes as CalculiX 2.20 writes them: I10 and E12.5, a head line for each component.
FRD = """\
 -4  STRESS      6    1
 -5  SXX         1    4    1    1
 -5  SYY         1    4    2    2
 -5  SZX         1    4    3    1
 -1        34-2.58219E+01-6.66869E+01 9.87715E+00
 -1        37 2.58219E+01 6.83820E+01 9.87715E+00
 -1        38-2.71917E+01-7.32975E+01-3.28247E-10
 -3
"""


def numbers(text: str, **section: object) -> list[float]:
    return read({"text": "out", **section}, Path(), {"out": text})  # type: ignore[typeddict-item]


def test_columns_that_touch_at_a_sign_are_read_as_the_recipe_for_calculix_says() -> None:
    recipe = PAGE.read_text(encoding="utf-8").partition("```yaml frd\n")[2].partition("```")[0]
    stress = yaml.safe_load(recipe)["outputs"]["stress"]
    assert numbers(FRD, after=stress["after"], column=stress["column"]) == [-66.6869, 68.3820, -73.2975]
    assert numbers("1.5-101-2.5-102 3", column=2) == [-2.5e-102]
    assert numbers("12-345.6E+00", column=2) == [-345.6]


def test_numbers_that_touch_are_cut_where_those_of_another_row_end() -> None:
    """Two columns F8.3 after one I4, then two F8.4; the rows that touch come first."""
    signs = "   1  12.345-100.678\n   2 -12.300   0.600\n   3-112.300-400.600\n"
    assert [numbers(signs, column=k) for k in (2, 3)] == [[12.345, -12.3, -112.3], [-100.678, 0.6, -400.6]]
    digits = "  1.0000112.0000\n  1.0000 12.0000\n"
    assert numbers(digits, column=2) == [112.0, 12.0]


@pytest.mark.parametrize("line", ["28.11.2026 5.0", "2026-11-28 5.0", "0.5-1.5 5.0", "a-2.5E+01 5.0", "1.5-101 5.0"])
def test_dates_ranges_and_single_numbers_with_a_sign_inside_stay_one_field(line: str) -> None:
    assert numbers(line, column=2) == [5.0]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        (
            FRD,
            4,
            "line 5 is no row like line 1 ('-4  STRESS      6    1'), and both have a number in column 4",
        ),
        ("1 2.0\n2 n/a\n3 4.0\n", 2, "line 2 has no number in column 2, and rows go on after it: 2 n/a; let 'after'"),
        ("1 2.0\n2 ******\n", 2, "line 2: the program had too few columns for '******'"),
        ("1 12.345-0.678\n2 12.3 0.6\n", 3, "line 1: the program had too few columns for '12.345-0.678'"),
        ("1 2.5 3.0\n2 2.5-13.0\n", 3, "line 2: the program had too few columns for '2.5-13.0'"),
        ("1  1.0000112.0000\n2  1.0000212.0000\n", 3, "give a 'pattern', or one that counts characters, such as '^"),
        ("1 12.0000\n2 1.0000112.0000\n", 2, "line 2: the program had too few columns for '1.0000112.0000'"),
    ],
)
def test_a_table_whose_rows_are_in_doubt_is_refused_with_the_line(text: str, column: int, message: str) -> None:
    with pytest.raises(MissingResult) as refused:
        numbers(text, column=column)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("iterations 2\n\n1 2.0\n2 3.0\n2 steps\n\n9 9.0", 2),  # a line after the table, then another table
        ("*** results 5 ***\n1 2.0 ok\n2 3.0 not converged\n-3\n", 2),
        ("node x\nA 2.0\nB 3.0\n total\n", 2),
    ],
)
def test_heads_and_lines_after_a_table_are_no_rows(text: str, column: int) -> None:
    assert numbers(text, after="2|results|node", match=1, column=column) == [2.0, 3.0]


def test_a_table_that_is_taken_from_several_says_from_which() -> None:
    text = "displacements\n1 2.0\ndisplacements\n1 3.0\n"
    section: SourceSection = {"text": "a.dat", "after": "displ", "column": 2}
    note = " after the last of 2 lines that match 'displ' (match: 1 takes the first)"
    assert table_position(section, {"a.dat": text}) == note
    assert table_position({**section, "match": 1}, {"a.dat": text}) == ""
    assert table_position(section, {"a.dat": text[:20]}) == ""


def test_a_trial_says_how_many_numbers_a_result_is_taken_from_and_a_run_does_not_take_that_for_progress(
    folder: Path,
) -> None:
    reports: list[tuple[float, str]] = []
    with evaluation_progress.listened_by(lambda share, text: reports.append((share, text))):
        outcome = CliRunner().invoke(main, ["validate", "study.yaml", "--try", "1", "--allow", "cantilever"])
    assert reports == []
    assert outcome.exit_code == 0, outcome.output
    assert (
        "\n      sag is the largest of 2 numbers after the last of 2 lines that match 'displacements'" in outcome.output
    )
