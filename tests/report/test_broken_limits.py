"""Where no design keeps all limits, terminal and page name those that stand in the way, the worst first."""

from dataclasses import replace

from given_results import GivenResult, at_most, beam_result, grid

from designopt.report import summary_table
from designopt.report.parts.answer.limits import limits
from designopt.report.parts.answer.overview import overview
from designopt.study.study import StudyConstraint

X = [(10.0 + i, 0.5) for i in range(4)]
FIGURES = {"mass": [1.0, 2.0, 3.0, 4.0], "sag": [8.0, 6.0, 4.0, 2.0], "cost": [7.0, 7.5, 9.0, 8.0]}


def at_least(name: str, limit: float, unit: str = "") -> StudyConstraint:
    return replace(at_most(name, limit, unit), maximum=None, minimum=limit)


def limited(*constraints: StudyConstraint, **more: object) -> GivenResult:
    return beam_result(X, FIGURES, constraints=constraints, **more)  # type: ignore[arg-type]


def test_a_limit_that_every_design_breaks_is_reported_with_the_best_value_and_its_unit() -> None:
    result = limited(at_most("sag", 1.5, "mm"), at_most("mass", 3.0, "kg"), at_least("cost", 6.0))
    assert summary_table(result).splitlines() == [
        "No design satisfies all limits, so there is no design to choose.",
        "limit         violated by  best value  design",
        "sag ≤ 1.5 mm       4 of 4        2 mm       3",
        "mass ≤ 3 kg        1 of 4        1 kg       0",
        "Design 3 violates the limits least: width 13 mm, height 0.5 m.",
    ]
    assert overview(result).findings == (
        "No feasible design was found.",
        "Every design violates sag ≤ 1.5 mm: the best has 2 mm (design 3).",
        "Design 3 violates the limits least: width 13 mm, height 0.5 m.",
    )
    section = limits(result)
    assert section is not None
    assert section.tables[0].rows == (
        ("sag ≤ 1.5 mm", 4, "100.0 %", "2 mm", 3),
        ("mass ≤ 3 kg", 1, "25.0 %", "1 kg", 0),
    )


def test_of_limits_that_every_design_breaks_the_one_that_is_farther_away_stands_first() -> None:
    result = limited(at_most("cost", 6.9), at_most("mass", 0.1, "kg"))
    assert [line.split()[0] for line in summary_table(result).splitlines()[2:4]] == ["mass", "cost"]


def test_two_limits_that_no_design_keeps_together_are_named() -> None:
    result = limited(at_most("mass", 2.0, "kg"), at_most("sag", 4.0, "mm"))
    sentence = "No evaluated design satisfies both mass ≤ 2 kg and sag ≤ 4 mm."
    nearest = "Design 1 violates the limits least: width 11 mm, height 0.5 m."
    assert summary_table(result).splitlines()[-2:] == [sentence, nearest]
    assert overview(result).findings[-2:] == (sentence, nearest)
    assert limits(result).findings == (sentence, nearest)  # type: ignore[union-attr]


def test_where_each_pair_is_kept_by_a_design_the_limit_that_most_break_is_named() -> None:
    result = limited(at_most("mass", 3.0, "kg"), at_most("sag", 4.0, "mm"), at_most("cost", 8.0))
    assert overview(result).findings[-2] == "2 of 4 designs violate sag ≤ 4 mm, more than any other limit."
    assert "both" not in summary_table(result)


def test_of_designs_that_all_violate_the_limits_the_nearest_one_is_named() -> None:
    assert limited(at_least("mass", 9.0, "kg")).least_violating() == 3
    assert limited(at_most("mass", 0.5, "kg")).least_violating() == 0
    assert limited(at_most("sag", 9.0, "mm")).least_violating() is None


def test_designs_without_a_result_neither_keep_nor_break_a_limit() -> None:
    result = limited(at_most("sag", 1.5, "mm"), status=["ok", "ok", "ok", "diverged"])
    assert summary_table(result).splitlines()[2].split() == ["sag", "≤", "1.5", "mm", "3", "of", "3", "4", "mm", "2"]


def test_an_equality_that_no_design_meets_is_reported_too() -> None:
    equal = replace(at_most("mass", 2.5, "kg"), maximum=None, equals=2.5)
    assert "mass = 2.5 kg" in summary_table(limited(equal))


def test_a_design_that_keeps_all_limits_leaves_nothing_to_explain() -> None:
    assert "violated by" not in summary_table(limited(at_most("sag", 3.0, "mm")))
    assert all("break" not in sentence for sentence in overview(grid()).findings)


def test_where_most_designs_break_limits_the_terminal_names_the_one_that_most_break() -> None:
    result = limited(at_most("sag", 3.0, "mm"), at_least("cost", 7.2))
    assert summary_table(result).splitlines()[-1] == (
        "note: 3 of 4 designs with a result violate limits: 3 violate sag ≤ 3 mm, more than any other limit"
    )
    lost = limited(at_most("sag", 3.0, "mm"), status=["ok", "diverged", "ok", "ok"])
    assert "note: 2 of 3 designs with a result violate limits: 2 violate sag ≤ 3 mm" in summary_table(lost)
    half = limited(at_most("sag", 5.0, "mm"), at_least("cost", 7.2))
    assert "violate" not in summary_table(half)


def test_an_analysis_tells_of_its_limits_below_its_figures() -> None:
    result = limited(at_most("sag", 1.5, "mm"), objectives=())
    assert summary_table(result).splitlines()[-1].startswith("sag ≤ 1.5 mm")
