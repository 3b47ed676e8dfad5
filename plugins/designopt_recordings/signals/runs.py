"""Runs of finite samples between gaps, so that a gap never spreads to neighbouring samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats, Integers, Mask
from designopt_recordings.frames import FrameStatus

#: Samples this near to an end of a recording or of a run are less accurate (muscle_force_sharing, section 1.1).
EDGE = 5


def runs(mask: ArrayLike) -> list[tuple[int, int]]:
    """Where `mask` (n,) is true: (first, end) of every run, `end` not included."""
    edges = np.concatenate([[False], np.asarray(mask, dtype=bool), [False]]).astype(np.int8)
    steps = np.diff(edges)
    return list(zip(np.flatnonzero(steps == 1).tolist(), np.flatnonzero(steps == -1).tolist(), strict=True))


def finite_runs(columns: Floats) -> Iterator[tuple[slice, Integers]]:
    """Runs of `columns` (n, c) where all of some columns are finite: their rows and these columns.

    Columns with the same gaps come together, so that a function is called once for all of them.
    """
    finite = np.isfinite(columns)
    patterns: dict[bytes, list[int]] = {}
    for column, bits in enumerate(np.packbits(finite, axis=0).T):
        patterns.setdefault(bits.tobytes(), []).append(column)
    for of_pattern in patterns.values():
        for first, end in runs(finite[:, of_pattern[0]]):
            yield slice(first, end), np.array(of_pattern)


def run_by_run(values: ArrayLike, function: Callable[[Floats], Floats]) -> Floats:
    """`function` (r, c) -> (r, c) applied to each run of each column of `values` (n, ...); NaN elsewhere."""
    array = np.asarray(values, dtype=float)
    columns = array.reshape(len(array), -1)
    result = np.full(columns.shape, np.nan)
    for rows, run_columns in finite_runs(columns):
        result[rows, run_columns] = function(columns[rows][:, run_columns])
    return result.reshape(array.shape)


def near_ends(finite: ArrayLike, width: int = EDGE) -> Mask:
    """Samples (n,) within `width` of an end of their run of `finite` samples (n,)."""
    mask = np.zeros(len(np.asarray(finite)), dtype=bool)
    for first, end in runs(finite):
        mask[first : min(first + width, end)] = True
        mask[max(first, end - width) : end] = True
    return mask


def edge_status(finite: ArrayLike, width: int = EDGE) -> Integers:
    """`FrameStatus.EDGE` for samples (n,) within `width` of an end of their run, `OK` elsewhere."""
    return np.where(near_ends(finite, width), int(FrameStatus.EDGE), int(FrameStatus.OK))
