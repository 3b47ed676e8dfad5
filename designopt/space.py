"""The design space: ordered parameters, the coordinates in which solvers search, and relations.

Designs travel as rows of a float matrix ``X`` (one column per free parameter, in the study's unit; an integer as its
value, a choice as the index of its value). Everything here is vectorised over rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.study.expression import Expression
from designopt.study.study import Parameter

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Space:
    """Ordered parameters and the relations between them that are decided before any evaluation."""

    parameters: tuple[Parameter, ...]
    relations: tuple[Expression, ...] = ()

    @cached_property
    def free(self) -> tuple[Parameter, ...]:
        """The parameters that vary: the columns of ``X``."""
        return tuple(p for p in self.parameters if p.kind != "fixed")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of ``X``."""
        return tuple(p.name for p in self.free)

    @cached_property
    def lower(self) -> Matrix:
        """Lower bounds in search coordinates (see `to_search`)."""
        return np.array([_search_bounds(p)[0] for p in self.free])

    @cached_property
    def upper(self) -> Matrix:
        """Upper bounds in search coordinates."""
        return np.array([_search_bounds(p)[1] for p in self.free])

    def from_search(self, S: Matrix) -> Matrix:
        """Designs ``X`` for search coordinates `S` (n, d).

        A real parameter on a linear scale is searched as itself, on a log scale as its natural logarithm; integers and
        choices as a real number half a step wider than their range, rounded. Values are clipped to the bounds.
        """
        X: Matrix = np.clip(np.asarray(S, dtype=float), self.lower, self.upper)
        for j, p in enumerate(self.free):
            if p.kind in ("int", "choice"):
                X[:, j] = np.clip(np.rint(X[:, j]), *_range(p)) + 0.0  # no -0.0
            elif p.scale == "log":
                inside = np.clip(np.exp(X[:, j]), p.low, p.high)  # exp(log(bound)) is seldom exactly the bound
                X[:, j] = np.select([X[:, j] == self.lower[j], X[:, j] == self.upper[j]], [p.low, p.high], inside)
        return X

    def to_search(self, X: Matrix) -> Matrix:
        """Search coordinates of designs `X` (n, d); the inverse of `from_search` up to rounding."""
        S = np.array(X, dtype=float)
        for j, p in enumerate(self.free):
            if p.kind == "real" and p.scale == "log":
                S[:, j] = np.log(S[:, j])
        return S

    def values(self, x: Sequence[float]) -> dict[str, Any]:
        """One design in the study's units, fixed parameters included, choices by their value."""
        row = iter(x)
        return {p.name: p.values[0] if p.kind == "fixed" else shown_value(p, float(next(row))) for p in self.parameters}

    def design(self, x: Sequence[float]) -> dict[str, Any]:
        """One design as the model receives it: in the model's units."""
        values = self.values(x)
        return {p.name: in_model_unit(p, values[p.name]) for p in self.parameters}

    def excess(self, X: Matrix) -> Matrix:
        """By how much each design breaks the relations (n,); 0 where all hold, infinite where not known."""
        total = np.zeros(len(X))
        columns: dict[str, Any] = {p.name: p.values[0] for p in self.parameters if p.kind == "fixed"}
        for j, p in enumerate(self.free):
            columns[p.name] = np.array(p.values)[X[:, j].astype(int)] if p.kind == "choice" else X[:, j]
        for relation in self.relations:
            with np.errstate(all="ignore"):
                broken = np.broadcast_to(relation.excess(columns), total.shape)
            total = total + np.where(np.isfinite(broken), np.maximum(broken, 0.0), np.inf)
        return total


def _range(p: Parameter) -> tuple[float, float]:
    return (0.0, len(p.values) - 1.0) if p.kind == "choice" else (p.low, p.high)


def _search_bounds(p: Parameter) -> tuple[float, float]:
    low, high = _range(p)
    if p.kind in ("int", "choice"):
        return low - 0.5, high + 0.5
    return (float(np.log(low)), float(np.log(high))) if p.scale == "log" else (low, high)


def shown_value(p: Parameter, x: float) -> Any:
    """The value that the column entry `x` stands for."""
    if p.kind == "choice":
        return p.values[int(x)]
    return int(x) if p.kind == "int" else x


def in_model_unit(p: Parameter, value: Any) -> Any:
    """A value of the study as the model receives it."""
    return value if (p.factor, p.offset) == (1.0, 0.0) else p.factor * value + p.offset
