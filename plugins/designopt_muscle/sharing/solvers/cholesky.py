"""Symmetric positive definite systems of many frames at once, frames last."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

#: Pivots up to this, of matrices scaled to a diagonal of 1, are rounding.
_LEAST_PIVOT = 1e-14


def solve_definite(matrices: Vector, right: Vector) -> Vector:
    """The solutions x (m, n) of ``matrices[:, :, k] x[:, k] = right[:, k]`` by Cholesky's factorisation.

    The matrices are scaled to a diagonal of 1 first. Pivots that are not positive beyond rounding belong to rows that
    depend on others: their unknowns are 0.
    """
    m = len(matrices)
    diagonal = np.einsum("iin->in", matrices)
    scale = np.where(diagonal > 0, 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    factor = matrices * scale[:, None] * scale[None, :]
    x = right * scale
    inverse = np.empty_like(x)
    for j in range(m):
        if j:
            factor[j:, j] -= np.einsum("ikn,kn->in", factor[j:, :j], factor[j, :j])
            x[j] -= np.einsum("kn,kn->n", factor[j, :j], x[:j])
        pivot = factor[j, j]
        regular = pivot > _LEAST_PIVOT
        inverse[j] = np.where(regular, 1.0 / np.sqrt(np.where(regular, pivot, 1.0)), 0.0)
        factor[j + 1 :, j] *= inverse[j]
        x[j] *= inverse[j]
    for j in range(m - 1, -1, -1):
        if j + 1 < m:
            x[j] -= np.einsum("kn,kn->n", factor[j + 1 :, j], x[j + 1 :])
        x[j] *= inverse[j]
    return x * scale
