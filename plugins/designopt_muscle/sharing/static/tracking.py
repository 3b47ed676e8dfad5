"""Scales of measured activity that are found together with the activations of all frames."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Vector
from designopt_muscle.sharing.solvers.solve import solve
from designopt_muscle.sharing.statement.criteria import Reserves
from designopt_muscle.sharing.statement.formulate import Balance, formulate
from designopt_muscle.sharing.statement.formulation import Terms


def fitted_scales(work: Balance, reserves: Reserves, terms: Terms) -> Vector:
    """(k,) the scales s >= 0 of the signals with the least cost over all frames that can be balanced.

    The least cost of each frame is a convex function of s, and its derivative is that of the tracking term alone, as
    the activations are optimal; L-BFGS-B follows it. Signals that are 0 or absent keep the scale 1.
    """
    from scipy.optimize import minimize

    tracking = terms.tracking
    assert tracking is not None
    k = work.matrix.shape[2]
    signals = np.where(np.isfinite(tracking.signals), tracking.signals, 0.0)
    power = (signals**2).sum(axis=0)
    used = np.flatnonzero(power > 0)
    if not len(used):
        return np.ones(k)
    first = formulate(work, reserves, terms, np.ones(k))
    feasible = solve(first).converged
    size = max(float(power.sum()), 1e-300)

    def cost(of_used: Vector) -> tuple[float, Vector]:
        scales = np.ones(k)
        scales[used] = of_used
        formulation = formulate(work, reserves, terms, scales)
        found = solve(formulation)
        keep = feasible & found.converged
        a = found.x @ formulation.to_activation.T
        value = formulation.value(found.x)[keep].sum()
        slope = (-2.0 * tracking.weight * signals * (a - signals * scales))[keep].sum(axis=0)
        return float(value / size), np.asarray(slope[used] / size)

    start = np.ones(len(used))
    found = minimize(
        cost,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(used),
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    scales = np.ones(k)
    scales[used] = found.x
    return scales
