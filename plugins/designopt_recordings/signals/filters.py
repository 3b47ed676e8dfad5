"""Zero-phase Butterworth filters with the cut-off of the two passes together, gaps kept as gaps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt_recordings.errors import RecordingError
from designopt_recordings.signals.runs import run_by_run


def lowpass(values: ArrayLike, rate: float, cutoff: float, order: int = 2) -> Floats:
    """`values` (n, ...) sampled at `rate` Hz through a Butterworth filter of `order`, forwards and backwards.

    The gain of both passes together is 1/sqrt(2) at `cutoff` Hz. Gaps (NaN) stay gaps and do not spread: each run
    between them is filtered by itself, its ends extended by odd reflection; fill gaps before filtering where possible.
    Raises `RecordingError` for a cut-off that the rate cannot have. Winter, Biomechanics and Motor Control of Human
    Movement, 2009, section 3.4.4.2 (double pass).
    """
    return _filter(values, rate, design_frequency(cutoff, rate, order), order, "lowpass")


def highpass(values: ArrayLike, rate: float, cutoff: float, order: int = 2) -> Floats:
    """Like `lowpass`, for frequencies above `cutoff` Hz."""
    return _filter(values, rate, design_frequency(cutoff, rate, order, highpass=True), order, "highpass")


def bandpass(values: ArrayLike, rate: float, band: Sequence[float], order: int = 2) -> Floats:
    """High-pass at the lower and low-pass at the upper frequency of `band`, Hz, both zero-phase.

    Raises `RecordingError` for an empty band.
    """
    lower, upper = band
    if not 0.0 < lower < upper:
        raise RecordingError(f"the band {lower:g} to {upper:g} Hz is empty; give a lower and a higher frequency")
    return lowpass(highpass(values, rate, lower, order), rate, upper, order)


def design_frequency(cutoff: float, rate: float, order: int = 2, *, highpass: bool = False) -> float:
    """Cut-off (Hz) to design one pass with, so that two passes together have theirs at `cutoff`.

    tan(pi f_d / f_s) = tan(pi f_c / f_s) / C for a low-pass, times C for a high-pass, C = (sqrt(2) - 1)^(1 / (2 n)) for
    the order n: 0.802 for the second. Exact for the bilinear transform.
    Raises `RecordingError` for an impossible cut-off or order.
    """
    if not (math.isfinite(cutoff) and 0.0 < cutoff < rate / 2.0):
        raise RecordingError(
            f"a cut-off of {cutoff:g} Hz is not possible at {rate:g} Hz; it must be above 0 and below {rate / 2.0:g} Hz"
        )
    if order < 1:
        raise RecordingError(f"the order of the filter must be at least 1, not {order}")
    correction = (math.sqrt(2.0) - 1.0) ** (1.0 / (2 * order))
    tangent = math.tan(math.pi * cutoff / rate)
    return rate / math.pi * math.atan(tangent * correction if highpass else tangent / correction)


def cutoff_of_both_passes(design: float, rate: float, order: int = 2) -> float:
    """Cut-off (Hz) of both passes of a low-pass whose single passes were designed with `design` Hz.

    The inverse of `design_frequency`. OpenSim designs for one pass: its filter at 6 Hz (order 3, at 100 Hz) is
    `lowpass` at 5.2 Hz.
    """
    correction = (math.sqrt(2.0) - 1.0) ** (1.0 / (2 * order))
    return rate / math.pi * math.atan(math.tan(math.pi * design / rate) * correction)


def _filter(values: ArrayLike, rate: float, frequency: float, order: int, kind: str) -> Floats:
    from scipy import signal

    sections = signal.butter(order, frequency, kind, fs=rate, output="sos")
    padding = 3 * (2 * len(sections) + 1)
    # the response to a step has died away after a few periods of the cut-off: reflect that much, where it is there
    padding = max(padding, math.ceil(2.0 * rate / frequency)) if kind == "lowpass" else padding

    def filtered(run: Floats) -> Floats:
        if len(run) == 1:
            return run if kind == "lowpass" else np.zeros_like(run)
        return np.asarray(signal.sosfiltfilt(sections, run, axis=0, padlen=min(padding, len(run) - 1)))

    return run_by_run(values, filtered)
