"""Scenarios from files: one for each file that matches a pattern, or for each row of a table."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Required, TypedDict

from designopt.files import InputFile
from designopt.plugin import Field, ModelPlugin, Quantity
from designopt.study.language.checking.annotations import plain_types
from designopt.study.language.checking.refusals import value_text
from designopt.study.language.checking.settings import fields_type
from designopt.study.language.checking.values import check, known_checker
from designopt.study.language.checking.words import LABEL, Label
from designopt.study.language.findings import Path, nearest_or_all
from designopt.study.sections import rows
from designopt.study.sections.context import Context
from designopt.study.sections.rows import Row
from designopt.study.sections.scenarios.undeclared import refuse_units
from designopt.study.study import Scenario

FilesSection = TypedDict(
    "FilesSection",
    {
        "use": Required[Literal["files"]],
        "pattern": Required[Annotated[str, Quantity("", "pattern of the files, as in trials/*.c3d")]],
        "as": Annotated[Label, Quantity("", "condition that receives the file; default: the only one of this type")],
        "with": Annotated[dict[str, Any], Quantity("", "conditions common to all scenarios")],
    },
    total=False,
)

TableSection = TypedDict(
    "TableSection",
    {
        "use": Required[Literal["table"]],
        "file": Required[
            Annotated[InputFile, Quantity("", "CSV file: a scenario in each row, columns are conditions")]
        ],
        "with": Annotated[dict[str, Any], Quantity("", "conditions common to all scenarios")],
    },
    total=False,
)

SOURCES = ("files", "table")


@dataclass(frozen=True)
class _ScenarioRow:
    """A scenario and its row or position."""

    scenario: Scenario
    row: Row


def trials(
    ctx: Context, section: Mapping[str, Any], model: ModelPlugin | None, path: Path, limit: int
) -> list[_ScenarioRow]:
    """The scenarios of the section at `path` with ``use: files`` or ``use: table``; at most `limit`."""
    settings, mistakes = check(
        known_checker(FilesSection if section["use"] == "files" else TableSection), section, ctx.read
    )
    ctx.findings.extend(finding.below(path) for finding in mistakes)
    if mistakes or model is None:
        return []
    file_scenarios = (
        _file_scenarios(ctx, settings, model, path)
        if settings["use"] == "files"
        else _table_scenarios(ctx, settings, model, path)
    )
    if len(file_scenarios) > limit:
        ctx.add(
            path, f"at most 10000 scenarios are allowed; {limit} are left for these {len(file_scenarios)}", at="use"
        )
        return []
    return file_scenarios


def takes_file(field: Field) -> bool:
    """Whether a condition is a file."""
    return InputFile in plain_types(field.annotation)


# ----------------------------------------------------------------------------------------------------------- files


def _file_scenarios(ctx: Context, settings: Mapping[str, Any], model: ModelPlugin, path: Path) -> list[_ScenarioRow]:
    condition = _condition(ctx, settings, model, path)
    try:
        names = ctx.read.matching(settings["pattern"])
    except ValueError as error:
        ctx.add((*path, "pattern"), str(error))
        return []
    if not names:
        ctx.add((*path, "pattern"), f"no file matches '{settings['pattern'][:80]}'")
    common = _common_conditions(ctx, settings, model, path, [condition] if condition else [])
    if condition is None or common is None:
        return []
    file_scenarios = []
    for name, label in zip(names, _labels(names), strict=True):
        try:
            file = ctx.read(name)
        except ValueError as error:
            ctx.add((*path, "pattern"), str(error))
            continue
        file_scenarios.append(_ScenarioRow(Scenario(label, {**common, condition: file}), Row({}, path, name)))
    return file_scenarios


def _condition(ctx: Context, settings: Mapping[str, Any], model: ModelPlugin, path: Path) -> str | None:
    """The condition that receives the file."""
    possible = [name for name, field in (model.conditions or {}).items() if takes_file(field)]
    word: str | None = settings.get("as")
    if word is None and model.conditions is not None and len(possible) == 1:
        return possible[0]
    if word is None:
        choices = f": {', '.join(possible)}" if possible else ""
        ctx.add(path, f"'as' is missing: the condition of model '{model.name}' that takes the file{choices}")
    elif model.conditions is not None and word not in possible:
        hint = nearest_or_all(word, possible)
        ctx.add((*path, "as"), f"model '{model.name}' has no scenario condition '{word}' that is a file{hint}")
        return None
    return word


def _labels(names: list[str]) -> list[str]:
    """A name for the scenario of each file: that of the file without its suffix, with folders if necessary."""
    stems = [PurePosixPath(name.rpartition(":")[2]).stem for name in names]
    if len(set(stems)) < len(stems):
        stems = [str(PurePosixPath(name.rpartition(":")[2]).with_suffix("")).replace("/", "_") for name in names]
    return [_label(stem, number) for number, stem in enumerate(stems, 1)]


def _label(stem: str, number: int) -> str:
    word = re.sub(r"[^\w.+-]", "_", stem)[:80]
    return word if LABEL.fullmatch(word) else f"file_{number:04d}"


# ----------------------------------------------------------------------------------------------------------- table


def _table_scenarios(ctx: Context, settings: Mapping[str, Any], model: ModelPlugin, path: Path) -> list[_ScenarioRow]:
    file: InputFile = settings["file"]
    file_path: Path = (*path, "file")
    table_rows = rows.table_row(ctx, file, file_path)
    columns = dict.fromkeys(name for row in table_rows for name in row.values)
    common = _common_conditions(ctx, settings, model, path, columns)
    if common is None:
        return []
    own_fields = {n: f for n, f in (model.conditions or {}).items() if n not in common}
    against = None if model.conditions is None else fields_type("scenario", model.conditions, own_fields)
    files = [name for name, field in own_fields.items() if takes_file(field)]
    folder = file.name[: max(file.name.rfind("/"), file.name.rfind(":")) + 1]
    row_scenarios = []
    for number, row in enumerate(table_rows, 1):
        if ctx.full:
            break
        values = {n: f"{folder}{v}" if n in files and isinstance(v, str) else v for n, v in row.values.items()}
        name = values.pop("name", f"{PurePosixPath(file.name).stem}_{number:04d}")
        before = len(ctx.findings)
        with row.findings(ctx):
            if not isinstance(name, str) or not LABEL.fullmatch(name):
                ctx.add((*file_path, "name"), f"{value_text(name)} is not a name: use letters, digits and _ . + -")
            for key in [n for n in values if n in common]:
                ctx.add((*file_path, key), f"'{key}' is also in 'with'; remove one of them", key="")
            if against is not None:
                values, wrong = check(against, values, ctx.read)
                ctx.findings.extend(finding.below(file_path) for finding in wrong)
            else:
                refuse_units(ctx, values, file_path)
        if len(ctx.findings) == before:
            row_scenarios.append(_ScenarioRow(Scenario(name, {**common, **values}), row))
    return row_scenarios


def _common_conditions(
    ctx: Context, settings: Mapping[str, Any], model: ModelPlugin, path: Path, other_names: Collection[str]
) -> dict[str, Any] | None:
    """The conditions common to all scenarios; None if they are invalid. Those of `other_names` come from elsewhere."""
    values = dict(settings.get("with") or {})
    if model.conditions is None:
        refuse_units(ctx, values, (*path, "with"))
        return values
    mine = [n for n in model.conditions if n in values]
    unknown = [n for n in values if n not in model.conditions]
    for name in unknown:
        hint = nearest_or_all(name, [n for n in model.conditions if n not in values])
        ctx.add((*path, "with", name), f"model '{model.name}' has no scenario condition '{name}'{hint}", key="")
    conditions, wrong = check(fields_type("scenario", model.conditions, mine), {n: values[n] for n in mine}, ctx.read)
    ctx.findings.extend(finding.below((*path, "with")) for finding in wrong)
    if settings["use"] == "files":
        lacking = [n for n, f in model.conditions.items() if f.required and n not in values and n not in other_names]
        if lacking:
            ctx.add(path, f"'with' lacks {', '.join(lacking[:20])}, which model '{model.name}' needs")
            return None
    return None if wrong or unknown else dict(conditions)
