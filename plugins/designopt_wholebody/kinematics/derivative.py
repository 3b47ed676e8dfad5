"""Derivatives by time of sampled signals with missing frames."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Array


def derivative(values: Array, rate: float) -> tuple[Array, NDArray[np.bool_]]:
    """Derivative (f, ...) of `values` (f, ...) sampled at `rate` Hz, and (f,) where it is one-sided.

    Central differences of second order; where a neighbour is missing or there is none, differences of second order
    over three frames to one side. A frame is missing when any of its values is; missing frames, and frames that lack
    neighbours on both sides, are NaN. No other frame is touched by a missing one.
    """
    values = np.asarray(values, dtype=float)
    frames = len(values)
    have = np.zeros(frames, dtype=bool)
    have[:] = np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
    made = np.full(values.shape, np.nan)

    def shifted(by: int) -> NDArray[np.bool_]:
        """Whether the frame `by` frames later is there."""
        there = np.zeros(frames, dtype=bool)
        if by >= 0:
            there[: max(0, frames - by)] = have[by:]
        else:
            there[-by:] = have[:by]
        return there

    central = have & shifted(1) & shifted(-1)
    forward = have & ~central & shifted(1) & shifted(2)
    backward = have & ~central & ~forward & shifted(-1) & shifted(-2)
    k = np.flatnonzero(central)
    made[k] = 0.5 * rate * (values[k + 1] - values[k - 1])
    k = np.flatnonzero(forward)
    made[k] = rate * (-1.5 * values[k] + 2.0 * values[k + 1] - 0.5 * values[k + 2])
    k = np.flatnonzero(backward)
    made[k] = rate * (1.5 * values[k] - 2.0 * values[k - 1] + 0.5 * values[k - 2])
    return made, forward | backward
