"""Compiled integration: a system's library and the call of its integrator."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_double, c_int, c_longlong

import numpy as np

from designopt.arrays import Vector
from designopt.dynamics.compile import load_library
from designopt.dynamics.signals import Signal
from designopt.dynamics.simulation.codegen import c_source
from designopt.dynamics.simulation.tableau import RosenbrockMethod
from designopt.dynamics.simulation.trajectory import SimulationStatus, Trajectory, describe
from designopt.dynamics.system import System

_STATUSES = (
    SimulationStatus.DONE,
    SimulationStatus.GUARD,
    SimulationStatus.STEP_LIMIT,
    SimulationStatus.STEP_TOO_SMALL,
    SimulationStatus.NONFINITE,
)


class _Method(Structure):
    _fields_ = (
        ("stages", c_longlong),
        ("order", c_longlong),
        ("gamma", c_double),
        *((name, POINTER(c_double)) for name in ("alpha", "gamma_sum", "a", "c", "m", "e", "d2", "d3")),
        ("new_f", POINTER(c_longlong)),
    )


class _Signal(Structure):
    _fields_ = (("knots", POINTER(c_double)), ("coefficients", POINTER(c_double)), ("pieces", c_longlong))


class _Problem(Structure):
    _fields_ = (
        *((name, POINTER(c_double)) for name in ("x0", "u", "p", "q", "times", "rtol", "atol")),
        ("n_times", c_longlong),
        ("max_steps", c_longlong),
        ("first_step", c_double),
        ("fixed_step", c_double),
        ("signals", POINTER(_Signal)),
    )


class _Result(Structure):
    _fields_ = (
        *((name, POINTER(c_double)) for name in ("t", "x", "y")),
        *((name, c_longlong) for name in ("rows", "steps", "rejected", "evaluations", "guard")),
        ("last_step", c_double),
        ("transition", POINTER(c_double)),
    )


class CompiledRosenbrock:
    """A system compiled with the Rosenbrock integrator; raises `CompilerError` when that cannot be done.

    Calls release the interpreter's lock and share nothing: one object serves any number of threads.
    """

    def __init__(
        self,
        system: System,
        method: RosenbrockMethod,
        rtol: Vector,
        atol: Vector,
        max_steps: int,
        signals: Sequence[str] = (),
    ) -> None:
        self._system = system
        self._rtol, self._atol, self._max_steps = rtol, atol, max_steps
        self._simulate = load_library(c_source(system, signals), system.name).designopt_simulate
        self._simulate.argtypes = (POINTER(_Problem), POINTER(_Method), POINTER(_Result))
        self._simulate.restype = c_int
        self._tableau = {
            name: np.ascontiguousarray(getattr(method, name))
            for name in ("alpha", "gamma_sum", "a", "c", "m", "e", "d2", "d3")
        }
        self._new_f = method.new_f
        self._method = _Method(
            stages=method.stages,
            order=method.order,
            gamma=method.gamma,
            new_f=self._new_f.ctypes.data_as(POINTER(c_longlong)),
            **{name: _pointer(array) for name, array in self._tableau.items()},
        )

    def run(
        self,
        x0: Vector,
        times: Vector,
        p: Vector,
        q: Vector,
        u: Vector,
        first_step: float | None,
        step: float | None,
        signals: Sequence[Signal] = (),
        transition: bool = False,
    ) -> Trajectory:
        """Integrate over `times` (checked before); `step` turns error control off."""
        followed = (_Signal * max(len(signals), 1))(
            *(_Signal(_pointer(knots), _pointer(c), len(c)) for knots, c in (signal.pieces for signal in signals))
        )
        rows, nx, ny = len(times) + 1, len(x0), len(self._system.outputs)
        t, x, y = np.empty(rows), np.empty((rows, nx)), np.empty((rows, ny))
        problem = _Problem(
            x0=_pointer(x0),
            u=_pointer(u),
            p=_pointer(p),
            q=_pointer(q),
            times=_pointer(times),
            rtol=_pointer(self._rtol),
            atol=_pointer(self._atol),
            n_times=len(times),
            max_steps=self._max_steps,
            first_step=first_step or 0.0,
            fixed_step=step or 0.0,
            signals=followed,
        )
        result = _Result(t=_pointer(t), x=_pointer(x), y=_pointer(y))
        columns = np.empty((nx, nx))
        if transition:
            result.transition = _pointer(columns)
        ended = self._simulate(byref(problem), byref(self._method), byref(result))
        if ended >= len(_STATUSES):
            raise MemoryError(f"{self._system.name}: no memory for the integration")
        n, status = result.rows, _STATUSES[ended]
        guard = None if result.guard < 0 else self._system.guards[result.guard]
        names = [v.name for v in self._system.states]
        return Trajectory(
            status=status,
            message=describe(status, names, t[n - 1], x[n - 1], guard),
            t=t[:n],
            x=x[:n],
            y=y[:n],
            steps=result.steps,
            rejected=result.rejected,
            evaluations=result.evaluations,
            last_step=result.last_step,
            guard=guard,
            transition=np.ascontiguousarray(columns.T) if transition and status is SimulationStatus.DONE else None,
        )


def _pointer(array: Vector) -> ctypes._Pointer[c_double]:
    return array.ctypes.data_as(POINTER(c_double))
