"""Joint functions: their values, exact derivatives, and what of them is refused."""

from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.functions.affine import Affine
from designopt_mechanics.functions.closure import Closure, ClosureError
from designopt_mechanics.functions.dyad import dyad
from designopt_mechanics.functions.formula import Formula, FormulaError
from designopt_mechanics.functions.piecewise import Piecewise, polynomial, spline
from scipy.interpolate import CubicSpline, PPoly


def derivatives(function: Any, names: tuple[str, ...]) -> Any:
    """(values of the coordinates) -> value, gradient and Hessian as numbers."""
    q = ca.SX.sym("q", len(names))
    value = ca.SX(function({name: q[i] for i, name in enumerate(names)}))
    gradient = ca.densify(ca.gradient(value, q))
    f = ca.Function("f", [q], [value, gradient, ca.densify(ca.jacobian(gradient, q))])
    return lambda *at: tuple(np.asarray(r, float).squeeze() for r in f(at))


def test_an_affine_function_has_its_slopes_as_gradient_and_no_curvature() -> None:
    value, gradient, hessian = derivatives(Affine({"a": 0.12, "b": -0.242}, 0.3), ("a", "b", "c"))(1.0, 2.0, 9.0)
    assert value == pytest.approx(0.3 + 0.12 - 0.484, rel=1e-15)
    assert gradient.tolist() == [0.12, -0.242, 0.0]
    assert not hessian.any()


# ------------------------------------------------------------------------------------------------------------ splines

X = np.array([-0.3, 0.0, 0.2, 0.7, 1.1, 1.9])
Y = np.array([0.1, 0.0, -0.3, 0.2, 0.4, 0.35])


def test_a_spline_is_scipys_natural_spline_with_its_derivatives_at_knots_and_between() -> None:
    exact = CubicSpline(X, Y, bc_type="natural")
    mine = derivatives(spline("q", X, Y), ("q",))
    for at in [*X, *np.linspace(-0.29, 1.89, 37)]:
        assert np.allclose(mine(at), [exact(at), exact(at, 1), exact(at, 2)], rtol=1e-12, atol=1e-13)


def test_a_spline_of_degree_five_meets_its_points_and_bends_without_kinks() -> None:
    """Natural as the cubic one; its third derivative, which jumps there, is continuous at the knots."""
    quintic = spline("q", X, Y, degree=5)
    at = derivatives(quintic, ("q",))
    assert [at(x)[0] for x in X] == pytest.approx(Y, abs=1e-14)
    assert [at(X[0])[2], at(X[-1])[2]] == pytest.approx([0.0, 0.0], abs=1e-12)
    exact = PPoly(quintic.coefficients, quintic.breaks).derivative(3)
    assert exact(X[1:-1] - 1e-9) == pytest.approx(exact(X[1:-1]), rel=1e-5, abs=1e-5)
    with pytest.raises(ValueError, match="a spline of 'q' has the degree 3 or 5, not 4"):
        spline("q", X, Y, degree=4)


def test_outside_of_its_knots_a_spline_is_nan_or_follows_its_tangent_on_request() -> None:
    strict, tangent = (derivatives(spline("q", X, Y, outside), ("q",)) for outside in ("nan", "linear"))
    exact = CubicSpline(X, Y, bc_type="natural")
    for end, at in ((-0.3, -0.8), (1.9, 2.5)):
        assert np.isnan(strict(at)[0])
        value, slope, curvature = tangent(at)
        assert value == pytest.approx(exact(end) + exact(end, 1) * (at - end), rel=1e-13)
        assert slope == pytest.approx(exact(end, 1), rel=1e-12)
        assert curvature == 0.0
    inside = [abs(a - b) for a, b in zip(tangent(0.4), strict(0.4), strict=True)]
    assert max(inside) < 1e-15


def test_a_polynomial_holds_everywhere() -> None:
    value, slope, curvature = derivatives(polynomial("q", [2.0, 0.0, -1.0, 0.5]), ("q",))(-3.0)
    assert (value, slope, curvature) == (-54.0 + 3.0 + 0.5, 54.0 - 1.0, -36.0)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X[:3], Y[:3], "at least 4 points"),
        (X[:5], Y, "as many x as y; 5 and 6"),
        ([0.0, 1.0, 1.0, 2.0], Y[:4], "abscissae that increase: 1, 1"),
        ([0.0, 1.0, np.nan, 2.0], Y[:4], "finite"),
    ],
)
def test_tables_that_make_no_spline_are_refused(x: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        spline("knee", x, y)


@pytest.mark.parametrize(
    ("coefficients", "what"),
    [
        ([[0.0, 0.0], [1.0, 1.0], [0.0, 1.5]], "value"),
        ([[0.0, 0.0], [1.0, -1.0], [0.0, 1.0]], "slope"),  # a tent, as linear interpolation of a table makes
        ([[1.0, 0.0], [0.0, 2.0], [0.0, 1.0]], "curvature"),
    ],
)
def test_a_function_that_jumps_is_refused_with_what_jumps(coefficients: Any, what: str) -> None:
    with pytest.raises(ValueError, match=f"'q' jumps in its {what} at 1"):
        Piecewise("q", [0.0, 1.0, 2.0], coefficients)


# ----------------------------------------------------------------------------------------------------------- formulas


def test_a_formula_is_what_it_says_with_exact_derivatives() -> None:
    formula = Formula("0.4*hip - 0.7*sin(knee) + hip**2/(1 + knee**2) - pi")
    assert formula.coordinates == ("hip", "knee")
    h, k = 0.3, -0.8
    value, gradient, hessian = derivatives(formula, ("hip", "knee"))(h, k)
    assert value == pytest.approx(0.4 * h - 0.7 * np.sin(k) + h**2 / (1 + k**2) - np.pi, rel=1e-15)
    assert gradient == pytest.approx([0.4 + 2 * h / (1 + k**2), -0.7 * np.cos(k) - 2 * k * h**2 / (1 + k**2) ** 2])
    assert hessian[0, 1] == hessian[1, 0] == pytest.approx(-4 * h * k / (1 + k**2) ** 2)


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("", "not a formula", 0),
        ("2 *", "not a formula", 0),
        ("90 deg + 2*q", "'90 deg': numbers in a formula are in SI units", 0),
        ("1 + sine(q)", "no function 'sine'; did you mean 'sin'?", 4),
        ("sin(q, 2)", "'sin' takes 1 value", 0),
        ("atan2(q)", "'atan2' takes 2 values", 0),
        ("q if q else 1", "numbers, names", 0),
        ("3 + q.real", "numbers, names", 4),
        ("__import__('os')", "no function '__import__'", 0),
        ("'a' * 3", "'a' is not a number", 0),
        ("1e999 + q", "too large", 0),
        ("9" * 400 + "+ q", "too large", 0),
        ("(" * 300 + "q" + ")" * 300, "not a formula", 0),
        ("q+" * 480 + "q", "nested at most 60 deep", 0),
        ("q+" * 600 + "q", "at most 1000 characters", 0),
    ],
)
def test_invalid_formulas_are_refused_with_their_place(text: str, message: str, offset: int) -> None:
    with pytest.raises(FormulaError) as raised:
        Formula(text)
    assert message in raised.value.message
    if "not a formula: too" not in raised.value.message and "(((" not in text:
        assert raised.value.offset == offset


# ------------------------------------------------------------------------------------------------------------- dyads


def test_a_dyad_lies_on_both_circles_on_the_side_that_its_branch_names() -> None:
    a, b = np.array([0.1, -0.2]), np.array([0.5, 0.3])
    for branch in (1, -1):
        point = np.asarray(ca.evalf(dyad(ca.SX(a), ca.SX(b), 0.4, 0.5, branch)), float).ravel()
        assert np.linalg.norm(point - a) == pytest.approx(0.4, rel=1e-14)
        assert np.linalg.norm(point - b) == pytest.approx(0.5, rel=1e-14)
        way, out = b - a, point - a
        assert np.sign(way[0] * out[1] - way[1] * out[0]) == branch


# ------------------------------------------------------------------------------------------------------- loop closures

CRANK, COUPLER, ROCKER, BASE = 0.3, 1.0, 0.8, 0.9


def four_bar(v: Any) -> list[Any]:
    """Crank q, coupler y1 and rocker y2 (absolute angles) of a four-bar close."""
    return [
        CRANK * ca.cos(v["q"]) + COUPLER * ca.cos(v["y1"]) - BASE - ROCKER * ca.cos(v["y2"]),
        CRANK * ca.sin(v["q"]) + COUPLER * ca.sin(v["y1"]) - ROCKER * ca.sin(v["y2"]),
    ]


def closed(**changes: Any) -> Closure:
    settings: dict[str, Any] = {"ranges": [(-4.0, 4.0)], "start": {"y1": 0.8, "y2": 1.5}, "nodes": 41}
    return Closure(("q",), ("y1", "y2"), four_bar, **{**settings, **changes})


def test_a_closure_has_value_and_both_derivatives_of_the_implicit_function_to_round_off() -> None:
    """y' = -phi_y^-1 phi_q and y'' = -phi_y^-1 (phi_qq + 2 phi_qy y' + phi_yy [y', y'])."""
    closure = closed()
    assert closure.condition < 1e3
    f1, f2 = (derivatives(closure.function(n), ("q",)) for n in ("y1", "y2"))
    q, y = ca.SX.sym("q"), ca.SX.sym("y", 2)
    phi = ca.vertcat(*four_bar({"q": q, "y1": y[0], "y2": y[1]}))
    first = -ca.solve(ca.jacobian(phi, y), ca.jacobian(phi, q))
    variables, way = ca.vertcat(q, y), ca.SX.sym("way", 3)
    bent = ca.jtimes(ca.jtimes(phi, variables, way), variables, way)
    exact = ca.Function("exact", [q, y], [phi, first])
    second = ca.Function("second", [q, y, way], [-ca.solve(ca.jacobian(phi, y), bent)])
    for at in np.linspace(-3.99, 3.99, 23):
        (v1, g1, h1), (v2, g2, h2) = f1(at), f2(at)
        residual, slope = (np.asarray(r, float).ravel() for r in exact(at, [v1, v2]))
        curvature = np.asarray(second(at, [v1, v2], [1.0, *slope]), float).ravel()
        assert np.abs(residual).max() < 1e-14
        assert [g1, g2] == pytest.approx(slope, rel=1e-12, abs=1e-13)
        assert [h1, h2] == pytest.approx(curvature, rel=1e-10, abs=1e-11)


def test_outside_of_its_range_a_closure_is_nan() -> None:
    assert np.isnan(derivatives(closed().function("y1"), ("q",))(4.01)[0])


def test_a_closure_of_two_coordinates_holds_over_both_ranges() -> None:
    """y + 0.3 sin y = a + b**2: one unknown, smooth in both."""
    closure = Closure(
        ("a", "b"), ("y",), lambda v: [v["y"] + 0.3 * ca.sin(v["y"]) - v["a"] - v["b"] ** 2],
        ranges=[(-1.0, 1.0), (0.0, 1.0)], start={"y": 0.0}, nodes=14,
    )  # fmt: skip
    f = derivatives(closure.function("y"), ("a", "b"))
    for a, b in ((-0.9, 0.1), (0.33, 0.77), (1.0, 1.0)):
        y, gradient, _ = f(a, b)
        assert y + 0.3 * np.sin(y) == pytest.approx(a + b**2, abs=1e-15)
        assert gradient == pytest.approx(np.array([1.0, 2.0 * b]) / (1.0 + 0.3 * np.cos(y)), rel=1e-13)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start": {"y1": 0.8}}, "start has values for"),
        ({"ranges": [(1.0, 1.0)]}, "the range of 'q' is 1 to 1"),
        ({"ranges": [(-1.0, 1.0)], "at": {"q": 2.0}}, "outside the ranges"),
        ({"nodes": 2}, "at least 4 nodes"),
    ],
)
def test_closures_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        closed(**changes)


def test_a_loop_that_does_not_close_is_refused_with_place_and_residual() -> None:
    def short(v: Any) -> list[Any]:
        return [v["q"] ** 2 + 0.5 + v["y"] ** 2]

    with pytest.raises(ClosureError, match=r"(does not close|singular) at q = "):
        Closure(("q",), ("y",), short, ranges=[(-1.0, 1.0)], start={"y": 0.3})


def test_a_range_that_reaches_a_dead_centre_is_refused() -> None:
    """With a crank of 0.8 the rocker cannot follow all the way round: phi_y is singular at the dead centre."""

    def long_crank(v: Any) -> list[Any]:
        return [
            0.8 * ca.cos(v["q"]) + 0.5 * ca.cos(v["y1"]) - BASE - 0.5 * ca.cos(v["y2"]),
            0.8 * ca.sin(v["q"]) + 0.5 * ca.sin(v["y1"]) - 0.5 * ca.sin(v["y2"]),
        ]

    with pytest.raises(ClosureError, match="q = "):
        Closure(("q",), ("y1", "y2"), long_crank, ranges=[(0.3, 3.0)], start={"y1": -1.6, "y2": 2.0}, at={"q": 0.4})


def test_too_few_nodes_are_reported() -> None:
    with pytest.raises(ClosureError, match="8 nodes are too few for the loop"):
        closed(nodes=8)
