"""The check by a new simulation, and violations between points. Specification: direct_collocation, sections 3 and 7."""

import itertools
import math
from dataclasses import replace

import benchmark_problems
import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from designopt.collocation import (
    Constraint,
    Integral,
    Mesh,
    Options,
    Phase,
    Program,
    Signal,
    Solution,
    TrajectoryProblem,
    solve,
)
from designopt.collocation.solution.verification.between_points import violations_between_points
from designopt.collocation.solution.verification.resimulate import Resimulation, resimulate, segment_errors
from designopt.collocation.statement.mesh import hermite_simpson, radau
from designopt.dynamics.system import System, Variable


def resimulated(problem: TrajectoryProblem, solution: Solution) -> Resimulation:
    return resimulate(problem.phases[0], solution.phase, solution.parameters)


def one_state(name: str, rate: object, **box: float) -> System:
    """``x' = rate(x, u)`` with bounds of the control."""
    x, u = ca.SX.sym("x"), ca.SX.sym("u")
    control = Variable("u", "", box.get("low", -math.inf), box.get("high", math.inf))
    return System.from_expressions(name, states=[(Variable("x", ""), x, rate(x, u))], controls=[(control, u)])  # type: ignore[operator]


def effort(system: System, first: float, last: float, tf: float = 2.0) -> TrajectoryProblem:
    phase = Phase(
        system, tf=tf, initial={"x": first}, final={"x": last}, integrals={"effort": Integral(lambda v: v["u"] ** 2)}
    )
    return TrajectoryProblem([phase], cost=lambda e: e.integral["effort"])


@pytest.mark.parametrize(("intervals", "error"), [(20, 1.1e-2), (40, 2.9e-4), (80, 9.9e-6)])
def test_the_resimulation_of_the_cart_pole_is_that_of_the_specification(intervals: int, error: float) -> None:
    """Its numbers are not divided by 1 + the largest value, which is 2.1 for the place of the cart, the worst state."""
    solution = solve(benchmark_problems.cart_pole(), Options(scheme="radau", degree=3, intervals=intervals))
    largest = 1.0 + np.abs(solution.phase.values["x"]).max()
    assert largest * solution.phase.resimulation_error == pytest.approx(error, rel=0.2)
    alone = segment_errors(benchmark_problems.cart_pole().phases[0], solution.phase, solution.parameters)
    np.testing.assert_array_equal(alone, solution.phase.segment_errors)


@pytest.mark.parametrize("scheme", ["hermite_simpson", "radau", "trapezoidal"])
def test_it_agrees_with_another_integrator(scheme: str) -> None:
    """SciPy's at a tolerance of 1e-10, restarted at every node, with the same interpolated controls.

    The motion makes an early error some hundred times larger: 1e-9 of a step may become 1e-6 in the end.
    """
    problem = benchmark_problems.cart_pole()
    solution = solve(problem, Options(scheme=scheme, intervals=10, check=False))  # type: ignore[arg-type]
    phase, system = solution.phase, problem.phases[0].system
    simulated = resimulated(problem, solution)
    nodes = phase.times[phase.mesh.bases]
    x = np.array([phase.values[v.name][0] for v in system.states])
    for k, (a, b) in enumerate(itertools.pairwise(nodes)):

        def rhs(t: float, x: np.ndarray, a: float = a, b: float = b) -> np.ndarray:
            inside = np.clip((t - phase.t0) / (phase.tf - phase.t0), (a + 1e-12) / phase.tf, (b - 1e-12) / phase.tf)
            u = np.clip(phase.at(np.array([inside]))["u"], -20.0, 20.0)
            return np.asarray(system.rhs(x, u, [], [], [], t), float).ravel()

        x = solve_ivp(rhs, (a, b), x, "DOP853", rtol=1e-10, atol=1e-10).y[:, -1]
        assert [simulated.states[v.name][k + 1] for v in system.states] == pytest.approx(x, abs=1e-6)


def test_segments_do_not_grow_with_the_instability_of_the_motion() -> None:
    """x' = 20 x + u grows by e^40 in 2 s: one run is lost, its segments are as good as the estimate says."""
    problem = effort(one_state("unstable", lambda x, u: 20.0 * x + u), 0.5, 0.0)
    solution = solve(problem, Options(scheme="radau", intervals=40))
    assert solution.phase.resimulation_error > 1.0
    assert solution.phase.segment_errors.shape == (40,)
    assert solution.phase.segment_errors.max() < 1e-3
    assert np.isfinite(solution.objective)


def test_the_error_of_a_run_that_diverges_is_infinite() -> None:
    problem = effort(one_state("escaping", lambda x, u: 40.0 * x + x**3 + u), 0.5, 0.0)
    solution = solve(problem, Options(scheme="radau", intervals=40))
    simulated = resimulated(problem, solution)
    assert solution.phase.resimulation_error == math.inf == simulated.error
    assert np.isinf(simulated.states["x"][-1])
    assert np.isfinite(simulated.segment_errors).all()
    assert "the motion is unstable, so that a run over the whole of it leaves it" in solution.message
    assert 0.0 < simulated.end < 2.0
    assert f"It diverges in {problem.phases[0].name} after {simulated.end:g} s." in solution.message
    assert "inf" not in solution.message


def test_a_run_ends_where_the_algebraic_equations_have_no_solution(capfd: pytest.CaptureFixture[str]) -> None:
    """z^2 = x, which u = -1 brings from 1 to 0 after 1 s."""
    x, z, u = (ca.SX.sym(n) for n in "xzu")
    system = System.from_expressions(
        "root",
        states=[(Variable("x", ""), x, u)],
        controls=[(Variable("u", ""), u)],
        algebraic=[(Variable("z", "", low=0.0), z, z**2 - x)],
    )
    problem = effort(system, 1.0, 1.0)
    solution = Program(problem, Options(intervals=7)).solve()
    values = {**solution.phase.values, "u": -np.ones(len(solution.phase.times))}
    simulated = resimulate(problem.phases[0], replace(solution.phase, values=values), {})
    assert simulated.end == pytest.approx(6.0 / 7.0)
    assert simulated.states["x"][:4] == pytest.approx(1.0 - np.arange(4) * 2.0 / 7.0, abs=1e-9)
    assert capfd.readouterr().err == ""


def test_only_the_error_of_a_diverging_segment_is_infinite() -> None:
    """x' = x^2 from 1 escapes after 1 s; the points of an invented trajectory do not know it."""
    problem = effort(one_state("escaping", lambda x, u: x**2 + u), 1.0, 1.0, tf=4.0)
    solution = Program(problem, Options(intervals=2)).solve()
    trajectory = {"x": np.array([-1.0, -0.5, 1.0, 1.0, 1.0]), "u": np.zeros(5)}
    simulated = resimulate(problem.phases[0], replace(solution.phase, values=trajectory), {})
    # from -1 after 2 s: -1/3, in the run as in its segment
    assert simulated.states["x"][1] == pytest.approx(-1.0 / 3.0, abs=1e-9)
    assert simulated.segment_errors[0] == pytest.approx((1.0 + 1.0 / 3.0) / 2.0, abs=1e-9)
    assert simulated.segment_errors[1] == math.inf
    # from -1/3 after 2 s more: -1/5
    assert simulated.states["x"][2] == pytest.approx(-0.2, abs=1e-9)
    assert simulated.error == pytest.approx((1.0 + 1.0 / 3.0) / 2.0, abs=1e-9)


def test_stiff_segments_are_simulated_too() -> None:
    """Rates of 1e6 per second: x follows sin y, which the optimum moves along a straight line."""
    x, y, u = (ca.SX.sym(n) for n in "xyu")
    system = System.from_expressions(
        "follower",
        states=[(Variable("x", ""), x, -1e6 * (x - ca.sin(y))), (Variable("y", ""), y, u)],
        controls=[(Variable("u", ""), u)],
    )
    phase = Phase(
        system,
        tf=2.0,
        initial={"x": 0.0, "y": 0.0},
        final={"y": 1.0},
        integrals={"effort": Integral(lambda v: v["u"] ** 2)},
    )
    problem = TrajectoryProblem([phase], cost=lambda e: e.integral["effort"])
    solution = solve(problem, Options(scheme="radau", intervals=3, check=False))
    simulated = resimulated(problem, solution)
    assert simulated.states["x"][1:] == pytest.approx(np.sin(simulated.times[1:] / 2.0), abs=1e-6)
    assert simulated.error < 1e-6


def test_controls_are_kept_within_their_bounds() -> None:
    """The quadratic u = 3 t - 2 t^2 passes 1 at 0.5 s, an actuator would not: x(1) = 7/24 + 1/2."""
    problem = effort(one_state("mover", lambda x, u: u, low=-1.0, high=1.0), 0.0, 0.5, tf=1.0)
    solution = Program(problem, Options(intervals=1)).solve()
    bent = replace(solution.phase, values={**solution.phase.values, "u": np.array([0.0, 1.0, 1.0])})
    assert bent.at(np.array([0.75]))["u"] == pytest.approx(1.125)
    simulated = resimulate(problem.phases[0], bent, {})
    # a kink inside a step costs accuracy; without the bound it would be 5/6
    assert simulated.states["x"][-1] == pytest.approx(7.0 / 24.0 + 0.5, abs=1e-6)


def test_intervals_of_different_degrees_are_simulated_with_their_own_controls() -> None:
    problem = benchmark_problems.cart_pole()
    schemes = tuple(radau(3 if k % 2 else 5) for k in range(40))
    solution = Program(problem, meshes=[Mesh(np.linspace(0.0, 1.0, 41), schemes)]).solve()
    simulated = resimulated(problem, solution)
    assert simulated.error < 1e-3
    assert simulated.segment_errors[::2].max() < 1e-2 * simulated.segment_errors[1::2].max()


def test_algebraic_variables_are_solved_for() -> None:
    """z + z^3 = x and x' = -z + u against the same motion with z, that is x = z + z^3, as a state."""
    x, z, u = (ca.SX.sym(n) for n in "xzu")
    control = [(Variable("u", ""), u)]
    dae = System.from_expressions(
        "dae",
        states=[(Variable("x", ""), x, -z + u)],
        controls=control,
        algebraic=[(Variable("z", ""), z, z + z**3 - x)],
    )
    problem = effort(dae, 2.0, 3.0)
    solution = solve(problem, Options(intervals=15))
    assert solution.phase.resimulation_error < 1e-6
    solved = replace(solution.phase, values={**solution.phase.values, "z": solution.phase.values["z"] + 0.1})
    shifted = resimulate(problem.phases[0], solved, solution.parameters)
    assert shifted.error == pytest.approx(solution.phase.resimulation_error, abs=1e-9)  # the guess of z does not matter


def test_algebraic_variables_of_a_higher_index_are_taken_as_they_are_and_the_result_says_so() -> None:
    """x' = z, 0 = x - sin t: z = cos t follows from the derivative of the equation only."""
    x, z, t = (ca.SX.sym(n) for n in "xzt")
    system = System.from_expressions(
        "guided",
        states=[(Variable("x", ""), x, z)],
        algebraic=[(Variable("z", ""), z, x - ca.sin(t))],
        time=t,
    )
    problem = TrajectoryProblem([Phase(system, tf=2.0, initial={"x": 0.0})], cost=lambda e: e.final["x"])
    solution = solve(problem, Options(intervals=10))
    assert solution.phase.values["z"] == pytest.approx(np.cos(solution.phase.times), abs=3e-4)
    assert solution.phase.resimulation_error < 1e-9
    assert any("motion: the algebraic equations do not determine z (a higher index)" in w for w in solution.warnings)


@pytest.mark.parametrize("of_duration", [False, True])
def test_signals_and_time_are_those_of_the_place_within_a_step(of_duration: bool) -> None:
    """x' = d + t with d = cos t as a spline: x = sin t + t^2 / 2, whatever the mesh is."""
    x, d, t = (ca.SX.sym(n) for n in "xdt")
    system = System.from_expressions(
        "driven", states=[(Variable("x", ""), x, d + t)], data=[(Variable("d", ""), d)], time=t
    )
    times = np.linspace(0.0, 3.0, 301)
    signal = Signal(times / 3.0 if of_duration else times, np.cos(times), of_duration)
    phase = Phase(system, tf=3.0, initial={"x": 0.0}, data={"d": signal})
    problem = TrajectoryProblem([phase], cost=lambda e: e.final["x"])
    simulated = resimulated(problem, solve(problem, Options(intervals=4, check=False)))
    exact = np.sin(simulated.times) + simulated.times**2 / 2.0
    assert simulated.states["x"] == pytest.approx(exact, abs=1e-8)


def test_every_phase_is_simulated_with_the_parameters_found() -> None:
    solution = solve(benchmark_problems.quarter_car(), Options(scheme="radau", degree=5, intervals=100))
    assert solution.phase.resimulation_error < 3e-7
    changed = {**solution.parameters, "c": 1.05 * solution.parameters["c"]}
    assert resimulate(benchmark_problems.quarter_car().phases[0], solution.phase, changed).error > 1e-4


def test_the_check_is_timed_and_reported_and_can_be_left_out() -> None:
    problem = benchmark_problems.block_move()
    solution = solve(problem, Options(intervals=5))
    assert solution.timing["check"] > 0.0
    assert solution.message.startswith("Solved to the tolerance. Error estimate ")
    bare = solve(problem, Options(intervals=5, check=False))
    assert bare.timing["check"] == 0.0
    assert bare.message == "Solved to the tolerance."
    assert math.isnan(bare.phase.resimulation_error)
    assert math.isnan(bare.error_estimate)


def test_a_failed_solve_is_not_checked() -> None:
    solution = solve(benchmark_problems.cart_pole(), Options(intervals=10, max_iterations=2))
    assert not solution.success
    assert math.isnan(solution.error_estimate)


def test_path_constraints_are_checked_between_the_points() -> None:
    """A hump whose top lies between two points that both keep the limit."""
    problem = effort(one_state("mover", lambda x, u: u), 0.0, 0.0)
    peak = replace(problem.phases[0], path={"height": Constraint(lambda v: 3.0 * v["x"], high=1.0)})
    program = Program(TrajectoryProblem([peak], cost=problem.cost), Options(intervals=2))
    solution = program.solve()
    times = solution.phase.times
    trajectory = {"x": np.array([0.0, 0.25, 0.25, 0.25, 0.0]), "u": np.zeros(5)}
    slopes = {"x": np.array([0.0, 1.0, 0.0, -1.0, 0.0])}
    bent = replace(solution.phase, values=trajectory, rates=slopes)
    assert times == pytest.approx([0.0, 0.5, 1.0, 1.5, 2.0])
    fine = np.linspace(0.0, 1.0, 4001)
    top = bent.at(fine)["x"].max()
    violation = violations_between_points(peak, program.problem_functions.points[0], bent, {})[
        "path constraint 'height'"
    ]
    expected = (3.0 * top - 1.0) / (1.0 + 3.0 * top)
    assert 3.0 * top > 1.2
    assert violation.share == pytest.approx(expected, rel=1e-3)  # the grid is fine, not continuous
    assert violation.amount == pytest.approx(3.0 * top - 1.0, rel=1e-3)
    assert violation.time == pytest.approx(2.0 * fine[bent.at(fine)["x"].argmax()], abs=0.1)


def test_states_that_leave_their_bounds_between_the_points_are_found() -> None:
    solution = solve(benchmark_problems.van_der_pol(), Options(scheme="radau", intervals=40))
    phase = solution.phase
    lowest = phase.at(np.linspace(0.0, 1.0, 20001))["x1"].min()
    assert phase.values["x1"].min() >= -0.25 - 1e-7
    expected = (-0.25 - lowest) / (1.0 + np.abs(phase.values["x1"]).max())
    assert phase.path_violation_between_points == pytest.approx(expected, rel=0.05)
    assert expected > 1e-5


def test_linear_functions_between_the_points_are_reproduced() -> None:
    solution = solve(benchmark_problems.sliding_mass(), Options(intervals=40))
    assert solution.phase.path_violation_between_points < 1e-7


def test_a_mesh_of_one_interval_is_simulated() -> None:
    problem = benchmark_problems.block_move()
    solution = Program(problem, meshes=[Mesh.uniform(hermite_simpson(), 1)]).solve()
    assert resimulated(problem, solution).error < 1e-8
