"""Type checks of the arguments of a solve."""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import repr as short
from typing import Any

from designopt.collocation.solution.solution import Solution
from designopt.collocation.statement.guess import Guess
from designopt.collocation.statement.options import Options
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError
from designopt.collocation.transcription.mesh.mesh import Mesh


def check_arguments(problem: Any, options: Any, guess: Any, meshes: Any) -> None:
    """Raises `ProblemError` (bad_statement, bad_guess) for wrong types and too few meshes."""
    if not isinstance(problem, TrajectoryProblem):
        raise ProblemError("bad_statement", "problem", f"is {short(problem)}: give a TrajectoryProblem")
    if not isinstance(options, Options | None):
        raise ProblemError("bad_statement", "options", f"are {short(options)}: give Options(...), or none")
    check_guess(guess)
    if meshes is None:
        return
    if not isinstance(meshes, Sequence) or not all(isinstance(mesh, Mesh) for mesh in meshes):
        raise ProblemError("bad_statement", "meshes", f"are {short(meshes)}: give a list with a Mesh for each phase")
    if (count := len(problem.phases)) != len(meshes):
        text = f"{len(meshes)} given for {count} phase{'s' if count > 1 else ''}: give one for each"
        raise ProblemError("bad_statement", "meshes", text)


def check_guess(guess: Any) -> None:
    """Raises `ProblemError` (bad_guess) unless `guess` is a guess."""
    if not isinstance(guess, Guess | Solution | None):
        text = (
            f"is {short(guess)}: give a Guess, as Guess.from_solution(solution) or"
            " Guess({phase: sampled(times, values)})"
        )
        raise ProblemError("bad_guess", "guess", text)
