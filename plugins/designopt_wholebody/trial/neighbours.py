"""Frames whose loads are taken from frames beside them that are missing, rebuilt, or beyond an end of the recording."""

from __future__ import annotations

import math

import numpy as np
from designopt_recordings.frames import FrameStatus
from numpy.typing import NDArray

#: Accelerations are differences over two frames to each side.
_DIFFERENCES = 2
#: Periods of its cut-off after which the response of a double-pass Butterworth filter of the second order to a single
#: sample has fallen to a tenth: exp(-x) (cos x + sin x) = 0.1 at x = 1.875, x = 2π f_d t / √2, f_d = f_c / 0.802.
_RESPONSE = 1.875 * 0.802 / (math.sqrt(2.0) * math.pi)


def reach(rate: float, cutoff: float | None) -> int:
    """Frames to each side that the loads of a frame are taken from: those of its differences and, where a filter with
    `cutoff` Hz smooths coordinates, those in which the filter's response is above a tenth of its peak."""
    return _DIFFERENCES + (0 if cutoff is None else round(_RESPONSE * rate / cutoff))


def neighbour_status(doubtful: NDArray[np.bool_], frames: int) -> NDArray[np.int64]:
    """(n,) `BESIDE` within `frames` of a doubtful frame (n,), `EDGE` within as many of an end, `OK` elsewhere."""
    count = np.arange(len(doubtful))
    status = np.where(np.minimum(count, count[::-1]) < frames, FrameStatus.EDGE, FrameStatus.OK).astype(np.int64)
    near = np.convolve(doubtful, np.ones(2 * frames + 1), "full")[frames : frames + len(doubtful)] > 0.5
    status[near & ~doubtful] = FrameStatus.BESIDE
    return status
