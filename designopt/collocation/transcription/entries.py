"""Sparse matrices assembled with index arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats, Indices
from designopt.lazy import casadi as ca

#: Source of constant entries.
ONE = 0


class Entries:
    """A sparse matrix whose nonzeros are fixed linear combinations of function results.

    Results are added as sources; contributions to one position are summed.
    """

    def __init__(self) -> None:
        self._sources: list[Any] = [ca.MX(1.0)]
        self._size = 1
        self._contributions: list[tuple[Any, Any, Any, Any]] = []

    def source(self, numbers: Any) -> int:
        """Add a column of `numbers` (MX) and return the source of its first entry."""
        first = self._size
        self._sources.append(numbers)
        self._size += numbers.numel()
        return first

    def add(self, rows: ArrayLike, columns: ArrayLike, sources: ArrayLike, factors: ArrayLike) -> None:
        """Add ``factor * source`` at (row, column), broadcast to one shape."""
        contribution = np.broadcast_arrays(rows, columns, sources, factors)
        self._contributions.append(tuple(np.ravel(array) for array in contribution))  # type: ignore[arg-type]

    def matrix(self, left: Floats, right: Floats) -> Any:
        """The matrix (MX), its rows multiplied by `left` (m,), its columns by `right` (n,)."""
        shape = (len(left), len(right))
        if not self._contributions:
            return ca.MX(*shape)
        rows, columns, sources, factors = (np.concatenate(part) for part in zip(*self._contributions, strict=True))
        positions, which = _places(rows, columns, shape)
        factors = factors * left[rows] * right[columns]
        mixing = constant_matrix(which, sources, factors, (len(positions), self._size))
        return ca.MX(ca.Sparsity.nonzeros(*shape, positions.tolist()), mixing @ ca.vertcat(*self._sources))


def stretch(column: Any, begin: int, end: int) -> Any:
    """Entries `begin` to `end` of a column (MX); an empty range is a column too, where CasADi makes a row of it."""
    return column[begin:end] if begin < end else ca.MX(0, 1)


def constant_matrix(rows: Indices, columns: Indices, values: Floats, shape: tuple[int, int]) -> Any:
    """A constant sparse CasADi matrix (DM); entries at one position are summed."""
    positions, which = _places(rows, columns, shape)
    sums = np.bincount(which, weights=values, minlength=len(positions))
    return ca.DM(ca.Sparsity.nonzeros(*shape, positions.tolist()), sums.tolist())  # lists convert fastest


def _places(rows: Indices, columns: Indices, shape: tuple[int, int]) -> tuple[Indices, Indices]:
    """The distinct positions, counted down the columns, and the index of each entry among them."""
    order = _order(rows, shape[0])
    order = order[_order(columns[order], shape[1])]
    keys = columns[order] * shape[0] + rows[order]
    is_new = np.concatenate([keys[:1] >= 0, keys[1:] != keys[:-1]])
    which = np.empty(len(keys), np.int64)
    which[order] = np.cumsum(is_new) - 1
    return keys[is_new], which


def _order(keys: Indices, count: int) -> Indices:
    """The permutation that sorts `keys` below `count`, stably and in linear time: NumPy sorts 16-bit integers by
    radix."""
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    if count > 1 << 16:
        order = order[np.argsort((keys[order] >> 16).astype(np.uint16), kind="stable")]
    return order
