"""One step of the explicit method of order 8 of Dormand and Prince along given trajectories of the controls.

Source: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, 1993, section II.10; the coefficients are
SciPy's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from designopt.arrays import Vector
from designopt.collocation.solution.verification.equations import explicit_rates
from designopt.dynamics.system import System
from designopt.lazy import casadi as ca
from designopt.lazy import scipy


def stage_places() -> Vector:
    """The stages (13,) as shares of the step; the last is at its end."""
    return np.concatenate([scipy.integrate.DOP853.C, [1.0]])


@lru_cache(maxsize=16)
def step_functions(system: System, at_once: int) -> tuple[Any, Any]:
    """CasADi functions of one step and of `at_once` steps in a row.

    (x, controls and algebraic variables at all stages, p, data and times at all stages, h) -> states at the end, and
    what times h are the two estimates of their error, of order 5 and 3.
    """
    rates = explicit_rates(system)
    stages, nu, nv = len(stage_places()), len(system.controls), len(system.controls) + len(system.algebraic)
    nx, nq = len(system.states), len(system.data)
    x, h, p = ca.MX.sym("x", nx), ca.MX.sym("h"), ca.MX.sym("p", len(system.parameters))
    v, q, t = ca.MX.sym("v", nv * stages), ca.MX.sym("q", nq * stages), ca.MX.sym("t", stages)
    at: Any = x
    slopes: list[Any] = []
    for i in range(stages):
        if slopes:
            row = scipy.integrate.DOP853.A[i, :i] if i < stages - 1 else scipy.integrate.DOP853.B
            at = x + h * ca.mtimes(ca.horzcat(*slopes), ca.DM(row))
        v_i, q_i = v[i * nv : (i + 1) * nv], q[i * nq : (i + 1) * nq]
        slopes.append(rates(at, v_i[:nu], v_i[nu:], p, q_i, t[i]))
    K = ca.horzcat(*slopes)
    errors = [ca.mtimes(K, ca.DM(weights)) for weights in (scipy.integrate.DOP853.E5, scipy.integrate.DOP853.E3)]
    step = ca.Function("step", [x, v, p, q, t, h], [at, *errors])
    return step, step.mapaccum(at_once)
