"""A plugin's settings: check, table for ``designopt show``, JSON Schema.

All three come from the annotations of the plugin.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from designopt.plugin import Field, ModelPlugin, ObjectivePlugin, Plugin, PluginError, Quantity, SolverPlugin, Use
from designopt.plugin.kinds import P
from designopt.study.language import units
from designopt.study.language.checking.annotations import type_words
from designopt.study.language.checking.single_values import range_text
from designopt.study.language.checking.values import (
    Checked,
    Reader,
    check,
    checker,
    members_of,
    table,
)
from designopt.study.language.files import NO_FILES
from designopt.study.language.findings import Finding

#: Settings of solvers for the number of designs: by default the budget's evaluations.
COUNTS = ("samples", "evaluations")

#: Letters of a list of words up to which it stands in the column of types.
WIDEST_TYPE = 40


def settings_type(plugin: Plugin) -> Checked:
    """The check for the settings of `plugin`. Raises `PluginError` for a setting that no study file can contain."""
    return fields_type(plugin.name, plugin.settings)


#: Cached checks by the identity of their object, which is kept alive, and by the relevant names: creating one takes
#: milliseconds.
_checks: dict[tuple[int, frozenset[str] | None], tuple[Any, Checked]] = {}


def cached_check(owner: Any, make: Callable[[], Checked], names: frozenset[str] | None = None) -> Checked:
    """The check from `make`, created once for the object `owner` and these `names`."""
    entry = _checks.get((id(owner), names))
    if entry is None:
        if len(_checks) >= 1024:
            _checks.clear()
        entry = _checks[id(owner), names] = owner, make()
    return entry[1]


def field_type(field: Field) -> Checked:
    """The check for a value of `field`."""
    return cached_check(field, lambda: checker(field.annotation))


def fields_type(name: str, fields: Mapping[str, Field], only: Collection[str] | None = None) -> Checked:
    """The check for a mapping with the keys `fields`, which must not change any more, or with those in `only`. Raises
    `PluginError` for a type that no study file can contain."""
    names = None if only is None else frozenset(only)

    def make() -> Checked:
        entries = {n: f for n, f in fields.items() if names is None or n in names}
        try:
            return TypeAdapter(table(name, entries))
        except PluginError as error:
            raise PluginError(f"{name}: {error}") from None

    return cached_check(fields, make, names)


def validate(plugin: P, data: Mapping[str, Any], reader: Reader = NO_FILES) -> tuple[Use[P] | None, list[Finding]]:
    """`plugin` with the settings `data` and its defaults; or None and the mistakes (paths within `data`).

    Defaults are included so that a study has the same meaning with and without explicit defaults.
    """
    try:
        against = settings_type(plugin)
    except PluginError as error:
        return None, [Finding((), str(error))]
    values, findings = check(against, data, reader)
    if findings:
        return None, findings
    return _without_added(plugin, _complete(plugin, against, data, values, reader)), []


def _without_added(plugin: P, settings: dict[str, Any]) -> Use[P]:
    """The plugin without its `later_settings` that are at their defaults.

    A study that does not use them thus keeps its earlier keys.
    """
    left_out = {
        name for name in plugin.later_settings if name in settings and settings[name] == plugin.settings[name].default
    }
    if not left_out:
        return Use(plugin, settings)
    settings_in_use = {name: field for name, field in plugin.settings.items() if name not in left_out}
    return Use(replace(plugin, settings=settings_in_use), {name: settings[name] for name in settings_in_use})


def _complete(
    plugin: Plugin, against: Checked, data: Mapping[str, Any], values: Mapping[str, Any], reader: Reader
) -> dict[str, Any]:
    """All settings in declared order; defaults have the form that they would have in a study."""
    defaults = {n: copy.deepcopy(f.default) for n, f in plugin.settings.items() if n not in values}
    values_read, findings = check(against, {**defaults, **data}, reader)
    # A default that a study could not contain, such as None for a file, is unchanged.
    odd = {finding.path[0] for finding in findings if finding.path}
    complete = {**defaults, **{n: v for n, v in values_read.items() if n not in odd}, **values}
    return {name: complete[name] for name in plugin.settings}


@dataclass(frozen=True)
class SettingRow:
    """One line of a settings table, all in words."""

    name: str
    type: str
    unit: str
    default: str
    range: str
    meaning: str
    sampled: str = ""


def rows(fields: Mapping[str, Field], prefix: str = "") -> list[SettingRow]:
    """One row for each field, in the order of declaration: settings, inputs, conditions or outputs.

    The members of a setting that is a mapping follow it, ``crossover.probability`` and so on.
    """
    table: list[SettingRow] = []
    for field in fields.values():
        members = members_of(field.annotation)
        table.append(
            SettingRow(
                name=prefix + field.name,
                type=type_words(field.annotation),
                unit=field.quantity.unit if field.quantity else "",
                default="required" if field.required else "" if members else _default(field.default),
                range=range_text(field.quantity),
                meaning=field.quantity.description if field.quantity else "",
                sampled=_sample_range(field.quantity),
            )
        )
        table.extend(rows(members, f"{prefix}{field.name}."))
    return table


def _default(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _sample_range(quantity: Quantity | None) -> str:
    """The default range of a condition in a sample, in study-file form."""
    if quantity is None or quantity.sampled is None:
        return ""
    low, high = quantity.sampled
    return f"[{low:g}, {high:g}]"


def json_schema(plugin: Plugin) -> dict[str, Any]:
    """JSON Schema of the section ``{use: name, ...}`` of `plugin`."""
    schema = settings_type(plugin).json_schema()
    schema["title"] = plugin.name
    schema["description"] = plugin.description.split("\n", 1)[0]
    schema["properties"] = {"use": {"const": plugin.name}, **schema.get("properties", {})}
    counts = COUNTS if isinstance(plugin, SolverPlugin) else ()
    schema["required"] = ["use", *(name for name in schema.get("required", []) if name not in counts)]
    return schema


def describe(plugin: Plugin, *, has_settings: bool = False) -> str:
    """The description of `plugin` for the author of its section, as text: ``designopt show NAME``. One that is
    `has_settings` has the declarations for its settings."""
    parts = [f"{plugin.name} ({plugin.kind}, version {plugin.version})", plugin.description]
    parts.append(_table("settings", rows(plugin.settings)) or "settings: none")
    if isinstance(plugin, ModelPlugin):
        by_settings = (
            f"design inputs: the settings decide; those of a study: designopt show FILE.yaml, or with settings: "
            f"designopt show {plugin.name} --set model.SETTING=VALUE"
        )
        any_name = by_settings if plugin.has("declares") and not has_settings else "design inputs: any"
        parts.append(_table("design inputs", _input_rows(plugin.inputs)) or any_name)
        parts.append(_table("scenario conditions", _input_rows(plugin.conditions)) or "scenario conditions: any")
        outputs = [replace(row, default="") for row in rows(plugin.outputs)]
        parts.append(_table("outputs", outputs))
        arrays = [
            SettingRow(name, f"({', '.join(array.axes)})", array.unit, "", "", array.description)
            for name, array in plugin.arrays.items()
        ]
        parts.append(_table("arrays", arrays))
    if isinstance(plugin, ObjectivePlugin):
        parts.append(f"needs {', '.join(plugin.needs)}; gives a number in {units.unit_text(plugin.unit)}")
    return "\n\n".join(part for part in parts if part)


def _input_rows(fields: Mapping[str, Field] | None) -> list[SettingRow]:
    """Rows of design inputs or scenario conditions: an optional one has a default only if it is declared."""
    names = {name for name, field in (fields or {}).items() if not field.required and field.default is None}
    return [replace(row, default="") if row.name in names else row for row in rows(fields or {})]


def _narrow_row(line: SettingRow) -> SettingRow:
    """The row with a long list of words behind its meaning."""
    words = line.type.removeprefix("one of ")
    if words == line.type or len(line.type) <= WIDEST_TYPE:
        return line
    return replace(line, type="one of", meaning=f"{line.meaning}: {words}" if line.meaning else words)


def _table(title: str, lines: list[SettingRow]) -> str:
    """Rows in columns under a title; columns that are empty in all rows are omitted."""
    if not lines:
        return ""
    heads = ("name", "type", "unit", "default", "range", "sampled", "meaning")
    cells = [heads, *(tuple(getattr(_narrow_row(line), head) for head in heads) for line in lines)]
    columns = [column for column in zip(*cells, strict=True) if any(column[1:])]
    widths = [max(len(cell) for cell in column) for column in columns]
    body = [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in zip(*columns, strict=True)
    ]
    return "\n".join([title, *body])
