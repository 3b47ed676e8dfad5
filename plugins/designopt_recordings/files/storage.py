"""STO and MOT files, the tables of OpenSim (and of SIMM before it)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from designopt.plugin import InputFile
from designopt_recordings.errors import RecordingError, errors_about
from designopt_recordings.files.rows import incomplete, read_rows
from designopt_recordings.files.text import Lines, cells, shortened
from designopt_recordings.table import TimeTable

_HEADER_LINES = 500  # a header that is longer is none
_KEYS = {"version", "nrows", "ncolumns", "indegrees", "datatype", "opensimversion"}
_OLD_KEYS = {"datacolumns": "ncolumns", "datarows": "nrows"}
_ANSWERS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def read_storage(file: InputFile) -> TimeTable:
    """The table of an STO or MOT file.

    If the header's counts differ from the data, the data count, with a note. If the header has no `inDegrees`,
    rotations are in degrees with the old header without `version` (as OpenSim reads it), in radians otherwise
    (`Table.assumption`). Raises `RecordingError` with the line.
    """
    lines = Lines.from_file(file)
    header, end = _header(lines)
    title = lines[1].strip() if end > 1 and not _pair(lines[1]) else ""
    at = next((n for n in range(end + 1, len(lines) + 1) if lines[n].strip()), None)
    if at is None:
        raise lines.error(len(lines), "there are no column labels below 'endheader'")
    names = labels(lines, at, cells(lines[at]))
    if names[0].lower() != "time":
        raise lines.error(at, f"the first column is '{shortened(names[0])}'; it must be 'time'")
    values, _ = read_rows(lines, at + 1, names, 0)
    notes = [*_counts(header, len(values), len(names)), *incomplete(names[1:], values[:, 1:])]
    in_degrees, assumption = _in_degrees(lines, header)
    with errors_about(file.name):
        return TimeTable(values[:, 0], names[1:], values[:, 1:], in_degrees, title, tuple(notes), assumption)


def labels(lines: Lines, at: int, names: Sequence[str], *, number_like: bool = False) -> tuple[str, ...]:
    """Labels of line `at`; raises `RecordingError` where one is empty, a number (but for `number_like`) or repeated."""
    if not names:
        raise lines.error(at, "there are no column labels in this line")
    first: dict[str, int] = {}
    for column, name in enumerate(names, 1):
        if not name:
            raise lines.error(at, f"column {column} has no label")
        if first.setdefault(name, column) != column:
            raise lines.error(at, f"columns {first[name]} and {column} are both '{shortened(name)}'; rename one")
        if not number_like and re.fullmatch(r"[+-]?\d*\.?\d+([eE][+-]?\d+)?", name):
            raise lines.error(
                at, f"the label of column {column} is the number {shortened(name)}; is the label row missing?"
            )
    return tuple(names)


def _header(lines: Lines) -> tuple[dict[str, tuple[int, str]], int]:
    """Known keys, each with its line and value, and the line of 'endheader'."""
    header: dict[str, tuple[int, str]] = {}
    for at in range(1, min(len(lines), _HEADER_LINES) + 1):
        line = lines[at].strip()
        if line.lower() == "endheader":
            return header, at
        if pair := _pair(line):
            key, value = pair
            if key in header and header[key][1].lower() != value.lower():
                before, first_value = header[key]
                raise lines.error(
                    at, f"{key} is '{shortened(value)}' here and '{shortened(first_value)}' in line {before}"
                )
            header[key] = (at, value)
    raise RecordingError("there is no line 'endheader'; is this an STO or MOT file?", file=lines.file)


def _pair(line: str) -> tuple[str, str] | None:
    """A known key and its value: ``key=value``, or ``key value`` for those of the old header."""
    if (pair := re.match(r"\s*(\w+)\s*=\s*(.*?)\s*$", line)) and pair[1].lower() in _KEYS:
        return pair[1].lower(), pair[2]
    if (pair := re.match(r"\s*(datacolumns|datarows)\s+(\S+)\s*$", line, re.IGNORECASE)) is not None:
        return _OLD_KEYS[pair[1].lower()], pair[2]
    return None


def _counts(header: dict[str, tuple[int, str]], rows: int, columns: int) -> list[str]:
    notes = []
    for key, kind, count in (("nrows", "rows", rows), ("ncolumns", "columns", columns)):
        if key in header and header[key][1] != str(count):
            stated_count = shortened(header[key][1])
            fewer = key == "nrows" and stated_count.isdecimal() and int(stated_count[:18]) > count
            hint = "; the file may be truncated" if fewer else ""
            notes.append(f"the header says {stated_count} {kind}, the file has {count}{hint}")
    return notes


def _in_degrees(lines: Lines, header: dict[str, tuple[int, str]]) -> tuple[bool, str]:
    if "datatype" in header and header["datatype"][1].lower() != "double":
        at, kind = header["datatype"]
        raise lines.error(at, f"DataType is '{shortened(kind)}'; only tables of numbers (double) are read")
    if "indegrees" in header:
        at, answer = header["indegrees"]
        if answer.lower() not in _ANSWERS:
            raise lines.error(at, f"inDegrees is '{shortened(answer)}'; it must be yes or no")
        return _ANSWERS[answer.lower()], ""
    if "version" in header:
        return False, "the header does not say inDegrees: rotations are assumed to be in radians (it has a version)"
    return (
        True,
        "the header does not say inDegrees: rotations are assumed to be in degrees (old header without a version)",
    )
