"""A study in the units in which its file writes the ranges of parameters, for presentation.

A range ``[2 kN/m, 200 kN/m]`` without a key ``unit`` is searched, evaluated and stored in the unit of the model (N/m).
Whoever reads results has written kN/m.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.study.language import units
from designopt.study.study import DesignVariable, StudyDefinition, Tolerance


def in_stated_units(study: StudyDefinition) -> StudyDefinition:
    """`study` with each parameter in its `stated` unit; `study` itself if none has one."""
    parameters = {p.name: p for p in study.space if p.stated}
    if not parameters:
        return study
    space = tuple(_parameter(p, parameters) for p in study.space)
    conversion_of = {name: units.factor_offset(p.stated, p.unit) for name, p in parameters.items()}
    tolerances = study.tolerances
    if tolerances is not None:
        tolerances = replace(tolerances, of=tuple(_tolerance(t, parameters.get(t.parameter)) for t in tolerances.of))
    relations = tuple(relation.rescaled(conversion_of) for relation in study.relations)
    return replace(study, space=space, relations=relations, tolerances=tolerances)


def stated_value(p: DesignVariable, value: Any) -> Any:
    """A `value` of `p` in its stated unit, without the digits that a conversion rounds; words stay."""
    if not p.stated or isinstance(value, (str, bool)):
        return value
    return float(f"{units.convert(float(value), p.unit, p.stated):.15g}")


def in_words(space: Sequence[DesignVariable], values: Mapping[str, Any]) -> str:
    """The `values` of a design with their stated units: ``stiffness = 12.5 kN/m, legs = 4``."""
    parameter_of = {p.name: p for p in space}
    return ", ".join(f"{name} = {amount(parameter_of[name], value)}" for name, value in values.items())


def amount(p: DesignVariable, value: Any) -> str:
    """A `value` of `p` with its stated unit."""
    return f"{stated_value(p, value)} {p.stated or p.unit}".rstrip()


def stated_designs(study: StudyDefinition, X: Floats) -> Floats:
    """Designs `X` (n, d) of `study` in its stated units."""
    X = np.array(X, dtype=float)
    for j, p in enumerate(p for p in study.space if p.kind != "fixed"):
        if p.stated and p.kind == "real":
            X[:, j] = [stated_value(p, x) for x in X[:, j].tolist()]
    return X


def _parameter(p: DesignVariable, parameters: Mapping[str, DesignVariable]) -> DesignVariable:
    when = {
        name: tuple(stated_value(parameters[name], value) for value in entries) if name in parameters else entries
        for name, entries in p.when.items()
    }
    if not p.stated:
        return replace(p, when=when)
    factor, offset = units.factor_offset(p.stated, p.unit)
    low, high = (stated_value(p, end) if p.kind == "real" else end for end in (p.low, p.high))
    values = tuple(stated_value(p, value) for value in p.values)
    return replace(
        p, low=low, high=high, values=values, unit=p.stated, factor=factor, offset=offset, when=when, stated=""
    )


def _tolerance(tolerance: Tolerance, p: DesignVariable | None) -> Tolerance:
    if p is None:
        return tolerance
    low, high = (None if end is None else stated_value(p, end) for end in (tolerance.low, tolerance.high))
    factor, _ = units.factor_offset(p.unit, p.stated)
    size = tolerance.size if tolerance.relative else float(f"{factor * tolerance.size:.15g}")
    return replace(tolerance, size=size, low=low, high=high)
