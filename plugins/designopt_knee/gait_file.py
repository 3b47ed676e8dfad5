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
from designopt.decimal_marks import mixed_marks
from designopt.plugin import InvalidSetting

#: Values that a comment may state, and how comments write them otherwise.
STATED = {"period_s": r"((?-i:\bT)|period)\w*\W*\d", "belt_speed_m_s": r"speed\w*\W*\d"}
_STATEMENT = re.compile(r"(\w+)\s*=\s*([^\s;\"]+)")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class GaitRow:
    """Cells of a row and its line in the file, from 1."""

    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class GaitFile:
    """Names of the columns, rows, and the numbers of `STATED` that comments such as ``# period_s=1.2`` state.

    `near_misses` has for names of `STATED` a clause on a comment that may mean it in another form.
    """

    names: tuple[str, ...]
    rows: tuple[GaitRow, ...]
    header: Mapping[str, float]
    near_misses: Mapping[str, str]

    def locations(self) -> list[str]:
        """Sample and line of each row, for errors."""
        return [f"sample {sample} (line {row.line})" for sample, row in enumerate(self.rows, 1)]


def parse(text: str) -> GaitFile:
    """The parts of a gait's `text`. Raises `InvalidSetting` for a file without rows, or a stated value that is no
    number."""
    header: dict[str, float] = {}
    near_misses: dict[str, str] = {}
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
            for name, pattern in STATED.items():
                if match := re.search(pattern, comment[1], re.IGNORECASE):
                    excerpt = comment[1][match.start() :].strip()[:40]
                    near_misses[name] = f" (line {number}, '{excerpt}', does not state it in that form)"
    if len(lines) < 2:
        raise refused("no samples in the file")
    separator = max(",;\t", key=lines[0][1].count)
    names = _filled(_cells(*lines[0], separator))
    if len(names) == 1:
        raise refused(f"the line '{names[0][:60]}' names one column; separate columns by commas, semicolons or tabs")
    if separator != "," and (
        contradiction := mixed_marks((number, line.split(separator)) for number, line in lines[1:])
    ):
        raise refused(f"line {contradiction[0]}: {contradiction[1]}")
    rows: list[GaitRow] = []
    for number, line in lines[1:]:
        cells = _filled(_cells(number, line, separator), len(names))
        if not rows and not any(map(_is_number, map(_with_point, cells))):
            raise refused(
                f"line {number}: '{line.strip()[:60]}' has no number; if these are units, remove the line, and write"
                " them into the heads, as 'knee [deg]'"
            )
        rows.append(GaitRow(number, tuple(cells if separator == "," else map(_with_point, cells))))
    return GaitFile(tuple(names), tuple(rows), header, near_misses)


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
    if not _is_number(cell) or not np.isfinite(float(cell)):
        content = f"'{cell}', not a finite number" if cell else "empty"
        gap = "; close gaps of the recording first" if cell.lower() in ("", "-", "nan") else ""
        raise refused(f"{location}: {name} is {content}{gap}")
    return float(cell)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _filled(cells: Sequence[str], least: int = 1) -> list[str]:
    """`cells` without empty ones at the end, as spreadsheets write them; at `least` so many stay."""
    cells_left = list(cells)
    while len(cells_left) > least and not cells_left[-1]:
        cells_left.pop()
    return cells_left


def _with_point(cell: str) -> str:
    return cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell
