"""Errors fall with the order of the scheme, and equivalent forms of a scheme reach the same optimum."""

import math
from typing import get_args

import benchmark_problems as problems
import numpy as np
import pytest

from designopt.collocation import Guess, Integral, Options, Phase, Program, TrajectoryProblem
from designopt.collocation.statement.mesh import SCHEMES, SchemeName

#: Well below the errors that are measured.
EXACT = {"tolerance": 1e-11}


@pytest.fixture(scope="module")
def finest():
    """The cart-pole with radau 8 on 60 intervals: 16 digits would need more, 12 agree with radau 5 on 80."""
    return Program(problems.cart_pole(), Options(scheme="radau", degree=8, intervals=60, **EXACT)).solve()


def slope(coarse, fine, ratio):
    return math.log(coarse / fine) / math.log(ratio)


def test_every_scheme_that_options_name_can_be_made():
    assert tuple(SCHEMES) == get_args(SchemeName)
    assert [make(3, False, False).name for make in SCHEMES.values()] == [*SCHEMES]


def test_schemes_without_an_equation_at_the_left_end_damp_stiff_parts():
    """Radau IIA has R(inf) = 0, Lobatto IIIA |R(inf)| = 1 (Hairer and Wanner, Solving ODE II, 1996, section IV.5)."""
    schemes = [make(degree, linear, differential) for make in SCHEMES.values() for degree in (1, 4, 9)
               for linear in (False, True) for differential in (False, True)]  # fmt: skip
    assert all(scheme.damps_stiff_parts == (scheme.name == "radau") for scheme in schemes)
    free = {scheme.name for scheme in schemes if scheme.has_free_midpoints}
    assert free == {"hermite_simpson"}
    assert not SCHEMES["hermite_simpson"](3, True, False).has_free_midpoints


# between meshes that resolve the motion and errors above 1e-12
CART_POLE = {
    "trapezoidal": ({"scheme": "trapezoidal"}, (40, 80, 160), 1.7, 2.3),
    "hermite_simpson": ({"scheme": "hermite_simpson"}, (40, 80, 160), 3.5, math.inf),
    "hermite_simpson linear": ({"scheme": "hermite_simpson", "midpoint_control": "linear"}, (40, 80, 160), 3.5, 4.5),
    "radau 2": ({"scheme": "radau", "degree": 2}, (40, 80, 160), 2.0, math.inf),
    "radau 3": ({"scheme": "radau", "degree": 3}, (40, 80), 4.0, math.inf),
    "radau 4": ({"scheme": "radau", "degree": 4}, (20, 40), 6.0, math.inf),
    "radau 5": ({"scheme": "radau", "degree": 5}, (20, 40), 8.0, math.inf),
    "radau 6": ({"scheme": "radau", "degree": 6}, (20, 40), 10.0, math.inf),
}


@pytest.mark.parametrize(("options", "meshes", "least", "most"), CART_POLE.values(), ids=CART_POLE)
def test_the_error_of_the_cart_pole_falls_with_the_order_of_the_scheme(finest, options, meshes, least, most):
    guess = Guess.from_solution(finest)
    errors = [
        abs(Program(problems.cart_pole(), Options(intervals=n, **options, **EXACT)).solve(guess=guess).objective
            - finest.objective)
        for n in meshes
    ]  # fmt: skip

    assert finest.objective == pytest.approx(58.80766746, rel=1e-10)
    assert least <= slope(errors[0], errors[-1], meshes[-1] / meshes[0]) <= most


def regulated(duration=2.0):
    """x' = x + u from 1, min int x^2 + u^2: the linear-quadratic regulator (Kalman 1960) with a known Riccati function.

    With s = sqrt 2: J = 1 / (s coth(s T) - 1), x(t) = r(T - t) / r(T), r(a) = s cosh(s a) - sinh(s a).
    """
    phase = Phase(
        problems.system("plant", {"x": lambda s: s["x"] + s["u"]}, ["u"]),
        tf=duration,
        initial={"x": 1.0},
        integrals={"cost": Integral(lambda v: v["x"] ** 2 + v["u"] ** 2)},
    )
    s = math.sqrt(2.0)

    def trajectory(t):
        return s * np.cosh(s * (duration - t)) - np.sinh(s * (duration - t))

    problem = TrajectoryProblem([phase], cost=lambda e: e.integral["cost"])
    return problem, 1.0 / (s / math.tanh(s * duration) - 1.0), lambda t: trajectory(t) / trajectory(0.0)


ANALYTIC = {
    "trapezoidal": ({"scheme": "trapezoidal"}, (20, 40), 2),
    "hermite_simpson": ({"scheme": "hermite_simpson"}, (10, 20), 4),
    "hermite_simpson linear": ({"scheme": "hermite_simpson", "midpoint_control": "linear"}, (10, 20), 4),
    "radau 1": ({"scheme": "radau", "degree": 1}, (160, 320), 1),
    "radau 2": ({"scheme": "radau", "degree": 2}, (20, 40), 3),
    "radau 3": ({"scheme": "radau", "degree": 3}, (5, 10), 5),
    "radau 4": ({"scheme": "radau", "degree": 4}, (3, 6), 7),
}


@pytest.mark.parametrize(("options", "meshes", "order"), ANALYTIC.values(), ids=ANALYTIC)
def test_the_error_of_a_regulator_falls_with_the_order_of_the_scheme(options, meshes, order):
    problem, optimum, trajectory = regulated()
    of_cost, of_nodes = [], []
    for intervals in meshes:
        solution = Program(problem, Options(intervals=intervals, **options, **EXACT)).solve()
        motion = solution.phase
        nodes = motion.mesh.bases
        of_cost.append(abs(solution.objective - optimum))
        of_nodes.append(np.abs(motion.values["x"][nodes] - trajectory(motion.times[nodes])).max())

    assert slope(*of_cost, 2.0) == pytest.approx(order, abs=0.3)
    assert slope(*of_nodes, 2.0) > order - 0.5


@pytest.mark.parametrize("degree", [2, 5])
@pytest.mark.parametrize("problem", [problems.damped_start, problems.cart_pole, problems.linear_tangent])
def test_integral_and_differential_radau_forms_reach_the_same_optimum(problem, degree):
    integral, differential = (
        Program(problem(), Options(scheme="radau", degree=degree, intervals=40, defects=form)).solve()
        for form in ("integral", "differential")
    )

    assert integral.success
    assert differential.objective == pytest.approx(integral.objective, rel=1e-8)
    assert differential.parameters == pytest.approx(integral.parameters, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "factor"),
    [
        ({"scheme": "hermite_simpson"}, lambda z: (1 + z / 2 + z**2 / 12) / (1 - z / 2 + z**2 / 12)),
        (
            {"scheme": "radau", "degree": 3},
            lambda z: (1 + 2 * z / 5 + z**2 / 20) / (1 - 3 * z / 5 + 3 * z**2 / 20 - z**3 / 60),
        ),
    ],
    ids=["hermite_simpson", "radau"],
)
def test_stiff_parts_that_the_mesh_does_not_resolve_follow_the_stability_function(options, factor):
    """x' = z x from 1 on unit intervals (Hairer and Wanner, Solving ODE II, 1996, section IV.5): Lobatto IIIA does not
    damp them, and has -1/2 at the midpoint, Radau IIA does."""
    z = -200.0
    phase = Phase(
        problems.system("stiff", {"x": lambda s: z * s["x"] + 0.0 * s["u"]}, ["u"]),
        tf=3.0,
        initial={"x": 1.0},
        integrals={"cost": Integral(lambda v: v["u"] ** 2)},
    )
    problem = TrajectoryProblem([phase], cost=lambda e: e.integral["cost"])
    phase_solution = Program(problem, Options(intervals=3, **options)).solve().phase
    x = phase_solution.values["x"]
    assert x[phase_solution.mesh.bases] == pytest.approx(factor(z) ** np.arange(4), abs=1e-7)
    if options["scheme"] == "hermite_simpson":
        assert x[1] == pytest.approx(-0.5, abs=0.05)
