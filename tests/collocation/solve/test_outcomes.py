"""How a solve ends: each status from a problem that leads to it, and what its message says.

A failed solve gives its last iterate as a solution; it never raises and never writes to the terminal.
"""

import math
import re
from dataclasses import replace

import benchmark_problems as problems
import casadi as ca
import numpy as np
import pytest
from small_motions import block, motion, solve

from designopt import collocation
from designopt.collocation import (
    Constraint,
    Guess,
    Integral,
    Options,
    Phase,
    ProblemError,
    Status,
    TrajectoryProblem,
    explain,
    sampled,
)
from designopt.dynamics.system import System, Variable

pytestmark = pytest.mark.usefixtures("silent")

# --- solved


def test_the_message_of_a_solved_problem_has_its_accuracy():
    solution = collocation.solve(problems.block_move(), Options(intervals=10))

    assert solution.status is Status.SOLVED
    assert solution.success
    assert re.search(r"Error estimate \S+; re-simulation of the controls differs by \d", solution.message)


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_a_constant_cost_has_no_optimisation_error_and_a_warning_says_that_nothing_is_optimised(value):
    solution = collocation.solve(replace(problems.block_move(), cost=lambda e: value), Options(intervals=10))

    assert solution.status is Status.SOLVED
    assert solution.objective == value
    assert solution.optimisation_error == 0.0
    assert "Optimisation error 0.0e+00." in solution.message
    assert any(warning.startswith("constant_cost: the cost has the same value") for warning in solution.warnings)


def test_a_cost_that_is_zero_from_the_guess_on_has_an_absolute_error():
    """At rest at the origin with u = 0, the optimum: the cost has no size to which an error could be relative."""
    rest = motion(lambda s: s["u"], final=0.0)
    solution = collocation.solve(
        rest, Options(intervals=4), Guess({"motion": sampled([0.0, 1.0], {"x": [0.0, 0.0], "u": [0.0, 0.0]})})
    )

    assert solution.status is Status.SOLVED
    assert solution.objective == pytest.approx(0.0, abs=1e-12)
    assert solution.optimisation_error < 1.0 or "The cost is zero to within" in solution.message
    assert not re.search(r"e\+\d\d\d", solution.message)


def test_an_infinite_error_estimate_comes_with_the_warning_where_the_equations_are_not_finite():
    """Bryson and Denham's limit on the state: between the points the states pass it, where the rates do not exist."""
    limit = 1.0 / 9.0
    ended = problems.system(
        "body", {"x": lambda s: s["v"], "v": lambda s: ca.if_else(s["x"] <= limit + 1e-9, s["u"], np.nan)}, ["u"]
    )
    phase = Phase(
        ended, tf=1.0, initial={"x": 0.0, "v": 1.0}, final={"x": 0.0, "v": -1.0}, bounds={"x": (-1.0, limit)},
        integrals={"effort": Integral(lambda v: v["u"] ** 2)},
    )  # fmt: skip
    solution = collocation.solve(TrajectoryProblem([phase], cost=lambda e: e.integral["effort"]), Options(intervals=7))

    assert solution.status is Status.SOLVED
    assert math.isinf(solution.error_estimate)
    assert "Between the points of the mesh the equations are not finite" in solution.message
    (warning,) = [w for w in solution.warnings if w.startswith("error_estimate: ")]
    begin, end = (float(t) for t in re.search(r"first from (\S+) to (\S+) s", warning).groups())
    assert 0.0 <= begin < end <= 1.0
    assert np.isin(np.round([begin, end], 6), np.round(solution.phases["motion"].times, 6)).all()


@pytest.mark.parametrize(("tf", "is_wide"), [((0.1, 5.0), True), ((1.0, 5.0), False)])
def test_a_failed_search_names_a_wide_range_of_a_free_duration(tf, is_wide):
    phase = replace(problems.double_integrator().phases[0], tf=tf)
    failure = collocation.solve(
        TrajectoryProblem([phase], cost=lambda e: e.duration), Options(max_iterations=1, persistent=False)
    )

    assert failure.status is Status.ITERATION_LIMIT
    assert ("the duration of motion is free from 0.1 to 5 s. Narrow so wide a range" in failure.message) == is_wide


def test_the_message_of_an_acceptable_solution_names_the_residual_above_the_tolerance():
    solution = solve(problems.cart_pole(), tolerance=1e-17, acceptable_tolerance=1e-6)

    assert solution.status is Status.ACCEPTABLE
    assert solution.success
    assert "Above the tolerance of 1e-17: " in solution.message
    assert "dual infeasibility" in solution.message


# --- not solved


def test_an_infeasible_problem_names_the_five_worst_constraints_with_times_and_the_variables_at_bounds():
    solution = solve(block(bounds={"u": (-1.0, 1.0)}), intervals=20)  # 4 N are needed

    assert solution.status is Status.LOCALLY_INFEASIBLE
    assert not solution.success
    worst = solution.message.split("Worst constraints: ")[1].split("; ")
    assert len(worst) == 5
    assert all(text.startswith("rate of 'x' of motion at 0.") for text in worst)
    assert re.search("u of motion is at 1 for (49|50|51) % of the time", solution.message)


def test_an_infeasible_problem_names_the_bound_that_a_state_reaches_beside_its_worst_violations():
    """A body that falls for at least 1 s from 10 m with -2 m/s and g = 1.5 m/s^2 is then at 7.25 m, below its bound."""
    h, v = ca.SX.sym("h"), ca.SX.sym("v")
    body = System.from_expressions(
        "body", states=[(Variable("h", "m", 9.5, 20.0), h, v), (Variable("v", "m/s", -50.0, 50.0), v, ca.SX(-1.5))]
    )
    fall = Phase(body, name="fall", tf=(1.0, 5.0), initial={"h": 10.0, "v": -2.0})
    solution = solve(TrajectoryProblem([fall], cost=lambda e: e.duration), intervals=20)

    assert solution.status is Status.LOCALLY_INFEASIBLE
    assert solution.phase.saturation["h"][0] < 0.2
    [at_bounds] = re.findall(r"On bounds: (.*?)\. Worst", solution.message)
    assert re.fullmatch(r"h of fall is at its lower bound of 9\.5 m at (0\.9\d*|1) s", at_bounds)

    from_a_bound = solve(block(bounds={"u": (-1.0, 1.0), "x": (0.0, 5.0)}), intervals=20)  # x begins with 0
    assert from_a_bound.status is Status.LOCALLY_INFEASIBLE
    assert "x of motion is at" not in from_a_bound.message


def test_an_infeasible_problem_names_the_parameters_and_limits_that_are_at_their_ends():
    x, v, u, duration = (ca.SX.sym(name) for name in ("x", "v", "u", "duration"))
    cart = System.from_expressions(
        "cart",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, u)],
        controls=[(Variable("u", "m/s^2", -1.0, 1.0), u)],
        parameters=[(Variable("duration", "s"), duration)],
    )
    move = Phase(cart, tf=(0.1, 10.0), initial={"x": 0.0, "v": 0.0}, final={"x": 1.0, "v": 0.0})  # takes 2 s
    limits = {"duration": Constraint(lambda e: e.duration - e["duration"], 0.0, 0.0, "s")}
    short = TrajectoryProblem([move], lambda e: e.duration, constraints=limits, parameters={"duration": (0.5, 1.5)})
    assert "less. On bounds: duration is at its upper bound of 1.5 s" in solve(short, intervals=20).message
    limits["hurry"] = Constraint(lambda e: e.duration, high=1.5, unit="s")
    late = replace(short, constraints=limits, parameters={"duration": (0.5, 5.0)})
    assert "less. On bounds: constraint 'hurry' is at its limit of 1.5 s" in solve(late, intervals=20).message


def test_an_infeasible_path_constraint_is_named_with_its_limit_and_unit():
    limits = {"slow": Constraint(lambda v: v["v"], high=0.5, unit="m/s")}  # the mean is 1 m/s
    solution = solve(block(path=limits), intervals=20)

    assert solution.status is Status.LOCALLY_INFEASIBLE
    assert "path constraint 'slow' of motion is at 0.5" in solution.message

    contradiction = {"circle": Constraint(lambda v: v["x"] ** 2 + v["v"] ** 2, high=-1.0, unit="m^2")}
    solution = solve(block(path=contradiction), intervals=20)
    assert "path constraint 'circle' of motion at " in solution.message
    assert "at most -1 m^2" in solution.message


def test_the_message_at_the_iteration_limit_has_the_residuals_and_the_way_to_continue():
    solution = solve(problems.cart_pole(), max_iterations=3)

    assert solution.status is Status.ITERATION_LIMIT
    assert solution.iterations == 3
    assert "After 3 iterations the iterate is infeasible: constraint violation" in solution.message
    assert "dual infeasibility" in solution.message
    assert "Guess.from_solution" in solution.message
    resumed = solve(problems.cart_pole(), guess=Guess.from_solution(solution))
    assert resumed.status is Status.SOLVED


def test_a_feasible_iterate_at_the_limit_is_called_feasible():
    solution = solve(motion(lambda s: s["u"], cost=lambda v: (v["u"] - 1.0) ** 4), intervals=5, max_iterations=1)

    assert solution.status is Status.ITERATION_LIMIT
    assert "the iterate is feasible" in solution.message


def test_the_time_limit_keeps_the_last_iterate():
    solution = solve(problems.cart_pole(), intervals=400, time_limit=0.02)

    assert solution.status is Status.TIME_LIMIT
    assert "infeasible" in solution.message
    assert np.isfinite(solution.phase.values["angle"]).all()


def test_the_message_of_a_failed_restoration_has_worst_constraints_scaling_and_multipliers():
    # 160 million oscillations of the rate along the way: no step is as good as its derivatives promise, and rounding
    # errors decide whether the restoration fails or the steps become too small: by MUMPS it is the former
    solution = solve(motion(lambda s: s["u"] + 1e-2 * ca.sin(1e9 * s["x"])), max_iterations=300, compile="never")

    assert solution.status is Status.RESTORATION_FAILED
    assert "Worst constraints: rate of 'x' of motion at" in solution.message
    assert "Entries of the scaled Jacobian differ by a factor" in solution.message
    assert "the smallest multiplier is" in solution.message


def test_steps_that_become_too_small_stall():
    solution = solve(problems.van_der_pol(), tolerance=1e-18, acceptable_tolerance=1e-30, max_iterations=300)

    assert solution.status is Status.STALLED
    assert "No constraint is violated" in solution.message
    assert "Entries of the scaled Jacobian differ by a factor" in solution.message


@pytest.mark.parametrize(
    ("problem", "named"),
    [
        (replace(block(final={}), cost=lambda e: -e.final["x"]), "u of motion reaches"),
        (
            TrajectoryProblem(
                [Phase(problems.point_mass(1.0, 1.0), tf=(0.1, math.inf), initial={"x": 0.0, "v": 0.0})],
                cost=lambda e: -e.tf,
            ),
            "tf of motion reaches",
        ),
        (
            TrajectoryProblem(
                [Phase(problems.system("body", {"x": lambda s: -s["p"]}, parameters=[Variable("p", "")]), tf=1.0)],
                cost=lambda e: -e["p"],
            ),
            "p reaches",
        ),
    ],
    ids=["control", "time", "parameter"],
)
def test_an_unbounded_problem_diverges_and_the_message_names_the_growing_variables(problem, named):
    solution = solve(problem, intervals=10)

    assert solution.status is Status.DIVERGING
    assert named in solution.message
    assert "has no upper bound" in solution.message
    assert "The objective is -" in solution.message


# --- numbers that are none


def test_an_invalid_number_names_expression_time_interval_and_values_of_the_guess():
    solution = solve(motion(lambda s: ca.log(s["x"] - 2.0) + s["u"]), intervals=10)

    assert solution.status is Status.INVALID_NUMBER
    assert "The rate of 'x' of motion is not finite at 0 s (interval 0 to 0.1 s)" in solution.message
    assert "log of -2 is nan" in solution.message
    assert "There x = 0, u = 0" in solution.message
    assert solution.phase.values["x"] == pytest.approx(solution.phase.times)  # the guess is kept


def test_an_invalid_number_in_the_middle_has_the_time_of_the_first_bad_point():
    solution = solve(motion(lambda s: s["u"] / ca.sqrt(0.62 - s["x"])), intervals=10)

    # the guess is x = t: the first point beyond 0.62 is the midpoint of the interval that begins at 0.6
    assert "not finite at 0.65 s (interval 0.6 to 0.7 s)" in solution.message
    assert "sqrt of -0.03 is nan" in solution.message


@pytest.mark.parametrize(
    ("problem", "named"),
    [
        (motion(lambda s: s["u"], cost=lambda v: ca.log(v["x"] - 0.5)), "The integrand 'cost' of motion"),
        (
            motion(lambda s: s["u"], path={"gap": Constraint(lambda v: ca.sqrt(v["x"] - 0.5), high=1.0)}),
            "The path constraint 'gap' of motion",
        ),
        (motion(lambda s: ca.sqrt(s["x"]) + s["u"]), "The first derivative of the rate of 'x' by x of motion"),
        (
            motion(lambda s: s["u"], cost=lambda v: ca.fabs(v["x"]) ** 1.5),
            "The second derivative of the integrand 'cost' by x and x",
        ),
        (replace(block(), cost=lambda e: ca.log(e.initial["x"])), "The objective is not finite: log(x_initial)"),
        (
            replace(block(), constraints={"far": Constraint(lambda e: 1.0 / e.initial["x"], low=0.0)}),
            "The constraint 'far' is not finite",
        ),
    ],
    ids=["integrand", "path", "derivative", "second derivative", "objective", "constraint"],
)
def test_an_invalid_number_is_found_in_every_kind_of_function(problem, named):
    solution = solve(problem, intervals=10)

    assert solution.status is Status.INVALID_NUMBER
    assert named in solution.message


def test_an_invalid_number_of_a_later_iterate_is_found_there():
    # the first step leads from p = 1 to the minimum p = 0 of p^2, where the root has no derivative
    def cost(v):
        return v["u"] ** 2 + v["p"] ** 2 + 1e-30 * (v["p"] ** 4) ** 0.25

    body = problems.system("body", {"x": lambda s: s["u"]}, ["u"], [Variable("p", "")])
    phase = Phase(body, tf=1.0, initial={"x": 0.0}, final={"x": 1.0}, integrals={"cost": Integral(cost)})
    solution = solve(TrajectoryProblem([phase], cost=lambda e: e.integral["cost"], guess={"p": 1.0}), intervals=5)

    assert solution.status is Status.INVALID_NUMBER
    assert solution.iterations == 1
    assert solution.parameters == {"p": 0.0}
    assert "The first derivative of the integrand 'cost' by p of motion is not finite" in solution.message
    assert "p = 0" in solution.message


def test_the_unknown_rates_of_a_mechanism_are_named_by_their_equation():
    x, v, a, u = (ca.SX.sym(n) for n in ("x", "v", "a", "u"))
    body = System.from_expressions(
        "body",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, a)],
        controls=[(Variable("u", "N"), u)],
        unknowns=[(Variable("a", "m/s^2"), a, a - u / x)],
    )
    problem = TrajectoryProblem(
        [Phase(body, tf=1.0, initial={"x": 0.0, "v": 0.0}, integrals={"e": Integral(lambda v: v["u"] ** 2)})],
        cost=lambda e: e.integral["e"],
    )

    assert "The equation of 'a' of motion is not finite at 0 s" in solve(problem).message


# --- found before solving


def test_more_equations_than_variables_are_counted_before_solving_with_suspects():
    spring = problems.damped_start()
    fixed = replace(spring, phases=[replace(spring.phases[0], final={"x": 0.0, "v": 0.0})])
    solution = solve(fixed, intervals=50)

    assert solution.status is Status.OVER_CONSTRAINED
    assert not solution.success
    assert "200 equations for 199 free variables, 1 too many" in solution.message
    assert "Suspect: initial values of x, v of motion; final values of x, v of motion" in solution.message
    assert solution.iterations == 0
    assert len(solution.phase.times) == 101


def test_equations_without_free_variables_that_hold_do_not_count():
    # the straight trajectory of a control that is fixed is no equation for anything
    solution = solve(block(bounds={"u": (2.0, 2.0)}, final={}), intervals=10, midpoint_control="linear")

    assert solution.status is Status.SOLVED
    assert solution.phase.values["x"][-1] == pytest.approx(1.0)
    assert explain(solution).groups == ()


def test_constraints_that_are_equations_are_suspects_too():
    limits = {"line": Constraint(lambda v: v["x"] - v.time, 0.0, 0.0), "even": Constraint(lambda v: v["v"], 1.0, 1.0)}
    problem = replace(block(path=limits), constraints={"twice": Constraint(lambda e: e.final["x"], 1.0, 1.0)})

    message = solve(problem, intervals=10).message
    assert "path constraints line, even of motion" in message
    assert "constraints twice" in message


@pytest.mark.parametrize(
    ("problem", "status", "where"),
    [
        (lambda: block(bounds={"u": (1.0, -1.0)}), "bad_bounds", "motion: bounds.u"),
        (lambda: block(bounds={"x": (2.0, 3.0)}), "bad_bounds", "motion: initial.x"),
        (lambda: block(tf=-1.0), "bad_bounds", "motion: tf"),
        (lambda: block(path={"no": Constraint(lambda v: v["x"], 1.0, 0.0)}), "bad_bounds", "path.no"),
        (lambda: replace(block(), guess={"mass": 1.0}), "bad_guess", "guess.mass"),
    ],
    ids=["empty", "outside", "time", "limits", "name"],
)
def test_an_unusable_start_is_refused_with_its_field(problem, status, where):
    with pytest.raises(ProblemError) as error:
        solve(problem())

    assert error.value.status == status
    assert error.value.where.endswith(where)


def test_a_guess_that_is_not_finite_is_refused():
    with pytest.raises(ProblemError) as error:
        sampled([0.0, 1.0], {"x": [0.0, math.nan]})
    assert (error.value.status, error.value.where) == ("bad_guess", "x")


# --- stationary points that are no minima


def integrator(cost, bound=math.inf):
    x, u = ca.SX.sym("x"), ca.SX.sym("u")
    system = System.from_expressions(
        "integrator", states=[(Variable("x", "m"), x, u)], controls=[(Variable("u", "m/s", -bound, bound), u)]
    )
    effort = {"effort": Integral(lambda v: v["u"] ** 2)}
    return TrajectoryProblem([Phase(system, tf=1.0, initial={"x": 0.0}, integrals=effort)], cost=cost)


@pytest.mark.parametrize("cost", [lambda e: -e.integral["effort"], lambda e: -(e.final["x"] ** 2)])
def test_a_state_of_rest_with_the_largest_cost_is_not_the_optimum(cost):
    # all derivatives of both costs are zero at the guess, u = 0, where they have their maximum
    solution = solve(integrator(cost, bound=3.0))
    assert solution.status is Status.SOLVED
    assert solution.objective == pytest.approx(-9.0, rel=1e-6)
    assert "not a minimum" in solution.message
    assert solve(integrator(cost)).status is Status.DIVERGING


def test_a_guess_that_is_the_optimum_remains_it():
    solution = solve(integrator(lambda e: e.integral["effort"]))
    assert (solution.status, solution.iterations, solution.objective) == (Status.SOLVED, 0, 0.0)
    assert "not a minimum" not in solution.message


def test_the_limited_memory_hessian_leads_to_the_same_optimum():
    exact, updated = (solve(problems.cart_pole(), intervals=30, hessian=h, compile="never") for h in ("exact", "lbfgs"))

    assert updated.success
    assert updated.objective == pytest.approx(exact.objective, rel=1e-6)
    assert updated.iterations > exact.iterations
    assert updated.solver == "ipopt, lbfgs hessian, mumps"


def test_a_solution_has_times_versions_and_seed():
    solution = solve(problems.block_move(), intervals=5, seed=7)

    assert {"model", "build", "compile", "solve", "check"} <= set(solution.timing)
    assert {"designopt", "casadi", "numpy"} <= set(solution.versions)
    assert solution.seed == 7
    assert len(solution.history["objective"]) == solution.iterations + 1
    assert solution.history["objective"][-1] == pytest.approx(solution.objective, rel=1e-6)


def test_a_failed_solution_of_any_status_is_a_guess():
    failed = solve(motion(lambda s: ca.log(s["x"] - 2.0) + s["u"]), intervals=10)

    assert isinstance(Guess.from_solution(failed), Guess)
    assert solve(motion(lambda s: s["u"]), guess=Guess.from_solution(failed)).status is Status.SOLVED
