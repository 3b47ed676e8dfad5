"""Checks of single values: numbers with units and ranges, words, flags, files."""

from __future__ import annotations

import math
import operator
import typing
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import PlainValidator, Strict, WithJsonSchema

from designopt.plugin import InputFile, Quantity
from designopt.study.language import units
from designopt.study.language.checking.refusals import is_number, value_error, wrong_kind
from designopt.study.language.findings import nearest


def plain(validate: Callable[..., Any], schema: dict[str, Any]) -> Any:
    """A pydantic type: `validate` returns the value or raises, `schema` is its JSON Schema."""
    return Annotated[Any, PlainValidator(validate), WithJsonSchema(schema)]


def _number(quantity: Quantity | None) -> Any:
    def validate(value: Any) -> float:
        return in_range(amount_in(value, quantity), quantity)

    return plain(validate, {"anyOf": [{"type": "number", **_bounds(quantity)}, {"type": "string"}]})


def _integer(quantity: Quantity | None) -> Any:
    def validate(value: Any) -> int:
        if is_number(value) and isinstance(value, int):
            integer = value
        else:
            number = amount_in(value, quantity, "an integer")
            if number != round(number):
                raise value_error(f"must be an integer, not {number:g}")
            integer = round(number)
        if abs(integer) >= 2**63:
            raise value_error("the number is too large")
        return typing.cast(int, in_range(integer, quantity))

    return plain(validate, {"type": "integer", **_bounds(quantity)})


def amount_in(value: Any, quantity: Quantity | None, expectation: str = "a number") -> float:
    """The number `value` in the declared unit; a text may contain a unit (``12 kN/m``). Raises pydantic errors for
    others."""
    unit = quantity.unit if quantity else ""
    amount = to_amount(value, expectation + (f" in '{unit}'" if unit else ""))
    if amount.unit is None or amount.unit == unit:
        return amount.value
    if quantity is None:
        raise value_error(f"must be a plain number, without the unit '{amount.unit}'")
    try:
        number = units.convert(amount.value, amount.unit, unit)
    except units.UnitError as error:
        raise value_error(f"incompatible units: {error}") from None
    if not math.isfinite(number):
        raise value_error(f"the number is too large in {units.unit_text(unit)}")
    return number


def to_amount(value: Any, expectation: str = "a number") -> units.Amount:
    """A finite number with its given unit. Raises pydantic errors for others."""
    if not is_number(value) and not isinstance(value, str):
        raise wrong_kind(expectation, value)
    if isinstance(value, str):
        try:
            amount = units.parse_amount(value)
        except units.UnitError as error:
            if str(error).endswith("is not a number"):
                raise wrong_kind(expectation, value) from None
            raise value_error(str(error)) from None
    else:
        try:
            amount = units.Amount(float(value))
        except OverflowError:
            raise value_error("the number is too large") from None
    if not math.isfinite(amount.value):
        raise value_error(f"must be a finite number, not {amount.value}")
    return amount


def in_range(value: float, quantity: Quantity | None) -> float:
    """`value`, if the declared range admits it; otherwise raises a pydantic error."""
    message = out_of_range(value, quantity)
    if message:
        raise value_error(message)
    return value


#: The ends of a range: field of `Quantity`, comparison, in words, in a table, keyword of JSON Schema.
_ENDS: tuple[tuple[str, Callable[[float, float], bool], str, str, str], ...] = (
    ("gt", operator.gt, "above", ">", "exclusiveMinimum"),
    ("ge", operator.ge, "at least", ">=", "minimum"),
    ("lt", operator.lt, "below", "<", "exclusiveMaximum"),
    ("le", operator.le, "at most", "<=", "maximum"),
)


#: Relative difference by which a conversion may pass an end of a range: 0.7 cm is 0.006999999999999999 m.
_ROUNDING = 1e-12


def out_of_range(value: float, quantity: Quantity | None) -> str:
    """The reason why `value`, in the declared unit, is outside the declared range, by more than rounding; else ""."""
    unit = f" {quantity.unit}" if quantity and quantity.unit else ""
    for end, holds, words, *_ in _ENDS:
        bound = getattr(quantity, end, None)
        if bound is None or holds(value, bound):
            continue
        if end in ("gt", "lt") or not math.isclose(value, bound, rel_tol=_ROUNDING):
            return f"must be {words} {bound:g}{unit}, not {value:g}"
    return ""


def range_text(quantity: Quantity | None) -> str:
    """The declared range in a table: ``> 0, <= 1``."""
    bounds = [(sign, getattr(quantity, end, None)) for end, _, _, sign, _ in _ENDS]
    return ", ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)


def _bounds(quantity: Quantity | None) -> dict[str, float]:
    ends = {keyword: getattr(quantity, end, None) for end, _, _, _, keyword in _ENDS}
    return {keyword: bound for keyword, bound in ends.items() if bound is not None}


def _amount(_: Quantity | None) -> Any:
    return plain(to_amount, {"anyOf": [{"type": "number"}, {"type": "string"}]})


def _file(_: Quantity | None) -> Any:
    def validate(value: Any, info: Any) -> InputFile:
        if isinstance(value, InputFile):
            return value
        if not isinstance(value, str):
            raise wrong_kind("the name of a file", value)
        try:
            return typing.cast(InputFile, info.context["read"](value))
        except ValueError as error:
            raise value_error(str(error)) from None

    return plain(validate, {"type": "string", "description": "a file name relative to the study file"})


def word_of(choices: tuple[Any, ...]) -> Any:
    """One of `choices`."""

    def validate(value: Any) -> Any:
        for choice in choices:
            if type(choice) is type(value) and choice == value:
                return choice
        words = ", ".join(str(c) for c in choices)
        if isinstance(value, str):
            raise value_error(f"'{value[:40]}' is not one of {words}{nearest(value, [str(c) for c in choices])}")
        raise wrong_kind(f"one of {words}" if len(choices) > 1 else f"'{words}'", value)

    return plain(validate, {"enum": list(choices)})


#: The check of each type, from the metadata of its numbers.
LEAVES: dict[Any, Callable[[Quantity | None], Any]] = {
    float: _number,
    int: _integer,
    str: lambda _: Annotated[str, Strict()],
    bool: lambda _: Annotated[bool, Strict()],
    None: lambda _: None,
    type(None): lambda _: None,
    InputFile: _file,
    units.Amount: _amount,
}
