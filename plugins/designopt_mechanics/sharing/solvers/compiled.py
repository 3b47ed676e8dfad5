"""The dual method in C (``dual.c``), one call for all frames; `None` where it cannot be compiled."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

from designopt.arrays import Floats, Integers
from designopt.dynamics.compile import CompilerError, load_library
from designopt_mechanics.sharing.statement.formulation import Formulation

logger = logging.getLogger(__name__)

Kernel = Callable[[Formulation], "BlockSolutions"]


class Outcome(IntEnum):
    """How the dual method ended in a block of a frame."""

    UNSOLVED = 0
    CONVERGED = 1
    INFEASIBLE = 2


@dataclass(frozen=True, eq=False)
class BlockSolutions:
    """`x` (n, v) and `multipliers` (n, m), the `iterations` (n,) of the slowest block, the `outcomes` (n, b) of blocks.

    The block of each row is in `row_blocks` (m,), that of each variable in `column_blocks` (v,), -1 without a row.
    """

    x: Floats
    multipliers: Floats
    iterations: Integers
    outcomes: Integers
    row_blocks: Integers
    column_blocks: Integers


@lru_cache(maxsize=1)
def kernel() -> Kernel | None:
    """The compiled method; None if it cannot be compiled, which is logged once."""
    try:
        text = files("designopt_mechanics.sharing.solvers").joinpath("dual.c").read_text(encoding="utf-8")
        function = load_library(text, "the dual method of sharing").designopt_share
    except CompilerError as error:
        logger.info("muscle forces are shared with numpy, which is slower: %s", error)
        return None
    function.restype = ctypes.c_longlong
    return lambda formulation: _block_solutions(function, formulation)


def _block_solutions(function: Any, formulation: Formulation) -> BlockSolutions:
    cost, (n, m, v) = formulation.cost, formulation.matrix.shape
    wide = [np.broadcast_to(t, (v, t.shape[1])) for t in (cost.weight, cost.exponent, cost.quadratic, cost.linear)]
    arrays = [
        np.ascontiguousarray(array, dtype=np.float64)
        for array in (formulation.matrix, formulation.right_side, formulation.lower, formulation.upper, *wide)
    ]
    solutions = BlockSolutions(
        np.empty((n, v)),
        np.empty((n, m)),
        np.empty(n, dtype=np.int64),
        np.empty((n, m), dtype=np.int8),
        np.empty(m, dtype=np.int64),
        np.empty(v, dtype=np.int64),
    )
    blocks = function(
        (ctypes.c_longlong * 4)(n, m, v, cost.saturating),
        (ctypes.c_void_p * 8)(*(array.ctypes.data for array in arrays)),
        (ctypes.c_longlong * 4)(*(array.shape[1] for array in arrays[4:])),
        *(
            ctypes.c_void_p(array.ctypes.data)
            for array in (
                solutions.row_blocks, solutions.column_blocks, solutions.outcomes,
                solutions.x, solutions.multipliers, solutions.iterations,
            )
        ),
    )  # fmt: skip
    if blocks < 0:
        raise MemoryError("no memory to share forces among muscles")
    return BlockSolutions(
        solutions.x,
        solutions.multipliers,
        solutions.iterations,
        solutions.outcomes[:, :blocks],
        solutions.row_blocks,
        solutions.column_blocks,
    )
