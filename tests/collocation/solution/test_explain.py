"""What `explain` says of the last iterate: which constraints are violated, where, by how much, with what values."""

import math
from dataclasses import replace

import benchmark_problems as problems
import casadi as ca
import numpy as np
import pytest

from designopt.collocation import Constraint, Guess, Integral, Options, Program, Status, explain, sampled


def stopped(problem, guess=None, **options):
    """The iterate after no iteration that helps: next to the guess."""
    return Program(problem, Options(max_iterations=1, **options), guess).solve(guess=guess)


def block(constraints=None, **changes):
    problem = problems.block_move()
    return replace(problem, phases=[replace(problem.phases[0], **changes)], constraints=constraints or {})


def test_a_solved_problem_has_nothing_to_explain():
    explanation = explain(Program(problems.block_move(), Options(intervals=10)).solve())

    assert explanation.groups == ()
    assert explanation.violation < 1e-9
    assert str(explanation).startswith("Solved to the tolerance.\nAll constraints hold to within ")


def test_violations_are_grouped_by_constraint_the_worst_first():
    limits = {"circle": Constraint(lambda v: v["x"] ** 2 + v["v"] ** 2, high=-1.0, unit="m^2")}
    solution = Program(block(path=limits), Options(intervals=10)).solve()
    explanation = explain(solution)

    assert solution.status is Status.LOCALLY_INFEASIBLE
    first = explanation.groups[0]
    assert (first.name, first.kind, first.phase) == ("path constraint 'circle'", "path", "motion")
    assert (first.count, first.total) == (21, 21)  # at all points of ten intervals
    sizes = [group.worst.relative for group in explanation.groups]
    assert sizes == sorted(sizes, reverse=True)
    assert str(explanation).splitlines()[1] == "Violated, the worst first:"


def test_the_worst_point_has_its_time_interval_value_limit_and_the_values_of_the_variables():
    limits = {"circle": Constraint(lambda v: v["x"] ** 2 + v["v"] ** 2, high=-1.0, unit="m^2")}
    solution = Program(block(path=limits), Options(intervals=10)).solve()
    worst = explain(solution).groups[0].worst

    slot = int(np.argmin(np.abs(solution.phase.times - worst.time)))
    assert solution.phase.times[slot] == pytest.approx(worst.time)
    assert worst.interval[0] <= worst.time <= worst.interval[1]
    assert worst.interval[1] - worst.interval[0] == pytest.approx(0.1)
    assert worst.at == {name: values[slot] for name, values in solution.phase.values.items()}
    assert worst.value == pytest.approx(worst.at["x"] ** 2 + worst.at["v"] ** 2)
    assert (worst.low, worst.high, worst.unit) == (-math.inf, -1.0, "m^2")
    assert worst.amount == pytest.approx(worst.value + 1.0)
    assert f"at {worst.time:.4g} s: {worst.value:.4g}, at most -1 m^2" in str(worst)


def test_defects_are_reported_in_the_unit_of_their_state_not_in_scaled_numbers():
    # at the guess, a straight line, x moves by 0.2 in an interval of 0.2 s while v is 0
    problem = replace(problems.cart_pole(), phases=[replace(problems.cart_pole().phases[0], tf=1.0)])
    solution = Program(problem, Options(intervals=5, time_limit=1e-9)).solve()
    groups = {group.name: group for group in explain(solution).groups}

    worst = groups["rate of 'x'"].worst
    assert solution.status is Status.TIME_LIMIT
    assert abs(worst.amount) == pytest.approx(0.2, rel=1e-6)
    assert worst.relative == pytest.approx(0.1, rel=1e-6)  # the scale of x is 2 m
    assert worst.unit == "m"
    assert "off by 0.2 m" in str(worst)


def test_constraints_between_ends_have_no_time():
    ends = {"speed": Constraint(lambda e: ca.vertcat(e.final["v"], e.final["x"] - 3.0), 1.0, 1.0, unit="m/s")}
    solution = Program(block(ends, final={}, bounds={"x": (-1.0, 1.0), "v": (-0.5, 0.5)}), Options(intervals=5)).solve()
    groups = {group.name: group for group in explain(solution).groups}

    one = groups["constraint 'speed[0]'"]
    assert solution.status is Status.LOCALLY_INFEASIBLE
    assert (one.kind, one.phase, one.total) == ("ends", "", 1)
    assert math.isnan(one.worst.time)
    assert str(one) == "constraint 'speed[0]': 0.5 instead of 1 m/s"


@pytest.mark.parametrize(
    ("limits", "limit_text"),
    [
        ({"low": 99.0}, ", at least 99 N^2 s"),
        ({"low": 99.0, "high": 99.0}, " instead of 99 N^2 s"),
    ],
)
def test_an_integral_is_reported_with_its_value_and_its_limit(limits, limit_text):
    effort = Integral(lambda v: v["u"] ** 2, unit="N^2 s", **limits)
    solution = stopped(block(integrals={"effort": effort}), intervals=10)

    (group,) = (g for g in explain(solution).groups if g.kind == "integral")
    assert group.worst.value == solution.phase.integrals["effort"]
    assert str(group) == f"integral 'effort' of motion: {group.worst.value:.4g}{limit_text}"


def test_integrals_and_equations_of_mechanisms_have_their_names():
    limited = block(integrals={"effort": Integral(lambda v: v["u"] ** 2, high=1.0, unit="N^2 s")})
    trajectory = sampled([0.0, 1.0], {"u": [3.0, 3.0], "x": [0.0, 1.0]})
    solution = stopped(limited, Guess({"motion": trajectory}), intervals=5)
    names = {group.name for group in explain(solution).groups}
    assert names <= {"rate of 'x'", "rate of 'v'", "integral 'effort'"}
    assert "integral 'effort'" in names
    assert [g.worst.unit for g in explain(solution).groups if g.kind == "integral"] == ["N^2 s"]

    pole = Program(problems.cart_pole(), Options(intervals=5, time_limit=1e-9)).solve()
    assert "equation of 'alpha'" in {group.name for group in explain(pole).groups}


def test_nan_sorts_first():
    problem = problems.block_move()
    bad = {"root": Constraint(lambda v: ca.sqrt(v["x"] - 0.5), high=1.0)}
    solution = Program(replace(problem, phases=[replace(problem.phases[0], path=bad)]), Options(intervals=5)).solve()
    first = explain(solution).groups[0]

    assert first.name == "path constraint 'root'"
    assert math.isnan(first.worst.value)
    assert math.isinf(first.worst.relative)
    assert first.count == 5  # of eleven points x = 0, 0.1, ... 1, those before 0.5
    assert math.isnan(solution.violation)
