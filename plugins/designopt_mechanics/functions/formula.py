"""Joint variables as short formulas in text, for model files: arithmetic and the usual functions, never code."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from designopt.lazy import casadi as ca
from designopt.plugin import closest

#: Functions that a formula may call, each of one value but the last.
FUNCTIONS = ("sin", "cos", "tan", "asin", "acos", "atan", "exp", "log", "sqrt", "tanh", "sinh", "cosh", "atan2")
CONSTANTS = {"pi": math.pi}
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_LONGEST, _DEEPEST = 1000, 60
#: A number with a unit.
_UNITED = re.compile(r"\d[\d.]*\s+[A-Za-z]\w*")
_NO_UNITS = "'{}': numbers in a formula are in SI units and carry none (90 deg is pi/2, 30 mm is 0.03)"


class FormulaError(ValueError):
    """A mistake in a formula; `offset` is its position in characters of the text."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


@dataclass(frozen=True)
class Formula:
    """A function of coordinates as text, such as ``0.4*hip - 0.7*sin(knee)``; angles in rad.

    Operators are + - * / and ** ; functions sin, cos, tan, asin, acos, atan, atan2, exp, log, sqrt, tanh, sinh, cosh;
    pi.

    Raises `FormulaError` for anything else.
    """

    text: str
    _tree: ast.expr = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.text) > _LONGEST:
            raise FormulaError(f"a formula has at most {_LONGEST} characters; this one has {len(self.text)}")
        try:
            tree = ast.parse(self.text.strip(), mode="eval").body
        except SyntaxError as error:
            unit_match = _UNITED.search(self.text)
            offset = unit_match.start() if unit_match else max(0, (error.offset or 1) - 1)
            reason = _NO_UNITS.format(unit_match.group()) if unit_match else error.msg
            raise FormulaError(f"not a formula: {reason}", offset) from None
        except (RecursionError, MemoryError, ValueError):
            raise FormulaError("not a formula: nested too deeply or with characters that are not allowed") from None
        _check(tree, 0)
        object.__setattr__(self, "_tree", tree)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The names in the formula, in order of appearance."""
        names = [n.id for n in ast.walk(self._tree) if isinstance(n, ast.Name)]
        return tuple(dict.fromkeys(n for n in names if n not in CONSTANTS and n not in FUNCTIONS))

    def __call__(self, z: Mapping[str, Any]) -> Any:
        return _value(self._tree, z)


def _check(node: ast.expr, depth: int) -> None:
    def fail(message: str) -> FormulaError:
        return FormulaError(message, node.col_offset)

    if depth > _DEEPEST:
        raise fail(f"a formula may be nested at most {_DEEPEST} deep")
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
            raise fail(f"{node.value!r} is not a number")
        try:
            finite = math.isfinite(float(node.value))
        except OverflowError:
            finite = False
        if not finite:
            raise fail("a number is too large")
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        _check(node.left, depth + 1)
        _check(node.right, depth + 1)
    elif isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        _check(node.operand, depth + 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id
        if name not in FUNCTIONS:
            near = closest(name, FUNCTIONS)
            raise fail(f"no function '{name}'{f'; did you mean {near!r}?' if near else ''}")
        argument_count = 2 if name == "atan2" else 1
        if node.keywords or len(node.args) != argument_count:
            raise fail(f"'{name}' takes {argument_count} value{'s' if argument_count > 1 else ''}")
        for argument in node.args:
            _check(argument, depth + 1)
    elif not isinstance(node, ast.Name):
        raise fail("a formula may contain only numbers, names, + - * / ** and functions")


def _value(node: ast.expr, z: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return ca.SX(float(node.value))  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return ca.SX(CONSTANTS[node.id]) if node.id in CONSTANTS and node.id not in z else z[node.id]
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, z), _value(node.right, z)
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 2:
            return left * left
        return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        return _OPERATORS[type(node.op)](_value(node.operand, z))
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    return getattr(ca, node.func.id)(*(_value(argument, z) for argument in node.args))
