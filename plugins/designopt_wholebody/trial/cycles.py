"""Cycles of a trial: cut where a joint angle is least, mean and deviation over them (Nunes 2017, 4.3.3)."""

from __future__ import annotations

import numpy as np
from designopt_recordings.signals.cycles import Band, Cycle, band, cycles_between, normalised

from designopt.arrays import Floats
from designopt_wholebody.kinematics.angles import JointAngles

#: Angles by which a trial is cut where none is named: extension of hip or elbow, of the one that moves more.
CUT_BY = ("hip_R.flexion", "elbow_R.flexion", "hip_L.flexion", "elbow_L.flexion")
#: Instants of a cycle, percent.
PERCENT = np.arange(101.0)
#: A minimum is lower than its surroundings by this share of the angle's range; a first or last frame counts as one
#: where it is this close to the lowest.
_DEPTH, _CLOSE = 0.3, 0.15


def trial_cycles(time: Floats, angles: JointAngles, by: str | None = None) -> tuple[Cycle, ...]:
    """Cycles from each minimum of the angle called `by` to the next; those of odd lengths are left out.

    Raises `ValueError` for an angle that the model does not have.
    """
    from scipy.signal import find_peaks

    if by is None:
        angle_names = [name for name in CUT_BY if name in angles.names and np.isfinite(angles.angle(name)).any()]
        if not angle_names:
            return ()
        by = max(angle_names, key=lambda name: float(np.nanmax(angles.angle(name)) - np.nanmin(angles.angle(name))))
    elif by not in angles.names:
        raise ValueError(f"there is no angle '{by}' to cut cycles by; known: {', '.join(angles.names)}")
    signal = angles.angle(by)
    frame_numbers = np.flatnonzero(np.isfinite(signal))
    if len(frame_numbers) < 5:
        return ()
    values = signal[frame_numbers]
    size = float(np.ptp(values))
    minima = list(find_peaks(-values, prominence=_DEPTH * size)[0])
    minima += [k for k in (0, len(values) - 1) if values[k] - values.min() <= _CLOSE * size]
    cuts = time[frame_numbers[sorted(set(minima))]]
    if len(cuts) < 2:
        return ()
    usual = float(np.median(np.diff(cuts)))
    return cycles_between(cuts.tolist(), 0.6 * usual, 1.5 * usual)


def bands(time: Floats, values: Floats, cycles: tuple[Cycle, ...]) -> Band:
    """Mean and deviation (101, k) of `values` (n, k) over the complete `cycles`; NaN for signals that are never known.

    Both are NaN without cycles, the deviation with one.
    """
    nothing = np.full((len(PERCENT), values.shape[1]), np.nan)
    if not cycles:
        return Band(nothing, nothing, 0)
    has_values = np.isfinite(values).any(axis=0)
    cut, complete = normalised(time, values[:, has_values], cycles, len(PERCENT))
    if not has_values.any() or not complete.any():
        return Band(nothing, nothing, 0)
    mean_band = band(cut)
    mean, deviation = nothing.copy(), nothing.copy()
    mean[:, has_values], deviation[:, has_values] = mean_band.mean, mean_band.deviation
    return Band(mean, deviation, mean_band.count)
