"""Sum-up rounding: on each piece of a grid the level that keeps the integral nearest to that of a relaxed control.

Sager, Numerical methods for mixed-integer optimal control problems, 2005, section 5.1; Sager, Bock, Diehl, Math.
Program. 133 (2012) 1, theorem 5: with pieces of at most the length d the integrals differ by at most d/2 for one
switch, and by (n - 1) d for n of which exactly one is on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Matrix, Vector


def sum_up(relaxed: ArrayLike, widths: ArrayLike, low: float = 0.0, high: float = 1.0, step: float = 1.0) -> Vector:
    """Levels (n,) among ``low, low + step, ..., high`` for the means (n,) of a `relaxed` control on pieces of `widths`
    (n,).

    Up to the end of every piece, the integral differs from that of the relaxed control by at most half a step times the
    longest piece.
    """
    means, h = np.asarray(relaxed, float), np.asarray(widths, float)
    count = round((high - low) / step)
    levels = np.empty(len(means))
    owed = 0.0
    for j, (mean, width) in enumerate(zip(means.tolist(), h.tolist(), strict=True)):
        owed += (mean - low) / step * width
        level = min(max(int(np.floor(owed / width + 0.5)), 0), count)
        levels[j] = level
        owed -= level * width
    return np.asarray(low + step * levels)


def sum_up_one_of(relaxed: ArrayLike, widths: ArrayLike) -> Matrix:
    """Zeros and ones (n, k), one 1 in each row, for the means (n, k) of `relaxed` shares of k switches.

    On each piece the switch with the largest deficit of its integral is on.
    """
    shares, h = np.asarray(relaxed, float), np.asarray(widths, float)
    chosen_levels = np.zeros_like(shares)
    owed = np.zeros(shares.shape[1])
    for j, width in enumerate(h.tolist()):
        owed += shares[j] * width
        chosen = int(owed.argmax())
        chosen_levels[j, chosen] = 1.0
        owed[chosen] -= width
    return chosen_levels


def deviation(relaxed: Matrix, rounded: Matrix, widths: Vector) -> float:
    """The largest difference of the integrals of two controls (n,) or (n, k), over all ends of pieces."""
    difference = np.asarray(relaxed, float) - np.asarray(rounded, float)
    weights = widths if difference.ndim == 1 else widths[:, None]
    return float(np.abs(np.cumsum(difference * weights, axis=0)).max(initial=0.0))
