"""A program is solved for problems with its own expressions only: of others it would give the old optimum."""

import pickle
from dataclasses import replace
from importlib import import_module

import benchmark_problems as problems
import casadi as ca
import pytest

from designopt.collocation import (
    Constraint,
    Guess,
    Integral,
    Options,
    Phase,
    ProblemError,
    Program,
    TrajectoryProblem,
    sampled,
)
from designopt.dynamics.system import System, Variable

program_module = import_module("designopt.collocation.solve.program")


def mass(weight=1.0, power=1, states=("x", "v")):
    """x'' = u/weight, with the power of u in the rate."""
    x, v, u = ca.SX.sym("x"), ca.SX.sym("v"), ca.SX.sym("u")
    return System.from_expressions(
        "mass",
        states=[(Variable(states[0], "m"), x, v), (Variable(states[1], "m/s"), v, u**power / weight)],
        controls=[(Variable("u", "N"), u)],
    )


def move(system=None, *, price=1.0, limit=1.0, far=1.0, figure_factor=1.0, **changes):
    """A move whose functions take numbers from outside, made again with every call."""
    phase = Phase(
        system or mass(),
        tf=1.0,
        initial={"x": 0.0, "v": 0.0},
        path={"speed": Constraint(lambda v: limit * v["v"], high=1.6)},
        integrals={"effort": Integral(lambda v: price * v["u"] ** 2)},
    )
    return TrajectoryProblem(
        [replace(phase, **changes)],
        cost=lambda e: e.integral["effort"],
        constraints={"end": Constraint(lambda e: ca.vertcat(e.final["x"] - far, e.final["v"]), 0.0, 0.0)},
        terms={"effort": lambda e: e.integral["effort"]},
        figures={"reach": lambda e: figure_factor * e.final["x"]},
    )


@pytest.fixture(scope="module")
def program():
    return Program(move(), Options(intervals=10))


OTHERS = {
    "a rate": (lambda: move(mass(weight=2.0)), "motion: rate of v"),
    "a cost": (lambda: replace(move(), cost=lambda e: 2.0 * e.integral["effort"]), "cost"),
    "an integral": (lambda: move(price=2.0), r"motion: integrals\.effort"),
    "a path constraint": (lambda: move(limit=2.0), r"motion: path\.speed"),
    "a constraint": (lambda: move(far=2.0), r"constraints\.end"),
    "a figure": (lambda: move(figure_factor=2.0), r"figures\.reach"),
    "a term": (lambda: replace(move(), terms={"effort": lambda e: e.final["x"]}), r"terms\.effort"),
}


@pytest.mark.parametrize(("variant", "where"), OTHERS.values(), ids=OTHERS)
def test_another_expression_is_refused_by_name(program, variant, where):
    with pytest.raises(
        ProblemError, match=f"^{where}: differs from the one with which the program was built"
    ) as raised:
        program.solve(variant())
    assert raised.value.status == "bad_statement"


def test_a_figure_with_the_name_of_a_term_is_compared_once():
    def stated(factor):
        return replace(move(), figures={"effort": lambda e: factor * e.integral["effort"], "reach": lambda e: e.tf})

    program = Program(stated(1.0), Options(intervals=10))
    assert program.solve(stated(1.0)).success
    with pytest.raises(ProblemError, match=r"^figures\.effort: differs"):
        program.solve(stated(2.0))


def test_other_variables_and_names_are_reported_with_those_before(program):
    for variant, expected in (
        (move(mass(states=("x", "w")), initial={}), "motion: states of the system: x, w were x, v when"),
        (replace(move(), figures={"height": lambda e: e.tf}), "figures: height were reach when"),
        (replace(move(), terms={}), "terms: none were effort when"),
    ):
        with pytest.raises(ProblemError, match=f"^{expected} the program was built: build it again"):
            program.solve(variant)


def test_the_same_expressions_may_be_stated_anew(program):
    assert program.solve(move()).objective == program.solve().objective
    slower = program.solve(move(tf=1.25))
    assert slower.success
    assert slower.objective < program.solve().objective


def test_constraints_and_ranges_of_times_may_have_other_numbers():
    problem = problems.sliding_mass()
    program = Program(problem, Options(intervals=10))
    fixed = program.solve(replace(problems.sliding_mass(), phases=[replace(problem.phases[0], tf=0.5)]))
    assert fixed.success
    assert fixed.phase.tf == 0.5


def test_the_common_data_of_solves_is_computed_once_per_problem(monkeypatch):
    counts = {"boxes": 0, "initial_point": 0}

    def counted(name):
        function = getattr(program_module, name)

        def call(*arguments):
            counts[name] += 1
            return function(*arguments)

        return call

    program = Program(move(), Options(intervals=10))
    for name in counts:
        monkeypatch.setattr(program_module, name, counted(name))
    first, second = program.solve(), program.solve()
    assert counts == {"boxes": 1, "initial_point": 1}
    assert pickle.dumps(first.iterate) == pickle.dumps(second.iterate)

    slower = move(tf=2.0)
    slow_solution = program.solve(slower)
    assert counts == {"boxes": 2, "initial_point": 2}
    assert slow_solution.objective == pytest.approx(first.objective / 8.0, rel=1e-6)  # without the limit of the speed
    assert slow_solution.phase.tf == 2.0
    program.solve(slower, Guess.from_solution(first))
    assert counts == {"boxes": 2, "initial_point": 3}


def test_the_start_of_a_phase_is_computed_in_every_solve():
    starts = []

    def start(parameters, rng):
        starts.append(parameters)
        return sampled([0.0, 1.0], {"x": [0.0, 1.0], "v": [0.0, 0.0]})

    program = Program(move(start=start), Options(intervals=10))
    before = len(starts)
    program.solve()
    program.solve()
    assert len(starts) == before + 2
