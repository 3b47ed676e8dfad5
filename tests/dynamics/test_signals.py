"""Measured signals as inputs of simulations, compiled and interpreted, in explicit and in residual form."""

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from designopt.dynamics import SimulationStatus, Simulator, System, Variable, Vector
from designopt.dynamics.signals import Signal, SignalTable
from designopt.dynamics.simulation import functions
from designopt.dynamics.simulation.tableau import METHODS

KNOTS = np.linspace(0.0, 2.0, 9)
PUSH = Signal(KNOTS, np.cos(3.0 * KNOTS))
STIFFNESS = Signal(np.linspace(-0.5, 2.5, 13), 4.0 + np.sin(np.linspace(-0.5, 2.5, 13)))


def oscillator(residual):
    """A mass on a spring whose stiffness is measured, pushed by a measured force; damping and mass are given."""
    x, v, a, push, k, c, m = (ca.SX.sym(n) for n in ("x", "v", "a", "push", "k", "c", "m"))
    force = push - k * x - c * v
    unknown = {"unknowns": [(Variable("a", ""), a, m * (1 + x**2) * a - force)]} if residual else {}
    return System.from_expressions(
        "measured",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, a if residual else force / (m * (1 + x**2)))],
        controls=[(Variable("push", "N"), push)],
        data=[(Variable("k", "N/m"), k), (Variable("c", "N s/m"), c)],
        parameters=[(Variable("m", "kg"), m)],
        outputs=[(Variable("elastic", "N"), k * x), (Variable("push_now", "N"), push)],
        **unknown,
    )


def reference(times):
    def rates(t, y):
        push, k = PUSH._spline(t), STIFFNESS._spline(t)
        return [y[1], (push - k * y[0] - 0.3 * y[1]) / (1.5 * (1 + y[0] ** 2))]

    return solve_ivp(rates, (0.0, 2.0), [0.2, 0.0], "DOP853", times, rtol=1e-12, atol=1e-13, max_step=0.05).y.T


FORMS = pytest.mark.parametrize(
    ("residual", "few"), [(False, 9), (True, 9), (True, 0)], ids=["explicit", "written out", "factored in loops"]
)


@FORMS
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "interpreted"])
def test_the_motion_under_signals_is_that_of_an_independent_integrator(request, monkeypatch, residual, few, compiled):
    if compiled:
        request.getfixturevalue("compiler")
    monkeypatch.setattr(functions, "FEW_UNKNOWNS", few)
    simulator = Simulator(oscillator(residual), rtol=1e-9, atol=1e-11, compiled=compiled, signals=["push", "k"])
    times = np.linspace(0.0, 2.0, 33)
    run = simulator.run([0.2, 0.0], times, p=[1.5], q={"c": 0.3}, signals={"push": PUSH, "k": STIFFNESS})
    assert run.status is SimulationStatus.DONE
    np.testing.assert_allclose(run.x, reference(times), atol=2e-7)
    np.testing.assert_allclose(run.y[:, 1], PUSH.at(times), atol=1e-12)
    np.testing.assert_allclose(run.y[:, 0], STIFFNESS.at(times) * run.x[:, 0], atol=1e-12)


@FORMS
@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_convergence_holds_under_signals(compiler, monkeypatch, residual, few, method):
    """The steps end at the knots; without the rates of the signals in df/dt the order would fall."""
    monkeypatch.setattr(functions, "FEW_UNKNOWNS", few)
    simulator = Simulator(oscillator(residual), method, signals=["push", "k"])
    signals = {"push": PUSH, "k": Signal(KNOTS, 4.0 + np.sin(KNOTS))}

    def end(step):
        return simulator.run([0.2, 0.0], [0.0, 2.0], p=[1.5], q={"c": 0.3}, signals=signals, step=step).x[-1]

    exact = end(2.0**-11)
    errors = [np.abs(end(2.0**-k) - exact).max() for k in range(4, 7)]
    assert np.log2(errors[-2] / errors[-1]) == pytest.approx(METHODS[method].order, abs=0.35)


def test_a_table_drives_a_vector_and_short_signals_are_lines(compiler):
    x, w = ca.SX.sym("x"), ca.SX.sym("w", 2)
    wind = Vector("wind", ("gust", "breeze"), "m/s")
    system = System.from_expressions("blown", states=[(Variable("x", "m"), x, w[0] - 2 * w[1])], data=[(wind, w)])
    table = SignalTable([0.0, 1.0], [[1.0, 0.0], [3.0, 1.0]], ("gust", "breeze"))
    simulator = Simulator(system, signals=["wind"])
    assert simulator.signals == ("wind_gust", "wind_breeze")
    run = simulator.run([0.0], [0.0, 0.5, 1.0], signals={"wind": table})
    np.testing.assert_allclose(run.x[:, 0], [0.0, 0.5, 1.0], atol=1e-12)  # 1 + 2 t - 2 t
    signal_table = SignalTable([0.0, 1.0], [[1.0, 0.0], [3.0, 1.0]], ("wind_gust", "wind_breeze"))
    assert simulator.run([0.0], [0.0, 1.0], signals=signal_table).x[-1, 0] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("names", "signals", "message"),
    [
        (["pusch"], {}, "system 'measured': the signal 'pusch' is not a control or data entry; known: push, k, c"),
        (["k", "k"], {}, "the signal 'k' is named twice"),
        (["push"], {}, "measured: no signal for 'push'"),
        (["push"], {"push": PUSH, "k": PUSH}, "'k' is not among the simulator's signals: push"),
        (
            ["push"],
            {"push": Signal([0.0, 1.0], [0.0, 1.0])},
            "measured: push: the signal is defined from 0 to 1, not from 0",
        ),
        (
            ["push"],
            {"push": Signal([0.0, 1.0], [0.0, 1.0], of_duration=True)},
            "the signal of push is defined over a fraction",
        ),
    ],
)
def test_signals_that_do_not_fit_are_reported(names, signals, message):
    with pytest.raises(ValueError, match=message):
        Simulator(oscillator(False), compiled=False, signals=names).run(
            [0.0, 0.0], [0.0, 2.0], p=[1.0], q={"k": 1.0, "c": 0.1}, signals=signals
        )


def test_a_problem_of_collocation_follows_the_same_signals(compiler):
    from designopt.collocation import Options, Phase, Program, TrajectoryProblem

    system = oscillator(True)
    phase = Phase(
        system, tf=2.0, initial={"x": 0.2, "v": 0.0}, bounds={"push": (0.5, 0.5)}, data={"k": STIFFNESS, "c": 0.3}
    )
    problem = TrajectoryProblem([phase], lambda e: 0.0 * e.final["x"], parameters={"m": 1.5})
    solution = Program(problem, Options(scheme="radau", degree=5, intervals=24)).solve()
    simulator = Simulator(system, rtol=1e-10, atol=1e-12, signals=["k"])
    run = simulator.run([0.2, 0.0], [0.0, 2.0], p=[1.5], q={"c": 0.3}, u=[0.5], signals={"k": STIFFNESS})
    assert solution.phase.values["x"][-1] == pytest.approx(run.x[-1, 0], abs=1e-6)


def test_the_slope_of_a_signal_is_its_derivative_and_that_of_its_ends_beyond_them():
    """A cubic spline reproduces t^3 - 2 t."""
    times = np.linspace(0.0, 2.0, 9)
    signal = Signal(times, times**3 - 2.0 * times)
    np.testing.assert_allclose(signal.slope([0.0, 0.7, 2.0]), [-2.0, 3.0 * 0.49 - 2.0, 10.0], atol=1e-12)
    np.testing.assert_allclose(signal.slope([-0.5, 2.5]), [-2.0, 10.0], atol=1e-12)
