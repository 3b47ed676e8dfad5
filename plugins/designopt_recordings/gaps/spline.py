"""Gaps filled by a cubic spline in time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats, Mask
from designopt_recordings.signals.runs import runs


def interpolated(time: ArrayLike, positions: ArrayLike, longest: float = 0.2) -> tuple[Floats, Mask]:
    """`positions` (n, k) at `time` (n,) s with gaps of at most `longest` s filled, and where (n,).

    A sample is missing where any of its k values is. One cubic spline goes through all measured samples. Gaps at the
    beginning or the end are no gaps between samples and stay.
    """
    from scipy.interpolate import CubicSpline

    t, values = np.asarray(time, dtype=float), np.array(positions, dtype=float)
    present = np.isfinite(values).all(axis=1)
    filled = np.zeros(len(t), dtype=bool)
    if present.sum() < 4:
        return values, filled
    step = float(np.median(np.diff(t)))
    for first, end in runs(~present):
        if first > 0 and end < len(t) and t[end] - t[first - 1] <= longest + 1.001 * step:
            filled[first:end] = True
    if filled.any():
        values[filled] = CubicSpline(t[present], values[present])(t[filled])
    return values, filled
