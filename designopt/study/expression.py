"""Short expressions of a study file: ``1 - rho``, ``abs(peak_error)``, ``damping <= 0.1 [s] * stiffness``.

A small grammar of its own, so that a study file can never name code:

    relation   = sum [("<=" | "<" | ">=" | ">" | "==") sum]
    sum        = product {("+" | "-") product}
    product    = signed {("*" | "/") signed}
    signed     = ("-" | "+") signed | power
    power      = atom ["**" signed]
    atom       = number ["[" unit "]"] | name | function "(" sum {"," sum} ")" | "(" sum ")"

Functions are abs, min, max, sqrt, log (natural) and exp. Values are numbers or NumPy arrays of any common shape.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from designopt.study import units

#: Limits that keep a hostile text from costing time or stack.
MAX_LENGTH = 2000
MAX_DEPTH = 60

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[^\W\d]\w*)"
    r"|(?P<operator>\*\*|<=|>=|==|!=|[-+*/()\[\],<>=])|(?P<other>\S))"
)

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "min": lambda *a: reduce(np.minimum, a),
    "max": lambda *a: reduce(np.maximum, a),
    "sqrt": np.sqrt,
    "log": np.log,
    "exp": np.exp,
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "**": np.float_power,
}
_RELATIONS = ("<=", "<", ">=", ">", "==")
_RANK = {"+": 2, "-": 2, "*": 3, "/": 3, "neg": 4, "**": 5}


class ExpressionError(ValueError):
    """What is wrong with an expression, and where: `offset` and `length` in characters of its text."""

    def __init__(self, message: str, offset: int = 0, length: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.length = length


@dataclass(frozen=True)
class _Term:
    """A node: `kind` is number, name, neg, call, a binary operator or a relation; `at` and `length` are its place."""

    kind: str
    parts: tuple[_Term, ...] = ()
    value: float = 0.0
    text: str = ""  # name, function, or the unit of a number
    at: int = 0
    length: int = 1
    depth: int = 1


@dataclass(frozen=True, eq=False)
class Expression:
    """A parsed expression or relation. `str()` gives its canonical text, which parses to an equal expression."""

    root: _Term

    @classmethod
    def parse(cls, text: str) -> Expression:
        """The expression in `text`; raises `ExpressionError` with the place of the mistake."""
        return cls(_Parser(text).whole())

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that it uses."""
        return frozenset(name for name, _, _ in self.uses())

    def uses(self) -> list[tuple[str, int, int]]:
        """Every use of a name with its offset and length in the text it was parsed from."""
        found: list[tuple[str, int, int]] = []
        _collect(self.root, found)
        return found

    @property
    def is_relation(self) -> bool:
        """Whether it compares two sides."""
        return self.root.kind in _RELATIONS

    @cached_property
    def _text(self) -> str:
        return _render(self.root)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Expression({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return Expression, (self.root,)

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Its value for `values` (numbers or arrays by name), elementwise; NaN or infinite where there is none.

        A relation gives True where it holds. Raises `KeyError` for a name that `values` lacks, and `ValueError` for an
        expression with units that `bind` has not resolved.
        """
        with np.errstate(all="ignore"):
            if self.is_relation:
                return _evaluate_excess(self.root, values) <= 0.0
            return _evaluate(self.root, values)

    def excess(self, values: Mapping[str, Any]) -> Any:
        """How far a relation is broken: ``left - right`` for ``<=`` and ``<``; at most 0 where it holds.

        Strict comparisons are treated as their closed forms: on floating-point numbers the difference has no meaning.
        """
        if not self.is_relation:
            raise ValueError(f"'{self}' is not a relation")
        with np.errstate(all="ignore"):
            return _evaluate_excess(self.root, values)

    def bind(self, of: Mapping[str, str | None]) -> tuple[Expression, str]:
        """The expression with all conversions written out, and the unit of its value.

        `of` gives the unit of each name (None: a bare number, which takes the unit of what it meets). Sums,
        comparisons, min and max need one dimension and are computed in the unit of their first member that has one.
        Raises `ExpressionError` at the part whose unit does not fit.
        """
        bound, unit = self.bound(of)
        return bound, unit or ""

    def bound(self, of: Mapping[str, str | None]) -> tuple[Expression, str | None]:
        """`bind`, but with the unit None for an expression of bare numbers only."""
        try:
            term, unit = _bind(self.root, of)
        except units.UnitError as error:  # a product whose unit cannot be written, m^18 say
            raise ExpressionError(str(error), self.root.at, self.root.length) from None
        return Expression(term), unit

    def in_unit(self, unit: str, target: str) -> Expression:
        """A bound expression with values in `unit`, converted to `target`; raises `units.UnitError`."""
        return Expression(_scaled(self.root, unit, target))


# --------------------------------------------------------------------------------------------------------- parsing


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise ExpressionError(f"an expression has at most {MAX_LENGTH} characters, this one {len(text)}")
        self.text = text
        self.tokens = list(_tokens(text))
        self.next = 0
        self.level = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.next]

    def take(self) -> _Token:
        token = self.token
        self.next += 1
        return token

    def fail(self, message: str, token: _Token) -> ExpressionError:
        return ExpressionError(message, token.at, max(1, len(token.text)))

    def whole(self) -> _Term:
        term = self.sum()
        if self.token.text in _RELATIONS:
            operator = self.take()
            term = self.binary(operator, term, self.sum())
            if self.token.text in _RELATIONS:
                raise self.fail("only one comparison in a relation; write two relations", self.token)
        token = self.token
        if token.kind != "end":
            if token.text == "=":
                raise self.fail("'=' is not a comparison; write '=='", token)
            if token.text == "!=":
                raise self.fail("'!=' is not known; use <=, <, >=, > or ==", token)
            if token.text == "[":
                raise self.fail("a unit in brackets belongs directly behind a number, as in 5 [mm]", token)
            raise self.fail(f"'{token.text}' was not expected here", token)
        return term

    def binary(self, operator: _Token, left: _Term, right: _Term) -> _Term:
        depth = 1 + max(left.depth, right.depth)
        if depth > MAX_DEPTH:
            raise self.fail(f"an expression may be nested {MAX_DEPTH} deep at most", operator)
        length = right.at + right.length - left.at
        return _Term(operator.text, (left, right), at=left.at, length=length, depth=depth)

    def sum(self) -> _Term:
        return self.deeper(self.terms)

    def terms(self) -> _Term:
        term = self.product()
        while self.token.text in ("+", "-"):
            operator = self.take()
            term = self.binary(operator, term, self.product())
        return term

    def product(self) -> _Term:
        term = self.signed()
        while self.token.text in ("*", "/"):
            operator = self.take()
            term = self.binary(operator, term, self.signed())
        return term

    def signed(self) -> _Term:
        sign = self.token
        if sign.text not in ("-", "+"):
            return self.power()
        self.take()
        inner = self.deeper(self.signed)
        if sign.text == "+":
            return inner
        return _Term("neg", (inner,), at=sign.at, length=inner.at + inner.length - sign.at, depth=inner.depth + 1)

    def power(self) -> _Term:
        base = self.atom()
        if self.token.text != "**":
            return base
        return self.binary(self.take(), base, self.deeper(self.signed))

    def deeper(self, rule: Callable[[], _Term]) -> _Term:
        """What `rule` reads, one level further in."""
        self.level += 1
        if self.level > MAX_DEPTH:
            raise self.fail(f"an expression may be nested {MAX_DEPTH} deep at most", self.token)
        term = rule()
        self.level -= 1
        return term

    def atom(self) -> _Term:
        token = self.take()
        if token.kind == "number":
            return self.number(token)
        if token.kind == "name":
            if self.token.text == "(":
                return self.call(token)
            return _Term("name", text=token.text, at=token.at, length=len(token.text))
        if token.text == "(":
            inner = self.sum()
            self.close(")", token)
            return inner
        if token.kind == "end":
            raise ExpressionError("the expression ends too early", max(0, len(self.text.rstrip()) - 1), 1)
        raise self.fail(f"'{token.text}' was not expected here", token)

    def number(self, token: _Token) -> _Term:
        value = float(token.text)
        if not np.isfinite(value):
            raise self.fail("the number is too large", token)
        if self.token.text != "[":
            return _Term("number", value=value, at=token.at, length=len(token.text))
        bracket = self.take()
        stop = self.text.find("]", bracket.at)
        if stop < 0:
            raise self.fail("']' is missing", bracket)
        unit = self.text[bracket.at + 1 : stop].strip()
        try:
            units.check(unit)
        except units.UnitError as error:
            raise ExpressionError(str(error), bracket.at + 1, max(1, stop - bracket.at - 1)) from None
        if not unit:
            raise ExpressionError("a unit is missing between the brackets", bracket.at, stop + 1 - bracket.at)
        while self.token.kind != "end" and self.token.at <= stop:
            self.next += 1
        return _Term("number", value=value, text=unit, at=token.at, length=stop + 1 - token.at)

    def call(self, name: _Token) -> _Term:
        if name.text not in _FUNCTIONS:
            near = difflib.get_close_matches(name.text, _FUNCTIONS, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else f" (known: {', '.join(_FUNCTIONS)})"
            raise self.fail(f"no function '{name.text}'{hint}", name)
        bracket = self.take()
        arguments = [self.sum()]
        while self.token.text == ",":
            self.take()
            arguments.append(self.sum())
        self.close(")", bracket)
        if name.text in ("min", "max"):
            if len(arguments) < 2:
                raise self.fail(f"'{name.text}' needs at least two values", name)
        elif len(arguments) != 1:
            raise self.fail(f"'{name.text}' takes one value", name)
        length = self.tokens[self.next - 1].at + 1 - name.at
        depth = 1 + max(a.depth for a in arguments)
        return _Term("call", tuple(arguments), text=name.text, at=name.at, length=length, depth=depth)

    def close(self, text: str, opened: _Token) -> None:
        if self.token.text == text:
            self.take()
        elif self.token.kind == "end":
            raise self.fail("this parenthesis is never closed", opened)
        elif self.token.text in _RELATIONS:
            raise self.fail("a comparison may not stand inside parentheses", self.token)
        else:
            raise self.fail(f"'{self.token.text}' was not expected here", self.token)


def _tokens(text: str) -> list[_Token]:
    tokens = []
    position = 0
    in_unit = False
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:  # only spaces are left
            break
        kind = str(match.lastgroup)
        value = match[kind]
        if kind == "other" and not in_unit:
            raise ExpressionError(f"'{value}' is not part of any expression", match.start(kind))
        in_unit = value == "[" or (in_unit and value != "]")
        tokens.append(_Token(kind, value, match.start(kind)))
        position = match.end()
    return [*tokens, _Token("end", "", len(text))]


# ------------------------------------------------------------------------------------------------ text and values


def _collect(term: _Term, found: list[tuple[str, int, int]]) -> None:
    if term.kind == "name":
        found.append((term.text, term.at, term.length))
    for part in term.parts:
        _collect(part, found)


def _render(term: _Term) -> str:
    if term.kind == "number":
        plain = repr(int(term.value)) if term.value.is_integer() and abs(term.value) < 1e15 else repr(term.value)
        return f"{plain} [{term.text}]" if term.text else plain
    if term.kind == "name":
        return term.text
    if term.kind == "call":
        return f"{term.text}({', '.join(_render(p) for p in term.parts)})"
    if term.kind == "neg":
        return "-" + _wrapped(term.parts[0], _RANK["neg"])
    left, right = term.parts
    if term.kind in _RELATIONS:
        return f"{_render(left)} {term.kind} {_render(right)}"
    rank = _RANK[term.kind]
    if term.kind == "**":
        return f"{_wrapped(left, rank + 1)}**{_wrapped(right, _RANK['neg'])}"
    space = " " if rank == 2 else ""
    return f"{_wrapped(left, rank)}{space}{term.kind}{space}{_wrapped(right, rank + 1)}"


def _wrapped(term: _Term, rank: int) -> str:
    """The term's text, in parentheses when it binds less tightly than `rank`."""
    text = _render(term)
    return f"({text})" if _RANK.get(term.kind, 9) < rank else text


def _evaluate(term: _Term, values: Mapping[str, Any]) -> Any:
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
        return _FUNCTIONS[term.text](*parts)
    return _BINARY[term.kind](*parts)


def _evaluate_excess(term: _Term, values: Mapping[str, Any]) -> Any:
    left, right = (_evaluate(part, values) for part in term.parts)
    if term.kind in ("<=", "<"):
        return np.subtract(left, right)
    if term.kind == "==":
        return np.abs(np.subtract(left, right))
    return np.subtract(right, left)


# ----------------------------------------------------------------------------------------------------------- units

# A unit of None marks a bare number: it takes the unit of what it is added to or compared with.


def _bind(term: _Term, of: Mapping[str, str | None]) -> tuple[_Term, str | None]:
    if term.kind == "number":
        return _Term("number", value=term.value, at=term.at, length=term.length), term.text or None
    if term.kind == "name":
        return term, of[term.text]
    bound = [_bind(part, of) for part in term.parts]
    if term.kind == "neg" or term.text == "abs":
        return _with(term, [bound[0][0]]), bound[0][1]
    if term.kind in ("+", "-", *_RELATIONS) or term.text in ("min", "max"):
        parts, unit = _unified(bound)
        return _with(term, parts), unit
    if term.kind == "**":
        return _bind_power(term, *bound)
    (first, unit) = bound[0]
    if term.text == "sqrt":
        return _with(term, [first]), None if unit is None else units.raised(unit, 0.5)
    if term.kind == "call":  # log and exp
        if unit is None:
            return _with(term, [first]), None
        if not units.same_dimension(unit, ""):
            raise _misfit(f"'{term.text}' needs a number without unit, this is in '{unit}'", first)
        return _with(term, [_scaled(first, unit, "")]), ""
    second, other = bound[1]
    parts = [first, second]
    if unit is None and other is None:
        return _with(term, parts), None
    return _with(term, parts), units.product(unit or "", other or "", 1.0 if term.kind == "*" else -1.0)


def _unified(bound: list[tuple[_Term, str | None]]) -> tuple[list[_Term], str | None]:
    """All members in the unit of the first that has one."""
    unit = next((u for _, u in bound if u is not None), None)
    if unit is None:
        return [term for term, _ in bound], None
    parts = []
    for term, own in bound:
        if own is not None and not units.same_dimension(own, unit):
            raise _misfit(f"units do not fit: {units.named(own)} with {units.named(unit)}", term)
        parts.append(term if own is None else _scaled(term, own, unit))
    return parts, unit


def _bind_power(
    term: _Term, base: tuple[_Term, str | None], power: tuple[_Term, str | None]
) -> tuple[_Term, str | None]:
    exponent = power[0]
    if power[1] is not None:
        if not units.same_dimension(power[1], ""):
            raise _misfit(f"an exponent has no unit, this one is in '{power[1]}'", exponent)
        exponent = _scaled(exponent, power[1], "")
    found: list[tuple[str, int, int]] = []
    _collect(exponent, found)
    if not base[1]:
        return _with(term, [base[0], exponent]), base[1]
    if found:
        raise _misfit(f"a value in '{base[1]}' needs a constant exponent", exponent)
    with np.errstate(all="ignore"):
        constant = float(_evaluate(exponent, {}))
    if not np.isfinite(constant) or abs(constant) > 9:
        raise _misfit(f"a value in '{base[1]}' needs an exponent between -9 and 9", exponent)
    return _with(term, [base[0], exponent]), units.raised(base[1], constant)


def _scaled(term: _Term, unit: str, target: str) -> _Term:
    factor, offset = units.factor_offset(unit, target)
    if offset:
        raise _misfit(f"'{unit}' and '{target}' have different zeros; an expression needs one of them only", term)
    if factor == 1.0:
        return term
    if term.kind == "number":
        return _Term("number", value=units.convert(term.value, unit, target), at=term.at, length=term.length)
    scale = _Term("number", value=factor, at=term.at, length=term.length)
    return _Term("*", (scale, term), at=term.at, length=term.length, depth=term.depth + 1)


def _with(term: _Term, parts: list[_Term]) -> _Term:
    return _Term(term.kind, tuple(parts), term.value, term.text, term.at, term.length, term.depth)


def _misfit(message: str, term: _Term) -> ExpressionError:
    return ExpressionError(message, term.at, term.length)
