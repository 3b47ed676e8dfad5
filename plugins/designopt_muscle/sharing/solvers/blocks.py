"""Independent parts of a sharing problem: a left leg, a right leg, a trunk."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def blocks(pattern: NDArray[np.bool_]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows and columns of the connected components of a pattern (m, v), in the order of their first rows.

    Columns without an entry form a last block without rows, if there are any.
    """
    m, v = pattern.shape
    label = np.arange(m)
    for column in range(v):
        joined = np.flatnonzero(pattern[:, column])
        if len(joined) > 1:
            label[np.isin(label, label[joined])] = label[joined].min()
    found = []
    for first in np.unique(label):
        rows = np.flatnonzero(label == first)
        found.append((rows, np.flatnonzero(pattern[rows].any(axis=0))))
    idle = np.flatnonzero(~pattern.any(axis=0))
    if len(idle):
        found.append((np.zeros(0, dtype=np.int64), idle))
    return found
