"""Matrices of many frames that have their entries at the same places, sparse or full.

A muscle crosses few of the rows. Of sparse matrices only the entries are kept, frames last. Sums over them are products
with sparse matrices of ones and zeros, so that each is one gathering, one multiplication and one sum over all frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt.lazy import scipy

Index = Integers

#: Pairs of entries of the same column, of a matrix that is better multiplied as a whole.
_PAIRS = 4000


@dataclass(frozen=True, eq=False)
class EntryPattern:
    """Positions of e entries: `rows` and `columns` (e,); `by_row` (m, e) and `by_column` (v, e) sum over each.

    `first`, `second` (p,) are the pairs of entries of the same column, and `by_pair` (m (m + 1) / 2, p) sums them into
    the lower triangle of A D A^T at `below` (2, m (m + 1) / 2). The three summing matrices are sparse.
    """

    rows: Index
    columns: Index
    by_row: Any
    by_column: Any
    first: Index
    second: Index
    by_pair: Any
    below: Index

    @classmethod
    def from_mask(cls, is_entry: Mask) -> EntryPattern:
        """The pattern of matrices with entries where `is_entry` (m, v) is true."""
        m, v = is_entry.shape
        columns, rows = (np.asarray(part, dtype=np.int64) for part in np.nonzero(is_entry.T))
        entries = np.arange(len(rows))
        pairs = [
            (i, j) for column in range(v) for i in entries[columns == column] for j in entries[columns == column]
            if rows[i] >= rows[j]
        ]  # fmt: skip
        first, second = (np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1))
        below = np.array(np.tril_indices(m))
        pair_index = np.zeros((m, m), dtype=np.int64)
        pair_index[tuple(below)] = np.arange(below.shape[1])
        by_pair = _adding_up(pair_index[rows[first], rows[second]], below.shape[1])
        return cls(rows, columns, _adding_up(rows, m), _adding_up(columns, v), first, second, by_pair, below)


def _adding_up(indices: Index, size: int) -> Any:
    """The sparse matrix (size, e) that sums entries with the same index in `indices` (e,)."""
    entries = np.arange(len(indices))
    return scipy.sparse.csr_array((np.ones(len(indices)), (indices, entries)), shape=(size, len(indices)))


@dataclass(frozen=True, eq=False)
class Matrices:
    """The matrices of n frames: `values` (e, n) of the entries."""

    pattern: EntryPattern
    values: Floats

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns, frames."""
        return self.pattern.by_row.shape[0], self.pattern.by_column.shape[0], self.values.shape[1]

    @property
    def numbers(self) -> int:
        """The numbers that an operation needs for one frame."""
        return 3 * len(self.values)

    def take(self, frames: Index | slice) -> Matrices:
        """The matrices of some of the frames."""
        return Matrices(self.pattern, self.values[:, frames])

    def times(self, x: Floats) -> Floats:
        """(m, n) A x for x (v, n)."""
        terms = x[self.pattern.columns]
        terms *= self.values
        return np.asarray(self.pattern.by_row @ terms)

    def transposed_times(self, y: Floats) -> Floats:
        """(v, n) A^T y for y (m, n)."""
        terms = y[self.pattern.rows]
        terms *= self.values
        return np.asarray(self.pattern.by_column @ terms)

    def normal(self, diagonal: Floats) -> Floats:
        """(m, m, n) A diag(d) A^T for d (v, n), its lower triangle alone."""
        m, _, n = self.shape
        pattern = self.pattern
        terms = (self.values * diagonal[pattern.columns])[pattern.first]
        terms *= self.values[pattern.second]
        normal_matrices = np.zeros((m, m, n))
        normal_matrices[tuple(pattern.below)] = pattern.by_pair @ terms
        return normal_matrices

    def size(self, diagonal: Floats) -> Floats:
        """(n,) the mean of the diagonal of `normal`."""
        return np.asarray((self.values**2 * diagonal[self.pattern.columns]).sum(axis=0) / self.shape[0])


def is_full(is_entry: Mask) -> bool:
    """Whether matrices with entries where `is_entry` (m, v) is true are to be multiplied as a whole."""
    entries = is_entry.sum(axis=0)
    return bool((entries * (entries + 1)).sum() > 2 * _PAIRS)


@dataclass(frozen=True, eq=False)
class FullMatrices:
    """The matrices of n frames with entries nearly everywhere, `values` (n, m, v); the interface is that of `Matrices`,
    frames last."""

    values: Floats

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns, frames."""
        n, m, v = self.values.shape
        return m, v, n

    @property
    def numbers(self) -> int:
        """The numbers that an operation needs for one frame."""
        return int(self.values[:1].size)

    def take(self, frames: Index | slice) -> FullMatrices:
        """The matrices of some of the frames."""
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
