"""Derivatives of expressions with respect to the names in them: forward differentiation of the parsed tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.study.language.expressions.expression import Expression
from designopt.study.language.expressions.grammar import Term

Values = NDArray[np.float64]
#: A term's derivatives by name.
Slopes = dict[str, Any]


def derivatives(expression: Expression, values: Mapping[str, Any]) -> dict[str, Values]:
    """The partial derivatives of `expression` with respect to each of its names, at `values` (numbers or arrays by
    name).

    Elementwise, like `Expression.evaluate`; NaN or infinite if undefined. At a kink, the derivative of one side: 0 for
    ``abs`` at zero, that of the first of equals for ``min`` and ``max``. Raises `ValueError` for a relation and for
    unresolved units.
    """
    if expression.is_relation:
        raise ValueError(f"'{expression}' is a relation and has no derivative")
    with np.errstate(all="ignore"):
        value, slopes = _derive(expression.root, values)
    return {name: np.asarray(slope * np.ones_like(value), dtype=float) for name, slope in slopes.items()}


def _derive(term: Term, values: Mapping[str, Any]) -> tuple[Any, Slopes]:
    """Value and slopes of a term."""
    if term.kind == "number":
        return np.float64(term.value), {}
    if term.kind == "name":
        return np.asarray(values[term.text], dtype=float), {term.text: 1.0}
    parts = [_derive(part, values) for part in term.parts]
    if term.kind == "neg":
        return -parts[0][0], _times(parts[0][1], -1.0)
    if term.kind == "call":
        return _call(term.text, parts)
    return _binary(term.kind, *parts)


def _call(name: str, parts: list[tuple[Any, Slopes]]) -> tuple[Any, Slopes]:
    value, slopes = parts[0]
    if name in ("min", "max"):
        for operand, its in parts[1:]:
            first = value <= operand if name == "min" else value >= operand
            slopes = _sum(_piecewise(first, slopes), _piecewise(~first, its))
            value = np.minimum(value, operand) if name == "min" else np.maximum(value, operand)
        return value, slopes
    if name == "abs":
        return np.abs(value), _times(slopes, np.sign(value))
    if name == "sqrt":
        root = np.sqrt(value)
        return root, _times(slopes, 0.5 / root)
    if name == "log":
        return np.log(value), _times(slopes, np.where(value > 0.0, 1.0 / value, np.nan))
    power = np.exp(value)
    return power, _times(slopes, power)


def _binary(kind: str, left: tuple[Any, Slopes], right: tuple[Any, Slopes]) -> tuple[Any, Slopes]:
    (a, da), (b, db) = left, right
    if kind == "+":
        return a + b, _sum(da, db)
    if kind == "-":
        return a - b, _sum(da, _times(db, -1.0))
    if kind == "*":
        return a * b, _sum(_times(da, b), _times(db, a))
    if kind == "/":
        return a / b, _sum(_times(da, 1.0 / b), _times(db, -a / (b * b)))
    power = np.float_power(a, b)
    return power, _sum(_times(da, b * np.float_power(a, b - 1.0)), _times(db, np.log(a) * power))


def _times(slopes: Slopes, factor: Any) -> Slopes:
    return {name: slope * factor for name, slope in slopes.items()}


def _piecewise(condition: Any, slopes: Slopes) -> Slopes:
    """The derivatives where `condition` holds, else 0 (not NaN, because the other branch is not used)."""
    return {name: np.where(condition, slope, 0.0) for name, slope in slopes.items()}


def _sum(first: Slopes, second: Slopes) -> Slopes:
    total = dict(first)
    for name, slope in second.items():
        total[name] = total[name] + slope if name in total else slope
    return total
