"""The derivative of a run's last state by its first: the variational equation, beside the motion itself."""

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

from designopt.dynamics import SimulationStatus, Simulator, System, Variable


def system(rates, size, guard=None):
    """An autonomous or driven system x' = rates(x, t)."""
    symbols = [ca.SX.sym(n, k) for n, k in zip("xuzpqt", (size, 0, 0, 0, 0, 1), strict=True)]
    labels = list("xuzpqt")
    rhs = ca.Function("rhs", symbols, [rates(symbols[0], symbols[5])], labels, ["xdot"])
    more = {}
    if guard is not None:
        more = {"guards": ("end",), "guard": ca.Function("guard", symbols, [guard(symbols[0])], labels, ["g"])}
    return System("variational", tuple(Variable(f"x{i}", "") for i in range(size)), (), rhs, **more)


def pendulum(x, t):
    return ca.vertcat(x[1], -ca.sin(x[0]) - 0.1 * x[1] + 0.3 * ca.cos(2.0 * t))


@pytest.fixture(scope="module")
def driven():
    return system(pendulum, 2)


@pytest.mark.parametrize("compiled", ["auto", False])
def test_a_linear_system_has_the_matrix_exponential(compiled):
    A = np.array([[0.0, 1.0, 0.0], [-4.0, -0.5, 1.0], [0.0, 0.0, -2000.0]])  # one direction is stiff
    linear = system(lambda x, t: ca.DM(A) @ x, 3)
    run = Simulator(linear, rtol=1e-9, atol=1e-11, compiled=compiled).run(
        [1.0, 0.0, 1.0], [0.0, 0.7, 1.5], transition=True
    )
    assert run.transition == pytest.approx(expm(1.5 * A), abs=1e-6)


@pytest.mark.parametrize("compiled", ["auto", False])
def test_a_driven_pendulum_has_the_differences_of_neighbouring_runs(driven, compiled):
    simulator = Simulator(driven, rtol=1e-10, atol=1e-12, compiled=compiled)
    x0, times, h = np.array([2.0, 0.3]), [0.0, 5.0], 1e-4
    run = simulator.run(x0, times, transition=True)
    for j, unit in enumerate(np.eye(2)):
        ends = [simulator.run(x0 + sign * h * unit, times).x[-1] for sign in (1.0, -1.0)]
        assert run.transition[:, j] == pytest.approx((ends[0] - ends[1]) / (2.0 * h), abs=1e-6)


def test_its_order_is_four(driven):
    """Lobatto IIIC with three stages on steps of fixed length: halving them takes 15/16 of the error away."""
    simulator = Simulator(driven, compiled="auto")
    if not simulator.compiled:
        pytest.skip("fixed steps need a C compiler")
    exact = Simulator(driven, rtol=1e-12, atol=1e-14, max_steps=10**6).run([2.0, 0.3], [0.0, 4.0], transition=True)
    errors = [
        np.abs(simulator.run([2.0, 0.3], [0.0, 4.0], step=h, transition=True).transition - exact.transition).max()
        for h in (0.2, 0.1, 0.05)
    ]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx([4.0, 4.0], abs=0.5)


def test_asking_for_it_does_not_change_the_motion(driven):
    simulator = Simulator(driven)
    plain, with_transition = (
        simulator.run([2.0, 0.3], [0.0, 1.0, 5.0], transition=transition) for transition in (False, True)
    )
    assert plain.transition is None
    if simulator.compiled:
        assert np.array_equal(plain.x, with_transition.x)
        assert plain.steps == with_transition.steps


@pytest.mark.parametrize("compiled", ["auto", False])
def test_a_run_that_ends_early_has_none(compiled):
    falling = system(lambda x, t: -ca.DM.ones(1), 1, guard=lambda x: x[0])
    run = Simulator(falling, compiled=compiled).run([1.0], [0.0, 2.0], transition=True)
    assert run.status is SimulationStatus.GUARD
    assert run.transition is None
