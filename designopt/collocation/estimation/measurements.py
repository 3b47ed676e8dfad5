"""Measured trajectories of variables and outputs of a phase, with their standard deviations."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.study.language import units

#: "angle [deg]": a name and its unit.
HEADER = re.compile(r"^\s*(?P<name>.*?)\s*(?:\[(?P<unit>[^\]]*)\])?\s*$")
#: "angle (deg)" too, if the text in parentheses is a unit.
ROUND = re.compile(r"^\s*(?P<name>.*?)\s*\((?P<unit>[^()]*)\)\s*$")


class NoColumn(ValueError):
    """A table without the column `name`."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, eq=False)
class Measurements:
    """Values (n,) at `times` (n,) in s of variables or outputs of a phase, by name; NaN is a missing value.

    `sigma` are standard deviations of the errors, one for each name or one for each value (n,). Values and deviations
    are in `units`, by default in the variable's own. Raises `ValueError` for inconsistent tables.
    """

    times: Any
    values: Mapping[str, Any]
    sigma: Mapping[str, Any]
    units: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for table, field_name in ((self.values, "values"), (self.sigma, "sigma"), (self.units, "units")):
            if not isinstance(table, Mapping):
                raise ValueError(f"{field_name} of measurements must be given by name, not as {type(table).__name__}")
        times = _numbers("times", self.times)
        if times.ndim != 1 or not len(times) or not np.isfinite(times).all():
            raise ValueError("times of measurements must be a column of at least one finite number")
        if not self.values:
            raise ValueError("measurements have no values: give at least one column")
        values, sigma = {}, {}
        for name, column in self.values.items():
            values[name] = _numbers(name, column)
            if values[name].shape != times.shape:
                raise ValueError(f"{name}: {len(times)} values are needed, one for each time")
            if not np.isfinite(values[name]).any():
                raise ValueError(f"{name}: no value is a number: leave the column out")
            if name not in self.sigma:
                raise ValueError(f"{name}: has no standard deviation: give its sigma")
            deviations = _numbers(f"sigma.{name}", self.sigma[name])
            if deviations.shape not in ((), times.shape):
                raise ValueError(f"sigma.{name}: one number or {len(times)} are needed, one for each time")
            sigma[name] = np.broadcast_to(deviations, times.shape)
            finite_sigma = sigma[name][np.isfinite(values[name])]
            if not (np.isfinite(finite_sigma) & (finite_sigma > 0.0)).all():
                raise ValueError(
                    f"{name}: its standard deviation must be positive and finite wherever there is a value"
                )
        for table, field_name in ((self.sigma, "sigma"), (self.units, "units")):
            if unknown := [name for name in table if name not in values]:
                raise ValueError(f"{field_name}.{unknown[0]}: no such column was measured; known: {', '.join(values)}")
        for name, unit in self.units.items():
            _check_unit(name, unit)
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "sigma", sigma)

    @property
    def count(self) -> int:
        """Number of values."""
        return int(sum(np.isfinite(v).sum() for v in self.values.values()))

    def converted(self, name: str, unit: str) -> tuple[Floats, Floats]:
        """Values and standard deviations (n,) of a column in `unit`. Raises `ValueError` for an incompatible unit."""
        stated_unit = self.units.get(name, "") or unit
        values, sigma = self.values[name], self.sigma[name]
        if stated_unit == unit:
            return values, sigma
        try:
            factor, offset = units.factor_offset(stated_unit, unit)
        except units.UnitError as error:
            raise ValueError(f"{name}: {error}") from error
        return factor * values + offset, np.asarray(abs(factor) * sigma)


def read_measurements(
    text: str, sigma: Mapping[str, float] | None = None, *, time: str = "time", columns: Mapping[str, str] | None = None
) -> Measurements:
    """Measurements from the `text` of a CSV table with a header row.

    A name may have its unit in brackets, ``angle [deg]`` or ``angle (deg)``; the column `time` is in s by default. A
    column ``sigma angle [deg]`` contains the standard deviations of ``angle``; `sigma` gives others, by name of
    variable in the unit of its column, and takes precedence. `columns` maps variables to columns, ``{"angle": "encoder
    2"}``; by default all columns are taken by name. Empty cells are missing values; lines that start with # are
    comments. Raises `ValueError`, with the line, for invalid text, `NoColumn` for a missing column.
    """
    if not isinstance(text, str):
        raise ValueError(f"the table is {type(text).__name__}, not text: read a file with Path(name).read_text()")
    lines = [(n, line) for n, line in enumerate(text.lstrip("\ufeff").splitlines(), start=1) if line.strip()]
    lines = [(n, line) for n, line in lines if not line.lstrip().startswith("#")]
    if len(lines) < 2:
        raise ValueError("the table has no rows: it needs a row of names and at least one of numbers")
    heads = [_head(cell) for cell in _cells(*lines[0])]
    names = [name for name, _ in heads]
    if "" in names:
        raise ValueError(f"line {lines[0][0]}: column {names.index('') + 1} has no name")
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise ValueError(f"line {lines[0][0]}: two columns are called '{twice[0]}'")
    table = np.array([_row(n, line, names) for n, line in lines[1:]])
    units_of = dict(heads)
    column = {name: table[:, j] for j, name in enumerate(names)}

    def table_of(name: str, purpose: str) -> Floats:
        if name not in column:
            raise NoColumn(name, f"there is no column '{name}' for {purpose}; known: {', '.join(names)}")
        return np.asarray(column[name])

    if not (columns is None or isinstance(columns, Mapping)):
        raise ValueError(f"columns are {columns!r}: give the column of each variable, as {{'angle': 'encoder'}}")
    column_of = columns or {n: n for n in names if n != time and not n.startswith("sigma ")}
    times = table_of(time, "the time")
    if units_of[time] not in ("", "s"):
        times = np.array([_in_unit(t, units_of[time], "s", time) for t in times])
    deviations: dict[str, Any] = dict(sigma or {})
    for variable, name in column_of.items():
        if variable not in deviations and f"sigma {name}" in column:
            unit = units_of[f"sigma {name}"] or units_of[name]
            deviations[variable] = _size(unit, units_of[name], f"sigma {name}") * column[f"sigma {name}"]
    values = {variable: table_of(name, f"'{variable}'") for variable, name in column_of.items()}
    return Measurements(times, values, deviations, {v: units_of[n] for v, n in column_of.items() if units_of[n]})


def _head(cell: str) -> tuple[str, str]:
    in_round = ROUND.match(cell)
    if in_round is not None and _is_unit(in_round["unit"].strip()):
        return in_round["name"], in_round["unit"].strip()
    match = HEADER.match(cell)
    assert match is not None
    return match["name"], (match["unit"] or "").strip()


def _is_unit(text: str) -> bool:
    """Whether a text is a unit, not a remark or a number."""
    try:
        units.check(text)
    except units.UnitError:
        return False
    return bool(text) and not text[0].isdigit()


def _check_unit(name: str, unit: Any) -> None:
    try:
        if not isinstance(unit, str):
            raise units.UnitError(f"{unit!r} is not a unit: give it as text, as in 'deg'")
        units.check(unit)
    except units.UnitError as error:
        raise ValueError(f"units.{name}: {error}") from None


def _numbers(column: str, entries: Any) -> Floats:
    try:
        return np.asarray(entries, float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{column}: contains a value that is not a number: {error}") from None


def _cells(n: int, line: str) -> list[str]:
    if "," not in line and any(separator in line for separator in ";\t"):
        raise ValueError(f"line {n}: separate the cells by commas, and write numbers with points")
    try:
        return next(csv.reader(io.StringIO(line)))
    except csv.Error as error:
        raise ValueError(f"line {n}: {error}") from None


def _row(n: int, line: str, names: list[str]) -> list[float]:
    cells = _cells(n, line)
    if len(cells) != len(names):
        raise ValueError(f"line {n}: {len(cells)} cells, but {len(names)} columns have names")
    numbers = []
    for name, cell in zip(names, cells, strict=True):
        try:
            numbers.append(float(cell) if cell.strip() else np.nan)
        except ValueError:
            raise ValueError(f"line {n}: '{cell.strip()}' is not a number (column '{name}')") from None
    return numbers


def _in_unit(value: float, unit: str, target_unit: str, name: str) -> float:
    try:
        return units.convert(float(value), unit, target_unit)
    except units.UnitError as error:
        raise ValueError(f"{name}: {error}") from error


def _size(unit: str, target_unit: str, name: str) -> float:
    """The size of a difference of one `unit` in another; an offset, as for degrees Celsius, does not count."""
    try:
        return 1.0 if unit == target_unit else units.factor_offset(unit, target_unit)[0]
    except units.UnitError as error:
        raise ValueError(f"{name}: {error}") from error
