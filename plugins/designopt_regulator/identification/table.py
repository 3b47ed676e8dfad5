"""Rows of the CSV files that plants are identified from."""

from __future__ import annotations

import csv
import io
import re

import numpy as np

from designopt.plugin import InputFile
from designopt.study.language.units import UnitError, convert
from designopt_regulator.controllers.pid import UNUSUAL, unusual


class BadData(ValueError):
    """A file without a usable step; the message gives the position."""


def read_columns(
    file: InputFile, names: tuple[str, ...], example: str
) -> tuple[str, dict[str, str], list[tuple[str, dict[str, str]]]]:
    """Position of the head, units by column ("" without), and position and cells by column of every row.

    The head contains the `names` in any order, as in the `example`; empty lines and lines that begin with # are
    skipped. Raises `BadData` with the line for a file that is not text or CSV, is empty, or has other columns.
    """
    (at, head), *rows = _rows(file, example)
    where = f"{file.name}:{at}"
    if len(head) == 1 and ";" in head[0]:
        raise BadData(f"{where}: columns must be separated by commas, not by ';', and numbers written with a point")
    units: dict[str, str] = {}
    for i, text in enumerate(head, start=1):
        match = re.fullmatch(r"\s*(\w+)\s*(?:\[([^\]]*)\])?\s*", text)
        name = match[1].lower() if match else ""
        if match is None or name not in names:
            raise BadData(f"{where}: column {i} '{text.strip()}' is not one of {', '.join(names)}")
        if name in units:
            raise BadData(f"{where}: column {i} '{name}' is given twice")
        units[name] = (match[2] or "").strip()
    if missing := [name for name in names if name not in units]:
        raise BadData(f"{where}: column '{missing[0]}' is missing")
    samples = []
    for line, row in rows:
        if len(row) != len(head):
            raise BadData(f"{file.name}:{line}: has {len(row)} values, line {at} has {len(head)} columns")
        samples.append((f"{file.name}:{line}", dict(zip(units, (cell.strip() for cell in row), strict=True))))
    return where, units, samples


def number(where: str, name: str, text: str) -> float:
    """The number in a cell; raises `BadData` with its position for other text, or a number that is too large."""
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise BadData(f"{where}: column '{name}': '{text}' is not a finite number")
    if unusual(value):
        raise BadData(f"{where}: column '{name}': '{text}' {UNUSUAL}; take another unit")
    return value


def factor(where: str, name: str, unit: str, target: str) -> float:
    """The factor from `unit` to `target`; raises `BadData` with the column for a unit of another kind."""
    try:
        return convert(1.0, unit or target, target)
    except UnitError as error:
        raise BadData(f"{where}: column '{name}': {error}") from None


def _rows(file: InputFile, example: str) -> list[tuple[int, list[str]]]:
    """Line number and cells of each row, the head first."""
    try:
        reader = csv.reader(io.StringIO(file.text()), strict=True)
        rows = [(reader.line_num, row) for row in reader]
    except UnicodeDecodeError:
        raise BadData(f"{file.name}: is not UTF-8 text") from None
    except csv.Error as error:
        raise BadData(f"{file.name}: is not CSV: {error}") from None
    rows = [(line, row) for line, row in rows if any(cell.strip() for cell in row) and not row[0].startswith("#")]
    if not rows:
        raise BadData(f"{file.name}: is empty; the first line is: {example}")
    return rows
