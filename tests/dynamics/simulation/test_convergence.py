"""Orders of convergence, by fixed steps on problems with known solutions."""

import casadi as ca
import numpy as np
import pytest

from designopt.dynamics import Simulator, System, Variable
from designopt.dynamics.simulation.tableau import METHODS

METHOD = pytest.mark.parametrize("method", METHODS)

pytestmark = pytest.mark.usefixtures("compiler")


def observed_orders(errors):
    return np.log2(np.array(errors[:-1]) / np.array(errors[1:]))


@METHOD
def test_order_on_a_nonlinear_problem_with_explicit_time(smooth, smooth_exact, method):
    simulator = Simulator(smooth, method)
    runs = [simulator.run([0.25, 0.0625], [0, 2], p=[3.0], step=2.0**-k) for k in range(4, 9)]
    orders = observed_orders([np.abs(run.x[-1] - smooth_exact([2.0])[0]).max() for run in runs])
    assert orders[-1] == pytest.approx(METHODS[method].order, abs=0.1)
    assert [run.steps for run in runs] == [32, 64, 128, 256, 512]


@METHOD
def test_order_of_the_solution_between_the_steps(smooth, smooth_exact, method):
    """A solution in between of order q has a local error of order q + 1, so the samples converge with that."""
    simulator = Simulator(smooth, method)
    times = np.linspace(0.0, 2.0, 614)
    errors = []
    for k in range(4, 9):
        run = simulator.run([0.25, 0.0625], times, p=[3.0], step=2.0**-k)
        errors.append(np.abs(run.x - smooth_exact(times)).max())
    assert observed_orders(errors)[-1] == pytest.approx(METHODS[method].dense_order + 1, abs=0.15)


@METHOD
def test_order_falls_to_one_on_a_very_stiff_problem_with_an_error_that_stiffness_makes_small(prothero_robinson, method):
    """h times stiffness is 4e5 to 6e6: stage order 1 leaves order 1, of an error of about h / stiffness.

    Stiffly accurate methods land on the solution as the stiffness grows (Hairer & Wanner 1996, section IV.15).
    """
    simulator = Simulator(prothero_robinson, method)
    errors = []
    for k in range(4, 9):
        run = simulator.run([0.0], [0.0, 2.0], p=[1e8], step=2.0**-k)
        errors.append(abs(run.x[-1, 0] - np.sin(2.0)))
    assert observed_orders(errors)[-1] == pytest.approx(1.0, abs=0.15)
    assert errors[0] < 2.0**-4 / 1e8


@METHOD
def test_mildly_stiff_steps_regain_the_full_order(prothero_robinson, method):
    simulator = Simulator(prothero_robinson, method)
    errors = [abs(simulator.run([0.0], [0.0, 2.0], p=[5.0], step=2.0**-k).x[-1, 0] - np.sin(2.0)) for k in range(6, 9)]
    assert observed_orders(errors)[-1] == pytest.approx(METHODS[method].order, abs=0.15)


@METHOD
def test_time_as_a_state_gives_the_same_numbers(method):
    """Only an exact df/dt makes the two forms one method: leave it out and they differ at first order."""
    x, clock, t = ca.SX.sym("x"), ca.SX.sym("clock"), ca.SX.sym("t")

    def rate(time):
        return -50.0 * (x - ca.cos(3 * time)) * (1 + x**2 * time) + ca.sin(time * x)

    state = (Variable("x", ""), x)
    with_time = System.from_expressions("with_time", states=[(*state, rate(t))], time=t)
    autonomous = System.from_expressions(
        "autonomous", states=[(*state, rate(clock)), (Variable("clock", "s"), clock, ca.SX(1))]
    )
    times = np.linspace(0.0, 3.0, 17)
    one = Simulator(with_time, method).run([0.5], times, step=0.01)
    autonomous_run = Simulator(autonomous, method).run([0.5, 0.0], times, step=0.01)
    assert np.abs(one.x[:, 0] - autonomous_run.x[:, 0]).max() < 1e-12


@METHOD
def test_fixed_steps_end_exactly_where_asked(smooth, method):
    run = Simulator(smooth, method).run([0.25, 0.0625], [0.0, 0.55, 1.05], p=[3.0], step=0.1)
    assert run.t.tolist() == [0.0, 0.55, 1.05]
    assert run.steps == 11
    assert run.rejected == 0


@METHOD
def test_a_step_does_not_depend_on_the_order_of_the_states(compiler, method):
    """The first diagonal entry of the matrix of a step, 1 / (h gamma) - J_11, is 1e-13: no pivot to divide by."""
    h, x, y = 0.1, ca.SX.sym("x"), ca.SX.sym("y")
    rate = (1.0 + 1e-14) / (h * METHODS[method].gamma)
    states = [(Variable("x", ""), x, rate * x + y), (Variable("y", ""), y, -3.0 * x - 0.5 * y)]
    ends = []
    for order in (1, -1):
        system = System.from_expressions("pair", states=states[::order])
        simulator = Simulator(system, method)
        ends.append(simulator.run([1.0, 2.0][::order], [0.0, h], step=h).x[-1][::order])
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-10)
