"""Matrices of many frames that have their entries at the same places: a muscle crosses few of the rows.

Only the entries are kept, frames last. Sums over them are products with small matrices of ones and zeros, so that each
is one gathering, one multiplication and one matrix product over all frames.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pattern:
    """Places of e entries: `rows` and `columns` (e,); `by_row` (m, e) and `by_column` (v, e) add up what is in each.

    `first`, `second` (p,) are the pairs of entries of the same column, `pair_columns` (p,) their columns, and `by_pair`
    (m (m + 1) / 2, p) adds them up to the lower triangle of A D A^T at `below` (2, m (m + 1) / 2).
    """

    rows: Index
    columns: Index
    by_row: Vector
    by_column: Vector
    first: Index
    second: Index
    pair_columns: Index
    by_pair: Vector
    below: Index

    @classmethod
    def of(cls, there: NDArray[np.bool_]) -> Pattern:
        """Of matrices with entries where `there` (m, v) is true."""
        m, v = there.shape
        columns, rows = (np.asarray(part, dtype=np.int64) for part in np.nonzero(there.T))
        entries = np.arange(len(rows))
        by_row, by_column = np.zeros((m, len(rows))), np.zeros((v, len(rows)))
        by_row[rows, entries] = by_column[columns, entries] = 1.0
        pairs = [
            (i, j) for column in range(v) for i in entries[columns == column] for j in entries[columns == column]
            if rows[i] >= rows[j]
        ]  # fmt: skip
        first, second = (np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1))
        below = np.array(np.tril_indices(m))
        place = np.zeros((m, m), dtype=np.int64)
        place[tuple(below)] = np.arange(below.shape[1])
        by_pair = np.zeros((below.shape[1], len(pairs)))
        by_pair[place[rows[first], rows[second]], np.arange(len(pairs))] = 1.0
        return cls(rows, columns, by_row, by_column, first, second, columns[first], by_pair, below)


@dataclass(frozen=True, eq=False)
class Matrices:
    """The matrices of n frames: `values` (e, n) of the entries, and the `products` (p, n) of their pairs."""

    pattern: Pattern
    values: Vector
    products: Vector

    @classmethod
    def of(cls, pattern: Pattern, values: Vector) -> Matrices:
        return cls(pattern, values, values[pattern.first] * values[pattern.second])

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns, frames."""
        return len(self.pattern.by_row), len(self.pattern.by_column), self.values.shape[1]

    def take(self, frames: NDArray[np.bool_] | Index | slice) -> Matrices:
        """Of some of the frames."""
        return Matrices(self.pattern, self.values[:, frames], self.products[:, frames])

    def times(self, x: Vector) -> Vector:
        """(m, n) A x for x (v, n)."""
        return np.asarray(self.pattern.by_row @ (self.values * x[self.pattern.columns]))

    def transposed_times(self, y: Vector) -> Vector:
        """(v, n) A^T y for y (m, n)."""
        return np.asarray(self.pattern.by_column @ (self.values * y[self.pattern.rows]))

    def normal(self, diagonal: Vector) -> Vector:
        """(m, m, n) A diag(d) A^T for d (v, n), its lower triangle alone."""
        m, _, n = self.shape
        found = np.zeros((m, m, n))
        found[tuple(self.pattern.below)] = self.pattern.by_pair @ (self.products * diagonal[self.pattern.pair_columns])
        return found

    def size(self, diagonal: Vector) -> Vector:
        """(n,) the mean of the diagonal of `normal`."""
        return np.asarray((self.values**2 * diagonal[self.pattern.columns]).sum(axis=0) / len(self.pattern.by_row))
