"""What a simulator accepts and refuses."""

import casadi as ca
import numpy as np
import pytest

from designopt.dynamics import Simulator, System, Variable


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "euler"}, "method must be one of auto, rosenbrock4, lsoda, not 'euler'"),
        ({"rtol": 0.0}, "rtol must be positive"),
        ({"atol": [1e-6, 1e-6, 1e-6]}, r"atol is a number or has shape \(2,\)"),
        ({"atol": np.nan}, "atol must be positive and finite"),
        ({"max_steps": 0}, "max_steps must be at least 1, not 0"),
        ({"compiled": "yes"}, "compiled must be 'auto', True or False"),
        ({"method": "lsoda", "compiled": True}, "runs interpreted"),
    ],
)
def test_settings_that_make_no_sense_are_refused(smooth, settings, message):
    with pytest.raises(ValueError, match=message):
        Simulator(smooth, **settings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x0": [1.0]}, "states have shape"),
        ({"x0": {"a": 1.0, "b": np.inf}}, "b is inf"),
        ({"times": [0.0]}, "at least two"),
        ({"times": [0.0, 0.0]}, "each larger"),
        ({"times": [0.0, np.nan]}, "finite"),
        ({"p": ()}, "parameters have shape"),
        ({"q": [1.0]}, "data have shape"),
        ({"u": [1.0]}, "controls have shape"),
        ({"first_step": 0.0}, "first_step must be a positive duration, not 0.0"),
        ({"step": -1.0}, "step must be a positive duration, not -1.0"),
        ({"step": 0.1}, "needs a Rosenbrock method"),
    ],
)
def test_input_that_makes_no_sense_is_refused(smooth, arguments, message):
    simulator = Simulator(smooth, compiled=False)
    with pytest.raises(ValueError, match=message):
        simulator.run(**{"x0": [0.25, 0.0625], "times": [0.0, 1.0], "p": [3.0], **arguments})


def test_a_system_with_algebraic_variables_is_refused():
    arguments = [ca.SX.sym(n, size) for n, size in zip("xuzpqt", (1, 0, 1, 0, 0, 1), strict=True)]
    function = ca.Function("f", arguments, [arguments[2] - arguments[0]], list("xuzpqt"), ["r"])
    table = (Variable("z", ""),)
    system = System("dae", (Variable("x", ""),), (), function, algebraic=table, algebraic_residual=function)
    with pytest.raises(ValueError, match="algebraic variables"):
        Simulator(system)


@pytest.mark.parametrize("compiled", ["auto", False])
def test_controls_parameters_and_data_reach_their_places(compiled):
    x, u, k, d = (ca.SX.sym(n) for n in "xukd")
    system = System.from_expressions(
        "places",
        states=[(Variable("x", ""), x, u + 10 * k + 100 * d)],
        controls=[(Variable("u", ""), u)],
        parameters=[(Variable("k", ""), k)],
        data=[(Variable("d", ""), d)],
        outputs=[(Variable("y", ""), u - k)],
    )
    run = Simulator(system, compiled=compiled).run([0.0], [0.0, 1.0], u=[1], p=[2], q=[3])
    assert run.x[-1, 0] == pytest.approx(321.0, rel=1e-9)
    assert run.y[-1, 0] == -1.0


@pytest.mark.parametrize("compiled", ["auto", False])
def test_a_system_with_a_look_up_table_runs(compiled):
    """x' = table(t), a spline through t^2: the operations are not scalar expressions."""
    knots = np.linspace(0.0, 2.0, 9)
    table = ca.interpolant("table", "bspline", [knots], knots**2)
    arguments = [ca.MX.sym(n, size) for n, size in zip("xuzpqt", (1, 0, 0, 1, 0, 1), strict=True)]
    x, _, _, p, _, t = arguments
    rhs = ca.Function("rhs", arguments, [p * table(t) - x], list("xuzpqt"), ["xdot"])
    system = System("look_up", (Variable("x", ""),), (Variable("p", ""),), rhs)
    run = Simulator(system, rtol=1e-9, atol=1e-11, compiled=compiled).run([2.0], [0.0, 1.5], p=[1.0])
    assert run.x[-1, 0] == pytest.approx(1.5**2 - 2 * 1.5 + 2, abs=1e-7)  # x = t^2 - 2 t + 2


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("n", [1, 7, 40])
def test_linear_systems_of_any_size(n):
    """Against the matrix exponential; the rows are permuted so that elimination must exchange rows."""
    from scipy.linalg import expm

    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))[rng.permutation(n)] - 3.0 * np.eye(n)
    x = [ca.SX.sym(f"x{i}") for i in range(n)]
    rates = ca.vertsplit(ca.DM(A) @ ca.vertcat(*x))
    system = System.from_expressions(f"linear{n}", states=[(Variable(f"x{i}", ""), x[i], rates[i]) for i in range(n)])
    start = rng.normal(size=n)
    run = Simulator(system, "rosenbrock4", rtol=1e-9, atol=1e-11).run(start, [0.0, 1.0])
    assert run.x[-1] == pytest.approx(expm(A) @ start, rel=1e-6, abs=1e-8)
