"""Traversal of CasADi expressions: their parts, and the first operation that is not finite."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import casadi as ca

#: Maximum length of a quoted expression.
QUOTED = 90


@lru_cache(maxsize=1)
def operation_names() -> dict[int, str]:
    """CasADi's operations by number."""
    return {getattr(ca, name): name[3:].lower() for name in dir(ca) if name.startswith("OP_")}


def nodes(expression: Any) -> list[Any]:
    """All parts of scalar SX expressions (a column), each once, operands before their results."""
    parts: list[Any] = []
    keys: set[int] = set()
    stack = [(expression[i], False) for i in reversed(range(expression.numel()))]
    while stack:
        node, ready = stack.pop()
        if ready:
            parts.append(node)
            continue
        key = node.element_hash()
        if key in keys:
            continue
        keys.add(key)
        stack.append((node, True))
        stack.extend((node.dep(i), False) for i in range(node.n_dep()))
    return parts


def operation(node: Any) -> str:
    """The operation of a part, as CasADi names it; "" for symbols, constants and results of function calls."""
    return operation_names().get(node.op(), "") if node.n_dep() else ""


def part_text(node: Any) -> str:
    """A part as text, "" if it is long."""
    text = str(node).replace("{0}", "")  # CasADi's addition to calls of tables
    return text if len(text) <= QUOTED and "@" not in text else ""


def first_invalid(expression: Any, arguments: Sequence[Any], numbers: Sequence[Floats]) -> str:
    """The operation of a scalar `expression` of symbols `arguments` with the first number that is not finite.

    With its operands, as text: "log(x - 2): log of -0.5"; "" if all are finite.
    """
    every = nodes(expression)
    numbers_of_parts = np.asarray(ca.Function("parts", list(arguments), [ca.vertcat(*every)])(*numbers), float).ravel()
    values = {node.element_hash(): value for node, value in zip(every, numbers_of_parts, strict=True)}
    for node, value in zip(every, numbers_of_parts, strict=True):
        operands = [values[node.dep(i).element_hash()] for i in range(node.n_dep())]
        if np.isfinite(value) or not operands or not np.isfinite(operands).all():
            continue
        description = f"{operation(node)} of {' and '.join(f'{v:.6g}' for v in operands)} is {value:g}"
        text = part_text(node)
        return f"{text}: {description}" if text else description
    return ""
