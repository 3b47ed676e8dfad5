"""Symbolic value of an expression of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from designopt.lazy import casadi as ca
from designopt.study.language.expressions.grammar import Term


def symbolic_value(term: Term, values: Mapping[str, Any]) -> Any:
    """The value of a term with resolved units, for CasADi expressions `values` by name."""
    if term.kind == "number":
        return term.value
    if term.kind == "name":
        return values[term.text]
    parts = [symbolic_value(part, values) for part in term.parts]
    if term.kind == "neg":
        return -parts[0]
    if term.kind == "call":
        if term.text in ("min", "max"):
            extremum = parts[0]
            for part in parts[1:]:
                extremum = (ca.fmin if term.text == "min" else ca.fmax)(extremum, part)
            return extremum
        return {"abs": ca.fabs, "sqrt": ca.sqrt, "log": ca.log, "exp": ca.exp}[term.text](parts[0])
    left, right = parts
    if term.kind == "+":
        return left + right
    if term.kind == "-":
        return left - right
    if term.kind == "*":
        return left * right
    return left / right if term.kind == "/" else left**right
