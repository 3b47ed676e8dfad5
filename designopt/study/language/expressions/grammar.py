"""The grammar of the short expressions in a study file, and its parser: from text to a tree of terms.

The grammar is closed, so that a study file can never call code:

    relation   = sum [("<=" | "<" | ">=" | ">" | "==") sum]
    sum        = product {("+" | "-") product}
    product    = signed {("*" | "/") signed}
    signed     = ("-" | "+") signed | power
    power      = atom ["**" signed]
    atom       = number ["[" unit "]"] | name | function "(" sum {"," sum} ")" | "(" sum ")"

Functions are abs, min, max, sqrt, log (natural) and exp.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from designopt.plugin import closest
from designopt.study.language import units

#: Limits that protect against texts that cost time or stack.
MAX_LENGTH = 2000
MAX_DEPTH = 60

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[^\W\d]\w*)"
    r"|(?P<operator>\*\*|<=|>=|==|!=|[-+*/()\[\],<>=])|(?P<other>\S))"
)

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "min": lambda *a: reduce(np.minimum, a),
    "max": lambda *a: reduce(np.maximum, a),
    "sqrt": np.sqrt,
    "log": np.log,
    "exp": np.exp,
}
RELATIONS = ("<=", "<", ">=", ">", "==")


class ExpressionError(ValueError):
    """A mistake in an expression: `offset` and `length` in characters of its text."""

    def __init__(self, message: str, offset: int = 0, length: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.length = length


@dataclass(frozen=True)
class Term:
    """A node: `kind` is number, name, neg, call, a binary operator or a relation; `at` and `length` are its
    position."""

    kind: str
    parts: tuple[Term, ...] = ()
    value: float = 0.0
    text: str = ""  # name, function, or the unit of a number
    at: int = 0
    length: int = 1
    depth: int = 1


def parse(text: str) -> Term:
    """The tree of the expression or relation in `text`. Raises `ExpressionError` with the position of the mistake."""
    return _Parser(text).complete_term()


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise ExpressionError(f"an expression has at most {MAX_LENGTH} characters; this one has {len(text)}")
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

    def complete_term(self) -> Term:
        term = self.sum()
        if self.token.text in RELATIONS:
            operator = self.take()
            term = self.binary(operator, term, self.sum())
            if self.token.text in RELATIONS:
                raise self.fail("a relation has only one comparison; write two relations", self.token)
        token = self.token
        if token.kind != "end":
            if token.text == "=":
                raise self.fail("'=' is not a comparison; write '=='", token)
            if token.text == "!=":
                raise self.fail("'!=' is not supported; use <=, <, >=, > or ==", token)
            if token.text == "[":
                raise self.fail("a unit in brackets comes directly after a number, as in 5 [mm]", token)
            raise self.unexpected_token(token)
        return term

    def binary(self, operator: _Token, left: Term, right: Term) -> Term:
        depth = 1 + max(left.depth, right.depth)
        if depth > MAX_DEPTH:
            raise self.fail(f"an expression may be nested at most {MAX_DEPTH} deep", operator)
        length = right.at + right.length - left.at
        return Term(operator.text, (left, right), at=left.at, length=length, depth=depth)

    def sum(self) -> Term:
        return self.deeper(self.terms)

    def terms(self) -> Term:
        term = self.product()
        while self.token.text in ("+", "-"):
            operator = self.take()
            term = self.binary(operator, term, self.product())
        return term

    def product(self) -> Term:
        term = self.signed_term()
        while self.token.text in ("*", "/"):
            operator = self.take()
            term = self.binary(operator, term, self.signed_term())
        return term

    def signed_term(self) -> Term:
        sign = self.token
        if sign.text not in ("-", "+"):
            return self.power()
        self.take()
        inner = self.deeper(self.signed_term)
        if sign.text == "+":
            return inner
        return Term("neg", (inner,), at=sign.at, length=inner.at + inner.length - sign.at, depth=inner.depth + 1)

    def power(self) -> Term:
        base = self.atom()
        if self.token.text != "**":
            return base
        return self.binary(self.take(), base, self.deeper(self.signed_term))

    def deeper(self, rule: Callable[[], Term]) -> Term:
        """The result of `rule`, one nesting level deeper. Raises `ExpressionError` beyond the limit."""
        self.level += 1
        if self.level > MAX_DEPTH:
            raise self.fail(f"an expression may be nested at most {MAX_DEPTH} deep", self.token)
        term = rule()
        self.level -= 1
        return term

    def atom(self) -> Term:
        token = self.take()
        if token.kind == "number":
            return self.number(token)
        if token.kind == "name":
            if self.token.text == "(":
                return self.call(token)
            return Term("name", text=token.text, at=token.at, length=len(token.text))
        if token.text == "(":
            inner = self.sum()
            self.close(")", token)
            return inner
        if token.kind == "end":
            raise ExpressionError("the expression ends too early", max(0, len(self.text.rstrip()) - 1), 1)
        raise self.unexpected_token(token)

    def number(self, token: _Token) -> Term:
        value = float(token.text)
        if not np.isfinite(value):
            raise self.fail("the number is too large", token)
        if self.token.text != "[":
            return Term("number", value=value, at=token.at, length=len(token.text))
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
        return Term("number", value=value, text=unit, at=token.at, length=stop + 1 - token.at)

    def call(self, name: _Token) -> Term:
        if name.text not in FUNCTIONS:
            near = closest(name.text, FUNCTIONS)
            hint = f"; did you mean '{near}'?" if near else f" (known: {', '.join(FUNCTIONS)})"
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
        return Term("call", tuple(arguments), text=name.text, at=name.at, length=length, depth=depth)

    def close(self, text: str, bracket: _Token) -> None:
        if self.token.text == text:
            self.take()
        elif self.token.kind == "end":
            raise self.fail("this parenthesis is never closed", bracket)
        elif self.token.text in RELATIONS:
            raise self.fail("a comparison is not allowed inside parentheses", self.token)
        else:
            raise self.unexpected_token(self.token)

    def unexpected_token(self, token: _Token) -> ExpressionError:
        """The error for a token that cannot follow; a name directly after a number is probably its unit."""
        before = next((part for part in reversed(_tokens(self.text[: token.at])) if part.kind != "end"), None)
        if token.kind == "name" and before is not None and before.kind == "number":
            hint = f"a unit stands in brackets, {before.text} [{token.text}], and a product needs a '*'"
            return self.fail(f"unexpected '{token.text}'; {hint}", token)
        return self.fail(f"unexpected '{token.text}'", token)


def _tokens(text: str) -> list[_Token]:
    tokens = []
    position = 0
    in_unit = False
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:  # only spaces remain
            break
        kind = str(match.lastgroup)
        value = match[kind]
        if kind == "other" and not in_unit:
            hint = "; a power is written a ** b" if value == "^" else ""
            raise ExpressionError(f"'{value}' is not allowed in an expression{hint}", match.start(kind))
        in_unit = value == "[" or (in_unit and value != "]")
        tokens.append(_Token(kind, value, match.start(kind)))
        position = match.end()
    return [*tokens, _Token("end", "", len(text))]
