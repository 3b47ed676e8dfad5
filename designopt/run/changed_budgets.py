"""Budgets given at the start or resume of a run, in place of those of the study."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Mapping
from datetime import timedelta
from numbers import Integral
from pathlib import Path

from designopt.counts import plural
from designopt.problem import Problem
from designopt.run.budget import ROUNDING
from designopt.store.errors import BudgetError, StoreError, reading
from designopt.store.folder import read_study
from designopt.store.journal.reader import JournalReader
from designopt.study.language.findings import nearest_or_all
from designopt.study.study import Budget, Stage, StudyDefinition

#: Name of the stage in a budget that names none: the only stage that has one.
UNNAMED = ""


def budgets_by_stage(
    stages: tuple[Stage, ...], budget: Mapping[str, int | timedelta] | int | timedelta | None, path: Path
) -> dict[str, int | timedelta]:
    """The `budget` by the name of the stage; one without a name is that of the only stage with a budget.

    Raises `BudgetError` of the store `path` for an unknown name, and for a budget without a name that could be that of
    several stages.
    """
    if budget is None:
        return {}
    stage_names = [stage.name for stage in stages]
    budgets: dict[str, int | timedelta] = {}
    for name, limit in budget.items() if isinstance(budget, Mapping) else [(UNNAMED, budget)]:
        if name == UNNAMED:
            candidates = [s.name for s in stages if s.budget != Budget()]
            candidates = candidates or [s.name for s in stages if not s.baseline]
            if len(candidates) != 1:
                choices = " or ".join(f"{candidate}=N" for candidate in candidates)
                raise BudgetError(f"the study has {plural(len(candidates), 'stage')}; name one: {choices}", path, name)
            name = candidates[0]
        elif name not in stage_names:
            raise BudgetError(f"no stage named '{name}'{nearest_or_all(name, stage_names)}", path, name)
        if name in budgets:
            raise BudgetError(f"there is another budget of stage '{name}'; give one", path, name)
        budgets[name] = limit
    return budgets


def with_budgets(stages: tuple[Stage, ...], budget: Mapping[str, int | timedelta]) -> tuple[Stage, ...]:
    """The stages with the budgets given by name. Raises `ValueError` for a value that is no budget."""
    return tuple(
        dataclasses.replace(stage, budget=_with_limit(stage.budget, budget[stage.name]))
        if stage.name in budget
        else stage
        for stage in stages
    )


def _with_limit(budget: Budget, limit: int | timedelta) -> Budget:
    if isinstance(limit, timedelta):
        return dataclasses.replace(budget, wall=limit.total_seconds())
    if isinstance(limit, bool) or not isinstance(limit, Integral) or limit < 1:
        raise ValueError(f"a budget must be a number of designs of at least 1, or a timedelta, not {limit!r}")
    return dataclasses.replace(budget, evaluations=int(limit))


def refuse_too_small(
    study: StudyDefinition, problem: Problem, budget: Mapping[str, int | timedelta], path: Path
) -> None:
    """Raises `BudgetError` of the store `path` for a `budget` below the minimum of its stage's solver."""
    for stage in study.stages:
        limit, plugin = budget.get(stage.name), stage.solver.plugin
        if isinstance(limit, int) and plugin.has("minimum_budget"):
            least = int(stage.solver.build().minimum_budget(problem))
            if limit < least:
                text = f"solver '{plugin.name}' of stage '{stage.name}' needs at least {least} designs, not {limit}"
                raise BudgetError(text, path, stage.name)


def at_least_spent(study: StudyDefinition, path: Path) -> dict[str, int]:
    """Budgets for the stages of `study` that have proposed more designs in the store `path` than their budget allows: a
    resume had a larger one."""
    problem = Problem.from_study(study)
    budgets = {stage.name: stage.budget.evaluations for stage in study.stages}
    with reading(path), contextlib.closing(JournalReader.read(path, problem)) as journal:
        spent = _spent(study, problem, journal, set(budgets))
    return {name: spent[name] for name, limit in budgets.items() if limit is not None and limit < spent[name]}


def _spent(study: StudyDefinition, problem: Problem, journal: JournalReader, stages: set[str]) -> dict[str, int]:
    """Number of designs that each of `stages` has proposed, with the equivalent of its cheap evaluations."""
    spent = {name: journal.spent(name) for name in stages}
    cheap_stages = [s.name for s in study.stages if s.solver.plugin.wants_cheap(s.solver.settings)]
    if problem.fidelity is not None and len(cheap_stages) == 1 and cheap_stages[0] in spent:
        designs = {design for (design,) in journal.evaluations("design", "cheap")}
        spent[cheap_stages[0]] += math.ceil(problem.fidelity.cost * len(designs) - ROUNDING)
    return spent


def refuse_budgets(study: StudyDefinition, problem: Problem, path: Path) -> None:
    """Reject budgets that are incompatible with the store before anything is written. Raises `StoreError`.

    These are budgets below the number of designs already requested, and changed budgets of a stage from which later
    stages have already started.
    """
    if not (path / "journal.db").exists():
        return
    recorded_study = read_study(path)
    before = {stage.name: stage.budget for stage in recorded_study.stages}
    changed_stages = {stage.name for stage in study.stages if stage.budget != before.get(stage.name, stage.budget)}
    if not changed_stages or Problem.from_study(recorded_study).digest != problem.digest:
        return
    with reading(path), contextlib.closing(JournalReader.read(path, problem)) as journal:
        started_stages = {name for number, name in journal.stages().items() if journal.points(number)}
        spent = _spent(study, problem, journal, changed_stages)
    for stage in study.stages:
        least = spent.get(stage.name, 0)
        if stage.budget.evaluations is not None and stage.budget.evaluations < least:
            raise StoreError(
                f"{path}: stage '{stage.name}' has already proposed {plural(least, 'design')}; "
                f"set a budget of at least {least}, not {stage.budget.evaluations}",
                path,
            )
    for stage in study.stages:
        origin = stage.start_from.stage if stage.start_from else None
        if origin in changed_stages and stage.name in started_stages:
            raise StoreError(
                f"{path}: stage '{stage.name}' starts from '{origin}' and has begun, so the budget of "
                f"'{origin}' cannot change; enlarge that of '{stage.name}', or start a new study with "
                f"start_from: {{store: ...}}",
                path,
            )
