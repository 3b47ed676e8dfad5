"""The file of a gait as text: stated period and speed, names of the columns, rows of cells with their lines.

Columns are separated by commas, semicolons or tabs, as in the line of names; with semicolons or tabs a decimal comma is
accepted.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import InvalidSetting

#: Values that a comment may state.
STATED = ("period_s", "belt_speed_m_s")
_STATEMENT = re.compile(r"(\w+)\s*=\s*([^\s;\"]+)")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class GaitRow:
    """Cells of a row and its line in the file, from 1."""

    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class GaitFile:
    """Names of the columns, rows, and the numbers of `STATED` that comments such as ``# period_s=1.2`` state."""

    names: tuple[str, ...]
    rows: tuple[GaitRow, ...]
    header: Mapping[str, float]


def parse(text: str) -> GaitFile:
    """The parts of a gait's `text`. Raises `InvalidSetting` for a file without rows, or a stated value that is no
    number."""
    header: dict[str, float] = {}
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.match(r'[\s"]*#\s*(.*)', line)
        if comment is None:
            if line.strip(" ,;\t"):
                lines.append((number, line))
        else:
            for name, value in _STATEMENT.findall(comment[1]):
                if name in STATED:
                    header[name] = _number(_with_point(value.rstrip(",")), name, f"line {number}")
    if len(lines) < 2:
        raise refused("no samples in the file")
    separator = max(",;\t", key=lines[0][1].count)
    names = _filled(_cells(*lines[0], separator))
    if len(names) == 1:
        raise refused(f"the line '{names[0][:60]}' names one column; separate columns by commas, semicolons or tabs")
    rows = []
    for number, line in lines[1:]:
        cells = _filled(_cells(number, line, separator), len(names))
        rows.append(GaitRow(number, tuple(cells if separator == "," else map(_with_point, cells))))
    return GaitFile(tuple(names), tuple(rows), header)


def numbers(cells: Sequence[str], names: Sequence[str], location: str) -> Floats:
    """Numbers of the `cells` of the columns `names`. Raises `InvalidSetting` that begins with `location` and names the
    column."""
    if len(cells) != len(names):
        hint = (
            "; do numbers have decimal commas? Then separate columns by semicolons" if len(cells) > len(names) else ""
        )
        raise refused(f"{location}: {len(cells)} values, not {len(names)}{hint}")
    return np.array([_number(cell, name, location) for name, cell in zip(names, cells, strict=True)])


def refused(message: str) -> InvalidSetting:
    """The error to raise about the file."""
    return InvalidSetting("gait", message)


def _cells(number: int, line: str, separator: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]
    except csv.Error as error:
        raise refused(f"line {number}: {error}") from None


def _number(cell: str, name: str, location: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        content = f"'{cell}', not a finite number" if cell else "empty"
        gap = "; close gaps of the recording first" if cell.lower() in ("", "nan") else ""
        raise refused(f"{location}: {name} is {content}{gap}")
    return value


def _filled(cells: Sequence[str], least: int = 1) -> list[str]:
    """`cells` without empty ones at the end, as spreadsheets write them; at `least` so many stay."""
    cells_left = list(cells)
    while len(cells_left) > least and not cells_left[-1]:
        cells_left.pop()
    return cells_left


def _with_point(cell: str) -> str:
    return cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell
