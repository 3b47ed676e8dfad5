"""Stores side by side: what is common, in common units, with one reference; and what differs, in words."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from given_results import WORST, GivenResult, at_most, beam_result, grid, maximize, minimize
from page_data import figures_of, rows

from designopt.plugin import InputFile, Use, find, report_part
from designopt.report import Figure, Section
from designopt.report.comparison.differences import differences, file_difference
from designopt.report.comparison.page import write_comparison
from designopt.report.notebook import plot
from designopt.report.traces import selected
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import DesignVariable, Objective, Scenario, Stage


def store(name: str, values: Any, **more: Any) -> GivenResult:
    mass, sag = np.array(values, dtype=float).T
    X = np.column_stack([20 + np.arange(len(mass)), np.linspace(0.1, 0.9, len(mass))])
    return replace(beam_result(X, {"mass": mass, "sag": sag, "cost": mass}, **more), path=Path(name))


FIRST = store("runs/first.study", [(1, 3), (3, 1)])
SECOND = store("runs/second.study", [(1, 1), (2, 4)])


def compared(*stores: GivenResult, path: Path) -> str:
    return write_comparison(stores, path / "comparison.html").read_text(encoding="utf-8")


def test_fronts_lie_over_each_other_and_the_hypervolumes_have_one_reference(tmp_path: Path) -> None:
    page = compared(FIRST, SECOND, path=tmp_path)
    front, course = figures_of(page)
    assert [t["name"] for t in front["plot"]["data"]] == ["first", "second"]
    assert [t["name"] for t in course["plot"]["data"]] == ["first", "second"]
    # Fronts (1, 3), (3, 1) and (1, 1): the worst is 3, the range 2, so the reference is (3.2, 3.2).
    assert "Reference point: mass 3.2 kg, sag 3.2 mm" in page
    first, second = rows(page, "Hypervolume with one reference")
    assert first == ["first", "0.84", "17.4 %", "0 %"]  # 2.2 * 0.2 + 0.2 * 2.0 = 0.84
    assert second == ["second", "4.84", "100.0 %", "100 %"]  # 2.2 * 2.2
    assert "second has the largest hypervolume, 82.6 % more than first." in page


def with_response(one: GivenResult, level: float, **choices: tuple[str, ...]) -> GivenResult:
    """A store whose page has a part of its subject, a response with a selector."""

    @report_part("response", version=1)
    def response(result: Any) -> Section:
        """Two loads, one of them moving."""
        curve = {"type": "scatter", "x": [0.0, 1.0], "name": "deflection"}
        draw: Any = lambda *options: [{**curve, "y": [0.0, level + sum(options)]}]  # noqa: E731
        moving = Figure("Motion", {"data": [], "layout": {}, "frames": [{"data": []}]})
        return Section("Response", figures=(selected("Over time", choices, draw, {}), moving))

    return replace(one, study=replace(one.study, plots=(Use(cast(Any, response).__designopt__, {}),)))


def test_figures_of_the_subject_lie_over_each_other_with_their_common_selectors(tmp_path: Path) -> None:
    stores = [
        with_response(FIRST, 1.0, Design=("a", "b"), Load=("calm", "storm")),
        with_response(SECOND, 5.0, Design=("c", "d"), Load=("calm", "storm")),
    ]
    page = compared(*stores, path=tmp_path)
    figure = figures_of(page)[-1]
    assert "<h2>Response</h2>" in page
    assert "Motion" not in page
    level = {key: variant["data"][0]["y"][1] for key, variant in figure["variants"].items()}
    assert level == {"0,0": 1.0, "0,1": 2.0, "1,0": 5.0, "1,1": 6.0}
    assert '<option value="1" selected>second</option>' in page  # the second store is dotted over the first
    assert "<h2>Response</h2>" not in compared(stores[0], SECOND, path=tmp_path)


def test_stores_without_objectives_are_compared_by_their_figures(tmp_path: Path) -> None:
    first, second = (store(f"{name}.study", [(1, 1)], objectives=()) for name in ("before", "after"))
    page = compared(with_response(first, 1.0), with_response(second, 2.0), path=tmp_path)
    assert "<h2>Response</h2>" in page
    assert "on the front" not in page
    assert "Chosen designs" not in page


def test_values_in_another_unit_are_converted(tmp_path: Path) -> None:
    second = store("other.study", [(1000, 1), (2000, 4)], objectives=(minimize("mass", "g"), minimize("sag", "mm")))
    page = compared(FIRST, second, path=tmp_path)
    assert "mass of other is converted from g to kg." in page
    assert rows(page, "Hypervolume with one reference")[1][1] == "4.84"


def test_stores_that_cannot_be_compared_are_refused_in_a_sentence(tmp_path: Path) -> None:
    for second, words in (
        (store("o", [(1, 1)], objectives=(minimize("cost"),)), "no objective in common .*first: mass, sag; o: cost"),
        (store("o", [(1, 1)], objectives=(maximize("mass", "kg"),)), "minimised in one store and maximised"),
        (store("o", [(1, 1)], objectives=(minimize("mass", "m"),)), "mass is in kg in the first store and m in o"),
    ):
        with pytest.raises(ValueError, match=words):
            write_comparison([FIRST, second], tmp_path / "c.html")
    with pytest.raises(ValueError, match="at least two stores"):
        write_comparison([FIRST], tmp_path / "c.html")
    assert not list(tmp_path.iterdir())


def test_quantities_of_a_single_store_are_omitted_and_named(tmp_path: Path) -> None:
    three = store("three.study", [(1, 1), (2, 4)], objectives=(minimize("cost"), minimize("mass", "kg")))
    page = compared(FIRST, three, path=tmp_path)
    assert "Not compared, because not all stores have them: cost and sag." in page
    table = page[page.index("<h3>Side by side</h3>") :]
    head = table[table.index("<thead>") : table.index("</thead>")]
    assert "mass [kg] (minimize)" in head
    assert "cost" not in head


def test_chosen_designs_counts_and_failures_stand_side_by_side(tmp_path: Path) -> None:
    page = compared(replace(grid(), path=Path("grid.study")), FIRST, SECOND, path=tmp_path)
    assert [r[0] for r in rows(page, "What was done")] == ["grid", "first", "second"]
    assert rows(page, "What was done")[0][3:7] == ["55", "55", "52", "3"]
    assert [r[:2] for r in rows(page, "Side by side")][-1][0] == "second"


def test_stores_of_one_name_are_distinguished(tmp_path: Path) -> None:
    a, b = replace(FIRST, path=Path("monday/x.study")), replace(SECOND, path=Path("tuesday/x.study"))
    assert [r[0] for r in rows(compared(a, b, path=tmp_path), "What was done")] == ["monday/x", "tuesday/x"]


@pytest.mark.parametrize("empty", [0, 1])
def test_a_store_without_a_feasible_design_is_compared_too(empty: int, tmp_path: Path) -> None:
    none = store("none.study", [(1, 1)], constraints=(at_most("mass", 0.5, "kg"),))
    pair = [FIRST, none] if empty else [none, FIRST]
    page = compared(*pair, path=tmp_path)
    assert ["none", "0", "0.0 %", "–"] in rows(page, "Hypervolume with one reference")
    alone = compared(none, replace(none, path=Path("n2.study")), path=tmp_path)
    assert "No store has a design within its limits." in alone


def test_one_common_objective_is_compared_by_its_best(tmp_path: Path) -> None:
    one = (minimize("mass", "kg"),)
    a, b = store("a", [(3, 0), (2, 0)], objectives=one), store("b", [(5, 0), (1, 0)], objectives=one)
    page = compared(a, b, path=tmp_path)
    assert [f["name"].split("-")[0] for f in figures_of(page)] == ["best"]
    assert rows(page, "Best value of each store") == [["a", "2", "100 %"], ["b", "1", "0"]]
    assert "b has the best mass, 1." in page
    assert "a is worse by 100 %." in page
    assert "The stores answer different questions" not in page
    limited = store("limited", [(5, 0), (1, 0)], objectives=one, constraints=(at_most("mass", 4.0, "kg"),))
    assert "The stores answer different questions" in compared(a, limited, path=tmp_path)
    assert [row[-3] for row in rows(compared(a, limited, path=tmp_path), "Side by side")] == ["met", "met"]
    alike = compared(a, replace(a, path=Path("c.study")), path=tmp_path)
    assert "a and c have the same best mass to within a millionth." in alike


def test_a_store_without_a_feasible_design_has_no_best_value(tmp_path: Path) -> None:
    one = (minimize("mass", "kg"),)
    none = store("none", [(1, 1)], objectives=one, constraints=(at_most("mass", 0.5, "kg"),))
    page = compared(store("a", [(2, 0)], objectives=one), none, path=tmp_path)
    assert rows(page, "Best value of each store")[1] == ["none", "–", "–"]


def test_differences_of_the_studies_are_described_in_words() -> None:
    a = FIRST.study
    b = replace(
        a,
        seed=4,
        space=(replace(a.space[0], high=80.0), DesignVariable("n", "int", low=1, high=3)),
        relations=(Expression.parse("width <= 60"),),
        scenarios=(Scenario("nominal", {"wind": 3.0}), Scenario("gale")),
        objectives=(replace(a.objectives[0], over=Use(find("aggregation", "mean"))), a.objectives[1]),
        constraints=(at_most("cost", 9.0),),
        stages=(Stage("sweep", use_solver("random", samples=50)), Stage("late", use_solver("random", samples=9))),
    )
    first = replace(a, stages=(Stage("sweep", use_solver("random", samples=20)),))
    assert differences(first, b) == [
        "width 10 … 80 mm on a log scale instead of 10 … 100 mm on a log scale",
        "parameter n (1 … 3) added",
        "parameter height left out",
        "scenario gale added",
        "wind 3 instead of none in scenario nominal",
        "objective mass is minimize mass in kg, over scenarios: mean instead of "
        "minimize mass in kg, over scenarios: worst",
        "limit cost (cost ≤ 9, over scenarios: worst) added",
        "stage sweep: solver with samples 50 instead of 20",
        "stage late (random) added",
        "seed 4 instead of 0",
        "with the relation width <= 60",
    ]
    assert differences(a, a) == []
    heavy = replace(a, objectives=(replace(a.objectives[0], over=Use(find("aggregation", "mean"))), *a.objectives[1:]))
    assert differences(a, heavy) == []  # of one scenario
    assert differences(a, replace(a, constraints=(at_most("cost", 9.0),))) == ["limit cost (cost ≤ 9) added"]


def test_a_changed_file_is_named_with_the_first_line_that_differs() -> None:
    old = Use(
        find("solver", "random"),
        {"samples": 2, "decks": [InputFile("a.inp", b"x"), InputFile("b.inp", b"1\n-500 N\n")]},
    )
    new = Use(old.plugin, {"samples": 2, "decks": [InputFile("a.inp", b"x"), InputFile("b.inp", b"1\n-800 N\n")]})
    a, b = (replace(FIRST.study, stages=(Stage("sweep", use),)) for use in (old, new))
    assert differences(a, b) == [
        "stage sweep: solver with another content of b.inp (line 2: '-800 N' instead of '-500 N')"
    ]
    assert file_difference(InputFile("c.bin", b"\xff"), InputFile("c.bin", b"\xfe")) == "c.bin"


def use_solver(name: str, **settings: Any) -> Use:
    return Use(find("solver", name), settings)


def test_user_text_is_escaped_in_a_comparison(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    odd = Objective("mass", Expression.parse("mass"), "minimize", WORST, "kg")
    a = store(f"{evil}.study", [(1, 3), (3, 1)], objectives=(odd, minimize("sag", "mm")))
    page = compared(a, SECOND, path=tmp_path)
    assert "<img" not in page


def test_a_notebook_gets_the_figures_of_the_parts() -> None:
    front = plot(grid())
    assert [t.name for t in front.data][:2] == ["dominated", "Pareto front"]
    assert front.data[1].marker.color == "#0072b2"
    assert plot(grid(), dark=True).data[1].marker.color == "#56b4e9"
    heat = plot(grid(), "map").data[0]
    assert np.nanmax(np.asarray(heat.z)) == pytest.approx(200.0)
    assert len(plot(grid(), "convergence", 1).data) == 2
    with pytest.raises(ValueError, match="has 2 figures here, numbered from 0; there is no 5"):
        plot(grid(), "convergence", 5)
    with pytest.raises(ValueError, match="has no figure"):
        plot(grid(), "influence")


def test_the_plot_of_a_selector_shows_its_first_choice() -> None:
    figure = plot(grid(scenarios=("calm", "storm")), "scenarios")
    assert np.asarray(figure.data[0].z).shape[1] == 2
    assert figure.layout.title.text == "Chosen designs in each scenario"
