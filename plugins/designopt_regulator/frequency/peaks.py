"""Peaks of |K S|, from noise and set-point to the command, and of |G S|, from the load to the output."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt_regulator.frequency.margins import lowest

#: |1 + L|^2, |K|^2 and |G|^2 of loops (k,) at frequencies (k,).
Sizes = Callable[[NDArray[np.intp], Floats], tuple[Floats, Floats, Floats]]


def peaks(sizes: Sizes, w: Floats, count: int) -> tuple[Floats, Floats]:
    """The largest |K S| and |G S| of `count` loops over the grid `w` (m,) of all, refined between its points."""
    peak_values = []
    each, at = np.repeat(np.arange(count), len(w)), np.tile(w, count)
    with np.errstate(divide="ignore", over="ignore"):
        for which in (1, 2):

            def inverse(each: NDArray[np.intp], w: Floats, which: int = which) -> Floats:
                parts = sizes(each, w)
                return np.asarray(parts[0] / parts[which])

            grids = np.broadcast_to(w, (count, len(w)))
            peak_values.append(
                np.asarray(1.0 / np.sqrt(lowest(inverse, grids, inverse(each, at).reshape(grids.shape))))
            )
    return peak_values[0], peak_values[1]


def peaks_at_rest(
    kp: Floats, integral: NDArray[np.bool_], top: Floats, bottom: Floats, integrates: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """|K S| and |G S| at frequency 0, where G is top / bottom, infinite of a plant that `integrates`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        G = top / np.where(integrates, 1.0, bottom)
        ks = np.where(integrates, 0.0, np.where(integral, 1.0 / np.abs(G), np.abs(kp / (1.0 + kp * G))))
        gs = np.where(integral, 0.0, np.where(integrates, 1.0 / np.abs(kp), np.abs(G / (1.0 + kp * G))))
    return ks, gs
