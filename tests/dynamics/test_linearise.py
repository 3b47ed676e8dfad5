"""Exact linearisation."""

import casadi as ca
import numpy as np
import pytest

from designopt.dynamics import System, Variable, linearise


def cart(algebraic):
    """A mass on a spring with a force u and data q (friction); as `algebraic` the acceleration is a variable z."""
    x, u, z, p, q, t = (ca.SX.sym(n, size) for n, size in zip("xuzpqt", (2, 1, int(algebraic), 2, 1, 1), strict=True))
    acceleration = (u - p[0] * ca.sin(x[0]) - q * x[1] ** 3) / p[1]
    arguments, names = [x, u, z, p, q, t], list("xuzpqt")
    second = z if algebraic else acceleration
    extra = {}
    if algebraic:
        residual = ca.Function("residual", arguments, [p[1] * (z - acceleration)], names, ["r"])
        extra = {"algebraic": (Variable("acceleration", "m/s^2"),), "algebraic_residual": residual}
    return System(
        name="cart",
        states=(Variable("place", "m"), Variable("speed", "m/s")),
        controls=(Variable("force", "N"),),
        parameters=(Variable("stiffness", "N/m"), Variable("mass", "kg")),
        data=(Variable("friction", "N s^3/m^3"),),
        rhs=ca.Function("rhs", arguments, [ca.vertcat(x[1], second)], names, ["xdot"]),
        outputs=(Variable("felt", "m/s^2"),),
        output=ca.Function("output", arguments, [second + x[0]], names, ["y"]),
        **extra,
    )


@pytest.mark.parametrize("algebraic", [False, True])
def test_derivatives_are_those_by_hand(algebraic):
    position, speed, force, k, m, d = 0.3, -0.7, 2.0, 5.0, 1.5, 0.4
    acceleration = (force - k * np.sin(position) - d * speed**3) / m
    linearisation = linearise(
        cart(algebraic),
        {"place": position, "speed": speed},
        u=[force],
        z=[acceleration] if algebraic else (),
        p={"mass": m, "stiffness": k},
        q=[d],
    )
    by_place, by_speed = -k * np.cos(position) / m, -3 * d * speed**2 / m
    assert linearisation.rates == pytest.approx([speed, acceleration])
    np.testing.assert_allclose(linearisation.A, np.array([[0, 1], [by_place, by_speed]]), atol=1e-14)
    np.testing.assert_allclose(linearisation.B, np.array([[0], [1 / m]]), atol=1e-14)
    np.testing.assert_allclose(linearisation.C, np.array([[by_place + 1, by_speed]]), atol=1e-14)
    np.testing.assert_allclose(linearisation.D, np.array([[1 / m]]), atol=1e-14)
    np.testing.assert_allclose(
        linearisation.P, np.array([[0, 0], [-np.sin(position) / m, -acceleration / m]]), atol=1e-14
    )
    np.testing.assert_allclose(linearisation.Q, np.array([[0], [-(speed**3) / m]]), atol=1e-14)


def test_an_unknown_rate_moves_with_the_point_in_states_and_outputs():
    """M(x) a = u - k sin(x) - d v^3 in residual form, with a in the output: as with a solved by hand."""
    x, v, a, u, k, d = (ca.SX.sym(n) for n in "xvaukd")
    mass, force = 1.5 + x**2, u - k * ca.sin(x) - d * v**3

    def stated(rate, **more):
        return System.from_expressions(
            "cart",
            states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, rate)],
            controls=[(Variable("u", "N"), u)],
            parameters=[(Variable("k", "N"), k)],
            data=[(Variable("d", "N s^3/m^3"), d)],
            outputs=[(Variable("felt", ""), rate + x * u)],
            **more,
        )

    implicit = stated(a, unknowns=[(Variable("a", "m/s^2"), a, mass * a - force)])
    linearisation, expected = (
        linearise(s, [0.3, -0.7], u=[2.0], p=[5.0], q=[0.4]) for s in (implicit, stated(force / mass))
    )
    for name in "ABCDPQ":
        np.testing.assert_allclose(getattr(linearisation, name), getattr(expected, name), rtol=1e-12, atol=1e-13)
    assert linearisation.rates == pytest.approx(expected.rates)


def test_a_system_without_controls_and_outputs_has_empty_matrices(van_der_pol):
    linearisation = linearise(van_der_pol, [1.0, 0.0], p=[0.5])
    np.testing.assert_allclose(linearisation.A, np.array([[0, 1], [-2, 0]]), atol=1e-14)
    assert linearisation.B.shape == (2, 0)
    assert linearisation.C.shape == (0, 2)


def test_a_point_without_derivatives_is_refused():
    x = ca.SX.sym("x")
    root = System.from_expressions("root", states=[(Variable("x", ""), x, ca.sqrt(x))])
    with pytest.raises(ValueError, match="not finite"):
        linearise(root, [0.0])
