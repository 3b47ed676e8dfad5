"""What is doubtful about a problem or a result is warned about: kinks, scales, figures, states too small to be seen."""

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
    Program,
    Refinement,
    Status,
    TrajectoryProblem,
    linked,
    sampled,
)
from designopt.collocation.solution.verification.between_points import has_pulses
from designopt.collocation.solve.pulses import without_pulses
from designopt.collocation.solve.refine import _worse_optimum
from designopt.dynamics.system import System, Variable

pytestmark = pytest.mark.usefixtures("silent")


# --- results that are doubtful although they are solved


def test_a_state_that_is_too_small_for_the_tolerance_is_warned_about():
    # 1e-9 m is less than 1e-8 of the scale of a variable without a range, 1 m: rest is a solution to the tolerance
    small = block(final={"x": 1e-9, "v": 0.0})
    solution = solve(small, intervals=10)
    assert solution.objective < 0.5 * 12e-18
    (warning,) = solution.warnings
    assert warning.startswith("badly_scaled: x of motion stays below 1e-09 but is solved to 1e-08 of 1; give it")

    scales = {"x": 1e-9, "v": 1e-9, "u": 1e-8}
    scaled = solve(small, intervals=10, scales=scales)
    assert scaled.objective == pytest.approx(12e-18, rel=1e-6)
    assert scaled.warnings == ()
    assert solve(block(), intervals=10).warnings == ()


def test_a_figure_that_is_no_number_is_warned_about():
    solution = solve(
        replace(problems.block_move(), figures={"root": lambda e: ca.sqrt(e.final["x"] - 2.0)}), intervals=5
    )
    assert solution.success
    assert solution.warnings == ("invalid_figure: 'root' is nan at the solution",)


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
    solution = solve(problem, intervals=5)

    assert [w.split(" of motion")[0] for w in solution.warnings] == [
        "nonsmooth_model: the path constraint 'gap'",
        "nonsmooth_model: the integrand 'cost'",
    ]


def test_smooth_models_and_kinks_in_time_alone_give_no_warning():
    smooth = motion(lambda s: ca.sqrt(s["x"] ** 2 + 1e-4) + ca.tanh(s["u"]) + ca.fmax(s["t"], 0.5))

    assert Program(smooth, Options(intervals=5)).warnings == ()
    assert Program(problems.cart_pole(), Options(intervals=5)).warnings == ()


@pytest.mark.parametrize("grid", [(-5.0, 5.0), (2.0, 2.5)], ids=["around 0", "away from 0"])
@pytest.mark.parametrize(
    ("kind", "options", "degree"),
    [("linear", {}, 1), ("bspline", {"degree": [2]}, 2), ("bspline", {}, 3), ("bspline", {"degree": [5]}, 5)],
    ids=["linear", "quadratic", "cubic", "quintic"],
)
def test_a_table_is_warned_about_by_its_name_unless_it_is_a_spline_with_continuous_second_derivatives(
    kind, options, degree, grid
):
    x = np.linspace(*grid, 21)
    table = ca.interpolant("force", kind, [x], np.sin(x), options)
    warnings = Program(motion(lambda s: table(s["x"]) + s["u"]), Options(intervals=10)).warnings

    assert warnings == (
        (
            f"nonsmooth_model: the rate of 'x' of motion has the table 'force' of degree {degree}; give the table"
            " degree 3 (casadi.interpolant of kind bspline), else the solver may stall there",
        )
        if degree < 3
        else ()
    )


def test_a_table_of_two_variables_is_as_smooth_as_its_least_degree():
    x = np.linspace(-1.0, 1.0, 9)
    options = {"degree": [3, 1]}
    table = ca.interpolant("pull", "bspline", [x, x], np.outer(x, x).ravel(), options)
    rate = motion(lambda s: ca.fabs(s["x"]) + table(ca.vertcat(s["x"], s["u"])))
    [warning] = Program(rate, Options(intervals=5)).warnings

    assert "has abs (fabs(x)) and the table 'pull' of degree 1; replace" in warning


# --- scaling


@pytest.mark.parametrize(
    ("bounds", "status"),
    [
        ({"u": (-1e13, 1e13)}, Status.DIVERGING),
        ({"x": (-2e10, 2e10), "u": (-1e13, 1e13)}, Status.LOCALLY_INFEASIBLE),
    ],
)
def test_a_program_that_fails_because_of_its_scales_reports_it(bounds, status):
    # u = 6e10 at most is all that it needs; but bounds so wide give no scale, and the search goes astray: where to is a
    # matter of rounding errors, those of MUMPS here
    far = block(final={"x": 1e10, "v": 0.0}, bounds=bounds)
    solution = solve(far, intervals=10, compile="never")
    assert solution.status is status
    assert "The program is badly scaled, which may be the only cause: see the warnings." in solution.message
    scales = {"x": 1e10, "v": 1e10, "u": 1e11}
    assert solve(block(final={"x": 1e10, "v": 0.0}), intervals=10, scales=scales).success


def test_a_badly_scaled_link_of_phases_names_its_state():
    system = problems.system("tiny", {"x": lambda s: 1e-4 * s["v"], "v": lambda s: s["u"]}, ["u"])
    begin = Phase(system, name="begin", tf=1.0, initial={"x": 0.0, "v": 0.0}, bounds={"x": (0.0, 9e5)})
    end = replace(begin, name="end", t0=None, tf=2.0, initial={}, final={"v": 1.0})
    squared = {"e": Integral(lambda v: v["u"] ** 2)}
    phases = [replace(phase, integrals=squared) for phase in (begin, end)]
    problem = TrajectoryProblem(
        phases, lambda e: e.phase["begin"].integral["e"] + e.phase["end"].integral["e"], {"link": linked(begin, end)}
    )
    (warning,) = [w for w in solve(problem, intervals=4).warnings if w.startswith("badly_scaled: entries")]
    assert "(constraint 'link' of 'x' by 'x')" in warning
    assert warning.endswith("or state them in other units")


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
    solution = solve(problem)

    low, high = solution.scaling_range
    assert high / low > 1e8
    [warning, small] = solution.warnings
    assert warning.startswith("badly_scaled: ")
    assert small.startswith("badly_scaled: x of motion stays below 1e-06 but is solved to 1e-08 of 1")
    assert "(rate of 'x' by 'v')" in warning
    assert "(rate of 'v' by 'u')" in warning


@pytest.mark.parametrize("offset", [1.5e-13, 2.1e-12])
def test_an_entry_that_is_zero_at_the_guess_up_to_rounding_is_no_bad_scale(offset):
    """At the guess u = 0 the slope of the cosine is the offset, a rounding error, and u has no other entry."""
    solution = solve(
        motion(
            lambda s: ca.cos(s["u"] + offset),
            final=None,
            bounds={"u": (-1.0, 1.0), "x": (0.0, 2.0)},
            cost=lambda v: (v["x"] - 1.0) ** 2,
        )
    )
    assert solution.success
    assert [w for w in solution.warnings if w.startswith("badly_scaled")] == []


def test_a_well_scaled_program_tells_its_range_and_is_not_warned_about():
    solution = solve(problems.cart_pole())

    low, high = solution.scaling_range
    assert 0.0 < low < high < 1e8 * low
    assert solution.warnings == ()
    assert solution.scales["motion.x"] == 2.0
    assert solution.scales["motion.u"] == 20.0


@pytest.mark.parametrize("end", [1.0, 2.0, -3.0])
@pytest.mark.parametrize("kind", ["linear", "bspline"])
def test_a_table_that_is_used_beyond_its_grid_is_named_once(kind, end):
    grid = np.linspace(-1.0, 1.5, 6)
    table = ca.interpolant("drag", kind, [grid], 0.1 * grid**3)
    solution = solve(motion(lambda s: s["u"] + table(s["x"]), final=end), intervals=10)
    excursions = [warning for warning in solution.warnings if warning.startswith("beyond_table")]
    text = "the table 'drag', whose grid of x is from -1 to 1.5, is extrapolated to"
    assert excursions == ([] if end == 1.0 else [f"beyond_table: {text} {end:g} in motion at 1 s"])


# --- pulses of single intervals


def crossing(low: float, high: float, **phase) -> TrajectoryProblem:
    """Zermelo's boat in a linear current with a heading from `low` to `high` rad, as fast as possible: 5.457865
    (Bryson & Ho 1975, section 2.7: 5.46)."""
    x, y, theta = (ca.SX.sym(name) for name in ("x", "y", "theta"))
    boat = System.from_expressions(
        "boat",
        states=[(Variable("x", ""), x, ca.cos(theta) - y), (Variable("y", ""), y, ca.sin(theta))],
        controls=[(Variable("theta", "rad", low, high), theta)],
    )
    ends = {"initial": {"x": 3.66, "y": -1.86}, "final": {"x": 0.0, "y": 0.0}, "tf": (1.0, 20.0)}
    return TrajectoryProblem([Phase(boat, **ends, **phase)], cost=lambda end: end.tf)


@pytest.mark.parametrize(("low", "high"), [(0.0, 2 * np.pi), (-1.0, 8.0)])
@pytest.mark.parametrize("settings", [{}, {"intervals": 100}, {"refine": Refinement(tolerance=1e-6)}], ids=str)
def test_a_local_optimum_with_pulses_is_left_through_one_with_a_penalty_on_rates(low, high, settings):
    problem = crossing(low, high)
    with_pulses = Program(problem, Options(**settings)).solve()
    solution = collocation.solve(problem, Options(**settings))

    assert with_pulses.objective > 5.6
    assert solution.objective == pytest.approx(5.457865, abs=1e-6)
    assert solution.warnings == ()
    first = f"pulses of single intervals in theta, had the objective {with_pulses.objective:.6g}: this one was found"
    assert first in solution.message


@pytest.mark.parametrize("intervals", [20, 21])
def test_a_correct_control_with_a_pulse_remains_to_the_last_bit(intervals):
    def pulse(x):
        return ca.exp(-(((x - 0.5) / 0.03) ** 2))

    problem = motion(
        lambda s: 1.0 + 1e-9 * s["u"], final=None, cost=lambda v: 1.0 + (v["u"] - pulse(v["x"])) ** 2
    )  # x is the time
    program = Program(problem, Options(intervals=intervals))
    first = program.solve()

    assert has_pulses(first.phase, "u")
    assert without_pulses(program, problem, first).iterate is first.iterate


def test_pulses_that_a_refinement_cannot_resolve_are_named():
    """A mesh that is too coarse to find the right heading from the default guess."""
    solution = collocation.solve(crossing(-1.0, 8.0), Options(intervals=22, mesh_check=1e-4))

    assert solution.status is Status.MESH_UNRESOLVED
    assert any(w.startswith("local_optimum: theta of motion jumps for single") for w in solution.warnings)


def test_a_warning_names_a_refinement_that_ends_in_a_worse_optimum():
    """A boat that starts right, and rounds that end elsewhere: as a refinement without a guess may."""
    problem = crossing(0.0, 2 * np.pi)
    right = Guess({"motion": sampled([0.0, 5.46], {"theta": [1.8, 4.2]})})
    program = Program(problem, Options(intervals=20, scheme="radau"))
    late, first = program.solve(), program.solve(guess=right)
    assert late.objective > 1.01 * first.objective

    assert list(_worse_optimum(first, first)) == list(_worse_optimum(first, late)) == []
    first = replace(first, error_estimate=1e-4)
    [warning] = _worse_optimum(late, first)
    assert warning.startswith("worse_optimum: a coarser mesh of 20 intervals had the objective 5.45787 with an error")
    assert f"the refined one has {late.objective:.6g}: a local" in warning


def test_a_warning_names_an_optimum_that_may_exploit_the_errors_of_its_mesh():
    """Twenty intervals are too few for two headings that are a turn apart; a guess finds the right ones."""
    late = collocation.solve(crossing(-1.0, 8.0), Options(intervals=20))
    right = collocation.solve(crossing(-1.0, 8.0, guess={"theta": (1.8, 4.2)}))
    assert right.objective == pytest.approx(5.457865, abs=1e-6)
    assert right.warnings == ()
    assert late.objective > 1.01 * right.objective
    assert any(warning.startswith("coarse_mesh: the error estimate is ") for warning in late.warnings)
