"""The recommended design on the page for a decision: tolerances, baseline, margins, what would change the answer."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

import pytest
from command import designopt

from designopt import Quantity, define, open_store
from designopt.plugin import model, report_part
from designopt.report import Figure, Section, one_design, summary_table, write_report
from designopt.report.labels import marked_designs, number, parameter_text
from designopt.report.page.beside_answer import figures_beside_answer
from designopt.report.page.page import sections
from designopt.report.parts.answer import recommendation
from designopt.report.parts.answer.best import best
from designopt.report.parts.answer.limits import limits
from designopt.report.parts.answer.overview import overview
from designopt.report.parts.answer.tolerances import robust_baseline
from designopt.store.result import Result


def plate(t: Annotated[float, Quantity("mm")], width):
    return {"mass": 8.0 * t * width, "sag": 1e3 / (width * t**3)}


class Spring(TypedDict):
    stiffness: Annotated[float, Quantity("N/mm", "of the spring")]


class SpringOutputs(TypedDict):
    deviation: Annotated[float, Quantity("mm", "less the wanted length")]
    force: Annotated[float, Quantity("N", "largest force")]


@model("meaningful_spring", version=1)
def meaningful_spring(design: Spring, scenario: Mapping[str, Any]) -> SpringOutputs:
    """A spring under a load."""
    stretch = scenario.get("load", 1.0) / design["stiffness"]
    return {"deviation": stretch - 1.5, "force": design["stiffness"]}


def study(**changes):
    sections = {
        "study": "plate",
        "model": plate,
        "space": {
            "t": {"low": 2, "high": 8, "unit": "mm", "tolerance": "0.2 mm"},
            "width": {"low": 50, "high": 90, "tolerance": "1 %"},
        },
        "objectives": [{"minimize": "mass"}],
        "constraints": [{"name": "stiff", "of": "sag", "max": 1.0}],
        "baseline": {"name": "present", "t": 5.0, "width": 80.0},
        "solver": {"use": "full_factorial", "levels": 13},
        "execution": {"executor": "serial"},
        **changes,
    }
    return define(**sections)


def test_values_stand_with_tolerances_beside_the_baseline_and_limits_with_their_margins(tmp_path: Path) -> None:
    result = study().run(tmp_path / "s")
    values, limits = recommendation.tables(result)
    assert values.columns[:4] == ("", result.recommended()[0], "±", "unit")
    assert values.columns[4] == "present (baseline)"
    rows = {row[0]: row for row in values.rows}
    assert (rows["t"][2], rows["t"][3], rows["t"][4]) == ("0.2", "mm", 5.0)
    assert rows["width"][2] == "1 %"
    mass = rows["mass (minimize)"]
    assert mass[4] == f"3200 (−{1.0 - mass[1] / 3200.0:.0%})".replace("%", " %")
    (limit,) = limits.rows
    assert (limit[0], limit[2]) == ("stiff", "≤ 1")
    assert 0.0 < limit[1] <= 1.0
    assert limits.columns == ("limit", "value", "limit value", "margin")  # the limit has no unit
    assert limit[3] == f"{1.0 - limit[1]:.0%}".replace("%", " %")
    (change,) = recommendation.changes(result)
    assert "stiff" in change
    assert recommendation.reproduce(result).startswith("To reproduce: the study with seed 0 and designopt ")


def test_the_budget_of_a_resumed_run_is_part_of_what_reproduces_it(tmp_path: Path) -> None:
    search = study(solver={"use": "genetic", "population": 10}, budget={"evaluations": 20})
    first = "To reproduce: the study with seed 0, --budget"
    assert recommendation.reproduce(search.run(tmp_path / "s")).startswith(f"{first} 20 and designopt ")
    search.run(tmp_path / "s", resume=True, budget=30)
    result = Result.open(tmp_path / "s", search.definition)
    assert recommendation.reproduce(result).startswith(f"{first} 30 and designopt ")


def test_a_single_design_has_all_digits_of_its_parameters(tmp_path: Path) -> None:
    result = study().run(tmp_path / "s")
    row = result.recommended()[1]
    values = {name: float(value) for name, value, unit, note in one_design.parameter_rows(result, row)[1:]}
    assert values == result.in_stated_units.problem.space.values(result.in_stated_units.outcomes.X[row].tolist())


def test_designs_of_a_figure_are_points_of_the_store_and_need_a_figure(tmp_path: Path) -> None:
    study().run(tmp_path / "s")
    alone = designopt(tmp_path, "report", "s", "--designs", "recommended")
    assert (alone.returncode, "--designs is for figures: --figure FILE" in alone.stderr) == (2, True)
    unknown = designopt(tmp_path, "report", "s", "--figure", "best.svg", "--designs", "best mass,sturdy")
    assert (unknown.returncode, "s has no design 'sturdy'" in unknown.stderr) == (2, True)


def test_parameters_have_the_digits_that_their_tolerances_leave(tmp_path: Path) -> None:
    """A rounding of a tenth of the tolerance counts for nothing; whole numbers are not rounded."""
    space = {"t": {"low": 3.14159, "high": 8, "tolerance": "0.01 %"}, "width": {"low": 71.2345, "high": 90.0}}
    space["width"]["tolerance"] = "10 %"
    result = study(space=space, constraints=[]).run(tmp_path / "s")
    assert parameter_text(result, "width", 71.2345) == "71"
    assert parameter_text(result, "width", 1.0128) == "1.01"
    assert parameter_text(result, "width", 15382.0) == "15382"
    assert parameter_text(result, "t", 3.14159) == "3.142"
    assert "best mass (recommended)   3.142     71  " in summary_table(result)
    values, *_ = recommendation.tables(result)
    chosen = best(result).tables[0]
    for table in (values, chosen):
        names = [row[0].removesuffix(" [mm]") for row in table.rows]
        assert dict(zip(names, table.row_digits, strict=False)) == {"t": 4, "width": 2}
    page = write_report(result, tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<td class="n">71</td>' in page
    assert "71.2345" in page  # in the CSV


def test_a_sturdy_baseline_is_not_recommended_in_place_of_a_lighter_design(tmp_path: Path) -> None:
    """The search ends at the limit, where half of the neighbours lie beyond; all of the baseline's are within."""
    result = study(constraints=[{"name": "stiff", "of": "sag", "max": 0.745}]).run(tmp_path / "s")
    near, best = result.tolerated(), result.chosen()["best mass"]
    assert near.share[near.index_of(best)] < 0.9
    assert near.share[near.index_of(result.baseline["present"])] == 1.0
    assert result.recommended() == ("best mass", best)
    text = summary_table(result)
    assert "note: 'report: {choose: [robust]}' looks for a design whose neighbours satisfy the limits" in text
    assert "no design of the search" not in text
    clause = "the limits hold in 16 of 16 neighbours of present: a baseline is compared, not recommended"
    assert f"note: {clause}" in text
    assert f"T{clause[1:]}." in overview(result).findings
    assert robust_baseline(study().run(tmp_path / "t")) == []


def test_few_validation_scenarios_within_the_limits_are_named_with_the_answer(tmp_path: Path) -> None:
    def loaded(design: Mapping[str, float], scenario: Mapping[str, float]) -> Mapping[str, float]:
        load = scenario.get("load", 1.0)
        return {"mass": design["t"], "sag": load / design["t"], "heat": load - 1.0}

    limits = [{"name": "cool", "of": "heat", "max": 1.0}, {"name": "stiff", "of": "sag", "max": 0.5}]
    result = study(
        model=loaded, space={"t": [1, 4]}, baseline={"name": "present", "t": 3.0}, constraints=limits,
        report={"validate": {"scenarios": [{"name": f"load_{x}", "load": x} for x in (0.5, 1.0, 1.5, 2.5)]}},
    ).run(tmp_path / "s")  # fmt: skip
    (best,) = (result.validation().rows == result.recommended()[1]).nonzero()[0]
    assert {name: share[best] for name, share in result.validation().violated.items()} == {"cool": 0.25, "stiff": 0.5}
    head, row, *_ = [line for line in summary_table(result).splitlines() if not line.startswith("note")]
    assert (head.split("  ")[-1], row.split("  ")[-1].strip()) == ("validation feasible", "50 %")
    clause = "best mass satisfies all limits in only 50 % of 4 validation scenarios; stiff is violated in 50 %"
    assert f"note: {clause}" in summary_table(result)
    assert f"{clause[0].upper()}{clause[1:]}." in overview(result).findings


class Thickness(TypedDict):
    t: Annotated[float, Quantity("mm", "of the beam", gt=0)]


class Beam(TypedDict):
    mass: Annotated[float, Quantity("kg", "of the beam")]
    slope: Annotated[float, Quantity("rad", "small below 1", usual=(0.0, 1.0))]
    cracks: Annotated[float, Quantity("", "the beam is not to be used", notable=True)]


@model("leaning", version=1)
def leaning(design: Thickness, scenario: Mapping[str, Any]) -> Beam:
    """Light beams lean."""
    return {"mass": design["t"], "slope": 3.0 / design["t"], "cracks": float(design["t"] < 3.0)}


def test_an_unusual_output_of_the_recommended_design_and_a_search_without_gain_are_named(tmp_path: Path) -> None:
    common = {"model": leaning, "space": {"t": {"low": 2, "high": 8, "unit": "mm"}}, "constraints": []}
    common |= {"baseline": {"name": "present", "t": 2.0}, "solver": {"use": "full_factorial", "levels": 3}}
    result = study(**common).run(tmp_path / "found")
    assert (
        "warning: the recommended design has slope 85.94 deg, beyond 0 to 57.3 deg (small below 1); a limit of it"
        " leaves 2 feasible designs" in summary_table(result)
    )
    assert "no design of the search" not in summary_table(result)  # it has the same one
    assert "The recommended design has cracks 1: the beam is not to be used." in overview(result).findings
    common |= {"solver": {"use": "random", "samples": 3}, "baseline": {"name": "present", "t": 2.01}}
    findings = overview(study(**common).run(tmp_path / "lost")).findings
    assert any(text.startswith("No design of the search is better than 'present' of the base") for text in findings)


@pytest.mark.parametrize(("tolerance", "single"), [("4 mm", True), ("0.01 mm", False)])
def test_a_front_within_its_tolerances_is_a_single_answer(tmp_path: Path, tolerance: str, single: bool) -> None:
    space = {"t": {"low": 4.0, "high": 4.4, "unit": "mm", "tolerance": tolerance}, "width": 60.0}
    objectives = [{"minimize": "mass"}, {"minimize": "sag"}]
    thickness_study = study(space=space, objectives=objectives, constraints=[], baseline={"name": "present", "t": 4.2})
    section = overview(thickness_study.run(tmp_path / "s"))
    assert any("the front is a single answer" in text for text in section.findings) == single


def test_without_a_feasible_design_there_is_no_recommendation(tmp_path: Path) -> None:
    result = study(constraints=[{"name": "stiff", "of": "sag", "max": 1e-9}]).run(tmp_path / "s")
    assert recommendation.tables(result) == ()
    assert recommendation.changes(result) == []
    assert "designopt show" not in recommendation.reproduce(result)
    assert designopt(tmp_path, "report", "s").returncode == 0
    assert len(open_store(tmp_path / "s").outcomes) > 100


def test_an_equality_is_among_the_limits_of_the_recommended_design(tmp_path: Path) -> None:
    limits = [{"name": "balanced", "of": "0 * mass", "equals": 0}, {"name": "stiff", "of": "sag", "max": 1e9}]
    _, table = recommendation.tables(study(constraints=limits).run(tmp_path / "s"))
    assert [row[0] for row in table.rows] == ["stiff", "balanced"]
    assert table.rows[1][1:3] == (0.0, "= 0")


class Place(TypedDict, total=False):
    load: Annotated[float, Quantity("N", default=1.0)]


class Sag(TypedDict):
    sag: Annotated[float, Quantity("mm", "at the end")]


@model("loaded_place", version=1)
def loaded_place(design: Mapping[str, float], scenario: Place) -> Sag:
    """A deflection that only the scenario decides."""
    return {"sag": 2.0 * float(scenario.get("load", 1.0))}


def test_without_a_free_parameter_the_answer_is_the_result_in_each_scenario(tmp_path: Path) -> None:
    result = define(
        study="places",
        model=loaded_place,
        scenarios=[{"name": "calm", "load": 1.0}, {"name": "storm", "load": 3.0}],
        objectives=[{"name": "bend", "minimize": "sag", "unit": "mm"}],
        solver={"use": "evaluate"},
        execution={"executor": "serial"},
    ).run(tmp_path / "s")
    assert overview(result).findings == ("The result is bend 6 mm, the worst of 2 scenarios.",)
    (table,) = recommendation.tables(result)
    assert (table.title, table.columns) == ("Result in each scenario", ("", "calm", "storm", "unit"))
    assert table.rows == (("bend (minimize)", 2.0, 6.0, "mm"),)
    assert limits(result) is None


def test_a_design_of_several_rules_has_the_recommended_name_beside_the_answer() -> None:
    chosen = {"best mass": 3, "best bend": 5, "compromise": 3}
    result: Any = SimpleNamespace(chosen=lambda: chosen, recommended=lambda: ("compromise", 3))
    data = [
        {"type": "scatter", "name": "best mass, compromise: t 3 mm"},
        {"type": "scatter", "name": "best bend: t 5 mm"},
    ]
    axes = {"xaxis": {"title": {"text": "time [s]"}}, "yaxis": {"title": {"text": "deflection of the free end [mm]"}}}
    part = Section("Response", figures=(Figure("Output", {"data": data, "layout": axes}),))
    (figure,) = figures_beside_answer(result, [part], motion=False)
    assert [trace["name"] for trace in figure.plot["data"]] == ["compromise", "best bend"]
    assert [trace.get("zorder", 0) for trace in figure.plot["data"]] == [1, 0]  # drawn over the others
    titles = [figure.plot["layout"][name]["title"]["text"] for name in ("xaxis", "yaxis")]
    assert titles == ["time [s]", "deflection of the<br>free end [mm]"]


def test_the_figure_beside_the_answer_has_short_names_and_its_upper_panel_alone(tmp_path: Path) -> None:
    @report_part("two_panels", version=1)
    def two_panels(result: Any) -> Section:
        """A response above its command."""
        curve = {"type": "scatter", "x": [0, 1], "y": [0, 1]}
        data = [{**curve, "name": "best mass: t 3 mm"}, {**curve, "name": "command: 1", "yaxis": "y2"}]
        axes = {"xaxis": {"anchor": "y2"}, "yaxis": {"domain": [0.4, 1.0]}, "yaxis2": {"domain": [0.0, 0.3]}}
        return Section("Response", figures=(Figure("Output", {"data": data, "layout": axes}),))

    solver = {"use": "full_factorial", "levels": 3}  # the ranking of so few designs fits beside the answer, too
    result = study(report={"plots": ["ranking", two_panels]}, solver=solver).run(tmp_path / "s")
    answer = sections(result)[0]
    (figure,) = answer.figures
    upper, lower = figure.plot["data"]
    assert (upper["name"], upper.get("visible", True), lower["visible"]) == ("best mass", True, False)
    assert figure.plot["layout"]["yaxis"]["domain"] == [0.0, 1.0]
    (below,) = next(section for section in sections(result) if section.title == "Response").figures
    assert below.plot["data"][0]["name"] == "best mass: t 3 mm"


def test_a_part_that_stands_beside_answers_shows_the_recommended_design_beside_the_front(tmp_path: Path) -> None:
    def named(label: str) -> dict[str, Any]:
        return {"type": "scatter", "x": [0, 1], "y": [0, 1], "name": f"{label}: t 3 mm"}

    @report_part("plain_curve", version=1)
    def plain_curve(result: Any) -> Section:
        """A curve of no design."""
        return Section("Others", figures=(Figure("Curve", {"data": [named("others")], "layout": {}}),))

    @report_part("response_beside", version=1, beside_answer=True)
    def response_beside(result: Any) -> Section:
        """A curve of each chosen design, and a measured one."""
        labels = [*marked_designs(result), "measured"]
        return Section("Response", figures=(Figure("All", {"data": [*map(named, labels)], "layout": {}}),))

    objectives = [{"minimize": "mass"}, {"minimize": "sag"}]
    parts = {"plots": [plain_curve, response_beside]}
    result = study(objectives=objectives, report=parts).run(tmp_path / "two")
    front, beside = sections(result)[0].figures
    assert front.title.startswith("The front")
    assert beside.title == "Response"
    visible_names = [trace["name"] for trace in beside.plot["data"] if trace.get("visible", True)]
    assert visible_names == [f"{result.recommended()[0]} (recommended)", "measured"]
    assert len(beside.plot["data"]) == 1 + len(marked_designs(result)) > 3
    (first,) = sections(study(report=parts).run(tmp_path / "one"))[0].figures  # not the first part of the page
    assert first.title == "Response: All"


def test_what_parameters_and_objectives_mean_stands_with_the_recommended_design(tmp_path: Path) -> None:
    """The outputs of a computed objective have their values, so that a size shows its sign."""
    changes: dict[str, Any] = {
        "model": meaningful_spring,
        "space": {"stiffness": {"low": 1.0, "high": 3.0}},
        "objectives": [{"name": "error", "minimize": "abs(deviation)", "unit": "mm"}, {"minimize": "force"}],
        "constraints": [],
        "baseline": {"name": "present", "stiffness": 2.0},
        "solver": {"use": "full_factorial", "levels": 3},
        "scenarios": [{"name": "all", "load": 1.0}],
    }
    result = study(**changes).run(tmp_path / "one")
    (text,) = recommendation.meanings(result)
    row = result.recommended()[1]
    deviation = float(result.outcomes.figures["deviation"][row, 0])
    assert text == (
        f"stiffness: of the spring; error: abs(deviation), with deviation {number(deviation)} mm (less the wanted"
        " length); force: largest force."
    )
    assert overview(result).notes[0] == text
    changes["scenarios"] = [{"name": "all", "load": 1.0}, {"name": "half", "load": 0.5}]
    changes["space"] = {"stiffness": {"low": 2.0, "high": 3.0}}
    result = study(**changes).run(tmp_path / "two")
    ends = sorted(result.outcomes.figures["deviation"][result.recommended()[1]])
    (text,) = recommendation.meanings(result)
    assert f"deviation {number(ends[0])} to {number(ends[1])} mm" in text


def test_more_meanings_than_a_sheet_has_room_for_are_left_to_the_table_of_the_best_designs(tmp_path: Path) -> None:
    result = study(
        model=meaningful_spring,
        space={"stiffness": [1.0, 3.0]},
        objectives=[{"name": f"force_{i}", "minimize": f"{i} * force"} for i in range(1, 8)],
        constraints=[],
        baseline={"name": "present", "stiffness": 2.0},
        solver={"use": "full_factorial", "levels": 3},
    ).run(tmp_path / "s")
    assert len(recommendation.meanings(result)) == 1
    assert len(result.problem.objectives) + 1 == recommendation.MEANINGS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recommendation, "MEANINGS", 7)
        assert recommendation.meanings(result) == ()
