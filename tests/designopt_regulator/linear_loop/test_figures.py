"""Damping, times, largest command, and the peaks of |K S| and |G S| of linear loops against closed forms."""

import numpy as np
import pytest
from designopt_regulator.controllers.pid import pid
from designopt_regulator.frequency.sampled_loop import frequency_response
from designopt_regulator.linear_loop.continuous import Loop
from designopt_regulator.linear_loop.model import LinearLoop, LinearPlant
from scipy.special import lambertw

from designopt.plugin import InvalidSetting

INTEGRATOR = LinearPlant(type="ipdt")
LATE = LinearPlant(type="fopdt", time_constant=8.0, delay=1.0)


def figures(model, design):
    return model.evaluate(design, {}, frozenset())[0]


def sampled(plant, T=0.02, horizon=40.0, **settings):
    return LinearLoop(plant=plant, sample_time=T, horizon=horizon, substeps=2, **settings)


@pytest.mark.parametrize(
    ("model", "rel"), [(LinearLoop(plant=INTEGRATOR), 1e-9), (sampled(INTEGRATOR, 0.001, 20.0), 2e-3)]
)
def test_a_first_order_loop_rises_and_settles_as_its_exponential(model, rel):
    """y = 1 - exp(-2 t): 10 to 90 % in ln 9 / 2, within 2 % from ln 50 / 2 on; u = 2 exp(-2 t). G S(0) = 1/2."""
    outputs = figures(model, {"kp": 2.0})
    assert outputs["rise"] == pytest.approx(np.log(9.0) / 2.0, rel=rel)
    assert outputs["settling"] == pytest.approx(np.log(50.0) / 2.0, rel=rel)
    assert outputs["not_settled"] == 0.0
    assert outputs["peak_command"] == pytest.approx(2.0, rel=rel)
    assert outputs["damping"] == 1.0
    assert outputs["ks_peak"] == pytest.approx(2.0, rel=rel)
    assert outputs["gs_peak"] == pytest.approx(0.5, rel=rel)


@pytest.mark.parametrize("damping", [0.1, 0.5, 0.9])
def test_the_damping_of_a_second_order_loop(damping):
    """The double integrator with kp 4 and kd: s^2 + kd s + 4; held and sampled 500 times a second it is nearly so."""
    design, plant = {"kp": 4.0, "kd": 4.0 * damping}, LinearPlant(type="double_integrator")
    assert figures(LinearLoop(plant=plant), design)["damping"] == pytest.approx(damping, rel=1e-9)
    assert figures(sampled(plant, 0.002, 10.0), {**design, "tf": 0.0})["damping"] == pytest.approx(damping, abs=5e-3)


def test_the_damping_of_a_loop_with_delay_is_that_of_the_root_of_lambert():
    """1 + exp(-s) / (2 s) = 0 has the rightmost roots W(-1/2)."""
    s = complex(lambertw(-0.5))
    outputs = figures(LinearLoop(plant=LinearPlant(type="ipdt", delay=1.0)), {"kp": 0.5})
    assert outputs["damping"] == pytest.approx(-s.real / abs(s), rel=1e-9)


def test_a_loop_that_keeps_an_error_has_no_settling_time():
    outputs = figures(LinearLoop(plant=LATE), {"kp": 2.0})
    assert outputs["not_settled"] == 1.0
    assert outputs["residual_error"] == pytest.approx(1.0 / 3.0, rel=1e-12)
    assert "settling" not in outputs
    assert "rise" not in outputs


PID = {"kp": 3.0, "ti": 7.0, "td": 0.4, "tf": 0.1}


def test_peaks_of_a_continuous_loop_are_those_of_a_dense_curve():
    plant = LATE.plant()
    w = np.geomspace(1e-4, 1e4, 2_000_000)
    s = 1j * w
    K = 3.0 * (1.0 + 1.0 / (7.0 * s) + 0.4 * s / (0.1 * s + 1.0))
    G = np.exp(-s) / (8.0 * s + 1.0)
    outputs = figures(LinearLoop(plant=LATE), PID)
    assert outputs["ks_peak"] == pytest.approx(max(np.abs(K / (1.0 + K * G)).max(), 3.0 * 5.0), rel=1e-6)
    assert outputs["gs_peak"] == pytest.approx(np.abs(G / (1.0 + K * G)).max(), rel=1e-6)
    assert Loop(plant, **PID).sensitivity_peaks() == (outputs["ks_peak"], outputs["gs_peak"])


def test_peaks_of_a_sampled_loop_are_those_of_a_dense_curve():
    T, plant = 0.1, LATE.plant()
    w = np.geomspace(1e-4, np.pi / T, 200_000)
    matrices = (plant.A[None], plant.B[None], plant.C[None], 10.0)
    L = frequency_response(*matrices, pid(**PID, sample_time=T), w)[0]
    G = frequency_response(*matrices, pid(kp=1.0, sample_time=T), w)[0]
    outputs = figures(sampled(LATE, T), PID)
    assert outputs["ks_peak"] == pytest.approx(np.abs(L / G / (1.0 + L)).max(), rel=1e-6)
    assert outputs["gs_peak"] == pytest.approx(np.abs(G / (1.0 + L)).max(), rel=1e-6)


def test_rise_and_settling_of_a_sampled_loop_come_near_to_the_continuous_ones():
    continuous, discrete = figures(LinearLoop(plant=LATE), PID), figures(sampled(LATE, 0.005, 60.0), PID)
    for name in ("rise", "settling", "damping", "peak_command", "ks_peak", "gs_peak"):
        assert discrete[name] == pytest.approx(continuous[name], rel=0.03), name


def test_figures_are_limits_of_a_study_like_any_other():
    unstable = figures(sampled(LATE, 0.1, 20.0, limit=10.0), {"kp": 60.0, "ti": 7.0})
    assert unstable["damping"] == -np.inf
    assert unstable["ks_peak"] == unstable["gs_peak"] == np.inf


@pytest.mark.parametrize("more", [{}, {"sample_time": 0.1, "horizon": 60.0, "limits": (-4.0, 10.0)}])
def test_a_plant_of_negative_gain_is_the_same_loop_with_the_command_turned(more):
    turned = {**more, **({"limits": (-10.0, 4.0)} if more else {})}
    one = LinearLoop(plant=LATE, **more)
    negative = LinearLoop(plant=LinearPlant(type="fopdt", gain=-1.0, time_constant=8.0, delay=1.0), **turned)
    coefficients = LinearPlant(type="transfer_function", numerator=(-1.0,), denominator=(8.0, 1.0), delay=1.0)
    third = LinearLoop(plant=coefficients, action="direct", **turned)
    expected, arrays = one.evaluate(PID, {}, frozenset({"command"}))
    for model in (negative, third):
        outputs, mirrored = model.evaluate(PID, {}, frozenset({"command"}))
        for name in set(expected) - {"iae_load", "ise_load", "tv_load"}:  # the load pushes the other way here
            assert outputs[name] == pytest.approx(expected[name], rel=1e-9, abs=1e-9), name
        assert mirrored["command"][:200] == pytest.approx(-arrays["command"][:200], abs=1e-9)


def test_a_state_space_is_the_plant_that_its_matrices_say():
    matrices = LinearPlant(type="state_space", A=(0.0, 1.0, -6.0, -5.0), B=(0.0, 1.0), C=(3.0, 0.5), delay=0.3)
    same = LinearPlant(type="transfer_function", numerator=(0.5, 3.0), denominator=(1.0, 5.0, 6.0), delay=0.3)
    assert figures(LinearLoop(plant=matrices), PID) == pytest.approx(figures(LinearLoop(plant=same), PID), rel=1e-8)
    with pytest.raises(InvalidSetting, match="2 states need 4, 2, 2"):
        LinearPlant(type="state_space", A=(0.0, 1.0), B=(0.0, 1.0), C=(3.0, 0.5)).plant()
