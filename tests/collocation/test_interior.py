"""The interior point method reaches the optimum of IPOPT from the same guess; IPOPT takes over where it is lost."""

from dataclasses import replace
from weakref import ref

import benchmark_problems as problems
import casadi as ca
import numpy as np
import pytest

from designopt.collocation import Constraint, Integral, Options, Phase, Program, Solution, TrajectoryProblem, solve
from designopt.collocation.interior import library
from designopt.collocation.interior.method import NAME, SOLVED, Interior, Run
from designopt.collocation.solution.solution import Status
from designopt.collocation.solve.ipopt import MIN_SECONDS, Start, limits
from designopt.collocation.transcription.boxes import boxes
from designopt.dynamics import System, Variable
from designopt.dynamics.compile import find_compiler, lane_flags
from designopt.evaluation_progress import listened_by

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")

IPOPT = {"linear_solver": "mumps"}


@needs_compiler
@pytest.mark.parametrize(
    "name",
    [
        "block_move", "cart_pole", "van_der_pol", "linear_tangent", "double_integrator", "goddard", "sliding_mass",
        "damped_start", "quarter_car", "hyper_sensitive",
    ],
)  # fmt: skip
def test_the_optimum_is_that_of_ipopt(name):
    problem = getattr(problems, name)()
    solution = solve(problem, Options(intervals=20, check=False))
    reference = solve(problem, Options(intervals=20, check=False, ipopt=IPOPT))

    assert (solution.solver, reference.solver) == (
        f"{NAME}, exact hessian, designopt ldl",
        "ipopt, exact hessian, mumps",
    )
    assert solution.status is reference.status is Status.SOLVED
    assert solution.objective == pytest.approx(reference.objective, rel=1e-7, abs=1e-9)
    assert solution.optimisation_error <= 1e-8


@needs_compiler
@pytest.mark.parametrize("ipopt", [{}, IPOPT], ids=["interior", "ipopt"])
def test_a_solve_reports_its_iterations_as_progress(ipopt):
    reports = []
    with listened_by(lambda share, text: reports.append((np.isnan(share), text))):
        solution = solve(problems.cart_pole(), Options(intervals=20, check=False, ipopt=ipopt))
    assert list(dict.fromkeys(reports))[: solution.iterations] == [
        (True, f"iteration {k}") for k in range(solution.iterations)
    ]


@needs_compiler
@pytest.mark.parametrize("name", ["cart_pole", "goddard", "quarter_car"])
def test_a_solve_has_the_same_bits_with_any_number_of_lanes(name, monkeypatch):
    iterates = []
    for flags in (lane_flags(), ("-DLANES=2",)):
        monkeypatch.setattr(library, "lane_flags", lambda flags=flags: flags)
        monkeypatch.setattr(library, "_load_library", library._load_library.__wrapped__)  # without its cache
        solution = solve(getattr(problems, name)(), Options(intervals=20, check=False))
        assert solution.solver.startswith(NAME)
        iterates.append(np.concatenate([solution.iterate.x, solution.iterate.constraint_multipliers]))
        monkeypatch.undo()
    np.testing.assert_array_equal(*iterates)


@needs_compiler
def test_multipliers_are_those_of_ipopt():
    solution = solve(problems.cart_pole(), Options(intervals=20, check=False))
    reference = solve(problems.cart_pole(), Options(intervals=20, check=False, ipopt=IPOPT))

    for name in ("x", "angle", "v", "omega"):
        costates = solution.phase.costates[name], reference.phase.costates[name]
        np.testing.assert_allclose(*costates, rtol=1e-6, atol=1e-6 * np.abs(costates[1]).max())


@needs_compiler
def test_a_path_constraint_on_its_limit_has_the_multiplier_of_ipopt():
    """The block may not exceed the speed 1.2; without the limit it reaches 1.5."""
    problem = problems.block_move()
    limited = replace(problem.phases[0], path={"speed": Constraint(lambda v: v["v"], high=1.2)})
    problem = replace(problem, phases=[limited])
    solution = solve(problem, Options(intervals=20, check=False))
    reference = solve(problem, Options(intervals=20, check=False, ipopt=IPOPT))

    assert solution.solver.startswith(NAME)
    assert solution.objective == pytest.approx(reference.objective, rel=1e-8)
    assert solution.phase.values["v"].max() <= 1.2 + 1e-8
    shadow = solution.phase.path_multipliers["speed"], reference.phase.path_multipliers["speed"]
    np.testing.assert_allclose(*shadow, atol=1e-4 * np.abs(shadow[1]).max())


@needs_compiler
def test_ipopt_takes_over_a_run_that_is_lost():
    """The straight line is feasible for no time: IPOPT restores feasibility from it."""
    solution = solve(problems.brachistochrone(), Options(intervals=30, check=False))
    assert solution.solver == "ipopt, exact hessian, designopt ldl"
    assert solution.objective == pytest.approx(problems.brachistochrone_time(), rel=1e-4)


@needs_compiler
@pytest.mark.parametrize(("scheme", "intervals"), [("radau", 50), ("hermite_simpson", 150)])
def test_equations_are_shifted_where_no_digit_of_a_step_is_correct(scheme, intervals):
    """As with the first matrix of the straight line, from rest. IPOPT ends in another optimum (3.54 s) on the second
    mesh."""
    solution = solve(problems.brachistochrone(), Options(intervals=intervals, scheme=scheme, check=False))
    assert solution.solver.startswith(NAME)
    assert solution.objective == pytest.approx(problems.brachistochrone_time(), rel=1e-8)


@needs_compiler
@pytest.mark.parametrize(("scheme", "most"), [("hermite_simpson", 8), ("radau", 10)])
def test_a_guess_far_from_the_equations_needs_few_iterations(scheme, most):
    """With multipliers by least squares 12 and 14."""
    solution = solve(problems.hyper_sensitive(1000.0), Options(intervals=50, scheme=scheme, check=False))
    assert solution.solver.startswith(NAME)
    assert solution.iterations <= most


@needs_compiler
def test_ipopt_has_the_remaining_iterations_after_a_lost_run():
    """This run is lost after two iterations."""
    alone = Program(problems.oscillator_mass(), Options(intervals=15, ipopt={"print_level": 0})).solve()
    resumed = Program(problems.oscillator_mass(), Options(intervals=15)).solve()
    assert resumed.solver == alone.solver
    assert resumed.iterations > alone.iterations
    assert len(resumed.history["objective"]) == len(alone.history["objective"]) + resumed.iterations - alone.iterations

    solution = Program(problems.oscillator_mass(), Options(intervals=15, max_iterations=alone.iterations)).solve()
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.iterations == alone.iterations


def test_ipopt_has_the_remaining_time_after_a_lost_run():
    options = Options(max_iterations=30, time_limit=5.0)
    assert limits(Start(), options) == {"max_iter": 30, "max_wall_time": 5.0}
    assert limits(Start(iterations=9, seconds=2.0), options) == {"max_iter": 21, "max_wall_time": 3.0}
    assert limits(Start(iterations=31, seconds=6.0), options) == {"max_iter": 0, "max_wall_time": MIN_SECONDS}


@needs_compiler
@pytest.mark.parametrize("settings", [{"compile": "never"}, {"hessian": "lbfgs"}, {"ipopt": {"print_level": 0}}])
def test_ipopt_solves_if_it_is_requested(settings):
    solution = solve(problems.block_move(), Options(intervals=5, check=False, **settings))
    assert solution.solver.startswith("ipopt, ")
    assert solution.objective == pytest.approx(12.0, rel=1e-9)


@needs_compiler
def test_a_solve_from_multipliers_takes_fewer_iterations():
    program = Program(problems.cart_pole(), Options(intervals=30))
    cold = program.solve()
    warm = program.solve(warm="full", previous=cold)
    assert warm.solver.startswith(NAME)
    assert warm.iterations < cold.iterations / 2
    assert warm.objective == pytest.approx(cold.objective, rel=1e-9)


@needs_compiler
def test_a_control_whose_bounds_coincide_does_not_impede_the_run():
    """Equations of such a control at midpoints have no free variable: the matrix is singular in every iteration."""
    q, w, torque, brake = (ca.SX.sym(name) for name in ("angle", "rate", "torque", "brake"))
    system = System.from_expressions(
        "pendulum",
        states=[
            (Variable("angle", "rad", -3.0, 3.0), q, w),
            (Variable("rate", "rad/s", -9.0, 9.0), w, torque + brake - ca.sin(q)),
        ],
        controls=[(Variable("torque", "N m", -0.5, 0.5), torque), (Variable("brake", "N m", -1.0, 1.0), brake)],
    )
    ends = {"initial": {"angle": 0.0, "rate": 0.0}, "final": {"angle": 2.0, "rate": 0.0}}
    effort = {"effort": Integral(lambda v: v["torque"] ** 2)}

    def swing(room: float) -> Solution:
        phase = Phase(system, tf=6.0, bounds={"brake": (-room, room)}, integrals=effort, **ends)
        problem = TrajectoryProblem([phase], cost=lambda e: e.integral["effort"])
        return solve(problem, Options(intervals=20, check=False, scheme="hermite_simpson", midpoint_control="linear"))

    fixed, narrow = swing(0.0), swing(1e-7)
    assert fixed.solver.startswith(NAME)
    assert fixed.iterations > 5
    assert fixed.objective == pytest.approx(narrow.objective, rel=1e-5)


@needs_compiler
def test_the_same_solve_gives_the_same_bits():
    program = Program(problems.van_der_pol(), Options(intervals=30))
    first = program.solve()
    program.solve(replace(problems.van_der_pol(), phases=[replace(problems.van_der_pol().phases[0], tf=9.0)]))
    repeated = program.solve()
    assert np.array_equal(first.iterate.x, repeated.iterate.x)
    assert first.objective == repeated.objective


@needs_compiler
def test_a_run_continues_with_its_own_derivatives_after_another_run():
    program = Program(problems.cart_pole(), Options(intervals=20))
    transcription = program.transcription
    limits = boxes(program.problem_functions, program.problem, transcription.layout, transcription.blocks)
    interior = Interior(transcription, library.loaded())
    x = program.solve().iterate.x

    def final_iterate(*, disturbed):
        run = Run(interior, limits, 0.9 * x, None)
        run.go(10.0, 10.0, 0.0, 100, lambda: False)
        if disturbed:
            Run(interior, limits, 0.5 * x, None).go(10.0, 10.0, 0.0, 100, lambda: False)
        iterations = run.iterations
        assert run.go(1e-10, 1e-10, 0.0, 100, lambda: False) == SOLVED
        assert run.iterations > iterations
        return run.iterate()[0].x

    assert np.array_equal(final_iterate(disturbed=False), final_iterate(disturbed=True))


@needs_compiler
def test_a_run_ends_with_its_solve_as_its_factors_need_most_of_the_memory(monkeypatch):
    runs = []
    new_run = Run.__init__

    def recorded(run, *arguments):
        runs.append(ref(run))
        new_run(run, *arguments)

    monkeypatch.setattr(Run, "__init__", recorded)
    program = Program(problems.van_der_pol(), Options(intervals=10))
    assert program.solve().success
    assert [run() for run in runs] == [None]


@needs_compiler
def test_a_run_stops_at_the_iteration_limit_and_keeps_its_iterate():
    solution = Program(problems.cart_pole(), Options(intervals=20, max_iterations=4)).solve()
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.iterations == 4
    assert len(solution.history["objective"]) == 5


@needs_compiler
def test_the_limit_of_iterations_is_cut_to_the_range_of_a_c_int():
    solution = solve(problems.block_move(), Options(intervals=10, max_iterations=10**12, check=False))

    assert solution.solver.startswith(NAME)
    assert solution.status is Status.SOLVED


@needs_compiler
@pytest.mark.parametrize("steep", [1.0, 1e8, 1e11])
def test_a_steep_constraint_is_satisfied_in_its_own_size(steep):
    """The solver divides a row by its largest derivative over 100. Without a test of the row itself, a tolerance of
    1e-4 leaves a violation of 0.098 of the second and of 98 of the third; IPOPT leaves none."""
    phase = replace(problems.block_move().phases[0], final={"v": 0.0})
    end = Constraint(lambda e: steep * ca.sin(e.final["x"]), 0.8 * steep, 0.8 * steep)
    problem = replace(problems.block_move(), phases=[phase], constraints={"end": end})
    solution = Program(problem, Options(intervals=10, tolerance=1e-4, acceptable_tolerance=1e-4)).solve()

    assert solution.solver.startswith(NAME)
    assert solution.status is Status.SOLVED
    assert abs(steep * np.sin(solution.phase.values["x"][-1]) - 0.8 * steep) <= 1.1e-4
