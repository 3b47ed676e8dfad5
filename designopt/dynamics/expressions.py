"""Symbols and expressions of a system, checked before CasADi builds functions of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designopt.dynamics.variable import Variable, Vector
from designopt.lazy import casadi as ca


class Expressions:
    """The declarations of the system `name` so far; the methods raise `ValueError` with a sentence."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._declared: dict[int, str] = {}
        self.vectors: dict[str, Vector] = {}

    def components(self, entries: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Entries (variable or vector, columns...) with each vector replaced by its components."""
        found: list[tuple[Any, ...]] = []
        for variable, *columns in entries:
            if not isinstance(variable, Vector):
                found.append((variable, *columns))
                continue
            if variable.name in self.vectors:
                raise ValueError(f"system '{self._name}': there are two vectors '{variable.name}'")
            self.vectors[variable.name] = variable
            what, k = f"vector '{variable.name}'", len(variable.parts)
            split = [ca.vertsplit(self._column(what, column, k)) for column in columns]
            found += list(zip(variable.variables, *split, strict=True))
        return found

    def symbol(self, kind: str, variable: Variable, given: Any) -> Any:
        """Declare `given` as the scalar SX symbol of a `variable`, and return it."""
        what = f"{kind} '{variable.name}'"
        symbol = self._scalar(what, given)
        if not symbol.is_symbolic():
            raise ValueError(
                f"system '{self._name}': {what} is given '{symbol}', which is not a symbol (casadi.SX.sym)"
            )
        other = self._declared.setdefault(symbol.element_hash(), what)
        if other != what:
            raise ValueError(
                f"system '{self._name}': {what} has the symbol '{symbol}' of {other}: each needs its own symbol"
            )
        return symbol

    def only_known(self, what: str, given: Any) -> Any:
        """`given` as a scalar expression of declared symbols."""
        expression = self._scalar(what, given)
        unknown = [str(s) for s in ca.symvar(expression) if s.element_hash() not in self._declared]
        if unknown:
            named = ", ".join(f"'{s}'" for s in unknown)
            raise ValueError(
                f"system '{self._name}': {what} contains {named}, not declared as a state, control, parameter or other "
                "variable that it may depend on: add it to a table, or give a number for it"
            )
        return expression

    def _scalar(self, what: str, given: Any) -> Any:
        return self._column(what, given, 1)

    def _column(self, what: str, given: Any, size: int) -> Any:
        if isinstance(given, ca.MX):
            symbols = ", ".join(f"'{s.name()}'" for s in ca.symvar(given)) or f"'{given}'"
            raise ValueError(
                f"system '{self._name}': {what} is made of the MX symbols {symbols}; make them with casadi.SX.sym"
            )
        try:
            expression = ca.SX(given)
        except (NotImplementedError, TypeError):
            raise ValueError(f"system '{self._name}': {what} is {given!r}, not an expression") from None
        if expression.shape != (size, 1):
            shape = " x ".join(map(str, expression.shape))
            wanted = "one scalar" if size == 1 else f"a column of {size}"
            raise ValueError(f"system '{self._name}': {what} is {shape}, not {wanted}")
        return expression
