"""How runs end: guards, limits, singular and undefined systems. The same for compiled and interpreted runs."""

import casadi as ca
import numpy as np
import pytest

from designopt.dynamics import SimulationStatus, Simulator, System, Variable
from designopt.dynamics.compile import find_compiler

WAYS = ["rosenbrock4", "lsoda"]


@pytest.fixture(params=WAYS)
def way(request):
    if request.param != "lsoda" and find_compiler() is None:
        pytest.skip("no C compiler: Rosenbrock methods run compiled only")
    return request.param


def one_state(name, rate, time=None, guards=None):
    x = ca.SX.sym("x")
    return System.from_expressions(
        name, states=[(Variable("x", ""), x, rate(x))], time=time, guards=guards and guards(x)
    )


def test_a_guard_ends_the_run_where_it_reaches_zero(falling, way):
    run = Simulator(falling, way).run([1.0, 0.0], np.linspace(0.0, 2.0, 21), p={"gravity": 9.81, "limit": 1e3})
    landing = np.sqrt(2 / 9.81)
    assert run.status is SimulationStatus.GUARD
    assert run.guard == "ground"
    assert run.t[-1] == pytest.approx(landing, abs=1e-7)
    assert run.t[:-1] == pytest.approx(np.arange(0.0, landing, 0.1))
    assert 0.0 <= run.x[-1, 0] < 1e-6
    assert run.x[:, 0] == pytest.approx(1 - 9.81 * run.t**2 / 2, abs=1e-6)
    assert run.y[:, 0] == pytest.approx(9.81, abs=1e-5)
    assert "ground" in run.message
    assert "height" in run.message


def test_the_guard_that_closes_first_is_named(falling, way):
    run = Simulator(falling, way).run([1.0, 0.0], [0.0, 2.0], p={"gravity": 9.81, "limit": 2.0})
    assert run.guard == "fast"
    assert run.t[-1] == pytest.approx(2.0 / 9.81, abs=1e-7)


def test_a_guard_closed_at_the_start_ends_the_run_there(falling, way):
    run = Simulator(falling, way).run([0.0, 0.0], [0.0, 2.0], p=[9.81, 1e3])
    assert run.status is SimulationStatus.GUARD
    assert run.t.tolist() == [0.0]
    assert run.x.tolist() == [[0.0, 0.0]]
    assert run.steps == 0


def test_a_guard_comes_before_the_undefined_region_behind_it(way):
    """x' = -1 / sqrt(x) from 1 reaches 0 at t = 2/3, where it has no value any more; the guard stands at 0.01."""
    system = one_state("collapse", lambda x: -1 / ca.sqrt(x), guards=lambda x: {"small": x - 0.01})
    run = Simulator(system, way).run([1.0], [0.0, 5.0])
    assert run.status is SimulationStatus.GUARD
    assert run.t[-1] == pytest.approx(2 / 3 * (1 - 1e-3), abs=1e-5)


def test_a_guard_that_a_run_meets_and_leaves_between_stages_costs_steps_only(compiler):
    """Stages reach far over the turning point of a stiff motion; a guard just outside of the motion must stay open."""
    t = ca.SX.sym("t")
    system = one_state("near", lambda x: -1e5 * (x - ca.sin(t)), time=t, guards=lambda x: {"above": 1.0002 - x})
    run = Simulator(system, "rosenbrock4", rtol=1e-6, atol=1e-6).run([0.0], [0.0, 10.0])
    assert run.status is SimulationStatus.DONE
    assert run.x[-1, 0] == pytest.approx(np.sin(10.0), abs=1e-4)


def test_the_step_limit_ends_a_run(van_der_pol, way):
    run = Simulator(van_der_pol, way, max_steps=25).run([2.0, 0.0], np.linspace(0, 2, 2001), p=[1e-6])
    assert run.status is SimulationStatus.STEP_LIMIT
    assert run.steps + run.rejected == 25
    assert 0.0 < run.t[-1] < 2.0
    assert len(run.t) == len(run.x)
    assert "allow more steps" in run.message


def test_a_start_outside_of_the_system_is_nonfinite(way):
    run = Simulator(one_state("root", lambda x: -ca.sqrt(x)), way).run([-1.0], [0.0, 1.0])
    assert run.status is SimulationStatus.NONFINITE
    assert run.t.tolist() == [0.0]
    assert "x = -1" in run.message


def test_a_system_that_ends_is_nonfinite_at_its_end(way):
    t = ca.SX.sym("t")
    system = one_state("ends", lambda x: -x + ca.sqrt(1 - t), time=t)
    run = Simulator(system, way).run([1.0], [0.0, 0.5, 2.0])
    assert run.status in (SimulationStatus.NONFINITE, SimulationStatus.STEP_TOO_SMALL)
    assert run.t[-1] == pytest.approx(1.0, abs=1e-3)
    assert np.isfinite(run.x).all()


def test_a_blow_up_ends_at_its_time(way):
    """x = 1/sqrt(1 - t)."""
    run = Simulator(one_state("blow_up", lambda x: x**3 / 2), way).run([1.0], [0.0, 0.5, 2.0])
    assert run.status in (SimulationStatus.STEP_TOO_SMALL, SimulationStatus.NONFINITE)
    assert run.t[-1] == pytest.approx(1.0, abs=1e-3)
    assert run.x[1, 0] == pytest.approx(np.sqrt(2.0), rel=1e-4)


@pytest.mark.parametrize("method", ["rosenbrock4"])
def test_steps_below_the_resolution_of_time_are_not_taken(compiler, method):
    """At t = 1e17 s neighbouring numbers are 16 s apart; growth within seconds cannot be followed there."""
    simulator = Simulator(one_state("grows", lambda x: x), method)
    for step in (None, 1.0):
        run = simulator.run([1.0], [1e17, 1e17 + 1e5], step=step)
        assert run.status is SimulationStatus.STEP_TOO_SMALL
        assert "larger" in run.message
        assert run.steps == 0


def test_fixed_steps_into_an_undefined_region_are_nonfinite(compiler):
    run = Simulator(one_state("root", lambda x: -ca.sqrt(x) - 1), "rosenbrock4").run([1.0], [0.0, 5.0], step=0.1)
    assert run.status is SimulationStatus.NONFINITE
    assert 0.0 < run.t[-1] < 1.0


def test_every_status_says_a_sentence():
    for status in SimulationStatus:
        assert status.value.endswith(".")
