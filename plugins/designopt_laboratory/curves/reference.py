"""Curves to compare with: a file of the user's, as mean and standard deviation over the percent of the cycle."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import InputFile
from designopt.plugin import Quantity as Q
from designopt.study.language.findings import nearest, nearest_or_all
from designopt_laboratory.curves.curves import SAMPLES, side_of

#: Quantities of curves and their units.
UNITS = {
    "angle": ("deg", "m"),
    "moment": ("N m/kg", "N/kg"),
    "power": ("W/kg",),
    "activation": ("",),
    "EMG": ("",),
    "muscle force": ("N",),
    "fibre length": ("optimal lengths",),
    "metabolic rate": ("W", "W/kg"),
    "ground force": ("BW",),
    "joint force": ("BW",),
    "joint reaction moment": ("N m/kg",),
}
_COLUMNS = ("quantity", "variable", "unit", "percent", "mean", "sd")


@dataclass(frozen=True, eq=False)
class ReferenceCurve:
    """`mean` and `deviation` (101,), NaN where there is no deviation, of a `group` and one `side` (right, left; empty:
    both), in `unit`."""

    group: str
    side: str
    unit: str
    mean: Floats
    deviation: Floats


@dataclass(frozen=True)
class ReferenceFile:
    """Curves of a file, shown as a band beside those of a study.

    The file is a CSV table with the columns quantity, variable and unit (as in the export ``cycles``; a variable
    without a side holds for both), percent, mean and sd (standard deviation; empty: none).
    """

    file: Annotated[InputFile, Q("", "CSV: quantity, variable, unit, percent, mean, sd")]
    name: Annotated[str, Q("", "in the legend")] = "reference"

    def __post_init__(self) -> None:
        """Read the file, unless it is not there. Raises `ValueError` with its name and line."""
        if isinstance(self.file, InputFile):
            _ = self.curves

    @cached_property
    def curves(self) -> dict[tuple[str, str], list[ReferenceCurve]]:
        """The curves by quantity and by variable without its side."""
        return _read(self.file, self.name)

    def curve(self, quantity: str, variable: str, unit: str) -> list[ReferenceCurve]:
        """Those of one variable without its side, of both sides or of each, if their unit is `unit`."""
        return [curve for curve in self.curves.get((quantity, variable), ()) if curve.unit == unit]


@dataclass
class _Rows:
    """Rows of one variable: its unit and first line, percents, means and deviations."""

    unit: str
    line: int
    values: list[tuple[float, float, float]] = field(default_factory=list)


def _read(file: InputFile, group: str) -> dict[tuple[str, str], list[ReferenceCurve]]:
    by_variable: dict[tuple[str, str], _Rows] = {}
    for line, cells in _lines(file):
        position = f"{file.name}, line {line}"
        quantity, variable, unit, *numbers = cells
        if quantity not in UNITS:
            raise ValueError(f"{position}: '{quantity}' is not a quantity{nearest_or_all(quantity, UNITS)}")
        if unit not in UNITS[quantity]:
            units = " or ".join(f"'{u}'" for u in UNITS[quantity])
            raise ValueError(f"{position}: the curves of the quantity '{quantity}' are in {units}, not in '{unit}'")
        if not variable:
            raise ValueError(f"{position}: names no variable")
        rows = by_variable.setdefault((quantity, variable), _Rows(unit, line))
        percent, mean, deviation = (_number(position, c, text) for c, text in zip(_COLUMNS[3:], numbers, strict=True))
        if unit != rows.unit:
            raise ValueError(f"{position}: '{variable}' is in '{unit}', but in '{rows.unit}' in line {rows.line}")
        if not 0.0 <= percent <= 100.0:
            raise ValueError(f"{position}: {percent:g} percent lies outside of the cycle, 0 to 100")
        if rows.values and percent <= rows.values[-1][0]:
            raise ValueError(
                f"{position}: the percents of '{variable}' must increase; {percent:g} comes after"
                f" {rows.values[-1][0]:g}"
            )
        if not np.isfinite(mean) or deviation < 0.0:
            raise ValueError(f"{position}: a mean is a finite number, and a standard deviation is not negative")
        rows.values.append((percent, mean, deviation))
    if not by_variable:
        raise ValueError(f"{file.name} has no row below its header")
    curves: dict[tuple[str, str], list[ReferenceCurve]] = {}
    for (quantity, variable), rows in by_variable.items():
        table = np.array(rows.values)
        if table[0, 0] != 0.0 or table[-1, 0] != 100.0:
            raise ValueError(
                f"{file.name}, line {rows.line}: '{variable}' runs from {table[0, 0]:g} to {table[-1, 0]:g} percent;"
                " a cycle is 0 to 100"
            )
        base, side = side_of(variable)
        at = np.linspace(0.0, 100.0, SAMPLES)
        mean, deviation = (np.interp(at, table[:, 0], table[:, column]) for column in (1, 2))
        curves.setdefault((quantity, base), []).append(ReferenceCurve(group, side, rows.unit, mean, deviation))
    return curves


def _lines(file: InputFile) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and the six cells of the rows; comments (#) and empty lines are left out."""
    try:
        text = file.content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file.name} is not a text file in UTF-8: byte {error.start} cannot be read") from None
    order: list[int] = []
    width = 0
    for line, row in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in next(csv.reader(io.StringIO(row)), [])]
        if not any(cells) or cells[0].startswith("#"):
            continue
        if not order:
            for name in _COLUMNS:
                if name not in cells:
                    raise ValueError(
                        f"{file.name}, line {line}: there is no column '{name}'{nearest(name, cells)}; the columns are"
                        f" {', '.join(_COLUMNS)}, separated by commas"
                    )
            order, width = [cells.index(name) for name in _COLUMNS], len(cells)
        elif len(cells) != width:
            raise ValueError(f"{file.name}, line {line}: {len(cells)} cells below a header of {width}")
        else:
            yield line, [cells[column] for column in order]
    if not order:
        raise ValueError(f"{file.name} is empty; its first line names the columns {', '.join(_COLUMNS)}")


def _number(position: str, column: str, text: str) -> float:
    if column == "sd" and not text:
        return float("nan")
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{position}: {column} is '{text}', not a number") from None
