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


@pytest.mark.parametrize("substeps", [1, 5])
def test_a_delayed_first_order_output_turns_between_samples_where_a_command_arrives(substeps):
    """Between arrivals y is u + (y0 - u) exp(-t / 100 s): its peak is at an arrival, 5 s after a sample, and it enters
    the band of 2 % at t = 100 s ln((u - y0) / (u - 1 -+ 0.02))."""
    plant = LinearPlant(type="fopdt", time_constant=100.0, delay=5.0)
    model = LinearLoop(plant=plant, sample_time=40.0, horizon=8000.0, substeps=substeps)
    outputs, arrays = model.evaluate({"kp": 1.8, "ti": 60.0}, {}, frozenset({"output", "command"}))
    commands, y, settling = arrays["command"][:100], 0.0, 0.0
    at_arrivals = []
    for k, u in enumerate(commands):
        at_arrivals.append(y)
        crossings = [5.0 + 40.0 * k + 100.0 * np.log((u - y) / (u - level)) for level in (0.98, 1.02)
                     if (u - y) * (u - level) > 0.0]  # fmt: skip
        settling = max([settling, *(t for t in crossings if 0.0 <= t - 5.0 - 40.0 * k <= 40.0)])
        y = u + (y - u) * np.exp(-0.4)
    assert outputs["overshoot"] == pytest.approx(max(at_arrivals) - 1.0, rel=1e-9)
    assert outputs["overshoot"] == pytest.approx(0.28631, abs=1e-5)
    assert arrays["output"][:100].max() - 1.0 == pytest.approx(0.27890, abs=1e-5)  # at the samples
    assert outputs["settling"] == pytest.approx(settling, abs=1e-3)


def test_a_double_integrator_turns_between_samples_where_its_rate_is_zero():
    """With a held command u and the rate v it turns at y - v^2 / (2 u)."""
    T = 0.5
    plant = LinearPlant(type="double_integrator")
    model = LinearLoop(plant=plant, sample_time=T, horizon=100.0, substeps=2)
    outputs, arrays = model.evaluate({"kp": 0.5, "kd": 0.6, "tf": 0.1}, {}, frozenset({"output", "command"}))
    y, v, peak = 0.0, 0.0, 0.0
    for u in arrays["command"][:100]:
        if u < 0.0 < v < -u * T:
            peak = max(peak, y - v**2 / (2.0 * u))
        y, v = y + v * T + 0.5 * u * T**2, v + u * T
    assert peak - 1.0 > arrays["output"][:100].max() - 1.0 + 1e-4
    assert outputs["overshoot"] == pytest.approx(peak - 1.0, rel=1e-9)


def test_a_plant_that_rings_within_a_sample_has_the_overshoot_of_its_step():
    """Within the first sample a P controller of gain 1 gives the plant's own step response, with its known overshoot
    exp(-pi zeta / sqrt(1 - zeta^2))."""
    for w, zeta in ((12.0, 0.1), (60.0, 0.02)):  # turns 1.9 and 9.5 times within the sample of 1 s
        plant = LinearPlant(type="transfer_function", numerator=(w**2,), denominator=(1.0, 2.0 * zeta * w, w**2))
        model = LinearLoop(plant=plant, sample_time=1.0, horizon=4.0, load_at=1.0, substeps=1)
        outputs = figures(model, {"kp": 1.0})
        assert outputs["overshoot"] == pytest.approx(np.exp(-np.pi * zeta / np.sqrt(1.0 - zeta**2)), rel=1e-6)


def test_overshoot_and_settling_time_do_not_depend_on_the_loops_that_are_computed_together():
    model = LinearLoop(plant=LATE, sample_time=2.0, horizon=200.0)
    designs = [{"kp": kp, "ti": 5.0} for kp in (0.5, 1.0, 2.0)]
    scenarios = [{"lag_factor": pace, "delay_factor": pace} for pace in (1.0, 0.03, 0.5)]
    together = model.batch(designs, scenarios, frozenset())
    for design, scenario, (outputs, _) in zip(designs, scenarios, together, strict=True):
        alone, _ = model.evaluate(design, scenario, frozenset())
        assert (outputs["overshoot"], outputs["settling"]) == (alone["overshoot"], alone["settling"])


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
