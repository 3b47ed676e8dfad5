"""Cycles of a repeated movement: cut at events, normalised in time, summarised as mean and standard deviation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats, Mask
from designopt_recordings.errors import RecordingError
from designopt_recordings.recording import Recording
from designopt_recordings.signals.runs import runs


@dataclass(frozen=True)
class Cycle:
    """One cycle, from `start` to `end` s."""

    start: float
    end: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.start) and self.start < self.end < math.inf):
            raise RecordingError(f"a cycle from {self.start:g} to {self.end:g} s has no duration")


@dataclass(frozen=True, eq=False)
class Band:
    """`mean` and `deviation` (s, ...) over `count` cycles: the standard deviation of the sample, NaN for one cycle."""

    mean: Floats
    deviation: Floats
    count: int


def cycles_between(times: Sequence[float], shortest: float = 0.0, longest: float = math.inf) -> tuple[Cycle, ...]:
    """Cycles from each of the events at `times` s to the next; those not between `shortest` and `longest` s long are
    left out: a missed event makes one of double length.
    """
    pairs = pairwise(sorted(times))
    return tuple(Cycle(a, b) for a, b in pairs if b > a and shortest <= b - a <= longest)


def event_times(recording: Recording, label: str, side: str = "") -> tuple[float, ...]:
    """Times (s) of the events of a recording with this `label` and, if given, `side`, in any case of letters.

    Raises `RecordingError` without such an event.
    """
    matching = [
        e for e in recording.events if e.label.lower() == label.lower() and side.lower() in ("", e.side.lower())
    ]
    if not matching:
        event_labels = sorted({f"{e.side} {e.label}".strip() for e in recording.events})
        raise RecordingError(f"no event is '{f'{side} {label}'.strip()}'; known: {', '.join(event_labels) or 'none'}")
    return tuple(event.time for event in matching)


def normalised(
    time: ArrayLike, values: ArrayLike, cycles: Sequence[Cycle], samples: int = 101, *, bounded: bool = False
) -> tuple[Floats, Mask]:
    """Every cycle of `values` (n, ...) at `samples` even instants: (c, samples, ...), and which are complete (c,).

    A cubic spline through the run of measured frames in which the cycle lies gives the values, so that the ends of a
    cycle are as good as its middle. `bounded` values stay between those of the neighbouring frames: the cubic is
    monotone between two (Fritsch and Carlson 1980), less exact for smooth signals. A cycle that a gap or an end of the
    recording interrupts is NaN, not complete.
    """
    from scipy.interpolate import CubicSpline, PchipInterpolator

    t, array = np.asarray(time, dtype=float), np.asarray(values, dtype=float)
    columns = array.reshape(len(array), -1)
    cycle_values = np.full((len(cycles), samples, columns.shape[1]), np.nan)
    half = 0.5 * float(np.median(np.diff(t))) if len(t) > 1 else 0.0
    for first, end in runs(np.isfinite(columns).all(axis=1)):
        if end - first < 4:
            continue
        spline = (PchipInterpolator if bounded else CubicSpline)(t[first:end], columns[first:end])
        for i, cycle in enumerate(cycles):
            if t[first] - half <= cycle.start and cycle.end <= t[end - 1] + half:
                instants = np.linspace(cycle.start, cycle.end, samples)
                cycle_values[i] = spline(np.clip(instants, t[first], t[end - 1]) if bounded else instants)
    complete = np.asarray(np.isfinite(cycle_values).all(axis=(1, 2)))
    return cycle_values.reshape(len(cycles), samples, *array.shape[1:]), complete


def band(cycles: ArrayLike) -> Band:
    """Mean and standard deviation over the cycles (c, s, ...) that are complete.

    Raises `RecordingError` where none is.
    """
    array = np.asarray(cycles, dtype=float)
    complete = array[np.isfinite(array).all(axis=tuple(range(1, array.ndim)))]
    if not len(complete):
        raise RecordingError(f"none of {len(array)} cycles is complete")
    nothing = np.full(array.shape[1:], np.nan)
    deviation = complete.std(axis=0, ddof=1) if len(complete) > 1 else nothing
    return Band(complete.mean(axis=0), deviation, len(complete))
