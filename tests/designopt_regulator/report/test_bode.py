"""The report part `loop_bode`: curves of the loop whose peaks and deviation are the model's own figures."""

from typing import Any

import numpy as np
import pytest
from designopt_regulator.report.bode import loop_bode

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
    bode, both, *noise = section.figures
    assert bode.choices[0].options == ("strong", "nominal")
    row, figures = result.chosen()["best ms"], result.outcomes.figures
    for place, name in ((0, "ks_peak"), (1, "gs_peak")):
        for option, scenario in ((0, 1), (1, 0)):
            curve = both.variants[(option,)]["data"][str(place)]["y"]
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
    drawn = [f for f in section.figures if f.title == "Command under measurement noise"]
    if not drawn:
        assert np.isnan(result.outcomes.figures.get("noise_gain", np.array([np.nan]))).all()
        return
    expected = result.outcomes.figures["noise_gain"][result.chosen()["best ms"], 1]
    assert np.std(drawn[0].plot["data"][0]["y"]) == pytest.approx(expected, rel=0.15)  # of 200 samples
