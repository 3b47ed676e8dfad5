"""The passes over the data of a study file, and the resulting `StudyDefinition`.

The first pass checks each section (and each member of a list or mapping) separately: keys, types, units, ranges. The
second compares the valid ones and calls the plugins' checks. The third, if the valid parts form a problem, calls the
solvers' checks. Thus no mistake hides an independent one.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from designopt.plugin import ModelPlugin, SolverPlugin, Use, foreign_code
from designopt.study.language.checking.part import Part
from designopt.study.language.checking.refusals import value_text
from designopt.study.language.checking.values import check
from designopt.study.language.files import Files
from designopt.study.language.findings import Finding, Path, intended_key, nearest_or_all
from designopt.study.neighbours import shifts, with_neighbours
from designopt.study.sections import designs as designs_
from designopt.study.sections import figures as figures_
from designopt.study.sections import model_checks
from designopt.study.sections import report as report_
from designopt.study.sections import space as space_
from designopt.study.sections import tolerances as tolerances_
from designopt.study.sections.context import Context
from designopt.study.sections.execution import execution as execution_
from designopt.study.sections.execution import stages as stages_
from designopt.study.sections.goals import Goals
from designopt.study.sections.scenarios import conditions as scenarios_
from designopt.study.sections.schema import SECTIONS, TopLevelKey, section_type
from designopt.study.study import DesignVariable, Scenario, Stage, StudyDefinition, Tolerances

#: Sections that solvers' checks need: they name their contents.
_OF_PROBLEM = ("model", "space", "figures", "objectives")

#: Maximum length of a list or mapping of a section.
_MOST_MEMBERS = 10_000


@dataclass
class _Sections:
    """The sections as far as valid: invalid parts are None, invalid sections are omitted.

    `present` also names sections that were given but are invalid, or probably intended.
    """

    values: dict[str, Any] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)

    def members(self, name: str) -> list[Any]:
        return list(self.values.get(name) or [])

    def mapping(self, name: str) -> dict[str, Any]:
        return dict(self.values.get(name) or {})


def check_study(
    data: Any,
    files: Files,
    problem_of: Callable[[StudyDefinition], Any] | None = None,
    *,
    folder: pathlib.Path | None = None,
    on_command_line: Callable[[Path], bool] = lambda path: False,
) -> tuple[StudyDefinition | None, list[Finding]]:
    """The study described by `data` (without its text), or None and all mistakes.

    `folder` and `on_command_line` as in `Context`.
    """
    ctx = Context(files, folder, on_command_line)
    if not isinstance(data, Mapping):
        return None, [
            Finding((), f"a study file is a mapping with 'study', 'model', 'space' ..., not {value_text(data)}")
        ]
    if "benchmark" in data and "model" not in data:
        ways = "check it with: designopt benchmark FILE --dry-run, and run it without --dry-run"
        return None, [Finding((), f"this is a benchmark file; {ways}", "benchmark")]
    sections = _first_pass(ctx, data)
    study, placed_stages = _second_pass(ctx, sections)
    if study is not None and problem_of is not None:
        stages_.against_problem(ctx, placed_stages, problem_of(study))
    return (None if ctx.findings else study), ctx.findings


def _first_pass(ctx: Context, data: Mapping[str, Any]) -> _Sections:
    sections = _Sections()
    for name, value in data.items():
        if ctx.full:
            break
        section = SECTIONS.get(name)
        if section is None:
            hint = nearest_or_all(str(name), SECTIONS)
            ctx.add((), f"unknown key '{name}'{hint}", key=str(name))
            near = intended_key(str(name), SECTIONS)
            sections.present.update([near] if near else [])
            continue
        sections.present.add(name)
        members = _members(ctx, name, section, value)
        if members is not None:
            sections.values[name] = members
    for name, section in SECTIONS.items():
        if section.required and name not in sections.present and name not in data:
            ctx.add((), f"'{name}' is missing ({section.meaning})")
    return sections


def _members(ctx: Context, name: str, section: TopLevelKey, value: Any) -> Any:
    """The checked section with None in place of invalid parts."""

    def checked(path: Path, item: Any) -> Any:
        if ctx.full:
            return None
        result, mistakes = check(section_type(name), item, ctx.read)
        ctx.findings.extend(finding.below(path) for finding in mistakes)
        return result

    if section.shape == "one" or (section.alone and isinstance(value, Mapping)):
        return checked((name,), value)
    if isinstance(value, (Mapping, list)) and len(value) > _MOST_MEMBERS:
        ctx.add((name,), f"at most {_MOST_MEMBERS} are allowed, not {len(value)}")
        return None
    if section.shape == "mapping":
        if not isinstance(value, Mapping):
            ctx.add((name,), f"expected a mapping, not {value_text(value)}")
            return None
        return {str(key): checked((name, str(key)), item) for key, item in value.items()}
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        ctx.add((name,), f"expected a list, not {value_text(value)}; begin each of its items with '- '")
        return None
    return [checked((name, position), item) for position, item in enumerate(value)]


def _designs(
    ctx: Context,
    sections: _Sections,
    names: Mapping[str, Any],
    meanings: Mapping[str, Any],
    plugin: ModelPlugin | None,
    solvers: stages_.Placements,
) -> tuple[list[DesignVariable], list[stages_.PlacedStage]]:
    """The parameters, of `space` or of the designs given to solvers, and the stages with these designs."""
    listed_designs = {
        i: designs_.listed_designs(ctx, item.stage.solver, (*item.path, "solver"))
        for i, item in enumerate(solvers.stages)
        if item.stage.solver.plugin.takes_designs
    }
    uses: list[Use[SolverPlugin]] = []
    if "space" in sections.present:
        parameters = space_.parameters(ctx, names, meanings, plugin) if "space" in sections.values else []
        if ctx.sound(("space",)) and parameters:
            uses = [designs_.in_space(ctx, item, parameters) for item in listed_designs.values()]
    elif plugin is None or solvers.need_parameters or len(solvers.stages) < len(solvers.solvers):
        parameters = []
    else:
        parameters, uses = designs_.space_of(ctx, list(listed_designs.values()), plugin)
    placed_stages = list(solvers.stages)
    for i, use in zip(listed_designs, uses, strict=False):
        placed_stages[i] = replace(placed_stages[i], stage=replace(placed_stages[i].stage, solver=use))
    return parameters, placed_stages


def _baseline(
    ctx: Context,
    study_sections: _Sections,
    parameters: list[DesignVariable],
    placed_stages: list[stages_.PlacedStage],
    model: Use[ModelPlugin] | None,
) -> tuple[Stage, ...]:
    """The stage that evaluates the designs of `baseline`, before all others; None without that section."""
    sections = study_sections.values.get("baseline")
    if "baseline" not in study_sections.present or sections is None:
        return ()
    path: Path = ("baseline",)
    if "space" not in study_sections.present:
        ctx.add(path, "a study without 'space' has no designs to compare with; give them to its solver", key="")
        return ()
    is_list = isinstance(sections, list)
    if is_list and not sections:
        ctx.add(path, "at least one design is needed", key="")
    if any(item.name == designs_.BASELINE for item in placed_stages):
        ctx.add((), f"no stage of a study with a baseline can be named '{designs_.BASELINE}'", key="baseline")
    designs = designs_.baseline(ctx, sections if is_list else [sections], path, is_list=is_list)
    designs = designs_.by_rules(ctx, designs, parameters, model)
    if not (designs.rows and parameters and ctx.sound(("space",))):
        return ()
    return (Stage(designs_.BASELINE, designs_.in_space(ctx, designs, parameters), baseline=True),)


def _second_pass(ctx: Context, study_sections: _Sections) -> tuple[StudyDefinition | None, list[stages_.PlacedStage]]:
    """The valid part of the study, and its valid stages; None if it is not a problem."""
    values = study_sections.values
    part: Part | None = values.get("model")
    plugin = None if part is None else ctx.plugin(ModelPlugin, part, ("model",))
    model = None if plugin is None or part is None else ctx.settings(plugin, part, ("model",))
    if plugin is not None and plugin.has("declares"):  # its declarations depend on its settings
        plugin = None if model is None else model.plugin
    names = study_sections.mapping("space")
    meanings = space_.with_probable_names(names, plugin)
    if values.get("space") == {}:
        ctx.add(("space",), "at least one parameter is needed")
    if values.get("objectives") == []:
        ctx.add(("objectives",), "at least one objective is needed")
    if "scenarios" in values or "scenarios" not in study_sections.present:
        scenarios = scenarios_.scenarios(ctx, values.get("scenarios"), plugin, values.get("seed", 0), ("scenarios",))
    else:
        scenarios = []
    figures = values.get("figures", None if "figures" in study_sections.present else {})
    space = figures_.namespace(ctx, figures, plugin, names)
    robust = values.get("robust") or 0
    count = len(scenarios) * (1 + robust)
    objectives = figures_.objectives(ctx, study_sections.members("objectives"), space, count)
    constraints = figures_.constraints(ctx, study_sections.members("constraints"), space, count)
    goals = Goals.from_sections(
        values.get("objectives"), objectives, has_section="objectives" in study_sections.present
    )
    solvers = stages_.stages(ctx, {name: values.get(name) for name in study_sections.present}, goals)
    is_needed_by_section = {"space": solvers.need_parameters, "objectives": solvers.need_objectives}
    missing = [
        name for name, is_needed in is_needed_by_section.items() if is_needed and name not in study_sections.present
    ]
    for name in missing:
        ctx.add((), f"'{name}' is missing ({SECTIONS[name].meaning})")
    if "missing" in values and count == 1:
        ctx.add(("missing",), "there is only one scenario; a design without its result has none at all", key="")
    parameters, placed_stages = _designs(ctx, study_sections, names, meanings, plugin, solvers)
    baseline_stages = _baseline(ctx, study_sections, parameters, placed_stages, model)
    space_known = "space" in values
    relations = (
        space_.relations(ctx, study_sections.members("relations"), parameters, meanings, plugin) if space_known else []
    )
    if (
        study_sections.members("relations")
        and "space" not in study_sections.present
        and not is_needed_by_section["space"]
    ):
        ctx.add(("relations",), "relations need the parameters of 'space', which is missing", key="")
    programs = None if model is None else [item.name for item in foreign_code(model)]
    execution = execution_.execution(ctx, values.get("execution"), plugin, programs=programs, analysis=goals.none)
    report = values.get("report")
    plots = report_.plots(ctx, report)
    choose = report_.choice_rules(ctx, report, goals)
    validation = report_.validation(ctx, report, plugin, values.get("seed", 0), goals)
    if model is not None:
        model_checks.space(ctx, model, parameters)
        model_checks.scenarios(ctx, model, scenarios, values.get("scenarios"), ("scenarios",))
        if validation is not None and report is not None:
            given_there = report["validate"]["scenarios"]
            model_checks.scenarios(ctx, model, validation.scenarios, given_there, ("report", "validate", "scenarios"))
    reference = report_.reference(ctx, report, goals)
    sections = names if "space" in study_sections.present else {}
    tolerances = tolerances_.tolerances(ctx, sections, parameters, None if goals.none else report, plugin)
    if goals.none and (report or {}).get("tolerances") is not None:
        ctx.add(
            ("report", "tolerances"),
            "without objectives no design is chosen, so no neighbours are evaluated; leave it out",
            key="",
        )
    if robust and ctx.sound(("space",)) and (tolerances is None or tolerances.assumed):
        message = "needs the tolerances of parameters, as in space: {stiffness: {..., tolerance: 2 %}}"
        ctx.add(("robust",), message, key="")
    export = report_.exports(ctx, report)
    varies = any(p.kind != "fixed" for p in parameters)
    if parameters and not varies and is_needed_by_section["space"] and ctx.sound(("space",)):
        ctx.add(("space",), "nothing varies: every parameter is fixed")
    complete = (parameters or "space" not in study_sections.present) and (objectives or goals.none)
    if model is None or missing or not complete or not all(ctx.sound((name,)) for name in _OF_PROBLEM):
        return None, placed_stages
    study = StudyDefinition(
        name=values.get("study", ""),
        model=model,
        space=tuple(parameters),
        objectives=tuple(objectives),
        stages=(*baseline_stages, *(item.stage for item in placed_stages)),
        title=values.get("title", ""),
        description=values.get("description", ""),
        seed=values.get("seed", 0),
        scenarios=_with_neighbours(scenarios, robust, tolerances, values.get("seed", 0)),
        relations=tuple(relations),
        figures=space.figures,
        constraints=tuple(constraints),
        execution=execution,
        plots=tuple(plots),
        choose=tuple(choose),
        validate=validation,
        reference=reference,
        export=tuple(export),
        tables=tuple(ctx.tables),
        missing=(values.get("missing") or {}).get("at_most") or 0.0,
        tolerances=None if goals.none else tolerances,
        evaluation_options=_evaluation_options(model, [item.stage for item in placed_stages]),
    )
    return study, placed_stages


def _evaluation_options(model: Use[ModelPlugin], stages: Sequence[Stage]) -> Mapping[str, Any]:
    """Settings of the last solver of programs for the evaluations of `model`."""
    solvers = [stage.solver for stage in stages if stage.solver.plugin.has("evaluation_options")]
    return solvers[-1].build().evaluation_options() if solvers and model.plugin.takes_options else {}


def _with_neighbours(
    scenarios: Sequence[Scenario], count: int, tolerances: Tolerances | None, seed: int
) -> tuple[Scenario, ...]:
    """The scenarios, in a robust study followed by `count` neighbours of the design."""
    stated_scenarios = tuple(scenarios) or (Scenario("nominal"),)
    return (
        with_neighbours(stated_scenarios, shifts(tolerances, count, seed))
        if count and tolerances is not None
        else stated_scenarios
    )
