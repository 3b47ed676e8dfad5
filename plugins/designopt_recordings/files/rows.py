"""Rows of numbers below a line of labels: counted, read, and their time checked, with line numbers in errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from designopt.arrays import Floats
from designopt_recordings.files.text import Lines, numbers, row_of, shortened


def read_rows(
    lines: Lines,
    first: int,
    names: Sequence[str],
    time: int,
    split: Callable[[str, int], list[str]] = row_of,
) -> tuple[Floats, list[int]]:
    """Rows (n, c) from line `first` on, and the line of each; empty lines are skipped.

    `names` are the columns, `time` is the index of the one that must increase. Raises `RecordingError` with the line
    for a row that is too short or long, a cell that is no number, a time that is missing or does not increase.
    """
    rows: list[list[float]] = []
    at: list[int] = []
    before = -math.inf
    for line in range(first, len(lines) + 1):
        text = lines[line]
        if not text.strip():
            continue
        row = split(text, len(names))
        if len(row) != len(names):
            end = "; the file ends in the middle of this row" if line == len(lines) and len(row) < len(names) else ""
            raise lines.error(line, f"{len(row)} values, but {len(names)} columns have a label{end}")
        values = numbers(lines, line, row, names)
        row_time = values[time]
        if math.isnan(row_time):
            raise lines.error(line, f"the time '{shortened(row[time])}' is not a number")
        if row_time <= before:
            raise lines.error(
                line,
                f"the time {row_time:g} s is not later than {before:g} s in line {at[-1]}; remove the repeated rows",
            )
        before = row_time
        rows.append(values)
        at.append(line)
    if not rows:
        raise lines.error(len(lines), "there are no rows of numbers below the labels")
    return np.array(rows).reshape(len(rows), len(names)), at


def incomplete(names: Sequence[str], values: Floats) -> list[str]:
    """One note for columns with cells that hold no number."""
    missing = np.isnan(values).sum(axis=0)
    incomplete_columns = [f"'{name}' ({count})" for name, count in zip(names, missing, strict=True) if count]
    if not incomplete_columns:
        return []
    remainder = f" and {len(incomplete_columns) - 6} more" if len(incomplete_columns) > 6 else ""
    return [f"cells without a number in {', '.join(incomplete_columns[:6])}{remainder} of {len(values)} rows"]
