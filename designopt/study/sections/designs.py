"""Second pass over designs given to a solver, by a list or a table, and the space that follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from designopt.plugin import Field, InvalidSetting, ModelPlugin, SolverPlugin, Use, find
from designopt.study.language import units
from designopt.study.language.checking.annotations import type_words
from designopt.study.language.checking.refusals import value_text
from designopt.study.language.checking.words import LABEL
from designopt.study.language.findings import Path, nearest, nearest_or_all
from designopt.study.language.units import UnitError
from designopt.study.sections import rows
from designopt.study.sections.choose import Method
from designopt.study.sections.context import Context, unit_of
from designopt.study.sections.rows import Row
from designopt.study.sections.space import LARGEST_INTEGER
from designopt.study.sections.when import activating_value, alternatives_text
from designopt.study.study import DesignVariable

#: The stage that evaluates the designs of the section `baseline`, and the default name of a single one.
BASELINE = "baseline"
#: The key of a design by a rule of the model.
RULE = "rule"

#: Labels of the other designs chosen from a front contain spaces.
CHOSEN = ("compromise", *get_args(Method))

#: Maximum number of designs; larger ones come from a sampler.
MOST_DESIGNS = 10_000

Scalar = str | float | int | bool


@dataclass(frozen=True)
class ListedDesigns:
    """The designs of one solver, whose section is at `path`."""

    use: Use[SolverPlugin]
    path: Path
    rows: tuple[Row, ...]

    def resolve(self, designs: Sequence[Mapping[str, Any]]) -> Use[SolverPlugin]:
        """The solver with `designs` in the study's units, from any source."""
        return replace(self.use, settings={**self.use.settings, "designs": list(designs), "table": None})


def listed_designs(ctx: Context, use: Use[SolverPlugin], path: Path) -> ListedDesigns:
    """The designs of the solver at `path`, with checked names."""
    entries, table = use.settings["designs"], use.settings["table"]
    if entries and table is not None:
        ctx.add((*path, "table"), "give 'designs' or 'table', not both", key="")
    design_rows = rows.list_row(entries, (*path, "designs"))
    if table is not None:
        design_rows = rows.table_row(ctx, table, (*path, "table"))
    if len(design_rows) > MOST_DESIGNS:
        ctx.add((*path, "designs"), f"at most {MOST_DESIGNS} designs are allowed, not {len(design_rows)}")
        design_rows = []
    names: set[str] = set()
    for row in design_rows:
        with row.findings(ctx):
            _check_name(ctx, row, names)
    return ListedDesigns(use, path, tuple(design_rows))


def baseline(ctx: Context, sections: Sequence[Any], path: Path, *, is_list: bool) -> ListedDesigns:
    """The designs of the section `baseline`, as designs for the solver ``evaluate``; a single one needs no name."""
    use = Use(find("solver", "evaluate"))
    baselines = []
    for position, section in enumerate(sections):
        if section is None:
            continue
        row = Row(dict(section), (*path, position) if is_list else path)
        rule = next((str(row.values[key]) for key in row.values if key == RULE or nearest(key, [RULE])), None)
        default_name = rule if rule is not None else None if is_list else BASELINE
        if default_name is not None and "name" not in row.values:
            row = replace(row, values={"name": default_name, **row.values})
        baselines.append(row)
    names: set[str] = set()
    for row in baselines:
        _check_name(ctx, row, names)
        name = str(row.values.get("name", ""))
        if name.isdigit():
            ctx.add((*row.path, "name"), f"'{name}' would be read as the number of a design; use letters too")
        elif name in CHOSEN:
            ctx.add((*row.path, "name"), f"'{name}' is the name of a chosen design; use another name")
    return ListedDesigns(use, path, tuple(baselines))


def by_rules(
    ctx: Context, designs: ListedDesigns, parameters: Sequence[DesignVariable], model: Use[ModelPlugin] | None
) -> ListedDesigns:
    """`designs` with the values of the model's rules in place of the key ``rule``; stated values stay."""
    if not any(RULE in row.values for row in designs.rows):
        return designs
    designs_without_rules = replace(designs, rows=tuple(row for row in designs.rows if RULE not in row.values))
    if model is None:
        return designs_without_rules
    free = {p.name: p for p in parameters if p.kind == "real"}
    rule_designs: Mapping[str, Mapping[str, float]] = {}
    if model.plugin.has("baselines"):
        try:
            rule_designs = model.build().baselines(set(free))
        except (InvalidSetting, ValueError):  # a finding of the model's own check
            return designs_without_rules
    rows = []
    for row in designs.rows:
        values = dict(row.values)
        rule = values.pop(RULE, "")
        if RULE in row.values and rule not in rule_designs:
            names = ", ".join(rule_designs) or f"none: the model '{model.plugin.name}' has no rules for these settings"
            ctx.add((*row.path, RULE), f"there is no rule '{rule}'; known rules: {names}")
            continue
        by_rule = {
            n: (v - free[n].offset) / free[n].factor for n, v in rule_designs.get(str(rule), {}).items() if n in free
        }
        outside = [n for n, v in by_rule.items() if n not in values and not free[n].low <= v <= free[n].high]
        for name in outside:
            values_text = f"{by_rule[name]:.4g}, outside {free[name].low:g} to {free[name].high:g} {free[name].unit}"
            way = "widen the range"
            if free[name].scale == "log" and by_rule[name] <= 0.0:
                way = "a logarithmic range cannot hold it, use a linear one from 0"
            text = (
                f"the rule gives {name} = {values_text.rstrip()}: {way}, state {name} beside the rule, or leave it out"
            )
            ctx.add((*row.path, RULE), text)
        if not outside:
            rows.append(replace(row, values=by_rule | values))
    return replace(designs, rows=tuple(rows))


def _check_name(ctx: Context, row: Row, earlier_names: set[str]) -> None:
    name = row.values.get("name")
    if name is None and row.table_position:  # rows of a table need no name
        return
    if "name" not in row.values:
        ctx.add(row.path, "'name' is missing")
    elif not isinstance(name, str) or not LABEL.fullmatch(name):
        ctx.add(
            (*row.path, "name"),
            f"{value_text(name)} is not a name: use letters, digits and _ . + -, and begin with one",
        )
    elif name in earlier_names:
        ctx.add((*row.path, "name"), f"there is another design named '{name}'")
    else:
        earlier_names.add(name)


# ---------------------------------------------------------------------------------------------- with a space


def in_space(ctx: Context, designs: ListedDesigns, parameters: Sequence[DesignVariable]) -> Use[SolverPlugin]:
    """The solver with its designs as values of `parameters`."""
    parameter_of = {p.name: p for p in parameters}
    free = [p.name for p in parameters if p.kind != "fixed"]
    if not designs.rows and free and ctx.sound(designs.path):
        ctx.add(designs.path, f"{', '.join(free[:20])} vary: give 'designs' or 'table', or fix them", at="use")
    return designs.resolve([_design(ctx, row, parameter_of) for row in designs.rows if not ctx.full])


def _design(ctx: Context, row: Row, parameters: Mapping[str, DesignVariable]) -> dict[str, Any]:
    design: dict[str, Any] = {}
    with row.findings(ctx):
        for name, value in row.values.items():
            path: Path = (*row.path, name)
            if name == "name":
                design[name] = value
            elif name not in parameters:
                ctx.add(path, f"'{name}' is not in space{nearest_or_all(name, [*parameters, RULE])}", key="")
            elif (parameter_value := _parameter_value(ctx, value, parameters[name], path)) is not None:
                design[name] = parameter_value
        is_mistyped = any(name != "name" and name not in parameters for name in row.values)
        for name, p in parameters.items():
            if name not in row.values and p.kind != "fixed" and not p.when and not is_mistyped:
                ctx.add(row.path, f"a value of '{name}' is missing")
    return design


def _parameter_value(ctx: Context, value: Any, p: DesignVariable, path: Path) -> Any:
    """The value of `p` for `value`; None, with a finding, if there is none."""
    before = len(ctx.findings)
    parameter_value = _real_number(ctx, value, p, path) if p.kind == "real" else activating_value(ctx, value, p, path)
    if parameter_value is None and len(ctx.findings) == before:
        ctx.add(path, f"'{p.name}' cannot be {value_text(value)}{alternatives_text(value, p)}")
    return parameter_value


def _real_number(ctx: Context, value: Any, p: DesignVariable, path: Path) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        ctx.add(path, f"expected a number, not {value_text(value)}")
        return None
    try:
        amount = units.parse_amount(value) if isinstance(value, str) else units.Amount(float(value))
    except (UnitError, OverflowError) as error:
        ctx.add(path, str(error))
        return None
    number = ctx.in_unit(amount, p.unit, path)
    if number is not None and not p.low <= number <= p.high:
        ctx.add(path, f"must be from {p.low:g} to {p.high:g}{f' {p.unit}' if p.unit else ''}, not {number:g}")
        return None
    return number


# ------------------------------------------------------------------------------------------- without a space


def space_of(
    ctx: Context, design_lists: Sequence[ListedDesigns], model: ModelPlugin
) -> tuple[list[DesignVariable], list[Use[SolverPlugin]]]:
    """The parameters from designs of the model's own inputs, in its units, and the solvers with these designs.

    An input that only some designs state has its default in the others, if the model declares one.
    """
    inputs = model.inputs
    column: dict[str, list[Scalar]] = {}
    uses: list[Use[SolverPlugin]] = []
    names = dict.fromkeys(name for item in design_lists for row in item.rows for name in row.values if name != "name")
    defaults = {name: field.default for name, field in (inputs or {}).items() if field.default is not None}
    for item in design_lists:
        designs = [_model_inputs(ctx, row, model, inputs) for row in item.rows if not ctx.full]
        for design in designs:
            design |= {name: defaults[name] for name in names if name in defaults and name not in design}
        uses.append(item.resolve(designs))
        for design in designs:
            for name, value in design.items():
                if name != "name":
                    column.setdefault(name, []).append(value)
    required_names = [name for name, item in (inputs or {}).items() if item.required]
    for item in design_lists:
        for row in item.rows:
            lacking = [
                name for name in dict.fromkeys([*required_names, *names]) if name not in {**defaults, **row.values}
            ]
            if lacking and not ctx.full:
                why = "the model needs it" if lacking[0] in required_names else "other designs give it"
                with row.findings(ctx):
                    ctx.add(row.path, f"a value of '{lacking[0]}' is missing: {why}")
    if required_names and not any(item.rows for item in design_lists):
        ctx.add((), f"'space' is missing: model '{model.name}' needs {', '.join(required_names[:20])} in every design")
    return [_parameter(name, values, (inputs or {}).get(name)) for name, values in column.items()], uses


def _model_inputs(ctx: Context, row: Row, model: ModelPlugin, inputs: Mapping[str, Field] | None) -> dict[str, Any]:
    design: dict[str, Any] = {}
    with row.findings(ctx):
        for name, value in row.values.items():
            path: Path = (*row.path, name)
            if name == "name":
                design[name] = value
                continue
            item = (inputs or {}).get(name)
            if item is None and inputs is not None:
                hint = nearest_or_all(name, [n for n in inputs if n not in row.values])
                ctx.add(path, f"model '{model.name}' has no design input '{name}'{hint}", key="")
                continue
            if not name.isidentifier():
                ctx.add(path, "the name of a parameter has only letters, digits and underscores", key="")
                continue
            setting = _undeclared_value(ctx, value, model, path) if item is None else ctx.check_value(value, item, path)
            if setting is not None and not isinstance(setting, (str, int, float, bool)):
                words = type_words(item.annotation) if item else type(setting).__name__
                ctx.add(path, f"a design consists of numbers and words, not values of type {words}")
            elif isinstance(setting, int) and abs(setting) > LARGEST_INTEGER:
                ctx.add(path, f"must be within -2**53 and 2**53 to be represented exactly, not {setting}")
            elif setting is not None:
                design[name] = setting
    return design


def _undeclared_value(ctx: Context, value: Any, model: ModelPlugin, path: Path) -> Any:
    """A value for a model without declared inputs: a unit could not be converted."""
    if not isinstance(value, (str, int, float, bool)) or (isinstance(value, float) and value != value):
        ctx.add(path, f"expected a word or a number, not {value_text(value)}")
        return None
    if isinstance(value, str):
        try:
            amount = units.parse_amount(value)
        except UnitError:
            return value
        if amount.unit:
            ctx.add(path, f"the model '{model.name}' declares no units, so this one cannot be converted")
            return None
    return value


def _parameter(name: str, values: Sequence[Scalar], field: Field | None) -> DesignVariable:
    """The parameter with these values: fixed, or the smallest range or choice that contains them."""
    unit = (unit_of(field) if field else None) or ""
    distinct = list({(type(v), v): v for v in values}.values())
    words = any(isinstance(v, (str, bool)) for v in distinct)
    if len(distinct) == 1:
        return DesignVariable(name, "fixed", values=(distinct[0],), unit="" if words else unit)
    if words:
        return DesignVariable(name, "choice", values=tuple(distinct))
    numbers = [v for v in distinct if not isinstance(v, str)]
    kind: Any = "int" if all(isinstance(v, int) for v in numbers) else "real"
    return DesignVariable(name, kind, float(min(numbers)), float(max(numbers)), unit=unit)
