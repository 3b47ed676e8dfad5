"""The functions of a program, interpreted by CasADi or compiled, which write into memory that the C code reads."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.transcription.transcription import Transcription
from designopt.dynamics.compile import CompilerError, load_library
from designopt.lazy import casadi as ca

logger = logging.getLogger(__name__)

#: Requests to the functions, as in state.c.
VALUES, SLOPES, CURVATURE, NOTHING = range(4)
#: Requests after which `stops` is tested.
WITH_STOPS = (SLOPES, NOTHING)
#: Maximum number of variables of a program that is compiled, because the C text grows with that number.
MOST_VARIABLES = 5000
#: Types of functions that CasADi can write as C text.
WRITABLE = frozenset(("SXFunction", "MXFunction", "Map"))
#: The head of CasADi's product of two sparse matrices in C, and what follows for a dense vector, with which derivatives
#: of points become those of the program: the same sums in the same order in half of the time.
PRODUCT = (
    "void casadi_mtimes(const casadi_real* x, const casadi_int* sp_x, const casadi_real* y, const casadi_int* sp_y, "
    "casadi_real* z, const casadi_int* sp_z, casadi_real* w, casadi_int tr) {\n"
)
PRODUCT_WITH_VECTOR = """\
  if (!tr && sp_y[1] == 1 && sp_y[3] == sp_y[0] && sp_z[3] == sp_z[0]) {
    const casadi_int *end = sp_x + 3, *row = sp_x + 3 + sp_x[1];
    casadi_real *restrict sum = z;
    casadi_int j, k = 0;
    for (j = 0; j < sp_x[1]; ++j) {
      casadi_real factor = y[j];
      for (; k < end[j]; ++k) sum[row[k]] += x[k] * factor;
    }
    return;
  }
"""


class Call(ctypes.Structure):
    """A compiled function with its arguments, results and memory: `Call` of state.c."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in ("arguments", "results", "integers", "reals")),
    )


class ProgramFunctions:
    """Cost, rows and derivatives of a program: ``evaluate(request)`` reads `x`, `p`, `cost_factor` and `row_factors`,
    and writes `cost` and `g` (VALUES), `gradient` and the nonzeros of `jacobian` (SLOPES), those of `hessian`
    (CURVATURE), or nothing (NOTHING).

    `addresses` are the memory addresses of these arrays, `calls` that of the compiled functions (None: interpreted).
    `stops` is tested once in an iteration; an exception of a function is stored as `error`. `user` returns the run to
    which the current values belong, None if it is gone: the functions do not extend its life, as its factors need much
    memory.
    """

    def __init__(self, transcription: Transcription) -> None:
        n, m = transcription.layout.size, len(transcription.row_scale)
        self.x, self.p = np.zeros(n), np.zeros(transcription.parameter_size)
        self.cost, self.g, self.gradient = np.zeros(1), np.zeros(m), np.zeros(n)
        self.jacobian = np.zeros(transcription.jacobian.nnz_out(1))
        self.hessian = np.zeros(transcription.hessian.nnz_out(0))
        self.cost_factor, self.row_factors = np.zeros(1), np.zeros(m)
        arrays = {"all": self.x, "cost": self.cost, "g": self.g, "gradient": self.gradient, "jacobian": self.jacobian}
        arrays |= {"hessian": self.hessian, "cost_factor": self.cost_factor, "row_factors": self.row_factors}
        self.addresses = {name: each.ctypes.data for name, each in arrays.items()}
        self.calls: int | None = None
        arguments = (self.x, self.p)
        #: Function, arguments, number of the result and its array, for each request
        self._functions = (
            ((transcription.objective, arguments, 0, self.cost), (transcription.constraints, arguments, 0, self.g)),
            (
                (transcription.gradient, arguments, 1, self.gradient),
                (transcription.jacobian, arguments, 1, self.jacobian),
            ),
            ((transcription.hessian, (*arguments, self.cost_factor, self.row_factors), 0, self.hessian),),
            (),
        )
        self._memory: list[Any] = []  # which the calls use
        self._calls = [[self._interpreted_call(*each) for each in request] for request in self._functions]
        self._is_attempted = False
        self.stops: Callable[[], bool] = never
        self.error: BaseException | None = None
        self.user: Callable[[], object] = lambda: None

    def _interpreted_call(self, function: Any, arguments: tuple[Floats, ...], number: int, result: Floats) -> Any:
        buffer, call = function.buffer()
        for i, each in enumerate(arguments):
            if each.size:
                buffer.set_arg(i, memoryview(each.data))
        if result.size:
            buffer.set_res(number, memoryview(result.data))
        self._memory.append(buffer)
        return call

    def compile(self) -> None:
        """Compiles the functions, unless they are too large or contain functions that CasADi cannot write in C; logs a
        failure. Compiled functions return the same bits in a fifth of the time."""
        functions = [each for request in self._functions for each in request]
        if self._is_attempted:
            return
        self._is_attempted = True
        parts = {part.class_name() for function, *_ in functions for part in (function, *function.find_functions())}
        if len(self.x) > MOST_VARIABLES or not parts <= WRITABLE:
            return
        generator = ca.CodeGenerator("program", {"with_header": False, "casadi_int": "int"})
        for function, *_ in functions:
            generator.add(function)
        try:
            library = load_library(generator.dump().replace(PRODUCT, PRODUCT + PRODUCT_WITH_VECTOR), "the program")
        except CompilerError as error:
            logger.warning("the program is solved with interpreted functions: %s", error)
            return
        calls = (Call * len(functions))(*(self._compiled_call(library, *each) for each in functions))
        self._memory += [library, calls]
        self.calls = ctypes.addressof(calls)
        of_calls = iter(calls)
        self._calls = [[_bound(library, each[0], next(of_calls)) for each in request] for request in self._functions]

    def _compiled_call(
        self, library: ctypes.CDLL, function: Any, arguments: tuple[Floats, ...], number: int, result: Floats
    ) -> Call:
        of_arguments, of_results = (ctypes.c_void_p * function.sz_arg())(), (ctypes.c_void_p * function.sz_res())()
        for i, each in enumerate(arguments):
            of_arguments[i] = each.ctypes.data
        of_results[number] = result.ctypes.data
        integers, reals = np.zeros(function.sz_iw() + 1, np.intc), np.zeros(function.sz_w() + 1)
        self._memory += [of_arguments, of_results, integers, reals]
        address = ctypes.cast(getattr(library, function.name()), ctypes.c_void_p)
        memory = (ctypes.addressof(of_arguments), ctypes.addressof(of_results))
        return Call(address, *memory, integers.ctypes.data, reals.ctypes.data)

    def evaluate(self, request: int) -> int:
        """0, or 1 if the run must stop."""
        try:
            for call in self._calls[request]:
                call()
            return int(request in WITH_STOPS and self.stops())
        except BaseException as error:  # which C would lose
            self.error = error
            return 1


def never() -> bool:
    """No request to stop."""
    return False


def _bound(library: ctypes.CDLL, function: Any, call: Call) -> Any:
    """A Python function without arguments for a compiled one."""
    memory = (ctypes.c_void_p(each) for each in (call.arguments, call.results, call.integers, call.reals))
    return partial(getattr(library, function.name()), *memory, 0)
