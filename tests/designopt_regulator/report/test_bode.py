"""The report part `loop_bode`: curves of the loop whose peaks and deviation are the model's own figures."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from designopt_regulator.report.bode import _bode_layout, _half, loop_bode
from designopt_regulator.report.loops import loop_sensitivity, loops_of

import designopt
from designopt.store.result import Result

LINEAR: dict[str, Any] = {
    "study": "plant",
    "model": {"use": "linear_loop", "plant": {"type": "fopdt", "time_constant": "8 s", "delay": "1 s"}},
    "scenarios": [{"name": "nominal"}, {"name": "strong", "gain_factor": 1.5}],
    "space": {"kp": [2.0, 3.0], "ti": "7 s", "td": "0.4 s", "tf": "0.1 s"},
    "objectives": [{"name": "ms", "minimize": "ms"}],
    "stages": [{"name": "all", "solver": {"use": "full_factorial", "levels": {"kp": 2}}}],
}


@pytest.fixture(scope="module", params=["continuous", "sampled"])
def result(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Result:
    more = {"sample_time": "0.1 s", "horizon": "40 s"} if request.param == "sampled" else {}
    study = designopt.define(**{**LINEAR, "model": {**LINEAR["model"], **more}})
    return study.run(tmp_path_factory.mktemp("bode") / "store", executor="serial")


def test_it_opens_on_the_worst_scenario_and_its_peaks_are_the_models(result: Result) -> None:
    section = loop_bode(result)
    assert section is not None
    bode, sensitivities, *noise = section.figures
    assert bode.choices[0].options == ("strong", "nominal")
    row, figures = result.chosen()["best ms"], result.outcomes.figures
    for curve_index, name in ((0, "ks_peak"), (1, "gs_peak")):
        for option, scenario in ((0, 1), (1, 0)):
            curve = sensitivities.variants[(option,)]["data"][str(curve_index)]["y"]
            assert curve.max() == pytest.approx(figures[name][row, scenario], rel=0.02)
    assert bool(noise) == ("noise_gain" in figures and bool(np.isfinite(figures["noise_gain"]).all()))


def test_the_bode_plot_passes_one_at_the_crossover_with_the_phase_margin(result: Result) -> None:
    section = loop_bode(result)
    assert section is not None
    size, phase = section.figures[0].plot["data"][:2]
    row, figures = result.chosen()["best ms"], result.outcomes.figures
    crossed = np.interp(0.0, -np.log(size["y"]), np.log(size["x"]))
    assert np.exp(crossed) == pytest.approx(figures["crossover"][row, 1], rel=1e-3)
    margin = 180.0 + np.interp(crossed, np.log(phase["x"]), phase["y"])
    assert margin == pytest.approx(np.degrees(figures["pm"][row, 1]), abs=0.1)


def test_the_command_under_noise_deviates_as_the_noise_gain_says(result: Result) -> None:
    section = loop_bode(result)
    assert section is not None
    noise_figures = [f for f in section.figures if f.title == "Command under measurement noise"]
    if not noise_figures:
        assert np.isnan(result.outcomes.figures.get("noise_gain", np.array([np.nan]))).all()
        return
    expected = result.outcomes.figures["noise_gain"][result.chosen()["best ms"], 1]
    assert np.std(noise_figures[0].plot["data"][0]["y"]) == pytest.approx(expected, rel=0.15)  # of 200 samples


@pytest.mark.parametrize("low", [0.02, 0.4, 1e-9])
@pytest.mark.parametrize("decades", [0.3, 1.3, 3.0, 8.0, 20.0])
def test_ticks_of_half_a_figure_are_few_and_show_where_the_curve_is(low: float, decades: float) -> None:
    y = np.array([low, low * 10.0**decades])
    second_axis = {"y": y * 1e6, "yaxis": "y2"}
    ticks = _half([[{"y": y}, {"y": np.empty(0)}, second_axis]], lower=False)["tickvals"]
    assert 1 <= len(ticks) <= 6
    assert 0.5 * y[0] <= ticks[0] <= ticks[-1] <= 2.0 * y[1]


def test_the_phase_of_a_long_delay_has_few_ticks() -> None:
    """2 s of delay turn the loop by some thousand degrees: the axis ends four half turns down."""
    traces = [{"y": np.array([10.0, 0.1])}, {"y": np.array([-90.0, -4000.0]), "yaxis": "y2"}]
    shape = _bode_layout([traces])["yaxis2"]
    assert shape["range"] == [-830.0, -70.0]
    assert shape["dtick"] == 180


def test_all_loops_of_a_cascade_are_drawn_and_tabulated(tmp_path: Path) -> None:
    """A design with one controller around the same plants has no inner and no outer loop."""
    more = {"sample_time": "0.05 s", "horizon": "6 s"}
    model = {"use": "linear_loop", "plant": {"type": "ipdt", "delay": "0.1 s"},
             "inner_plant": {"type": "fopdt", "time_constant": "0.3 s", "delay": "0.04 s"}, **more}  # fmt: skip
    study = designopt.define(
        study="cascade",
        model=model,
        space={"structure": {"value": "cascade"}, "kp": [1.1, 1.4], "kp_inner": 1.5, "ti_inner": "0.5 s"},
        objectives=[{"name": "iae", "minimize": "iae_setpoint"}, {"name": "ms", "minimize": "ms"}],
        stages=[{"name": "all", "solver": {"use": "full_factorial", "levels": {"kp": 2}}}],
    )  # fmt: skip
    result = study.run(tmp_path / "store", executor="serial")
    design = {"structure": "cascade", "kp": 1.1, "kp_inner": 1.5, "ti_inner": 0.5}
    loop_model = result.problem.model.build()
    outputs, _ = loop_model.evaluate(design, {}, frozenset())
    loops = loops_of(loop_model, design, {})
    assert set(loops) == {"loop", "inner", "outer"}
    for loop, prefix in (("loop", ""), ("inner", "inner_"), ("outer", "outer_")):
        margins = loops[loop].margins
        assert margins is not None
        for name in ("ms", "gm", "pm", "delay_margin", "crossover"):
            assert float(getattr(margins, name)[0]) == outputs[f"{prefix}{name}"]
        w = np.array([0.5, 3.0])
        K, G = loops[loop].parts(w)
        if loop != "loop":  # broken at the plant's command the inner loop is in L besides
            np.testing.assert_allclose(K * G, loops[loop].response(w), rtol=1e-9)
    alone = loops_of(loop_model, {"structure": "single", "kp": 1.1}, {})
    assert [one.words for one in alone.values()] == ["", "none", "none"]
    sections = [loop_bode(result), loop_sensitivity(result)]
    for section in sections:
        assert section is not None
        titles = [figure.title for figure in section.figures]
        assert any("of the inner loop" in title for title in titles)
        assert any("of the outer loop" in title for title in titles)
    assert sections[1] is not None
    (table,) = sections[1].tables
    assert {row[2] for row in table.rows} >= {"loop", "inner", "outer"}
