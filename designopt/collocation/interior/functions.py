"""The functions of a program with memory of their own, called without copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from designopt.arrays import Vector
from designopt.collocation.transcription.transcription import Transcription


class ProgramFunctions:
    """Cost, rows and derivatives of `made`: ``evaluate(what)`` reads `x`, `p`, `cost_factor` and `row_factors`, and
    writes `cost` and `g` (what 0), `gradient` and the nonzeros of `jacobian` (1), those of `hessian` (2).

    `addresses` are those of these arrays in memory. After each call it is asked whether it `stops`; what is raised on
    the way is kept as `raised`. `user` is whose search has left what they hold.
    """

    def __init__(self, made: Transcription) -> None:
        n, m = made.layout.size, len(made.row_scale)
        self.x, self.p = np.zeros(n), np.zeros(made.parameter_size)
        self.cost, self.g, self.gradient = np.zeros(1), np.zeros(m), np.zeros(n)
        self.jacobian = np.zeros(made.jacobian.nnz_out(1))
        self.hessian = np.zeros(made.hessian.nnz_out(0))
        self.cost_factor, self.row_factors = np.zeros(1), np.zeros(m)
        shared = {"all": self.x, "cost": self.cost, "g": self.g, "gradient": self.gradient, "jacobian": self.jacobian}
        shared |= {"hessian": self.hessian, "cost_factor": self.cost_factor, "row_factors": self.row_factors}
        self.addresses = {name: each.ctypes.data for name, each in shared.items()}
        given = (self.x, self.p)
        multiplied = (*given, self.cost_factor, self.row_factors)
        self._kept: list[Any] = []  # what the calls work with
        self._calls = (
            (self._call(made.objective, given, 0, self.cost), self._call(made.constraints, given, 0, self.g)),
            (self._call(made.gradient, given, 1, self.gradient), self._call(made.jacobian, given, 1, self.jacobian)),
            (self._call(made.hessian, multiplied, 0, self.hessian),),
        )
        self.stops: Callable[[], bool] = lambda: False
        self.raised: BaseException | None = None
        self.user: object = None

    def _call(self, function: Any, given: tuple[Vector, ...], number: int, result: Vector) -> Any:
        buffer, call = function.buffer()
        for i, each in enumerate(given):
            if each.size:
                buffer.set_arg(i, memoryview(each.data))
        if result.size:
            buffer.set_res(number, memoryview(result.data))
        self._kept.append(buffer)
        return call

    def evaluate(self, what: int) -> int:
        """0, or 1 where the search is to stop."""
        try:
            for call in self._calls[what]:
                call()
        except BaseException as error:  # it would be lost in C
            self.raised = error
            return 1
        return int(self.stops())
