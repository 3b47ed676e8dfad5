"""Contacts: when a plate is loaded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Mask
from designopt_recordings.errors import RecordingError
from designopt_recordings.plate import ForcePlate
from designopt_recordings.signals.runs import runs

THRESHOLD = 20.0  # N of normal force
SHORTEST = 0.05  # s: a shorter contact is noise, a shorter flight within a contact too


@dataclass(frozen=True)
class ContactInterval:
    """An interval from `start` to `end` s in which a plate is loaded; `is_complete` is false where the recording begins
    or ends in between."""

    start: float
    end: float
    is_complete: bool = True


def loaded_samples(
    plate: ForcePlate, threshold: float = THRESHOLD, shortest: float = SHORTEST, *, open_ends: bool = False
) -> Mask:
    """(k,) where the normal force exceeds `threshold` N; interruptions and contacts shorter than `shortest` s do not
    count. Samples without a finite value are not loaded; what they cut off a contact is as long as they and it.

    With `open_ends`, contacts that the record's start or end cuts off count, however short.
    Raises `RecordingError` unless `threshold` is positive.
    """
    if not threshold > 0.0:
        raise RecordingError(f"the threshold of a contact is {threshold:g} N; it must be positive")
    force = plate.normal_force
    missing = np.isnan(force)
    force = np.nan_to_num(force, nan=0.0)
    mask = np.asarray(force > threshold)
    least = shortest * plate.rate
    for first, end in runs(~mask):
        if first > 0 and end < len(mask) and end - first < least and (force[first:end] > 0.0).all():
            mask[first:end] = True
    for first, end in runs(mask | missing):
        if end - first < least and not (open_ends and (first == 0 or end == len(mask))):
            mask[first:end] = False
    return mask


def contacts(
    plate: ForcePlate, threshold: float = THRESHOLD, shortest: float = SHORTEST, *, open_ends: bool = False
) -> tuple[ContactInterval, ...]:
    """Contacts of a plate in their order, as `loaded_samples`; times of the threshold are interpolated."""
    mask = loaded_samples(plate, threshold, shortest, open_ends=open_ends)
    time, force = plate.time, plate.normal_force
    return tuple(
        ContactInterval(
            _crossing(time, force, first, threshold) if first > 0 else float(time[0]),
            _crossing(time, force, end, threshold) if end < len(mask) else float(time[-1]),
            first > 0 and end < len(mask),
        )
        for first, end in runs(mask)
    )


def _crossing(time: Floats, force: Floats, after: int, threshold: float) -> float:
    """When the force passes the threshold between the samples before and at `after`."""
    low, high = force[after - 1], force[after]
    share = (threshold - low) / (high - low) if np.isfinite([low, high]).all() and high != low else 1.0
    return float(time[after - 1] + np.clip(share, 0.0, 1.0) * (time[after] - time[after - 1]))
