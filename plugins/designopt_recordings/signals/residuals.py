"""Winter's residual analysis: which cut-off removes noise and keeps the signal, for each channel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats, Mask
from designopt_recordings.errors import RecordingError
from designopt_recordings.signals.filters import lowpass

_UPPER = 20.0  # Hz, Winter's own grid; the result depends on it


@dataclass(frozen=True, eq=False)
class ResidualAnalysis:
    """Result of the analysis for channels of shape (...): `cutoff` Hz, `noise` RMS in the unit of the channels.

    `residual` (g, ...) is the RMS difference between raw and filtered signal at each of the cut-offs `grid` (g,) Hz.
    `straight` marks channels whose high-frequency part is a decreasing line, as for white noise; for others the result
    has no meaning, `noise` is NaN and `cutoff` is the end of the grid.
    """

    grid: Floats
    residual: Floats
    cutoff: Floats
    noise: Floats
    straight: Mask


def analyse_residuals(
    values: ArrayLike, rate: float, grid: ArrayLike | None = None, *, correlation: float = 0.95, order: int = 2
) -> ResidualAnalysis:
    """Residual analysis of `values` (n, ...), each channel by itself; gaps are left out.

    R(f_c) is the RMS difference to the signal filtered at f_c. A line is fitted to the high-frequency part: points are
    dropped from the low end until |Pearson's r| exceeds `correlation`. Its value at 0 Hz is the noise, and the cut-off
    is where R falls to it. On signals that were smoothed before, the result means little. Without `grid`, from 1 Hz in
    steps of 0.5 Hz to 20 Hz or 0.4 times the rate. Winter 2009, section 3.4.4.3; Nunes 2017, equation (3.5).
    Raises `RecordingError` for fewer than four frequencies, or a grid that does not increase.
    """
    grid = np.arange(1.0, min(_UPPER, 0.4 * rate) + 0.25, 0.5) if grid is None else np.asarray(grid, dtype=float)
    if grid.ndim != 1 or len(grid) < 4 or (np.diff(grid) <= 0.0).any():
        raise RecordingError("the grid of cut-offs needs at least four frequencies that increase")
    array = np.asarray(values, dtype=float)
    columns = array.reshape(len(array), -1)
    count = np.isfinite(columns).sum(axis=0)
    residual = np.empty((len(grid), columns.shape[1]))
    for i, cutoff in enumerate(grid):
        squares = (columns - lowpass(columns, rate, float(cutoff), order)) ** 2
        residual[i] = np.sqrt(np.nansum(squares, axis=0) / np.maximum(count, 1))
    cutoff, noise = np.empty(columns.shape[1]), np.empty(columns.shape[1])
    for j in range(columns.shape[1]):
        cutoff[j], noise[j] = _crossing(grid, residual[:, j], correlation) if count[j] else (np.nan, np.nan)
    shape = array.shape[1:]
    return ResidualAnalysis(
        grid, residual.reshape(len(grid), *shape), cutoff.reshape(shape), noise.reshape(shape),
        np.asarray(np.isfinite(noise)).reshape(shape),
    )  # fmt: skip


def _crossing(grid: Floats, residual: Floats, correlation: float) -> tuple[float, float]:
    """Where the residual falls to the noise, Hz, and the noise; the end of the grid and NaN without a falling line."""
    for first in range(len(grid) - 2):
        x, y = grid[first:], residual[first:]
        if np.ptp(y) <= 1e-12 * np.max(np.abs(residual), initial=1e-300):
            break  # nothing is left to remove
        slope, intercept = np.polyfit(x, y, 1)
        if abs(np.corrcoef(x, y)[0, 1]) > correlation:
            if slope >= 0.0:
                break
            i = int(np.argmax(residual <= intercept))  # the line falls, so that the residual ends below
            if i == 0:
                return float(grid[0]), float(intercept)
            share = (residual[i - 1] - intercept) / (residual[i - 1] - residual[i])
            return float(grid[i - 1] + share * (grid[i] - grid[i - 1])), float(intercept)
    return float(grid[-1]), float("nan")
