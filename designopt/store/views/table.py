"""The table of all designs, by columns, for exports, data frames and notebooks."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from designopt.problem import Problem, figure_meaning, figure_unit
from designopt.store.journal.recorded_designs import RecordedDesigns
from designopt.study.language import units
from designopt.study.study import DesignVariable, Objective, StudyConstraint, StudyDefinition

if TYPE_CHECKING:
    import pandas

Kind = Literal["number", "integer", "boolean", "string"]
Rows = slice | Sequence[int] | NDArray[Any]
Values = Callable[[Rows], list[Any]]


@dataclass(frozen=True)
class Column:
    """One column of the table. `of` is its parameter, objective or figure; `values` returns some rows."""

    name: str
    role: str
    kind: Kind
    values: Values = field(repr=False)
    of: str = ""
    unit: str = ""
    scenario: str = ""
    meaning: str = ""

    @property
    def heading(self) -> str:
        """The name with its unit: ``stiffness [kN/m]``."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def facts(self) -> dict[str, str]:
        """Properties besides name, kind and values."""
        return {k: v for k in ("role", "of", "unit", "scenario", "meaning") if (v := getattr(self, k))}


def columns(problem: Problem, designs: RecordedDesigns) -> list[Column]:
    """The columns of the table of all designs of `problem`. A name already in use gets an underscore."""
    outcomes = designs.outcomes
    table_columns = [Column("design", "design", "integer", _plain_values(np.arange(len(outcomes))))]
    table_columns += _parameters(problem, outcomes.X)
    table_columns += [
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
    table_columns += [
        Column("violation", "violation", "number", _numbers(outcomes.violation), meaning="0 for a feasible design"),
        Column("feasible", "feasible", "boolean", _plain_values(outcomes.feasible)),
        Column("stage", "stage", "string", _plain_values(designs.stage), meaning="that proposed the design first"),
        Column(
            "ask",
            "ask",
            "integer",
            _plain_values(_asks(designs)),
            meaning="position in the sequence of the stage, from 0",
        ),
    ]
    for k, scenario in enumerate(problem.scenarios):
        table_columns += _figures(problem, designs, k, scenario.name)
    names: set[str] = set()
    unique = []
    for column in table_columns:
        name = column.name
        while name in names:
            name += "_"
        names.add(name)
        unique.append(replace(column, name=name))
    return unique


def in_study_units(table: Sequence[Column], problem: Problem) -> list[Column]:
    """`table` with each figure in the unit of the study's objective or limit: each quantity in a row has one unit."""
    study_units = stated_units(problem)
    return [
        replace(c, values=_scaled(c.values, study_units[c.of][0]), unit=study_units[c.of][1])
        if c.role == "figure" and c.of in study_units and c.unit != study_units[c.of][1]
        else c
        for c in table
    ]


def stated_units(problem: Problem | StudyDefinition) -> dict[str, tuple[float, str]]:
    """Units of figures that are themselves objectives or limits: the factor from the model's unit to that of the study,
    and the latter. A unit given in the study takes precedence over the model's default."""
    items: list[tuple[Objective | StudyConstraint, str]] = [(o, o.unit) for o in problem.objectives]
    items += [(c, c.stated or c.unit) for c in problem.constraints]
    figure_units = []
    for item, unit in items:
        figure = _figure_of(item)
        factor = _factor(item.unit, unit) if figure is not None else None
        if figure is not None and factor is not None:
            figure_units.append((figure[1], (figure[0] * factor, unit)))
    units: dict[str, tuple[float, str]] = {}
    for name, factor_unit in sorted(figure_units, key=lambda item: item[1][0] == 1.0):
        units.setdefault(name, factor_unit)
    return units


def stated_constraints(problem: Problem | StudyDefinition) -> list[StudyConstraint]:
    """The limits of `problem` in the units of the study: a limit of a figure in that of `stated_units`."""
    figure_units, constraints = stated_units(problem), []
    for c in problem.constraints:
        figure = _figure_of(c)
        unit = figure_units[figure[1]][1] if figure is not None and figure[1] in figure_units else c.stated or c.unit
        if unit != c.unit and _factor(c.unit, unit) is not None:
            ends = (c.minimum, c.maximum, c.equals)
            low, high, equals = (None if end is None else units.convert(end, c.unit, unit) for end in ends)
            expression = c.expression.in_unit(c.unit, unit)
            c = replace(c, expression=expression, unit=unit, minimum=low, maximum=high, equals=equals)
        constraints.append(c)
    return constraints


def _factor(unit: str, study_unit: str) -> float | None:
    """The factor from `unit` to `study_unit`; None for different zeros or dimensions."""
    if unit == study_unit:
        return 1.0
    try:
        factor, offset = units.factor_offset(unit, study_unit)
    except units.UnitError:
        return None
    return None if offset else factor


def _figure_of(item: Objective | StudyConstraint) -> tuple[float, str] | None:
    """The figure of an item, and the factor from the model's unit to its unit; None for a computed expression."""
    root, factor = item.expression.root, 1.0
    if root.kind == "*" and root.parts[0].kind == "number":
        factor, root = root.parts[0].value, root.parts[1]
    return (factor, root.text) if root.kind == "name" and item.expression.text == root.text else None


def _scaled(values: Values, factor: float) -> Values:
    return lambda rows: [None if v is None else factor * v for v in values(rows)]


def as_text(table: Sequence[Column], rows_by_label: Mapping[str, int]) -> str:
    """The designs in the rows `rows_by_label` as aligned text."""
    cells = [["design", *(column.heading for column in table)]]
    for label, row in rows_by_label.items():
        values = [column.values([row])[0] for column in table]
        cells.append([label, *(f"{v:.6g}" if isinstance(v, float) else "-" if v is None else str(v) for v in values)])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(c.rjust(w) if k else c.ljust(w) for k, (c, w) in enumerate(zip(line, widths, strict=True)))
        for line in cells
    )


def to_pandas(table: Sequence[Column], rows: Rows, *, scenarios: int) -> pandas.DataFrame:
    """Some rows of `table` as a data frame, by design; with one scenario figures have plain names. Its ``attrs`` have
    the ``units`` of columns. Raises `ImportError` without pandas."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_pandas needs pandas; install it with: pip install 'designopt[export]'") from error
    design, *other_columns = table
    data: dict[str, Any] = {}
    units_of: dict[str, str] = {}
    for column in other_columns:
        name = column.name.removesuffix(f"@{column.scenario}") if scenarios == 1 else column.name
        values = column.values(rows)
        data.setdefault(name, np.array(values, float) if column.kind == "number" else values)
        if column.unit:
            units_of.setdefault(name, column.unit)
    frame = pandas.DataFrame(data, index=pandas.Index(design.values(rows), name="design"))
    frame.attrs["units"] = units_of
    return frame


def as_html(table: Sequence[Column], rows: Mapping[str, int]) -> str:
    """The free parameters and objectives of designs with labels, for notebooks."""
    values_of = {c.heading: c.values(list(rows.values())) for c in table}
    header = "".join(f"<th>{html.escape(name)}</th>" for name in ("", *values_of))
    body = "".join(
        f"<tr><td>{html.escape(label)}</td>"
        + "".join(f"<td>{_cell_text(v[i])}</td>" for v in values_of.values())
        + "</tr>"
        for i, label in enumerate(rows)
    )
    return f"<table><tr>{header}</tr>{body}</table>"


def _cell_text(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else html.escape("–" if value is None else str(value))


def _parameters(problem: Problem, X: NDArray[np.float64]) -> list[Column]:
    space = problem.space
    active = space.active(X)
    column_of = {p.name: j for j, p in enumerate(space.free)}
    parameter_columns = []
    for p in space.parameters:
        values = p.values if p.kind in ("choice", "fixed") else ()
        kind = {"real": "number", "int": "integer"}.get(p.kind) or _kind_of(values)
        j = column_of.get(p.name)
        if j is None:
            entries: Values = _fixed_values(problem, X, p)
        elif p.kind == "real":
            entries = _numbers(np.where(active[:, j], X[:, j], np.nan))
        else:
            entries = _coded_values(X[:, j], active[:, j], values)
        as_text = kind == "string" and not all(isinstance(v, str) for v in values)
        parameter_columns.append(
            Column(p.name, "parameter", kind, _as_text(entries) if as_text else entries, p.name, p.unit)  # type: ignore[arg-type]
        )
    return parameter_columns


def _figures(problem: Problem, designs: RecordedDesigns, k: int, scenario: str) -> list[Column]:
    figure_columns = []
    for name, values in designs.outcomes.figures.items():
        unit, meaning = figure_unit(problem, name), figure_meaning(problem, name)
        figure_columns.append(
            Column(f"{name}@{scenario}", "figure", "number", _numbers(values[:, k]), name, unit, scenario, meaning)
        )
    status, reason, wall = designs.status[:, k], designs.reason[:, k], designs.wall[:, k]
    return [
        *figure_columns,
        Column(f"status@{scenario}", "status", "string", _plain_values(status), scenario=scenario),
        Column(f"reason@{scenario}", "reason", "string", _plain_values(reason), scenario=scenario),
        Column(f"wall@{scenario}", "wall", "number", _numbers(wall), unit="s", scenario=scenario),
    ]


def _asks(designs: RecordedDesigns) -> NDArray[np.int64]:
    """Position of each design among the requests of its first stage."""
    asks = np.full(len(designs.outcomes), -1, np.int64)
    for stage in designs.points:
        rows, first = np.unique(designs.designs_of(stage), return_index=True)
        first, rows = first[rows >= 0], rows[rows >= 0]
        in_stage = designs.stage[rows] == stage
        asks[rows[in_stage]] = first[in_stage]
    return asks


def _numbers(values: NDArray[Any]) -> Values:
    return lambda rows: [None if v != v else v for v in values[rows].tolist()]


def _plain_values(values: NDArray[Any]) -> Values:
    return lambda rows: values[rows].tolist()


def _fixed_values(problem: Problem, X: NDArray[Any], p: DesignVariable) -> Values:
    """The value of a fixed parameter; None in designs in which it is inactive."""
    if p.when:
        return lambda rows: [problem.space.values(x).get(p.name) for x in X[rows].tolist()]
    return lambda rows: [p.values[0]] * len(X[rows])


def _coded_values(x: NDArray[Any], active: NDArray[Any], values: Sequence[Any]) -> Values:
    """Integers, or the values of a choice; None where the parameter is inactive."""

    def values_of(rows: Rows) -> list[Any]:
        pairs = zip(x[rows].tolist(), active[rows].tolist(), strict=True)
        return [(values[int(v)] if values else int(v)) if on else None for v, on in pairs]

    return values_of


def _as_text(values: Values) -> Values:
    return lambda rows: [v if v is None else json.dumps(v) for v in values(rows)]


def _kind_of(values: Sequence[Any]) -> str:
    """The kind of column for all `values`; text, as JSON, for mixed kinds."""
    kinds = {type(v) for v in values}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return "integer"
    return "number" if kinds <= {int, float} else "string"
