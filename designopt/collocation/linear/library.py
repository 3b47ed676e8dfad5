"""The solver of linear systems as a library that IPOPT loads, made from the C files beside this one.

MUMPS is made for large systems: of those of a trajectory with fifty to a few hundred intervals, which have many small
fronts, it takes two thirds of the time of a solve. This one takes a quarter of MUMPS' time for them (measured: systems
of 2000 to 5200 equations). IPOPT has interfaces for the solvers it knows, and loads one of them by the names of its
functions: the library has those of HSL_MA97, and nothing else of it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from designopt.dynamics.compile import CompilerError, cache_dir, find_compiler, load_library

logger = logging.getLogger(__name__)

#: In the order in which the compiler reads them, as one text.
PARTS = ("common", "ordering", "graph", "tree", "dense", "factor", "interface")
#: What the solver is called in results.
NAME = "designopt ldl"
#: Where a pivot is zero: with IPOPT's own 1e-20 a cost of 1e21 makes the system of its equations one.
ZERO = 1e-100


def settings(compile: str, given: Mapping[str, object]) -> dict[str, str | float]:
    """The settings by which IPOPT takes the library; none where `compile` is never, `given` settings of IPOPT name
    another solver or a library, or there is no compiler."""
    if compile == "never" or given.keys() & {"linear_solver", "hsllib"}:
        return {}
    path = _made(find_compiler(), cache_dir())
    return {"linear_solver": "ma97", "hsllib": path, "ma97_scaling": "none", "ma97_small": ZERO} if path else {}


def source() -> str:
    """The text that is compiled."""
    folder = files("designopt.collocation.linear")
    return "\n".join(folder.joinpath(f"{part}.c").read_text(encoding="utf-8") for part in PARTS)


@lru_cache(maxsize=4)
def _made(compiler: tuple[str, ...] | None, cache: Path) -> str | None:
    """The path of the library by this compiler, kept in `cache`; None where it cannot be made."""
    if compiler is None:
        return None
    try:
        return load_library(source(), "the linear solver")._name
    except CompilerError as error:
        logger.warning("linear systems are solved with MUMPS instead: %s", error)
        return None
