"""One collocation point of a phase: its equations and their derivatives, formed once and mapped over all points.

All derivatives are formed here: the defects of every scheme are linear in the results of a point.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Indices
from designopt.collocation.statement.problem import Phase
from designopt.collocation.statement.stated_values import ProblemError
from designopt.collocation.statement.symbols import Symbols, stacked_vectors
from designopt.dynamics.expressions import column
from designopt.dynamics.signals import Signal
from designopt.lazy import casadi as ca

#: Hint for models without symbolic equations.
OPAQUE = "state it in expressions of CasADi, tables as its splines, or use a solver that evaluates the model"


@dataclass(frozen=True, eq=False)
class PointRows:
    """Rows of a point's equations by kind: rates of the states, residuals, algebraic and path, integrands."""

    rates: range
    residuals: range
    algebraic: range
    path: range
    integrands: range

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.integrands.stop


class CollocationPoint:
    """The equations of `phase` at one point, as scalar expressions.

    Variables of the point `w`: states, unknown rates (with `residual`), controls, algebraic variables. Variables of the
    phase `theta`: its parameters, then t0 and tf if free. Numbers: `constants` (data, then fixed times), `signals`.
    Rates and integrands are multiplied by tf - t0, so that the defects are linear in them for free times too.
    """

    def __init__(self, phase: Phase, *, residual: bool) -> None:
        system = phase.system
        form = system.residual_form if residual else None
        self.phase, self.form = phase, form
        self.names = [
            *(v.name for v in system.states),
            *(v.name for v in (form.unknowns if form else ())),
            *(v.name for v in system.controls),
            *(v.name for v in system.algebraic),
        ]
        self.nx, self.ns = len(system.states), len(form.unknowns) if form else 0
        self.nu, self.nz = len(system.controls), len(system.algebraic)
        self.parameter_names = [v.name for v in system.parameters]
        self.signal_names = [n for n in (v.name for v in system.data) if isinstance(phase.data[n], Signal)]
        self.constant_names = [v.name for v in system.data if v.name not in self.signal_names]

        symbols: dict[str, Any] = {n: ca.SX.sym(n) for n in [*self.names, *self.parameter_names]}
        data = {v.name: ca.SX.sym(v.name) for v in system.data}
        times = [ca.SX.sym("t0"), ca.SX.sym("tf")]
        self.w = ca.vertcat(*(symbols[n] for n in self.names))
        free = [t for t, is_free in zip(times, phase.free_times, strict=True) if is_free]
        fixed_times = [t for t, is_free in zip(times, phase.free_times, strict=True) if not is_free]
        self.theta = column([*(symbols[n] for n in self.parameter_names), *free])
        self.constants = column([*(data[n] for n in self.constant_names), *fixed_times])
        self.signals = column([data[n] for n in self.signal_names])
        self.fraction = ca.SX.sym("fraction")
        duration = times[1] - times[0]
        t = times[0] + self.fraction * duration
        x, s, u, z = ca.vertsplit(self.w, list(np.cumsum([0, self.nx, self.ns, self.nu, self.nz])))
        p = column([symbols[n] for n in self.parameter_names])
        q = column([data[v.name] for v in system.data])
        arguments = (x, u, z, p, q, t)
        outputs: dict[str, Any] = {}
        self.outputs = system.outputs if system.output is not None else ()
        if system.output is not None:
            y = _system_expression(phase, "output", system.output, arguments)
            outputs = {v.name: y[i] for i, v in enumerate(system.outputs)}
            _check_outputs(phase, outputs, {**symbols, **data})
        values_by_name = {**symbols, **data, **outputs}
        self.symbols = Symbols({**values_by_name, **stacked_vectors(values_by_name, system.vectors)}, t)
        empty = column(())
        if form is None:
            rates, residuals = _system_expression(phase, "rhs", system.rhs, arguments), empty
        else:
            full = (x, s, u, z, p, q, t)
            rates = _system_expression(phase, "rates", form.rates, full)
            residuals = _system_expression(phase, "residual", form.residual, full)
        equations = system.algebraic_residual
        algebraic = (
            empty if equations is None else _system_expression(phase, "algebraic_residual", equations, arguments)
        )
        self.path_sizes: list[int] = []
        path = []
        for name, constraint in phase.path.items():
            value = expression_of(f"{phase.name}: path.{name}", constraint.value, self.symbols)
            self.path_sizes.append(value.numel())
            path.append(value)
        self.integrands = [
            ca.SX(0)  # a sum over samples is not a sum over points
            if integral.at is not None
            else duration * expression_of(f"{phase.name}: integrals.{name}", integral.value, self.symbols, scalar=True)
            for name, integral in phase.integrals.items()
        ]
        self._outputs = column(outputs.values())
        self.rates = duration * rates
        self._equations = [residuals, algebraic, column(path)]
        self.arguments = [self.w, self.theta, self.constants, self.signals, self.fraction]

    @cached_property
    def all_expressions(self) -> ca.Function:
        """Rates times the duration, path constraints, integrands times the duration, outputs: to read a solution."""
        results = [self.rates, self._equations[2], column(self.integrands), self._outputs]
        return ca.Function("everything", self.arguments, [ca.densify(r) for r in results])

    def equations(self, integrals: Sequence[int]) -> tuple[Any, PointRows]:
        """The rows of the constraints, a column with the integrands of `integrals`, and their kinds."""
        parts = [self.rates, *self._equations, column([self.integrands[i] for i in integrals])]
        edges = np.cumsum([0, *(part.numel() for part in parts)]).tolist()
        rows = PointRows(*(range(a, b) for a, b in itertools.pairwise(edges)))
        return ca.densify(ca.cse(ca.vertcat(*parts))), rows

    def running_cost(self, weights: Sequence[tuple[int, float]]) -> Any:
        """The integrand of the cost: integrals by number with their weights."""
        return ca.densify(sum((weight * self.integrands[i] for i, weight in weights), ca.SX(0)))


@dataclass(frozen=True, eq=False)
class PointFunctions:
    """The functions of a program evaluated at all points at once: CasADi functions of (w, theta, constants, signals,
    fraction).

    `values` -> rows; `jacobian` -> their derivatives with respect to (w, theta), only those at (`jacobian_rows`,
    `jacobian_columns`); `cost` and `cost_gradient` (dense, with respect to (w, theta)); `hessian`, which also takes
    multipliers of the rows and of the cost, -> upper triangle at (`hessian_rows`, `hessian_columns`). `operations`
    counts those of the derivatives.
    """

    values: ca.Function
    jacobian: ca.Function
    jacobian_rows: Indices
    jacobian_columns: Indices
    cost: ca.Function
    cost_gradient: ca.Function
    cost_columns: Indices
    hessian: ca.Function
    hessian_rows: Indices
    hessian_columns: Indices
    rows: PointRows
    operations: int


def equal_key(point: CollocationPoint, integrals: Sequence[int], weights: Sequence[tuple[int, float]]) -> object:
    """A key that is equal for points whose functions are the same operations of arguments in the same places."""
    rows, row_ranges = point.equations(integrals)
    try:
        text = ca.Function("point", point.arguments, [rows, point.running_cost(weights)]).serialize()
    except RuntimeError:  # functions that differ only by address
        return point
    return text, row_ranges.rates, row_ranges.residuals, row_ranges.algebraic, row_ranges.path, row_ranges.integrands


def point_functions(
    point: CollocationPoint, integrals: Sequence[int], weights: Sequence[tuple[int, float]]
) -> PointFunctions:
    """The functions of a point: constraints have the integrands of `integrals`, the cost consists of those of
    `weights`. Raises `ProblemError` for invalid expressions."""
    rows, row_ranges = point.equations(integrals)
    cost = point.running_cost(weights)
    variables = ca.vertcat(point.w, point.theta)
    multipliers, of_cost = ca.SX.sym("mu", rows.numel()), ca.SX.sym("sigma")
    lagrangian = ca.dot(multipliers, rows) + of_cost * cost
    jacobian: Any
    gradient: Any
    hessian: Any
    try:
        jacobian, gradient = ca.jacobian(rows, variables), ca.jacobian(cost, variables)
        hessian = ca.triu(ca.hessian(lagrangian, variables)[0])
    except RuntimeError as error:
        text = f"it has functions without derivatives ({_last_line(error)}): {OPAQUE}"
        raise ProblemError(
            "model_not_symbolic", f"{point.phase.name}: system {point.phase.system.name}", text
        ) from error
    J, G, H = jacobian.sparsity(), gradient.sparsity(), hessian.sparsity()

    def function(name: str, arguments: list[Any], result: Any) -> Any:
        return ca.Function(name, arguments, [ca.cse(result)])

    a = point.arguments
    constraint_multipliers = function("jacobian", a, nonzeros(jacobian))
    of_lagrangian = function("hessian", [*a, multipliers, of_cost], nonzeros(hessian))
    return PointFunctions(
        values=function("values", a, rows),
        jacobian=constraint_multipliers,
        jacobian_rows=np.array(J.row(), np.int64),
        jacobian_columns=_columns(J),
        cost=function("cost", a, cost),
        cost_gradient=function("cost_gradient", a, nonzeros(gradient)),
        cost_columns=_columns(G),
        hessian=of_lagrangian,
        hessian_rows=np.array(H.row(), np.int64),
        hessian_columns=_columns(H),
        rows=row_ranges,
        operations=int(constraint_multipliers.n_nodes() + of_lagrangian.n_nodes()),
    )


def expression_of(position: str, value: Callable[[Any], Any], symbols: Any, *, scalar: bool = False) -> Any:
    """The column (SX) that a user's function returns, one number with `scalar`. Raises `ProblemError` with the
    field."""
    try:
        result = value(symbols)
    except ProblemError:
        raise
    except (KeyError, AttributeError) as error:
        raise ProblemError("bad_statement", position, str(error.args[0])) from error
    except Exception as error:
        text = f"gives no expression ({_last_line(error)}): use operations and functions of CasADi, as ca.sin"
        raise ProblemError("model_not_symbolic", position, text) from error
    try:
        column = ca.densify(ca.SX(result))
    except NotImplementedError as error:
        text = f"gives {type(result).__name__}, not an expression: return one"
        raise ProblemError("bad_statement", position, text) from error
    if scalar and column.numel() != 1:
        text = f"gives {column.size1()} x {column.size2()} numbers, not one: add them up or name each one"
        raise ProblemError("bad_statement", position, text)
    if _has_nan(column):
        text = (
            "is not a number (NaN) whatever the variables are: functions of Python's math take numbers only, use ca.sin"
        )
        raise ProblemError("model_not_symbolic", position, text)
    if column.size2() != 1 or not column.numel():
        text = f"gives {column.size1()} x {column.size2()} numbers, not a column: use ca.vertcat(...)"
        raise ProblemError("bad_statement", position, text)
    return column


def _check_outputs(phase: Phase, outputs: Mapping[str, Any], variables: Mapping[str, Any]) -> None:
    """Checks that an output with the name of a variable is that variable."""
    for name in outputs:
        if name in variables and not ca.is_equal(outputs[name], variables[name], 2):
            text = f"'{name}' is the name of an output and of another variable: rename one of them"
            raise ProblemError("bad_statement", f"{phase.name}: system {phase.system.name}", text)


def _system_expression(phase: Phase, label: str, function: Any, arguments: Sequence[Any]) -> Any:
    """An expression of the system. Raises `ProblemError` (model_not_symbolic) for a function that has none."""
    try:
        return function(*arguments)
    except RuntimeError as error:
        text = f"its function '{label}' has no symbolic form ({_last_line(error)}): {OPAQUE}"
        raise ProblemError("model_not_symbolic", f"{phase.name}: system {phase.system.name}", text) from error


def _has_nan(column: Any) -> bool:
    """Whether a constant in an expression is NaN, the result of converting a symbol to a Python number."""
    function = ca.Function("stated", ca.symvar(column), [column])
    constants = (k for k in range(function.n_instructions()) if function.instruction_id(k) == ca.OP_CONST)
    return any(np.isnan(function.instruction_constant(k)) for k in constants)


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__


def nonzeros(matrix: Any) -> Any:
    """The nonzeros of a matrix (SX) as a column."""
    return ca.vec(matrix.nz[:]) if matrix.nnz() else ca.SX(0, 1)


def _columns(sparsity: Any) -> Indices:
    return np.array(sparsity.get_col(), np.int64)
