"""One quantity has one unit on a whole page; limits have their names; arrays over time are drawn."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Annotated, NotRequired, TypedDict

import numpy as np
import pytest

import designopt
from designopt import Array, Quantity
from designopt.report import one_design, summary_table
from designopt.report.labels import displayed_figures
from designopt.report.page.page import sections
from designopt.report.parts.motion.frames import over_time
from designopt.space import Space
from designopt.store.views.table import stated_constraints, stated_units
from designopt.study.study import DesignVariable


class Bar(TypedDict):
    """What a bar gives."""

    mass: Annotated[float, Quantity("kg", "of the bar")]
    stress: Annotated[float, Quantity("Pa", "in the bar")]
    sag: Annotated[float, Quantity("m", "of its end")]


ARRAYS = {
    "time": Array(("time",), "s"),
    "force": Array(("time",), "N", "that pulls"),
    "share": Array(("time",), "%", "of the load"),
    "state": Array(("time",), "", categories=("rest", "motion")),
}


@designopt.model("unit_bar", version=1, arrays=ARRAYS)
def bar(design, scenario, arrays) -> tuple[Bar, dict]:
    """A bar under a load."""
    load, side = scenario.get("load", 1e4), design["side"]
    time = np.linspace(0.0, 1.0, 5)
    series = {"time": time, "force": load * time, "state": np.arange(5) % 2, "share": 100 * time}
    return {"mass": 7850 * side**2, "stress": load / side**2, "sag": load * 1e-12 / side**2}, series


def study(*loads, arrays=("time", "force", "state", "share")):
    return designopt.define(
        study="bar", model={"use": bar}, space={"side": [0.01, 0.02]},
        scenarios=[{"name": f"load_{n}", "load": load} for n, load in enumerate(loads)],
        objectives=[{"name": "mass", "minimize": "mass"}, {"name": "load", "minimize": "stress", "unit": "MPa"}],
        constraints=[
            {"name": "stiff", "of": "sag", "max": "0.15 mm"},
            {"name": "used", "of": "stress", "min": "20 MPa", "max": "90 MPa"},
        ],
        solver={"use": "full_factorial", "levels": 9},
        execution={"executor": "serial", "arrays": list(arrays)},
    )  # fmt: skip


@pytest.fixture(scope="module")
def one_scenario(tmp_path_factory):
    return study(1e4).run(tmp_path_factory.mktemp("one") / "s")


@pytest.fixture(scope="module")
def two_scenarios(tmp_path_factory):
    return study(1e4, 5e3).run(tmp_path_factory.mktemp("two") / "s")


def texts(result):
    """All words of the page's tables, and the titles of what it draws."""
    for section in sections(result):
        for table in section.tables:
            yield from map(str, table.columns)
            yield from (str(cell) for row in table.rows for cell in row)
        for figure in section.figures:
            yield str(figure.plot.get("layout", {}))
            for choice in figure.choices:
                yield from choice.options


@pytest.mark.parametrize("which", ["one_scenario", "two_scenarios"])
def test_values_stated_in_mpa_are_never_shown_in_pa(which, request):
    result = request.getfixturevalue(which)
    page = "\n".join(texts(result))
    assert "MPa" in page
    assert "[Pa]" not in page
    assert "between 20 and 90" in page or "20 ≤ stress ≤ 90" in page
    unit, values = displayed_figures(result)["stress"]
    assert unit == "MPa"
    np.testing.assert_allclose(values, 1e-6 * result.outcomes.figures["stress"])
    assert [row[k] for row in one_design.output_rows(result, 0) for k in (0, -1) if row[0] == "stress"] == [
        "stress",
        "MPa",
    ]


class Mount(TypedDict):
    stiffness: Annotated[float, Quantity("N/m", "of the spring", gt=0)]
    tilt: NotRequired[Annotated[float, Quantity("rad", "of the mount")]]
    oil: Annotated[float, Quantity("K", "temperature of the oil")]
    plate: Annotated[float, Quantity("m", "thickness")]


class Response(TypedDict):
    travel: Annotated[float, Quantity("m", "of the mount")]


@designopt.model("unit_mount", version=1)
def mount(design: Mount, scenario) -> Response:
    """A spring."""
    return {
        "travel": 3e3 / design["stiffness"]
        + design.get("tilt", 0.0) ** 2
        + abs(design["oil"] - 300.0) * design["plate"]
    }


STATED = {
    "stiffness": {"low": "2 kN/m", "high": "200 kN/m", "tolerance": 100.0},
    "tilt": {"low": 0, "high": "12.3 deg", "when": {"plate": ["5 mm", "7 mm"]}},
    "oil": ["10 degC", "80 degC"],
    "plate": {"values": ["5 mm", "6 mm", "7 mm"]},
}


@pytest.fixture(scope="module")
def spring(tmp_path_factory):
    definition = designopt.define(
        study="mount", model={"use": mount}, space=STATED, relations=["stiffness >= 50000"],
        objectives=[{"name": "travel", "minimize": "travel", "unit": "mm"}],
        solver={"use": "sobol", "samples": 16}, execution={"executor": "serial"},
    )  # fmt: skip
    return definition.run(tmp_path_factory.mktemp("mount") / "s")


def test_parameters_are_presented_in_the_units_of_their_ranges_and_stored_in_those_of_the_model(spring, tmp_path):
    assert [p.unit for p in spring.problem.space.parameters] == ["N/m", "rad", "K", "m"]
    stated = spring.in_stated_units
    row = spring.chosen()["best travel"]
    before, after = (r.problem.space.values(r.outcomes.X[row].tolist()) for r in (spring, stated))
    np.testing.assert_allclose(after["stiffness"], 1e-3 * before["stiffness"], rtol=1e-14)
    np.testing.assert_allclose(after["oil"], before["oil"] - 273.15, rtol=1e-12)
    assert after["plate"] == 1e3 * before["plate"]
    np.testing.assert_allclose(stated.problem.space.design(stated.outcomes.X[row].tolist())["oil"], before["oil"])
    tilted = stated.problem.space.active(stated.outcomes.X)
    np.testing.assert_array_equal(tilted, spring.problem.space.active(spring.outcomes.X))
    broken = stated.problem.space.relation_violation(stated.outcomes.X) > 0.0
    np.testing.assert_array_equal(broken, spring.problem.space.relation_violation(spring.outcomes.X) > 0.0)
    assert 0 < broken.sum() < len(broken)
    assert stated.keys() == spring.keys() == spring.problem.keys(spring.outcomes.X)
    page, rows = "\n".join(texts(spring)), one_design.parameter_rows(spring, row)
    heading = designopt.export(spring, tmp_path, ["csv"])[0].read_text().partition("\n")[0]
    for text in (page, summary_table(spring), str(spring), "\n".join(map(" ".join, rows)), heading):
        assert all(unit in text for unit in ("kN/m", "degC", "mm"))
        assert not re.search(r"(?<!k)N/m|\brad\b|\bK\b", text)
    assert "2 … 200" in page
    assert "\n0.1\nkN/m" in page  # the tolerance, stated in N/m


def test_a_stated_unit_of_bare_numbers_is_that_of_the_results(tmp_path):
    space = {"stiffness": {"low": "2 kN/m", "high": 200e3, "unit": "N/m"}, "oil": [283, "353 K"], "plate": "5 mm"}
    definition = designopt.define(study="m", model={"use": mount}, space=space, solver={"use": "sobol", "samples": 2})
    assert [p.stated for p in definition.problem.space.parameters] == ["", "", "mm"]


def chosen(result):
    section = next(s for s in sections(result) if s.title == "Best designs")
    return {row[0]: row[1:] for row in section.tables[0].rows}


def test_chosen_designs_show_their_limits_by_name_with_one_scenario_and_with_several(one_scenario, two_scenarios):
    rows = chosen(one_scenario)
    assert [name for name in rows if name.startswith(("stiff", "used"))] == [
        "stiff [mm] (≤ 0.15)",
        "used [MPa] (≥ 20, ≤ 90)",
    ]
    side = rows["side"][0]
    assert rows["stiff [mm] (≤ 0.15)"][0] == pytest.approx(1e-5 / side**2)
    rows = chosen(two_scenarios)
    assert rows["stiff [mm] (≤ 0.15)"][0] == pytest.approx(1e-5 / rows["side"][0] ** 2)  # in the worse scenario
    low, high = (float(v) for v in rows["used [MPa] (≥ 20, ≤ 90)"][0].split(" to "))
    assert high == pytest.approx(2.0 * low, rel=1e-3)


def test_arrays_over_time_that_are_kept_are_drawn_on_a_page_without_plots(one_scenario, two_scenarios):
    section = over_time(one_scenario)
    assert [figure.title for figure in section.figures] == ["force"]  # no state, no time in %
    assert [section.title for section in sections(one_scenario, ["frames"])] == ["Motions"]
    assert [choice.label for choice in over_time(two_scenarios).figures[0].choices] == ["Design", "Scenario"]


def test_without_arrays_over_time_nothing_is_drawn(tmp_path):
    result = study(1e4, arrays=()).run(tmp_path / "s")
    assert over_time(result) is None


def test_a_limit_is_shown_in_the_unit_of_its_number_and_its_figure_with_it(one_scenario):
    assert one_scenario.problem.constraints[0].maximum == 0.15 / 1e3  # what is compared stays as it was
    assert displayed_figures(one_scenario)["sag"][0] == "mm"
    assert [one_design.rating_rows(one_scenario, 0)[3][k] for k in (0, 2, 3)] == ["stiff", "mm", "<= 0.15"]


def test_a_multiple_of_a_figure_does_not_scale_the_figure():
    twice = designopt.define(
        study="twice", model={"use": bar}, space={"side": [0.01, 0.02]},
        objectives=[{"name": "twice", "minimize": "2*sag"}],
        constraints=[{"name": "both", "of": "sag + sag", "max": "0.3 mm"}],
        solver={"use": "full_factorial", "levels": 2},
    )  # fmt: skip
    assert stated_units(twice.problem) == {}
    (constraint,) = stated_constraints(twice.problem)
    assert (constraint.unit, constraint.maximum) == ("mm", pytest.approx(0.3))
    assert constraint.expression.evaluate({"sag": 1e-4}) == pytest.approx(0.2)


def test_the_unit_1_is_no_unit():
    assert Quantity("1") == Quantity("")
    plain_study = designopt.define(
        study="plain", model={"use": bar}, space={"side": [1, 2]},
        objectives=[{"name": "ratio", "minimize": "sag/sag", "unit": "1"}],
        solver={"use": "full_factorial", "levels": 2},
    )  # fmt: skip
    assert plain_study.definition.objectives[0].unit == ""


def test_derivatives_are_shown_in_the_units_of_their_quantity_and_of_the_parameter(one_scenario):
    side = DesignVariable("side", "real", 10.0, 20.0, unit="mm", factor=1e-3)
    problem, stress = replace(one_scenario.problem, space=Space((side,))), one_scenario.outcomes.figures["stress"]
    figures = {"stress": stress, "d(stress)/d(side)": np.full_like(stress, 2e9)}  # Pa/m
    table = displayed_figures(SimpleNamespace(problem=problem, outcomes=SimpleNamespace(figures=figures)))
    assert table["d(stress)/d(side)"][0] == "MPa/mm"
    np.testing.assert_allclose(table["d(stress)/d(side)"][1], 2.0, rtol=1e-12)
