"""One run of LSODA that ends: after so many steps at the latest, and where the motion is lost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from designopt.arrays import Matrix, Vector
from designopt.lazy import scipy


def integrate(
    rhs: Callable[[float, Vector], Vector], start: float, x: Vector, at: Vector, tolerance: float, farthest: Vector,
    most_steps: int,
) -> Matrix:  # fmt: skip
    """States (nx, n) at rising places `at` (n,) from states `x` at `start`; not a number from where the run was lost:
    where a state is beyond `farthest` (nx,) or `most_steps` are used up.

    `tolerance` is relative and absolute.
    """
    found = np.full((len(x), len(at)), np.nan)
    found[:, at <= start] = x[:, None]
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
                found[:, passed] = solver.dense_output()(at[passed])
    return found
