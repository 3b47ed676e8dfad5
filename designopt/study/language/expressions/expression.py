"""Short expressions of a study file: ``1 - rho``, ``abs(peak_error)``, ``damping <= 0.1 [s] * stiffness``.

The module `grammar` parses them. Values are numbers or NumPy arrays of any common shape; `Expression.bind` resolves
units once, so that the evaluation is plain arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from designopt.study.language import units
from designopt.study.language.expressions.grammar import FUNCTIONS, RELATIONS, ExpressionError, Term, parse

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "**": np.float_power,
}
_RANK = {"+": 2, "-": 2, "*": 3, "/": 3, "neg": 4, "**": 5}


@dataclass(frozen=True, eq=False)
class Expression:
    """A parsed expression or relation. `str()` gives its canonical text, which parses to an equal expression.

    `source` is the original text, before conversions were inserted; it does not affect equality.
    """

    root: Term
    source: str = ""

    @classmethod
    def parse(cls, text: str, source: str | None = None) -> Expression:
        """Parse the expression in `text`. Raises `ExpressionError` with the position of the mistake."""
        return cls(parse(text), " ".join((text if source is None else source).split()))

    @property
    def text(self) -> str:
        """The text for readers: as written in the study file, units included."""
        return self.source or self._text

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in the expression."""
        return frozenset(name for name, _, _ in self.uses())

    def uses(self) -> list[tuple[str, int, int]]:
        """Every occurrence of a name with its offset and length in the parsed text."""
        occurrences: list[tuple[str, int, int]] = []
        _collect(self.root, occurrences)
        return occurrences

    @property
    def is_relation(self) -> bool:
        """Whether it compares two sides."""
        return self.root.kind in RELATIONS

    @property
    def has_bare_factor(self) -> bool:
        """Whether it is a product or quotient with a number without a unit: ``volume * 7.85e-6``."""
        return _has_bare_factor(self.root)

    @cached_property
    def _text(self) -> str:
        return _render(self.root)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Expression({self._text!r})"

    def __eq__(self, value: object) -> bool:
        return isinstance(value, Expression) and self._text == value._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return Expression, (self.root, self.source)

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """The value for `values` (numbers or arrays by name), elementwise; NaN or infinite if undefined.

        A relation gives True where it holds. Raises `KeyError` for a name missing in `values`, and `ValueError` for an
        expression with units that `bind` has not resolved.
        """
        with np.errstate(all="ignore"):
            if self.is_relation:
                return _evaluate_violation(self.root, values) <= 0.0
            return _evaluate(self.root, values)

    def relation_violation(self, values: Mapping[str, Any]) -> Any:
        """Violation of a relation: ``left - right`` for ``<=`` and ``<``; at most 0 where it holds. Raises `ValueError`
        for other expressions.

        Strict comparisons are treated as closed ones: for floating-point numbers the difference has no meaning.
        """
        if not self.is_relation:
            raise ValueError(f"'{self}' is not a relation")
        with np.errstate(all="ignore"):
            return _evaluate_violation(self.root, values)

    def bound(self, unit_of: Mapping[str, str | None]) -> tuple[Expression, str | None]:
        """The expression with all conversions written out, and the unit of its value; None for one of numbers alone.

        `unit_of` gives the unit of each name (None: a number without a unit, which takes that of the other operand).
        Sums, comparisons, min and max need one dimension and are computed in the unit of their first member with a
        unit. Raises `ExpressionError` at the part with an incompatible unit.
        """
        try:
            term, unit = _bind(self.root, unit_of)
        except units.UnitError as error:  # a product whose unit cannot be written, m^18 say
            raise ExpressionError(str(error), self.root.at, self.root.length) from None
        return Expression(term, self.source), unit

    def check_constants(self) -> None:
        """Raise `ExpressionError` at the first constant part that is not a finite number: ``1/0``, ``log(0)``."""
        _constant_value(self.root)

    def in_unit(self, unit: str, target: str) -> Expression:
        """A bound expression with values in `unit`, converted to `target`. Raises `units.UnitError`."""
        return Expression(_in_unit(self.root, unit, target), self.source)

    def rescaled(self, conversion_of: Mapping[str, tuple[float, float]]) -> Expression:
        """A bound expression in which each name of `conversion_of` (factor, offset) stands for ``factor * name +
        offset``."""
        return Expression(_rescale(self.root, conversion_of), self.source)


# ------------------------------------------------------------------------------------------------ text and values


def _has_bare_factor(term: Term) -> bool:
    if term.kind not in ("*", "/", "neg"):
        return False
    return any((part.kind == "number" and not part.text) or _has_bare_factor(part) for part in term.parts)


def _collect(term: Term, occurrences: list[tuple[str, int, int]]) -> None:
    if term.kind == "name":
        occurrences.append((term.text, term.at, term.length))
    for part in term.parts:
        _collect(part, occurrences)


def _render(term: Term) -> str:
    if term.kind == "number":
        plain = repr(int(term.value)) if term.value.is_integer() and abs(term.value) < 1e15 else repr(term.value)
        return f"{plain} [{term.text}]" if term.text else plain
    if term.kind == "name":
        return term.text
    if term.kind == "call":
        return f"{term.text}({', '.join(_render(p) for p in term.parts)})"
    if term.kind == "neg":
        return "-" + _in_parentheses(term.parts[0], _RANK["neg"])
    left, right = term.parts
    if term.kind in RELATIONS:
        return f"{_render(left)} {term.kind} {_render(right)}"
    rank = _RANK[term.kind]
    if term.kind == "**":
        return f"{_in_parentheses(left, rank + 1)}**{_in_parentheses(right, _RANK['neg'])}"
    space = " " if rank == 2 else ""
    return f"{_in_parentheses(left, rank)}{space}{term.kind}{space}{_in_parentheses(right, rank + 1)}"


def _in_parentheses(term: Term, rank: int) -> str:
    """The term's text, in parentheses if it binds less tightly than `rank`."""
    text = _render(term)
    return f"({text})" if _RANK.get(term.kind, 9) < rank else text


def _evaluate(term: Term, values: Mapping[str, Any]) -> Any:
    if term.kind == "number":
        if term.text:
            raise ValueError(f"the unit '{term.text}' has not been resolved; call bind() first")
        return term.value
    if term.kind == "name":
        return values[term.text]
    parts = [_evaluate(part, values) for part in term.parts]
    if term.kind == "neg":
        return np.negative(parts[0])
    if term.kind == "call":
        return FUNCTIONS[term.text](*parts)
    return _BINARY[term.kind](*parts)


def _constant_value(term: Term) -> Any:
    """The value of a term without names, ignoring units; None for one with names."""
    if term.kind == "number":
        value: Any = term.value
    else:
        parts = [_constant_value(part) for part in term.parts]
        if term.kind == "/" and parts[1] == 0.0:
            raise _misfit("division by zero", term.parts[1])
        if term.kind == "name" or any(part is None for part in parts) or term.kind in RELATIONS:
            return None
        numbers = tuple(Term("number", value=part) for part in parts)
        with np.errstate(all="ignore"):
            value = _evaluate(_with_parts(term, list(numbers)), {}) if parts else None
    if value is not None and not np.isfinite(value):
        raise _misfit("this constant is not a finite number", term)
    return value


def _evaluate_violation(term: Term, values: Mapping[str, Any]) -> Any:
    left, right = (_evaluate(part, values) for part in term.parts)
    if term.kind in ("<=", "<"):
        return np.subtract(left, right)
    if term.kind == "==":
        return np.abs(np.subtract(left, right))
    return np.subtract(right, left)


# ----------------------------------------------------------------------------------------------------------- units

# A unit of None marks a number without a unit: it takes the unit of the other operand of a sum or comparison.


def _bind(term: Term, unit_of: Mapping[str, str | None]) -> tuple[Term, str | None]:
    if term.kind == "number":
        return Term("number", value=term.value, at=term.at, length=term.length), term.text or None
    if term.kind == "name":
        return term, unit_of[term.text]
    bound = [_bind(part, unit_of) for part in term.parts]
    if term.kind == "neg" or term.text == "abs":
        return _with_parts(term, [bound[0][0]]), bound[0][1]
    if term.kind in ("+", "-", *RELATIONS) or term.text in ("min", "max"):
        parts, unit = _in_common_unit(bound)
        return _with_parts(term, parts), unit
    if term.kind == "**":
        return _bind_power(term, *bound)
    (first, unit) = bound[0]
    if term.text == "sqrt":
        return _with_parts(term, [first]), None if unit is None else units.power_unit(unit, 0.5)
    if term.kind == "call":  # log and exp
        if unit is None:
            return _with_parts(term, [first]), None
        if not units.same_dimension(unit, ""):
            raise _misfit(f"'{term.text}' needs a number without a unit; this one is in '{unit}'", first)
        return _with_parts(term, [_in_unit(first, unit, "")]), ""
    second, second_unit = bound[1]
    parts = [first, second]
    if unit is None and second_unit is None:
        return _with_parts(term, parts), None
    return _with_parts(term, parts), units.product(unit or "", second_unit or "", 1.0 if term.kind == "*" else -1.0)


def _in_common_unit(bound: list[tuple[Term, str | None]]) -> tuple[list[Term], str | None]:
    """All members in the unit of the first that has one."""
    unit = next((u for _, u in bound if u is not None), None)
    if unit is None:
        return [term for term, _ in bound], None
    parts = []
    for term, term_unit in bound:
        if term_unit is not None and not units.same_dimension(term_unit, unit):
            raise _misfit(f"incompatible units: {units.unit_text(term_unit)} with {units.unit_text(unit)}", term)
        parts.append(term if term_unit is None else _in_unit(term, term_unit, unit))
    return parts, unit


def _bind_power(term: Term, base: tuple[Term, str | None], power: tuple[Term, str | None]) -> tuple[Term, str | None]:
    exponent = power[0]
    if power[1] is not None:
        if not units.same_dimension(power[1], ""):
            raise _misfit(f"an exponent has no unit; this one is in '{power[1]}'", exponent)
        exponent = _in_unit(exponent, power[1], "")
    occurrences: list[tuple[str, int, int]] = []
    _collect(exponent, occurrences)
    if not base[1]:
        return _with_parts(term, [base[0], exponent]), base[1]
    if occurrences:
        raise _misfit(f"a value in '{base[1]}' needs a constant exponent", exponent)
    with np.errstate(all="ignore"):
        constant = float(_evaluate(exponent, {}))
    if not np.isfinite(constant) or abs(constant) > 9:
        raise _misfit(f"a value in '{base[1]}' needs an exponent between -9 and 9", exponent)
    return _with_parts(term, [base[0], exponent]), units.power_unit(base[1], constant)


def _in_unit(term: Term, unit: str, target: str) -> Term:
    factor, offset = units.factor_offset(unit, target)
    if offset:
        raise _misfit(f"'{unit}' and '{target}' have different zeros; use only one of them in an expression", term)
    if factor == 1.0:
        return term
    if term.kind == "number":
        return Term("number", value=units.convert(term.value, unit, target), at=term.at, length=term.length)
    scale = Term("number", value=factor, at=term.at, length=term.length)
    return Term("*", (scale, term), at=term.at, length=term.length, depth=term.depth + 1)


def _rescale(term: Term, conversion_of: Mapping[str, tuple[float, float]]) -> Term:
    if term.kind != "name":
        return _with_parts(term, [_rescale(part, conversion_of) for part in term.parts])
    for kind, number, neutral in zip("*+", conversion_of.get(term.text, (1.0, 0.0)), (1.0, 0.0), strict=True):
        if number != neutral:
            constant = Term("number", value=number, at=term.at, length=term.length)
            term = Term(kind, (constant, term), at=term.at, length=term.length, depth=term.depth + 1)
    return term


def _with_parts(term: Term, parts: list[Term]) -> Term:
    return Term(term.kind, tuple(parts), term.value, term.text, term.at, term.length, term.depth)


def _misfit(message: str, term: Term) -> ExpressionError:
    return ExpressionError(message, term.at, term.length)
