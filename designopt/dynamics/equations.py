"""Equations as a function of named symbols, called once; errors give the line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from designopt.dynamics.dimensions import check_units
from designopt.dynamics.system import System
from designopt.dynamics.variable import Variable, Vector
from designopt.lazy import casadi as ca
from designopt.plugin import closest
from designopt.plugin.error_location import definition_line, raise_location, user_frames

#: Names with units, or variables.
Table = Mapping[str, str] | Sequence[Variable | Vector]


class DeclaredSymbols:
    """The declared quantities as attributes, and `time` (s)."""

    def __init__(self, quantities: Mapping[str, Any], owner: str) -> None:
        self.__dict__.update(quantities)
        self.__dict__["_owner"] = owner

    def __getitem__(self, name: str) -> Any:
        raise AttributeError(f"{self.__dict__.get('_owner')}: symbols are attributes: write v.{name}, not v['{name}']")

    def __getattr__(self, name: str) -> Any:
        names = [n for n in self.__dict__ if not n.startswith("_")]
        near = closest(name, names)
        hint = f"did you mean '{near}'?" if near else f"known: {', '.join(names)}"
        raise AttributeError(f"{self.__dict__.get('_owner')} has no '{name}'; {hint}")


def call_equations(owner: str, equations: Callable[[Any], Any], symbols: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping that `equations` of `owner` (model 'drive') returns for the `symbols`.

    Raises `ValueError` for code that fails, in a sentence with the line of the user's file.
    """
    try:
        expressions = equations(DeclaredSymbols(symbols, owner))
    except Exception as error:
        location = raise_location(error)
        raise ValueError(f"{location + ': ' if location else ''}{_explanation(owner, error)}") from error
    if not isinstance(expressions, Mapping):
        raise ValueError(f"{owner}: equations return {type(expressions).__name__}, not a mapping of names")
    for name, expression in expressions.items():
        try:
            _check_numbers(owner, name, expression)
        except ValueError as error:
            raise ValueError(with_location(str(error), equations, [name])) from None
    return dict(expressions)


def build_system(
    name: str,
    equations: Callable[[DeclaredSymbols], Mapping[str, Any]],
    *,
    states: Table,
    parameters: Table = (),
    controls: Table = (),
    data: Table = (),
    outputs: Table = (),
) -> System:
    """A system from one function: ``equations(v)`` returns the rate of every state and the value of every output.

    The tables give variables with their units, ``{"speed": "m/s"}``, or as a list of `Variable`. ``v.speed`` is the
    symbol of one, ``v.time`` is time (s). Raises `ValueError`, in a sentence with the line of the function, for
    equations that fail, do not match the tables, or have inconsistent units (`check_units`).
    """
    owner = f"system '{name}'"
    entries_by_table = {"states": states, "parameters": parameters, "controls": controls, "data": data}
    tables = {
        table: [
            (v, ca.SX.sym(v.name, len(v.parts) if isinstance(v, Vector) else 1)) for v in _variables(owner, entries)
        ]
        for table, entries in entries_by_table.items()
    }
    time, results = ca.SX.sym("time"), _variables(owner, outputs)
    symbols = {v.name: symbol for entries in tables.values() for v, symbol in entries}
    names = ["time", *(v.name for entries in tables.values() for v, _ in entries), *(v.name for v in results)]
    if twice := [n for i, n in enumerate(names) if n in names[:i]]:
        text = "time is always there; do not name it" if twice[0] == "time" else "every variable needs its own name"
        raise ValueError(f"{owner}: '{twice[0]}' is named twice: {text}")
    expressions = call_equations(owner, equations, {**symbols, "time": time})
    moving = tables.pop("states")
    try:
        check_named(owner, [*(v.name for v, _ in moving), *(v.name for v in results)], expressions, symbols)
        system = System.from_expressions(
            name,
            states=[(v, symbol, expressions[v.name]) for v, symbol in moving],
            outputs=[(v, expressions[v.name]) for v in results],
            time=time,
            parameters=tables["parameters"],
            controls=tables["controls"],
            data=tables["data"],
        )
        check_units(system)
    except ValueError as error:
        raise ValueError(with_location(str(error), equations, expressions)) from None
    return system


def with_location(text: str, equations: Callable[..., Any], names: Iterable[str]) -> str:
    """Add to the sentence `text` the line of `equations` that sets the first of `names` in it, unless it has a line."""
    if re.match(r"\S+:\d+: ", text):
        return text
    name = min((n for n in names if f"'{n}'" in text), key=lambda n: text.index(f"'{n}'"), default="")
    location = definition_line(equations, name)
    return f"{location}: {text}" if location else text


def check_named(
    owner: str, names: Sequence[str], expressions: Mapping[str, Any], quantities: Mapping[str, Any]
) -> None:
    """Raise `ValueError` if the equations `expressions` are not those `names`."""
    if missing := [n for n in names if n not in expressions]:
        raise ValueError(f"{owner}: there is no equation for {', '.join(map(repr, missing))}")
    if unknown := [n for n in expressions if n not in names]:
        text = "is given and has no equation" if unknown[0] in quantities else "is not declared"
        raise ValueError(f"{owner}: equations name '{unknown[0]}', which {text}")


def _explanation(owner: str, error: Exception) -> str:
    """An `error` of code that works with CasADi, with a suggested fix if available."""
    text = " ".join(str(error).split())
    if isinstance(error, AttributeError) and text.startswith(owner):
        return text
    of_mx = [n for frame, _ in user_frames(error)[-1:] for n, v in frame.f_locals.items() if isinstance(v, ca.MX)]
    if of_mx or ("'SX'" in text and "'MX'" in text):
        cause = f"'{of_mx[0]}' is made of MX symbols" if of_mx else "they contain an MX symbol"
        text = f"{cause}: make symbols with casadi.SX.sym, or declare what they stand for"
    elif "truth value" in text:
        text = "a symbol is neither true nor false: write casadi.if_else, casadi.fmin or casadi.fmax"
    elif "Wrong number or type of arguments" in text:
        function = text.split("'")[1].removeprefix("_")
        text = f"casadi.{function} does not accept these arguments"
    else:
        text = f"{type(error).__name__}{': ' + text if text else ''}"
    return f"{owner}: its equations fail: {text}"


def _check_numbers(owner: str, name: str, expression: Any) -> None:
    """Raise `ValueError` for NaN: the result of a function of `math` applied to a symbol."""
    if isinstance(expression, float):
        expression = ca.SX(expression)
    if not isinstance(expression, ca.SX):
        return
    function = ca.Function("numbers", ca.symvar(expression), [expression])
    numbers = (function.instruction_constant(k) for k in range(function.n_instructions())
               if function.instruction_id(k) == ca.OP_CONST)  # fmt: skip
    if any(math.isnan(number) for number in numbers):
        text = "a function of math, or float, was called with a symbol: write casadi.sin, casadi.sqrt ..."
        raise ValueError(f"{owner}: the equation of '{name}' evaluates to NaN: {text}")


def _variables(owner: str, table: Table) -> list[Variable | Vector]:
    if isinstance(table, Mapping):
        return [Variable(n, unit) for n, unit in table.items()]
    entries = list(table) if isinstance(table, Iterable) and not isinstance(table, str) else [table]
    if wrong := [entry for entry in entries if not isinstance(entry, Variable | Vector)]:
        raise ValueError(
            f"{owner}: {wrong[0]!r} has no unit: give names with units, as {{'speed': 'm/s'}}, or variables"
        )
    return entries
