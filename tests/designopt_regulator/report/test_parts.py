"""The report parts of controller studies: what they draw, what they say instead of drawing, and in which words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from designopt_regulator.linear_loop.model import LinearLoop
from designopt_regulator.linear_loop.plant_setting import LinearPlant
from designopt_regulator.report.loops import loop_sensitivity
from designopt_regulator.report.responses import DRAWN, step_responses
from designopt_regulator.vehicle.model import TrackedVehicle
from valid_figures import check_with_plotly

import designopt
from designopt.report.page.page import part_names
from designopt.report.parts.answer.overview import overview
from designopt.report.section import Figure, Section
from designopt.store.result import Result
from designopt.study.remarks import remarks

TURF = {"name": "turf_2", "terrain": "turf", "speed": 2}
SNOW = {"name": "snow_road_5", "terrain": "snow_road", "speed": 5}

#: Design A of the specification (section 9.6) with the gain left to choose.
COURSE = {
    "study": "course",
    "model": {"use": "tracked_carrier_10t", "disturbance": {"moment": "6 kN m", "at": "4 s"}, "horizon": "8 s"},
    "scenarios": [TURF, SNOW],
    "space": {"kp": [0.5, 1.5], "ti": "8 s", "td": "0.6 s", "tf": "0.1 s", "b": 1, "tt": "3 s"},
    "objectives": [{"name": "iae", "minimize": "iae"}, {"name": "tv", "minimize": "tv"}],
    "constraints": [{"name": "robust", "of": "ms", "max": 3}],
    "solver": {"use": "full_factorial", "levels": 2},
    "execution": {"arrays": ["time", "course", "course_command", "course_reference"]},
}

#: SIMC settings of e^-s / (8 s + 1) and half the gain.
LINEAR = {
    "study": "linear",
    "model": {"use": "linear_loop", "plant": {"type": "fopdt", "time_constant": "8 s", "delay": "1 s"}},
    "space": {"kp": [2.0, 4.0], "ti": "8 s"},
    "objectives": [{"name": "iae", "minimize": "iae_setpoint"}, {"name": "ms", "minimize": "ms"}],
    "solver": {"use": "full_factorial", "levels": 2},
    "execution": {"arrays": ["time", "output", "command"]},
}


@designopt.objective("largest_command", version=1)
def largest_command(command) -> Annotated[float, designopt.Quantity("")]:
    return float(np.abs(command).max())


def run(folder: Path, study: dict[str, Any], **changes: Any) -> Result:
    return designopt.define(**{**study, **changes}).run(folder / "store.study")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return run(tmp_path_factory.mktemp("course"), COURSE)


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return run(tmp_path_factory.mktemp("linear"), LINEAR)


def figure(section: Section | None, title: str) -> Figure:
    assert section is not None
    return next(f for f in section.figures if f.title == title)


def line(section: Section | None, design: str, *more: str) -> tuple[Any, ...]:
    """The row of the table that tells of a design, by the beginning of its label, and a scenario, and a loop."""
    assert section is not None
    return next(r for r in section.tables[0].rows if r[0].startswith(design) and r[1 : 1 + len(more)] == more)


def trace(plot: Any, name: str) -> dict[str, Any]:
    return next(t for t in plot["data"] if t["name"].startswith(name))


def trace_of(chart: Figure, option: int, k: int) -> dict[str, Any]:
    """Trace `k` of a figure when the reader has selected an option."""
    return {**chart.plot["data"][k], **chart.variants[(option,)]["data"].get(str(k), {})}


def test_an_inner_loop_of_the_yaw_rate_is_in_the_curves(tmp_path: Path) -> None:
    """The peak of the drawn sensitivity is the model's own ms, with and without the inner loop."""
    inner = {"rate_gain": "1.5 s", "max_rate": "0.3 rad/s"}
    peaks = []
    for name, more in (("plain", {}), ("inner", inner)):
        result = run(tmp_path / name, COURSE, space={**COURSE["space"], **more}, constraints=[])
        section = loop_sensitivity(result)
        assert section is not None
        label, scenario, *_ = section.tables[0].rows[0]
        row = result.chosen()[label.split(", ")[0]]
        expected = result.outcomes.figures["ms"][row, 0]
        assert line(section, label, scenario)[4] == pytest.approx(expected, rel=1e-9)
        curve = trace(figure(section, "Sensitivities of the course loop").plot, label)
        worst = result.outcomes.figures["ms"][row].max()
        assert curve["y"].max() == pytest.approx(worst, rel=2e-3)  # 400 points; the plot opens on the worst scenario
        peaks.append(expected)
    assert abs(peaks[0] - peaks[1]) > 0.01


def test_a_free_derivative_and_a_set_point_that_no_figure_judges_are_reported(tmp_path: Path) -> None:
    """Specification, section 5, rule 5."""
    space = {"kp": [2.0, 3.0], "ti": "8 s", "td": ["0.1 s", "0.3 s"], "tf": "0.1 s"}

    def is_reported(folder: str, **changes: Any) -> bool:
        result = run(tmp_path / folder, LINEAR, **{"space": space, **changes})
        sentence = "o objective or limit holds back what the controller makes of noise, while td may vary"
        on_page, in_terminal = overview(result).findings, remarks(result.study)
        assert any(sentence in f for f in on_page) == any(sentence in f for f in in_terminal)
        return any(sentence in f for f in on_page)

    sampled = LinearLoop(plant=LinearPlant(type="fopdt", time_constant=8.0), sample_time=0.1, horizon=40.0)
    assert is_reported("free")
    assert not is_reported("limited", constraints=[{"name": "calm", "of": "tv", "max": 50}])
    assert not is_reported("fixed", space={**space, "td": "0.2 s"})
    assert not is_reported("figure", figures={"calm": {"use": "largest_command"}}, objectives=[{"minimize": "calm"}])
    assert TrackedVehicle().study_remarks(["td"], ["iae"])
    assert sampled.study_remarks(["kp"], ["iae_setpoint"])[0].startswith("no objective or limit requires the output")
    assert not sampled.study_remarks(["kp"], ["iae_setpoint", "residual_error"])
    assert not LinearLoop(plant=sampled.plant).study_remarks(
        ["kp"], ["iae_setpoint"]
    )  # an error that stays is infinite
    assert not TrackedVehicle().study_remarks(["td"], ["iae", "noise_command"])


PARTS = (step_responses, loop_sensitivity)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("study", ["course", "linear"])
def test_every_figure_is_valid_plotly(part: Any, study: str, request: pytest.FixtureRequest) -> None:
    section = part(request.getfixturevalue(study))
    assert section.figures
    for chart in section.figures:
        check_with_plotly(chart.plot)
        traces = {str(k) for k in range(len(chart.plot["data"]))}
        assert all(set(v["data"]) <= traces for v in chart.variants.values())


def test_the_course_of_each_design_is_drawn_in_degrees_over_its_command(course: Result) -> None:
    chart = figure(step_responses(course), "Chosen designs: course")
    arrays = course.arrays(course.chosen()["best iae"], 0)
    value, command = (t for t in chart.plot["data"] if t["name"].startswith("best iae"))
    np.testing.assert_allclose(value["y"], np.degrees(arrays["course"]))
    np.testing.assert_array_equal(command["y"], arrays["course_command"])
    assert (command["yaxis"], command["line"]["shape"]) == ("y2", "hv")
    assert value["line"]["color"] == command["line"]["color"]
    reference = trace(chart.plot, "reference")
    assert np.unique(reference["y"]).tolist() == pytest.approx([0.0, 20.0])
    axes, notes = chart.plot["layout"], chart.plot["layout"]["annotations"]
    assert {a["text"]: a["x"] for a in notes} == {"step": 1.0, "disturbance": 4.0}
    assert {a["y"] for a in notes} == {axes["yaxis2"]["domain"][1]}  # between the panels, where no line crosses them
    assert axes["yaxis"]["domain"][0] > axes["yaxis2"]["domain"][1] + 0.05


def test_the_reader_selects_a_scenario_or_a_design(course: Result) -> None:
    section = step_responses(course)
    by_scenario = figure(section, "Chosen designs: course")
    assert by_scenario.choices[0].options == ("turf_2", "snow_road_5")
    row = next(iter(course.chosen().values()))
    np.testing.assert_allclose(trace_of(by_scenario, 1, 1)["y"], np.degrees(course.arrays(row, 1)["course"]))
    by_design = figure(section, "One design in all scenarios: course")
    assert [t["name"] for t in by_design.plot["data"][1::2]] == ["turf_2", "snow_road_5"]
    assert len(by_design.choices[0].options) == len(set(course.chosen().values())) == 2


def test_a_page_made_again_has_the_responses_that_the_model_proposes_of_neighbours_too(tmp_path: Path) -> None:
    space = {"kp": {"low": 2.0, "high": 4.0, "tolerance": "20 %"}, "ti": "8 s"}
    result = run(tmp_path, LINEAR, space=space, robust=1, execution={})
    reopened = Result.open(result.path)
    assert "step_responses" in part_names(result)
    assert part_names(reopened) == part_names(result)
    section = step_responses(reopened)
    assert section is not None
    chart = section.figures[0]
    _, neighbour = reopened.problem.scenarios
    row = reopened.chosen()["best iae"]
    (x,) = reopened.problem.space.shifted(reopened.outcomes.X[[row]], neighbour.shift).tolist()
    model, design = LinearLoop(**reopened.problem.model.settings), reopened.problem.space.design(x)
    expected = model.evaluate(design, {}, {"output"})[1]
    assert any(np.array_equal(trace_of(chart, k, 1)["y"], expected["output"]) for k in range(2))


def test_without_arrays_it_says_how_to_keep_them(tmp_path: Path) -> None:
    section = step_responses(run(tmp_path, COURSE, execution={}))
    assert section is not None
    assert not section.figures
    assert "execution: {arrays: [course, course_command, course_reference, time]}" in section.introduction
    assert line(section, "best iae", "turf_2")


def test_a_loop_of_speed_and_course_has_both(tmp_path: Path) -> None:
    model = {**COURSE["model"], "loop": "both"}
    space = {"kp": [0.5, 1.5], "ti": "8 s", "td": "0.6 s", "kp_v": 0.6, "ti_v": "6 s"}
    names = [f"{name}{ending}" for name in ("course", "speed") for ending in ("", "_command", "_reference")]
    result = run(tmp_path, COURSE, model=model, space=space, execution={"arrays": ["time", *names]})
    assert {f.title for f in step_responses(result).figures} >= {"Chosen designs: course", "Chosen designs: speed"}  # type: ignore[union-attr]
    section = loop_sensitivity(result)
    assert [f.title for f in section.figures] == [  # type: ignore[union-attr]
        f"{figure} of the {loop} loop" for loop in ("course", "speed") for figure in ("Sensitivities", "Nyquist plot")
    ]
    recorded = result.outcomes.figures["speed_ms"][result.chosen()["best iae"], 0]
    row = line(section, "best iae", "turf_2", "speed")
    assert row[4] == pytest.approx(recorded, rel=1e-9)


def test_only_the_first_scenarios_are_drawn_and_the_page_says_so(tmp_path: Path) -> None:
    many = [{"name": f"s{k}", "terrain": "turf", "speed": 2 + 0.1 * k} for k in range(DRAWN + 2)]
    result = run(tmp_path, COURSE, scenarios=many)
    for part in PARTS:
        section = part(result)
        assert len(section.figures[0].choices[0].options) == DRAWN
        assert f"The first {DRAWN} scenarios are shown, 2 are not." in section.notes
    assert len(section.tables[0].rows) == len(many) * 2


def test_assumptions_of_the_vehicle_are_stated(course: Result) -> None:
    for part in PARTS:
        notes = " ".join(part(course).notes)
        assert "lag 0.35 s, delay 0.2 s" in notes
        assert "not measurements" in notes


def test_the_output_of_a_linear_plant_goes_to_one(linear: Result) -> None:
    chart = figure(step_responses(linear), "Chosen designs: output")
    value, command = (t for t in chart.plot["data"] if t["name"].startswith("best iae"))
    assert value["y"][-1] == pytest.approx(1.0, abs=0.01)
    assert command["line"]["shape"] == "linear"
    assert set(trace(chart.plot, "reference")["y"].tolist()) == {1.0}
    assert not chart.choices


def test_a_slow_design_does_not_press_the_others_together(tmp_path: Path) -> None:
    slow = run(tmp_path, LINEAR, space={"kp": [0.1, 4.0], "ti": "8 s"})
    chart = figure(step_responses(slow), "Chosen designs: output")
    ends = sorted(float(t["x"][-1]) for t in chart.plot["data"][1::2])
    assert ends[-1] > 4.0 * ends[0]
    assert chart.plot["layout"]["xaxis"]["range"] == [0.0, 4.0 * ends[0]]
    assert "double click" in chart.hint


def test_a_step_that_settles_long_before_the_load_comes_has_a_figure_of_its_time(tmp_path: Path) -> None:
    def sampled(horizon: str) -> dict[str, Any]:
        settings = {"sample_time": "0.1 s", "horizon": horizon}
        return {**LINEAR, "model": {**LINEAR["model"], **settings}}

    result = run(tmp_path, sampled("200 s"))
    settling = max(float(result.outcomes.figures["settling"][row, 0]) for row in result.chosen().values())
    until, chart, *_ = step_responses(result).figures  # type: ignore[union-attr]
    assert (until.title, chart.title) == ("Chosen designs: output until it has settled", "Chosen designs: output")
    assert until.plot["layout"]["xaxis"]["range"] == [0.0, 2.0 * settling]
    assert until.note.endswith(
        "2 times the longest settling time; the load comes at 100 s, the horizon is 200 s (next figure)."
    )
    assert trace(until.plot, "best iae")["x"][-1] == 200.0  # all points, for files
    assert chart.plot["layout"]["xaxis"]["range"] == [0.0, 200.0]
    short = run(tmp_path / "short", sampled("60 s"))
    assert [f.title for f in step_responses(short).figures] == ["Chosen designs: output"]  # type: ignore[union-attr]


def test_runs_of_similar_length_are_drawn_to_their_end(course: Result) -> None:
    chart = figure(step_responses(course), "Chosen designs: course")
    assert chart.variants[(1,)]["layout"]["xaxis"]["range"] == chart.plot["layout"]["xaxis"]["range"] == [0.0, 8.0]
    assert not chart.note


def test_peaks_of_the_curves_are_the_ms_and_mt_of_the_specification(course: Result) -> None:
    """Design A on snow_road at 5 m/s: section 9.6. Four hundred points read a little low (section 5.2)."""
    section = loop_sensitivity(course)
    chart = figure(section, "Sensitivities of the course loop")
    assert chart.choices[0].options == ("snow_road_5", "turf_2")  # the worst first
    S, T = (trace_of(chart, 0, k) for k, t in enumerate(chart.plot["data"]) if t["name"].startswith("best iae"))
    assert max(S["y"]) == pytest.approx(2.78512, rel=1e-3)
    assert max(T["y"]) == pytest.approx(2.11108, rel=1e-3)
    row = line(section, "best iae", "snow_road_5")
    expected = [2.78512, 2.11108, 1.8363, 0.0, 31.716, 0.33888, 1.63344, 0.992536, 8.00911]
    assert row[2:4] == ("course", "stable")
    assert row[4:] == pytest.approx(expected, rel=1e-4)


def test_the_nyquist_curve_keeps_the_distance_from_minus_one_that_ms_says(course: Result) -> None:
    chart = figure(loop_sensitivity(course), "Nyquist plot of the course loop")
    k = next(k for k, t in enumerate(chart.plot["data"]) if t["name"].startswith("best iae"))
    x, y = (np.asarray(trace_of(chart, 0, k)[name]) for name in "xy")
    assert np.nanmin(np.hypot(x + 1.0, y)) == pytest.approx(1.0 / 2.78512, rel=1e-3)
    assert chart.plot["layout"]["yaxis"]["scaleanchor"] == "x"


@pytest.mark.parametrize(("circle", "ms", "words"), [(None, 3.0, "Ms 3, limit"), (2.0, 2.0, "Ms 2")])
def test_the_circle_is_that_of_the_limit_or_as_asked(
    course: Result, circle: float | None, ms: float, words: str
) -> None:
    ring = figure(loop_sensitivity(course, circle=circle), "Nyquist plot of the course loop").plot["data"][0]
    assert ring["name"] == words
    np.testing.assert_allclose(np.hypot(ring["x"] + 1.0, ring["y"]), 1.0 / ms)


def test_without_a_limit_the_circle_touches_the_least_robust_curve(linear: Result) -> None:
    """SIMC with the closed loop's time constant equal to the delay has Ms 1.5904902 (section 9.1)."""
    chart = figure(loop_sensitivity(linear), "Nyquist plot")
    ring = chart.plot["data"][0]
    assert ring["name"] == "Ms 1.59, largest"
    np.testing.assert_allclose(np.hypot(ring["x"] + 1.0, ring["y"]), 1.0 / 1.5904902, rtol=1e-6)
    row = line(loop_sensitivity(linear), "best iae")
    assert row[4] == pytest.approx(1.5904902, abs=1e-6)
    assert row[6] == pytest.approx(np.pi, abs=1e-6)
    assert row[8] == pytest.approx(61.352110, abs=1e-5)
    section = loop_sensitivity(linear)
    assert section is not None
    assert section.tables[0].columns[-1] == "crossover [rad/s]"  # no spectral radius and no noise gain without samples


#: Unstable on paved ground at 5 m/s (spectral radius 1.06602) with a formula value of Ms of 1.0262 (section 5.2).
TREACHEROUS = {"kp": 20.0, "ti": "10 s", "td": "0.2 s", "tf": "0.1 s", "b": 1, "tt": "3 s"}


@pytest.fixture(scope="module")
def unstable(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The same design, stable on turf and unstable on paved ground; its ms is not asked for."""
    scenarios = [TURF, {"name": "paved_5", "terrain": "paved", "speed": 5}]
    space = {**TREACHEROUS, "b": [0.9, 1.0]}
    return run(tmp_path_factory.mktemp("unstable"), COURSE, scenarios=scenarios, space=space, constraints=[])


def test_an_unstable_loop_is_reported_in_words_and_has_no_margin(unstable: Result) -> None:
    section = loop_sensitivity(unstable)
    assert section is not None
    words = "unstable: spectral radius 1.06602"
    assert [f.partition(" in ")[2] for f in section.findings] == [
        f"paved_5: {words}. It has no margins and is not drawn."
    ] * len(set(unstable.chosen().values()))
    rows = [r for r in section.tables[0].rows if r[1] == "paved_5"]
    assert rows
    for row in rows:
        assert row[3] == words
        assert np.isnan(row[4:11]).all()
        assert row[11] == pytest.approx(1.06602, abs=1e-5)


def test_an_unstable_loop_is_not_drawn(unstable: Result) -> None:
    for chart in loop_sensitivity(unstable).figures:  # type: ignore[union-attr]
        designs = [k for k, t in enumerate(chart.plot["data"]) if t["name"].startswith("best")]
        assert all(len(trace_of(chart, 0, k)["x"]) for k in designs)
        for k in range(len(chart.plot["data"])):
            curve = trace_of(chart, 1, k)
            assert len(curve["x"]) == (1 if curve["name"] == "-1" else 0)
        assert "unstable" in trace_of(chart, 1, designs[0])["name"]
