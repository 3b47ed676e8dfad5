"""The optimum of the discretised problem to the tolerance, whatever the size of its cost; singular arcs.

COPS: Dolan, Moré, Munson, ANL/MCS-TM-273 (2004).
"""

import re
from dataclasses import replace

import benchmark_problems
import numpy as np
import pytest
from benchmark_problems import point_mass, system
from singular_arcs import catalyst, damped_to_rest

from designopt.collocation import (
    Constraint,
    Integral,
    Options,
    Phase,
    ProblemError,
    Program,
    Rate,
    Solution,
    Status,
    TrajectoryProblem,
    load_solution,
    save_solution,
    solve,
    with_rates,
)
from designopt.collocation.solution.optimality.singular import _bends_everywhere
from designopt.collocation.solution.verification.between_points import oscillations


def limited_block(size: float) -> TrajectoryProblem:
    """0.5 m from rest to rest in 1 s with at most 3 N, which u = 3 - 6 t touches at both ends: 3 times `size`."""
    move = Phase(
        point_mass(1.0, 3.0),
        tf=1.0,
        initial={"x": 0.0, "v": 0.0},
        final={"x": 0.5, "v": 0.0},
        integrals={"effort": Integral(lambda v: size * v["u"] ** 2)},
    )
    return TrajectoryProblem([move], cost=lambda e: e.integral["effort"])


@pytest.mark.parametrize("size", [1e-8, 1e-4, 1.0, 1e6])
def test_the_optimum_has_its_digits_whatever_the_size_of_the_cost(size: float) -> None:
    solution = Program(limited_block(size)).solve()

    assert solution.status is Status.SOLVED
    assert solution.objective == pytest.approx(3.0 * size, rel=1e-8)


def test_the_optimisation_error_is_that_of_the_cost_to_an_order_of_magnitude() -> None:
    loose = Program(limited_block(1.0), Options(tolerance=1e-4, acceptable_tolerance=1e-3)).solve()

    true = abs(loose.objective / 3.0 - 1.0)
    assert 0.1 * true < loose.optimisation_error <= 1e-4
    assert true > 1e-7  # a loose tolerance is left loose


@pytest.mark.parametrize("problem", [damped_to_rest, catalyst])
def test_the_optimum_of_a_singular_problem_is_that_of_a_tight_tolerance(problem: object) -> None:
    by_default = Program(problem(), Options(intervals=60)).solve()  # type: ignore[operator]
    tight = Program(problem(), Options(intervals=60, tolerance=1e-11)).solve()  # type: ignore[operator]

    assert by_default.optimisation_error <= 1e-8
    assert by_default.objective == pytest.approx(tight.objective, rel=2e-8)


def test_a_singular_arc_is_named_with_its_control_and_times() -> None:
    solution = Program(damped_to_rest(), Options(intervals=60)).solve()

    [arc] = solution.singular_arcs
    assert (arc.phase, arc.controls, arc.end) == ("motion", ("u",), 5.0)
    assert arc.begin == pytest.approx(1.415, abs=0.15)  # where |u| = 1 ends
    [warning] = [w for w in solution.warnings if w.startswith("singular_arc")]
    assert "does not bend with u of motion" in warning
    assert "limit or penalise its rate (rates of the solver collocation, with_rates in Python)" in warning


def test_a_limited_rate_that_oscillates_gets_no_advice_to_limit_it() -> None:
    solution = Program(with_rates(damped_to_rest(), {"u": Rate(-2.0, 2.0)}), Options(intervals=40)).solve()
    warnings = [w for w in solution.warnings if w.startswith("singular_arc")]

    assert warnings
    for warning in warnings:
        assert "does not bend with u_rate of motion" in warning
        assert warning.endswith(
            "may ring; give the rate of u a penalty (under rates of the solver collocation, Rate in Python), or take"
            " fewer intervals"
        )

    too_small = with_rates(damped_to_rest(), {"u": Rate(-2.0, 2.0, penalty=1e-12)})
    warning = next(w for w in Program(too_small, Options(intervals=40)).solve().warnings if "singular" in w)
    assert "may ring; give the rate of u a larger penalty (under rates of" in warning
    penalised = with_rates(damped_to_rest(), {"u": Rate(-2.0, 2.0, penalty=1e-3)})
    assert Program(penalised, Options(intervals=40)).solve().singular_arcs == ()


def test_a_rocket_has_a_singular_arc_between_full_thrust_and_none() -> None:
    [arc] = Program(benchmark_problems.goddard(), Options(intervals=60)).solve().singular_arcs

    assert 0.015 < arc.begin < 0.03  # s of 0.199
    assert 0.07 < arc.end < 0.08


def _kinds(solution: Solution) -> set[str]:
    return {warning.split(":")[0] for warning in solution.warnings}


def test_warnings_name_a_control_that_rings_on_its_singular_arc_and_a_limit_violated_between_the_points() -> None:
    problem = benchmark_problems.goddard()
    [phase] = problem.phases
    full = Constraint(lambda v: v["thrust"] - 3.5, high=0.0)
    bounded = replace(
        problem, phases=[replace(phase, bounds={**phase.bounds, "thrust": (0.0, 5.0)}, path={"full": full})]
    )
    ringing = solve(bounded)
    assert {"singular_arc", "oscillating_control", "between_points"} <= _kinds(ringing)
    [oscillating] = [w for w in ringing.warnings if w.startswith("oscillating_control")]
    assert "thrust of motion" in oscillating
    assert "state midpoint_control: linear, or limit or penalise its rate" in oscillating
    [oscillation] = oscillations(ringing.phase)
    as_a_switch = 2e3 * (oscillation.end - oscillation.begin)
    assert not list(oscillations(replace(ringing.phase, tf=ringing.phase.t0 + as_a_switch)))
    [broken] = [w for w in ringing.warnings if w.startswith("between_points")]
    times = np.linspace(ringing.phase.t0, ringing.phase.tf, 20001)
    highest = float(ringing.interpolate(times)["thrust"].max())
    amount = float(broken.split("by up to ")[1].split()[0])
    assert "path constraint 'full'" in broken
    assert amount == pytest.approx(highest - 3.5, rel=0.05)  # the warning has three digits, its grid ten places
    smooth = solve(bounded, Options(midpoint_control="linear"))
    assert not {"oscillating_control", "between_points"} & _kinds(smooth)


@pytest.mark.parametrize("mesh_check", [0.0, 1e-5], ids=["one mesh", "refined"])
def test_a_warning_names_a_control_of_many_short_pulses_and_the_way_to_the_optimum(mesh_check: float) -> None:
    """The singular arc of the best mixture, in pulses between the bounds that a quadratic control exceeds."""
    pulsed = solve(catalyst(), Options("hermite_simpson", intervals=100, mesh_check=mesh_check))
    [warning] = [w for w in pulsed.warnings if w.startswith("oscillating_control")]
    assert re.search(r"mix of motion has \d+ pulses of about an interval from 0\.1\d* to 0\.7\d* s", warning)
    assert "exceeds its bounds between the points" in warning
    assert "state midpoint_control: linear" in warning
    assert abs(pulsed.objective + 0.0480556) > 1e-5
    smooth = solve(catalyst(), Options(intervals=100, midpoint_control="linear"))
    assert smooth.objective == pytest.approx(-0.0480556, abs=2e-7)
    assert "oscillating_control" not in _kinds(smooth)


@pytest.mark.parametrize("name", ["double_integrator", "cart_pole", "van_der_pol", "quarter_car", "linear_tangent"])
def test_switches_and_regular_controls_are_not_singular(name: str) -> None:
    solution = solve(getattr(benchmark_problems, name)())
    assert solution.singular_arcs == ()
    assert not {"oscillating_control", "between_points"} & _kinds(solution)


def test_curvature_that_overflows_is_no_singular_arc_and_no_warning() -> None:
    """Of a failed solve whose cost is nothing."""
    assert not _bends_everywhere(np.full((1, 1, 1), 1e305), np.ones((1, 1, 1)), np.zeros((1, 1), bool))


def test_the_control_that_is_singular_is_reported_from_the_one_that_is_not() -> None:
    """Two blocks side by side, one of which pays for its force."""
    blocks = system(
        "blocks",
        {"x": lambda s: s["v"], "v": lambda s: s["u"], "y": lambda s: s["w"], "w": lambda s: s["f"]},
        ["f", "u"],
        bounds={"u": (-1.0, 1.0)},
    )
    squares = Integral(lambda v: v["x"] ** 2 + v["v"] ** 2 + v["y"] ** 2 + v["f"] ** 2)
    start = {"x": 0.0, "v": 1.0, "y": 1.0, "w": 0.0}
    phase = Phase(blocks, tf=5.0, initial=start, integrals={"squares": squares})
    [arc] = Program(TrajectoryProblem([phase], cost=lambda e: e.integral["squares"])).solve().singular_arcs

    assert arc.controls == ("u",)


def test_the_optimisation_error_is_reported_beside_that_of_the_mesh_and_saved(tmp_path: object) -> None:
    solution = solve(damped_to_rest())
    save_solution(solution, f"{tmp_path}/found.npz")
    loaded = load_solution(f"{tmp_path}/found.npz")

    assert f"Optimisation error {solution.optimisation_error:.1e}." in solution.message
    assert loaded.optimisation_error == solution.optimisation_error
    assert loaded.singular_arcs == solution.singular_arcs


def test_iterations_and_history_cover_the_finish() -> None:
    solution = Program(limited_block(1e-4)).solve()

    assert solution.iterations + 1 == len(solution.history["objective"])
    assert solution.history["objective"][-1] == pytest.approx(3e-4, rel=1e-8)
    assert solution.history["barrier"][-1] < 1e-11


def test_settings_of_ipopt_have_precedence() -> None:
    solution = Program(limited_block(1.0), Options(ipopt={"max_iter": 2})).solve()

    assert solution.status is Status.ITERATION_LIMIT
    assert solution.iterations == 2


@pytest.mark.parametrize("setting", [{"no_such_setting": 1}, {"mu_strategy": "wild"}, {"max_iter": "many"}])
def test_settings_that_ipopt_does_not_know_are_refused_by_name(setting: dict[str, str | int]) -> None:
    with pytest.raises(ProblemError, match=rf"ipopt\.{next(iter(setting))}: IPOPT rejects") as caught:
        Program(limited_block(1.0), Options(ipopt=setting)).solve()

    assert caught.value.status == "bad_statement"


def test_a_failed_solve_has_no_optimisation_error() -> None:
    failed = Program(limited_block(1.0), Options(max_iterations=1)).solve()

    assert np.isnan(failed.optimisation_error)
    assert failed.singular_arcs == ()


def test_a_problem_without_a_cost_has_no_warning_of_its_optimisation_error() -> None:
    """The mass is found to the digits; its cost is zero, relative to which nothing is small."""
    solution = solve(benchmark_problems.oscillator_mass(), Options(intervals=40))

    assert not [w for w in solution.warnings if w.startswith("optimisation_error")]
    assert solution.parameters["m"] == pytest.approx(5.0, rel=1e-5)


def test_a_warm_start_is_finished_too() -> None:
    program = Program(limited_block(1e-4))
    first = program.solve()
    longer = replace(program.problem, phases=[replace(program.problem.phases[0], tf=1.1)])
    near = program.solve(longer, warm="full", previous=first)

    assert near.status is Status.SOLVED
    assert near.optimisation_error <= 1e-8
    assert near.objective == pytest.approx(Program(longer, Options(tolerance=1e-12)).solve().objective, rel=1e-8)
