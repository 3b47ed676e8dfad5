"""Interpreted integration: SciPy's LSODA on the CasADi expressions, for machines without a C compiler."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.dynamics.simulation.functions import run_functions
from designopt.dynamics.simulation.interpreted import InterpretedFunctions
from designopt.dynamics.simulation.trajectory import RunInput, SimulationStatus, Trajectory, describe
from designopt.dynamics.system import System
from designopt.lazy import scipy


class InterpretedLsoda:
    """A system's functions evaluated by CasADi and integrated by LSODA (Petzold 1983) with the exact Jacobian."""

    def __init__(self, system: System, rtol: Floats, atol: Floats, max_steps: int, signals: Sequence[str] = ()) -> None:
        self._system = system
        self._rtol, self._atol, self._max_steps = rtol, atol, max_steps
        self._functions = run_functions(system, signals)

    def run(self, run_input: RunInput) -> Trajectory:
        """Integrate. Raises `ValueError` for a fixed step, which LSODA does not support."""
        if run_input.step is not None:
            raise ValueError("step: a fixed step needs a Rosenbrock method and a C compiler")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # LSODA also warns; its status says the same
            return self._run(
                InterpretedFunctions(self._functions, run_input.u, run_input.p, run_input.q, run_input.signals),
                run_input,
            )

    def run_several(self, run_inputs: Sequence[RunInput]) -> list[Trajectory]:
        """`run` one after the other."""
        return [self.run(run_input) for run_input in run_inputs]

    def _run(self, functions: InterpretedFunctions, run_input: RunInput) -> Trajectory:
        x0, times, first_step, transition = run_input.x0, run_input.times, run_input.first_step, run_input.transition
        system, start, end = self._system, times[0], times[-1]
        guard = functions.guard
        rows = np.empty((len(times) + 1, len(x0)))
        rows[0] = x0
        row_count, time, state = 1, start, x0
        steps, last_step = 0, first_step or 0.0
        status, name = SimulationStatus.DONE, self._violated_guard(guard(x0, start))
        if name is not None:
            status = SimulationStatus.GUARD
        elif not (np.isfinite(functions.rates(x0, start)).all() and np.isfinite(functions.jacobian(x0, start)).all()):
            status = SimulationStatus.NONFINITE
        else:
            first = None if first_step is None else min(first_step, end - start)
            size = len(x0)
            equations = self._variational(functions, x0) if transition else self._equations_of_motion(functions, x0)
            solver = scipy.integrate.LSODA(t0=start, t_bound=end, first_step=first, **equations)
            while row_count < len(times):
                if steps >= self._max_steps:
                    status = SimulationStatus.STEP_LIMIT
                    break
                solver.step()
                if solver.status == "failed" or not solver.t > time or not np.isfinite(solver.y).all():
                    status = SimulationStatus.STEP_TOO_SMALL if functions.finite else SimulationStatus.NONFINITE
                    break
                steps += 1
                last_step = solver.t - time
                step_end, name = solver.t, self._violated_guard(guard(solver.y[:size], solver.t))
                if name is not None or times[row_count] < step_end:
                    between = _first(solver.dense_output(), size)
                if name is not None:
                    status = SimulationStatus.GUARD
                    step_end, name = self._locate(guard, between, time, step_end, name)
                while row_count < len(times) and times[row_count] <= step_end:
                    rows[row_count] = solver.y[:size] if times[row_count] == solver.t else between(times[row_count])
                    row_count += 1
                time, state = step_end, solver.y[:size] if name is None else between(step_end)
                if name is not None:
                    break
        t = times[:row_count]
        if status is not SimulationStatus.DONE and time > t[-1]:
            rows[row_count] = state
            t, row_count = np.append(t, time), row_count + 1
        x = rows[:row_count]
        y = np.array([functions.output(*row) for row in zip(x, t, strict=True)]).reshape(row_count, len(system.outputs))
        message = describe(status, [v.name for v in system.states], t[-1], x[-1], name)
        has_transition = transition and status is SimulationStatus.DONE
        return Trajectory(
            status, message, t, x, y, steps, 0, functions.evaluations, float(last_step), name,
            solver.y[size:].reshape(size, size, order="F") if has_transition else None,
        )  # fmt: skip

    def _equations_of_motion(self, functions: InterpretedFunctions, x0: Floats) -> dict[str, Any]:
        """The equations of motion in the form of LSODA."""
        return {
            "fun": lambda t, x: functions.rates(x, t),
            "y0": x0,
            "rtol": self._rtol,
            "atol": self._atol,
            "jac": lambda t, x: functions.jacobian(x, t),
        }

    def _variational(self, functions: InterpretedFunctions, x0: Floats) -> dict[str, Any]:
        """The equations of motion followed by dx/dx0, column by column.

        LSODA's corrector uses the Jacobian without the second derivatives: each column has that of the states. The
        absolute tolerance of an entry is that of its row over that of its column, times the relative one.
        """
        size = len(x0)
        identity = np.eye(size)

        def rates(t: float, state: Floats) -> Floats:
            x, columns = state[:size], state[size:].reshape(size, size)
            return np.concatenate([functions.rates(x, t), (columns @ functions.jacobian(x, t).T).ravel()])

        def jacobian(t: float, state: Floats) -> Floats:
            return np.asarray(np.kron(np.eye(size + 1), functions.jacobian(state[:size], t)))

        return {
            "fun": rates,
            "y0": np.concatenate([x0, identity.ravel()]),
            "rtol": np.tile(self._rtol, size + 1),
            "atol": np.concatenate([self._atol, np.outer(1.0 / self._atol, self._rtol * self._atol).ravel()]),
            "jac": jacobian,
        }

    def _violated_guard(self, g: Floats) -> str | None:
        """Name of the first guard that is not positive."""
        for name, value in zip(self._system.guards, g, strict=True):
            if not value > 0.0:
                return name
        return None

    def _locate(self, guard: Any, between: Any, low: float, high: float, name: str) -> tuple[float, str]:
        """The last time before `high` at which all guards are positive, by bisection, and the guard that ends it."""
        resolution = 1e-12 * max(abs(low), abs(high), high - low)
        while high - low > resolution:
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            broken_guard = self._violated_guard(guard(between(middle), middle))
            if broken_guard is None:
                low = middle
            else:
                high, name = middle, broken_guard
        return low, name


def _first(between: Any, size: int) -> Any:
    """The first entries of a dense solution."""
    return lambda t: between(t)[:size]
