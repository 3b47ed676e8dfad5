"""Second pass over `space` and `relations`: checks against the model and of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from designopt.plugin import Field, ModelPlugin, Quantity, closest
from designopt.study.language import units
from designopt.study.language.checking.annotations import number_type, type_words
from designopt.study.language.checking.refusals import is_number
from designopt.study.language.checking.single_values import out_of_range
from designopt.study.language.expressions.expression import Expression
from designopt.study.language.findings import MOST, Path, nearest_or_all
from designopt.study.language.units import Amount, UnitError
from designopt.study.sections.context import Context, unit_of
from designopt.study.sections.when import conditional
from designopt.study.study import DesignVariable

Kind = Literal["real", "int", "choice", "fixed"]

_GIVEN_BY: dict[str, tuple[str, ...]] = {
    "real": ("low", "high"),
    "int": ("low", "high"),
    "choice": ("values",),
    "fixed": ("value",),
}


#: Maximum number of parameters: the columns of a table of designs, with a margin.
MOST_PARAMETERS = 1000
#: Maximum number of values of a choice.
MOST_VALUES = 10_000
#: Largest integer for which doubles, the form of designs, represent all integers.
LARGEST_INTEGER = 2**53


def with_probable_names(sections: Mapping[str, Any], model: ModelPlugin | None) -> dict[str, Any]:
    """The `sections`, and None for each input of the model that an unknown name probably meant."""
    inputs = (model.inputs if model else None) or {}
    unknown = [name for name in sections if name not in inputs][:MOST]
    free = [name for name in inputs if name not in sections]
    near = [closest(name, free) for name in unknown] if free else []
    return {**sections, **dict.fromkeys(free if None in near else [name for name in near if name])}


def parameters(
    ctx: Context, sections: Mapping[str, Any], meanings: Mapping[str, Any], model: ModelPlugin | None
) -> list[DesignVariable]:
    """The parameters from the `sections` (None for an invalid one); `meanings` is from `with_probable_names`."""
    inputs = model.inputs if model else None
    valid = []
    if len(sections) > MOST_PARAMETERS:
        ctx.add(("space",), f"has {len(sections)} parameters; a store holds at most {MOST_PARAMETERS}")
    alike: dict[str, str] = {}
    for name, section in sections.items():
        if ctx.full:
            break
        path: Path = ("space", name)
        earlier_name = alike.setdefault(name.casefold(), name)
        if not name.isidentifier():
            ctx.add(path, "the name of a parameter has only letters, digits and underscores", key="")
        elif earlier_name != name:
            ctx.add(
                path, f"'{earlier_name}' has the same letters; a store does not tell upper case from lower case", key=""
            )
        elif inputs is not None and name not in inputs:
            assert model is not None
            free = [n for n in inputs if n not in sections]
            hint = nearest_or_all(name, free)
            ctx.add(path, f"model '{model.name}' has no design input '{name}'{hint}", key="")
        if section is not None:
            item = inputs.get(name) if inputs else None
            if model and (inputs is None or (item is not None and unit_of(item) is None)):
                _no_unit(ctx, name, section, model, path)
            parameter = _parameter(ctx, name, section, item, path)
            if parameter is not None and ctx.sound(path):
                valid.append(parameter)
    if model and inputs:
        lacking = [n for n, item in inputs.items() if item.required and n not in meanings]
        for name in lacking[:20]:
            ctx.add(("space",), f"the design input '{name}' of model '{model.name}' is missing")
    return conditional(ctx, meanings, valid, model)


def _no_unit(ctx: Context, name: str, section: Mapping[str, Any], model: ModelPlugin, path: Path) -> None:
    """Reject a unit that cannot be converted: the model would take kN/m for its own unit."""
    gap = f"does not declare '{name}'" if model.inputs is None else f"does not declare a unit for '{name}'"
    unit_paths = [(*path, *steps) for steps, value in _numbers(section) if _has_unit(value)]
    if section.get("unit"):
        unit_paths.insert(0, (*path, "unit"))
    if unit_paths:
        fix = (
            "annotate the model's design argument with a TypedDict, or an argument of this name, or write plain numbers"
        )
        ctx.add(unit_paths[0], f"the model '{model.name}' {gap}, so its unit cannot be converted; {fix}")


def has_unit(section: Mapping[str, Any]) -> bool:
    """Whether a checked section of `space` gives the unit of its numbers; words have none."""
    values = [value for _, value in _numbers(section)]
    words = all(isinstance(value, (str, bool)) for value in values if value is not None)
    return "unit" in section or words or any(map(_has_unit, values))


def _numbers(section: Mapping[str, Any]) -> list[tuple[Path, Any]]:
    """The values of a section with their positions."""
    single: list[tuple[Path, Any]] = [((key,), section.get(key)) for key in ("low", "high", "value")]
    return [*single, *((("values", i), value) for i, value in enumerate(section.get("values") or ()))]


def _has_unit(value: Any) -> bool:
    amount = _amount(value)
    return amount is not None and bool(amount.unit)


def _is_not_zero(value: Any) -> bool:
    """Whether a number is not a bare zero, which is the same in all units without an offset."""
    amount = _amount(value)
    return amount is None or amount.value != 0.0 or bool(amount.unit)


def _amount(value: Any) -> Amount | None:
    """The number with its unit that a value of a section is; None for a word."""
    if isinstance(value, str):
        try:
            return units.parse_amount(value)
        except UnitError:
            return None
    if is_number(value):
        return Amount(float(value))
    return value if isinstance(value, Amount) else None


def _parameter(
    ctx: Context, name: str, section: Mapping[str, Any], field: Field | None, path: Path
) -> DesignVariable | None:
    kind = _kind(ctx, section, path)
    unit = _unit(ctx, section, field, path)
    if kind is None or unit is None:
        return None
    model_unit = unit_of(field) if field else None
    try:
        factor, offset = units.factor_offset(unit, model_unit if model_unit is not None else unit)
    except UnitError as error:
        meaning = field.quantity.description if field and field.quantity and not model_unit else ""
        text = f"incompatible units: {error}" + (f" ({name}: {meaning})" if meaning else "")
        ctx.add(path, text, at="unit" if "unit" in section else None)
        return None
    parameter = DesignVariable(name, kind, unit=unit, factor=factor, offset=offset, stated=_section_unit(section, unit))
    if kind in ("choice", "fixed"):
        return _with_values(ctx, parameter, section, field, path)
    why = " ".join((section.get("why") or "").split()).rstrip(".")
    return _with_range(ctx, replace(parameter, why=why), section, field, path)


def _kind(ctx: Context, section: Mapping[str, Any], path: Path) -> Kind | None:
    """The kind as given, or inferred from the keys; checks that exactly its keys are present."""
    default_kind: Kind = "choice" if "values" in section else "fixed" if "value" in section else "real"
    kind: Kind | None = section.get("type", default_kind)
    if kind is None:
        return None
    kind_keys = _GIVEN_BY[kind]
    for key in (k for k in ("low", "high", "values", "value") if k in section and k not in kind_keys):
        if section[key] is not None:
            ctx.add(path, f"'{key}' does not belong to a parameter of type {kind}", key=key)
        return None
    missing = [key for key in kind_keys if key not in section]
    if missing and ctx.unknown_key(path):
        return None
    if len(missing) == 2 and "type" not in section:
        ctx.add(path, "give 'low' and 'high', 'values' or 'value'")
    else:
        for key in missing:
            ctx.add(path, f"'{key}' is missing")
    if "why" in section and kind in ("choice", "fixed"):
        ctx.add((*path, "why"), f"says why a range ends where it does; this is {kind} and has none", key="")
        return None
    if section.get("scale") == "log" and kind != "real":
        ctx.add((*path, "scale"), f"a log scale needs a parameter of type real, this is {kind}")
        return None
    return None if missing else kind


def _unit(ctx: Context, section: Mapping[str, Any], field: Field | None, path: Path) -> str | None:
    """The study's unit of the parameter: as given, else the model's, else the unit of its bounds."""
    unit = section.get("unit")
    if unit is None and "unit" in section:
        return None
    if unit is None and field is not None:
        unit = unit_of(field)
    if unit is None:
        amounts = [section[key] for key in ("low", "high") if isinstance(section.get(key), Amount)]
        unit = next((a.unit for a in amounts if a.unit), "")
    try:
        units.check(unit)
    except UnitError as error:
        ctx.add((*path, "unit"), str(error))
        return None
    return "" if unit == "1" else str(unit)


def _section_unit(section: Mapping[str, Any], unit: str) -> str:
    """The unit in which all numbers of a section are written, if it is not the `unit` of the parameter; else ""."""
    numbers = [value for _, value in _numbers(section) if value is not None]
    if "unit" in section or section.get("type") == "int" or not all(map(_has_unit, filter(_is_not_zero, numbers))):
        return ""
    unit_names = {amount.unit for value in numbers if (amount := _amount(value)) is not None and amount.unit}
    unit_name = unit_names.pop() if len(unit_names) == 1 else ""
    try:
        has_offset = units.factor_offset(unit_name, unit)[1] != 0.0
    except UnitError:  # reported with the numbers
        return ""
    return "" if unit_name in (unit, "1") or (has_offset and section.get("scale") == "log") else unit_name


def _with_range(
    ctx: Context, parameter: DesignVariable, section: Mapping[str, Any], field: Field | None, path: Path
) -> DesignVariable | None:
    number_kind = number_type(field.annotation) if field is not None else float
    if field is not None and number_kind is None:
        ctx.add(path, f"the model takes {type_words(field.annotation)} here, not a number; use 'values' or 'value'")
        return None
    parameter = replace(parameter, scale=section.get("scale") or "linear")
    quantity = field.quantity if field is not None else None
    low, high = (_bound(ctx, key, section[key], parameter, quantity, path) for key in ("low", "high"))
    if low is None or high is None or ctx.unknown_key(path):
        return None
    if number_kind is int and (parameter.kind == "real" or parameter.factor != 1.0):
        ctx.add(path, "the model takes an integer here; use type: int")
    if not low < high:
        bounds = {key: section[key].text_in(parameter.unit) for key in ("low", "high")}
        ctx.add(path, "low ({low}) must be below high ({high})".format(**bounds))
    elif not math.isfinite(high - low):
        ctx.add(path, f"the range from {low:g} to {high:g} is too wide: its width is not finite")
    return replace(parameter, low=low, high=high)


def _bound(
    ctx: Context, key: str, amount: Amount | None, parameter: DesignVariable, quantity: Quantity | None, path: Path
) -> float | None:
    """The end `key` of the range in the study's unit; None if invalid."""
    bound_path: Path = (*path, key)
    value = ctx.in_unit(amount, parameter.unit, bound_path)
    if value is None:
        return None
    if parameter.kind == "int" and value != round(value):
        ctx.add(bound_path, f"must be an integer, not {value:g}")
        return None
    if parameter.kind == "int" and abs(value) > LARGEST_INTEGER:
        ctx.add(bound_path, f"must be within -2**53 and 2**53 to be represented exactly, not {value:g}")
        return None
    reason = out_of_range(units.convert(value, parameter.unit, quantity.unit), quantity) if quantity else ""
    if key == "low" and parameter.scale == "log" and value <= 0.0:
        way = ": it cannot contain 0; take scale: linear from 0" if value == 0.0 else ""
        ctx.add(bound_path, f"a log scale needs low above 0, not {value:g}{way}")
    elif reason and not ctx.unknown_key(path):
        ctx.add(bound_path, f"outside the range of the model: {reason}")
    return value


def _with_values(
    ctx: Context, parameter: DesignVariable, section: Mapping[str, Any], field: Field | None, path: Path
) -> DesignVariable | None:
    """A choice or a fixed parameter. Values are checked against the model's annotation, if any."""
    single = parameter.kind == "fixed"
    entries = [section["value"]] if single else section["values"]
    if entries is None or ctx.unknown_key(path):
        return None
    if not entries or len(entries) > MOST_VALUES:
        message = f"a choice has at most {MOST_VALUES} values, not {len(entries)}; use a range"
        ctx.add((*path, "values"), message if entries else "at least one value is needed")
        return None
    values = []
    for position, value in enumerate(entries):
        entry_path: Path = (*path, "value") if single else (*path, "values", position)
        number = None if value is None else _value(ctx, value, parameter, field, "unit" in section, entry_path)
        if number is not None:
            values.append(number)
    earlier_values = set()
    for position, value in enumerate(values):
        if (type(value), value) in earlier_values:
            ctx.add((*path, "values", position), f"value {value} is given twice")
        earlier_values.add((type(value), value))
    if len(values) < len(entries):
        return None
    if any(isinstance(value, (str, bool)) for value in values):
        return DesignVariable(parameter.name, parameter.kind, values=tuple(values))
    return replace(parameter, values=tuple(values))


def _value(ctx: Context, value: Any, parameter: DesignVariable, field: Field | None, has_unit: bool, path: Path) -> Any:
    number = is_number(value)
    numeric = field is not None and number_type(field.annotation) is not None
    if isinstance(value, str) and (numeric or has_unit):
        try:
            value = ctx.in_unit(units.parse_amount(value), parameter.unit, path)
        except UnitError as error:
            ctx.add(path, str(error))
            return None
        if value is None:
            return None
        number = True
    if has_unit and not number:
        ctx.add(path, f"a unit is given, so this must be a number, not {value}")
        return None
    if field is None:
        return float(value) if number and parameter.factor != 1.0 else value
    in_model = (
        parameter.factor * value + parameter.offset
        if number and (parameter.factor, parameter.offset) != (1.0, 0.0)
        else value
    )
    model_value = ctx.check_value(in_model, field, path)
    return model_value if model_value is None or in_model is value else float(value)


def relations(
    ctx: Context,
    texts: list[str | None],
    parameters: list[DesignVariable],
    sections: Mapping[str, Any],
    model: ModelPlugin | None,
) -> list[Expression]:
    """Relations between parameters, with units resolved. `sections` has all names in `space`, also invalid ones."""
    parameter_of = {p.name: p for p in parameters}
    inputs = (model.inputs if model else None) or {}
    names_with_units = {name for name, item in inputs.items() if unit_of(item) is not None}
    units_of = {p.name: p.unit if p.unit or p.name in names_with_units else None for p in parameters}
    result = []
    for position, text in enumerate(texts):
        path: Path = ("relations", position)
        relation = None if text is None or ctx.full else ctx.formula(text, path)
        if relation is None:
            continue
        if not relation.is_relation:
            ctx.add(path, "a relation compares two sides with <=, <, >=, > or ==")
            continue
        usable = True
        for name, at, length in relation.uses():
            parameter = parameter_of.get(name)
            usable = usable and parameter is not None
            if name not in sections:
                ctx.add(path, f"'{name}' is not in space{nearest_or_all(name, sections)}", part=(at, length))
            elif parameter and any(isinstance(v, (str, bool)) for v in parameter.values):
                ctx.add(path, f"'{name}' has words as values and cannot be compared", part=(at, length))
                usable = False
        if not relation.names:
            ctx.add(path, "a relation needs a parameter")
        bound = ctx.bound(relation, units_of, path) if usable and relation.names else None
        if bound:
            result.append(bound[0])
    return result
