"""Matrices of many frames with entries nearly everywhere: a product of matrices for each frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Integers, Mask

#: Pairs of entries of the same column, of a matrix that is better multiplied as a whole.
_PAIRS = 4000


def is_full(is_entry: Mask) -> bool:
    """Whether matrices with entries where `is_entry` (m, v) is true are to be multiplied as a whole."""
    entries = is_entry.sum(axis=0)
    return bool((entries * (entries + 1)).sum() > 2 * _PAIRS)


@dataclass(frozen=True, eq=False)
class FullMatrices:
    """The matrices of n frames: `values` (n, m, v). The interface is that of `Matrices`, frames last."""

    values: Floats

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns, frames."""
        n, m, v = self.values.shape
        return m, v, n

    @property
    def numbers(self) -> int:
        """That an operation has in hand for one frame."""
        return int(self.values[:1].size)

    def take(self, frames: Integers | slice) -> FullMatrices:
        """Of some of the frames."""
        return FullMatrices(self.values[frames])

    def times(self, x: Floats) -> Floats:
        """(m, n) A x for x (v, n)."""
        return np.ascontiguousarray(np.matmul(self.values, x.T[:, :, None])[:, :, 0].T)

    def transposed_times(self, y: Floats) -> Floats:
        """(v, n) A^T y for y (m, n)."""
        return np.ascontiguousarray(np.matmul(y.T[:, None, :], self.values)[:, 0, :].T)

    def normal(self, diagonal: Floats) -> Floats:
        """(m, m, n) A diag(d) A^T for d (v, n)."""
        normal_matrices = np.matmul(self.values * diagonal.T[:, None, :], self.values.transpose(0, 2, 1))
        return np.ascontiguousarray(normal_matrices.transpose(1, 2, 0))

    def size(self, diagonal: Floats) -> Floats:
        """(n,) the mean of the diagonal of `normal`."""
        return np.asarray(np.einsum("nmv,vn->n", self.values**2, diagonal) / self.values.shape[1])
