"""Small vectors and matrices of many frames at once, frames last: (groups, rows, columns, frames).

Only sums and products of whole arrays in a fixed order, so the digits of a frame do not depend on other frames.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from designopt.arrays import Floats


def cross(a: Floats, b: Floats) -> Floats:
    """a × b of vectors (..., 3, frames)."""
    result = np.empty(np.broadcast_shapes(a.shape, b.shape))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        np.multiply(a[..., j, :], b[..., k, :], out=result[..., i, :])
        result[..., i, :] -= a[..., k, :] * b[..., j, :]
    return result


def dot(a: Floats, b: Floats) -> Floats:
    """(..., frames) a · b of vectors (..., 3, frames)."""
    return np.asarray(a[..., 0, :] * b[..., 0, :] + a[..., 1, :] * b[..., 1, :] + a[..., 2, :] * b[..., 2, :])


def rotate(R: Floats, x: Floats) -> Floats:
    """(g, 3, frames) vectors R x of constant x (g, 3), for rotations R (g, 3, 3, frames)."""
    parts = (R[:, :, k] * x[:, k, None, None] for k in range(3))
    return np.asarray(next(parts) + next(parts) + next(parts))


def product(a: Floats, b: Floats) -> Floats:
    """(g, i, k, frames) a b of (g, i, j, frames) and (g, j, k, frames)."""
    result = a[:, :, 0, None] * b[:, None, 0]
    part = np.empty_like(result)
    for j in range(1, a.shape[2]):
        result += np.multiply(a[:, :, j, None], b[:, None, j], out=part)
    return result


def transposed(a: Floats) -> Floats:
    """(g, j, i, frames) of a (g, i, j, frames)."""
    return a.swapaxes(1, 2)


def solve_systems(A: Floats, b: Floats) -> Floats:
    """(g, k, c, frames) x of A x = b by Cholesky's method; A (g, k, k, frames) of few rows, b (g, k, c, frames).

    NaN where A is not positive definite.
    """
    size = A.shape[1]
    L: list[list[Floats]] = []  # the diagonal holds reciprocals
    for i in range(size):
        L.append([])
        for j in range(i + 1):
            left = _difference(A[:, i, j], ((L[i][m], L[j][m]) for m in range(j)))
            L[i].append(1.0 / np.sqrt(left) if i == j else left * L[j][j])
    x: list[Floats] = []
    for i in range(size):
        x.append(_difference(b[:, i], ((L[i][m][:, None], x[m]) for m in range(i))) * L[i][i][:, None])
    for i in reversed(range(size)):
        x[i] = _difference(x[i], ((L[m][i][:, None], x[m]) for m in range(i + 1, size))) * L[i][i][:, None]
    return np.stack(x, axis=1)


def _difference(value: Floats, products: Iterable[tuple[Floats, Floats]]) -> Floats:
    for a, b in products:
        value = value - a * b
    return value
