"""Conversion of the values given to a statement, and the error for invalid ones."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from numbers import Integral as Whole
from numbers import Real
from reprlib import repr as short
from typing import Any

#: A fixed value, or the range of a free one.
Box = float | tuple[float, float]

#: Maximum intervals of the mesh of a phase, also pieces of a control: larger meshes take hours and gigabytes.
MOST_INTERVALS = 100_000
#: Maximum absolute value of a time (s): with larger ones products of variables overflow, and no search ends.
LATEST = 1e15


class ProblemError(ValueError):
    """A statement that cannot be solved: `status` as in `Status`, `where` is the field concerned."""

    def __init__(self, status: str, where: str, message: str) -> None:
        super().__init__(f"{where}: {message}")
        self.status = status
        self.where = where


def check_names(
    position: str, entries: Iterable[str], names: Collection[str], kind: str, status: str = "bad_bounds"
) -> None:
    """Raises `ProblemError` (with the `status`) if `entries` contains a name that is not among `names`."""
    for name in entries:
        if name not in names:
            text = f"there is no such {kind}; known: {', '.join(names) or 'none'}"
            raise ProblemError(status, f"{position}.{name}", text)


def stated_table(position: str, entry: Any) -> Any:
    """The `entry` mapping, an empty one for None. Raises `ProblemError` (bad_statement) for anything else."""
    if entry is None:
        return {}
    if not isinstance(entry, Mapping):
        text = f"is {short(entry)}: give a mapping by names, as {{name: ...}}, or leave it out"
        raise ProblemError("bad_statement", position, text)
    return entry


def ends(box: Box) -> tuple[float, float]:
    """Lower and upper end of a box."""
    low, high = box if isinstance(box, tuple) else (box, box)
    return float(low), float(high)


def held_values(entry: Any) -> Any:
    """A number of pieces, or their values as a tuple; the check of the statement rejects anything else."""
    if isinstance(entry, Whole) and not isinstance(entry, bool):
        return int(entry)
    is_row = isinstance(entry, tuple | list) or getattr(entry, "ndim", 0) == 1
    return tuple(float(v) if isinstance(v, Real) else v for v in entry) if is_row else entry


def stated_box(position: str, entry: Any) -> Box:
    """A box as given, with a pair of numbers as a tuple. Raises `ProblemError` (bad_bounds)."""
    if isinstance(entry, Real):
        return entry if isinstance(entry, float) else float(entry)
    pair = list(entry) if isinstance(entry, tuple | list) or getattr(entry, "ndim", 0) == 1 else []
    if len(pair) != 2 or not all(isinstance(end, Real) for end in pair):
        raise ProblemError("bad_bounds", position, f"is {entry!r}: give a number or a range, (low, high)")
    return float(pair[0]), float(pair[1])


def stated_time(position: str, entry: Any) -> Box:
    """A `stated_box` of times (s). Raises `ProblemError` (bad_bounds), also for finite ones beyond `LATEST`."""
    box = stated_box(position, entry)
    if far := [end for end in ends(box) if LATEST < abs(end) < math.inf]:
        text = f"{far[0]:g} s is too far away: times of a phase are at most {LATEST:g} s"
        raise ProblemError("bad_bounds", position, f"{text}; give a smaller one, or scale the time of the system")
    return box
