"""The design space: ordered parameters, search coordinates of solvers, and relations.

Designs are rows of a float matrix ``X`` (n, d): one column per free parameter, in the study's unit (an integer as its
value, a choice as the index of its value). All functions are vectorised over rows.

A conditional parameter has a column in every design. An inactive entry has no meaning: `impute` sets it to one fixed
value, so that designs that differ in nothing else are equal rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Floats, Mask
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import DesignVariable, Shift


@dataclass(frozen=True)
class Space:
    """Ordered parameters and the relations between them, which are checked before any evaluation."""

    parameters: tuple[DesignVariable, ...]
    relations: tuple[Expression, ...] = ()

    @cached_property
    def free(self) -> tuple[DesignVariable, ...]:
        """The parameters that vary: the columns of ``X``."""
        return tuple(p for p in self.parameters if p.kind != "fixed")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of ``X``."""
        return tuple(p.name for p in self.free)

    @cached_property
    def lower(self) -> Floats:
        """Lower bounds (d,) in search coordinates (see `to_search`)."""
        return np.array([_search_bounds(p)[0] for p in self.free])

    @cached_property
    def upper(self) -> Floats:
        """Upper bounds (d,) in search coordinates."""
        return np.array([_search_bounds(p)[1] for p in self.free])

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Lower and upper bounds (d,) of the columns of ``X``."""
        ranges = [_range(p) for p in self.free]
        return np.array([low for low, _ in ranges]), np.array([high for _, high in ranges])

    @cached_property
    def conditional(self) -> tuple[DesignVariable, ...]:
        """The parameters with a condition, each after those in its condition. Raises `ValueError` for circular
        conditions."""
        parameter_of = {p.name: p for p in self.parameters}
        parameters: dict[str, DesignVariable] = {}

        def visit(p: DesignVariable, above: tuple[str, ...]) -> None:
            if p.name in above:
                raise ValueError(f"the condition of '{p.name}' depends on '{p.name}' itself")
            for name in p.when:
                visit(parameter_of[name], (*above, p.name))
            if p.when:
                parameters[p.name] = p

        for p in self.parameters:
            visit(p, ())
        return tuple(parameters.values())

    def active(self, X: Floats) -> Mask:
        """A mask (n, d) of the active entries of `X`: all except parameters whose condition is false."""
        mask = np.ones((len(X), len(self.free)), dtype=bool)
        if self.conditional:
            activity = self.activity(X)
            for j, p in enumerate(self.free):
                if p.name in activity:
                    mask[:, j] = activity[p.name]
        return mask

    def impute(self, X: Floats) -> Floats:
        """`X` with every inactive entry at one value of its column: the middle of the range, the first value of a
        choice."""
        if not self.conditional:
            return X
        return np.where(self.active(X), X, self._resting)

    @cached_property
    def _resting(self) -> Floats:
        return np.array([_middle(p) for p in self.free])

    def activity(self, X: Floats) -> dict[str, Mask]:
        """A mask (n,) for each conditional parameter: where it is active."""
        if not self.conditional:
            return {}
        column = {p.name: j for j, p in enumerate(self.free)}
        parameter_of = {p.name: p for p in self.parameters}
        masks: dict[str, Mask] = {}
        for p in self.conditional:
            mask = np.ones(len(X), dtype=bool)
            for name, choices in p.when.items():
                controller = parameter_of[name]
                if name in masks:
                    mask &= masks[name]
                if controller.kind == "fixed":
                    mask &= _is_one_of(controller.values[0], choices)
                else:
                    mask &= np.isin(X[:, column[name]], _entries(controller, choices))
            masks[p.name] = mask
        return masks

    def from_search(self, S: Floats) -> Floats:
        """The designs ``X`` of search coordinates `S` (n, d).

        A real parameter on a linear scale is its own coordinate, on a log scale its natural logarithm. Integers and
        choices are real numbers in a range that is half a step wider at both ends, rounded. Values are clipped to the
        bounds and inactive entries imputed.
        """
        X: Floats = np.clip(np.asarray(S, dtype=float), self.lower, self.upper)
        for j, p in enumerate(self.free):
            if p.kind in ("int", "choice"):
                X[:, j] = np.clip(np.rint(X[:, j]), *_range(p)) + 0.0  # no -0.0
            elif p.scale == "log":
                inside = np.clip(np.exp(X[:, j]), p.low, p.high)  # exp(log(bound)) rarely equals the bound
                X[:, j] = np.select([X[:, j] == self.lower[j], X[:, j] == self.upper[j]], [p.low, p.high], inside)
        return self.impute(X)

    def in_box(self, U: Floats) -> Floats:
        """The designs ``X`` at shares `U` (n, d) of the ranges of the search coordinates, from 0 to 1."""
        return self.from_search(self.lower + (self.upper - self.lower) * U)

    @property
    def centre(self) -> Floats:
        """The design (d,) at the centre of the box of search coordinates."""
        centre: Floats = self.from_search((self.lower + self.upper)[None] / 2.0)[0]
        return centre

    def to_search(self, X: Floats) -> Floats:
        """The search coordinates (n, d) of designs `X` (n, d): the inverse of `from_search` up to rounding."""
        S = np.array(X, dtype=float)
        for j, p in enumerate(self.free):
            if p.kind == "real" and p.scale == "log":
                S[:, j] = np.log(S[:, j])
        return S

    def values(self, x: Sequence[float]) -> dict[str, Any]:
        """One design `x` (d,) by name in the study's units: with fixed parameters, without inactive ones, choices by
        their value."""
        row = iter(x)
        values = {
            p.name: p.values[0] if p.kind == "fixed" else display_value(p, float(next(row))) for p in self.parameters
        }
        for p in self.conditional:
            if not all(name in values and _is_one_of(values[name], choices) for name, choices in p.when.items()):
                del values[p.name]
        return values

    def design(self, x: Sequence[float]) -> dict[str, Any]:
        """One design `x` (d,) as the model's input: in the model's units, without inactive parameters."""
        values = self.values(x)
        return {p.name: in_model_unit(p, values[p.name]) for p in self.parameters if p.name in values}

    def shifted(self, X: Floats, shift: Sequence[Shift]) -> Floats:
        """The neighbours (n, d) of designs `X` (n, d), offset by `shift`."""
        X = np.array(X, dtype=float)
        for s in shift:
            j = self.names.index(s.parameter)
            low, high = -np.inf if s.low is None else s.low, np.inf if s.high is None else s.high
            X[:, j] = np.clip(s.factor * X[:, j] + s.offset, low, high)
        return self.impute(X)

    def stretch(self, shift: Sequence[Shift]) -> Floats:
        """The derivatives (d,) of a neighbour's parameters with respect to those of its design."""
        factors = {s.parameter: s.factor for s in shift}
        return np.array([factors.get(name, 1.0) for name in self.names])

    def relation_violation(self, X: Floats) -> Floats:
        """The violation (n,) of the relations by each design; 0 if all hold, infinite if undefined.

        A relation that names an inactive parameter holds.
        """
        total = np.zeros(len(X))
        if not self.relations:
            return total
        activity = self.activity(X) if self.conditional else {}
        columns: dict[str, Any] = {p.name: p.values[0] for p in self.parameters if p.kind == "fixed"}
        for j, p in enumerate(self.free):
            columns[p.name] = np.array(p.values)[X[:, j].astype(int)] if p.kind == "choice" else X[:, j]
        for relation in self.relations:
            with np.errstate(all="ignore"):
                violation = np.broadcast_to(relation.relation_violation(columns), total.shape)
            violation = np.where(np.isfinite(violation), np.maximum(violation, 0.0), np.inf)
            for name in relation.names & activity.keys():
                violation = np.where(activity[name], violation, 0.0)
            total = total + violation
        return total


def _range(p: DesignVariable) -> tuple[float, float]:
    return (0.0, len(p.values) - 1.0) if p.kind == "choice" else (p.low, p.high)


def _search_bounds(p: DesignVariable) -> tuple[float, float]:
    low, high = _range(p)
    if p.kind in ("int", "choice"):
        return low - 0.5, high + 0.5
    return (float(np.log(low)), float(np.log(high))) if p.scale == "log" else (low, high)


def _middle(p: DesignVariable) -> float:
    """Column value of `p` where it is inactive."""
    if p.kind == "choice":
        return 0.0
    if p.kind == "int":
        return float((int(p.low) + int(p.high)) // 2)
    if p.scale == "log":
        return float(np.clip(np.exp(0.5 * np.log(p.low) + 0.5 * np.log(p.high)), p.low, p.high))
    return 0.5 * p.low + 0.5 * p.high


def _is_one_of(value: Any, choices: Sequence[Any]) -> bool:
    """Whether `value` is one of `choices`; true is not 1."""
    return any(value == choice and isinstance(value, bool) == isinstance(choice, bool) for choice in choices)


def _entries(p: DesignVariable, choices: Sequence[Any]) -> list[float]:
    """Column entries of `p` for the values in `choices`."""
    if p.kind == "choice":
        return [float(i) for i, value in enumerate(p.values) if _is_one_of(value, choices)]
    return [float(value) for value in choices]


def display_value(p: DesignVariable, x: float) -> Any:
    """The value that the column entry `x` represents."""
    if p.kind == "choice":
        return p.values[int(x)]
    return int(x) if p.kind == "int" else x


def in_model_unit(p: DesignVariable, value: Any) -> Any:
    """Convert a value of the study to the model's unit."""
    return value if (p.factor, p.offset) == (1.0, 0.0) else p.factor * value + p.offset
