"""Grids of frequencies on which sampled loops are evaluated, before peaks and crossings are refined."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats

#: Density of the grid, of which 400 points lie between 0.01 rad/s and half the sampling rate at 0.05 s.
_POINTS_PER_DECADE = 106
_LOWEST = 0.01  # rad/s
_LOWEST_SHARE = 1.6e-4  # of half the sampling rate: the grid begins below `_LOWEST` where samples are far apart
_PHASE_STEP = 0.3  # rad by which the delay may turn the loop between points of the grid
_WIDE = 0.03  # damping of a resonance above which the grid shows it
_NEAR = 1.1  # factor from one distance to the next of the points about a resonance


def grid(sample_time: float, delay: float, lowest: float | None = None) -> Floats:
    """Frequencies (rad/s) up to half the sampling rate, dense enough for the turns of the `delay` (samples)."""
    highest = np.pi / sample_time
    low = min(_LOWEST, _LOWEST_SHARE * highest) if lowest is None else min(lowest, _LOWEST_SHARE * highest)
    count = int(np.ceil(_POINTS_PER_DECADE * np.log10(highest / low)))
    w = np.geomspace(low, highest, count)
    if delay > 0.0:
        step = _PHASE_STEP / (delay * sample_time)
        sparse = int(np.searchsorted(np.diff(w), step))
        if sparse < count - 1:
            intervals = int(np.ceil((highest - w[sparse]) / step))
            w = np.concatenate([w[:sparse], np.linspace(w[sparse], highest, intervals + 1)])
    w[-1] = highest
    return np.asarray(w)


def coarse(w: Floats, re: Floats, im: Floats, slowest: Floats, resonances: NDArray[np.complex128]) -> NDArray[np.bool_]:
    """Rows (n,) of loops with values `re`, `im` (n, m) for which the common grid `w` (m,) is too coarse.

    `slowest` (n,) is the rate (rad/s) of the slowest mode of the closed loop, `resonances` (n, s) are the poles of the
    plant (1/s). A grid is too coarse if it begins above the slowest mode, or if it may step over a resonance.
    """
    size, low = re[:, 0] ** 2 + im[:, 0] ** 2, w[0]
    slow = (slowest < 0.3 * low) | ((slowest < 3.0 * low) & (size < 4.0))
    # A loop that is negative at rest crosses the axis at 0, where its gain margin is read off the first point.
    negative = (re[:, 0] < 0.0) & (size < 1.0) & (np.abs(im[:, 0]) < 0.2 * np.abs(re[:, 0])) & (slowest < 100.0 * low)
    sharp = (resonances.imag > low) & (np.abs(resonances.real) < _WIDE * resonances.imag)
    return np.asarray(slow | negative | sharp.any(axis=1))


def refine_grid(w: Floats, slowest: float, resonances: NDArray[np.complex128]) -> Floats:
    """The grid `w` of one loop, begun far below its `slowest` mode and dense about the `resonances` of its plant."""
    low = max(1e-4 * slowest, 1e-13 * w[-1])
    parts = [w]
    if low < w[0]:
        parts.append(np.geomspace(low, w[0], int(np.ceil(_POINTS_PER_DECADE * np.log10(w[0] / low))) + 1))
    parts.extend(near_pole(pole) for pole in resonances if abs(pole.real) < _WIDE * pole.imag)
    together = np.unique(np.concatenate(parts))
    return np.asarray(together[together <= w[-1]])


def near_pole(pole: complex) -> Floats:
    """Frequencies (rad/s) about a pole (1/s) that is hardly damped, the nearest a tenth of its width away."""
    first = max(0.1 * abs(pole.real / pole.imag), 1e-9)
    away = np.geomspace(first, 0.1, int(np.ceil(np.log(0.1 / first) / np.log(_NEAR))) + 1)
    # Not alike on both sides: halving the middle interval must not end on the pole, where the plant has no value.
    return np.asarray(pole.imag * np.concatenate([1.0 - away, 1.0 + 1.37 * away]))
