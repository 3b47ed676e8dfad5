"""Symmetric positive definite systems of many frames at once, frames last."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats

#: Pivots up to this, of matrices scaled to a diagonal of 1, are rounding.
_MIN_PIVOT = 1e-14


def solve_definite(matrices: Floats, right: Floats) -> Floats:
    """The solutions x (m, n) of ``matrices[:, :, k] x[:, k] = right[:, k]`` by Cholesky's factorisation.

    The matrices are scaled to a diagonal of 1 first. Pivots that are not positive beyond rounding belong to rows that
    depend on others: their unknowns are 0.
    """
    m, n = right.shape
    diagonal = np.einsum("iin->in", matrices)
    scale = np.where(diagonal > 0, 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    factor = np.empty((m + 1, m, n))  # the right-hand side is the last row: what is done to rows solves L y = b
    np.multiply(matrices, scale[:, None], out=factor[:m])
    factor[:m] *= scale
    np.multiply(right, scale, out=factor[m])
    inverse = np.empty((m, n))
    for j in range(m):
        if j:
            factor[j:, j] -= np.einsum("ikn,kn->in", factor[j:, :j], factor[j, :j])
        pivot = factor[j, j]
        regular = pivot > _MIN_PIVOT
        inverse[j] = np.where(regular, 1.0 / np.sqrt(np.where(regular, pivot, 1.0)), 0.0)
        factor[j + 1 :, j] *= inverse[j]
    x = factor[m]
    for j in range(m - 1, -1, -1):
        x[j] *= inverse[j]
        x[:j] -= factor[j, :j] * x[j]
    return x * scale
