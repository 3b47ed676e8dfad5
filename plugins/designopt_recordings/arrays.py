"""Arrays at the joints: shapes checked, read-only; unique names and where they stand."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt_recordings.errors import RecordingError


def checked_array(quantity: str, values: ArrayLike, shape: tuple[int | None, ...]) -> Floats:
    """`values` as a read-only array of doubles; raises `RecordingError` where a size differs from `shape`."""
    array = np.asarray(values, dtype=float).view()
    if array.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, array.shape, strict=True)):
        required_shape = ", ".join("any" if n is None else str(n) for n in shape)
        raise RecordingError(f"{quantity} has the shape {array.shape}, not ({required_shape})")
    array.flags.writeable = False
    return array


def unique_names(kind: str, names: Iterable[str]) -> tuple[str, ...]:
    """`names` as a tuple; raises `RecordingError` where one is empty or stands twice."""
    names = tuple(names)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise RecordingError(f"{kind} '{twice[0]}' appears {names.count(twice[0])} times; rename or remove the others")
    if not all(name.strip() for name in names):
        raise RecordingError(f"{kind} {next(i for i, name in enumerate(names, 1) if not name.strip())} has no name")
    return names


def position(kind: str, name: str, names: Sequence[str]) -> int:
    """Index of `name`; raises `RecordingError` with the nearest names where it is missing."""
    if name in names:
        return names.index(name)
    near = difflib.get_close_matches(name, names, n=3)
    way_out = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names[:12]) or 'none'}"
    raise RecordingError(f"there is no {kind} '{name}'; {way_out}")


def increasing(quantity: str, time: Floats) -> None:
    """Raise `RecordingError` that names the first row whose time is missing or not later than the one before."""
    if not np.isfinite(time).all():
        raise RecordingError(f"{quantity} of row {int(np.argmin(np.isfinite(time))) + 1} is not a number")
    late = np.flatnonzero(np.diff(time) <= 0.0)
    if late.size:
        row = int(late[0]) + 1
        raise RecordingError(
            f"{quantity} of row {row + 1} ({time[row]:g} s) is not later than row {row} ({time[row - 1]:g} s)"
        )
