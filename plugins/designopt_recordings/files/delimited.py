"""CSV files: a time column and columns of numbers, below one line of labels."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable

import numpy as np

from designopt.decimal_marks import mixed_marks
from designopt.plugin import InputFile
from designopt.study.language import units
from designopt_recordings.errors import RecordingError, errors_about
from designopt_recordings.files.names import name_and_unit
from designopt_recordings.files.rows import incomplete, read_rows
from designopt_recordings.files.storage import labels
from designopt_recordings.files.text import Lines, shortened
from designopt_recordings.table import TimeTable

_TIME = re.compile(r"(time|t)(?:\s*[\[(]\s*(s|ms)\s*[\])]|_(s|ms))?", re.IGNORECASE)
_ANSWERS = {"yes": True, "true": True, "no": False, "false": False}


def read_csv(file: InputFile) -> TimeTable:
    """The table of a CSV file with the columns of its first line; lines that begin with '#' are comments.

    Cells are separated by commas, semicolons or tabs, as in the line of labels; with semicolons or tabs a decimal comma
    is accepted. The time is in the first column, 'time' or 't', in s or with its unit: 'time_ms', 'time [ms]'. A
    comment '# inDegrees=yes' marks rotations in degrees. Other columns may also have their unit in brackets,
    'hip_flexion [deg]': their values are converted to SI units, angles to rad. Raises `RecordingError` with the line.
    """
    lines = Lines.from_file(file)
    at = next((n for n in range(1, len(lines) + 1) if lines[n].strip() and not lines[n].startswith("#")), None)
    if at is None:
        raise RecordingError("there are only comments", file=lines.file)
    separator = max(",;\t", key=lines[at].count)
    split = _splitter(separator)
    head = split(lines[at], 0)
    while head and not head[-1]:
        head.pop()
    factors = [1.0, *(_unit(cell)[1] for cell in head[1:])]
    names = labels(lines, at, [*head[:1], *(_unit(cell)[0] for cell in head[1:])])
    kind = _TIME.fullmatch(names[0])
    if kind is None:
        raise lines.error(at, f"the first column is '{shortened(names[0])}'; it must be 'time' (s) or 'time_ms'")
    rows = _without_comments(lines)
    if separator != ",":
        contradiction = mixed_marks((n, rows[n].split(separator)) for n in range(at + 1, len(rows) + 1))
        if contradiction is not None:
            raise lines.error(*contradiction)
    values, _ = read_rows(rows, at + 1, names, 0, split)
    milliseconds = "ms" in (part.lower() for part in kind.groups()[1:] if part)
    in_degrees, assumption = _in_degrees(lines, at)
    if list(names[1:]) != head[1:]:
        if in_degrees:
            raise lines.error(at, "a comment says inDegrees=yes, but columns have their own units; remove one of them")
        values, assumption = values * np.array(factors), ""
    notes = incomplete(names[1:], values[:, 1:])
    time = values[:, 0] / 1000.0 if milliseconds else values[:, 0]
    with errors_about(file.name):
        return TimeTable(time, names[1:], values[:, 1:], in_degrees, "", tuple(notes), assumption)


def _unit(cell: str) -> tuple[str, float]:
    """A label without its unit, and the conversion to SI units."""
    name, unit = name_and_unit(cell)
    size = units.measure(unit) if unit else None
    return name, 1.0 if size is None else size[0]


def _splitter(separator: str) -> Callable[[str, int], list[str]]:
    decimal_comma = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")

    def split(line: str, count: int) -> list[str]:
        try:
            row = [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]
        except csv.Error:  # a cell beyond the limit of the csv module
            row = [line]
        while count and len(row) > count and not row[-1]:
            row.pop()
        if separator != "," and count:
            row = [cell.replace(",", ".") if decimal_comma.fullmatch(cell) else cell for cell in row]
        return row

    return split


def _without_comments(lines: Lines) -> Lines:
    return Lines(lines.file, tuple("" if line.startswith("#") else line for line in lines.lines))


def _in_degrees(lines: Lines, end: int) -> tuple[bool, str]:
    for at in range(1, end):
        match = re.match(r"#\s*inDegrees\s*=\s*(\S*)\s*$", lines[at], re.IGNORECASE)
        if match:
            if match[1].lower() not in _ANSWERS:
                raise lines.error(at, f"inDegrees is '{shortened(match[1])}'; it must be yes or no")
            return _ANSWERS[match[1].lower()], ""
    return False, "no comment says inDegrees: rotations are assumed to be in radians"
