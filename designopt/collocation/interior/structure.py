"""Newton's equations of a program: positions of the entries of Hessian and Jacobian in their symmetric matrix."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Mask
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.transcription import Transcription

Indices = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class KKTStructure:
    """The matrix of free variables, slacks and equations, in this order: its lower triangle column by column, from
    `begin` on in `row`. Entry k of the program's Hessian goes from ``w_from[k]`` to ``w_to[k]``, of the Jacobian from
    ``j_from[k]`` to ``j_to[k]``.

    `column` (free,) and `equation` (m,) are the indices of variables and equations in the program; `slack_row` is the
    equation of a slack, `slack_to` the position of its entry, `diagonal` (n + m,) the positions of the diagonal.
    """

    column: Indices
    equation: Indices
    slack_row: Indices
    begin: Indices
    row: Indices
    diagonal: Indices
    slack_to: Indices
    w_from: Indices
    w_to: Indices
    j_from: Indices
    j_to: Indices
    j_row: Indices
    j_col: Indices

    @cached_property
    def addresses(self) -> dict[str, int]:
        """Memory address of each table, by its name."""
        return {table.name: getattr(self, table.name).ctypes.data for table in fields(self)}

    @property
    def n(self) -> int:
        """Number of variables and slacks."""
        return len(self.column) + len(self.slack_row)


def kinds(bounds: ProgramBounds) -> tuple[Mask, Mask, Mask]:
    """Masks of the free variables, of the rows with a limit, and of those with two different limits."""
    limited = np.isfinite(bounds.row_low) | np.isfinite(bounds.row_high)
    return bounds.low < bounds.high, limited, limited & (bounds.row_low < bounds.row_high)


def _places(pattern: Any) -> tuple[Indices, Indices]:
    """Rows and columns of the nonzeros of a CasADi pattern."""
    begin = np.array(pattern.colind(), np.int32)
    return np.fromiter(pattern.row(), np.int32, begin[-1]), np.repeat(
        np.arange(len(begin) - 1, dtype=np.int32), np.diff(begin)
    )


def structure(transcription: Transcription, free: Mask, limited: Mask, slack: Mask) -> KKTStructure:
    """The structure of a program with the `free` variables (n,) and the `limited` rows (m,), some with a `slack`."""
    column, equation = np.flatnonzero(free), np.flatnonzero(limited)
    slack_row = np.flatnonzero(slack[equation])
    count, n, m = len(column), len(column) + len(slack_row), len(equation)
    of_column = np.where(free, np.cumsum(free) - 1, -1).astype(np.int32)
    of_row = np.where(limited, np.cumsum(limited) - 1, -1).astype(np.int32)

    rows, columns = _places(transcription.jacobian.sparsity_out(1))
    j_row, j_col = of_row[rows], of_column[columns]
    j_from = np.flatnonzero((j_row >= 0) & (j_col >= 0))
    j_row, j_col = j_row[j_from], j_col[j_from]

    rows, columns = _places(transcription.hessian.sparsity_out(0))
    first, second = of_column[rows], of_column[columns]
    w_from = np.flatnonzero((first >= 0) & (second >= 0))
    first, second = first[w_from], second[w_from]

    every = np.arange(n + m, dtype=np.int32)
    lower = np.concatenate([np.maximum(first, second), n + j_row, n + slack_row, every])
    columns = np.concatenate([np.minimum(first, second), j_col, count + np.arange(len(slack_row)), every])
    keys = columns * np.int64(n + m) + lower
    del rows, columns, lower, first, second
    entries, places = np.unique(keys, return_inverse=True)
    ends = np.cumsum([len(w_from), len(j_from), len(slack_row)])
    w_to, j_to, slack_to, diagonal = np.split(places.ravel(), ends)
    begin = np.searchsorted(entries, np.arange(n + m + 1, dtype=np.int64) * (n + m))
    index_arrays = (column, equation, slack_row, begin, entries % max(n + m, 1), diagonal, slack_to)
    all_of_them = (*index_arrays, w_from, w_to, j_from, j_to, j_row, j_col)
    return KKTStructure(*(np.ascontiguousarray(each, np.int32) for each in all_of_them))
