"""The interior point method of this package, which needs a C compiler.

The iterations are those of IPOPT (published algorithm and defaults), except that large barrier parameters are reduced
earlier, limits are relaxed by a share of the barrier parameter, steps of second order are tried, shifts of the matrix
are smaller at first, the first multipliers are zero from some guesses, and there is no restoration phase. An iteration
takes a quarter to a half of the time, because the matrix structure, the elimination order and the memory of a program
are set up once, and because entries of Hessian and Jacobian go straight to their positions in the matrix of Newton's
equations.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats, Mask
from designopt.collocation.interior import library
from designopt.collocation.interior.functions import SLOPES, ProgramFunctions, never
from designopt.collocation.solution.solution import Iterate
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.transcription import Transcription

Indices = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class KKTStructure:
    """The structure of the matrix of Newton's equations for free variables, slacks and equations, in this order.

    The matrix has its lower triangle, column by column: the rows of column k are ``row[begin[k]:begin[k + 1]]``. Entry
    k of the program's Hessian goes from ``w_from[k]`` to ``w_to[k]``, of the Jacobian from ``j_from[k]`` to
    ``j_to[k]``. `column` (free,) and `equation` (m,) are the indices of variables and equations in the program;
    `slack_row` is the equation of a slack, `slack_to` the position of its entry, `diagonal` (n + m,) the positions of
    the diagonal.
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
    """Masks of the free variables, of the rows with limits, and of the rows that need a slack, as they have two
    different limits."""
    has_limit = np.isfinite(bounds.row_low) | np.isfinite(bounds.row_high)
    return bounds.low < bounds.high, has_limit, has_limit & (bounds.row_low < bounds.row_high)


def _positions(pattern: Any) -> tuple[Indices, Indices]:
    """Rows and columns of the nonzeros of a CasADi pattern."""
    begin = np.array(pattern.colind(), np.int32)
    return np.fromiter(pattern.row(), np.int32, begin[-1]), np.repeat(
        np.arange(len(begin) - 1, dtype=np.int32), np.diff(begin)
    )


def structure(transcription: Transcription, free: Mask, has_limit: Mask, slack: Mask) -> KKTStructure:
    """The structure for the masks `free` (n,) of variables, and `has_limit` and `slack` (m,) of rows."""
    column, equation = np.flatnonzero(free), np.flatnonzero(has_limit)
    slack_row = np.flatnonzero(slack[equation])
    count, n, m = len(column), len(column) + len(slack_row), len(equation)
    of_column = np.where(free, np.cumsum(free) - 1, -1).astype(np.int32)
    of_row = np.where(has_limit, np.cumsum(has_limit) - 1, -1).astype(np.int32)

    rows, columns = _positions(transcription.jacobian.sparsity_out(1))
    j_row, j_col = of_row[rows], of_column[columns]
    j_from = np.flatnonzero((j_row >= 0) & (j_col >= 0))
    j_row, j_col = j_row[j_from], j_col[j_from]

    rows, columns = _positions(transcription.hessian.sparsity_out(0))
    first, second = of_column[rows], of_column[columns]
    w_from = np.flatnonzero((first >= 0) & (second >= 0))
    first, second = first[w_from], second[w_from]

    every = np.arange(n + m, dtype=np.int32)
    lower = np.concatenate([np.maximum(first, second), n + j_row, n + slack_row, every])
    columns = np.concatenate([np.minimum(first, second), j_col, count + np.arange(len(slack_row)), every])
    keys = columns * np.int64(n + m) + lower
    del rows, columns, lower, first, second
    entries, positions = np.unique(keys, return_inverse=True)
    ends = np.cumsum([len(w_from), len(j_from), len(slack_row)])
    w_to, j_to, slack_to, diagonal = np.split(positions.ravel(), ends)
    begin = np.searchsorted(entries, np.arange(n + m + 1, dtype=np.int64) * (n + m))
    row = entries % max(n + m, 1)
    tables = (column, equation, slack_row, begin, row, diagonal, slack_to, w_from, w_to, j_from, j_to, j_row, j_col)
    return KKTStructure(*(np.ascontiguousarray(each, np.int32) for each in tables))


#: Name of the method in results.
NAME = "designopt interior point"
#: Return values of `Run.go`, as in state.c.
SOLVED, NEAR, LIMIT, STOPPED, LOST = range(5)
#: Maximum number of iterations: the largest C int.
MOST = 2**31 - 1
#: Quantities of an iteration in the history, under the names of IPOPT.
RECORDED = ("obj", "inf_pr", "inf_du", "mu", "d_norm", "alpha_pr")
#: Initial distance from limits and initial barrier parameter, without and with initial multipliers.
PUSH, BARRIER = {False: 1e-2, True: 1e-8}, {False: 0.1, True: 1e-5}
#: Multiple of a barrier parameter above 1e-5 to which its barrier problem is solved; IPOPT's is 10.
KAPPA_EARLY = 100.0
#: Barrier parameter below which steps of second order are tried; IPOPT has none with its default barrier strategy.
SECOND_BELOW = 1e-5
#: First shift of the diagonal, in scaled variables, where the matrix has the wrong inertia; IPOPT's is 1e-4.
FIRST_SHIFT = 1e-6
#: Violation of an equation, relative to its scale, above which the first multipliers by least squares are used only if
#: they leave at most a tenth of the gradient of the Lagrangian; IPOPT always uses them.
FAR_OFF = 5.0


@dataclass(frozen=True, eq=False)
class RunSetup:
    """The common input of all runs with the same limits: the structure of the matrix, the variables (n,) with the
    values of fixed ones, the C structure, and the initial `numbers`, which are the arrays of `library.OF_RUN`, one
    after the other, from the indices `begins` on."""

    structure: KKTStructure
    fixed_values: Floats
    data: library.RunData
    numbers: Floats
    begins: tuple[int, ...]


class Interior:
    """The method for a program, with the compiled `code`."""

    def __init__(self, transcription: Transcription, code: ctypes.CDLL) -> None:
        self.transcription, self.code = transcription, code
        self.functions = ProgramFunctions(transcription)
        self.evaluate = library.EVALUATE(self.functions.evaluate)
        self._structures: dict[tuple[bytes, ...], KKTStructure] = {}
        self._setups: WeakKeyDictionary[ProgramBounds, RunSetup] = WeakKeyDictionary()

    def structure(self, bounds: ProgramBounds) -> KKTStructure:
        """The matrix structure of the program with limits `bounds`; the last one is cached."""
        masks = kinds(bounds)
        key = tuple(mask.tobytes() for mask in masks)
        if key not in self._structures:
            self._structures = {key: structure(self.transcription, *masks)}
        return self._structures[key]

    def setup(self, bounds: ProgramBounds) -> RunSetup:
        """The setup of runs with limits `bounds`, computed once."""
        if bounds not in self._setups:
            self._setups[bounds] = self._new_setup(bounds)
        return self._setups[bounds]

    def _new_setup(self, bounds: ProgramBounds) -> RunSetup:
        transcription, functions, s = self.transcription, self.functions, self.structure(bounds)
        free, m = len(s.column), len(s.equation)
        (low, high), (row_low, row_high) = transcription.box(bounds), transcription.row_box(bounds)
        slacks = s.equation[s.slack_row]
        values = row_low[s.equation]
        values[s.slack_row] = 0.0
        limits = [low[s.column], row_low[slacks], high[s.column], row_high[slacks]]
        numbers = np.concatenate([values, *limits, np.zeros(3 * s.n + m)])
        data = library.RunData(
            n=s.n, free=free, m=m, columns=transcription.layout.size,
            rows=len(transcription.row_scale), nz=len(s.row),
            w_count=len(s.w_from), w_all=len(functions.hessian), j_count=len(s.j_from), j_all=len(functions.jacobian),
            **s.addresses, **functions.addresses,
            evaluate=self.evaluate, kappa_early=KAPPA_EARLY, second_below=SECOND_BELOW, first_shift=FIRST_SHIFT,
            far_off=FAR_OFF,
        )  # fmt: skip
        begins = (0, m, m + s.n, m + 2 * s.n, m + 3 * s.n, 2 * m + 3 * s.n, 2 * m + 4 * s.n)
        return RunSetup(s, np.where(bounds.low < bounds.high, 0.0, low), data, numbers, begins)


class Run:
    """A run of the method within `program_bounds` from scaled variables `x`, with the multipliers of `warm_iterate`
    unless None; it can continue to a smaller tolerance. Raises `MemoryError`."""

    def __init__(
        self, method: Interior, program_bounds: ProgramBounds, x: Floats, warm_iterate: Iterate | None
    ) -> None:
        self._method, self._bounds, self._setup = method, program_bounds, method.setup(program_bounds)
        s, data, warm = self._setup.structure, self._setup.data, warm_iterate is not None
        self._numbers = numbers = self._setup.numbers.copy()  # which the C code reads and writes
        _, _, _, at_x, at_y, at_zl, at_zu = self._setup.begins
        self._x = numbers[at_x : at_x + len(s.column)]
        self._x[:] = x[s.column]
        if warm_iterate is not None:
            y = warm_iterate.constraint_multipliers[s.equation]
            bound_multipliers = np.concatenate([warm_iterate.bound_multipliers[s.column], y[s.slack_row]])
            numbers[at_y:at_zl] = y
            numbers[at_zl:at_zu], numbers[at_zu:] = (
                np.maximum(-bound_multipliers, 0.0), np.maximum(bound_multipliers, 0.0),
            )  # fmt: skip
        data.numbers, data.calls = numbers.ctypes.data, method.functions.calls
        data.warm, data.barrier, data.push = warm, BARRIER[warm], PUSH[warm]
        self._has_begun = False
        self._state = method.code.interior_new(ctypes.byref(data))
        if not self._state:
            raise MemoryError("no memory for the interior point method")

    def __del__(self) -> None:
        if state := getattr(self, "_state", None):
            self._method.code.interior_free(state)

    def go(
        self, tolerance: float, constraint_tolerance: float, acceptable: float, limit: int, stops: Callable[[], bool]
    ) -> int:
        """Iterates to the `tolerance` of multipliers and the violation `constraint_tolerance`, up to `limit` iterations
        in total, or until the run stalls within the tolerance `acceptable`; tests `stops` in every iteration. Raises
        the exceptions of the functions."""
        functions, s = self._method.functions, self._setup.structure
        functions.stops, functions.error = stops, None
        is_user = functions.user() is self
        if not is_user:
            functions.x[:], functions.p[:] = self._setup.fixed_values, self._bounds.parameters
            functions.row_factors[:] = 0.0
        functions.x[s.column] = self._x
        if self._has_begun and not is_user:  # the current derivatives belong to another run
            functions.evaluate(SLOPES)
        functions.user, self._has_begun = ref(self), True
        end_code = int(
            self._method.code.interior_run(self._state, tolerance, constraint_tolerance, acceptable, min(limit, MOST))
        )
        functions.stops = never
        if functions.error is not None:
            raise functions.error
        return end_code

    @property
    def iterations(self) -> int:
        """Number of iterations."""
        return int(self._method.code.interior_iterations(self._state))

    @property
    def cost(self) -> float:
        """The scaled cost."""
        return float(self._method.code.interior_cost(self._state))

    def iterate(self) -> tuple[Iterate, Floats, Floats]:
        """The iterate with the multipliers of all rows and variables; the rows (m,) and the gradient (n,) of cost and
        constraints there, for variables that are not fixed."""
        functions, n = self._method.functions, len(self._setup.fixed_values)
        numbers, gradient = np.zeros(2 * n + len(functions.g)), np.zeros(n)
        numbers[:n] = self._setup.fixed_values
        address = numbers.ctypes.data
        self._method.code.interior_iterate(
            self._state, address, address + 8 * n, address + 16 * n, gradient.ctypes.data
        )
        return Iterate(numbers[:n], numbers[2 * n :], numbers[n : 2 * n]), functions.g.copy(), gradient

    def stats(self) -> Mapping[str, Any]:
        """The number of iterations and their history, under IPOPT's names."""
        history = np.empty((len(RECORDED), self._method.code.interior_records(self._state)))
        self._method.code.interior_history(self._state, history.ctypes.data)
        return {"iter_count": self.iterations, "iterations": dict(zip(RECORDED, history, strict=True))}
