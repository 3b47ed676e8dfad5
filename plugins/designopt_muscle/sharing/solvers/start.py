"""Multipliers from which the dual method starts where no neighbouring frame is known."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Vector
from designopt_muscle.sharing.solvers.batch import Batch, Variables
from designopt_muscle.sharing.solvers.cholesky import solve_definite
from designopt_muscle.sharing.solvers.dual_newton import newton
from designopt_muscle.sharing.statement.cost import Cost


def first_multipliers(batch: Batch) -> Vector:
    """(m, n) the unclipped minimiser of a quadratic cost.

    For other costs the multipliers that fit the slopes of the cost at the minimiser of the weighted squares best.
    """
    of, matrix = batch.variables, batch.matrix
    cost = of.cost
    if cost.is_quadratic:
        diagonal = np.broadcast_to(1.0 / cost.quadratic, matrix.shape[1:])
        at_zero = np.clip(-cost.linear * diagonal, of.lower, of.upper)
        missing = batch.needed - matrix.times(np.broadcast_to(at_zero, matrix.shape[1:]))
        return solve_definite(matrix.normal(diagonal), missing)
    squares = Cost(np.zeros((1, 1)), cost.exponent, cost.quadratic + 2.0 * cost.weight, cost.linear, saturating=False)
    plain = Batch(matrix, batch.needed, Variables(of.lower, of.upper, squares))
    x = newton(plain, first_multipliers(plain), guessed=False).x
    free = ((x > of.lower) & (x < of.upper)).astype(np.float64)
    if cost.saturating:
        x = np.clip(x, -0.999, 0.999)
    weight = free / np.maximum(cost.curvature(x), 1e-12) + 1e-9
    slopes = matrix.times(weight * cost.slope(x))
    return solve_definite(matrix.normal(weight), slopes)
