"""Second pass over `stages`, `execution` and `report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from designopt.plugin import InvalidSetting, Plugin, Use
from designopt.study.context import Context
from designopt.study.findings import Path, nearest_or_all
from designopt.study.schema import Part
from designopt.study.study import Budget, Execution, Stage, StartFrom


@dataclass(frozen=True)
class Placed:
    """A stage and where its solver and budget stand in the file."""

    stage: Stage
    path: Path

    @property
    def name(self) -> str:
        return self.stage.name


def stages(ctx: Context, given: Mapping[str, Any]) -> list[Placed]:
    """The stages, or the single one that `solver` and `budget` at the top make; `given` are the sections that exist."""
    sections = given.get("stages")
    if "stages" in given:
        for key in ("solver", "budget"):
            if key in given:
                ctx.add((), f"'{key}' belongs to a study without 'stages'; put it into a stage", key=key)
        if sections == []:
            ctx.add(("stages",), "at least one stage is needed")
        return _listed(ctx, sections or [])
    if "solver" not in given:
        ctx.add((), "'stages' is missing (or 'solver', for a single stage)")
        return []
    part = given["solver"]
    use = None if part is None else ctx.use("solver", part, ("solver",))
    if use is None:
        return []
    budget = _budget(given.get("budget"))
    _budget_needed(ctx, use.plugin, budget, ("solver",), "budget" in given and given["budget"] is None)
    return [Placed(Stage(use.plugin.name, use, budget), ())]


def _listed(ctx: Context, sections: Sequence[Any]) -> list[Placed]:
    made: list[Placed] = []
    all_names = [section["name"] if section else None for section in sections]
    for position, section in enumerate(sections):
        path: Path = ("stages", position)
        if section is None:
            continue
        name = section["name"]
        if name in all_names[:position]:
            ctx.add((*path, "name"), f"there is another stage named '{name}'")
        start = _start(ctx, section.get("start_from"), all_names, position)
        use = ctx.use("solver", section["solver"], (*path, "solver"))
        if use is None:
            continue
        if "start_from" in section and not getattr(use.plugin.target, "uses_start", True):
            message = f"solver '{use.plugin.name}' does not learn from designs of an earlier stage; leave it out"
            ctx.add((*path, "start_from"), message, key="")
        budget = _budget(section.get("budget"))
        _budget_needed(ctx, use.plugin, budget, path, False)
        made.append(Placed(Stage(name, use, budget, start), path))
    return made


def _budget(section: Mapping[str, Any] | None) -> Budget:
    section = section or {}
    return Budget(section.get("evaluations"), section.get("wall"))


def _budget_needed(ctx: Context, plugin: Plugin, budget: Budget, path: Path, broken: bool) -> None:
    unlimited = budget.evaluations is None and budget.wall is None
    if unlimited and not broken and getattr(plugin.target, "needs_budget", False):
        ctx.add(path, f"solver '{plugin.name}' searches until it is stopped: 'budget' is missing")


def _start(
    ctx: Context, section: Mapping[str, Any] | None, names: Sequence[str | None], position: int
) -> StartFrom | None:
    if section is None:
        return None
    path: Path = ("stages", position, "start_from")
    stage = section["stage"]
    earlier = [name for name in names[:position] if name]
    if stage not in earlier:
        if stage == names[position]:
            reason = "a stage cannot start from itself"
        elif stage in names:
            reason = f"stage '{stage}' comes later"
        else:
            reason = f"no stage named '{stage}'{nearest_or_all(stage, earlier)}"
        if None not in names[:position] or stage in names:
            ctx.add((*path, "stage"), reason)
    if "best" in section and "nondominated" in section:
        ctx.add(path, "give 'nondominated' or 'best', not both", key="best")
        return None
    if "best" in section:
        return StartFrom(stage, "best", section["best"])
    count = section.get("nondominated", "all")
    return StartFrom(stage, "nondominated", None if count == "all" else count)


def against_problem(ctx: Context, placed: Sequence[Placed], problem: Any) -> None:
    """What solvers have to say about `problem`: their `check(problem)`, and the least budget that makes sense."""
    for item in placed:
        solver = item.stage.solver
        built = solver.build()
        path: Path = (*item.path, "solver")
        if callable(getattr(built, "check", None)):
            try:
                built.check(problem)
            except InvalidSetting as error:
                if error.name in solver.plugin.settings:
                    ctx.add((*path, error.name), error.message)
                else:
                    ctx.add(path, error.message, at="use")
                continue
        evaluations = item.stage.budget.evaluations
        if evaluations is not None and hasattr(built, "minimum_budget"):
            needed = built.minimum_budget(problem)
            if evaluations < needed:
                message = f"solver '{solver.plugin.name}' needs at least {needed} evaluations, is {evaluations}"
                ctx.add((*item.path, "budget", "evaluations"), message)


def execution(ctx: Context, section: Mapping[str, Any] | None, model: Plugin | None) -> Execution:
    """How the study is run."""
    given = dict(section or {})
    path: Path = ("execution",)
    if "timeout" in given and given.get("executor") == "serial":
        message = "executor 'serial' cannot end a design that hangs; remove 'timeout' or use executor: dask"
        ctx.add((*path, "timeout"), message)
    if given.get("executor") == "serial" and given.get("scheduler", "local") != "local":
        ctx.add((*path, "scheduler"), "a scheduler belongs to executor: dask")
    if given.get("workers", "auto") != "auto":
        if given.get("executor") == "serial":
            ctx.add((*path, "workers"), "executor 'serial' has no workers; remove 'workers' or use executor: dask")
        elif given.get("scheduler", "local") != "local":
            ctx.add((*path, "workers"), "the scheduler's workers are used, all of them; remove 'workers'")
    arrays = given.get("arrays", {})
    for position, name in enumerate(arrays):
        if model and name not in model.arrays:
            known = f"{nearest_or_all(name, model.arrays)}" if model.arrays else ": it gives none"
            where: Path = (*path, "arrays", position) if isinstance(arrays, list) else (*path, "arrays", name)
            ctx.add(where, f"model '{model.name}' gives no array '{name}'{known}", key="")
    failure = given.get("on_failure", {})
    plain = Execution()
    workers = given.get("workers", "auto")
    return Execution(
        executor=given.get("executor", plain.executor),
        workers=None if workers == "auto" else workers,
        scheduler=given.get("scheduler", plain.scheduler),
        timeout=given.get("timeout"),
        grace=given.get("grace", plain.grace),
        retries={**plain.retries, **given.get("retries", {})},
        arrays=dict.fromkeys(arrays, "front") if isinstance(arrays, list) else dict(arrays),
        stop_if_share_above=failure.get("stop_if_share_above"),
        after=failure.get("after", plain.after),
    )


def plots(ctx: Context, section: Mapping[str, Any] | None) -> list[Use]:
    """The parts of the report."""
    made = []
    parts: list[Part] = (section or {}).get("plots", [])
    for position, part in enumerate(parts):
        use = ctx.use("report", part, ("report", "plots", position))
        if use is not None:
            made.append(use)
    return made
