"""Second pass over `scenarios`: the conditions of each, given or sampled, in the model's units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Required, TypedDict

from pydantic import WrapValidator

from designopt.plugin import Field, ModelPlugin, PluginError, closest
from designopt.study.language.checking.refusals import wrong_kind
from designopt.study.language.checking.settings import fields_type
from designopt.study.language.checking.values import Checked, check, known_checker
from designopt.study.language.checking.words import JsonKeywords, Label
from designopt.study.language.findings import Path
from designopt.study.sections.context import Context
from designopt.study.sections.scenarios import files as trials
from designopt.study.sections.scenarios import sample
from designopt.study.sections.scenarios.undeclared import refuse_units
from designopt.study.study import Scenario

#: Maximum number of scenarios: each one is an evaluation of every design.
MOST_SCENARIOS = 10_000


class ScenarioSection(TypedDict, total=False):
    """The part of a scenario that does not depend on the model."""

    name: Required[Label]


def _entry(value: Any, _: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise wrong_kind("a mapping", value)
    return {str(key): item for key, item in value.items()}


_OneEntry = Annotated[ScenarioSection, JsonKeywords(additionalProperties=True, **{"not": {"required": ["use"]}})]
#: A scenario, or with ``use`` a sample of scenarios or those of files; all are checked once the model is known.
ScenarioEntry = Annotated[
    _OneEntry | sample.SampleEntry | trials.FilesSection | trials.TableSection, WrapValidator(_entry)
]


@dataclass
class _ScenarioList:
    """The scenarios so far, and the admissible conditions with their check (None: the model declares none)."""

    against: Checked | None
    conditions: Mapping[str, Field] | None = None
    scenarios: list[Scenario] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def is_misspelt_name(self, key: str) -> bool:
        """Whether an unknown key is probably a misspelt 'name'."""
        if self.conditions is None or key in self.conditions:
            return False
        return closest(key, ["name", *self.conditions]) == "name"

    def add(self, ctx: Context, scenario: Scenario, path: Path, at: str | None = None) -> bool:
        """Add a scenario; False, with a finding, if its name exists."""
        if scenario.name in self.names:
            ctx.add(path, f"there is another scenario named '{scenario.name}'", at=at)
            return False
        self.names.add(scenario.name)
        self.scenarios.append(scenario)
        return True


def scenarios(
    ctx: Context, sections: Sequence[Any] | Mapping[str, Any] | None, model: ModelPlugin | None, seed: int, path: Path
) -> list[Scenario]:
    """The scenarios of the section at `path`; a single one named 'nominal' without such a section.

    `sections` is a list of scenarios and samples (None for an invalid one), or one sample. `seed` is the default for
    samples.
    """
    conditions = model.conditions if model else None
    required_names = [n for n, item in (conditions or {}).items() if item.required]
    if sections is None:
        if required_names and model:
            ctx.add((), f"'scenarios' is missing: model '{model.name}' needs {', '.join(required_names)}")
        return [Scenario("nominal")]
    try:
        scenarios = _ScenarioList(None if conditions is None else fields_type("scenario", conditions), conditions)
    except PluginError as error:
        ctx.add(path, str(error))
        return []
    if isinstance(sections, Mapping):
        if "use" in sections:
            _add_scenarios(ctx, scenarios, sections, model, seed, path)
        else:
            ctx.add(
                path,
                "expected a list of scenarios, [{name: slow, speed: 2}, ...], or a sample of them: {use: sobol, ...}",
            )
        return scenarios.scenarios
    if not sections:
        hint = "; without this key there is one named 'nominal'" if path == ("scenarios",) else ""
        ctx.add(path, f"at least one scenario is needed{hint}")
    for position, section in enumerate(sections):
        section_path: Path = (*path, position)
        if section is None or ctx.full:
            continue
        if "use" in section:
            _add_scenarios(ctx, scenarios, section, model, seed, section_path)
        elif conditions is not None and "count" in section and "count" not in conditions:
            ctx.add(section_path, "'use' is missing: a sample of scenarios needs a sampler, as in use: sobol")
        else:
            _add_single_scenario(ctx, scenarios, section, model, section_path)
    return scenarios.scenarios


def _add_single_scenario(
    ctx: Context, scenarios: _ScenarioList, section: Mapping[str, Any], model: ModelPlugin | None, path: Path
) -> None:
    scenario_keys = {
        k: v for k, v in section.items() if k == "name" or ("name" not in section and scenarios.is_misspelt_name(k))
    }
    keys, mistakes = check(known_checker(ScenarioSection), scenario_keys, ctx.read)
    ctx.findings.extend(finding.below(path) for finding in mistakes)
    values = {k: v for k, v in section.items() if k not in scenario_keys}
    if scenarios.against is not None:
        values, wrong = check(scenarios.against, values, ctx.read)
        ctx.findings.extend(finding.below(path) for finding in wrong)
    elif model is not None:
        refuse_units(ctx, values, path)
    if not mistakes:
        scenarios.add(ctx, Scenario(keys["name"], values or {}), (*path, "name"))


def _add_scenarios(
    ctx: Context, scenarios: _ScenarioList, section: Mapping[str, Any], model: ModelPlugin | None, seed: int, path: Path
) -> None:
    """The scenarios of files or a table, or of a sample."""
    left = MOST_SCENARIOS - len(scenarios.scenarios)
    if section["use"] in trials.SOURCES:
        for trial in trials.trials(ctx, section, model, path, left):
            with trial.row.findings(ctx):
                scenarios.add(ctx, trial.scenario, (*trial.row.path, "name"))
        return
    for scenario in sample.sampled_scenarios(ctx, section, model, seed, path, left):
        if not scenarios.add(ctx, scenario, path, at="name" if "name" in section else "use"):
            break
