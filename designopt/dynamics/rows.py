"""A CasADi function evaluated over rows of arrays: frames of a trial, points of a trajectory, many designs."""

from __future__ import annotations

import ctypes
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from ctypes import POINTER, c_longlong, c_void_p
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.dynamics.compile import CompilerError, load_library
from designopt.lazy import casadi as ca

if TYPE_CHECKING:
    from designopt.dynamics.system import System, Variable

logger = logging.getLogger(__name__)

Shape = tuple[int, int]

#: Approximate count of numbers per block of the interpreted path.
_IN_WORK = 1 << 17


class Rows:
    """A CasADi `function` over rows: `rows(*args)` takes one array per input and returns a tuple of arrays.

    An input of k entries is an array (n, k), or (k,) for one value in all rows; a scalar is (n,), (n, 1) or a number; a
    matrix is (n, r, c) or (r, c). Results have n rows: (n,) for a scalar, (n, r) for a vector, (n, r, c) for a matrix.
    If no input has rows, n is 1. Each row depends on its own arguments alone: NaN in one does not affect the others.

    The loop over rows is generated C code, compiled and cached. With ``compiled="auto"`` and no compiler (or one that
    fails, which is logged) CasADi's own map is used instead, with the same numbers to round-off. ``compiled=True`` then
    raises `CompilerError`; ``compiled=False`` does not look for a compiler. The attribute `compiled` states the path in
    use. The memory beyond arguments and results does not grow with n. Threads may share one object.
    """

    def __init__(self, function: ca.Function, compiled: Literal["auto"] | bool = "auto") -> None:
        if compiled not in ("auto", True, False):
            raise ValueError(f"compiled must be 'auto', True or False, not {compiled!r}")
        self._name = function.name()
        self._names = list(function.name_in())
        self._in: list[Shape] = [function.size_in(i) for i in range(function.n_in())]
        self._out: list[Shape] = [function.size_out(i) for i in range(function.n_out())]
        flat = _flat(function)
        self._evaluate: _RowLoop = _MappedLoop(flat)
        self.compiled = False
        if compiled is not False:
            try:
                self._evaluate = _CompiledLoop(flat, self._name)
                self.compiled = True
            except CompilerError as error:
                if compiled is True:
                    raise
                logger.warning("%s runs over rows interpreted, several times slower: %s", self._name, error)

    def __call__(self, *args: ArrayLike) -> tuple[Floats, ...]:
        """The results for `args`. Raises `ValueError` for arrays whose shapes do not match the inputs or each other."""
        if len(args) != len(self._names):
            raise ValueError(
                f"{self._name} takes {len(self._names)} arrays ({', '.join(self._names)}), not {len(args)}"
            )
        arrays = [self._array(*argument) for argument in zip(self._names, self._in, args, strict=True)]
        counts = {name: len(a) for name, a in zip(self._names, arrays, strict=True) if a.ndim == 2}
        if len(set(counts.values())) > 1:
            row_counts = ", ".join(f"{name} has {n}" for name, n in counts.items())
            raise ValueError(f"{self._name}: the arrays differ in their number of rows: {row_counts}")
        n = next(iter(counts.values()), 1)
        results = [np.zeros((n, math.prod(shape))) for shape in self._out]  # CasADi may not write a result of zeros
        if n:
            self._evaluate(n, arrays, results)
        return tuple(result.reshape(n, *_row(shape)) for result, shape in zip(results, self._out, strict=True))

    def _array(self, name: str, shape: Shape, argument: ArrayLike) -> Floats:
        """`argument` as a contiguous array (n, size), or (size,) if all rows share it."""
        try:
            array = np.asarray(argument, dtype=np.float64, order="C")
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self._name}: {name} is not an array of numbers: {error}") from error
        row, size = _row(shape), math.prod(shape)
        row_shapes = [row] if row else [(), (1,)]
        if array.shape in row_shapes:
            return array.reshape(size)
        if array.ndim and array.shape[1:] in row_shapes:
            return array.reshape(len(array), size)
        rows = f"({', '.join(map(str, ('n', *row)))}{'' if row else ','})"
        row_text = row if row else "a number"
        raise ValueError(f"{self._name}: {name} has shape {array.shape}, not {rows} or {row_text} for all rows")


def outputs_over(
    system: System,
    values: Mapping[str, ArrayLike],
    parameters: Mapping[str, float],
    data: Mapping[str, ArrayLike],
    times: Floats,
) -> dict[str, Floats]:
    """The outputs (n,) of a `system` by name at `times` (n,) in s.

    `values` (n,) are those of states, controls and algebraic variables by name, `parameters` numbers, `data` arrays
    (n,) or numbers.
    """

    def columns(table: Sequence[Variable], values: Mapping[str, ArrayLike]) -> Floats:
        if not table:
            return np.zeros(0)
        return np.stack([np.broadcast_to(values[v.name], len(times)) for v in table], axis=1)

    if system.output is None:
        return {}
    moving = (columns(table, values) for table in (system.states, system.controls, system.algebraic))
    p = np.array([parameters[v.name] for v in system.parameters])
    (y,) = Rows(system.output, compiled=False)(*moving, p, columns(system.data, data), times)
    return dict(zip((v.name for v in system.outputs), y.T, strict=True))


def _row(shape: Shape) -> tuple[int, ...]:
    """The shape of one row's array for an input or result of `shape`: (), (size,) or (r, c)."""
    if shape == (1, 1):
        return ()
    return shape if min(shape) > 1 else (math.prod(shape),)


def _flat(function: ca.Function) -> ca.Function:
    """`function` with dense columns as arguments and results, matrices row by row as in NumPy."""
    columns = [ca.MX.sym(f"i{i}", function.numel_in(i)) for i in range(function.n_in())]
    shapes = [function.size_in(i) for i in range(function.n_in())]
    arguments = [ca.reshape(x, c, r).T for x, (r, c) in zip(columns, shapes, strict=True)]
    results = [ca.vec(ca.densify(result).T) for result in function.call(arguments)]
    flat = ca.Function("rows_function", columns, results)
    try:
        return flat.expand()
    except RuntimeError:  # look-up tables and external functions cannot be expanded
        return flat


class _RowLoop(Protocol):
    """Fills `results` (n, size) from `arrays`, (n, size) or (size,), all contiguous, for n of at least 1."""

    def __call__(self, n: int, arrays: Sequence[Floats], results: Sequence[Floats]) -> None: ...


class _CompiledLoop:
    """The loop in C (interface: see ``rows.c``). Raises `CompilerError` if it cannot be compiled."""

    def __init__(self, flat: ca.Function, name: str) -> None:
        generator = ca.CodeGenerator("rows", {"with_header": False})
        try:
            generator.add(flat)
            code = generator.dump()
        except RuntimeError as error:
            raise CompilerError(f"the function cannot be written in C: {error}") from error
        sizes = f"#define N_IN {flat.n_in()}\n#define N_OUT {flat.n_out()}\n"
        loop = files("designopt.dynamics").joinpath("rows.c").read_text(encoding="utf-8")
        self._loop = load_library(f"{code}\n{sizes}\n{loop}", name).designopt_rows
        self._loop.argtypes = (c_longlong, *(2 * (POINTER(c_void_p), POINTER(c_longlong))))
        self._loop.restype = ctypes.c_int

    def __call__(self, n: int, arrays: Sequence[Floats], results: Sequence[Floats]) -> None:
        if self._loop(n, *_table(arrays), *_table(results)):
            raise MemoryError("no memory to evaluate a function over rows")


def _table(arrays: Sequence[Floats]) -> tuple[ctypes.Array[c_void_p], ctypes.Array[c_longlong]]:
    """The start of each array, and its offset to the next row."""
    starts = (c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))
    steps = (c_longlong * max(len(arrays), 1))(*(a.shape[1] if a.ndim == 2 else 0 for a in arrays))
    return starts, steps


class _MappedLoop:
    """CasADi's map over blocks of rows."""

    def __init__(self, flat: ca.Function) -> None:
        self._flat = flat
        width = sum(flat.numel_in(i) for i in range(flat.n_in())) + sum(flat.numel_out(i) for i in range(flat.n_out()))
        self._block_limit = max(1, _IN_WORK // max(width, 1))

    def __call__(self, n: int, arrays: Sequence[Floats], results: Sequence[Floats]) -> None:
        constant_arrays = [i for i, array in enumerate(arrays) if array.ndim == 1]
        length = 0
        buffer: Any
        evaluate: Any
        for first, count in _blocks(n, self._block_limit):
            if count != length:
                length = count
                buffer, evaluate = self._flat.map(f"map{count}", "serial", count, constant_arrays, []).buffer()
            rows = slice(first, first + count)
            for i, array in enumerate(arrays):
                if array.size:
                    buffer.set_arg(i, array.data if array.ndim == 1 else array[rows].data)
            for i, result in enumerate(results):
                if result.size:
                    buffer.set_res(i, result[rows].data)
            evaluate()


def _blocks(n: int, limit: int) -> Iterator[tuple[int, int]]:
    """(first row, count) of blocks that cover `n` rows; counts are powers of two up to `limit`, so that few maps serve
    any n."""
    first = 0
    while first < n:
        count = 1 << (min(n - first, limit).bit_length() - 1)
        yield first, count
        first += count
