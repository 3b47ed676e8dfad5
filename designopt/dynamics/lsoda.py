"""Interpreted integration: SciPy's LSODA on the expressions as they stand, for machines without a C compiler."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.dynamics.system import System
from designopt.dynamics.trajectory import SimulationStatus, Trajectory, describe

Vector = NDArray[np.float64]


class InterpretedLsoda:
    """A system's functions evaluated by CasADi and integrated by LSODA (Petzold 1983) with the exact Jacobian."""

    def __init__(self, system: System, rtol: Vector, atol: Vector, max_steps: int) -> None:
        import casadi as ca

        self._system = system
        self._rtol, self._atol, self._max_steps = rtol, atol, max_steps
        arguments = [ca.MX.sym(name, *system.rhs.size_in(i)) for i, name in enumerate(system.rhs.name_in())]
        xdot = system.rhs(*arguments)
        self._rates = _expanded(ca.Function("rates", arguments, [ca.densify(xdot)]))
        self._jacobian = _expanded(ca.Function("jacobian", arguments, [ca.densify(ca.jacobian(xdot, arguments[0]))]))
        self._output = None if system.output is None else _expanded(system.output)
        self._guard = None if system.guard is None else _expanded(system.guard)

    def run(
        self, x0: Vector, times: Vector, p: Vector, q: Vector, u: Vector, first_step: float | None, step: float | None
    ) -> Trajectory:
        """Integrate over `times` (checked before); raises `ValueError` for a fixed `step`, which LSODA has not."""
        if step is not None:
            raise ValueError("step: a fixed step needs a Rosenbrock method and a C compiler")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # LSODA says so what its status says as well
            return self._run(x0, times, p, q, u, first_step)

    def _run(self, x0: Vector, times: Vector, p: Vector, q: Vector, u: Vector, first_step: float | None) -> Trajectory:
        from scipy.integrate import LSODA

        system, start, end = self._system, times[0], times[-1]
        nx = len(x0)
        rates = _Buffered(self._rates, u, p, q, (nx,))
        jacobian = _Buffered(self._jacobian, u, p, q, (nx, nx))
        output = _Buffered(self._output, u, p, q, (len(system.outputs),))
        guard = _Buffered(self._guard, u, p, q, (len(system.guards),))
        evaluations = steps = 0
        finite = True
        rows = np.empty((len(times) + 1, nx))
        rows[0] = x0
        taken, reached, state, last_step = 1, start, x0, first_step or 0.0
        status, name = SimulationStatus.DONE, None

        def f(t: float, x: Vector) -> Vector:
            nonlocal evaluations, finite
            evaluations += 1
            value = rates(x, t)
            finite = bool(np.isfinite(value).all())
            return value

        if (name := self._broken(guard(x0, start))) is not None:
            status = SimulationStatus.GUARD
        elif not (np.isfinite(f(start, x0)).all() and np.isfinite(jacobian(x0, start)).all()):
            status = SimulationStatus.NONFINITE
        else:
            first = None if first_step is None else min(first_step, end - start)
            solver = LSODA(
                f, start, x0, end, first_step=first, rtol=self._rtol, atol=self._atol, jac=lambda t, x: jacobian(x, t)
            )
            while taken < len(times):
                if steps >= self._max_steps:
                    status = SimulationStatus.STEP_LIMIT
                    break
                solver.step()
                failed = solver.status == "failed" or not solver.t > reached or not np.isfinite(solver.y).all()
                if failed:
                    status = SimulationStatus.STEP_TOO_SMALL if finite else SimulationStatus.NONFINITE
                    break
                steps += 1
                last_step = solver.t - reached
                between = solver.dense_output() if guard.rows or times[taken] < solver.t else None
                end_of_step, name = solver.t, self._broken(guard(solver.y, solver.t))
                state = solver.y
                if name is not None:
                    status = SimulationStatus.GUARD
                    end_of_step, state, name = self._locate(guard, between, reached, solver.t, name)
                upto = int(np.searchsorted(times, end_of_step, side="right"))
                if upto > taken:
                    rows[taken:upto] = between(times[taken:upto]).T if between is not None else state
                    if times[upto - 1] == end_of_step:
                        rows[upto - 1] = state
                    taken = upto
                reached, state = end_of_step, state.copy()
                if name is not None:
                    break
        t = times[:taken]
        if status is not SimulationStatus.DONE and reached > t[-1]:
            t, rows[taken], taken = np.append(t, reached), state, taken + 1
        x = rows[:taken]
        y = np.array([output(*row) for row in zip(x, t, strict=True)]).reshape(taken, len(system.outputs))
        message = describe(status, [v.name for v in system.states], t[-1], x[-1], name)
        return Trajectory(status, message, t, x, y, steps, 0, evaluations, float(last_step), name)

    def _broken(self, g: Vector) -> str | None:
        """Name of the first guard that is not positive."""
        for name, value in zip(self._system.guards, g, strict=True):
            if not value > 0.0:
                return name
        return None

    def _locate(self, guard: Any, between: Any, low: float, high: float, name: str) -> tuple[float, Vector, str]:
        """Time and state of the last moment before `high` at which all guards are positive, by bisection."""
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
        return low, between(low), name


class _Buffered:
    """A CasADi function of (x, u, z, p, q, t) at fixed u, p, q, called without conversions; None gives nothing."""

    def __init__(self, function: Any, u: Vector, p: Vector, q: Vector, shape: tuple[int, ...]) -> None:
        self.rows = shape[0]
        self._result = np.zeros(shape[::-1])  # CasADi stores by columns
        if function is None:
            return
        self._x, self._t = np.zeros(function.numel_in(0)), np.zeros(1)
        self._buffer, self._evaluate = function.buffer()
        for i, argument in enumerate((self._x, u, np.zeros(0), p, q, self._t)):
            if argument.size:
                self._buffer.set_arg(i, argument.data)
        self._kept = (u, p, q)
        self._buffer.set_res(0, self._result.data)

    def __call__(self, x: Vector, t: float) -> Vector:
        if self.rows:
            self._x[:] = x
            self._t[0] = t
            self._evaluate()
        return self._result.T.copy()


def _expanded(function: Any) -> Any:
    """`function` as scalar expressions where CasADi can write it so (they are faster), else as it is."""
    import casadi as ca

    arguments = [ca.MX.sym(name, *function.size_in(i)) for i, name in enumerate(function.name_in())]
    dense = ca.Function(function.name(), arguments, [ca.densify(function(*arguments))])
    try:
        return dense.expand()
    except RuntimeError:
        return dense
