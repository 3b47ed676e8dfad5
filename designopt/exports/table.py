"""The table of all designs, column by column."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from designopt.report.labels import figure_meaning, figure_unit

if TYPE_CHECKING:
    from designopt.store.result import Result
    from designopt.study.study import Parameter

Kind = Literal["number", "integer", "boolean", "string"]
Values = Callable[[slice], list[Any]]


@dataclass(frozen=True)
class Column:
    """One column of the table. `of` is the parameter, objective or figure that it holds; `values` gives some rows."""

    name: str
    role: str
    kind: Kind
    values: Values = field(repr=False)
    of: str = ""
    unit: str = ""
    scenario: str = ""
    meaning: str = ""

    @property
    def facts(self) -> dict[str, str]:
        """What there is to say besides name, kind and values."""
        return {k: v for k in ("role", "of", "unit", "scenario", "meaning") if (v := getattr(self, k))}


def columns(result: Result) -> list[Column]:
    """The columns of the table of all designs."""
    problem, outcomes = result.problem, result.outcomes
    found = [Column("design", "design", "integer", lambda rows: list(range(*rows.indices(len(outcomes)))))]
    found += _parameters(result)
    found += [
        Column(
            o.name,
            "objective",
            "number",
            _numbers(np.where(outcomes.failed, np.nan, o.sign * outcomes.objectives[:, j])),
            o.name,
            o.unit,
            meaning=f"{o.direction} {o.expression.text}",
        )
        for j, o in enumerate(problem.objectives)
    ]
    found += [
        Column("violation", "violation", "number", _numbers(outcomes.violation), meaning="0 for a feasible design"),
        Column("feasible", "feasible", "boolean", _plain(outcomes.feasible)),
        Column("stage", "stage", "string", _plain(result.stage), meaning="that asked for the design first"),
        Column(
            "ask", "ask", "integer", _plain(_asks(result)), meaning="position among what the stage asked for, from 0"
        ),
    ]
    for k, scenario in enumerate(problem.scenarios):
        found += _figures(result, k, scenario.name)
    names: set[str] = set()
    unique = []
    for column in found:
        name = column.name
        while name in names:
            name += "_"
        names.add(name)
        unique.append(replace(column, name=name))
    return unique


def _parameters(result: Result) -> list[Column]:
    space, X = result.problem.space, result.outcomes.X
    active = space.active(X)
    place = {p.name: j for j, p in enumerate(space.free)}
    found = []
    for p in space.parameters:
        values = p.values if p.kind in ("choice", "fixed") else ()
        kind = {"real": "number", "int": "integer"}.get(p.kind) or _kind_of(values)
        j = place.get(p.name)
        if j is None:
            given: Values = _fixed(result, p)
        elif p.kind == "real":
            given = _numbers(np.where(active[:, j], X[:, j], np.nan))
        else:
            given = _coded(X[:, j], active[:, j], values)
        as_text = kind == "string" and not all(isinstance(v, str) for v in values)
        found.append(
            Column(p.name, "parameter", kind, _as_text(given) if as_text else given, p.name, p.unit)  # type: ignore[arg-type]
        )
    return found


def _figures(result: Result, k: int, scenario: str) -> list[Column]:
    found = []
    for name, values in result.outcomes.figures.items():
        unit, meaning = figure_unit(result.problem, name), figure_meaning(result.problem, name)
        found.append(
            Column(f"{name}@{scenario}", "figure", "number", _numbers(values[:, k]), name, unit, scenario, meaning)
        )
    status, reason, wall = result.status[:, k], result.reason[:, k], result.wall[:, k]
    return [
        *found,
        Column(f"status@{scenario}", "status", "string", _plain(status), scenario=scenario),
        Column(f"reason@{scenario}", "reason", "string", _plain(reason), scenario=scenario),
        Column(f"wall@{scenario}", "wall", "number", _numbers(wall), unit="s", scenario=scenario),
    ]


def _asks(result: Result) -> NDArray[np.int64]:
    """Position of each design among what its first stage asked for."""
    asks = np.full(len(result.outcomes), -1, np.int64)
    for stage in np.unique(result.stage).tolist():
        rows, first = np.unique(result.asked(stage), return_index=True)
        first, rows = first[rows >= 0], rows[rows >= 0]
        here = result.stage[rows] == stage
        asks[rows[here]] = first[here]
    return asks


def _numbers(values: NDArray[Any]) -> Values:
    return lambda rows: [None if v != v else v for v in values[rows].tolist()]


def _plain(values: NDArray[Any]) -> Values:
    return lambda rows: values[rows].tolist()


def _fixed(result: Result, p: Parameter) -> Values:
    """The value of a fixed parameter; None in designs in which it is not active."""
    space, X = result.problem.space, result.outcomes.X
    if p.when:
        return lambda rows: [space.values(x).get(p.name) for x in X[rows].tolist()]
    return lambda rows: [p.values[0]] * len(X[rows])


def _coded(x: NDArray[Any], active: NDArray[Any], values: Sequence[Any]) -> Values:
    """Whole numbers, or the values of a choice; None where the parameter is not active."""

    def some(rows: slice) -> list[Any]:
        pairs = zip(x[rows].tolist(), active[rows].tolist(), strict=True)
        return [(values[int(v)] if values else int(v)) if on else None for v, on in pairs]

    return some


def _as_text(given: Values) -> Values:
    return lambda rows: [v if v is None else json.dumps(v) for v in given(rows)]


def _kind_of(values: Sequence[Any]) -> str:
    """The kind of column that holds all `values`; text, as JSON, when they are of several kinds."""
    kinds = {type(v) for v in values}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return "integer"
    return "number" if kinds <= {int, float} else "string"
