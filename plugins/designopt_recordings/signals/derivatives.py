"""Derivatives of recorded signals, by one interpolating quintic spline per run."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt_recordings.arrays import increasing
from designopt_recordings.signals.runs import finite_runs


def derivatives(time: ArrayLike, values: ArrayLike) -> tuple[Floats, Floats]:
    """First and second derivative of `values` (n, ...) at `time` (n,) s, each of the shape of `values`.

    From the quintic spline that interpolates each run between gaps (not-a-knot; of lower degree in runs of fewer than
    six samples). Gaps stay NaN, and so does a run of a single sample. Samples near the ends of a run are less accurate
    (`signals.runs.near_ends`).
    """
    from scipy.interpolate import make_interp_spline

    t, array = np.asarray(time, dtype=float), np.asarray(values, dtype=float)
    increasing("time", t)
    columns = array.reshape(len(array), -1)
    first, second = np.full(columns.shape, np.nan), np.full(columns.shape, np.nan)
    for rows, run_columns in finite_runs(columns):
        length = rows.stop - rows.start
        if length < 2:
            continue
        degree = 5 if length > 5 else 3 if length > 3 else 1
        spline = make_interp_spline(t[rows], columns[rows][:, run_columns], k=degree)
        first[rows, run_columns] = spline.derivative(1)(t[rows])
        second[rows, run_columns] = spline.derivative(2)(t[rows]) if degree > 1 else 0.0
    return first.reshape(array.shape), second.reshape(array.shape)
