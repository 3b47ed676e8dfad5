"""Remarks on a valid study: numbers without units, texts among numbers, and those of its model on its files."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from designopt.counts import plural
from designopt.plugin import Diverged, Field, InvalidDesign, InvalidSetting, Quantity
from designopt.plugin.calling import calling
from designopt.plugin.code import file_text
from designopt.study.language.checking.refusals import is_number
from designopt.study.language.checking.values import check, members_of
from designopt.study.language.expressions.expression import Expression
from designopt.study.language.files import NO_FILES
from designopt.study.language.tables import read_table
from designopt.study.language.units import Amount, UnitError, parse_amount
from designopt.study.language.yaml import locate, parse
from designopt.study.sections.context import unit_of
from designopt.study.sections.schema import section_type
from designopt.study.sections.space import has_unit
from designopt.study.study import StudyDefinition

#: Maximum number of quantities in a remark.
NAMED = 12
#: Maximum number of remarks of the model.
REMARKS = 40

#: The description of a number, and its assumed unit.
Assumption = tuple[str, str]


def assumed_units(study: StudyDefinition) -> dict[str, str]:
    """The quantities written without a unit, each with the model's, which is assumed: parameters of the space, their
    tolerances, objectives with a plain factor, limits, settings of the model and conditions of scenarios, also in their
    tables."""
    data = parse(study.text, "").data()
    sections = data if isinstance(data, Mapping) else {}
    return dict(
        [
            *_settings(study, sections),
            *_space(study, sections),
            *_conditions(study, sections),
            *_objectives(study, sections),
            *_limits(study, sections),
        ]
    )


def remarks(study: StudyDefinition) -> list[str]:
    """One line about them, and one for each condition of a model without declarations that is a text in one scenario
    and a number in another, or that the model's file does not contain."""
    names_with_units = [f"{name} in {unit}" for name, unit in assumed_units(study).items()]
    remainder = [f"{len(names_with_units) - NAMED} more"] if len(names_with_units) > NAMED else []
    words = ", ".join([*names_with_units[:NAMED], *remainder])
    notes = [f"note: no unit given, the model's is assumed: {words}"] if names_with_units else []
    of_model = [*study_remarks(study), *model_remarks(study)]
    lines = [
        *_mixed_values(study),
        *_unread_conditions(study),
        *_loose_limits(study),
        *_few_parameters(study),
        *_empty_parts(study),
    ]
    return [*notes, *lines, *(f"note: {remark}" for remark in of_model)]


def inputs_at_defaults(study: StudyDefinition) -> str:
    """The inputs that the study leaves at a default of the model, each with its value; "" without any."""
    space_names = {p.name for p in study.space}
    values = [
        f"{field.name} {field.default:.6g} {unit_of(field)}".rstrip()
        for field in (study.model.plugin.inputs or {}).values()
        if field.name not in space_names and is_number(field.default)
    ]
    return f"inputs at the model's defaults: {', '.join(values)}" if values else ""


def study_remarks(study: StudyDefinition) -> list[str]:
    """The model's remarks on what the study varies and judges."""
    if not study.model.plugin.has("study_remarks"):
        return []
    free = [p.name for p in study.space if p.kind != "fixed"]
    expressions = [o.expression for o in study.objectives] + [c.expression for c in study.constraints]
    names = frozenset[str]().union(*(expression.names for expression in expressions))
    names |= {name for figure in names & study.figures.keys() for name in study.figures[figure].plugin.needs}
    limits = {c.expression.text: (c.minimum, c.maximum) for c in study.constraints}
    limits_by_output = {name: limits.get(name, (None, None)) for name in names}
    with calling(study.model.plugin):
        return [str(text) for text in study.model.build().study_remarks(free, limits_by_output)]


def _empty_parts(study: StudyDefinition) -> Iterator[str]:
    """Parts of the report for which the run would keep nothing, with their positions in the file."""
    array_names = {name for name, keep in study.execution.arrays.items() if keep != "failed"}
    for number, use in enumerate(study.plots):
        part, arrays = use.plugin, study.model.plugin.arrays
        absent = [name for name in part.arrays if name not in array_names]
        foreign = [name for name in absent if name not in arrays]
        if foreign:
            reason = f"model '{study.model.plugin.name}' has no {_arrays(foreign)}"
        elif absent:
            reason = (
                f"it draws the {_arrays(absent)}; add {'it' if len(absent) == 1 else 'them'} to 'execution: arrays'"
            )
        else:
            reason = part.lacks(study) if part.lacks is not None else ""
        if reason:
            yield f"{_position(study, ('report', 'plots', number))}note: part '{part.name}' will be empty: {reason}"


def _arrays(names: Sequence[str]) -> str:
    return f"{'array' if len(names) == 1 else 'arrays'} {', '.join(names)}"


def _position(study: StudyDefinition, path: Sequence[str | int]) -> str:
    """``study.yaml:4:10: ``, the position of a key in the file; "" for a study that is not as in a file."""
    _, node = locate(parse(study.text, ""), path)
    as_written = study.path is not None and not study.text.startswith("{")
    return f"{study.path}:{node.span.line + 1}:{node.span.column + 1}: " if as_written and node is not None else ""


def model_remarks(study: StudyDefinition) -> list[str]:
    """The model's remarks on its settings and on each scenario, which is named if another one has none of the kind.

    Files that are not at hand, or that are unusable by now, have none.
    """
    if not study.model.plugin.has("remarks"):
        return []
    scenarios: dict[str, list[str]] = {}
    model = study.model.build()
    for scenario in study.scenarios:
        with (
            contextlib.suppress(OSError, Diverged, InvalidDesign, InvalidSetting),
            calling(study.model.plugin, OSError, Diverged, InvalidDesign, InvalidSetting),
        ):
            for remark in model.remarks(scenario.values):
                scenarios.setdefault(str(remark), []).append(scenario.name)
    lines = [
        remark if len(names) == len(study.scenarios) else f"{remark} (scenario {_first_of(names)})"
        for remark, names in scenarios.items()
    ]
    return [*lines[:REMARKS], *([f"{len(lines) - REMARKS} more remarks"] if len(lines) > REMARKS else [])]


def _first_of(names: list[str]) -> str:
    return f"{names[0]} and {plural(len(names) - 1, 'other')}" if len(names) > 1 else names[0]


def _mixed_values(study: StudyDefinition) -> Iterator[str]:
    scenarios = study.scenarios if study.model.plugin.conditions is None else ()
    for name in dict.fromkeys(name for scenario in scenarios for name in scenario.values):
        condition_values = {scenario.name: scenario.values[name] for scenario in scenarios if name in scenario.values}
        texts = [(scenario_name, value) for scenario_name, value in condition_values.items() if isinstance(value, str)]
        if texts and any(is_number(value) for value in condition_values.values()):
            scenario_name, value = texts[0]
            yield f"note: condition {name} is the text '{value}' in scenario {scenario_name}, but a number in others"


def _unread_conditions(study: StudyDefinition) -> Iterator[str]:
    """Conditions of a function without declarations whose names its file does not contain: probably misspelt."""
    plugin = study.model.plugin
    text = file_text(plugin.target) if plugin.conditions is None else ""
    names = dict.fromkeys(name for scenario in study.scenarios for name in scenario.values)
    for name in names if text else ():
        if not re.search(rf"\b{re.escape(name)}\b", text):
            yield (
                f"note: model '{plugin.name}' does not declare its conditions, and '{name}' does not occur in its file:"
                " is it misspelt? Then it changes nothing"
            )


def _loose_limits(study: StudyDefinition) -> Iterator[str]:
    """Limits on an output beyond its usual range, such as 5 for a share that is to be 5 %."""
    for limit in study.constraints:
        output = (study.model.plugin.outputs or {}).get(limit.expression.text)
        usual = output.quantity.usual if output and output.quantity else None
        if usual is None or not (limit.maximum or -math.inf) > usual[1]:
            continue
        unit = f" {limit.unit}" if limit.unit else ""
        percent = "" if limit.unit else f" (a share: write {limit.maximum:g} % for {limit.maximum:g} hundredths)"
        yield f"note: limit {limit.name} is above the usual {usual[0]:g} to {usual[1]:g}{unit} of its output{percent}"


def _few_parameters(study: StudyDefinition) -> Iterator[str]:
    """Searches that are made for more free parameters than the study has."""
    free = [p.name for p in study.space if p.kind != "fixed"]
    for stage in study.stages:
        least = stage.solver.plugin.suits_parameters
        if 0 < len(free) < least:
            yield (
                f"note: solver {stage.solver.plugin.name} is made for at least {least} free parameters; with"
                f" {' and '.join(free)} alone slsqp or nelder_mead need fewer designs (with several 'starts', if there"
                " may be local optima)"
            )


def _settings(study: StudyDefinition, data: Mapping[str, Any]) -> Iterator[Assumption]:
    section = data.get("model")
    if isinstance(section, Mapping):
        for field in study.model.plugin.settings.values():
            for name, unit in _unitless_numbers(section.get(field.name), field.annotation, field.quantity, field.name):
                yield f"setting {name}", unit


def _unitless_numbers(value: Any, annotation: Any, quantity: Quantity | None, name: str) -> Iterator[Assumption]:
    """The names of numbers of a setting without a unit in the file, but with one in the model."""
    if isinstance(value, Mapping) and (members := members_of(annotation)):
        for key, member in members.items():
            yield from _unitless_numbers(value.get(key), member.annotation, member.quantity, f"{name}.{key}")
    elif quantity is not None and quantity.unit and _has_bare(value):
        yield name, quantity.unit


def _has_bare(value: Any) -> bool:
    """Whether a value, or one in it, is a number without a unit that could have several."""
    if isinstance(value, str):
        try:
            return not parse_amount(value).unit
        except UnitError:
            return False
    if isinstance(value, Amount):
        return not value.unit and value.value != 0
    if isinstance(value, Mapping):
        return any(_has_bare(item) for key, item in value.items() if key not in ("type", "scale"))
    if isinstance(value, (list, tuple)):
        return any(map(_has_bare, value))
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value != 0


def _space(study: StudyDefinition, data: Mapping[str, Any]) -> Iterator[Assumption]:
    inputs = study.model.plugin.inputs or {}
    model_units = {p.name: unit_of(inputs[p.name]) for p in study.space if p.name in inputs and p.unit}
    sections = data.get("space")
    if not any(model_units.values()) or not isinstance(sections, Mapping):
        return
    checked_sections = {name: check(section_type("space"), section, NO_FILES)[0] for name, section in sections.items()}
    for name, unit in model_units.items():
        if unit and checked_sections.get(name) and not has_unit(checked_sections[name]):
            yield name, unit
    elsewhere = ((data.get("report") or {}).get("tolerances") or {}).get("of") or {}
    for p in study.space:
        section = checked_sections.get(p.name) or {}
        if p.unit and "unit" not in section and _has_bare(elsewhere.get(p.name, section.get("tolerance"))):
            yield f"tolerance of {p.name}", p.unit


def _conditions(study: StudyDefinition, data: Mapping[str, Any]) -> Iterator[Assumption]:
    fields = study.model.plugin.conditions or {}
    validation_scenarios = ((data.get("report") or {}).get("validate") or {}).get("scenarios")
    for scenarios in (data.get("scenarios"), validation_scenarios):
        for section in scenarios if isinstance(scenarios, list) else [scenarios]:
            if not isinstance(section, Mapping):
                continue
            conditions_of_section = (
                [section] if "use" not in section else [section.get("vary") or {}, section.get("with") or {}]
            )
            conditions_of_section += _columns(study, section.get("file"))
            for conditions in conditions_of_section:
                yield from _condition_units(conditions, fields)


def _columns(study: StudyDefinition, name: Any) -> list[dict[str, Any]]:
    """The rows of the table `name` of scenarios; none if it is not a table."""
    tables = [read_table(file) for file in study.tables if file.name == name]
    return [
        {column: value for column, (value, _) in table.values(row).items()} for table in tables for row in table.rows
    ]


def _condition_units(conditions: Mapping[str, Any], fields: Mapping[str, Field]) -> Iterator[Assumption]:
    for name, value in conditions.items():
        field = fields.get(name)
        if field is not None and (unit := unit_of(field)) and _has_bare(value):
            yield f"condition {name}", unit


def _objectives(study: StudyDefinition, data: Mapping[str, Any]) -> Iterator[Assumption]:
    """Objectives that a plain factor may have converted to another unit than the model's, which they keep."""
    units = {o.name: o.unit for o in study.objectives if o.unit and Expression.parse(o.expression.text).has_bare_factor}
    for section in (data.get("objectives") or ()) if units else ():
        objective = check(section_type("objectives"), section, NO_FILES)[0]
        if objective and "unit" not in objective and objective.get("name") in units:
            yield f"objective {objective['name']}", units[objective["name"]]


def _limits(study: StudyDefinition, data: Mapping[str, Any]) -> Iterator[Assumption]:
    units = {c.name: c.unit for c in study.constraints}
    for section in data.get("constraints") or ():
        constraint = check(section_type("constraints"), section, NO_FILES)[0]
        if not constraint or "unit" in constraint:
            continue
        unit = units.get(constraint.get("name", ""), "")
        if unit and any(_has_bare(constraint.get(key)) for key in ("min", "max", "equals")):
            yield f"limit {constraint['name']}", unit
