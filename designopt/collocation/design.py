"""Evaluation of one design of a model by a trajectory problem."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from designopt.collocation.solution.solution import Solution, Status
from designopt.collocation.solve.solve import solve
from designopt.collocation.statement.options import Options
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError
from designopt.plugin import Diverged

_study_settings: ContextVar[Mapping[str, Any]] = ContextVar("study_settings", default=MappingProxyType({}))


@contextlib.contextmanager
def with_study_settings(settings: Mapping[str, Any]) -> Iterator[None]:
    """Within this context `solve_design` has by default the options of these settings of a study's programs."""
    token = _study_settings.set(settings)
    try:
        yield
    finally:
        _study_settings.reset(token)


def solve_design(problem: TrajectoryProblem, design: Mapping[str, float], options: Options | None = None) -> Solution:
    """The solution of `problem` with its parameters fixed at the values of `design`, which may contain other inputs
    too.

    Without `options`, an evaluation of a study has the mesh and the tolerances of the study's solver `collocation`, so
    that both agree. A search evaluates many infeasible designs: after a failure no alternatives are tried, whatever
    `options` say.
    Parameters with a number in the problem may be missing in the design. Raises `ProblemError` for other missing ones,
    `Diverged` for a failed solve, with its status as reason, and `KeyboardInterrupt` for one stopped by Ctrl-C, which
    must not count against the design.
    """
    missing = [
        v.name
        for v in problem.variables
        if v.name not in design and isinstance(problem.parameters.get(v.name), tuple | None)
    ]
    if missing:
        text = f"the design has no value for it; it has {', '.join(design) or 'none'}"
        raise ProblemError("bad_bounds", f"parameters.{missing[0]}", text)
    design_values = {v.name: float(design[v.name]) for v in problem.variables if v.name in design}
    problem_with_values = replace(problem, parameters={**problem.parameters, **design_values})
    single_attempt = replace(options or _of_study(problem_with_values), persistent=False)
    solution = solve(problem_with_values, single_attempt)
    if solution.status is Status.CANCELLED:
        raise KeyboardInterrupt(solution.message)
    if not solution.success:
        raise Diverged(solution.message, reason=solution.status.name.lower())
    return solution


def _of_study(problem: TrajectoryProblem) -> Options:
    """The options of the study, without scales of variables that only its programs have, such as rates of controls."""
    options, names = Options.from_settings(_study_settings.get()), problem.scaled_names
    return replace(options, scales={name: scale for name, scale in options.scales.items() if name in names})
