"""Second pass over `stages`, or `solver` and `budget`: solvers, budgets, default populations and starting designs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from designopt.plugin import InvalidSetting, SolverPlugin, Use
from designopt.study.language.checking.part import Part
from designopt.study.language.checking.settings import COUNTS
from designopt.study.language.findings import Path
from designopt.study.sections.context import Context
from designopt.study.sections.execution.start import start_from
from designopt.study.sections.goals import Goals
from designopt.study.study import Budget, HypervolumeGain, Stage


@dataclass(frozen=True)
class PlacedStage:
    """A stage with the positions of its solver and budget in the file."""

    stage: Stage
    path: Path

    @property
    def name(self) -> str:
        return self.stage.name


@dataclass(frozen=True)
class Placements:
    """The valid stages, and the solvers of all stages: None for an unknown one."""

    stages: list[PlacedStage]
    solvers: list[SolverPlugin | None]

    @property
    def need_objectives(self) -> bool:
        """Whether the solvers need objectives; also true without solvers."""
        return not self.solvers or any(plugin.needs_objectives for plugin in self.solvers if plugin is not None)

    @property
    def need_parameters(self) -> bool:
        """Whether the solvers need parameters; also true without solvers."""
        return not self.solvers or any(plugin.needs_parameters for plugin in self.solvers if plugin is not None)


def stages(ctx: Context, study_sections: Mapping[str, Any], goals: Goals) -> Placements:
    """The stages, or the single one from `solver` and `budget` at the top level."""
    sections = study_sections.get("stages")
    if "stages" in study_sections:
        for key in ("solver", "budget"):
            if key in study_sections:
                ctx.add((), f"'{key}' belongs to a study without 'stages'; put it into a stage", key=key)
        if sections == []:
            ctx.add(("stages",), "at least one stage is needed")
        return _stage_list(ctx, sections or [], goals)
    if "solver" not in study_sections:
        ctx.add((), "'stages' is missing (or 'solver', for a single stage)")
        return Placements([], [])
    plugin, use, budget = _search(ctx, study_sections, goals, ())
    return Placements([PlacedStage(Stage(use.plugin.name, use, budget), ())] if use else [], [plugin])


def _stage_list(ctx: Context, sections: Sequence[Any], goals: Goals) -> Placements:
    placed_stages: list[PlacedStage] = []
    solvers: list[SolverPlugin | None] = []
    all_names = [section and section["name"] for section in sections]
    for position, section in enumerate(sections):
        path: Path = ("stages", position)
        if section is None:
            solvers.append(None)
            continue
        name = section["name"]
        if name is not None and name in all_names[:position]:
            ctx.add((*path, "name"), f"there is another stage named '{name}'")
        start = start_from(ctx, section.get("start_from"), all_names, position)
        plugin, use, budget = _search(ctx, section, goals, path)
        solvers.append(plugin)
        if plugin and "start_from" in section and not plugin.uses_start:
            message = f"solver '{plugin.name}' does not learn from designs of an earlier stage; leave it out"
            ctx.add((*path, "start_from"), message, key="")
        if use is not None:
            placed_stages.append(PlacedStage(Stage(name or "", use, budget, start), path))
    return Placements(placed_stages, solvers)


def _search(
    ctx: Context, section: Mapping[str, Any], goals: Goals, path: Path
) -> tuple[SolverPlugin | None, Use[SolverPlugin] | None, Budget]:
    """The solver of the section at `path`, with its settings if valid, and its budget."""
    part = section["solver"]
    plugin = None if part is None else ctx.plugin(SolverPlugin, part, (*path, "solver"))
    budget = _budget(ctx, section.get("budget"), goals, (*path, "budget"))
    use = None
    if plugin is not None and part is not None:
        limits = section.get("budget", {})
        unknown = limits is None or limits.get("evaluations", 0) is None  # reported elsewhere
        use = ctx.settings(plugin, _with_count(plugin, part, 1 if unknown else budget.evaluations), (*path, "solver"))
        if use is not None and "population" not in part.settings:
            use = _for_budget(use, budget)
    if plugin is not None:
        _budget_needed(ctx, plugin, section, path)
    return plugin, use, budget


def _with_count(plugin: SolverPlugin, part: Part, evaluations: int | None) -> Part:
    """The section with its required number of designs set to the budget's `evaluations` by default."""
    counts = [name for name in COUNTS if name in plugin.settings and plugin.settings[name].required]
    if evaluations is None or not counts:
        return part
    return replace(part, settings={**dict.fromkeys(counts, evaluations), **part.settings})


def _for_budget(use: Use[SolverPlugin], budget: Budget) -> Use[SolverPlugin]:
    """The solver with a population that fits the budget, unless the study gives one."""
    default = use.plugin.settings["population"].default if "population" in use.plugin.settings else None
    if not isinstance(default, int) or budget.evaluations is None:
        return use
    return Use(use.plugin, {**use.settings, "population": population(budget.evaluations, default)})


def _budget(ctx: Context, section: Mapping[str, Any] | None, goals: Goals, path: Path) -> Budget:
    section = section or {}
    gain = _gain(ctx, section.get("hypervolume"), goals, (*path, "hypervolume"))
    return Budget(section.get("evaluations"), section.get("wall"), gain)


def _gain(ctx: Context, section: Mapping[str, Any] | None, goals: Goals, path: Path) -> HypervolumeGain | None:
    """The end by growth of the hypervolume, with its reference in the objectives' units."""
    if section is None:
        return None
    if goals.single:
        ctx.add(path, "a hypervolume needs two or more objectives; leave it out", key="")
        return None
    point, path = section["reference"], (*path, "reference")
    if point is None:
        return None
    if isinstance(point, Mapping):
        values = goals.amounts(ctx, point, path, every=True)
    elif goals.count and len(point) != goals.count:
        ctx.add(path, f"needs {goals.count} values, one for each objective, has {len(point)}")
        return None
    else:
        values = {}
        units = goals.units.items() if goals.complete else ()
        for position, ((name, unit), amount) in enumerate(zip(units, point, strict=False)):
            value = None if unit is None else ctx.in_unit(amount, unit, (*path, position))
            if value is not None:
                values[name] = value
    if len(values) < goals.count or not ctx.sound(path[:-1]):
        return None
    reference = tuple(values[name] for name in goals.units)
    return HypervolumeGain(reference, section["gain_below"], section["over_generations"])


def _budget_needed(ctx: Context, plugin: SolverPlugin, section: Mapping[str, Any], path: Path) -> None:
    """A search that never ends by itself needs a limit that is reached in any case."""
    limits = section.get("budget", {})
    if not plugin.needs_budget or limits is None or "evaluations" in limits or "wall" in limits:
        return
    if ctx.unknown_key((*path, "budget")) or (path and ctx.unknown_key(path)):
        return
    if "hypervolume" in limits:
        message = "give 'evaluations' or 'wall' too: without a feasible design there is no hypervolume that could grow"
        ctx.add((*path, "budget"), message)
    else:
        solver_path = path or ("solver",)
        ctx.add(solver_path, f"solver '{plugin.name}' searches until it is stopped: 'budget' is missing")


def against_problem(ctx: Context, placed_stages: Sequence[PlacedStage], problem: Any) -> None:
    """The solvers' findings about `problem`: their `check(problem)`, and the minimum budget."""
    for item in placed_stages:
        solver = item.stage.solver
        path: Path = (*item.path, "solver")
        try:
            least = _minimum_budget(solver, problem)
        except InvalidSetting as error:
            steps = error.name.split(".")  # 'sweep.mass' leads into the setting 'sweep'
            if steps[0] in solver.plugin.settings:
                ctx.add((*path, *steps), error.message)
            else:
                ctx.add(path, error.message, at="use")
            continue
        except Exception as error:
            ctx.add_failure(solver.plugin, error, path)
            continue
        evaluations = item.stage.budget.evaluations
        if evaluations is not None and evaluations < least:
            message = f"solver '{solver.plugin.name}' needs at least {least} designs, not {evaluations}"
            ctx.add((*item.path, "budget", "evaluations"), message)


def _minimum_budget(solver: Use[SolverPlugin], problem: Any) -> int:
    """The minimum number of designs of the solver for `problem`. Raises the exceptions of its `check`."""
    built = solver.build()
    if solver.plugin.has("check"):
        built.check(problem)
    return built.minimum_budget(problem) if solver.plugin.has("minimum_budget") else 0


#: A default population is this multiple of the square root of the budget, with a minimum. Measured with nsga2 on ZDT1
#: to 3, DTLZ2, BNH, OSY and Kursawe's problem at 100 to 1000 evaluations: the hypervolume is largest with 12 to 20
#: designs at 200 evaluations and 20 to 30 at 500, for 3 and for 30 parameters; with 100 it is less than half of that.
ROOTS, SMALLEST = 1.2, 12


def population(evaluations: int, default: int) -> int:
    """The population for a budget of `evaluations`; `default` is the solver's own default."""
    return max(2, min(default, max(SMALLEST, round(ROOTS * math.sqrt(evaluations))), evaluations))
