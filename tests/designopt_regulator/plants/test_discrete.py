"""Plants in discrete time and plants with a held input: their samples are those of the difference equation."""

import numpy as np
import pytest
from designopt_regulator.controllers.pid import pid
from designopt_regulator.frequency.sampled_loop import frequency_response
from designopt_regulator.linear_loop.model import LinearLoop, LinearPlant
from designopt_regulator.plants.linear import discrete, fopdt, transfer_function
from designopt_regulator.plants.sampled_plant import hold
from scipy.signal import cont2discrete

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


PERIOD = 0.1
Z = np.exp(1j * np.array([0.01, 0.4, 1.5, 3.0]))


def just_before(plant, z):
    """The zero-order hold of SciPy, measured just before the input changes: what passes at once is a sample late."""
    A, B, *_ = cont2discrete((plant.A, plant.B[:, None], plant.C[None], [[0.0]]), PERIOD)
    states = np.linalg.solve(z[:, None, None] * np.eye(len(A)) - A, B)[..., 0]
    return states @ plant.C + float(plant.D) / z


@pytest.mark.parametrize("samples", [1, 3, 6, 7])
@pytest.mark.parametrize("off", [-1e-12, 0.0, 1e-12])
def test_a_delay_of_whole_samples_stays_so_whatever_its_last_digits_are(samples, off):
    """0.3 / 0.1 is less than 3, 0.7 / 0.1 less than 7: what passes at once would come a sample early."""
    plant = transfer_function([1.0, 2.0, 5.0], [1.0, 0.6, 4.0], round(samples * PERIOD, 1) * (1.0 + off))
    late = hold(plant, PERIOD)

    assert late.outputs[0].samples == samples + 1
    np.testing.assert_allclose(late.responses(Z)[0], just_before(plant, Z) * Z**-samples, rtol=1e-9)


def test_an_output_within_a_sample_is_late_by_its_own_delay():
    """Against steps: the response of the plant at the times k PERIOD - delay."""
    plant = transfer_function([2.0], [0.5, 1.0], 0.13)
    late = hold(plant, PERIOD, [(plant.C, 0.0, 0.27)])
    x, outputs = np.zeros(1), []
    for _ in range(12):
        outputs.append([float(out.P @ x + out.q) for out in late.outputs])
        x = x + late.R @ x + late.G
    for j, delay in enumerate((0.13, 0.27)):
        times = (np.arange(12) + late.outputs[j].samples) * PERIOD - delay
        np.testing.assert_allclose(np.array(outputs)[:, j], 2.0 * -np.expm1(-times / 0.5), rtol=1e-9)
