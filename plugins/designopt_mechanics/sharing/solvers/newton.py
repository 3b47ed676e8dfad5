"""Newton's linear systems of the interior-point method without the rows of a frame: full ones and arrows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from designopt.arrays import Floats, Mask


@dataclass(frozen=True, eq=False)
class DenseSystem:
    """``(hessian + diag(barrier) + G^T diag(pull) G) x = right`` of n frames with v variables.

    `hessian` (n, v) or (n, v, v), `barrier` (n, v) of the bounds, `gradients` G (n, c, v) of the limits, `pull` (n, c).
    Where not `free` (n, v) a variable does not change.
    """

    hessian: Floats
    barrier: Floats
    gradients: Floats
    pull: Floats
    free: Mask

    def solve(self, right: Floats) -> Floats:
        """x (n, v, r); NaN in frames whose numbers are not finite."""
        system = dense(self.hessian) * self.free[:, :, None] * self.free[:, None, :]
        system = system + np.matmul(self.gradients.transpose(0, 2, 1) * self.pull[:, None, :], self.gradients)
        index = np.arange(system.shape[1])
        system[:, index, index] += np.where(self.free, self.barrier, 1.0)
        lost = ~np.isfinite(system).all(axis=(1, 2))
        system[lost] = np.eye(len(index))
        x = np.linalg.solve(system, right)
        x[lost] = np.nan
        return np.asarray(x)

    def limit_products(self, right: Floats, x: Floats) -> Floats:
        """G x (n, c) for the solution x (n, v) of `right` (n, v)."""
        return times(self.gradients, x)


@dataclass(frozen=True, eq=False)
class ArrowSystem:
    """The same where the Hessian is diagonal and limit c is of variable c and the last one, or there is no limit."""

    hessian: Floats
    barrier: Floats
    gradients: Floats
    pull: Floats
    free: Mask

    @cached_property
    def _limited_diagonal(self) -> Floats:
        return np.where(self.free, self.hessian + self.barrier, 1.0)

    @cached_property
    def _slopes(self) -> tuple[Floats, Floats]:
        """The slopes of each limit by its variable and by the last one."""
        index = np.arange(self.gradients.shape[1])
        return self.gradients[:, index, index], self.gradients[:, :, -1]

    @cached_property
    def _diagonal(self) -> Floats:
        diagonal = np.array(self._limited_diagonal)
        own_slopes, _ = self._slopes
        diagonal[:, : own_slopes.shape[1]] += self.pull * own_slopes**2
        return diagonal

    def solve(self, right: Floats) -> Floats:
        """x (n, v, r)."""
        x = right / self._diagonal[:, :, None]
        c = self.gradients.shape[1]
        if not c:
            return np.asarray(x)
        own_slopes, last = self._slopes
        border = self.pull * own_slopes * last
        by_border = border / self._diagonal[:, :c]
        # the diagonal less border by_border, without the cancellation of what each limit puts into both
        pivot = self._limited_diagonal[:, -1] + (
            self.pull * last**2 * self._limited_diagonal[:, :c] / self._diagonal[:, :c]
        ).sum(axis=1)
        end = (right[:, -1] - np.matmul(by_border[:, None, :], right[:, :c])[:, 0]) / pivot[:, None]
        x[:, -1] = end
        x[:, :c] -= by_border[:, :, None] * end[:, None, :]
        return np.asarray(x)

    def limit_products(self, right: Floats, x: Floats) -> Floats:
        """G x (n, c) for the solution x (n, v) of `right` (n, v), without the cancellation of its two terms."""
        c = self.gradients.shape[1]
        own_slopes, last = self._slopes
        return np.asarray(
            (own_slopes * right[:, :c] + last * x[:, -1:] * self._limited_diagonal[:, :c]) / self._diagonal[:, :c]
        )


def times(matrix: Floats, x: Floats) -> Floats:
    """A x (n, m) of A (n, m, v) and x (n, v)."""
    return np.asarray(np.matmul(matrix, x[:, :, None])[:, :, 0])


def transposed_times(matrix: Floats, y: Floats) -> Floats:
    """A^T y (n, v) of A (n, m, v) and y (n, m)."""
    return np.asarray(np.matmul(y[:, None, :], matrix)[:, 0, :])


def dense(hessian: Floats) -> Floats:
    """A copy of Hessians (n, v) or (n, v, v) as full matrices."""
    if hessian.ndim == 3:
        return np.array(hessian)
    full = np.zeros((*hessian.shape, hessian.shape[1]))
    index = np.arange(hessian.shape[1])
    full[:, index, index] = hessian
    return full
