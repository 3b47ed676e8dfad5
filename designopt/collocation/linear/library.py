"""The solver of linear systems as a library for IPOPT, compiled from the C files beside this module.

MUMPS is designed for large systems. For a trajectory with fifty to a few hundred intervals, whose matrix has many small
fronts, it takes two thirds of the time of a solve; this solver takes a quarter of MUMPS' time (measured: systems of
2000 to 5200 equations). IPOPT loads the solvers it supports by the names of their functions: the library exports those
of HSL_MA97, and contains nothing else of it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from designopt.dynamics.compile import CompilerError, cache_dir, find_compiler, lane_flags, load_library

logger = logging.getLogger(__name__)

#: Order of the files in the compiled text.
PARTS = ("common", "ordering", "graph", "dense", "nodes", "tree", "factor", "interface")
#: Name of the solver in results.
NAME = "designopt ldl"
#: Zero pivot threshold: with IPOPT's own 1e-20 a cost of 1e21 makes the matrix numerically singular.
ZERO = 1e-100


def settings(compile: str, ipopt_settings: Mapping[str, object]) -> dict[str, str | float]:
    """The settings with which IPOPT loads the library; none if `compile` is never, `ipopt_settings` name another solver
    or library, or there is no compiler."""
    if compile == "never" or ipopt_settings.keys() & {"linear_solver", "hsllib"}:
        return {}
    path = _compiled_path(find_compiler(), cache_dir())
    return {"linear_solver": "ma97", "hsllib": path, "ma97_scaling": "none", "ma97_small": ZERO} if path else {}


def source() -> str:
    """The text that is compiled."""
    folder = files("designopt.collocation.linear")
    return "\n".join(folder.joinpath(f"{part}.c").read_text(encoding="utf-8") for part in PARTS)


@lru_cache(maxsize=4)
def _compiled_path(compiler: tuple[str, ...] | None, cache: Path) -> str | None:
    """The path of the library from this compiler, stored in `cache`; None if compilation fails."""
    if compiler is None:
        return None
    try:
        return load_library(source(), "the linear solver", lane_flags())._name
    except CompilerError as error:
        logger.warning("linear systems are solved with MUMPS instead: %s", error)
        return None
