"""Second pass over `report`: parts of the page, choice, validation, exports."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from designopt.plugin import ExportPlugin, ModelPlugin, ReportPlugin, Use
from designopt.study.language.checking.part import Part
from designopt.study.language.findings import MOST, Path
from designopt.study.sections.choose import choices
from designopt.study.sections.context import Context
from designopt.study.sections.goals import Goals
from designopt.study.sections.scenarios.conditions import scenarios
from designopt.study.study import Choice, Validation


def plots(ctx: Context, section: Mapping[str, Any] | None) -> list[Use[ReportPlugin]]:
    """The parts of the report."""
    report_parts = []
    parts: list[Part | None] = (section or {}).get("plots") or []
    for position, part in enumerate(parts):
        if len(ctx.findings) >= MOST:
            break
        use = ctx.use(ReportPlugin, part, ("report", "plots", position))
        if use is not None:
            report_parts.append(use)
    return report_parts


def choice_rules(ctx: Context, section: Mapping[str, Any] | None, goals: Goals) -> list[Choice]:
    """The rules that select designs of the front."""
    return choices(ctx, (section or {}).get("choose") or [], goals, ("report", "choose"))


def validation(
    ctx: Context, section: Mapping[str, Any] | None, model: ModelPlugin | None, seed: int, goals: Goals
) -> Validation | None:
    """The scenarios for the evaluation of the chosen designs, and their quantiles."""
    settings = (section or {}).get("validate")
    if settings is None:
        return None
    path: Path = ("report", "validate")
    if goals.none:
        ctx.add(
            path, "without objectives no design is chosen for validation; put these scenarios under 'scenarios'", key=""
        )
        return None
    quantiles = settings.get("quantiles", list(Validation(()).quantiles))
    if quantiles == []:
        ctx.add((*path, "quantiles"), "at least one quantile is needed; without this key they are 0.05, 0.5 and 0.95")
    for position, value in enumerate(quantiles or []):
        if value is not None and value in quantiles[:position]:
            ctx.add((*path, "quantiles", position), f"quantile {value:g} is given twice")
    if settings["scenarios"] is None:
        return None
    validation_scenarios = scenarios(ctx, settings["scenarios"], model, seed, (*path, "scenarios"))
    return Validation(tuple(validation_scenarios), tuple(quantiles or []))


def reference(ctx: Context, section: Mapping[str, Any] | None, goals: Goals) -> dict[str, float]:
    """The fixed reference point of the hypervolume, by objective in its unit and direction."""
    amounts = (section or {}).get("reference")
    if amounts is None:
        return {}
    path: Path = ("report", "reference")
    if goals.single:
        ctx.add(path, "a hypervolume needs two or more objectives; leave it out", key="")
        return {}
    return goals.amounts(ctx, amounts, path, every=True)


def exports(ctx: Context, section: Mapping[str, Any] | None) -> list[Use[ExportPlugin]]:
    """The formats written beside the report."""
    formats: list[Use[ExportPlugin]] = []
    parts: list[Part | None] = (section or {}).get("export") or []
    for position, part in enumerate(parts):
        entry_path: Path = ("report", "export", position)
        use = ctx.use(ExportPlugin, part, entry_path)
        if use is None:
            continue
        if use in formats:
            ctx.add(entry_path, f"'{use.plugin.name}' is given twice")
        elif lacking := [name for name in use.plugin.packages if importlib.util.find_spec(name) is None]:
            ctx.add(
                entry_path, f"export to {use.plugin.name} needs {', '.join(lacking)}: {install_command(use.plugin)}"
            )
        formats.append(use)
    return formats


def install_command(plugin: ExportPlugin) -> str:
    """The command that installs the packages of an exporter."""
    return "pip install " + (f"'designopt[{plugin.extra}]'" if plugin.extra else " ".join(plugin.packages))
