"""A phase may say where the search for its motion begins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest

from designopt.collocation import Guess, Integral, Options, Phase, Program, TrajectoryProblem
from designopt.collocation.guess import default_course
from designopt.collocation.problem import ProblemError
from designopt.dynamics.system import System, Variable


def phase() -> Phase:
    x, v, u = ca.SX.sym("x"), ca.SX.sym("v"), ca.SX.sym("u")
    block = System.from_expressions(
        "block",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, u)],
        controls=[(Variable("u", "N", -20.0, 20.0), u)],
    )
    ends = {"x": 0.0, "v": 0.0}, {"x": 1.0, "v": 0.0}
    effort = {"effort": Integral(lambda s: s["u"] ** 2)}
    return Phase(block, tf=1.0, name="move", initial=ends[0], final=ends[1], integrals=effort)


def test_the_lines_of_a_phase_come_before_those_between_its_ends() -> None:
    course = default_course(replace(phase(), guess={"v": (1.0, 3.0), "u": (30.0, -1.0)})).at(np.array([0.0, 0.5, 1.0]))
    assert course["v"] == pytest.approx([1.0, 2.0, 3.0])
    assert course["u"] == pytest.approx([20.0, 9.5, -1.0])  # clipped to the range first
    assert course["x"] == pytest.approx([0.0, 0.5, 1.0])


def test_a_guess_of_what_is_not_there_is_refused() -> None:
    problem = TrajectoryProblem([replace(phase(), guess={"w": (0.0, 0.0)})], cost=lambda e: e.integral["effort"])
    with pytest.raises(ProblemError, match=r"move: guess\.w: there is no such variable; there are x, v, u") as refused:
        Program(problem, Options(intervals=4), Guess())
    assert refused.value.status == "bad_guess"


@pytest.mark.parametrize("line", [(1.0,), (1.0, 2.0, 3.0), 2.0, ("1", "2"), None])
def test_a_line_has_a_first_and_a_last_value(line: Any) -> None:
    problem = TrajectoryProblem([replace(phase(), guess={"v": line})], cost=lambda e: e.integral["effort"])
    with pytest.raises(ProblemError, match=r"move: guess\.v: is .*: give its first and its last value") as refused:
        Program(problem, Options(intervals=4))
    assert refused.value.status == "bad_guess"


@pytest.mark.parametrize("value", ["a", [1.0, 2.0], None, float("nan")])
def test_the_guess_of_a_parameter_is_a_finite_number(value: Any) -> None:
    problem = TrajectoryProblem([phase()], cost=lambda e: e["weight"], extra=(Variable("weight", "kg", 0.0, 1.0),))
    with pytest.raises(ProblemError, match=r"parameters\.weight: is .*, not a finite number") as refused:
        Program(problem, Options(intervals=4), Guess(parameters={"weight": value}))
    assert refused.value.status == "bad_guess"
