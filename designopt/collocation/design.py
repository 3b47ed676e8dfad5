"""One design of a model whose evaluation is a trajectory problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from designopt.collocation.options import Options
from designopt.collocation.problem import TrajectoryProblem
from designopt.collocation.solution import Solution
from designopt.collocation.solve import solve
from designopt.collocation.status import Status
from designopt.plugin import Diverged


def solve_design(problem: TrajectoryProblem, design: Mapping[str, float], options: Options | None = None) -> Solution:
    """The solution of `problem` with its parameters held at the values of `design`, which may name other inputs too.

    Raises `Diverged` for a failed solve, its reason being the status, and `KeyboardInterrupt` for one that was stopped
    by Ctrl-C: that is nothing to hold against the design.
    """
    held = {v.name: float(design[v.name]) for v in problem.variables if v.name in design}
    solution = solve(replace(problem, parameters={**problem.parameters, **held}), options)
    if solution.status is Status.CANCELLED:
        raise KeyboardInterrupt(solution.message)
    if not solution.success:
        raise Diverged(solution.message, reason=solution.status.name.lower())
    return solution
