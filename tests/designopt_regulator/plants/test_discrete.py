"""Plants in discrete time: their samples are those of the difference equation."""

import numpy as np
import pytest
from designopt_regulator.controllers.pid import pid
from designopt_regulator.frequency.sampled_loop import frequency_response
from designopt_regulator.linear_loop.model import LinearLoop, LinearPlant
from designopt_regulator.plants.linear import discrete, fopdt

from designopt.plugin import InvalidSetting

T = 0.2
CASES = {
    "lag with two samples of delay": ([0.3], [1.0, -0.7, 0.0, 0.0]),
    "oscillation": ([0.1, 0.05], [1.0, -1.2, 0.85]),
    "integrator": ([0.02, 0.018], [1.0, -1.8, 0.8]),
    "unstable": ([0.1], [1.0, -1.1]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_sampled_plant_is_the_difference_equation(case):
    top, bottom = CASES[case]
    plant, w = discrete(top, bottom, T), np.geomspace(0.01, np.pi / T, 50)
    z = np.exp(1j * w * T)
    response = frequency_response(
        plant.A[None], plant.B[None], plant.C[None], plant.delay / T, pid(kp=1.0, sample_time=T), w
    )[0]
    assert response == pytest.approx(np.polyval(top, z) / np.polyval(bottom, z), rel=1e-7)


def test_a_sampled_lag_is_the_lag():
    a = np.exp(-T / 3.0)
    lag, sampled = fopdt(2.0, 3.0, 0.4), discrete([2.0 * (1.0 - a)], [1.0, -a, 0.0, 0.0], T)
    w = np.geomspace(0.01, 10.0, 20)
    assert sampled.response(w) == pytest.approx(lag.response(w), rel=1e-9)


def test_a_loop_around_a_plant_in_discrete_time_follows_its_difference_equation():
    plant = LinearPlant(type="discrete", numerator=(0.1, 0.05), denominator=(1.0, -1.2, 0.85, 0.0), sample_time=T)
    model = LinearLoop(plant=plant, sample_time=T, horizon=8.0, load_at=4.0, limit=5.0)
    _, arrays = model.evaluate({"kp": 0.4, "ti": 2.0}, {}, frozenset({"output", "command"}))
    u = np.concatenate([np.zeros(3), arrays["command"] + (np.arange(len(arrays["command"])) >= 20)])
    y = np.zeros(len(u))
    for k in range(3, len(u)):
        y[k] = 1.2 * y[k - 1] - 0.85 * y[k - 2] + 0.1 * u[k - 2] + 0.05 * u[k - 3]
    assert arrays["output"] == pytest.approx(y[3:], abs=1e-9)


@pytest.mark.parametrize("settings", [{}, {"sample_time": 0.1, "horizon": 8.0}])
def test_the_controller_has_the_samples_of_the_plant(settings):
    plant = LinearPlant(type="discrete", numerator=(0.3,), denominator=(1.0, -0.7), sample_time=T)
    with pytest.raises(InvalidSetting, match=r"samples of the plant are 0\.2 s apart"):
        LinearLoop(plant=plant, **settings).check()


@pytest.mark.parametrize(
    ("top", "bottom", "words"),
    [
        ((1.0,), (1.0, 0.5), "z = -0.5 alternates"),
        ((1.0, 0.2), (1.0, -0.5), "must be below 1"),
        ((0.0,), (1.0, -0.5), "not 0"),
    ],
)
def test_a_difference_equation_that_no_plant_has_is_refused(top, bottom, words):
    with pytest.raises(InvalidSetting, match=words):
        LinearPlant(type="discrete", numerator=top, denominator=bottom, sample_time=T).plant()
