"""Variables that are no states at the ends of phases: held, periodic, linked."""

from dataclasses import replace

import benchmark_problems as problems
import casadi as ca
import numpy as np
import pytest

from designopt.collocation import (
    Constraint,
    Guess,
    Integral,
    Options,
    Phase,
    ProblemError,
    Program,
    Refinement,
    TrajectoryProblem,
    load_solution,
    periodic,
    save_solution,
    solve,
)
from designopt.collocation.solve.guess.initial_point import default_trajectory
from designopt.dynamics.system import System, Variable

SCHEMES = {
    "radau": {"scheme": "radau", "degree": 3, "intervals": 12},
    "hermite_simpson": {"scheme": "hermite_simpson", "intervals": 20},
    "trapezoidal": {"scheme": "trapezoidal", "intervals": 40},
}
every_scheme = pytest.mark.parametrize("options", SCHEMES.values(), ids=SCHEMES)


def solved(problem, options, **settings):
    solution = Program(problem, Options(**options, **settings)).solve()
    assert solution.success, solution.message
    return solution


def squared():
    """x' = u with an algebraic variable z = x^2."""
    x, u, z = (ca.SX.sym(n) for n in "xuz")
    return System.from_expressions(
        "squared",
        states=[(Variable("x", "m", 0.0, 10.0), x, u)],
        controls=[(Variable("u", "m/s", -50.0, 50.0), u)],
        algebraic=[(Variable("z", "m^2", 0.0, 100.0), z, z - x**2)],
    )


@every_scheme
def test_an_algebraic_variable_is_held_at_both_ends(options):
    """z from 1 to 9 is x from 1 to 3: with least squares of the speed it is 2 m/s for 1 s, 4 m^2/s."""
    phase = Phase(
        squared(), tf=1.0, initial={"z": 1.0}, final={"z": 9.0}, guess={"x": (1.0, 2.0)},
        integrals={"effort": Integral(lambda v: v["u"] ** 2)},
    )  # fmt: skip
    solution = solved(TrajectoryProblem([phase], lambda e: e.integral["effort"]), options)
    assert solution.objective == pytest.approx(4.0, rel=1e-8)
    motion = solution.phase
    assert motion.values["z"][[0, -1]] == pytest.approx([1.0, 9.0], rel=1e-8)
    assert motion.values["x"][[0, -1]] == pytest.approx([1.0, 3.0], rel=1e-8)
    # the multipliers are the derivatives of (sqrt z_f - sqrt z_0)^2
    assert solution.multipliers["final z of motion"] == pytest.approx(2.0 / 3.0, rel=1e-5)
    assert solution.multipliers["initial z of motion"] == pytest.approx(-2.0, rel=1e-5)


def muscle():
    """A mass moved by the activation of a muscle that follows its excitation (first order, 50 ms)."""
    x, v, a, e = (ca.SX.sym(n) for n in "xvae")
    return System.from_expressions(
        "muscle",
        states=[
            (Variable("x", "m", -5.0, 5.0), x, v),
            (Variable("v", "m/s", -20.0, 20.0), v, 10.0 * (a - 0.5)),
            (Variable("a", "", 0.0, 1.0), a, (e - a) / 0.05),
        ],
        controls=[(Variable("e", "", 0.0, 1.0), e)],
    )


def moved(**changes):
    phase = Phase(
        muscle(), tf=1.0, initial={"x": 0.0, "v": 0.0}, final={"x": 0.3, "v": 0.0},
        integrals={"effort": Integral(lambda v: v["e"] ** 2)},
    )  # fmt: skip
    return TrajectoryProblem([phase], lambda e: e.integral["effort"], **changes)


@every_scheme
def test_a_muscle_begins_in_balance(options):
    """e(0) = a(0): its activation does not change at first."""
    balance = Constraint(lambda e: e.initial["e"] - e.initial["a"], 0.0, 0.0)
    free, balanced = solved(moved(), options), solved(moved(constraints={"balance": balance}), options)
    begin = {name: values[0] for name, values in balanced.phase.values.items()}
    assert begin["e"] == pytest.approx(begin["a"], abs=1e-8)
    assert abs(free.phase.values["e"][0] - free.phase.values["a"][0]) > 0.01
    assert free.objective < balanced.objective < 1.02 * free.objective


@every_scheme
def test_a_control_is_held_at_the_ends_within_a_range(options):
    problem = moved()
    phase = replace(
        problem.phases[0], initial={**problem.phases[0].initial, "e": 0.7}, final={"x": 0.3, "e": (0.2, 0.3)}
    )
    solution = solved(replace(problem, phases=[phase]), options)
    assert solution.phase.values["e"][0] == pytest.approx(0.7, abs=1e-7)
    assert 0.2 - 1e-7 <= solution.phase.values["e"][-1] <= 0.3 + 1e-7


@every_scheme
def test_controls_are_periodic(options):
    """x' = -x + u + 3 sin(2 pi t): the best periodic motion has a periodic control, up to the mesh's error."""
    x, u, t = (ca.SX.sym(n) for n in "xut")
    system = System.from_expressions(
        "shaken",
        states=[(Variable("x", "", -10.0, 10.0), x, -x + u + 3.0 * ca.sin(2.0 * np.pi * t))],
        controls=[(Variable("u", "", -10.0, 10.0), u)],
        time=t,
    )
    phase = Phase(system, tf=1.0, integrals={"cost": Integral(lambda v: v["x"] ** 2 + v["u"] ** 2)})

    def problem(names):
        return TrajectoryProblem([phase], lambda e: e.integral["cost"], {"again": periodic(names)})

    states, all_periodic = solved(problem(["x"]), options), solved(problem(["x", "u"]), options)
    values = all_periodic.phase.values["u"]
    assert values[0] == pytest.approx(values[-1], abs=1e-8)
    # gain 1 / (i w + 1) without control; the costate's equation gives x = 3 (i w - 1) ... / (1 + 1 + w^2) in size
    assert all_periodic.objective == pytest.approx(9.0 / 2.0 / (2.0 + (2.0 * np.pi) ** 2), rel=1e-2)
    assert all_periodic.objective == pytest.approx(states.objective, rel=1e-4)


@every_scheme
def test_controls_are_continuous_from_phase_to_phase(options):
    """Least squares of the force, rest to rest over 1 m in 1 s: u = 6 - 12 t, 12 N^2 s (Kelly 2017), in two phases."""
    block = problems.block_move().phases[0]
    effort = {"effort": Integral(lambda v: v["u"] ** 2)}
    first = replace(block, name="first", tf=0.4, final={}, integrals=effort)
    second = replace(block, name="second", t0=None, tf=1.0, initial={}, integrals=effort)

    def joined(e):
        before, after = e.phase["first"].final, e.phase["second"].initial
        return ca.vertcat(*(after[n] - before[n] for n in ("x", "v", "u")))

    problem = TrajectoryProblem(
        [first, second],
        lambda e: sum(p.integral["effort"] for p in e.phase.values()),
        {"joined": Constraint(joined, 0.0, 0.0)},
    )
    solution = solved(problem, options)
    before, after = (solution.phases[n].values["u"] for n in ("first", "second"))
    assert after[0] == pytest.approx(before[-1], abs=1e-8)
    assert after[0] == pytest.approx(6.0 - 12.0 * 0.4, abs=0.05)
    assert solution.objective == pytest.approx(12.0, rel=1e-2)


def test_numbers_at_the_ends_change_from_solve_to_solve_and_may_go_away():
    problem = moved()
    phase = problem.phases[0]

    def with_ends(**ends):
        return replace(problem, phases=[replace(phase, initial={**phase.initial, **ends})])

    program = Program(with_ends(e=0.5), Options(**SCHEMES["radau"]))
    assert program.solve().phase.values["e"][0] == pytest.approx(0.5, abs=1e-7)
    assert program.solve(with_ends(e=0.6)).phase.values["e"][0] == pytest.approx(0.6, abs=1e-7)
    free = Program(problem, Options(**SCHEMES["radau"]))
    assert program.solve(with_ends()).objective == pytest.approx(free.solve().objective, rel=1e-7)
    with pytest.raises(ProblemError, match=r"motion: initial\.e: was not given when the program was built"):
        free.solve(with_ends(e=0.5))


def test_a_value_at_an_end_outside_the_range_of_its_variable_is_refused():
    problem = moved()
    phase = replace(problem.phases[0], final={"e": 2.0})
    with pytest.raises(ProblemError, match=r"motion: final\.e: 2\.0 is outside the bounds 0 to 1 of the variable"):
        Program(replace(problem, phases=[phase]))


def test_more_held_controls_than_there_is_freedom_for_are_named():
    block = problems.block_move().phases[0]
    rest = dict.fromkeys("xv", 0.0)
    phase = replace(block, initial={**rest, "u": 1.0}, final={**rest, "u": 1.0}, bounds={"u": (0.0, 2.0)})
    problem = TrajectoryProblem([phase], lambda e: e.final["x"])
    solution = Program(problem, Options(scheme="trapezoidal", intervals=2)).solve()
    assert solution.status.name == "OVER_CONSTRAINED"
    assert "initial values of x, v, u of motion; final values of x, v, u of motion" in solution.message


def test_the_default_guess_is_a_line_between_the_held_ends_of_a_control():
    problem = moved()
    phase = replace(problem.phases[0], initial={"e": 0.2}, final={"e": 0.6})
    assert default_trajectory(phase).at(np.array([0.0, 0.5, 1.0]))["e"] == pytest.approx([0.2, 0.4, 0.6])


@pytest.mark.parametrize("method", ["split", "hp"])
def test_refined_meshes_keep_the_point_at_the_left_end_and_results_are_checked_saved_and_explained(method, tmp_path):
    balance = Constraint(lambda e: e.initial["e"] - e.initial["a"], 0.0, 0.0)
    problem = moved(constraints={"balance": balance})
    options = Options(scheme="radau", degree=3, intervals=6, refine=Refinement(tolerance=1e-4, method=method, rounds=3))
    solution = solve(problem, options)
    assert solution.success, solution.message
    assert solution.phase.mesh.left_point
    assert len(solution.phase.mesh) > 6
    assert solution.phase.values["e"][0] == pytest.approx(solution.phase.values["a"][0], abs=1e-8)
    assert solution.phase.resimulation_error < 1e-3
    assert all(np.isfinite(v).all() for v in solution.phase.bound_multipliers.values())
    save_solution(solution, tmp_path / "found.npz")
    loaded = load_solution(tmp_path / "found.npz")
    assert loaded.phase.mesh.left_point
    assert loaded.phase.mesh.first == 0
    assert solve(problem, options, guess=Guess.from_solution(loaded)).objective == pytest.approx(
        solution.objective, rel=1e-3
    )


def test_a_scheme_gets_a_point_at_the_left_end_where_the_ends_ask_for_it_and_only_there():
    program = Program(moved(), Options(**SCHEMES["radau"]))
    assert not program.meshes[0].left_point
    with_figure = moved(figures={"first": lambda e: e.initial["e"]})
    solution = solved(with_figure, SCHEMES["radau"])
    assert solution.phase.mesh.left_point
    assert solution.figures["first"] == solution.phase.values["e"][0]
    assert solution.objective == pytest.approx(program.solve().objective, rel=1e-7)
