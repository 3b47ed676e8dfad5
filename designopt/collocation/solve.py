"""Solving a trajectory problem, with everything that the options ask for."""

from __future__ import annotations

from designopt.collocation.guess import Guess
from designopt.collocation.options import Options
from designopt.collocation.problem import TrajectoryProblem
from designopt.collocation.program import Program
from designopt.collocation.solution import Solution


def solve(problem: TrajectoryProblem, options: Options | None = None, guess: Guess | None = None) -> Solution:
    """The solution of `problem` from `guess`.

    A failed solve is a solution with its status and its last iterate. Raises `ProblemError` for statements, bounds and
    guesses that cannot be solved from.
    """
    return Program(problem, options, guess).solve(guess=guess)
