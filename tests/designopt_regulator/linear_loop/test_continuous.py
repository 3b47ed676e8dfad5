"""Continuous loops with exact delay: figures of the specification's sections 9.1 to 9.4, and other computations."""

import numpy as np
import pytest
from designopt_regulator.linear_loop import step_response
from designopt_regulator.linear_loop.continuous import Loop
from designopt_regulator.linear_loop.step_response import step_responses
from designopt_regulator.plants import linear as plants
from designopt_regulator.plants.linear import double_integrator, fopdt, ipdt, lag, sopdt
from pi_rules import gain_for_ms, iae_optimal_pi, max_ki_pi, simc_pi
from scipy.linalg import expm
from scipy.optimize import brentq, minimize_scalar

PROCESS = {"1": fopdt(1.0, 1.0, 1.0), "8": fopdt(1.0, 8.0, 1.0), "20": fopdt(1.0, 20.0, 1.0), "inf": ipdt(1.0, 1.0)}


def ms_of(loop):
    """The peak of the sensitivity, inf for an unstable loop."""
    margins = loop.margins()
    return np.inf if margins is None else margins.ms[0]


# ------------------------------------------------------------------------------------------------------------- 9.1


def test_margins_and_iae_of_half_an_integrator_with_delay():
    loop = Loop(ipdt(1.0, 1.0), 0.5)
    m = loop.margins()
    assert m.ms[0] == pytest.approx(1.5904902, abs=1e-6)
    assert m.gm[0] == pytest.approx(np.pi, abs=1e-9)
    assert np.degrees(m.pm[0]) == pytest.approx(61.352110, abs=1e-5)
    assert m.pm[0] == pytest.approx(0.5 * np.pi - 0.5, abs=1e-12)
    assert m.crossover[0] == pytest.approx(0.5, rel=1e-12)
    assert abs(loop.response(np.array([0.5 * np.pi]))[0].imag) < 1e-15
    setpoint, _ = step_responses(loop)
    assert setpoint.iae == pytest.approx(2.1686906, abs=2e-6)


def test_margins_and_iae_of_a_pi_controller_of_an_integrator_with_delay():
    loop = Loop(ipdt(1.0, 1.0), 0.5, 8.0)
    m, (output, load) = loop.margins(), step_responses(loop)
    assert m.ms[0] == pytest.approx(1.7035217, abs=1e-6)
    assert m.gm[0] == pytest.approx(2.9634023, abs=1e-6)
    assert np.degrees(m.pm[0]) == pytest.approx(46.864286, abs=1e-5)
    assert output.iae == pytest.approx(3.9222688, abs=2e-6)
    assert load.iae == pytest.approx(16.0, abs=2e-6)


def test_iae_of_an_input_step_of_the_simc_controller():
    _, load = step_responses(Loop(fopdt(1.0, 8.0, 1.0), 4.0, 8.0))
    assert load.iae == pytest.approx(2.0, abs=2e-6)


def test_cancelling_the_lag_leaves_the_integrator():
    """SIMC with tau_c = delay on 1/(8s+1): K_p 4, T_i 8, of which the loop is e^-s/(2s)."""
    assert simc_pi(1.0, 8.0, 1.0) == (4.0, 8.0)
    setpoint, _ = step_responses(Loop(fopdt(1.0, 8.0, 1.0), 4.0, 8.0))
    assert setpoint.iae == pytest.approx(2.1686906, abs=2e-6)


# ------------------------------------------------------------------------------------------------------------- 9.2


@pytest.mark.parametrize(
    ("process", "step", "kp", "ti", "iae"),
    [
        ("1", "output", 0.5531, 1.1410, 2.0714),
        ("1", "input", 0.5191, 1.0467, 2.0182),
        ("8", "output", 3.9977, 8.0008, 2.1692),
        ("8", "input", 3.3295, 3.6827, 1.1345),
        ("20", "output", 9.9941, 19.9999, 2.1692),
        ("20", "input", 8.0908, 4.7094, 0.6003),
        ("inf", "input", 0.3961, 5.7836, 15.0942),
    ],
)
def test_pi_settings_that_minimise_iae_at_ms_1_59(process, step, kp, ti, iae):
    settings = iae_optimal_pi(PROCESS[process], 1.59, step, 0.7 * ti, 1.4 * ti)
    loop = Loop(PROCESS[process], *settings)
    assert ms_of(loop) == pytest.approx(1.59, abs=1e-8)
    assert step_responses(loop)[step == "input"].iae == pytest.approx(iae, abs=1e-4)
    np.testing.assert_allclose(settings, (kp, ti), rtol=2e-3)


def test_without_an_integral_the_integrator_has_the_infimum_of_the_output_step():
    """2.1692 of section 9.3: the reference of the output step on the integrator."""
    kp = gain_for_ms(ipdt(1.0, 1.0), 1.59, np.inf)
    assert step_responses(Loop(ipdt(1.0, 1.0), kp))[0].iae == pytest.approx(2.1692, abs=1e-4)


# ------------------------------------------------------------------------------------------------------------- 9.3

REFERENCE = {"1": (2.0714, 2.0182), "8": (2.1692, 1.1345), "inf": (2.1692, 15.0942)}
TRADE_OFF = [
    (1.20, "1", 0.2170, 1.0532, 2.3743, 2.3805),
    (1.20, "8", 1.4696, 5.3850, 2.8029, 3.2667),
    (1.20, "inf", 0.1746, 12.881, 4.5398, 5.5541),
    (1.40, "1", 0.3664, 0.9826, 1.3118, 1.3125),
    (1.40, "8", 2.6555, 4.6711, 1.5722, 1.8011),
    (1.40, "inf", 0.3109, 8.0213, 2.0833, 2.3384),
    (1.59, "1", 0.5387, 1.0988, 1.0082, 1.0280),
    (1.59, "8", 3.4735, 4.0429, 1.2269, 1.3820),
    (1.59, "inf", 0.4099, 6.2737, 1.5055, 1.6337),
    (1.80, "1", 0.6893, 1.1820, 0.8966, 0.9515),
    (1.80, "8", 4.1909, 3.6366, 1.0608, 1.1413),
    (1.80, "inf", 0.4904, 5.1229, 1.2392, 1.3193),
    (2.00, "1", 0.8298, 1.3165, 0.8646, 0.9464),
    (2.00, "8", 4.7903, 3.4704, 0.9746, 1.0295),
    (2.00, "inf", 0.5512, 4.4925, 1.1103, 1.1659),
]


def cost(process, kp, ti):
    """J: both integrals relative to their least values at Ms 1.59."""
    output, load = step_responses(Loop(PROCESS[process], kp, ti))
    return 0.5 * (output.iae / REFERENCE[process][0] + load.iae / REFERENCE[process][1])


@pytest.mark.parametrize(("ms", "process", "kp", "ti", "best", "simc"), TRADE_OFF)
def test_least_cost_for_a_robustness(ms, process, kp, ti, best, simc):
    def cost_at(log):
        return cost(process, gain_for_ms(PROCESS[process], ms, np.exp(log)), np.exp(log))

    optimum = minimize_scalar(cost_at, bounds=np.log([0.8 * ti, 1.25 * ti]), method="bounded", options={"xatol": 1e-4})
    assert optimum.fun == pytest.approx(best, rel=1e-3)
    assert np.exp(optimum.x) == pytest.approx(ti, rel=1e-3)
    assert gain_for_ms(PROCESS[process], ms, np.exp(optimum.x)) == pytest.approx(kp, rel=1e-3)


@pytest.mark.parametrize(("ms", "process", "kp", "ti", "best", "simc"), TRADE_OFF)
def test_cost_of_the_simc_rule_at_the_same_robustness(ms, process, kp, ti, best, simc):
    def settings(tau_c):
        return simc_pi(1.0, float(process), 1.0, tau_c)

    tau_c = brentq(lambda t: ms_of(Loop(PROCESS[process], *settings(t))) - ms, -0.5, 8.0, xtol=1e-7)
    assert cost(process, *settings(tau_c)) == pytest.approx(simc, rel=1e-3)


@pytest.mark.parametrize(
    ("ms", "kp", "ki", "ti"),
    [(1.4, 0.63297, 0.325317, 1.9457), (1.6, 0.86202, 0.460876, None), (2.0, 1.22196, 0.685190, 1.7834)],
)
def test_the_largest_integral_gain_of_a_third_order_lag(ms, kp, ki, ti):
    settings = max_ki_pi(lag(3), ms, 1.0, 4.0)
    assert settings[0] == pytest.approx(kp, abs=1e-4)
    assert settings[0] / settings[1] == pytest.approx(ki, abs=1e-4)
    assert ti is None or settings[1] == pytest.approx(ti, abs=1e-4)
    assert ms_of(Loop(lag(3), *settings)) == pytest.approx(ms, abs=1e-8)


# ------------------------------------------------------------------------------------------------------------- 9.4


@pytest.mark.parametrize(("k1", "k2"), [(2.0, 2.0), (0.3, 5.0), (10.0, 0.5), (100.0, 0.05), (0.05, 30.0)])
def test_ise_and_effort_of_the_double_integrator_are_those_of_the_closed_form(k1, k2):
    """Section 9.4, to 1e-6; the set-point step from rest is the motion from y = 1 seen from its end."""
    loop = Loop(double_integrator(), k1, td=k2 / k1)
    setpoint, _ = step_responses(loop)
    assert loop.stable
    assert setpoint.ise == pytest.approx((k2**2 + k1) / (2.0 * k1 * k2), rel=1e-9)
    assert setpoint.effort == pytest.approx(k1**2 / (2.0 * k2), rel=1e-9)
    assert 64.0 / 27.0 * setpoint.ise**3 * setpoint.effort >= 1.0 - 1e-9


# ------------------------------------------------------------------------------------------------------- stability


@pytest.mark.parametrize(
    ("kp", "poles"),
    [(0.5, 0), (1.57, 0), (0.5 * np.pi * (1 - 1e-9), 0), (0.5 * np.pi * (1 + 1e-9), 2), (3.0, 2), (10.0, 4)],
)
def test_unstable_poles_of_an_integrator_with_delay_are_counted(kp, poles):
    """s + K e^-s has its pairs on the axis at K = pi/2 + 2 pi k."""
    loop = Loop(ipdt(1.0, 1.0), kp)
    assert loop.unstable_poles() == poles
    assert (loop.margins() is None) == (poles > 0)


def test_an_unstable_plant_is_stabilised_by_gain():
    plant = plants.transfer_function([1.0], [1.0, -0.5], 0.2)
    assert Loop(plant, 0.4).unstable_poles() == 1
    assert Loop(plant, 1.5).stable
    assert not Loop(plant, 20.0).stable


@pytest.mark.parametrize("seed", range(12))
def test_stability_is_that_of_the_finely_sampled_loop(seed):
    """Random plants and PID controllers: the closed loop of delays in chains of 1/150 of the delay decides."""
    rng = np.random.default_rng(seed)
    plant = sopdt(1.0, rng.uniform(0.5, 5.0), rng.uniform(0.1, 1.0), 1.0)
    loop = Loop(plant, rng.uniform(0.5, 6.0), rng.uniform(1.0, 8.0), rng.uniform(0.0, 0.5), 0.1)
    M, N, K, *_ = loop.equations()
    count, n = 150, len(M)
    transition = expm(np.block([[M, N[:, None]], [np.zeros((1, n + 1))]]) / count)
    A = np.zeros((n + count, n + count))
    A[:n, :n], A[:n, -1], A[n, :n] = transition[:n, :n], transition[:n, n], K
    A[np.arange(n + 1, n + count), np.arange(n, n + count - 1)] = 1.0
    radius = np.abs(np.linalg.eigvals(A)).max() ** count
    assert abs(radius - 1.0) > 0.02, "too near to the limit to tell by a chain"
    assert loop.stable == (radius < 1.0)


# ------------------------------------------------------------------------------------------------------- responses


def fine_steps(loop, horizon, count, disturbance):
    """The response by trapezoidal integration of the delayed equations with `count` steps in a delay; second order."""
    M, N, K, R, _ = loop.equations()
    h = loop.delay / count
    left, right = np.eye(len(M)) - 0.5 * h * M, np.eye(len(M)) + 0.5 * h * M
    r, d = (0.0, 1.0) if disturbance else (1.0, 0.0)
    z, u, e = np.zeros(len(M)), [], []
    direct = loop.kp * loop.b * r
    C = np.concatenate([loop.plant.C, np.zeros(len(M) - len(loop.plant.C))])
    inverse = np.linalg.inv(left)
    for k in range(int(horizon / h)):
        u.append(K @ z + direct)
        e.append(r - C @ z)
        late = 0.5 * (u[k - count] + u[k - count + 1]) + d if k >= count else 0.0
        z = inverse @ (right @ z + h * (N * late + R * r))
    return np.array(e), np.array(u), h


@pytest.mark.parametrize("disturbance", [False, True])
@pytest.mark.parametrize(
    "loop",
    [
        Loop(fopdt(1.0, 8.0, 1.0), 5.0, 4.0, b=0.6),
        Loop(sopdt(1.0, 3.0, 1.0, 1.0), 2.0, 4.0, 0.6, 0.08, 0.7),
        Loop(sopdt(1.0, 3.0, 1.0, 1.0), 1.5, 4.0, 0.5),
    ],
)
def test_responses_are_those_of_fine_steps(loop, disturbance):
    response = step_responses(loop)[disturbance]
    errors, iae, tv = [], [], []
    for count in (50, 100):
        e, u, h = fine_steps(loop, 30.0, count, disturbance)
        t = np.arange(len(e)) * h
        errors.append(np.abs(e - response.at(t, response.error)).max())
        iae.append(abs(h * (np.abs(e).sum() - 0.5 * abs(e[0]) - 0.5 * abs(e[-1]))))
        tv.append(abs(np.diff(u)).sum() + abs(u[0]))
    assert errors[0] < 2e-3
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.15), "the reference is of second order, the response exact"
    rest = e[-1] - response.error.sum(axis=1)[-1]
    assert abs(rest) < 1e-2
    assert response.iae == pytest.approx((4.0 * iae[1] - iae[0]) / 3.0, rel=2e-3)
    assert response.tv == pytest.approx(tv[1], rel=2e-3)


@pytest.mark.parametrize("delay", [0.5, 1.0])
@pytest.mark.parametrize("ti", [10.0, 1e4], ids=["usual", "slow"])
@pytest.mark.parametrize("tf", [0.1, 1e-3, 1e-5])
def test_a_slow_loop_and_a_fast_filter_beside_a_delay_have_exact_integrals(delay, ti, tf):
    """Without overshoot the integral of the error is ti/kp for a plant of gain 1, of a load the same."""
    loop = Loop(fopdt(1.0, 10.0, delay), 0.3, ti, 1.0, tf)
    setpoint, load = step_responses(loop)
    assert loop.stable
    assert len(setpoint.steps) < 1000
    assert setpoint.overshoot < 1e-9
    assert setpoint.iae == pytest.approx(ti / 0.3, rel=1e-10)
    assert load.iae == pytest.approx(ti / 0.3, rel=1e-10)
    assert setpoint.tv < np.inf
    figures = loop.margins(), loop.sensitivity_peaks()
    assert np.isfinite([figures[0].ms[0], *figures[1]]).all()


@pytest.mark.parametrize(
    "loop",
    [
        Loop(fopdt(1.0, 2.0, 0.8), 0.8, 3.0, 0.3, 0.01, 0.5),
        Loop(sopdt(1.0, 3.0, 1.0, 1.0), 2.0, 4.0, 0.6, 0.02, 0.7),
        Loop(ipdt(1.0, 1.0), 0.5, 8.0, 0.2, 0.005),
        Loop(fopdt(1.0, 1.0, 1.0), 0.5),
    ],
    ids=["first order", "second order", "integrator", "P"],
)
def test_graded_intervals_give_the_response_of_even_ones(loop, monkeypatch):
    monkeypatch.setattr(step_response, "_EVEN_INTERVALS", 100_000)
    even = step_responses(loop)
    monkeypatch.setattr(step_response, "_EVEN_INTERVALS", 0)
    graded = step_responses(loop)
    time = np.linspace(0.0, 40.0, 500)
    for a, b in zip(even, graded, strict=True):
        assert len(a.steps) != len(b.steps)
        figures = [(r.effort, r.tv, r.overshoot, r.peak_command, r.settling(0.7)) for r in (a, b)]
        assert figures[0] == pytest.approx(figures[1], rel=1e-8, abs=1e-9)
        assert a.iae == pytest.approx(b.iae, rel=1e-9)
        within = time < min(a.steps.sum(), b.steps.sum())
        assert a.at(time[within], a.error) == pytest.approx(b.at(time[within], b.error), abs=1e-9)


def test_integrals_over_an_error_that_stays_are_infinite():
    setpoint, load = step_responses(Loop(fopdt(1.0, 2.0, 0.5), 2.0))
    assert (setpoint.iae, setpoint.ise, load.iae) == (np.inf, np.inf, np.inf)
    assert setpoint.final_error == pytest.approx(1.0 / 3.0)
    assert setpoint.overshoot > 0.0


def test_overshoot_is_that_of_a_second_order_loop():
    """exp(-pi zeta / sqrt(1 - zeta^2)) for a double integrator with rate feedback."""
    setpoint, _ = step_responses(Loop(double_integrator(), 1.0, td=0.8))
    assert setpoint.overshoot == pytest.approx(np.exp(-np.pi * 0.4 / np.sqrt(1.0 - 0.16)), abs=1e-9)


def test_a_derivative_without_filter_needs_a_rate():
    with pytest.raises(ValueError, match="needs a plant whose output"):
        Loop(fopdt(1.0, 1.0, 0.1), 1.0, td=0.1)


def test_a_gain_for_a_peak_that_no_gain_has_is_refused():
    with pytest.raises(ValueError, match="no gain gives"):
        gain_for_ms(ipdt(1.0, 1.0), 1.2, 0.5)


def test_the_complementary_sensitivity_of_a_loop_that_integrates_is_at_least_one():
    """|T| of a lag under its inverse, L = 0.5 / s, is 1 / |2 s + 1|: the largest value is that at rest."""
    for loop in (Loop(fopdt(2.0, 4.0, 0.0), 1.0, 4.0), Loop(ipdt(0.5, 0.0), 1.0)):
        measures = loop.margins()
        assert measures is not None
        assert measures.mt[0] == 1.0
