"""A function of one point, called with arrays for many, without CasADi's conversions, in a quarter of the time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.lazy import casadi as ca


class PerPoint:
    """`function` for `count` points: a row of each argument and of each result for each point."""

    def __init__(self, function: Any, count: int) -> None:
        symbols = [ca.MX.sym(f"of_points{k}", function.size1_in(k), count) for k in range(function.n_in())]
        every = SideBySide(symbols, count)
        results = [mapped(function, every)] if function.n_out() == 1 else function.map(count)(*symbols)
        point_function = ca.Function("of_points", symbols, [ca.densify(result) for result in results])
        self._arguments = [np.zeros((count, each.shape[0])) for each in symbols]
        self._results = [np.zeros((count, point_function.size1_out(k))) for k in range(point_function.n_out())]
        buffer: Any
        buffer, self._call = point_function.buffer()
        self._buffer = buffer  # memory used by the call
        for k, argument in enumerate(self._arguments):
            if argument.size:
                buffer.set_arg(k, memoryview(argument.ravel().data))
        for k, result in enumerate(self._results):
            if result.size:
                buffer.set_res(k, memoryview(result.ravel().data))
        self._lock = threading.Lock()

    def __call__(self, *arguments: ArrayLike) -> list[Floats]:
        """The results (count, rows) at arguments (count, rows), or (rows,) for all points."""
        with self._lock:
            for argument, values in zip(self._arguments, arguments, strict=True):
                argument[...] = values
            self._call()
            return [result.copy() for result in self._results]


#: Points per call. CasADi's map takes 0.2 us for each, the operations of a small function a tenth of that.
BLOCK = 16
#: Number of operations from which a function gains nothing.
SMALL = 500


class SideBySide:
    """Arguments (rows, count) for `count` points, split into blocks once for all functions of one point."""

    def __init__(self, arguments: Sequence[Any], count: int) -> None:
        self.count, self.arguments = count, list(arguments)
        self._parts: list[Any] = []

    def with_more(self, *arguments: Any) -> SideBySide:
        """The same with further arguments of these points."""
        more = SideBySide([*self.arguments, *arguments], self.count)
        more._parts = self._parts.copy()
        return more

    def parts(self) -> tuple[list[Any], list[Any]]:
        """The arguments of whole blocks, and those of the rest."""
        edges = [0, self.count - self.count % BLOCK, self.count]
        self._parts += [ca.horzsplit(each, edges) for each in self.arguments[len(self._parts) :]]
        return [first for first, _ in self._parts], [last for _, last in self._parts]


def mapped(function: Any, points: SideBySide) -> Any:
    """The results (rows, count), side by side, of a function with one result at all `points`."""
    count = points.count
    blocks, rest = divmod(count, BLOCK)
    if not blocks or not function.is_a("SXFunction") or function.n_nodes() > SMALL:
        return function.map(count)(*points.arguments)
    block = function.map(BLOCK).expand()
    many = block.map(blocks) if blocks > 1 else block
    if not rest:
        return many(*points.arguments)
    first, last = points.parts()
    return ca.horzcat(many(*first), function.map(rest)(*last))
