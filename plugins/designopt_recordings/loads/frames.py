"""The load of a plate at the frames of a recording: filtered, zero while unloaded, with a status."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats, Integers, Mask
from designopt_recordings.frames import FrameStatus
from designopt_recordings.loads.contacts import SHORTEST, THRESHOLD, loaded_samples
from designopt_recordings.plate import ForcePlate
from designopt_recordings.signals.filters import lowpass


@dataclass(frozen=True, eq=False)
class PlateLoad:
    """The load that plate `name` puts on the subject at n frames, laboratory frame, Y up.

    `force` (n, 3) N and `moment` (n, 3) N·m about the laboratory's origin are exactly zero without `is_loaded` (n,).
    `point` (n, 3) m is the centre of pressure (the centre of the surface while unloaded), `free` (n,) N·m the moment
    about the surface's upward normal there. `status` (n,) is `FrameStatus.OK` or `MISSING_LOAD`, where all are NaN.
    """

    name: str
    force: Floats
    moment: Floats
    point: Floats
    free: Floats
    is_loaded: Mask
    status: Integers


def load_at(
    plate: ForcePlate,
    time: ArrayLike,
    *,
    cutoff: float | None = None,
    order: int = 2,
    threshold: float = THRESHOLD,
    shortest: float = SHORTEST,
    open_ends: bool = False,
) -> PlateLoad:
    """The load of `plate` at frames `time` (n,) s.

    The wrench is filtered at `cutoff` Hz (zero-phase; None: unfiltered), interpolated to the frames, and set to zero
    outside contacts, which come from the unfiltered normal force (`loads.contacts`). The centre of pressure is that of
    the filtered wrench. Frames beyond the plate's samples, or next to a sample without a finite value, are
    `MISSING_LOAD`; missing values do not spread to other frames.
    """
    frames = np.asarray(time, dtype=float)
    wrench = np.hstack([plate.force, plate.moment])
    finite = np.asarray(np.isfinite(wrench).all(axis=1))
    if not finite.any():
        return _missing(plate, len(frames))
    for j in range(6):  # bridges for the filter; frames beside them are missing
        wrench[~finite, j] = np.interp(plate.time[~finite], plate.time[finite], wrench[finite, j])
    mask = loaded_samples(plate, threshold, shortest, open_ends=open_ends)
    if cutoff is not None:
        wrench = lowpass(wrench, plate.rate, cutoff, order)
    plate_sample = (frames - plate.start) * plate.rate
    before = np.clip(np.floor(plate_sample + 1e-6).astype(int), 0, len(wrench) - 1)
    after = np.clip(np.ceil(plate_sample - 1e-6).astype(int), 0, len(wrench) - 1)
    share = np.clip(plate_sample - before, 0.0, 1.0)[:, None] * (after > before)[:, None]
    at = (1.0 - share) * wrench[before] + share * wrench[after]
    beyond = (plate_sample < -0.5) | (plate_sample > len(wrench) - 0.5)
    bad = beyond | ~finite[before] | ~finite[after]
    nearest = np.clip(np.round(plate_sample).astype(int), 0, len(wrench) - 1)
    is_loaded = mask[nearest] & ~bad
    plate_at_frames = replace(plate, force=at[:, :3], moment=at[:, 3:], rate=plate.rate, start=0.0)
    is_loaded &= plate_at_frames.normal_force > 0.0  # a filter may swing below zero at a contact's end
    point, free = plate_at_frames.centre_of_pressure(is_loaded)
    at[~is_loaded] = 0.0
    at[bad], point[bad], free[bad] = np.nan, np.nan, np.nan
    status = np.where(bad, int(FrameStatus.MISSING_LOAD), int(FrameStatus.OK))
    return PlateLoad(plate.name, at[:, :3], at[:, 3:], point, free, is_loaded, status)


def _missing(plate: ForcePlate, count: int) -> PlateLoad:
    nothing = np.full((count, 3), np.nan)
    status = np.full(count, int(FrameStatus.MISSING_LOAD))
    return PlateLoad(plate.name, nothing, nothing, nothing, np.full(count, np.nan), np.zeros(count, dtype=bool), status)
