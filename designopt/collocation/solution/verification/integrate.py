"""Runs of LSODA with a limit on steps and states, and steps of fixed length.

The steps are those of the explicit method of order 8 of Dormand and Prince (Hairer, Norsett, Wanner, Solving Ordinary
Differential Equations I, 1993, section II.10); the coefficients are SciPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solution.verification.equations import explicit_rates
from designopt.dynamics.system import System
from designopt.lazy import casadi as ca
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


def stage_places() -> Floats:
    """The stages (13,) as shares of the step; the last is at its end."""
    return np.concatenate([scipy.integrate.DOP853.C, [1.0]])


@lru_cache(maxsize=16)
def step_functions(system: System, at_once: int) -> tuple[Any, Any]:
    """CasADi functions of one step and of `at_once` steps in a row.

    (x with corrections, controls and algebraic variables at all stages, p, data and times at all stages, h) -> states
    with corrections at the end, and the two error estimates of the states, of order 5 and 3, divided by h. The
    corrections (nz,) are the differences of the algebraic variables from those given: each stage searches from the
    solution of the one before, so that algebraic variables stay on their branch far from those given.
    """
    rates = explicit_rates(system)
    stages, nu, nv = len(stage_places()), len(system.controls), len(system.controls) + len(system.algebraic)
    nx, nq = len(system.states), len(system.data)
    start, h, p = ca.MX.sym("x", nx + nv - nu), ca.MX.sym("h"), ca.MX.sym("p", len(system.parameters))
    v, q, t = ca.MX.sym("v", nv * stages), ca.MX.sym("q", nq * stages), ca.MX.sym("t", stages)
    x, correction = ca.vertsplit(start, [0, nx, start.numel()])
    at: Any = x
    slopes: list[Any] = []
    for i in range(stages):
        if slopes:
            row = scipy.integrate.DOP853.A[i, :i] if i < stages - 1 else scipy.integrate.DOP853.B
            at = x + h * ca.mtimes(ca.horzcat(*slopes), ca.DM(row))
        _, u_i, z_i, _ = ca.vertsplit(v, [0, i * nv, i * nv + nu, (i + 1) * nv, v.numel()])
        slope, z = rates(at, u_i, z_i + correction, p, q[i * nq : (i + 1) * nq], t[i])
        slopes.append(slope)
        correction = z - z_i
    K = ca.horzcat(*slopes)
    errors = [ca.mtimes(K, ca.DM(weights)) for weights in (scipy.integrate.DOP853.E5, scipy.integrate.DOP853.E3)]
    step = ca.Function("step", [start, v, p, q, t, h], [ca.vertcat(at, correction), *errors])
    return step, step.mapaccum(at_once)
