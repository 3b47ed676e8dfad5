"""Description of a run, for ``run --dry-run``."""

from __future__ import annotations

from pathlib import Path

from designopt.counts import of_number, plural
from designopt.problem import Problem
from designopt.run.progress import duration
from designopt.solvers.auto import Auto
from designopt.study.stated_units import in_stated_units
from designopt.study.study import DesignVariable, Objective, StartFrom, StudyDefinition

#: Maximum number of listed parameters.
SHOWN = 40


def plan(study: StudyDefinition, store: Path) -> str:
    """A few lines of text: the problem, the stages with their budgets, execution. Runs nothing."""
    problem = Problem.from_study(study)
    objectives = [f"{o.direction} {o.name}{_aggregation_words(problem, o)}" for o in problem.objectives]
    lines = [
        f"study      {study.name}" + (f": {study.title}" if study.title else ""),
        f"model      {study.model.plugin.name}, {plural(len(problem.scenarios), 'scenario')}",
        *_space(study),
        f"objectives {', '.join(objectives) or 'none'}",
    ]
    if problem.constraints:
        lines.append(f"limits     {', '.join(c.name for c in problem.constraints)}")
    for i, stage in enumerate(study.stages, 1):
        limits = []
        if stage.budget.evaluations is not None:
            limits.append(f"at most {stage.budget.evaluations} {of_number(stage.budget.evaluations, 'design')}")
        if stage.budget.wall is not None:
            limits.append(f"at most {duration(stage.budget.wall)}")
        gain = stage.budget.hypervolume
        if gain is not None:
            share = f"{gain.gain_below:g} over {gain.over_generations} generations"
            limits.append(f"until the hypervolume grows by less than {share}")
        origin = f", starts from {_origin(stage.start_from)}" if stage.start_from else ""
        budget = f", {', '.join(limits)}" if limits else ""
        solver = stage.solver.build()
        name = f"auto takes {solver.choice(problem)}" if isinstance(solver, Auto) else stage.solver.plugin.name
        lines.append(f"stage {i}    {stage.name}: {name}{budget}{origin}")
    if study.validate:
        lines.append(f"validation {plural(len(study.validate.scenarios), 'more scenario')} for the chosen designs")
    execution = study.execution
    timeout = f", time-out {duration(execution.timeout)}" if execution.timeout is not None else ""
    lines.append(f"executor   {execution.executor}, workers {execution.workers or 'one per core'}{timeout}")
    remark = " (exists; the run continues it, or lists what was edited)" if (store / "journal.db").exists() else ""
    lines.append(f"store      {store}{remark}")
    return "\n".join(lines)


def _space(study: StudyDefinition) -> list[str]:
    """The parameters with their ranges, one line each."""
    parameters = in_stated_units(study).space
    width = max((len(p.name) for p in parameters), default=0)
    lines = [f"{p.name:{width}}  {_range(p)}" for p in parameters]
    lines = lines[:SHOWN] + ([f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else [])
    return [f"{'' if i else 'space':11}{line}" for i, line in enumerate(lines or ["nothing varies"])]


def _range(p: DesignVariable) -> str:
    unit = f" {p.unit}" if p.unit else ""
    if p.kind in ("choice", "fixed"):
        values = ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in p.values)
        return f"{values}{unit}" if p.kind == "choice" else f"fixed at {values}{unit}"
    integers = ", integers" if p.kind == "int" else ""
    return f"{p.low:g} to {p.high:g}{unit}{', log scale' if p.scale == 'log' else ''}{integers}"


def _aggregation_words(problem: Problem, objective: Objective) -> str:
    """The aggregation over scenarios, explicit or default."""
    return (
        f" ({objective.over.plugin.name} of {len(problem.scenarios)} scenarios)" if len(problem.scenarios) > 1 else ""
    )


def _origin(start: StartFrom) -> str:
    count = "" if start.count is None else f" {start.count}"
    return f"the{count} {start.select} {of_number(start.count or 0, 'design')} of {start.store or start.stage}"
