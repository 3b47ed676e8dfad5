"""Symbols and expressions of a system, checked before CasADi builds functions of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from designopt.dynamics.variable import Variable, Vector
from designopt.lazy import casadi as ca


def column(entries: Iterable[Any]) -> Any:
    """Numbers and expressions (SX) below each other; an empty column if there are none."""
    return ca.vertcat(*entries, ca.SX(0, 1))


class Expressions:
    """The declarations of the system `name` so far; the methods raise `ValueError` with a sentence."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._first_uses: dict[int, str] = {}
        self.vectors: dict[str, Vector] = {}

    def components(self, entries: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Entries (variable or vector, columns...) with each vector replaced by its components."""
        scalar_entries: list[tuple[Any, ...]] = []
        for variable, *columns in entries:
            if not isinstance(variable, Vector):
                scalar_entries.append((variable, *columns))
                continue
            if variable.name in self.vectors:
                raise ValueError(f"system '{self._name}': there are two vectors '{variable.name}'")
            self.vectors[variable.name] = variable
            label, k = f"vector '{variable.name}'", len(variable.parts)
            split = [ca.vertsplit(self._column(label, column, k)) for column in columns]
            scalar_entries += list(zip(variable.variables, *split, strict=True))
        return scalar_entries

    def symbol(self, kind: str, variable: Variable, entry: Any) -> Any:
        """Declare `entry` as the scalar SX symbol of a `variable`, and return it."""
        label = f"{kind} '{variable.name}'"
        symbol = self._scalar(label, entry)
        if not symbol.is_symbolic():
            raise ValueError(
                f"system '{self._name}': {label} is given '{symbol}', which is not a symbol (casadi.SX.sym)"
            )
        first_use = self._first_uses.setdefault(symbol.element_hash(), label)
        if first_use != label:
            raise ValueError(
                f"system '{self._name}': {label} has the symbol '{symbol}' of {first_use}: each needs its own symbol"
            )
        return symbol

    def only_known_names(self, label: str, entry: Any) -> Any:
        """`entry` as a scalar expression of declared symbols."""
        expression = self._scalar(label, entry)
        unknown = [str(s) for s in ca.symvar(expression) if s.element_hash() not in self._first_uses]
        if unknown:
            names = ", ".join(f"'{s}'" for s in unknown)
            raise ValueError(
                f"system '{self._name}': {label} contains {names}, not declared as a state, control, parameter or "
                "other variable that it may depend on: add it to a table, or give a number for it"
            )
        return expression

    def _scalar(self, label: str, entry: Any) -> Any:
        return self._column(label, entry, 1)

    def _column(self, label: str, entry: Any, size: int) -> Any:
        if isinstance(entry, ca.MX):
            symbols = ", ".join(f"'{s.name()}'" for s in ca.symvar(entry)) or f"'{entry}'"
            raise ValueError(
                f"system '{self._name}': {label} is made of the MX symbols {symbols}; make them with casadi.SX.sym"
            )
        try:
            expression = ca.SX(entry)
        except (NotImplementedError, TypeError):
            raise ValueError(f"system '{self._name}': {label} is {entry!r}, not an expression") from None
        if expression.shape != (size, 1):
            shape = " x ".join(map(str, expression.shape))
            required_shape = "one scalar" if size == 1 else f"a column of {size}"
            raise ValueError(f"system '{self._name}': {label} is {shape}, not {required_shape}")
        return expression
