"""The additive part of a kernel: effects of single parameters that add up.

The kernel ``(1 - share) k(q) + share mean_g k(G q_g)`` consists of the Matern kernel k of all columns and of one for
each of the G groups of columns alone, with the part q_g of that group in the squared distance q (Plate,
*Behaviormetrika* 26 (1999) 29; Duvenaud, Nickisch & Rasmussen 2011, with the first and the full order). The factor G
gives both parts the same curvature at 0, so that they can have the same length scales. Where effects add up, an
observation informs about all designs with the same value of one parameter, not only about those near it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from designopt.solvers.surrogate.matern import Array, Indices, matern, squared_distances


def with_additive_part(R: Array, a: Array, b: Array, share: float, groups: Indices) -> Array:
    """Correlations (n, m) of scaled points (n, d), (m, d), with this additive `share` of columns in `groups` (d,); `R`
    (n, m) are those of all columns."""
    return R if share == 0.0 else np.asarray((1.0 - share) * R + share * group_correlations(a, b, groups))


def group_correlations(a: Array, b: Array, groups: Indices) -> Array:
    """The mean over `groups` (d,) of the correlations (n, m) of scaled points (n, d) and (m, d) by one group alone."""
    count = int(groups.max()) + 1
    total = np.zeros((len(a), len(b)))
    for columns in groups == np.arange(count)[:, None]:
        total += matern(count * squared_distances(a[:, columns], b[:, columns]))[0]
    return total / count


def group_derivatives(squares: Array, groups: Indices) -> tuple[Array, Array]:
    """`group_correlations` (...) of points with the `squares` (..., d) of their scaled differences along each column,
    and the derivatives (..., d) with respect to these."""
    alike = (groups[:, None] == groups).astype(np.float64)
    count = int(groups.max()) + 1
    R, first = matern(count * (squares @ alike))
    return R @ (1.0 / (count * alike.sum(axis=0))), first


@dataclass(frozen=True)
class GroupKernels:
    """`correlations` (n, n) of scaled points by `group_correlations`, and for each group the squared distances and the
    derivative of its kernel with respect to them, (n, n) each."""

    correlations: Array
    squares: Sequence[Array]
    slopes: Sequence[Array]

    @classmethod
    def between(cls, points: Array, groups: Indices) -> GroupKernels:
        """The kernels between the scaled `points` (n, d) with columns in `groups` (d,)."""
        count = int(groups.max()) + 1
        squares = [
            squared_distances(points[:, columns], points[:, columns]) for columns in groups == np.arange(count)[:, None]
        ]
        kernels = [matern(count * of_group) for of_group in squares]
        total = np.zeros((len(points), len(points)))
        for R, _ in kernels:
            total += R
        return cls(total / count, squares, [first for _, first in kernels])

    def along_lengths(self, W: Array) -> Array:
        """The sum (groups,) of `W` (n, n) times the derivative of the `correlations` with respect to the logarithm of
        the length scale of each group."""
        return np.array(
            [
                -2.0 * float((W * first * squares).sum())
                for first, squares in zip(self.slopes, self.squares, strict=True)
            ]
        )
