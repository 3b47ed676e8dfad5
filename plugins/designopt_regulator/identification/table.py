"""Rows of the CSV files that plants are identified from."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence, Set

import numpy as np

from designopt.decimal_marks import mixed_marks
from designopt.plugin import InputFile
from designopt.study.language.units import UnitError, convert
from designopt_regulator.controllers.pid import UNUSUAL, is_unusual

#: A number with a decimal comma.
_DECIMAL_COMMA = re.compile(r"^(\s*[-+]?\d*),(\d+(?:[eE][-+]?\d+)?\s*)$")
#: A time of day, and a text that may be a unit.
_CLOCK = re.compile(r"\d:\d\d")
_UNIT = re.compile(r"[\[(]?[^\W\d]?[%°a-zA-ZµμΩ/*^ ]{1,12}\d?[\])]?")
#: Rows among which the heads are looked for where the first line has others: instruments write titles above them.
_TITLE_LINES = 10


class BadData(ValueError):
    """A file without a usable step; the message gives the position."""


def read_columns(
    file: InputFile, names: tuple[str, ...], example: str, columns: Mapping[str, str] | None = None
) -> tuple[str, dict[str, str], list[tuple[str, dict[str, float]]]]:
    """Position of the head, units by column ("" without), and position and numbers by column of every row.

    The head contains the `names` in any order, as in the `example`, or the heads that `columns` gives by name, among
    others; empty lines and lines that begin with # are skipped. Columns are separated by commas, or by semicolons or
    tabulators: then numbers may have a decimal comma. Raises `BadData` with the line for a file that is not text or
    CSV, is empty, or has other columns, and for a cell that is no finite number or too large.
    """
    (at, head), *rows = _rows(file, example)
    location = f"{file.name}:{at}"
    place_of: dict[str, int] = {}
    units: dict[str, str] = {}
    for i, text in enumerate(head):
        match = re.fullmatch(r"\s*(.*?)\s*(?:\[([^\]]*)\])?\s*", text)
        title, unit = (match[1], match[2]) if match else (text.strip(), None)
        if columns is None:
            name = title.lower()
            if name not in names:
                heads = ", ".join(text.partition("[")[0].strip() for text in head)
                hint = (
                    f"; state the heads of the columns for {', '.join(names)}, in this order: columns: [{heads}]"
                    if "time" in names
                    else ""
                )
                raise BadData(f"{location}: column {i + 1} '{text.strip()}' is not one of {', '.join(names)}{hint}")
        else:
            name = next((n for n in names if columns[n].strip() in (title, text.strip())), "")
            if not name:
                continue
        if name in units:
            raise BadData(f"{location}: column {i + 1} '{name}' is given twice")
        place_of[name], units[name] = i, (unit or "").strip().replace("°", "deg")
    if missing := [name for name in names if name not in units]:
        has = (
            "" if columns is None else f" ('{columns[missing[0]]}'; the file has {', '.join(t.strip() for t in head)})"
        )
        titles = {name if columns is None else columns[name].strip() for name in missing}
        raise BadData(f"{location}: column '{missing[0]}'{has} is missing{_head_below(rows, titles)}")
    title_of = {name: name if columns is None else columns[name].strip() for name in names}
    samples = []
    for line, row in rows:
        if len(row) != len(head):
            raise BadData(f"{file.name}:{line}: has {len(row)} values, line {at} has {len(head)} columns")
        position = f"{file.name}:{line}"
        numbers = {name: _number(position, title_of[name], row[i].strip()) for name, i in place_of.items()}
        samples.append((position, numbers))
    return location, units, samples


def _head_below(rows: Sequence[tuple[int, Sequence[str]]], titles: Set[str]) -> str:
    """The way out where the heads `titles` stand below a title of the instrument; "" if they do not."""
    for line, row in rows[:_TITLE_LINES]:
        cells = re.split("[;,\t]", ",".join(row))  # the title may have had another separator
        if titles <= {text.strip() for cell in cells for text in (cell, cell.partition("[")[0])}:
            return f"; line {line} has these heads: begin the lines above it with #"
    return ""


def _number(position: str, title: str, text: str) -> float:
    """The number in a cell; raises `BadData` with its position for other text, or a number that is too large."""
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        way = ""
        if _CLOCK.search(text):
            way = "; write the time since the start as a number, with its unit in the head: time [s]"
        elif _UNIT.fullmatch(text):
            head = f"{title.partition('[')[0].strip()} [{text.strip('[]()')}]"
            way = f"; units stand in the heads, as in {head}; other lines begin with #"
        raise BadData(f"{position}: column '{title}': '{text}' is not a finite number{way}")
    if is_unusual(value):
        raise BadData(f"{position}: column '{title}': '{text}' {UNUSUAL}; take another unit")
    return value


def factor(position: str, name: str, unit: str, target: str) -> float:
    """The factor from `unit` to `target`; raises `BadData` with the column for a unit of another kind."""
    try:
        return convert(1.0, unit or target, target)
    except UnitError as error:
        raise BadData(f"{position}: column '{name}': {error}") from None


def _rows(file: InputFile, example: str) -> list[tuple[int, list[str]]]:
    """Line number and cells of each row, the head first."""
    try:
        text = file.text()
        head = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
        separator = next((c for c in ";\t" if c in head), ",")
        reader = csv.reader(io.StringIO(text), strict=True, delimiter=separator)
        rows = [(reader.line_num, row) for row in reader]
    except UnicodeDecodeError:
        raise BadData(f"{file.name}: is not UTF-8 text; save it as UTF-8 (spreadsheets: 'CSV UTF-8')") from None
    except csv.Error as error:
        raise BadData(f"{file.name}: is not CSV: {error}") from None
    rows = [(line, row) for line, row in rows if any(cell.strip() for cell in row) and not row[0].startswith("#")]
    if not rows:
        raise BadData(f"{file.name}: is empty; the first line is: {example}")
    if separator != ",":  # a comma in a number is the decimal one
        first, *samples = rows
        if contradiction := mixed_marks(samples):
            raise BadData(f"{file.name}:{contradiction[0]}: {contradiction[1]}")
        rows = [first, *((line, [_DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in row]) for line, row in samples)]
    return rows
