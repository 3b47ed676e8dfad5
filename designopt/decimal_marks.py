"""Decimal marks of tables whose cells are separated by semicolons or tabs, where numbers may have commas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_WITH_MARK = re.compile(r"\s*[-+]?\d*([.,])\d+(?:[eEdD][-+]?\d+)?\s*")


class DecimalMarks:
    """The marks of the numbers of a table so far: beside 0,25 the point in 1.050 may separate thousands."""

    def __init__(self) -> None:
        self._first_number: dict[str, tuple[int, str]] = {}

    def contradiction(self, line: int, cell: str) -> str:
        """What is wrong with a number in a cell of a line that has another mark than one before; "" for nothing."""
        if (match := _WITH_MARK.fullmatch(cell)) is None:
            return ""
        self._first_number.setdefault(match[1], (line, cell.strip()))
        if len(self._first_number) == 1:
            return ""
        earlier, number = next(iter(self._first_number.values()))
        return f"'{cell.strip()}', and '{number}' in line {earlier}: write all with one decimal mark"


def mixed_marks(rows: Iterable[tuple[int, Sequence[str]]]) -> tuple[int, str] | None:
    """The line of the first number with another decimal mark than one before, and what is wrong with it; None for none.

    `rows` are lines with their cells.
    """
    marks = DecimalMarks()
    texts = ((line, marks.contradiction(line, cell)) for line, cells in rows for cell in cells)
    return next(((line, text) for line, text in texts if text), None)
