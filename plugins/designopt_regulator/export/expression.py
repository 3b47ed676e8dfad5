"""The difference equations of a controller as text: what `Law.sample` computes with symbols instead of numbers.

Each operation of the statement becomes one operation of the text, in the same order and with the same parentheses, so
that the text computes the same bits as the simulator wherever floating-point numbers follow IEEE 754 and no operations
are contracted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


class CodeTerm:
    """A number, a name, or an operation on terms."""

    __array_ufunc__ = None  # NumPy's numbers leave operations with terms to these

    def __init__(self, operation: str, parts: Sequence[CodeTerm] = (), value: float = 0.0) -> None:
        self.operation, self.parts, self.value = operation, tuple(parts), value

    def __add__(self, second: Any) -> CodeTerm:
        return CodeTerm("+", (self, term(second)))

    def __radd__(self, second: Any) -> CodeTerm:
        return CodeTerm("+", (term(second), self))

    def __sub__(self, second: Any) -> CodeTerm:
        return CodeTerm("-", (self, term(second)))

    def __rsub__(self, second: Any) -> CodeTerm:
        return CodeTerm("-", (term(second), self))

    def __mul__(self, second: Any) -> CodeTerm:
        return self if _is_one(second) else CodeTerm("*", (self, term(second)))

    def __rmul__(self, second: Any) -> CodeTerm:
        return self if _is_one(second) else CodeTerm("*", (term(second), self))

    def __truediv__(self, second: Any) -> CodeTerm:
        return CodeTerm("/", (self, term(second)))

    def __rtruediv__(self, second: Any) -> CodeTerm:
        return CodeTerm("/", (term(second), self))


def term(value: Any) -> CodeTerm:
    """A number as a term; a term is returned unchanged."""
    return value if isinstance(value, CodeTerm) else CodeTerm("number", value=float(value))


def name(text: str) -> CodeTerm:
    """A variable or constant of the text."""
    return CodeTerm(text)


class TermFunctions:
    """The functions that the difference equations need from their module; infinite limits are omitted."""

    @staticmethod
    def fmin(a: Any, b: Any) -> CodeTerm:
        return term(a) if _infinite(b) else CodeTerm("fmin", (term(a), term(b)))

    @staticmethod
    def fmax(a: Any, b: Any) -> CodeTerm:
        return term(a) if _infinite(b) else CodeTerm("fmax", (term(a), term(b)))

    @staticmethod
    def ceil(a: Any) -> CodeTerm:
        return CodeTerm("ceil", (term(a),))


def _is_one(value: Any) -> bool:
    return not isinstance(value, CodeTerm) and float(value) == 1.0


def _infinite(value: Any) -> bool:
    """Whether a limit is none: an infinite number, or a sum with one."""
    if not isinstance(value, CodeTerm):
        return bool(np.isinf(value))
    if value.operation in "+-":
        return any(_infinite(part) for part in value.parts)
    return value.operation == "number" and bool(np.isinf(value.value))


@dataclass(frozen=True)
class Language:
    """How numbers are written, and functions of one and two arguments."""

    number: Callable[[float], str]
    functions: Mapping[str, str]


def statements(results: Mapping[str, CodeTerm], language: Language) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """New names with their texts, for results and for terms that occur twice, in order; and the text of each result."""
    uses: dict[int, int] = {}
    order: list[CodeTerm] = []

    def visit(node: CodeTerm) -> None:
        uses[id(node)] = uses.get(id(node), 0) + 1
        if uses[id(node)] == 1:
            for part in node.parts:
                visit(part)
            order.append(node)

    for result in results.values():
        visit(result)
    names_of: dict[int, str] = {}
    lines: list[tuple[str, str]] = []
    result_names = {id(node): key for key, node in reversed(list(results.items()))}
    for node in order:
        if node.parts and (uses[id(node)] > 1 or id(node) in result_names):
            text = _text(node, names_of, language)
            names_of[id(node)] = result_names.get(id(node), f"v{len(lines) + 1}")
            lines.append((names_of[id(node)], text))
    return lines, {key: _text(node, names_of, language) for key, node in results.items()}


def _text(node: CodeTerm, names_of: Mapping[int, str], language: Language) -> str:
    if id(node) in names_of:
        return names_of[id(node)]
    if node.operation == "number":
        return language.number(node.value)
    if not node.parts:
        return node.operation
    parts = [_text(part, names_of, language) for part in node.parts]
    if node.operation in language.functions:
        return language.functions[node.operation].format(*parts)
    return f"({parts[0]} {node.operation} {parts[1]})"
