"""Independent parts of a sharing problem: a left leg, a right leg, a trunk."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Integers, Mask


def blocks(pattern: Mask) -> list[tuple[Integers, Integers]]:
    """Rows and columns of the connected components of a pattern (m, v), in the order of their first rows.

    Columns without an entry form a last block without rows, if there are any.
    """
    m = len(pattern)
    joined = (pattern.astype(np.int64) @ pattern.T.astype(np.int64) + np.eye(m, dtype=np.int64)) > 0
    while not np.array_equal(further := (joined.astype(np.int64) @ joined.astype(np.int64)) > 0, joined):
        joined = further
    label = joined.argmax(axis=1)  # the first row that each hangs together with
    found = []
    for first in np.unique(label):
        rows = np.flatnonzero(label == first)
        found.append((rows, np.flatnonzero(pattern[rows].any(axis=0))))
    idle = np.flatnonzero(~pattern.any(axis=0))
    if len(idle):
        found.append((np.zeros(0, dtype=np.int64), idle))
    return found
