"""The functions of a run, evaluated by CasADi's interpreter for fixed parameters, data and controls."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.dynamics.signals import Signal
from designopt.dynamics.simulation.functions import RunFunctions, Unknowns
from designopt.lazy import casadi as ca


class InterpretedFunctions:
    """The `functions` of a system with the constants of one run: rates, their Jacobian, outputs and guards at (x, t).

    `evaluations` counts the evaluations of the rates; `finite` states whether the last rates and Jacobian were finite.
    """

    def __init__(
        self, functions: RunFunctions, u: Floats, p: Floats, q: Floats, signals: Sequence[Signal] = ()
    ) -> None:
        constant = np.array(functions.constants(u, p, q), dtype=np.float64).ravel()
        c = _ArgumentsOverTime(constant, signals)
        self._unknowns = None if functions.unknowns is None else _SolvedUnknowns(functions.unknowns, c)
        self._f, self._fj = _BufferedFunction(functions.f, c), _BufferedFunction(functions.fj, c)
        self._output, self._guard = _BufferedFunction(functions.output, c), _BufferedFunction(functions.guard, c)
        self._in_output = functions.unknowns is not None and functions.unknowns.in_output
        self._last: dict[str, Floats] = {}
        self.evaluations = 0

    @property
    def finite(self) -> bool:
        return all(bool(np.isfinite(array).all()) for array in self._last.values())

    def rates(self, x: Floats, t: float) -> Floats:
        """dx/dt (nx,)."""
        self.evaluations += 1
        s = None if self._unknowns is None else self._unknowns.at(x, t)
        self._last["rates"] = self._f(x, t, s)[0].ravel()
        return self._last["rates"].copy()

    def jacobian(self, x: Floats, t: float) -> Floats:
        """df/dx (nx, nx)."""
        if self._unknowns is None:
            self._last["jacobian"] = self._fj(x, t)[1]
        else:
            s = self._unknowns.at(x, t)
            R_x, _, f_x, f_s, _ = self._fj(x, t, s)
            self._last["jacobian"] = f_x - f_s @ self._unknowns.solve(R_x)
        return self._last["jacobian"].copy()

    def output(self, x: Floats, t: float) -> Floats:
        """y (ny,)."""
        s = self._unknowns.at(x, t) if self._unknowns is not None and self._in_output else None
        return self._output(x, t, s)[0].ravel().copy()

    def guard(self, x: Floats, t: float) -> Floats:
        """g (ng,)."""
        return self._guard(x, t)[0].ravel().copy()


class _SolvedUnknowns:
    """The unknowns of a residual form, by numerical factorisation; NaN if M is singular or not finite."""

    def __init__(self, unknowns: Unknowns, c: _ArgumentsOverTime) -> None:
        self._linear, self._symmetric = _BufferedFunction(unknowns.linear, c), unknowns.symmetric
        self._matrix: Floats = np.zeros((unknowns.size, unknowns.size))

    def at(self, x: Floats, t: float) -> Floats:
        """s (ns,) at (x, t); `solve` then uses the matrix at this point."""
        matrix, offset = self._linear(x, t)
        self._matrix = matrix + np.tril(matrix, -1).T if self._symmetric else matrix.copy()
        return self.solve(-offset)[:, 0]

    def solve(self, right: Floats) -> Floats:
        """M^-1 right (ns, k)."""
        try:
            solution: Floats = np.linalg.solve(self._matrix, right).astype(np.float64, copy=False)
            return solution
        except np.linalg.LinAlgError:
            return np.full(right.shape, np.nan)


class _ArgumentsOverTime:
    """The `constant` arguments of a run, followed by the values and rates of `signals` at the time last set by `at`."""

    def __init__(self, constant: Floats, signals: Sequence[Signal]) -> None:
        self.numbers = np.concatenate([constant, np.zeros(2 * len(signals))])
        self._signals = signals
        self._pieces = [(knots.tolist(), coefficients.tolist()) for knots, coefficients in (s.pieces for s in signals)]
        self._first, self._at = len(constant), math.nan

    def at(self, t: float) -> None:
        """Set the time to `t`."""
        if not self._pieces or t == self._at:
            return
        n = len(self._pieces)
        for i, (knots, coefficients) in enumerate(self._pieces, self._first):
            k = min(max(bisect.bisect_right(knots, t) - 1, 0), len(coefficients) - 1)
            (a, b, c, d), dt = coefficients[k], t - knots[k]
            self.numbers[i] = ((a * dt + b) * dt + c) * dt + d
            self.numbers[i + n] = (3.0 * a * dt + 2.0 * b) * dt + c
        self._at = t


class _BufferedFunction:
    """A CasADi function of (x, c, t) or (x, c, t, s) at fixed c, called without conversions; None gives an empty array.

    The next call overwrites the returned arrays, one dense matrix per result.
    """

    def __init__(self, function: Any, c: _ArgumentsOverTime) -> None:
        self._function = function
        self._results: list[Floats] = [np.zeros((0, 1))]
        if function is None:
            return
        dense = function
        if not all(function.sparsity_out(i).is_dense() for i in range(function.n_out())):
            symbols = [ca.MX.sym(f"i{i}", function.numel_in(i)) for i in range(function.n_in())]
            dense = ca.Function("dense", symbols, [ca.densify(r) for r in function.call(symbols)])
        results = [np.zeros(dense.size_out(i)[::-1]) for i in range(dense.n_out())]  # CasADi stores by columns
        self._results = [array.T for array in results]
        self._x, self._c, self._t = np.zeros(dense.numel_in(0)), c, np.zeros(1)
        self._s = np.zeros(dense.numel_in(3) if dense.n_in() > 3 else 0)
        self._buffer, self._evaluate = dense.buffer()
        for i, argument in enumerate((self._x, c.numbers, self._t, self._s)):
            if argument.size:
                self._buffer.set_arg(i, argument.data)
        for i, array in enumerate(results):
            if array.size:
                self._buffer.set_res(i, array.data)

    def __call__(self, x: Floats, t: float, s: Floats | None = None) -> list[Floats]:
        if self._function is not None:
            self._x[:] = x
            self._t[0] = t
            self._c.at(t)
            if s is not None and self._s.size:
                self._s[:] = s
            self._evaluate()
        return self._results
