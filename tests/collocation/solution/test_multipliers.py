"""Multipliers: every one is the derivative of the optimum by the number that it belongs to.

They are compared with analytic costates (Pontryagin: costate' = -dH/dx, with H = L + costate' f), with convergence of
the order that the scheme has, and with differences of optima that are solved again.
"""

import math
from dataclasses import replace

import benchmark_problems as problems
import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

from designopt.collocation import (
    Constraint,
    Integral,
    Mesh,
    Options,
    Phase,
    Program,
    Signal,
    TrajectoryProblem,
)
from designopt.collocation.statement.mesh import hermite_simpson, radau, trapezoidal
from designopt.dynamics.system import System, Variable

EXACT = Options(tolerance=1e-12)


def difference(problem_of, at, step=1e-4, options=EXACT):
    """The central difference of the optimum of ``problem_of(number)``."""
    above, below = (Program(problem_of(at + sign * step), options).solve().objective for sign in (1.0, -1.0))
    return (above - below) / (2.0 * step)


# --- costates


@pytest.mark.parametrize(
    "options",
    [
        {"scheme": "hermite_simpson"},
        {"scheme": "hermite_simpson", "midpoint_control": "linear"},
        {"scheme": "radau", "degree": 3},
    ],
    ids=["hermite_simpson", "linear midpoint", "radau"],
)
def test_costates_of_the_block_move_are_exact_at_all_points_where_the_scheme_is_exact(options):
    # H = u^2 + costate_x v + costate_v u with u = 6 - 12 t: costate_v = -2 u, costate_x = -d(costate_v)/dt = -24
    phase = Program(problems.block_move(), Options(intervals=10, **options)).solve().phase

    assert phase.costates["x"] == pytest.approx(np.full(phase.mesh.slots, -24.0), abs=1e-8)
    assert phase.costates["v"] == pytest.approx(-12.0 + 24.0 * phase.times, abs=1e-8)


A, Q, R, S, T = 0.7, 2.0, 0.5, 3.0, 1.5


def linear_quadratic():
    """x' = A x + u from 1, cost 1/2 int(Q x^2 + R u^2) + 1/2 S x(T)^2."""
    return TrajectoryProblem(
        [
            Phase(
                problems.system("linear", {"x": lambda s: A * s["x"] + s["u"]}, ["u"]),
                tf=T,
                initial={"x": 1.0},
                integrals={"cost": Integral(lambda v: 0.5 * (Q * v["x"] ** 2 + R * v["u"] ** 2))},
            )
        ],
        cost=lambda e: e.integral["cost"] + 0.5 * S * e.final["x"] ** 2,
    )


def linear_quadratic_costate(times):
    """The Hamiltonian system (x, costate)' = H (x, costate) with costate(T) = S x(T)."""
    H = np.array([[A, -1.0 / R], [-Q, -A]])
    end = expm(H * T)
    first = (S * end[0, 0] - end[1, 0]) / (end[1, 1] - S * end[0, 1])
    return np.array([(expm(H * t) @ [1.0, first])[1] for t in times])


def costate_errors(scheme, intervals):
    """Largest errors at nodes and at interior points, on a mesh of intervals of widths 2, 1, 2, 1 ..."""
    edges = np.concatenate([[0.0], np.cumsum(2.0 - np.arange(intervals) % 2)])
    mesh = Mesh.at(scheme, edges / edges[-1])
    phase = Program(linear_quadratic(), EXACT, meshes=[mesh]).solve().phase
    errors = np.abs(phase.costates["x"] - linear_quadratic_costate(phase.times))
    return errors[mesh.bases].max(), np.delete(errors, mesh.bases).max(initial=0.0)


# Observed: trapezoidal 1.8-1.9, Hermite-Simpson 2.8-3 on this uneven mesh (4 on uniform ones) and 3.6 at midpoints,
# radau 2 degree - 1 at nodes and degree at interior points.
@pytest.mark.parametrize(
    ("scheme", "at_nodes", "within"),
    [
        (trapezoidal(), 1.7, None),
        (hermite_simpson(), 2.6, 3.3),
        (hermite_simpson(linear_midpoint=True), 2.6, 3.3),
        (radau(1), 0.9, None),
        (radau(2), 2.7, 1.7),
        (radau(3), 4.7, 2.7),
        (radau(4), 6.5, 3.6),
    ],
    ids=[
        "trapezoidal",
        "hermite_simpson",
        "linear midpoint",
        "radau 1",
        "radau 2",
        "radau 3",
        "radau 4",
    ],
)
def test_costates_converge_to_those_of_the_linear_quadratic_problem(scheme, at_nodes, within):
    coarse, fine = costate_errors(scheme, 10), costate_errors(scheme, 20)

    assert math.log2(coarse[0] / fine[0]) > at_nodes
    if within is not None:
        assert math.log2(coarse[1] / fine[1]) > within


def test_costates_of_the_hyper_sensitive_problem_follow_both_branches():
    # H = 0 for a long time: costate = -x^3 + x sqrt(x^4 + 1) where the motion decays, the other sign where it grows
    mesh = Mesh.at(radau(5), problems.hyper_sensitive_nodes(80))
    phase = Program(problems.hyper_sensitive(), EXACT, meshes=[mesh]).solve().phase
    x, costate = phase.values["x"][mesh.bases], phase.costates["x"][mesh.bases]
    begins, ends = mesh.nodes < 0.5, mesh.nodes > 0.5

    branch = x * np.sqrt(x**4 + 1.0)
    assert costate[begins] == pytest.approx((-(x**3) + branch)[begins], abs=1e-5)
    assert costate[ends] == pytest.approx((-(x**3) - branch)[ends], abs=1e-5)


def test_the_control_makes_the_hamiltonian_stationary_with_the_costates_of_the_residual_form():
    # cart-pole: H_u = 2 u + costate_v dv'/du + costate_omega domega'/du, from the explicit equations
    phase = Program(problems.cart_pole(), Options(scheme="radau", degree=5, intervals=40)).solve().phase
    inner = phase.mesh.bases[1:]
    angle, u = phase.values["angle"][inner], phase.values["u"][inner]
    inertia = 1.0 + 0.3 * np.sin(angle) ** 2
    by_control = phase.costates["v"][inner] / inertia - phase.costates["omega"][inner] * np.cos(angle) / 0.5 / inertia

    assert 2.0 * u + by_control == pytest.approx(np.zeros(len(u)), abs=1e-3 * np.abs(u).max())


@pytest.mark.parametrize("options", [{}, {"scheme": "radau", "degree": 3}], ids=["hermite_simpson", "radau"])
def test_the_hamiltonian_of_a_problem_of_least_time_is_minus_one(options):
    # nothing depends on time, and the end is free: H = costate' f = -d(objective)/d(tf) = -1 all the way
    phase = Program(problems.brachistochrone(), Options(intervals=40, **options)).solve().phase
    nodes = phase.mesh.bases
    hamiltonian = sum(phase.costates[name][nodes] * phase.rates[name][nodes] for name in ("x", "y", "v"))

    assert hamiltonian[1:] == pytest.approx(np.full(40, -1.0), abs=1e-5)


def test_costates_go_on_from_phase_to_phase():
    block = problems.block_move().phases[0]
    problem = TrajectoryProblem(
        [replace(block, name="first", tf=0.4, final={}), replace(block, name="second", t0=None, tf=1.0, initial={})],
        cost=lambda e: e.phase["first"].integral["effort"] + e.phase["second"].integral["effort"],
        constraints={
            "joint": Constraint(
                lambda e: ca.vertcat(*(e.phase["second"].initial[n] - e.phase["first"].final[n] for n in ("x", "v"))),
                0.0,
                0.0,
            )
        },
    )
    solution = Program(problem, Options(intervals=5)).solve()

    for phase in solution.phases.values():
        assert phase.costates["v"] == pytest.approx(-12.0 + 24.0 * phase.times, abs=1e-8)
    # raising the jump joint[0] by 1 saves the motion so much of its way
    assert solution.multipliers["joint[0]"] == pytest.approx(-24.0, abs=1e-8)


# --- limits


def test_multipliers_of_path_limits_are_rates_of_the_cost():
    # min int (u - 1)^2 / 2 with u <= 0.5: each second of a higher limit changes the cost by u - 1 = -0.5
    def problem(**more):
        return TrajectoryProblem(
            [
                Phase(
                    problems.system("drift", {"x": lambda s: s["u"]}, ["u"]),
                    tf=2.0,
                    initial={"x": 0.0},
                    integrals={"cost": Integral(lambda v: 0.5 * (v["u"] - 1.0) ** 2)},
                    **more,
                )
            ],
            cost=lambda e: e.integral["cost"],
        )

    for options in (Options(intervals=5), Options(intervals=5, scheme="radau"), Options(scheme="trapezoidal")):
        bounded = Program(problem(bounds={"u": (-2.0, 0.5)}), options).solve().phase
        limited = Program(problem(path={"slow": Constraint(lambda v: v["u"], high=0.5)}), options).solve().phase

        assert bounded.bound_multipliers["u"] == pytest.approx(np.full(bounded.mesh.slots, -0.5), abs=1e-6)
        assert limited.path_multipliers["slow"] == pytest.approx(np.full(len(limited.path["slow"]), -0.5), abs=1e-6)


def test_the_multiplier_of_a_boundary_value_is_its_cost_sensitivity():
    def moved(x):
        problem = problems.block_move()
        return replace(problem, phases=[replace(problem.phases[0], final={"x": x, "v": 0.0})])

    solution = Program(moved(1.0), EXACT).solve()

    assert solution.phase.end_multipliers["x"] == pytest.approx((-24.0, 24.0))  # 12 (distance)^2
    assert solution.phase.end_multipliers["x"][1] == pytest.approx(difference(moved, 1.0), rel=1e-6)


def test_limits_of_integrals_and_of_free_times_have_multipliers():
    def problem(effort=20.0, longest=5.0):
        phase = replace(
            problems.block_move().phases[0],
            tf=(0.1, longest),
            integrals={"effort": Integral(lambda v: v["u"] ** 2, high=effort)},
        )
        return TrajectoryProblem([phase], cost=lambda e: e.duration)

    # 12 / T^3 = effort: T = (12 / effort)^(1/3)
    solution = Program(problem(), EXACT).solve()
    assert solution.objective == pytest.approx((12.0 / 20.0) ** (1.0 / 3.0), rel=1e-8)
    assert solution.multipliers["motion.effort"] == pytest.approx(-solution.objective / (3.0 * 20.0), rel=1e-6)

    least = replace(problem(effort=math.inf, longest=0.8), cost=lambda e: e.integral["effort"])
    assert Program(least, EXACT).solve().multipliers["motion.tf"] == pytest.approx(-36.0 / 0.8**4, rel=1e-6)


# --- parameters


@pytest.mark.parametrize("c", [0.5, 2.0])
def test_a_held_parameter_has_the_derivative_of_the_optimum(c):
    # J = 1/(2 c) + c/2; the solver itself has no multiplier of a variable that is fixed
    solution = Program(replace(problems.damped_start(), parameters={"c": c}), Options(intervals=200)).solve()

    assert solution.parameter_multipliers["c"] == pytest.approx(-0.5 / c**2 + 0.5, rel=1e-5)
    assert solution.at_bound == {"c": "fixed"}


def test_the_multiplier_of_a_parameter_at_its_bound_is_what_moving_the_bound_changes():
    def problem(least):
        return replace(problems.quarter_car(), parameters={"k": (least, 2e5)})

    options = Options(scheme="radau", degree=3, intervals=60, tolerance=1e-11)
    solution = Program(problem(2000.0), options).solve()

    assert solution.at_bound == {"k": "low", "c": ""}
    expected = difference(problem, 2000.0, 20.0, options)
    assert solution.parameter_multipliers["k"] == pytest.approx(expected, rel=1e-4)
    assert solution.parameter_multipliers["c"] == pytest.approx(0.0, abs=1e-8)


# --- data


def driven(stiffness=3.0, offset=0.2, start=0.0, end=1.5, signal=None):
    """A driven oscillator whose data stand in its rate, its integrand and the cost of the end."""
    x, v, u, k, d, w = (ca.SX.sym(n) for n in ("x", "v", "u", "k", "d", "w"))
    oscillator = System.from_expressions(
        "driven",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, u - k * x + w)],
        controls=[(Variable("u", "N"), u)],
        data=[(Variable("k", "N/m"), k), (Variable("d", "m"), d), (Variable("w", "N"), w)],
    )
    times = np.linspace(-1.0, 4.0, 60)
    wind = signal if signal is not None else Signal(times, np.sin(2.0 * times))
    return TrajectoryProblem(
        [
            Phase(
                oscillator,
                t0=start,
                tf=end,
                initial={"x": 1.0, "v": 0.0},
                final={"v": 0.0},
                integrals={"cost": Integral(lambda v: v["u"] ** 2 + 0.3 * v["k"] * v["x"] ** 2 + v["w"] * v["x"])},
                data={"k": stiffness, "d": offset, "w": wind},
            )
        ],
        cost=lambda e: e.integral["cost"] + 5.0 * (e.final["x"] - e.data["d"]) ** 2 + 0.1 * e.tf**2,
        constraints={"low": Constraint(lambda e: e.final["x"] * (1.0 + e.data["d"]), high=0.3)},
    )


@pytest.mark.parametrize("scheme", ["trapezoidal", "hermite_simpson", "radau"])
@pytest.mark.parametrize(
    ("name", "at", "key"),
    [("stiffness", 3.0, "k"), ("offset", 0.2, "d"), ("start", 0.0, "t0"), ("end", 1.5, "tf")],
)
def test_the_sensitivity_to_data_and_fixed_times_is_the_difference_of_optima(scheme, name, at, key):
    options = Options(scheme=scheme, intervals=20, tolerance=1e-11)
    solution = Program(driven(), options).solve()

    expected = difference(lambda number: driven(**{name: number}), at, options=options)
    assert solution.dJ_dq[f"motion.{key}"] == pytest.approx(expected, rel=1e-5)


def test_a_signal_over_the_duration_does_not_move_with_the_times():
    trajectory = Signal(np.linspace(0.0, 1.0, 30), np.cos(np.linspace(0.0, 4.0, 30)), of_duration=True)
    solution = Program(driven(signal=trajectory), EXACT).solve()

    assert solution.dJ_dq["motion.tf"] == pytest.approx(
        difference(lambda tf: driven(end=tf, signal=trajectory), 1.5), rel=1e-5
    )


# --- what is on a bound


def test_the_share_of_time_on_each_bound_is_reported():
    solution = Program(problems.double_integrator(), Options(intervals=40)).solve()

    low, high = solution.phase.saturation["u"]
    assert (low, high) == pytest.approx((0.5, 0.5), abs=1.0 / 40)
    assert "x" not in solution.phase.saturation  # it has no bounds


def test_the_share_of_time_on_each_limit_of_a_path_constraint_is_reported():
    problem = problems.double_integrator()
    path = {
        "push": Constraint(lambda v: 2.0 * v["u"], -1.0, 1.0),
        "tie": Constraint(lambda v: v["u"] - v["u"], 0.0, 0.0),
    }
    limited = replace(problem, phases=[replace(problem.phases[0], path=path)])
    solution = Program(limited, Options(intervals=40)).solve()

    assert solution.phase.path_saturation["push"] == pytest.approx((0.5, 0.5), abs=1.0 / 40)
    assert "tie" not in solution.phase.path_saturation  # an equation is always met
