"""The interior point method in C as a library, compiled from the C files beside this module and those of the linear
solver; the structure of its input."""

from __future__ import annotations

import ctypes
import logging
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from designopt.collocation.linear import library as linear
from designopt.dynamics.compile import CompilerError, cache_dir, find_compiler, lane_flags, load_library

logger = logging.getLogger(__name__)

#: Order of the files in the text, after the linear solver.
PARTS = ("state", "values", "step", "filter", "iterations")

EVALUATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)

_COUNTS = ("n", "free", "m", "columns", "rows", "nz", "w_count", "w_all", "j_count", "j_all")
INTEGERS = (
    *("begin", "row", "diagonal", "column", "equation", "slack_row", "slack_to"),
    *("w_from", "w_to", "j_from", "j_to", "j_row", "j_col"),
)
#: Arrays of one run, one after the other in the memory `numbers`; the C code finds them there.
OF_RUN = ("value", "low", "up", "x", "y", "zl", "zu")
NUMBERS = ("all", "cost", "g", "gradient", "jacobian", "hessian", "cost_factor", "row_factors", "numbers", *OF_RUN)


class RunData(ctypes.Structure):
    """The input of a run: `RunData` of state.c."""

    _fields_ = (
        *((name, ctypes.c_int) for name in _COUNTS),
        *((name, ctypes.c_void_p) for name in (*INTEGERS, *NUMBERS)),
        ("evaluate", EVALUATE),
        ("calls", ctypes.c_void_p),
        ("barrier", ctypes.c_double),
        ("push", ctypes.c_double),
        ("kappa_early", ctypes.c_double),
        ("second_below", ctypes.c_double),
        ("first_shift", ctypes.c_double),
        ("far_off", ctypes.c_double),
        ("warm", ctypes.c_int),
    )


def source() -> str:
    """The text that is compiled."""
    folder = files("designopt.collocation.interior")
    return "\n".join((linear.source(), *(folder.joinpath(f"{p}.c").read_text(encoding="utf-8") for p in PARTS)))


def loaded() -> ctypes.CDLL | None:
    """The library; None without a compiler."""
    return _load_library(find_compiler(), cache_dir())


@lru_cache(maxsize=4)
def _load_library(compiler: tuple[str, ...] | None, cache: Path) -> ctypes.CDLL | None:
    """The library from this compiler, stored in `cache`; None if compilation fails."""
    if compiler is None:
        return None
    try:
        library = load_library(source(), "the interior point method", (*lane_flags(), "-O3"))
    except CompilerError as error:
        logger.warning("programs are solved with IPOPT instead: %s", error)
        return None
    library.interior_new.restype = ctypes.c_void_p
    library.interior_new.argtypes = [ctypes.POINTER(RunData)]
    library.interior_free.argtypes = [ctypes.c_void_p]
    library.interior_free.restype = None
    library.interior_run.argtypes = [ctypes.c_void_p, *3 * [ctypes.c_double], ctypes.c_int]
    library.interior_iterations.argtypes = [ctypes.c_void_p]
    library.interior_cost.argtypes = [ctypes.c_void_p]
    library.interior_cost.restype = ctypes.c_double
    library.interior_records.argtypes = [ctypes.c_void_p]
    library.interior_history.argtypes = 2 * [ctypes.c_void_p]
    library.interior_history.restype = None
    library.interior_iterate.argtypes = 5 * [ctypes.c_void_p]
    library.interior_iterate.restype = None
    return library
