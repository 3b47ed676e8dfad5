"""Tables of a study: CSV files with a header of names and units, each cell with its position in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from designopt.plugin import InputFile
from designopt.study.language import units
from designopt.study.language.yaml import plain_scalar

#: Maximum number of rows: every row is a design or a scenario.
MOST_ROWS, MOST_COLUMNS, MOST_CELLS = 10_000, 1_000, 200_000
#: Maximum size of a table (bytes).
LARGEST = 4 * 2**20

_HEAD = re.compile(r"\s*([^\[\]]*?)\s*(?:\[([^\[\]]*)\])?\s*")


class TableError(ValueError):
    """A table that cannot be read; the message contains the position."""


@dataclass(frozen=True)
class Cell:
    """The text of one cell and its position in the file, from 1."""

    text: str
    line: int
    column: int


@dataclass(frozen=True)
class Heading:
    """The header of a column: its name and, in brackets, the default unit of its numbers."""

    name: str
    unit: str | None
    cell: Cell


@dataclass(frozen=True)
class DataTable:
    """A table: `columns`, and `rows` with a cell for each of them."""

    name: str
    columns: tuple[Heading, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def position(self, cell: Cell) -> str:
        """``subjects.csv:3:12``."""
        return f"{self.name}:{cell.line}:{cell.column}"

    def values(self, row: tuple[Cell, ...]) -> dict[str, tuple[Any, Cell]]:
        """The values of a row by column, in study-file form, with their cells; empty cells are omitted."""
        return {c.name: (_value(cell, c.unit), cell) for c, cell in zip(self.columns, row, strict=True) if cell.text}


def read_table(file: InputFile) -> DataTable:
    """Read the table in `file`: RFC 4180 with commas, semicolons or tabs, UTF-8, names of columns in the first line.

    Raises `TableError`.
    """
    if file.size > LARGEST:
        raise TableError(f"{file.name} has {file.size} bytes; a table has at most {LARGEST}")
    try:
        lines = file.text().splitlines()
    except UnicodeDecodeError as error:
        raise TableError(
            f"{file.name} is not UTF-8 text (byte {error.start}); save it as UTF-8 (spreadsheets: 'CSV UTF-8')"
        ) from None
    numbered_lines = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    number, first = next(numbered_lines, (0, ""))
    if not number:
        raise TableError(f"{file.name} is empty; its first line names the columns")
    separator = max(",;\t", key=first.count)
    if first.count(separator) >= MOST_COLUMNS:
        raise TableError(f"{file.name} has more than {MOST_COLUMNS} columns")
    columns = tuple(_column(file.name, cell) for cell in _cells(file.name, first, number, separator))
    for position, column in enumerate(columns):
        if column.name in (earlier.name for earlier in columns[:position]):
            raise TableError(f"{_position(file.name, column.cell)}: there is another column '{column.name}'")
    rows = []
    for number, line in numbered_lines:
        row = tuple(_cells(file.name, line, number, separator))
        if len(row) != len(columns):
            raise TableError(f"{file.name}:{number}: has {len(row)} cells, the header has {len(columns)}")
        rows.append(row)
        if len(rows) > min(MOST_ROWS, MOST_CELLS // len(columns)):
            raise TableError(f"{file.name} has too many rows: at most {MOST_ROWS}, and {MOST_CELLS} cells")
    return DataTable(file.name, columns, tuple(rows))


def _position(name: str, cell: Cell) -> str:
    return f"{name}:{cell.line}:{cell.column}"


def _column(name: str, cell: Cell) -> Heading:
    match = _HEAD.fullmatch(cell.text)
    if match is None or not match[1]:
        raise TableError(f"{_position(name, cell)}: the header of a column is its name, as in 'mass' or 'mass [kg]'")
    if match[2] is not None:
        try:
            units.check(match[2].strip())
        except units.UnitError as error:
            raise TableError(f"{_position(name, cell)}: {error}") from None
    return Heading(match[1], None if match[2] is None else match[2].strip(), cell)


def _cells(name: str, line: str, number: int, separator: str) -> Iterator[Cell]:
    """The cells of a line; a quoted one may contain the separator, and a doubled quote is one quote."""
    at, length = 0, len(line)
    while True:
        if line[at : at + 1] == '"':
            parts, end = [], at + 1
            while True:
                close = line.find('"', end)
                if close < 0:
                    raise TableError(f"{name}:{number}:{at + 1}: the quote is never closed")
                parts.append(line[end:close])
                end = close + 1
                if line[end : end + 1] != '"':
                    break
                end += 1
            text = '"'.join(parts)
            if end < length and line[end] != separator:
                raise TableError(f"{name}:{number}:{end + 1}: after a quoted cell '{separator}' is needed")
            yield Cell(text.strip(), number, at + 1)
        else:
            end = line.find(separator, at)
            end = length if end < 0 else end
            yield Cell(line[at:end].strip(), number, at + 1)
        if end >= length:
            return
        at = end + 1


def _value(cell: Cell, unit: str | None) -> Any:
    """The cell in study-file form: a number, a truth value, a word; a number without a unit gets the column's."""
    try:
        value = plain_scalar(cell.text)
    except ValueError:
        return cell.text
    if unit and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{cell.text} {unit}"
    return value
