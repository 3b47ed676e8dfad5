"""Interpreted integration: SciPy's LSODA on the expressions as they stand, for machines without a C compiler."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.dynamics.functions import run_functions
from designopt.dynamics.interpreted import Interpreted
from designopt.dynamics.signals import Signal
from designopt.dynamics.system import System
from designopt.dynamics.trajectory import SimulationStatus, Trajectory, describe
from designopt.lazy import scipy

Vector = NDArray[np.float64]


class InterpretedLsoda:
    """A system's functions evaluated by CasADi and integrated by LSODA (Petzold 1983) with the exact Jacobian."""

    def __init__(self, system: System, rtol: Vector, atol: Vector, max_steps: int, signals: Sequence[str] = ()) -> None:
        self._system = system
        self._rtol, self._atol, self._max_steps = rtol, atol, max_steps
        self._functions = run_functions(system, signals)

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
    ) -> Trajectory:
        """Integrate over `times` (checked before); raises `ValueError` for a fixed `step`, which LSODA has not."""
        if step is not None:
            raise ValueError("step: a fixed step needs a Rosenbrock method and a C compiler")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # LSODA says so what its status says as well
            return self._run(Interpreted(self._functions, u, p, q, signals), x0, times, first_step)

    def _run(self, model: Interpreted, x0: Vector, times: Vector, first_step: float | None) -> Trajectory:
        system, start, end = self._system, times[0], times[-1]
        guard = model.guard
        rows = np.empty((len(times) + 1, len(x0)))
        rows[0] = x0
        taken, reached, state = 1, start, x0
        steps, last_step = 0, first_step or 0.0
        status, name = SimulationStatus.DONE, self._broken(guard(x0, start))
        if name is not None:
            status = SimulationStatus.GUARD
        elif not (np.isfinite(model.rates(x0, start)).all() and np.isfinite(model.jacobian(x0, start)).all()):
            status = SimulationStatus.NONFINITE
        else:
            first = None if first_step is None else min(first_step, end - start)
            solver = scipy.integrate.LSODA(
                lambda t, x: model.rates(x, t),
                start,
                x0,
                end,
                first_step=first,
                rtol=self._rtol,
                atol=self._atol,
                jac=lambda t, x: model.jacobian(x, t),
            )
            while taken < len(times):
                if steps >= self._max_steps:
                    status = SimulationStatus.STEP_LIMIT
                    break
                solver.step()
                if solver.status == "failed" or not solver.t > reached or not np.isfinite(solver.y).all():
                    status = SimulationStatus.STEP_TOO_SMALL if model.finite else SimulationStatus.NONFINITE
                    break
                steps += 1
                last_step = solver.t - reached
                here, name = solver.t, self._broken(guard(solver.y, solver.t))
                if name is not None or times[taken] < here:
                    between = solver.dense_output()
                if name is not None:
                    status = SimulationStatus.GUARD
                    here, name = self._locate(guard, between, reached, here, name)
                while taken < len(times) and times[taken] <= here:
                    rows[taken] = solver.y if times[taken] == solver.t else between(times[taken])
                    taken += 1
                reached, state = here, solver.y if name is None else between(here)
                if name is not None:
                    break
        t = times[:taken]
        if status is not SimulationStatus.DONE and reached > t[-1]:
            rows[taken] = state
            t, taken = np.append(t, reached), taken + 1
        x = rows[:taken]
        y = np.array([model.output(*row) for row in zip(x, t, strict=True)]).reshape(taken, len(system.outputs))
        message = describe(status, [v.name for v in system.states], t[-1], x[-1], name)
        return Trajectory(status, message, t, x, y, steps, 0, model.evaluations, float(last_step), name)

    def _broken(self, g: Vector) -> str | None:
        """Name of the first guard that is not positive."""
        for name, value in zip(self._system.guards, g, strict=True):
            if not value > 0.0:
                return name
        return None

    def _locate(self, guard: Any, between: Any, low: float, high: float, name: str) -> tuple[float, str]:
        """The last moment before `high` at which all guards are positive, by bisection, and the guard that ends it."""
        resolution = 1e-12 * max(abs(low), abs(high), high - low)
        while high - low > resolution:
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            there = self._broken(guard(between(middle), middle))
            if there is None:
                low = middle
            else:
                high, name = middle, there
        return low, name
