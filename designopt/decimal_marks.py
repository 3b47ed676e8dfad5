"""Decimal marks of tables whose cells are separated by semicolons or tabs, where numbers may have commas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_WITH_MARK = re.compile(r"\s*[-+]?\d*([.,])\d+(?:[eEdD][-+]?\d+)?\s*")


def mixed_marks(rows: Iterable[tuple[int, Sequence[str]]]) -> tuple[int, str] | None:
    """The line of the first number with another decimal mark than one before, and what is wrong with it; None for none.

    `rows` are lines with their cells. Beside 0,25 the point in 1.050 may separate thousands.
    """
    first_number: dict[str, tuple[int, str]] = {}
    for line, cells in rows:
        for cell in cells:
            if match := _WITH_MARK.fullmatch(cell):
                first_number.setdefault(match[1], (line, cell.strip()))
                if len(first_number) > 1:
                    earlier, number = next(iter(first_number.values()))
                    return line, f"'{cell.strip()}', and '{number}' in line {earlier}: write all with one decimal mark"
    return None
