"""The closed loops as machine code: C generated from `step` and the equations of motion, and its driver ``step.c``."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from numpy.typing import NDArray

from designopt.dynamics.compile import CompilerError, lane_flags, load_library
from designopt.dynamics.simulation.scalar_code import scalar_code
from designopt.lazy import casadi as ca
from designopt_regulator.controllers.nested import leaves, with_structure
from designopt_regulator.controllers.pid import Memory
from designopt_regulator.vehicle.step import Loops, MeasuredSignals, References, runge_kutta, sample

logger = logging.getLogger(__name__)


class _Plan(ctypes.Structure):
    """The fields of ``designopt_plan`` in ``step.c``."""

    _fields_ = [
        *((name, ctypes.c_long) for name in ("rows", "samples", "substeps", "step_at", "load_at")),
        *((name, ctypes.c_double) for name in ("h", "bound")),
    ]


@dataclass(frozen=True)
class CompiledLoops:
    """The drivers for loops of one structure: of one row, and of several in lanes."""

    call: Callable[..., int]
    call_in_lanes: Callable[..., int]

    def run(self, plan: dict[str, float], arrays_in: list[NDArray[Any] | None], arrays_out: list[NDArray[Any]]) -> None:
        """Fill `arrays_out`; all arrays are C-contiguous, in the order and of the shapes that ``step.c`` names. Raises
        `MemoryError`.
        """
        call = self.call if plan["rows"] == 1 else self.call_in_lanes
        if not call(ctypes.byref(_Plan(**plan)), *(_address(a) for a in (*arrays_in, *arrays_out))):
            raise MemoryError("no memory for the closed loops")


def compile_step(loops: Loops, states: int) -> CompiledLoops | None:
    """Machine code for loops with this structure and number of states of the vehicle.

    None if it cannot be compiled, which is logged once.
    """
    return _compile(with_structure(loops, iter([0.0] * len(list(leaves(loops))))), states)


@lru_cache(maxsize=8)
def _compile(pattern: Loops, states: int) -> CompiledLoops | None:
    try:
        source = c_source(pattern, states)
        scalar_library, several = (load_library(source, "the closed loops", flags) for flags in ((), lane_flags()))
    except CompilerError as error:
        logger.warning("the closed loops are computed with numpy, which is slower: %s", error)
        return None
    return CompiledLoops(scalar_library.designopt_vehicle, several.designopt_vehicle)


def c_source(pattern: Loops, states: int) -> str:
    """One self-contained C text with ``designopt_vehicle`` for loops of the structure of `pattern`."""
    numbers = ca.SX.sym("numbers", len(list(leaves(pattern))))
    loops = with_structure(pattern, iter(ca.vertsplit(numbers)))
    x, command, load = (ca.SX.sym(name, size) for name, size in (("x", states), ("command", 2), ("load", 2)))
    memory, measurement, references, h = (
        ca.SX.sym(name, size) for name, size in (("memory", 6), ("measurement", 3), ("references", 3), ("h", 1))
    )

    state = tuple(ca.vertsplit(x))
    held_inputs = tuple(ca.vertsplit(command)), tuple(ca.vertsplit(load))
    after = runge_kutta(lambda x: loops.motion.rates(ca, x, *held_inputs), state, h)
    state_terms = ca.vertsplit(memory)
    commands, next_memory = sample(
        ca,
        loops,
        (
            Memory(state_terms[0], state_terms[1], state_terms[2]),
            Memory(state_terms[3], state_terms[4], state_terms[5]),
        ),
        MeasuredSignals(*ca.vertsplit(measurement)),
        References(*ca.vertsplit(references)),
    )
    functions = {
        "vehicle_sample": ([numbers, memory, measurement, references], [commands, tuple(leaves(next_memory))]),
        "vehicle_step": ([numbers, x, command, load, h], [after]),
        "vehicle_power": ([numbers, x], [(loops.motion.drive_power(ca, state),)]),
    }
    code = scalar_code(
        [
            ca.Function(name, arguments, [ca.vertcat(*result) for result in results], {"cse": True})
            for name, (arguments, results) in functions.items()
        ]
    )
    assert code is not None, "an operation of the loops has no lanes"
    sizes = {"NX": states, "NM": 6, "NP": numbers.numel()}
    defines = "".join(f"#define {name} {size}\n" for name, size in sizes.items())
    elementary, driver = (
        files(package).joinpath(name).read_text(encoding="utf-8")
        for package, name in (("designopt.dynamics", "elementary.c"), ("designopt_regulator.vehicle", "step.c"))
    )
    return f"{elementary}\n{code}\n{defines}\n{driver}"


def _address(array: NDArray[Any] | None) -> ctypes.c_void_p | None:
    return None if array is None else array.ctypes.data_as(ctypes.c_void_p)
