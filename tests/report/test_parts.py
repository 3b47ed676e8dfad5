"""What the generic parts show, compared with results whose numbers are known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from given_results import POINTS, at_most, beam_result, grid, maximize, minimize, six_designs

import designopt
from designopt.plugin import Use, find
from designopt.report.designs import missing
from designopt.report.labels import ONLY_DESIGN, hover_columns
from designopt.report.page.page import sections
from designopt.report.parts.answer.best import best
from designopt.report.parts.answer.limits import limits
from designopt.report.parts.answer.overview import overview
from designopt.report.parts.answer.problem import problem, scenario_table
from designopt.report.parts.answer.ranking import MOST, ranking
from designopt.report.parts.answer.recommendation import changes
from designopt.report.parts.designs.analysis import analysis
from designopt.report.parts.designs.convergence import convergence, hypervolume_history
from designopt.report.parts.designs.front import front, view
from designopt.report.parts.designs.map import map_figures
from designopt.report.parts.designs.parallel import parallel, wrapped
from designopt.report.section import Figure, Section, Table
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import DesignVariable, Scenario, Stage


def trace(section: object, name: str) -> dict[str, object]:
    return next(t for t in section.figures[0].plot["data"] if t["name"] == name)  # type: ignore[attr-defined,no-any-return]


def test_the_front_is_drawn_with_dominated_designs_and_the_compromise() -> None:
    section = front(six_designs())
    assert section is not None
    assert list(zip(*(trace(section, "Pareto front")[k] for k in "xy"), strict=True)) == POINTS[:4]  # type: ignore[arg-type]
    assert list(trace(section, "dominated")["x"]) == [5.0]  # type: ignore[call-overload]
    assert list(trace(section, "violates a limit")["x"]) == [9.5]  # type: ignore[call-overload]
    star = trace(section, "compromise (recommended)")
    # Scaled to its range, (2, 4) lies 0.452 from the ideal point and (4, 2) too by symmetry of the ranges.
    assert (star["x"], star["y"]) == ([2.0], [4.0])
    texts = [a["text"] for a in section.figures[0].plot["layout"]["annotations"]]
    assert sorted(texts) == ["best mass", "best sag", "compromise"]


def test_the_table_of_the_front_has_every_design_and_sets_off_the_chosen_ones() -> None:
    section = front(six_designs())
    assert section is not None
    table = section.tables[0]
    assert [row[-2:] for row in table.rows] == POINTS[:4]
    assert table.marked == {0, 1, 3}


def test_hover_tells_all_values_of_a_design() -> None:
    hover = trace(front(six_designs()), "Pareto front")
    template = str(hover["hovertemplate"])
    for word in ("design", "width [mm]", "height [m]", "mass [kg]", "sag [mm]"):
        assert word in template
    columns = hover_columns(six_designs(), np.array([0, 2]))
    assert [list(values) for _, values in columns[:5]] == [[0, 2], [11, 14], [0.8, 0.2], [1, 4], [8, 2]]


def test_a_maximised_objective_is_shown_with_its_own_sign() -> None:
    result = beam_result(
        [(10, 0), (20, 1)], {"mass": [1, 2], "cost": [5, 9]}, objectives=(minimize("mass"), maximize("cost"))
    )
    section = front(result)
    assert list(trace(section, "Pareto front")["y"]) == [5.0, 9.0]  # type: ignore[call-overload]
    assert "cost (maximize)" in str(section.figures[0].plot["layout"]["yaxis"]["title"])  # type: ignore[union-attr]


def test_three_objectives_are_drawn_in_pairs_and_in_space() -> None:
    section = front(grid(objectives=(minimize("mass"), minimize("sag"), minimize("cost"))))
    assert section is not None
    pairs, space = section.figures
    fronts = [t for t in pairs.plot["data"] if t["name"] == "Pareto front"]
    assert [(t["xaxis"], t["yaxis"]) for t in fronts] == [("x", "y"), ("x2", "y2"), ("x3", "y3")]
    assert {t["type"] for t in space.plot["data"]} == {"scatter3d"}


def test_one_objective_has_no_front() -> None:
    assert front(six_designs(objectives=(minimize("mass", "kg"),))) is None


def test_the_view_of_the_front_leaves_out_what_lies_far_beyond_it() -> None:
    assert view(np.array([0.0, 10.0]), np.array([0.0, 1000.0]), True) == [-1.0, 17.0]
    assert view(np.array([0.0, 10.0]), np.array([0.0, 12.0]), True) == [-1.0, 13.0]
    assert view(np.array([0.0, 10.0]), np.array([-1000.0]), False) == [-7.0, 11.0]
    assert view(np.array([3.0]), np.array([1.0, 5.0]), True) is None


def test_attained_bounds_and_active_limits_are_reported_in_words() -> None:
    X = [(10.0, 0.2), (10.0, 0.4), (10.0, 0.6), (50.0, 0.5)]
    result = beam_result(X, {"mass": [1, 2, 3, 4], "sag": [9.5, 8, 7, 6]}, constraints=(at_most("sag", 9.5, "mm"),))
    section = limits(result)
    assert section is not None
    assert section.findings == (
        "width is at its lower bound (10 mm) in 75 % of the front.",
        "The upper limit of sag (9.5 mm) is active in 25 % of the front.",
    )
    assert section.tables[0].rows == (("sag [mm]", 0, 0.0, 6.0, 9.5),)


def test_limits_are_counted_in_their_hardest_scenario_and_the_range_on_the_front_is_over_all_scenarios() -> None:
    X = [(20.0 + 10 * i, 0.5) for i in range(4)]
    between = replace(at_most("sag", 7.0, "mm"), minimum=0.75)
    figures = {"mass": [[1, 1], [2, 2], [3, 3], [1.5, 1.5]], "sag": [[1, 8], [6, 2], [0.5, 4], [1, 6.5]]}
    section = limits(beam_result(X, figures, constraints=(between,), scenarios=("a", "b")))
    assert section is not None
    (row,) = section.tables[0].rows
    assert row == ("sag [mm]", 2, 50.0, 1.0, 6.5)  # the front has the second and the last design


@pytest.mark.parametrize(("limit", "active"), [(0.02, 25), (0.0, 25)])
def test_one_design_far_outside_does_not_make_a_limit_look_active(limit: float, active: int) -> None:
    sag = limit - np.array([0.0001, 0.005, 0.012, 0.0199, -17.0])
    X = [(20.0 + 10 * i, 0.5) for i in range(5)]
    result = beam_result(X, {"mass": [1, 2, 3, 4, 0.5], "sag": sag}, constraints=(at_most("sag", limit, "mm"),))
    findings = [f for f in limits(result).findings if "limit of" in f]  # type: ignore[union-attr]
    assert findings == [f"The upper limit of sag ({limit:g} mm) is active in {active} % of the front."]


def test_the_name_of_a_stage_tells_what_auto_chose() -> None:
    auto = Stage("search", Use(find("solver", "auto"), {"evaluations": 60, "cost": None}))
    result = six_designs(stages=(Stage("sweep", Use(find("solver", "sobol"), {"samples": 4})), auto))
    assert [row[0] for row in problem(result).tables[2].rows] == ["sweep", "search (gp)"]
    names = ["sweep"] * 3 + ["search"] * 3
    searched = six_designs(stages=result.study.stages, stage=names)
    annotations = convergence(searched).figures[0].plot["layout"]["annotations"]  # type: ignore[union-attr]
    assert [a["text"] for a in annotations if a["text"].startswith("s")] == ["sweep", "search (gp)"]


def test_a_counted_figure_at_its_limit_is_not_reported_as_active() -> None:
    result = beam_result(
        [(30.0, 0.5), (40.0, 0.6)], {"mass": [1, 2], "sag": [2, 1]}, constraints=(at_most("sag", 2.0),)
    )
    assert limits(result).findings == ("No bound of the space and no limit is active on the front.",)  # type: ignore[union-attr]


def test_whole_numbers_reach_their_bounds_too() -> None:
    space = (DesignVariable("count", "int", low=1, high=5), DesignVariable("kind", "choice", values=("box", "tube")))
    result = beam_result([(5, 1), (5, 1), (3, 1)], {"mass": [1, 2, 3], "sag": [3, 2, 1]}, space=space)
    assert limits(result).findings == (  # type: ignore[union-attr]
        "count is at its upper bound (5) in 67 % of the front.",
        "kind is tube in every design of the front.",
    )


def test_a_front_inside_its_bounds_is_reported_as_such() -> None:
    result = beam_result([(30.0, 0.5), (40.0, 0.6)], {"mass": [1, 2], "sag": [2, 1]})
    assert limits(result).findings == ("No bound of the space and no limit is active on the front.",)  # type: ignore[union-attr]


def test_a_value_that_never_changed_has_one_tick() -> None:
    result = beam_result([(30.0, 0.5), (40.0, 0.6), (50.0, 0.7)], {"mass": [0.1, 0.1, 0.1], "sag": [3, 2, 1]})
    layout = convergence(result).figures[-1].plot["layout"]  # type: ignore[union-attr]
    assert layout["yaxis"]["ticktext"] == ["0.1"]
    assert "tickvals" not in layout["yaxis2"]


def test_the_rings_of_the_front_stand_in_the_legend_once() -> None:
    data = front(six_designs()).figures[0].plot["data"]  # type: ignore[union-attr]
    names = [t["name"] for t in data if t["showlegend"]]
    assert names == [
        "violates a limit",
        "dominated",
        "Pareto front",
        "best of an objective",
        "compromise (recommended)",
    ]


def test_hypervolume_rises_to_the_final_one_with_a_fixed_reference() -> None:
    result = six_designs()
    reference, places, volume = hypervolume_history(result)
    np.testing.assert_allclose(reference, [8 + 0.7, 8 + 0.7])
    np.testing.assert_array_equal(places, [1, 2, 3, 4, 5, 6])
    # Boxes of the first two designs: 7.7 * 0.7, and 6.7 * 4.7 of which 6.7 * 0.7 is known.
    final = 7.7 * 0.7 + 6.7 * 4.0 + 4.7 * 2.0 + 0.7 * 1.0
    np.testing.assert_allclose(volume[:2], np.array([7.7 * 0.7, 7.7 * 0.7 + 6.7 * 4.0]) / final)
    assert (np.diff(volume) >= 0).all()
    assert volume[-1] == 1.0


def test_convergence_shows_the_best_feasible_value_so_far() -> None:
    section = convergence(six_designs())
    assert section is not None
    sag = section.figures[-1].plot["data"][1]
    assert list(sag["x"]) == [1, 2, 3, 4, 6]
    assert list(sag["y"]) == [8.0, 4.0, 2.0, 1.0, 1.0]


def test_parallel_coordinates_hold_feasible_designs_only() -> None:
    section = parallel(six_designs())
    assert section is not None
    dimensions = section.figures[0].plot["data"][0]["dimensions"]
    assert [d["label"] for d in dimensions] == ["width [mm]", "height [m]", "mass [kg]", "sag [mm]", "on the front"]
    assert sorted(dimensions[2]["values"]) == [1, 2, 4, 5, 8]
    assert sum(dimensions[4]["values"]) == 4


def test_an_inactive_parameter_is_drawn_below_its_range_and_says_so() -> None:
    space = (
        DesignVariable("kind", "choice", values=("rod", "tube")),
        DesignVariable("wall", "real", low=1.0, high=9.0, unit="mm", when={"kind": ("tube",)}),
        DesignVariable("fill", "choice", values=("foam", "air"), when={"kind": ("tube",)}),
    )
    result = beam_result([(1, 2.0, 1), (0, 1.0, 0)], {"mass": [1, 2], "sag": [2, 1]}, space=space)
    section = parallel(result)
    assert section is not None
    _, wall, fill = section.figures[0].plot["data"][0]["dimensions"][:3]
    assert list(wall["values"]) == pytest.approx([2.0, -0.2])
    assert wall["range"] == pytest.approx([-0.2, 9.0])
    assert list(wall["ticktext"]) == ["inactive", "1", "3", "5", "7", "9"]
    assert list(fill["values"]) == pytest.approx([1.0, -0.15])
    assert list(fill["ticktext"]) == ["inactive", "foam", "air"]


def test_an_objective_over_decades_has_a_log_axis() -> None:
    result = beam_result([(10.0, 0.1), (20.0, 0.2), (30.0, 0.3)], {"mass": [1e-6, 1e-4, 1e-3], "sag": [9, 5, 4]})
    plane = front(result).figures[0].plot["layout"]  # type: ignore[union-attr]
    assert plane["xaxis"]["type"] == "log"
    assert plane["xaxis"]["range"] == pytest.approx([-6.3, -2.7])  # exponents, with a tenth of room
    assert "type" not in plane["yaxis"]
    assert {a["x"] for a in plane["annotations"]} <= {-6.0, -4.0, -3.0}
    best = convergence(result).figures[-1].plot["layout"]  # type: ignore[union-attr]
    assert "type" not in best["yaxis2"]
    mass = parallel(result).figures[0].plot["data"][0]["dimensions"][2]  # type: ignore[union-attr]
    assert sorted(mass["values"]) == pytest.approx([-6.0, -4.0, -3.0])
    assert "1e-06" in mass["ticktext"]


def test_the_best_value_so_far_is_drawn_on_a_log_axis_where_it_falls_over_decades() -> None:
    result = beam_result([(10.0, 0.1), (20.0, 0.2)], {"mass": [1.0, 1e-4]}, objectives=(minimize("mass", "kg"),))
    best = convergence(result).figures[-1].plot["layout"]  # type: ignore[union-attr]
    assert best["yaxis"]["type"] == "log"


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("mass [kg] (minimize)", "mass [kg]"),
        ("damping_ratio [s]", "damping_<br>ratio [s]"),
        ("a_very_long_name_of_a_thing [N/m]", "a_very_long_n…<br>[N/m]"),
        ("incomprehensibilities [m]", "incomprehensi…<br>[m]"),
    ],
)
def test_names_above_narrow_axes_are_wrapped(label: str, text: str) -> None:
    assert wrapped(label, 10) == text


def test_with_one_objective_there_is_no_word_of_a_front() -> None:
    X = [(10.0, 0.5), (20.0, 0.5)]
    options = {"objectives": (minimize("mass", "kg"),), "constraints": (at_most("sag", 9.5, "mm"),)}
    at_its_bound = beam_result(X, {"mass": [1, 2], "sag": [9.5, 8]}, **options)
    section = limits(at_its_bound)
    assert section is not None
    assert section.findings == (
        "width is at its lower bound (10 mm) in the best design.",
        "The upper limit of sag (9.5 mm) is active in the best design.",
    )
    texts = (section.introduction, *section.tables[0].columns, *best(at_its_bound).findings)
    assert "front" not in " ".join(texts)
    idle = "Inactive: the upper limit of sag (9.5 mm; the best design reaches 2)."
    for width, finding in (
        (10.05, "width is close to its lower bound (10 mm) in the best design."),
        (14.0, "No bound of the space and no limit is active in the best design."),
    ):
        beside = limits(beam_result([(width, 0.5), (20.0, 0.5)], {"mass": [1, 2], "sag": [2, 8]}, **options))
        assert beside is not None
        assert beside.findings == (finding, idle)


def test_scenarios_of_many_conditions_have_a_column_each() -> None:
    for conditions, columns, rows in ((8, 9, 2), (9, 3, 9)):
        values = {f"factor_{i}": float(i) for i in range(conditions)}
        table = scenario_table(six_designs(), "Worst", [Scenario("a", values), Scenario("b", values)])
        assert (len(table.columns), len(table.rows)) == (columns, rows)
        assert table.columns[0] == "scenario"
    assert table.columns == ("scenario", "a", "b")
    assert table.rows[8] == ("factor_8", "8", "8")


def test_names_of_stages_that_begin_near_each_other_are_one_label() -> None:
    stages = tuple(Stage(name, Use(find("solver", "sobol"), {"samples": 4})) for name in ("baseline", "search"))
    X = [(10.0 + i, 0.5) for i in range(60)]
    names = ["baseline"] * 2 + ["search"] * 58
    result = beam_result(X, {"mass": range(60), "sag": range(60, 0, -1)}, stages=stages, stage=names)
    texts = [a["text"] for a in convergence(result).figures[0].plot["layout"]["annotations"]]  # type: ignore[union-attr]
    assert "baseline, search" in texts
    assert "search" not in texts


def test_a_note_of_several_parts_stands_once_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [(name, lambda result, name=name: Section(name, notes=("not for use", name))) for name in "abc"]
    monkeypatch.setattr("designopt.report.page.page._parts", lambda result: parts)
    assert [section.notes for section in sections(six_designs())] == [("not for use", "a"), ("b",), ("c",)]


def test_an_answer_without_a_front_has_a_figure_of_the_subject_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = (Figure("All angles", {"data": []}, height=900), Figure("Knee", {"data": []}, note="Zoom in."))
    parts = [("overview", overview), ("map", map_figures), ("walk", lambda result: Section("Walk", figures=figures))]
    monkeypatch.setattr("designopt.report.page.page._parts", lambda result: parts)
    X, one = [(10.0, 0.5), (20.0, 0.5)], (minimize("mass", "kg"),)
    answer = sections(beam_result(X, {"mass": [1, 2], "sag": [2, 1]}, objectives=one))[0]
    assert [(figure.title, figure.note) for figure in answer.figures] == [("Walk: Knee", "")]
    assert [figure.title for figure in sections(six_designs())[0].figures] == ["The front, with the chosen designs"]


def test_a_chosen_design_has_one_symbol_beside_the_answer_and_in_the_part_of_the_front() -> None:
    result = six_designs()
    beside, part = sections(result)[0].figures[0], front(result)
    assert part is not None
    in_part = part.figures[0]
    symbols = {}
    for trace, rows in in_part.designs.items():
        if len(rows) == 1 and "chosen" in in_part.plot["data"][trace].get("legendgroup", ""):
            symbols[int(rows[0])] = in_part.plot["data"][trace]["marker"]["symbol"]
    chosen = {k: rows.tolist() for k, rows in beside.designs.items() if k > 0}
    assert {row: beside.plot["data"][k]["marker"]["symbol"] for k, rows in chosen.items() for row in rows} == symbols
    assert "star" in symbols.values()


def test_parts_without_arrays_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [("a", lambda result: missing("Walk", "time", "skeleton")), ("b", lambda result: Section("Front"))]
    parts.append(("c", lambda result: missing("Force", "time", "force")))
    monkeypatch.setattr("designopt.report.page.page._parts", lambda result: parts)
    joined, last = sections(six_designs())
    assert joined.introduction.startswith("The store contains no arrays for these parts: Walk and Force. Run the study")
    assert "designopt show STORE/DESIGN --evaluate --arrays FILE.npz" in joined.introduction
    assert "{arrays: {time: all, skeleton: all, force: all}}" in joined.introduction
    assert last.title == "Front"


def test_an_analysis_of_few_designs_has_a_row_for_each_figure_with_a_value() -> None:
    figures = {f"f{i}": [float(i)] if i else [np.nan] for i in range(14)}
    section = analysis(beam_result([(10.0, 0.5)], figures, objectives=()))
    assert section is not None
    (table,) = section.tables
    assert table.columns == ("", "value")
    assert table.folded_from == 10
    names = ["width [mm]", "height [m]", "status", *(f"f{i}" for i in range(1, 14))]
    assert [row[0] for row in table.rows] == names
    section = analysis(beam_result([(10.0, 0.5)], figures, objectives=(), scenarios=("calm", "storm")))
    assert section is not None
    assert section.tables[0].columns == ("", "calm", "storm")
    assert [row[0] for row in section.tables[0].rows] == names


def test_equal_values_of_many_designs_have_no_spread() -> None:
    equal, rising = [0.1] * 3, [0.1 + k for k in range(3)]
    assert 0.0 < np.std(equal) < 1e-15  # round-off
    designs = [(10.0 + k, 0.5) for k in range(3)]
    section = analysis(beam_result(designs, {"equal": equal, "rising": rising}, objectives=()))
    assert section is not None
    assert [table.folded_from for table in section.tables] == [10, 10]
    deviations = {row[0]: row[5] for row in section.tables[1].rows}
    assert deviations == {"equal": 0.0, "rising": pytest.approx(np.std(rising))}


def test_named_designs_that_are_the_chosen_ones_have_one_table(tmp_path: Path) -> None:
    designs = [{"name": f"d{x}", "x": x} for x in (1.0, 2.0, 3.0)]
    common = {"study": "s", "model": double, "execution": {"executor": "serial"}}
    common |= {"objectives": [{"minimize": "twice"}], "report": {"tolerances": {"neighbours": 0}}}
    for count, title in ((1, None), (3, "Analysis")):
        solver = {"use": "evaluate", "designs": designs[:count]}
        section = analysis(designopt.define(**common, solver=solver).run(tmp_path / f"{count}.study"))
        assert (section and section.title) == title


def double(x: float) -> dict[str, float]:
    return {"twice": 2.0 * x}


def test_tables_of_the_only_design_do_not_name_it_in_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table("Frames", ("design", "frames"), ((ONLY_DESIGN, 3), (ONLY_DESIGN, 4)))
    parts = [("frames", lambda result: Section("Frames", tables=(table, replace(table, rows=(("a", 3),)))))]
    monkeypatch.setattr("designopt.report.page.page._parts", lambda result: parts)
    alone, named = sections(six_designs())[0].tables
    assert (alone.columns, alone.rows) == (("frames",), ((3,), (4,)))
    assert named.columns == ("design", "frames")


def test_a_counted_limit_is_met_by_nature_and_does_not_decide() -> None:
    counted = (at_most("count", 0.0), at_most("sag", 10.0, "mm"))
    figures = {"mass": [1, 2], "sag": [2, 1], "count": [0, 0]}
    (change,) = changes(beam_result([(30.0, 0.5), (40.0, 0.6)], figures, constraints=counted))
    assert change == "The nearest limit is sag (2 ≤ 10 mm), with a margin of 80 %."
    measured = {"mass": [1, 2], "sag": [10, 9.5], "count": [0, 0]}
    (change,) = changes(beam_result([(30.0, 0.5), (40.0, 0.6)], measured, constraints=counted))
    assert change == "Another value of the limit sag (10 ≤ 10 mm) would change the answer."


def test_a_single_design_has_no_progress_and_no_map() -> None:
    result = beam_result([(10.0, 0.5)], {"mass": [1], "sag": [2]})
    assert convergence(result) is None
    assert map_figures(result) is None


def test_the_best_designs_stand_side_by_side() -> None:
    section = best(six_designs())
    table = section.tables[0]
    assert table.columns == ("", "best mass", "best sag", "compromise", "meaning")
    assert ("mass [kg] (minimize)", 1.0, 8.0, 2.0, "mass of the beam") in table.rows
    assert section.findings == ("Compromise: width 12 mm and height 0.4 m give mass 2 kg and sag 4 mm.",)


def test_objectives_and_limits_have_their_expression_and_what_it_means() -> None:
    goal = replace(minimize("index"), expression=Expression.parse("1 - mass"))
    limit = replace(at_most("bends", 3.0, "mm"), expression=Expression.parse("sag"))
    result = beam_result([(10.0, 0.5)], {"mass": [1], "sag": [2]}, objectives=(goal,), constraints=(limit,))
    meanings = {row[0].partition(" ")[0]: row[-1] for row in best(result).tables[0].rows}
    assert (meanings["index"], meanings["bends"]) == ("1 - mass; mass: mass of the beam", "sag: deflection at the end")


def test_the_overview_asks_the_question_and_counts() -> None:
    section = overview(six_designs())
    assert "Which width and height of beam minimize mass and sag" in section.introduction
    facts = dict(section.facts)
    assert (facts["distinct designs"], facts["feasible designs"], facts["on the Pareto front"]) == ("6", "5", "4")
    assert facts["computing time"] == "1.5 s"
    assert section.findings == (
        "The recommended design is the compromise: width 12 mm and height 0.4 m give mass 2 kg and sag 4 mm.",
        "The nearest limit is mass (2 ≤ 9 kg), with a margin of 78 %.",
    )
    values, limits, short = section.tables
    assert values.rows[:2] == (("width", 12.0, "mm"), ("height", 0.4, "m"))
    assert limits.rows == (("mass", 2.0, "≤ 9", "kg", "78 %"),)
    meanings, reproduce = section.notes
    assert meanings == "mass: mass of the beam; sag: deflection at the end."
    assert reproduce.startswith("To reproduce: the study with seed ")
    (figure,) = section.figures
    assert [row[0] for row in short.rows] == ["best mass", "best sag", "compromise (recommended)"]
    assert short.rows[2][1:3] == (2.0, 4.0)
    assert len(figure.designs[0]) == 4  # the front


def test_a_few_designs_are_ranked_with_the_best_and_the_worst_of_each_objective() -> None:
    section = ranking(
        beam_result([(10.0, 0.2), (20.0, 0.4), (30.0, 0.6)], {"mass": [2, 1, 3], "sag": [1e-9, 2.0, 1e-3]})
    )
    assert section is not None
    assert section.findings == (
        "mass: 1 kg with width 20 mm, height 0.4 m is the best, 3 kg with width 30 mm, height 0.6 m the worst.",
        "sag: 1e-9 mm with width 10 mm, height 0.2 m is the best, 2 mm with width 20 mm, height 0.4 m the worst.",
    )
    assert [row[1] for row in section.tables[0].rows] == [1.0, 2.0, 3.0]
    assert section.tables[0].designs == (1, 0, 2)
    mass, sag = section.figures[0].plot["data"]
    assert mass["x"].tolist() == [1.0, 2.0, 3.0]
    assert (mass["type"], sag["type"]) == ("bar", "scatter")  # a bar has no length on an axis over decades


def test_a_maximised_objective_is_best_at_its_largest_value() -> None:
    result = beam_result(
        [(10.0, 0.2), (20.0, 0.4)], {"mass": [2, 1], "sag": [1, 2]}, objectives=(maximize("mass", "kg"),)
    )
    section = ranking(result)
    assert section is not None
    assert section.findings == (
        "mass: 2 kg with width 10 mm, height 0.2 m is the best, 1 kg with width 20 mm, height 0.4 m the worst.",
    )


def test_one_design_is_not_ranked_and_of_many_the_baseline_stays() -> None:
    assert ranking(beam_result([(10.0, 0.2)], {"mass": [2], "sag": [1]})) is None
    many = np.linspace(10, 100, MOST + 5)
    result = beam_result([(w, 0.5) for w in many], {"mass": many, "sag": many})
    worst = replace(result, table={**result.table})
    object.__setattr__(worst, "baseline", {"today": MOST + 4})
    section = ranking(worst)
    assert section is not None
    assert "60 of 65 designs in the order of mass" in section.introduction
    assert "The others do not fit here" in section.introduction
    assert len(section.tables[0].rows) == MOST
    assert section.tables[0].designs[-1] == MOST + 4


def test_a_parameter_that_every_stage_sweeps_is_not_called_at_its_bound() -> None:
    mass, sag = np.array(POINTS).T
    result = beam_result(np.column_stack([np.full(6, 10.0), sag / 10]), {"mass": mass, "sag": sag})
    searched = limits(result)
    assert searched is not None
    assert any(finding.startswith("width is at its lower bound (10 mm)") for finding in searched.findings)
    solver = Use(find("solver", "collocation"), {"sweep": {"width": 5}})
    swept = limits(replace(result, study=replace(result.study, stages=(Stage("sweep", solver),))))
    assert swept is not None
    assert not any("width" in finding for finding in swept.findings)
    alone = beam_result([(10.0, 0.5), (20.0, 0.5)], {"mass": [1, 2]}, objectives=(minimize("mass", "kg"),),
                        stages=(Stage("sweep", solver),))  # fmt: skip
    best_of_sweep = limits(alone)
    assert best_of_sweep is not None
    assert best_of_sweep.findings == ("width of the recommended design is at its lower bound (10 mm).",)


def test_the_values_of_a_choice_have_symbols_on_the_front() -> None:
    steel = DesignVariable("material", "choice", values=("steel", "aluminium"))
    width = DesignVariable("width", "real", 10.0, 100.0)
    result = beam_result([(10.0, 0), (20.0, 1), (30.0, 0)], {"mass": [1, 2, 3], "sag": [3, 2, 1]}, space=(width, steel))
    traces = front(result).figures[0].plot["data"]
    assert next(t for t in traces if t.get("name") == "Pareto front")["marker"]["symbol"] == [
        "circle",
        "square",
        "circle",
    ]
    assert [t["name"] for t in traces[-2:]] == ["material steel", "material aluminium"]
    with pytest.raises(ValueError, match="'width' is no parameter with up to 8 values"):
        front(result, symbol="width")
