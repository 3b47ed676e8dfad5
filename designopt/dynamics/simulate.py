"""Simulation of a system: compiled Rosenbrock integration, or SciPy's LSODA on the interpreted equations."""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from designopt.dynamics.compile import library
from designopt.dynamics.methods import METHODS, Rosenbrock
from designopt.dynamics.system import System, Vector

#: Tolerance at which LSODA stands in for a Rosenbrock method: looser ones were seen to reach a wrong attractor.
FALLBACK_TOLERANCE = 1e-6


class Status(enum.Enum):
    """How a simulation ended; the value is the sentence for the user."""

    DONE = "the end was reached"
    GUARD = "a guard closed: the equations do not hold beyond it"
    STEP_LIMIT = "the step limit was reached: raise max_steps, or loosen the tolerances"
    STEP_UNDERFLOW = "the step became too small for the numbers: the system is singular, or the tolerances too tight"
    NONFINITE = "the equations gave a value that is not a finite number"


_CODES = (Status.DONE, Status.GUARD, Status.STEP_LIMIT, Status.STEP_UNDERFLOW, Status.NONFINITE)


@dataclass(frozen=True)
class Trajectory:
    """Samples of one simulation, as far as it came.

    `t` (k,), `x` (k, n), `y` (k, outputs); `end` is the last time and `x_end` (n,) the state there, also between
    samples. `last_step` is the step that the integrator would take next: give it as ``first_step`` to go on.
    """

    status: Status
    t: Vector
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    end: float
    x_end: Vector
    steps: int
    rejected: int
    evaluations: int
    last_step: float
    guard: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the end was reached."""
        return self.status is Status.DONE

    @property
    def message(self) -> str:
        """Why the simulation ended, with the place."""
        which = f" ({self.guard})" if self.guard else ""
        return f"{self.status.value}{which}; t = {self.end:.6g}"


@dataclass(frozen=True)
class Simulator:
    """How a system is integrated.

    `method` is ``rosenbrock4``, ``rosenbrock3`` (adaptive, stiff, exact Jacobian; compiled) or ``lsoda`` (SciPy's, on
    the interpreted equations). `compiled` None compiles when a compiler exists, True insists, False does not; without
    compiled code a Rosenbrock method is replaced by LSODA at a relative tolerance of at most 1e-6 (`used_method`
    tells). `rtol` and `atol` (a number, or one for each state) bound the error of a step. `step` > 0 takes fixed steps
    without error control, to measure orders of convergence.

    Raises `ValueError` for settings that cannot be used.
    """

    system: System
    method: Literal["rosenbrock4", "rosenbrock3", "lsoda"] = "rosenbrock4"
    rtol: float = 1e-6
    atol: ArrayLike = 1e-8
    max_steps: int = 1_000_000
    largest_step: float = np.inf
    step: float | None = None
    compiled: bool | None = None

    def __post_init__(self) -> None:
        if self.method not in (*METHODS, "lsoda"):
            raise ValueError(f"no method '{self.method}': {', '.join((*METHODS, 'lsoda'))}")
        if self.system.algebraic:
            raise ValueError(f"{self.system.name}: a system with algebraic variables cannot be simulated explicitly")
        atol = np.broadcast_to(np.asarray(self.atol, dtype=float), (len(self.system.states),))
        if not (0.0 < self.rtol < 1.0 and np.isfinite(atol).all() and (atol > 0.0).all()):
            raise ValueError("rtol must be between 0 and 1 and atol positive")
        if self.max_steps < 1 or not self.largest_step > 0.0 or (self.step is not None and not self.step > 0.0):
            raise ValueError("max_steps, largest_step and step must be positive")
        code = None
        if self.method != "lsoda" and self.compiled is not False:
            code = library(self.system, required=self.compiled is True)
        if self.step is not None and code is None:
            raise ValueError("fixed steps need a compiled Rosenbrock method")
        object.__setattr__(self, "_library", code)
        object.__setattr__(self, "_atol", np.ascontiguousarray(atol))
        object.__setattr__(self, "_interpreted", None if code else _Interpreted(self.system))

    @property
    def used_method(self) -> str:
        """The method that runs: ``lsoda`` where a Rosenbrock method has no compiled code."""
        return self.method if self._library else "lsoda"  # type: ignore[attr-defined]

    def run(
        self,
        x0: ArrayLike | Mapping[str, float],
        times: ArrayLike,
        *,
        p: ArrayLike | Mapping[str, float] = (),
        q: ArrayLike | Mapping[str, float] = (),
        u: ArrayLike | Mapping[str, float] = (),
        first_step: float | None = None,
    ) -> Trajectory:
        """Integrate from ``times[0]`` to ``times[-1]`` with samples at all `times` (increasing, at least two).

        States, parameters, data and (constant) controls are numbers in the order of the system's tables or mappings by
        name. Raises `ValueError` for lengths or values that do not fit; everything else is a status.
        """
        s = self.system
        start = s.vector(s.states, x0, "state").copy()
        constants = (
            s.vector(s.controls, u, "control"),
            s.vector(s.parameters, p, "parameter"),
            s.vector(s.data, q, "data"),
        )
        t = np.ascontiguousarray(times, dtype=float)
        if t.ndim != 1 or len(t) < 2 or not (np.diff(t) > 0.0).all() or not np.isfinite(t).all():
            raise ValueError(f"{s.name}: times must be at least two, finite and increasing")
        if self._library:  # type: ignore[attr-defined]
            return self._run_compiled(METHODS[self.method], start, t, constants, first_step)
        return self._run_lsoda(start, t, constants, first_step)

    def _run_compiled(
        self, method: Rosenbrock, x: Vector, t: Vector, constants: tuple[Vector, ...], first_step: float | None
    ) -> Trajectory:
        n, ny = len(self.system.states), len(self.system.outputs)
        xs, ys = np.empty((len(t), n)), np.empty((len(t), ny))
        info, counts = np.zeros(2), np.zeros(6, dtype=np.int64)
        coefficients = np.concatenate(
            [
                [method.gamma],
                *(part.ravel() for part in (method.a, method.c, method.m, method.e, method.alpha, method.gammas)),
                np.empty(0) if method.dense is None else method.dense.ravel(),
            ]
        )
        code = self._library.designopt_integrate(  # type: ignore[attr-defined]
            n,
            ny,
            len(self.system.guards),
            len(t),
            _address(t),
            _address(x),
            *(_address(c) for c in constants),
            len(method.m),
            method.error_order + 1,
            method.dense is not None,
            _address(coefficients),
            self.rtol,
            _address(self._atol),  # type: ignore[attr-defined]
            first_step or 0.0,
            self.largest_step,
            self.step or 0.0,
            self.max_steps,
            _address(xs),
            _address(ys),
            _address(info),
            _address(counts),
        )
        if code >= len(_CODES):
            raise MemoryError(f"{self.system.name}: no memory for the integrator")
        written, closed = int(counts[4]), int(counts[5])
        return Trajectory(
            status=_CODES[code],
            t=t[:written],
            x=xs[:written],
            y=ys[:written],
            end=float(info[0]),
            x_end=x,
            steps=int(counts[1]),
            rejected=int(counts[2]),
            evaluations=int(counts[3]),
            last_step=float(info[1]),
            guard=self.system.guards[closed] if closed >= 0 else None,
        )

    def _run_lsoda(self, x0: Vector, t: Vector, constants: tuple[Vector, ...], first_step: float | None) -> Trajectory:
        """LSODA step by step, so that guards, the step limit and samples work as in compiled code."""
        import warnings

        from scipy.integrate import LSODA

        functions: _Interpreted = self._interpreted  # type: ignore[attr-defined]
        rhs, jacobian, output, guard = functions.bound(*constants)
        tolerance = self.rtol if self.method == "lsoda" else min(self.rtol, FALLBACK_TOLERANCE)
        atol: Vector = self._atol  # type: ignore[attr-defined]
        atol = atol if self.method == "lsoda" else np.minimum(atol, FALLBACK_TOLERANCE)
        xs, ys = [x0], [output(t[0], x0)]
        closed = _closed(guard(t[0], x0))
        status = Status.GUARD if closed is not None else Status.DONE
        if not np.isfinite(rhs(t[0], x0)).all():
            status = Status.NONFINITE
        time, x, steps, size, evaluations = float(t[0]), x0, 0, 0.0, 0
        if status is Status.DONE:
            first = min(first_step, float(t[-1] - t[0])) if first_step else None
            solver = LSODA(
                rhs,
                t[0],
                x0,
                t[-1],
                first_step=first,
                max_step=self.largest_step,
                rtol=tolerance,
                atol=atol,
                jac=jacobian,
            )
        while status is Status.DONE and time < t[-1]:
            if steps >= self.max_steps:
                status = Status.STEP_LIMIT
                break
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # LSODA's own words for a failed step, which becomes a status
                message = solver.step()
            steps, evaluations = steps + 1, solver.nfev
            if solver.status == "failed" or not np.isfinite(solver.y).all():
                finite = np.isfinite(solver.y).all() and np.isfinite(rhs(solver.t, solver.y)).all()
                status = Status.STEP_UNDERFLOW if message and finite else Status.NONFINITE
                break
            interpolant, stop = solver.dense_output(), solver.t
            if (closed := _closed(guard(solver.t, solver.y))) is not None:
                status, (stop, closed) = Status.GUARD, _locate(guard, interpolant, time, solver.t, closed)
            while len(xs) < len(t) and t[len(xs)] <= stop:
                sample = interpolant(t[len(xs)])
                ys.append(output(t[len(xs)], sample))
                xs.append(sample)
            size, time = solver.t - time, stop
            x = interpolant(stop) if status is Status.GUARD else solver.y
        return Trajectory(
            status=status,
            t=t[: len(xs)],
            x=np.array(xs),
            y=np.array(ys).reshape(len(xs), len(self.system.outputs)),
            end=time,
            x_end=np.array(x),
            steps=steps,
            rejected=0,
            evaluations=evaluations,
            last_step=size,
            guard=None if closed is None else self.system.guards[closed],
        )


def _address(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _closed(guards: Vector) -> int | None:
    """Index of the guard that is not positive, the smallest one; None when all are open."""
    wrong = np.isnan(guards) | (guards <= 0.0)
    return int(np.nanargmin(np.where(np.isnan(guards), -np.inf, guards))) if wrong.any() else None


def _locate(
    guard: Callable[[float, Vector], Vector], interpolant: Any, open_: float, shut: float, closed: int
) -> tuple[float, int]:
    """The last time before a guard closes and which one, by bisection on the step's interpolant."""
    for _ in range(50):
        middle = 0.5 * (open_ + shut)
        now = _closed(guard(middle, interpolant(middle)))
        if now is None:
            open_ = middle
        else:
            shut, closed = middle, now
    return open_, closed


class _Interpreted:
    """CasADi functions called through their buffers: no conversion of arguments, a few microseconds a call."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.functions = {
            "rhs": (system.rhs, (len(system.states),)),
            "derivatives": (system.derivatives, (len(system.states),)),
            "output": (system.output, (len(system.outputs),)),
            "guard": (system.guard, (len(system.guards),)),
        }

    def bound(self, u: Vector, p: Vector, q: Vector) -> tuple[Any, Any, Any, Any]:
        """``f(t, x)`` for the rates, their Jacobian, the outputs and the guards, at fixed constants."""
        n = len(self.system.states)
        rates, jacobian, partial = np.zeros(n), np.zeros((n, n)), np.zeros(n)
        rhs = self._call("rhs", (u, p, q), (rates,))
        derivatives = self._call("derivatives", (u, p, q), (np.zeros(n), jacobian, partial))
        figures, open_ = np.zeros(len(self.system.outputs)), np.ones(len(self.system.guards))
        output = self._call("output", (u, p, q), (figures,))
        guard = self._call("guard", (u, p, q), (open_,))

        def copied(call: Callable[[float, Vector], None], result: NDArray[Any]) -> Callable[[float, Vector], Any]:
            def f(t: float, x: Vector) -> Any:
                call(t, x)
                return result.copy()

            return f

        # CasADi writes column-major: the row-major buffer holds the transpose.
        return copied(rhs, rates), copied(derivatives, jacobian.T), copied(output, figures), copied(guard, open_)

    def _call(
        self, name: str, constants: tuple[Vector, ...], results: tuple[NDArray[Any], ...]
    ) -> Callable[[float, Vector], None]:
        function = self.functions[name][0]
        if function is None:
            return lambda t, x: None
        buffer, trigger = function.buffer()
        x_buffer, t_buffer = np.zeros(len(self.system.states)), np.zeros(1)
        u, p, q = constants
        for i, argument in enumerate((x_buffer, u, np.zeros(0), p, q, t_buffer)):
            if argument.size:
                buffer.set_arg(i, memoryview(argument))
        for i, result in enumerate(results):
            if result.size:
                buffer.set_res(i, memoryview(result))

        def call(t: float, x: Vector, _keep: Any = (buffer, constants, results)) -> None:
            x_buffer[:], t_buffer[0] = x, t
            trigger()

        return call
