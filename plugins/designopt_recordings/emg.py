"""EMG: from raw channels to envelopes between 0 and 1 that can be compared with activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt_recordings.channels import Channels
from designopt_recordings.errors import RecordingError
from designopt_recordings.signals.even_steps import even_rate
from designopt_recordings.signals.filters import bandpass, lowpass
from designopt_recordings.signals.lags import delayed
from designopt_recordings.table import TimeTable

#: Hz; whole_body_natural_coordinates, section 18.
BAND, ENVELOPE = (20.0, 450.0), 6.0


def envelope(channels: Channels, band: Sequence[float] = BAND, cutoff: float = ENVELOPE, order: int = 2) -> Channels:
    """Linear envelopes of raw EMG: band-pass, absolute value, low-pass at `cutoff` Hz, all zero-phase, never negative.

    Gaps stay gaps. Raises `RecordingError` for a band that the rate of the channels cannot have.
    """
    magnitude = np.abs(bandpass(channels.values, channels.rate, band, order))
    return replace(channels, values=np.maximum(lowpass(magnitude, channels.rate, cutoff, order), 0.0))


def channels_of(table: TimeTable, names: Sequence[str], unit: str = "V") -> Channels:
    """Columns of a table (CSV, STO, MOT) with even times as channels, for EMG that comes in such a file."""
    rate = even_rate(table.time)
    values = np.stack([table.column(name) for name in names], axis=1)
    return Channels(rate, tuple(names), (unit,) * len(names), values, float(table.time[0]))


def reference(envelopes: Channels, window: float = 0.25) -> Floats:
    """(c,) reference of each channel: the largest mean over `window` s of its envelope, in a trial or a contraction.

    NaN for a channel without so long a run of samples. Raises `RecordingError` if the trial is shorter than `window`.
    """
    length = max(1, round(window * envelopes.rate))
    values = envelopes.values
    if len(values) < length:
        raise RecordingError(f"{len(values)} samples are fewer than a window of {window:g} s at {envelopes.rate:g} Hz")
    finite = np.isfinite(values)
    zero = np.zeros((1, values.shape[1]))
    sums = np.vstack([zero, np.cumsum(np.where(finite, values, 0.0), axis=0)])
    gaps = np.vstack([zero, np.cumsum(~finite, axis=0)])
    means = np.where(gaps[length:] == gaps[:-length], (sums[length:] - sums[:-length]) / length, -np.inf)
    largest = means.max(axis=0)
    return np.where(np.isfinite(largest), largest, np.nan)


def normalised(envelopes: Channels, references: ArrayLike) -> Channels:
    """Envelopes divided by `references` (c,), of unit 1: of the same trial, of several, or of a maximum contraction.

    Raises `RecordingError` unless each channel has one positive reference.
    """
    divisors = np.asarray(references, dtype=float)
    if divisors.shape != (len(envelopes.names),):
        raise RecordingError(f"{len(envelopes.names)} channels need one reference each, not {divisors.size}")
    bad = [name for name, value in zip(envelopes.names, divisors, strict=True) if not value > 0.0]
    if bad:
        raise RecordingError(f"the reference of {', '.join(bad)} is not positive; leave these channels out")
    return replace(envelopes, values=envelopes.values / divisors, units=("1",) * len(envelopes.names))


def at_frames(channels: Channels, time: ArrayLike, delay: float = 0.0) -> Floats:
    """Values (n, c) at `time` (n,) s of channels that act `delay` s later; linear, NaN beyond the samples.

    For envelopes, whose low-pass is far below the rate of the frames; raw EMG would alias.
    """
    values = delayed(channels.values, channels.rate, delay) if delay else channels.values
    frames = np.asarray(time, dtype=float)
    return np.stack(
        [np.interp(frames, channels.time, column, left=np.nan, right=np.nan) for column in values.T], axis=1
    )
