"""The error estimate of every interval. Specification: direct_collocation, section 7; [PHR] Patterson, Hager, Rao 2015.

The true error is the largest difference at all collocation points, relative to 1 + the largest absolute value of the
state, from a solution that is at least a hundred times finer.
"""

import math

import benchmark_problems
import casadi as ca
import numpy as np
import pytest

from designopt.collocation import (
    Integral,
    Mesh,
    Options,
    Phase,
    Program,
    Refinement,
    Signal,
    Solution,
    TrajectoryProblem,
    solve,
)
from designopt.collocation.solution.verification.between_points import finer_quadrature, interval_errors
from designopt.collocation.solution.verification.equations import explicit_rates
from designopt.collocation.statement.mesh import radau
from designopt.dynamics.system import System, Variable


@pytest.fixture(scope="module")
def exact_cart_pole() -> Solution:
    return solve(benchmark_problems.cart_pole(), Options(scheme="radau", degree=5, intervals=150, check=False))


@pytest.fixture(scope="module")
def exact_van_der_pol() -> Solution:
    fine = Refinement(1e-9, rounds=2)
    return solve(benchmark_problems.van_der_pol(), Options(intervals=80, refine=fine, check=False))


def true_error(solution: Solution, exact: Solution) -> float:
    reference = exact.phase.at(solution.phase.mesh.fractions)
    states = solution.phase.of_kind("state")
    return max(
        float(np.abs(solution.phase.values[n] - reference[n]).max() / (1.0 + np.abs(reference[n]).max()))
        for n in states
    )


@pytest.mark.parametrize(("intervals", "estimate"), [(20, 1.2e-3), (40, 2.0e-4), (80, 1.3e-5)])
def test_the_estimate_of_the_cart_pole_is_that_of_the_specification(intervals: int, estimate: float) -> None:
    solution = solve(benchmark_problems.cart_pole(), Options(scheme="radau", degree=3, intervals=intervals))
    assert solution.error_estimate == pytest.approx(estimate, rel=0.05)  # the specification has two digits
    assert solution.phase.error.shape == (intervals,)
    assert solution.error_estimate == solution.phase.error.max()


@pytest.mark.parametrize("scheme", ["radau", "hermite_simpson"])
@pytest.mark.parametrize("intervals", [40, 80])
def test_below_a_thousandth_the_true_error_is_within_three_times_the_estimate(
    scheme: str, intervals: int, exact_cart_pole: Solution
) -> None:
    solution = solve(benchmark_problems.cart_pole(), Options(scheme=scheme, intervals=intervals))  # type: ignore[arg-type]
    true = true_error(solution, exact_cart_pole)
    assert solution.error_estimate < 1e-3
    assert solution.error_estimate / 3.0 < true < 3.0 * solution.error_estimate


def test_above_a_thousandth_the_estimate_is_optimistic(exact_cart_pole: Solution) -> None:
    solution = solve(benchmark_problems.cart_pole(), Options(scheme="radau", degree=3, intervals=20))
    assert 3.0 < true_error(solution, exact_cart_pole) / solution.error_estimate < 30.0  # measured: 17


@pytest.mark.parametrize(("intervals", "estimate"), [(20, 3.7e-4), (40, 4.8e-5)])
def test_around_an_active_bound_of_a_state_the_true_error_is_within_thirty_times_the_estimate(
    intervals: int, estimate: float, exact_van_der_pol: Solution
) -> None:
    solution = solve(benchmark_problems.van_der_pol(), Options(scheme="radau", degree=3, intervals=intervals))
    assert solution.error_estimate == pytest.approx(estimate, rel=0.05)
    assert 3.0 < true_error(solution, exact_van_der_pol) / solution.error_estimate < 30.0  # measured: 13
    assert 15


def test_on_finer_meshes_the_violation_between_the_points_tells_what_the_estimate_does_not(
    exact_van_der_pol: Solution,
) -> None:
    """The bound holds at the points only: between them the optimum leaves it, which no error of the dynamics shows."""
    solution = solve(benchmark_problems.van_der_pol(), Options(scheme="radau", degree=3, intervals=80))
    true = true_error(solution, exact_van_der_pol)
    assert true > 30.0 * solution.error_estimate
    assert true < 3.0 * solution.phase.path_violation_between_points


@pytest.mark.parametrize(("scheme", "order"), [("trapezoidal", 3), ("hermite_simpson", 4), ("radau", 4)])
def test_the_estimate_falls_with_one_more_than_the_degree_of_the_states(scheme: str, order: int) -> None:
    problem = benchmark_problems.damped_start()
    options = [Options(scheme=scheme, intervals=n) for n in (200, 400)]  # type: ignore[arg-type]
    coarse, fine = (solve(problem, o).error_estimate for o in options)
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.3)


def test_a_cubic_motion_has_no_error() -> None:
    """The optimum of the block's move is a cubic, which Hermite-Simpson represents [Kelly, section 2]."""
    solution = solve(benchmark_problems.block_move(), Options(intervals=10))
    assert solution.error_estimate < 1e-12
    assert solution.phase.resimulation_error < 1e-9


@pytest.mark.parametrize("count", range(1, 11))
def test_the_finer_quadrature_integrates_polynomials_from_the_left_end(count: int) -> None:
    points, A = finer_quadrature(count)
    assert points[-1] == 1.0
    assert len(points) == count
    for power in range(count):
        assert pytest.approx(points ** (power + 1) / (power + 1), abs=1e-11) == A @ points**power
    if count < 10:
        assert points == pytest.approx(radau(count).points[1:], abs=1e-12)


def test_intervals_of_different_degrees_have_errors_of_their_own() -> None:
    """Where the degree is higher the same width gives less."""
    schemes = tuple(radau(3 if k < 20 else 6) for k in range(40))
    problem = benchmark_problems.cart_pole()
    solution = Program(problem, meshes=[Mesh(np.linspace(0.0, 1.0, 41), schemes)]).solve()
    errors = interval_errors(problem.phases[0], solution.phase, solution.parameters)
    assert errors[:20].max() > 100.0 * errors[20:].max()


def test_algebraic_variables_are_solved_for_and_not_taken_from_the_polynomials() -> None:
    """Rates that are linear in them would agree with themselves everywhere: the estimate would be zero."""
    x, z, u = (ca.SX.sym(n) for n in "xzu")
    system = System.from_expressions(
        "relaxation",
        states=[(Variable("x", ""), x, -z + u)],
        controls=[(Variable("u", "", -2.0, 2.0), u)],
        algebraic=[(Variable("z", ""), z, z + z**3 - x)],
    )
    phase = Phase(
        system, tf=2.0, initial={"x": 1.0}, final={"x": 0.5}, integrals={"cost": Integral(lambda v: v["u"] ** 2)}
    )
    problem = TrajectoryProblem([phase], cost=lambda e: e.integral["cost"])
    coarse, fine, exact = (solve(problem, Options(intervals=n)) for n in (5, 10, 100))
    for solution in (coarse, fine):
        assert true_error(solution, exact) < 3.0 * solution.error_estimate
    assert coarse.error_estimate / fine.error_estimate == pytest.approx(2.0**4, rel=0.5)  # radau 3


@pytest.mark.parametrize("of_duration", [False, True])
def test_data_that_are_signals_are_followed_between_the_points(of_duration: bool) -> None:
    x, d = ca.SX.sym("x"), ca.SX.sym("d")
    system = System.from_expressions("follower", states=[(Variable("x", ""), x, d - x)], data=[(Variable("d", ""), d)])
    times = np.linspace(0.0, 2.0, 81)
    signal = Signal(times / 2.0 if of_duration else times, np.sin(3.0 * times), of_duration)
    phase = Phase(system, tf=2.0, initial={"x": -0.3}, data={"d": signal})
    problem = TrajectoryProblem([phase], cost=lambda e: e.final["x"])
    solution = solve(problem, Options(scheme="radau", degree=5, intervals=10))
    assert solution.error_estimate < 1e-6
    # x' = sin 3t - x from the particular solution's own value at 0: x = (sin 3t - 3 cos 3t) / 10. The spline is as good
    # as 1e-7
    assert solution.phase.values["x"] == pytest.approx(
        (np.sin(3.0 * solution.phase.times) - 3.0 * np.cos(3.0 * solution.phase.times)) / 10.0, abs=1e-6
    )


def test_rates_are_nan_where_the_algebraic_equations_have_no_solution():
    """z^2 = x - 1 has the solution z = sqrt(x - 1) for x > 1, and none below; sizes of 1e8 do not matter."""
    x, z = ca.SX.sym("x"), ca.SX.sym("z")
    system = System.from_expressions(
        "root",
        states=[(Variable("x", ""), x, 3.0 * z)],
        algebraic=[(Variable("z", ""), z, 1e8 * (z**2 + 1.0 - x))],
    )
    rates = explicit_rates(system)

    def at(value):
        return float(rates([value], [], [0.8], [], [], 0.0)[0])

    assert at(1.5) == pytest.approx(3.0 * math.sqrt(0.5), rel=1e-12)
    assert math.isnan(at(0.5))
