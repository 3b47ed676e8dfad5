"""A sparse matrix whose nonzeros are fixed linear combinations of the numbers that a function gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Indices = NDArray[np.int64]


@dataclass
class Entries:
    """Collects contributions (row, column, number of the source, factor); source 0 is the constant 1."""

    rows: list[Indices] = field(default_factory=list)
    columns: list[Indices] = field(default_factory=list)
    sources: list[Indices] = field(default_factory=list)
    factors: list[NDArray[np.float64]] = field(default_factory=list)

    def add(self, rows: ArrayLike, columns: ArrayLike, sources: ArrayLike, factors: ArrayLike) -> None:
        """Contributions, broadcast to one shape."""
        given = np.broadcast_arrays(np.asarray(rows), np.asarray(columns), np.asarray(sources), np.asarray(factors))
        for kept, array in zip((self.rows, self.columns, self.sources, self.factors), given, strict=True):
            kept.append(np.ravel(array))  # type: ignore[attr-defined]

    def joined(self) -> tuple[Indices, Indices, Indices, NDArray[np.float64]]:
        """All contributions: rows, columns, sources, factors."""
        if not self.rows:
            nothing = np.empty(0, np.int64)
            return nothing, nothing, nothing, np.empty(0)
        return (
            np.concatenate(self.rows).astype(np.int64),
            np.concatenate(self.columns).astype(np.int64),
            np.concatenate(self.sources).astype(np.int64),
            np.concatenate(self.factors).astype(float),
        )


def combined(
    entries: tuple[Indices, Indices, Indices, NDArray[np.float64]], shape: tuple[int, int], source: Any
) -> Any:
    """The CasADi matrix of `shape` made of collected `entries` from the column `source` (MX)."""
    import casadi as ca

    rows, columns, sources, factors = entries
    keys = columns * shape[0] + rows
    positions, inverse = np.unique(keys, return_inverse=True)
    pattern = _sparsity(shape, positions)
    mixing = constant_matrix(inverse, sources, factors, (len(positions), source.numel()))
    return ca.MX(pattern, ca.mtimes(mixing, source)) if len(positions) else ca.MX(*shape)


def constant_matrix(rows: Indices, columns: Indices, values: NDArray[np.float64], shape: tuple[int, int]) -> Any:
    """A constant sparse CasADi matrix (DM); what falls on one place is added."""
    import casadi as ca
    from scipy.sparse import coo_array

    made = coo_array((values, (rows, columns)), shape=shape).tocsc()
    made.sort_indices()
    return ca.DM(ca.Sparsity(*shape, made.indptr.tolist(), made.indices.tolist()), made.data)


def _sparsity(shape: tuple[int, int], positions: Indices) -> Any:
    """The pattern with nonzeros at sorted `positions`, counted down the columns."""
    import casadi as ca

    counts = np.bincount(positions // shape[0], minlength=shape[1]) if len(positions) else np.zeros(shape[1], int)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return ca.Sparsity(*shape, starts.tolist(), (positions % shape[0]).tolist())
