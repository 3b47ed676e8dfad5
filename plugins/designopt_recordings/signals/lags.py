"""Delays between signals: found by cross-correlation, taken off by shifting."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt_recordings.channels import Channels
from designopt_recordings.errors import RecordingError

_OVERLAP = 0.25  # least share of the shorter signal that must overlap at a lag


@dataclass(frozen=True)
class Lag:
    """`seconds` by which a signal comes later than the reference, and their `correlation` there."""

    seconds: float
    correlation: float


def find_lag(
    time: ArrayLike, reference: ArrayLike, other_time: ArrayLike, delayed_values: ArrayLike, longest: float = 1.0
) -> Lag:
    """The lag, within `longest` s, at which `delayed_values` fits `reference` best.

    Both may have different rates and gaps; they are interpolated to the finer of the two rates. The correlation at each
    lag is Pearson's over the overlapping samples (Padfield 2012, IEEE Trans. Image Process. 21, 2706); a parabola
    through the best three gives fractions of a sample. Raises `RecordingError` if the signals never overlap or one is
    constant.
    """
    t, u = np.asarray(time, dtype=float), np.asarray(other_time, dtype=float)
    if len(t) < 3 or len(u) < 3:
        raise RecordingError("a lag needs signals of at least three samples")
    step = min(float(np.median(np.diff(t))), float(np.median(np.diff(u))))
    a, b = _even(t, np.asarray(reference, dtype=float), step), _even(u, np.asarray(delayed_values, dtype=float), step)
    lags, correlations = _correlations(a, b)
    seconds = lags * step + (u[0] - t[0])  # of sample 0 of one against sample 0 of the other
    usable = (np.abs(seconds) <= longest + 0.5 * step) & np.isfinite(correlations)
    if not usable.any():
        raise RecordingError(f"within {longest:g} s the signals do not overlap, or one of them is constant")
    best = int(np.flatnonzero(usable)[np.argmax(correlations[usable])])
    return Lag(float(seconds[best] + step * _vertex(correlations, best)), float(correlations[best]))


def synchronised(channels: Channels, lag: float) -> Channels:
    """`channels` with a delay of `lag` s (from a common event or `find_lag`), with corrected times."""
    return replace(channels, start=channels.start - lag)


def delayed(values: ArrayLike, rate: float, delay: float) -> Floats:
    """`values` (n, ...) sampled at `rate` Hz, `delay` s later: at each sample the value that was there `delay` s ago.

    Between samples linear; NaN where that time is before the first or after the last sample. For EMG, the
    electromechanical delay of a muscle.
    """
    array = np.asarray(values, dtype=float)
    columns = array.reshape(len(array), -1)
    sample_position = np.arange(len(array)) - delay * rate
    before = np.clip(np.floor(sample_position + 1e-9).astype(int), 0, len(array) - 1)
    after = np.clip(np.ceil(sample_position - 1e-9).astype(int), 0, len(array) - 1)
    share = np.where(after > before, sample_position - before, 0.0)[:, None]
    values_between = np.where(share == 0.0, columns[before], (1.0 - share) * columns[before] + share * columns[after])
    values_between[(sample_position < -1e-9) | (sample_position > len(array) - 1 + 1e-9)] = np.nan
    return np.asarray(values_between.reshape(array.shape))


def _even(time: Floats, values: Floats, step: float) -> Floats:
    """`values` at even times, NaN in gaps."""
    even = time[0] + step * np.arange(int(np.floor((time[-1] - time[0]) / step + 1e-6)) + 1)
    return np.asarray(np.interp(even, time, values))  # NaN neighbours give NaN


def _correlations(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Pearson's correlation over the overlap at each lag of `b` behind `a`, in samples."""
    from scipy.signal import correlate, correlation_lags

    wa, wb = np.isfinite(a).astype(float), np.isfinite(b).astype(float)
    if not (wa.any() and wb.any()):
        raise RecordingError("one of the signals has no finite sample")
    a, b = np.where(wa > 0.0, a - np.nanmean(a), 0.0), np.where(wb > 0.0, b - np.nanmean(b), 0.0)

    def over(p: Floats, q: Floats) -> Floats:
        return np.asarray(correlate(q, p, mode="full", method="fft"))

    count = np.round(over(wa, wb))
    enough = count >= max(3.0, _OVERLAP * min(wa.sum(), wb.sum()))
    n = np.maximum(count, 1.0)
    sum_a, sum_b = over(a, wb), over(wa, b)
    product = over(a, b) - sum_a * sum_b / n
    square_a, square_b = over(a * a, wb) - sum_a**2 / n, over(wa, b * b) - sum_b**2 / n
    floor = 1e-9 * max(float(np.sum(a * a)), 1e-300), 1e-9 * max(float(np.sum(b * b)), 1e-300)
    valid = enough & (square_a > floor[0]) & (square_b > floor[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.where(valid, product / np.sqrt(square_a * square_b), np.nan)
    return np.asarray(correlation_lags(len(b), len(a), mode="full"), dtype=float), correlation


def _vertex(values: Floats, best: int) -> float:
    """Place of the maximum of the parabola through three values, in samples from the middle one."""
    if not 0 < best < len(values) - 1 or not np.isfinite(values[best - 1 : best + 2]).all():
        return 0.0
    left, middle, right = values[best - 1 : best + 2]
    curvature = left - 2.0 * middle + right
    return float(np.clip(0.5 * (left - right) / curvature, -0.5, 0.5)) if curvature < 0.0 else 0.0
