"""The Matern 5/2 kernel of values and slopes, and its derivatives with respect to points and length scales.

With q the squared distance in length scales, k(q) = (1 + r + r^2/3) exp(-r), r = sqrt(5 q) (Rasmussen & Williams 2006,
equation 4.17). Slopes of a process are jointly normal with its values: their covariances are derivatives of the kernel
(section 9.4 there). Vectors of observations contain all values first, then the slopes along one column after another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

ROOT5 = float(np.sqrt(5.0))
#: The length scales of jumps, relative to those of the process.
JUMP_LENGTH = 0.01
#: The variance of a slope in length scales, relative to that of the values: -2 k'(0).
SLOPE_VARIANCE = 5.0 / 3.0


@dataclass(frozen=True)
class Slopes:
    """Observed slopes `values` (r, c) at the points `rows` (r,) along the `columns` (c,)."""

    rows: Indices
    columns: Indices
    values: Array

    @property
    def flat(self) -> Array:
        """The values in the order of vectors of observations (c * r,)."""
        return self.values.T.ravel()

    def among(self, points: Indices) -> Slopes | None:
        """Those at `points`, with row indices into these; None without any."""
        indices = np.flatnonzero(np.isin(self.rows, points))
        if not len(indices):
            return None
        return Slopes(np.searchsorted(points, self.rows[indices]), self.columns, self.values[indices])


def squared_distances(a: Array, b: Array) -> Array:
    """Squared distances (n, m) of points (n, d) and (m, d)."""
    squares = np.einsum("ij,ij->i", a, a)[:, None] + np.einsum("ij,ij->i", b, b)[None] - 2.0 * (a @ b.T)
    return np.asarray(np.maximum(squares, 0.0))


def matern(r2: Array) -> tuple[Array, Array]:
    """The correlation at squared scaled distances, and its derivative with respect to them."""
    r = np.sqrt(r2)
    decay = np.exp(-ROOT5 * r)
    return (1.0 + ROOT5 * r + 5.0 / 3.0 * r2) * decay, -5.0 / 6.0 * (1.0 + ROOT5 * r) * decay


def with_jumps(r2: Array, jumps: float | Array) -> tuple[Array, Array]:
    """`matern` plus `jumps` times the same kernel at JUMP_LENGTH length scales."""
    R, first = matern(r2)
    if not np.any(jumps):
        return R, first
    beside, slope = matern(r2 / JUMP_LENGTH**2)
    return np.asarray(R + jumps * beside), np.asarray(first + jumps / JUMP_LENGTH**2 * slope)


def higher_derivatives(r2: Array) -> tuple[Array, Array]:
    """The second and third derivative of the correlation with respect to squared distances; the third, unbounded at 0,
    is set to 0 there: it occurs only in products with fourth powers of distances."""
    r = np.sqrt(r2)
    decay = np.exp(-ROOT5 * r)
    return 25.0 / 12.0 * decay, np.divide(-25.0 * ROOT5 / 24.0 * decay, r, out=np.zeros_like(r), where=r > 0.0)


def _differences(a: Array, b: Array, column: int) -> Array:
    return np.asarray(a[:, column, None] - b[None, :, column])


def with_observations(at: Array, points: Array, scales: Array, slopes: Slopes | None, jumps: float = 0.0) -> Array:
    """Correlations (k, observations) of values at scaled points `at` (k, d) with the observations at scaled `points`
    (n, d); `scales` (d,) are inverse length scales. Without `jumps` if slopes are observed."""
    r2 = squared_distances(at, points)
    R, first = with_jumps(r2, jumps)
    if slopes is None:
        return R
    first, slope_points = first[:, slopes.rows], points[slopes.rows]
    return np.hstack([R, *(-2.0 * scales[j] * first * _differences(at, slope_points, j) for j in slopes.columns)])


def slopes_with_observations(
    at: Array, points: Array, scales: Array, slopes: Slopes | None, jumps: float = 0.0
) -> tuple[Array, Array]:
    """`with_observations` (observations,) of one point `at` (d,), and its derivatives (observations, d) with respect to
    that point before scaling."""
    apart = at - points
    r2 = np.einsum("ij,ij->i", apart, apart)
    R, first = with_jumps(r2, jumps)
    # dR_i/dx_j = 2 first_i apart_ij scale_j
    outer = 2.0 * first[:, None] * apart * scales
    if slopes is None:
        return R, outer
    first, apart = first[slopes.rows], apart[slopes.rows]
    second, _ = higher_derivatives(r2[slopes.rows])
    values, derivatives = [R], [outer]
    for j in slopes.columns:
        values.append(-2.0 * scales[j] * first * apart[:, j])
        by_point = -4.0 * scales[j] * (second * apart[:, j])[:, None] * apart * scales
        by_point[:, j] -= 2.0 * scales[j] ** 2 * first
        derivatives.append(by_point)
    return np.concatenate(values), np.vstack(derivatives)


def observation_correlations(
    points: Array, scales: Array, slopes: Slopes | None, jumps: float = 0.0
) -> tuple[Array, Array]:
    """Correlations of all observations with each other, without noise, and the derivative of the kernel between the
    points (n, n)."""
    R, kernel_slope = with_jumps(squared_distances(points, points), jumps)
    if slopes is None:
        return R, kernel_slope
    R = with_observations(points, points, scales, slopes)
    slope_points = points[slopes.rows]
    r2 = squared_distances(slope_points, slope_points)
    first, second = matern(r2)[1], higher_derivatives(r2)[0]
    blocks = []
    for j in slopes.columns:
        along, row = _differences(slope_points, slope_points, j), []
        for k in slopes.columns:
            block = -4.0 * scales[j] * scales[k] * second * along * _differences(slope_points, slope_points, k)
            row.append(block - 2.0 * scales[j] ** 2 * first if j == k else block)
        blocks.append(row)
    n = len(points)
    return np.block([[R[:, :n], R[:, n:]], [R[:, n:].T, np.block(blocks)]]), kernel_slope


def noise_of_observations(count: int, scales: Array, slopes: Slopes | None) -> Array:
    """The noise of `count` values and of slopes, each relative to its variance, for a noise of 1."""
    if slopes is None:
        return np.ones(count)
    return np.append(np.ones(count), np.repeat(SLOPE_VARIANCE * scales[slopes.columns] ** 2, len(slopes.rows)))


def along_length_scales(
    W: Array, points: Array, first: Array, scales: Array, slopes: Slopes | None, noise: float
) -> Array:
    """The sum of `W` times the derivative of the correlations, with their `noise`, with respect to the logarithm of the
    length scale of each column (d,); `W` is symmetric, `first` the derivative of the kernel between the points."""
    n = len(points)
    # dR/dlog(length_k) = -2 first * (squared distance along k); the sum over pairs by matrix products
    A = W[:n, :n] * first
    if slopes is None:
        return np.asarray(-4.0 * (A.sum(axis=1) @ points**2) + 4.0 * np.einsum("ij,ij->j", points, A @ points))
    A = -2.0 * A
    rows, columns, r = slopes.rows, slopes.columns, len(slopes.rows)
    slope_points = points[rows]
    r2 = squared_distances(slope_points, slope_points)
    k1, (k2, k3) = matern(r2)[1], higher_derivatives(r2)
    beside1, beside2 = first[:, rows], higher_derivatives(squared_distances(points, slope_points))[0]
    by_own_column = np.zeros(points.shape[1])  # with respect to the length scale of a slope's own column
    inner = np.zeros((r, r))
    apart = {j: _differences(slope_points, slope_points, j) for j in columns}
    for a, j in enumerate(columns):
        begin = n + a * r
        crossing = 2.0 * scales[j] * W[:n, begin : begin + r] * _differences(points, slope_points, j)  # both triangles
        A[:, rows] += 4.0 * crossing * beside2
        by_own_column[j] += 4.0 * float((crossing * beside1).sum())
        diagonal = W[begin : begin + r, begin : begin + r]
        inner += 4.0 * scales[j] ** 2 * diagonal * k2
        by_own_column[j] += 4.0 * scales[j] ** 2 * float((diagonal * k1).sum())
        by_own_column[j] -= 2.0 * noise * SLOPE_VARIANCE * scales[j] ** 2 * float(np.trace(diagonal))
        for b, k in enumerate(columns):
            product = scales[j] * scales[k] * W[begin : begin + r, n + b * r : n + (b + 1) * r] * apart[j] * apart[k]
            inner += 8.0 * product * k3
            np.add.at(by_own_column, [j, k], 8.0 * float((product * k2).sum()))
    A[np.ix_(rows, rows)] += inner
    by_rows, by_columns = A.sum(axis=1) @ points**2, A.sum(axis=0) @ points**2
    return np.asarray(by_rows + by_columns - 2.0 * np.einsum("ij,ij->j", points, A @ points) + by_own_column)
