"""The functions of a system that an integrator evaluates."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from designopt.dynamics.expressions import column
from designopt.dynamics.residual import ResidualForm, is_definite, linear_in_unknowns
from designopt.dynamics.system import System
from designopt.lazy import casadi as ca

#: A residual form with at most this many unknowns is solved by unrolled operations (a quarter faster than loops); one
#: with more by factorisation in loops (unrolled code would fill megabytes).
FEW_UNKNOWNS = 9


@dataclass(frozen=True, eq=False)
class RunFunctions:
    """The functions of a run, by CasADi, with exact partial derivatives (df/dt: x fixed).

    `constants` (u, p, q) -> c computes the constant part of a run; the others are functions of (x, c, t) with dense
    results: `f` -> xdot; `fj` -> xdot, df/dx (nx, nx), df/dt; `output` -> y; `guard` -> g. With `unknowns` s of a
    residual form, `Unknowns` describes `f`, `fj` and `output`.

    For a system with `signals` (the number of controls or data entries that follow signals), c has their values and
    then their rates at t after the results of `constants`; df/dt includes the effect of these rates.
    """

    constants: ca.Function
    f: ca.Function
    fj: ca.Function
    output: ca.Function | None
    guard: ca.Function | None
    unknowns: Unknowns | None = None
    signals: int = 0

    @property
    def functions(self) -> list[ca.Function]:
        """All functions."""
        linear = self.unknowns.linear if self.unknowns else None
        every = (self.constants, linear, self.f, self.fj, self.output, self.guard)
        return [function for function in every if function is not None]


@dataclass(frozen=True, eq=False)
class Unknowns:
    """The residual R = M s + b with `size` unknowns s, solved numerically wherever f or its derivatives are evaluated.

    `linear` (x, c, t) -> M (s, s), b; of a `symmetric` definite M only the lower triangle. `f` and `output` are then
    functions of (x, c, t, s), and so is `fj` -> R_x (s, nx), R_t, f_x (nx, nx), f_s (nx, s), f_t, where df/dx = f_x -
    f_s M^-1 R_x, and df/dt likewise. M and the results of `fj` keep their sparsity. `in_output`: the outputs depend on
    s.
    """

    linear: ca.Function
    size: int
    symmetric: bool
    in_output: bool


def run_functions(system: System, signals: Sequence[str] = ()) -> RunFunctions:
    """The functions of `system` as scalar expressions, with everything that depends on u, p and q alone factored out.

    `signals` names controls and data entries that follow signals. Systems that cannot be expanded (look-up tables,
    external functions) keep their own operations, with u, p and q for c.
    """
    try:
        return _scalar(system, signals)
    except RuntimeError:
        u, p, q = (ca.MX.sym(n, len(table)) for n, table in zip("upq", _tables(system), strict=True))
        sizes = [u.numel(), p.numel(), q.numel(), len(signals), len(signals)]
        c = ca.MX.sym("c", sum(sizes))
        u_c, p_c, q_c, w, w_rates = ca.vertsplit(c, list(itertools.accumulate(sizes, initial=0)))
        expressions = _FunctionExpressions(
            system, ca.MX, dict(zip(signals, ca.vertsplit(w), strict=True)) if signals else {}, w, w_rates
        )
        expressions.form(u_c, p_c, q_c)
        return expressions.functions(ca.Function("system_constants", [u, p, q], [ca.vertcat(u, p, q)]), c)


def _scalar(system: System, signals: Sequence[str]) -> RunFunctions:
    u, p, q = (ca.SX.sym(n, len(table)) for n, table in zip("upq", _tables(system), strict=True))
    w, w_rates = ca.SX.sym("w", len(signals)), ca.SX.sym("w_rates", len(signals))
    expressions = _FunctionExpressions(
        system, ca.SX, dict(zip(signals, ca.vertsplit(w), strict=True)) if signals else {}, w, w_rates
    )
    expressions.form(u, p, q)
    entries_of_all = ca.cse([e for entries in expressions.results.values() for e in entries])
    entries_of_all, symbols, constants = ca.extract_parametric(
        entries_of_all, ca.vertcat(u, p, q), {"extract_trivial": True}
    )
    left = iter(entries_of_all)
    expressions.results = {name: [next(left) for _ in entries] for name, entries in expressions.results.items()}
    c, values = column(symbols), column(constants)
    constants_and_signals = ca.vertcat(c, w, w_rates) if signals else c
    return expressions.functions(ca.Function("system_constants", [u, p, q], [values]), constants_and_signals)


def _tables(system: System) -> tuple[Any, Any, Any]:
    return system.controls, system.parameters, system.data


class _FunctionExpressions:
    """Expressions by the name of their function; `s` and `symmetric` if unknowns remain in them."""

    def __init__(self, system: System, kind: Any, signals: Mapping[str, Any], w: Any, w_rates: Any) -> None:
        self.system, self.kind, self.signals, self.w, self.w_rates = system, kind, signals, w, w_rates
        self.x, self.t = kind.sym("x", len(system.states)), kind.sym("t")
        self.s: Any = None
        self.symmetric = False
        self.results: dict[str, list[Any]] = {}

    def form(self, u: Any, p: Any, q: Any) -> None:
        """Fill `results`, with signals in place of the controls and data that follow them."""
        system, form = self.system, self.system.residual_form
        u, q = (
            ca.vertcat(*(self.signals.get(v.name, column[i]) for i, v in enumerate(table)), self.kind(0, 1))
            if self.signals
            else column
            for column, table in ((u, system.controls), (q, system.data))
        )
        arguments = [self.x, u, self.kind(0, 1), p, q, self.t]
        if form is None:
            xdot = ca.densify(system.rhs(*arguments))
            self.results = {
                "f": [xdot], "fj": [xdot, ca.densify(ca.jacobian(xdot, self.x)), ca.densify(self._by_time(xdot))]
            }  # fmt: skip
            output = None if system.output is None else system.output(*arguments)
        else:
            output = self._evaluate_residual(form, arguments)
        if output is not None:
            self.results["output"] = [ca.densify(output)]
        if system.guard is not None:
            self.results["guard"] = [ca.densify(system.guard(*arguments))]

    def functions(self, constants: ca.Function, c: Any) -> RunFunctions:
        """The results as functions of (x, c, t) or (x, c, t, s)."""

        def casadi_function(name: str) -> Any:
            if name not in self.results:
                return None
            of_unknowns = self.s is not None and name not in ("linear", "guard")
            return ca.Function(
                f"system_{name}", [self.x, c, self.t, *([self.s] if of_unknowns else [])], self.results[name]
            )

        f, fj, output, guard, linear = (casadi_function(name) for name in ("f", "fj", "output", "guard", "linear"))
        unknowns = None
        if self.s is not None:
            in_output = output is not None and bool(output.jac_sparsity(0, 3).nnz())
            unknowns = Unknowns(linear, self.s.numel(), self.symmetric, in_output)
        return RunFunctions(constants, f, fj, output, guard, unknowns, len(self.signals))

    def _by_time(self, e: Any) -> Any:
        """The time derivative of `e` with the states fixed."""
        direct = ca.jacobian(e, self.t)
        return direct + ca.jtimes(e, self.w, self.w_rates) if self.signals else direct

    def _evaluate_residual(self, form: ResidualForm, arguments: Sequence[Any]) -> Any:
        """Fill `results` from a residual form; returns the outputs, or None."""
        x, s = self.x, self.kind.sym("s", len(form.unknowns))
        full = [x, s, *arguments[1:]]
        residual, rates = form.residual(*full), ca.densify(form.rates(*full))
        output = None if form.output is None else form.output(*full)
        matrix, offset = linear_in_unknowns(residual, s)
        R_x, R_t = ca.jacobian(residual, x), self._by_time(residual)
        f_x, f_s, f_t = ca.jacobian(rates, x), ca.jacobian(rates, s), self._by_time(rates)
        symmetric = self.kind is ca.SX and is_definite(matrix)
        if not symmetric or s.numel() > FEW_UNKNOWNS:
            self.s, self.symmetric = s, symmetric
            lower = ca.tril(matrix) if symmetric else matrix
            self.results = {"linear": [lower, ca.densify(offset)], "f": [rates], "fj": [R_x, R_t, f_x, f_s, f_t]}
            return output
        D, LT, order = ca.ldl(ca.densify(matrix), False)
        value = ca.ldl_solve(-offset, D, LT, order)
        derivatives = (f_v - f_s @ ca.ldl_solve(ca.densify(R_v), D, LT, order) for f_v, R_v in ((f_x, R_x), (f_t, R_t)))
        xdot, J, ft = (ca.densify(ca.substitute(e, s, value)) for e in (rates, *derivatives))
        self.results = {"f": [xdot], "fj": [xdot, J, ft]}
        return None if output is None else ca.substitute(output, s, value)
