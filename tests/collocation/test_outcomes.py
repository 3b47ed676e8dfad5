"""How a solve ends: each status from a problem that leads to it, and what its message says.

A failed solve gives its last iterate as a solution; it never raises and never writes to the terminal.
"""

import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import benchmark_problems as problems
import casadi as ca
import numpy as np
import pytest

from designopt import collocation
from designopt.collocation import (
    Constraint,
    Guess,
    Integral,
    Options,
    Phase,
    ProblemError,
    Program,
    Status,
    TrajectoryProblem,
    sampled,
)
from designopt.collocation.design import solve_design
from designopt.dynamics.system import System, Variable


def block(**changes):
    problem = problems.block_move()
    return replace(problem, phases=[replace(problem.phases[0], **changes)])


def motion(rate, *, final=1.0, initial=0.0, duration=1.0, cost=lambda v: v["u"] ** 2, **more):
    """One state with `rate`, from `initial` to `final` with the least `cost`."""
    return TrajectoryProblem(
        [
            Phase(
                problems.system("body", {"x": rate}, ["u"]),
                tf=duration,
                initial={"x": initial},
                final={} if final is None else {"x": final},
                integrals={"cost": Integral(cost)},
                **more,
            )
        ],
        cost=lambda e: e.integral["cost"],
    )


def unending():
    """A rate that jumps back in the middle of the way: the search goes to and fro, for 4000 iterations and more."""
    return motion(lambda s: ca.if_else(s["x"] > 0.5, -1.0, 1.0) + 0.1 * s["u"], duration=2.0, bounds={"u": (-1.0, 1.0)})


@pytest.fixture(autouse=True)
def silent(capfd):
    """Nothing is written to the terminal."""
    yield
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def solve(problem, guess=None, **options):
    return Program(problem, Options(**options), guess).solve(guess=guess)


# --- solved


def test_solved_says_how_far_the_result_can_be_trusted():
    found = collocation.solve(problems.block_move(), Options(intervals=10))

    assert found.status is Status.SOLVED
    assert found.success
    assert re.search(r"Error estimate \S+; re-simulation of the controls differs by \d", found.message)


def test_acceptable_names_the_residual_that_missed():
    found = solve(problems.cart_pole(), tolerance=1e-17, acceptable_tolerance=1e-6)

    assert found.status is Status.ACCEPTABLE
    assert found.success
    assert "Above the tolerance of 1e-17: " in found.message
    assert "dual infeasibility" in found.message


# --- not solved


def test_an_infeasible_problem_names_the_five_worst_constraints_with_times_and_what_is_on_its_bounds():
    found = solve(block(bounds={"u": (-1.0, 1.0)}), intervals=20)  # 4 N are needed

    assert found.status is Status.LOCALLY_INFEASIBLE
    assert not found.success
    worst = found.message.split("Worst constraints: ")[1].split(". On bounds")[0].split("; ")
    assert len(worst) == 5
    assert all(text.startswith("rate of 'x' of motion at 0.") for text in worst)
    assert re.search("u of motion is at 1 for (49|50|51) % of the time", found.message)


def test_an_infeasible_path_constraint_is_named_with_its_limit_and_unit():
    limits = {"slow": Constraint(lambda v: v["v"], high=0.5, unit="m/s")}  # the mean is 1 m/s
    found = solve(block(path=limits), intervals=20)

    assert found.status is Status.LOCALLY_INFEASIBLE
    assert "path constraint 'slow' of motion is at 0.5" in found.message

    contradiction = {"circle": Constraint(lambda v: v["x"] ** 2 + v["v"] ** 2, high=-1.0, unit="m^2")}
    found = solve(block(path=contradiction), intervals=20)
    assert "path constraint 'circle' of motion at " in found.message
    assert "at most -1 m^2" in found.message


def test_the_limit_of_iterations_tells_the_residuals_and_how_to_go_on():
    found = solve(problems.cart_pole(), max_iterations=3)

    assert found.status is Status.ITERATION_LIMIT
    assert found.iterations == 3
    assert "After 3 iterations the iterate is infeasible: constraint violation" in found.message
    assert "dual infeasibility" in found.message
    assert "to_guess" in found.message
    again = solve(problems.cart_pole(), guess=found.to_guess())
    assert again.status is Status.SOLVED


def test_a_feasible_iterate_at_the_limit_is_called_feasible():
    found = solve(motion(lambda s: s["u"], cost=lambda v: (v["u"] - 1.0) ** 4), intervals=5, max_iterations=1)

    assert found.status is Status.ITERATION_LIMIT
    assert "the iterate is feasible" in found.message


def test_the_time_limit_keeps_the_last_iterate():
    found = solve(problems.cart_pole(), intervals=400, time_limit=0.02)

    assert found.status is Status.TIME_LIMIT
    assert "infeasible" in found.message
    assert np.isfinite(found.phase.values["angle"]).all()


def test_a_failed_restoration_tells_worst_constraints_scaling_and_multipliers():
    # 160 million oscillations of the rate along the way: no step is as good as its derivatives promise
    found = solve(motion(lambda s: s["u"] + 1e-2 * ca.sin(1e9 * s["x"])), max_iterations=300)

    assert found.status is Status.RESTORATION_FAILED
    assert "Worst constraints: rate of 'x' of motion at" in found.message
    assert "Entries of the scaled Jacobian differ by a factor" in found.message
    assert "the smallest multiplier is" in found.message


def test_steps_that_become_too_small_stall():
    found = solve(problems.van_der_pol(), tolerance=1e-18, acceptable_tolerance=1e-30, max_iterations=300)

    assert found.status is Status.STALLED
    assert "No constraint is violated" in found.message
    assert "Entries of the scaled Jacobian differ by a factor" in found.message


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
def test_a_search_without_bounds_diverges_and_names_what_grows(problem, named):
    found = solve(problem, intervals=10)

    assert found.status is Status.DIVERGING
    assert named in found.message
    assert "has no upper bound" in found.message
    assert "The objective is -" in found.message


# --- numbers that are none


def test_an_invalid_number_names_expression_time_interval_and_values_of_the_guess():
    found = solve(motion(lambda s: ca.log(s["x"] - 2.0) + s["u"]), intervals=10)

    assert found.status is Status.INVALID_NUMBER
    assert "The rate of 'x' of motion is not finite at 0 s (interval 0 to 0.1 s)" in found.message
    assert "log of -2 is nan" in found.message
    assert "There x = 0, u = 0" in found.message
    assert found.phase.values["x"] == pytest.approx(found.phase.times)  # the guess is kept


def test_an_invalid_number_in_the_middle_has_the_time_of_the_first_bad_point():
    found = solve(motion(lambda s: s["u"] / ca.sqrt(0.62 - s["x"])), intervals=10)

    # the guess is x = t: the first point beyond 0.62 is the midpoint of the interval that begins at 0.6
    assert "not finite at 0.65 s (interval 0.6 to 0.7 s)" in found.message
    assert "sqrt of -0.03 is nan" in found.message


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
    found = solve(problem, intervals=10)

    assert found.status is Status.INVALID_NUMBER
    assert named in found.message


def test_an_invalid_number_of_a_later_iterate_is_found_there():
    # the first step leads from p = 1 to the minimum p = 0 of p^2, where the root has no derivative
    def cost(v):
        return v["u"] ** 2 + v["p"] ** 2 + 1e-30 * (v["p"] ** 4) ** 0.25

    body = problems.system("body", {"x": lambda s: s["u"]}, ["u"], [Variable("p", "")])
    phase = Phase(body, tf=1.0, initial={"x": 0.0}, final={"x": 1.0}, integrals={"cost": Integral(cost)})
    found = solve(TrajectoryProblem([phase], cost=lambda e: e.integral["cost"], guess={"p": 1.0}), intervals=5)

    assert found.status is Status.INVALID_NUMBER
    assert found.iterations == 1
    assert found.parameters == {"p": 0.0}
    assert "The first derivative of the integrand 'cost' by p of motion is not finite" in found.message
    assert "p = 0" in found.message


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
    held = replace(spring, phases=[replace(spring.phases[0], final={"x": 0.0, "v": 0.0})])
    found = solve(held, intervals=50)

    assert found.status is Status.OVER_CONSTRAINED
    assert not found.success
    assert "200 equations for 199 free variables, 1 too many" in found.message
    assert "Suspect: initial values of x, v of motion; final values of x, v of motion" in found.message
    assert found.iterations == 0
    assert len(found.phase.times) == 101


def test_equations_without_free_variables_that_hold_do_not_count():
    # the straight course of a control that is held is no equation for anything
    found = solve(block(bounds={"u": (2.0, 2.0)}, final={}), intervals=10, midpoint_control="linear")

    assert found.status is Status.SOLVED
    assert found.phase.values["x"][-1] == pytest.approx(1.0)
    assert found.explain().groups == ()


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
def test_what_cannot_be_solved_from_is_refused_with_its_field(problem, status, where):
    with pytest.raises(ProblemError) as error:
        solve(problem())

    assert error.value.status == status
    assert error.value.where.endswith(where)


def test_a_guess_that_is_not_finite_is_refused():
    with pytest.raises(ProblemError) as error:
        sampled([0.0, 1.0], {"x": [0.0, math.nan]})
    assert (error.value.status, error.value.where) == ("bad_guess", "x")


# --- requests to stop


@pytest.fixture
def handled():
    """Ctrl-C as in a terminal; a shell lets what it starts in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_from(handler, number=signal.SIGINT):
    """Sends the signal to this process when the solver has taken it over from `handler` and goes through iterations."""

    def send():
        while signal.getsignal(number) is handler:
            time.sleep(0.005)
        time.sleep(0.2)
        if signal.getsignal(number) is not handler:
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    return thread


def test_a_request_to_stop_ends_the_solve_with_its_last_iterate(handled):
    before = signal.getsignal(signal.SIGINT)
    thread = interrupt_from(before)
    program = Program(unending(), Options(max_iterations=10**6))
    begin = time.perf_counter()
    found = program.solve()
    thread.join()

    assert found.status is Status.CANCELLED
    assert not found.success
    assert time.perf_counter() - begin < 5.0
    assert found.iterations > 0
    assert np.abs(found.phase.values["x"] - found.phase.times / 2.0).max() > 1e-6  # it is not the guess
    assert "to_guess" in found.message
    assert signal.getsignal(signal.SIGINT) is before


def test_what_the_handler_of_the_host_raises_reaches_it():
    class Break(KeyboardInterrupt):
        pass

    def receive(number, frame):
        raise Break

    before = signal.signal(signal.SIGTERM, receive)
    try:
        thread = interrupt_from(receive, signal.SIGTERM)
        with pytest.raises(Break):
            solve(unending(), max_iterations=10**6)
        thread.join()
        assert signal.getsignal(signal.SIGTERM) is receive
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_host_that_only_notes_the_request_lets_the_solve_end():
    noted = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: noted.append(number))
    receive = signal.getsignal(signal.SIGTERM)
    try:
        thread = interrupt_from(receive, signal.SIGTERM)
        found = solve(unending(), time_limit=1.0, max_iterations=10**6)
        thread.join()
    finally:
        signal.signal(signal.SIGTERM, before)

    assert found.status is Status.TIME_LIMIT
    assert noted == [signal.SIGTERM]


def test_a_solve_in_another_thread_handles_no_signals():
    found = []
    thread = threading.Thread(target=lambda: found.append(solve(problems.block_move(), intervals=5)))
    thread.start()
    thread.join()

    assert found[0].status is Status.SOLVED


def test_threads_may_share_a_program():
    """In a process of its own: without their waiting for each other it is killed by a violation of memory."""
    script = """
import sys
import threading
sys.path.insert(0, sys.argv[1])
import test_outcomes
from designopt.collocation import Options, Program
program = Program(test_outcomes.problems.block_move(), Options(intervals=20))
found = []
def work():
    for _ in range(10):
        found.append(round(program.solve().objective, 6))
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(found), set(found))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(Path(__file__).parent)], capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "40 {12.0}\n", "")


def test_a_design_whose_solve_is_stopped_is_no_failed_design(handled):
    thread = interrupt_from(signal.getsignal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt, match="Stopped on request"):
        solve_design(unending(), {}, Options(max_iterations=10**6))
    thread.join()


def test_ctrl_c_in_a_terminal_leaves_the_program_in_charge():
    script = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, sys.argv[1])
import test_outcomes
from designopt.collocation import Options, Program
program = Program(test_outcomes.unending(), Options(max_iterations=10**6))
print("ready", flush=True)
print(program.solve().status.name, flush=True)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(Path(__file__).parent)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)

    assert (out, err, process.returncode) == (b"CANCELLED\n", b"", 0)


# --- results that are doubtful although they are solved


def test_a_state_that_is_too_small_for_the_tolerance_is_warned_about():
    # 1e-9 m is less than 1e-8 of the scale of a variable without a range, 1 m: rest is a solution to the tolerance
    small = block(final={"x": 1e-9, "v": 0.0})
    found = solve(small, intervals=10)
    assert found.objective < 0.5 * 12e-18
    (warning,) = found.warnings
    assert warning.startswith("badly_scaled: x of motion stays below 1e-09 but is solved to 1e-08 of 1: give it")

    scales = {"x": 1e-9, "v": 1e-9, "u": 1e-8}
    scaled = solve(small, intervals=10, scales=scales)
    assert scaled.objective == pytest.approx(12e-18, rel=1e-6)
    assert scaled.warnings == ()
    assert solve(block(), intervals=10).warnings == ()


def test_a_figure_that_is_no_number_is_warned_about():
    found = solve(replace(problems.block_move(), figures={"root": lambda e: ca.sqrt(e.final["x"] - 2.0)}), intervals=5)
    assert found.success
    assert found.warnings == ("invalid_figure: 'root' is nan at the solution",)


# --- stationary points that are no minima


def integrator(cost, bound=math.inf):
    x, u = ca.SX.sym("x"), ca.SX.sym("u")
    system = System.from_expressions(
        "integrator", states=[(Variable("x", "m"), x, u)], controls=[(Variable("u", "m/s", -bound, bound), u)]
    )
    effort = {"effort": Integral(lambda v: v["u"] ** 2)}
    return TrajectoryProblem([Phase(system, tf=1.0, initial={"x": 0.0}, integrals=effort)], cost=cost)


@pytest.mark.parametrize("cost", [lambda e: -e.integral["effort"], lambda e: -(e.final["x"] ** 2)])
def test_rest_that_costs_the_most_is_not_taken_for_the_optimum(cost):
    # all derivatives of both costs are zero at the guess, u = 0, where they have their maximum
    found = solve(integrator(cost, bound=3.0))
    assert found.status is Status.SOLVED
    assert found.objective == pytest.approx(-9.0, rel=1e-6)
    assert "no minimum" in found.message
    assert solve(integrator(cost)).status is Status.DIVERGING


def test_a_guess_that_is_the_optimum_remains_it():
    found = solve(integrator(lambda e: e.integral["effort"]))
    assert (found.status, found.iterations, found.objective) == (Status.SOLVED, 0, 0.0)
    assert "no minimum" not in found.message


# --- models with kinks


KINKS = {
    "abs": (lambda s: ca.fabs(s["x"]) + s["u"], "abs (fabs(x))"),
    "min": (lambda s: ca.fmin(s["x"], 0.5) + s["u"], "min (fmin("),
    "max": (lambda s: ca.fmax(s["u"], 0.0), "max (fmax("),
    "sign": (lambda s: s["u"] - 0.1 * ca.sign(s["x"]), "sign (sign(x))"),
    "if_else": (lambda s: ca.if_else(s["x"] > 0.5, 1.0, 2.0) * s["u"], "if_else"),
    "floor": (lambda s: s["u"] + ca.floor(s["x"]), "floor (floor(x))"),
}


@pytest.mark.parametrize(("rate", "named"), KINKS.values(), ids=KINKS)
def test_a_model_with_a_kink_is_warned_about_by_the_name_of_the_expression(rate, named):
    [warning] = Program(motion(rate), Options(intervals=5)).warnings

    assert warning.startswith("nonsmooth_model: the rate of 'x' of motion has ")
    assert named in warning


def test_constraints_and_integrands_with_kinks_are_named():
    problem = motion(
        lambda s: s["u"],
        cost=lambda v: ca.fabs(v["u"]),
        path={"gap": Constraint(lambda v: ca.fmax(v["x"], v["u"]), high=2.0)},
    )
    found = solve(problem, intervals=5)

    assert [w.split(" of motion")[0] for w in found.warnings] == [
        "nonsmooth_model: the path constraint 'gap'",
        "nonsmooth_model: the integrand 'cost'",
    ]


def test_smooth_models_and_kinks_in_time_alone_give_no_warning():
    smooth = motion(lambda s: ca.sqrt(s["x"] ** 2 + 1e-4) + ca.tanh(s["u"]) + ca.fmax(s["t"], 0.5))

    assert Program(smooth, Options(intervals=5)).warnings == ()
    assert Program(problems.cart_pole(), Options(intervals=5)).warnings == ()


@pytest.mark.parametrize(
    ("kind", "options", "rough"),
    [("linear", {}, True), ("bspline", {"degree": [2]}, True), ("bspline", {}, False)],
    ids=["linear", "quadratic", "cubic"],
)
def test_a_table_is_warned_about_unless_it_is_a_spline_with_continuous_second_derivatives(kind, options, rough):
    x = np.linspace(-5.0, 5.0, 21)
    table = ca.interpolant("force", kind, [x], np.sin(x), options)
    found = solve(motion(lambda s: table(s["x"]) + s["u"]), intervals=10)

    assert found.status is Status.SOLVED
    assert [("a table without continuous second derivatives (force(x))" in w) for w in found.warnings] == [True] * rough


# --- scaling and solver settings


def test_a_badly_scaled_program_names_the_variables():
    problem = TrajectoryProblem(
        [
            Phase(
                problems.system("tiny", {"x": lambda s: 1e-7 * s["v"], "v": lambda s: 1e6 * s["u"]}, ["u"]),
                tf=2.0,
                initial={"x": 0.0, "v": 0.0},
                final={"x": 1e-6, "v": 0.0},
                integrals={"e": Integral(lambda v: v["u"] ** 2)},
            )
        ],
        cost=lambda e: e.integral["e"],
    )
    found = solve(problem)

    low, high = found.scaling_range
    assert high / low > 1e8
    [warning, small] = found.warnings
    assert warning.startswith("badly_scaled: ")
    assert small.startswith("badly_scaled: x of motion stays below 1e-06 but is solved to 1e-08 of 1")
    assert "(rate of 'x' by 'v')" in warning
    assert "(rate of 'v' by 'u')" in warning


def test_a_well_scaled_program_tells_its_range_and_is_not_warned_about():
    found = solve(problems.cart_pole())

    low, high = found.scaling_range
    assert 0.0 < low < high < 1e8 * low
    assert found.warnings == ()
    assert found.scales["motion.x"] == 2.0
    assert found.scales["motion.u"] == 20.0


def test_the_differential_form_with_static_parameters_is_not_slow():
    # measured with IPOPT's own mumps_permuting_scaling: 457 ms of CPU time per iteration instead of 3.7 (n = 1206)
    program = Program(problems.quarter_car(), Options(scheme="radau", degree=3, intervals=100, defects="differential"))
    begin = time.process_time()
    found = program.solve()
    per_iteration = (time.process_time() - begin) / found.iterations

    assert found.status is Status.SOLVED
    assert len(found.iterate.x) == 1206
    assert per_iteration < 0.05


def test_a_hessian_that_is_not_formed_finds_the_same_optimum():
    exact, updated = (solve(problems.cart_pole(), intervals=30, hessian=h) for h in ("exact", "lbfgs"))

    assert updated.success
    assert updated.objective == pytest.approx(exact.objective, rel=1e-6)
    assert updated.iterations > exact.iterations
    assert updated.solver == "ipopt, lbfgs hessian, mumps"


def test_a_solution_tells_times_versions_and_seed():
    found = solve(problems.block_move(), intervals=5, seed=7)

    assert {"model", "build", "compile", "solve", "check"} <= set(found.timing)
    assert {"designopt", "casadi", "numpy"} <= set(found.versions)
    assert found.seed == 7
    assert len(found.history["objective"]) == found.iterations + 1
    assert found.history["objective"][-1] == pytest.approx(found.objective, rel=1e-6)


def test_a_guess_is_a_guess_after_any_failure():
    failed = solve(motion(lambda s: ca.log(s["x"] - 2.0) + s["u"]), intervals=10)

    assert isinstance(failed.to_guess(), Guess)
    assert solve(motion(lambda s: s["u"]), guess=failed.to_guess()).status is Status.SOLVED
