"""Runs of LSODA with a limit on steps and states."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import scipy


def integrate(
    rhs: Callable[[float, Floats], Floats], start: float, x: Floats, at: Floats, tolerance: float, farthest: Floats,
    most_steps: int,
) -> Floats:  # fmt: skip
    """States (nx, n) at increasing places `at` (n,) from states `x` at `start`; NaN from where the run failed: a state
    is beyond `farthest` (nx,) or `most_steps` are used up.

    `tolerance` is relative and absolute.
    """
    states_at = np.full((len(x), len(at)), np.nan)
    states_at[:, at <= start] = x[:, None]
    with np.errstate(all="ignore"):
        solver = scipy.integrate.LSODA(rhs, start, x, float(at[-1]), rtol=tolerance, atol=tolerance)
        for _ in range(most_steps):
            if solver.status != "running":
                break
            solver.step()
            if solver.status == "failed" or not (np.abs(solver.y) <= farthest).all():
                break
            passed = (at > solver.t_old) & (at <= solver.t)
            if passed.any():
                states_at[:, passed] = solver.dense_output()(at[passed])
    return states_at
