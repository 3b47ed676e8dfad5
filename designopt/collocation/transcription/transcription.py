"""The sparse nonlinear program of a trajectory problem on given meshes.

The rows of all points, their Jacobians and Hessians come from functions mapped over the points (`points`); constant
sparse matrices, built here with index arithmetic, combine them into the constraints, the gradient, the Jacobian and the
Hessian of the Lagrangian. The construction is O(model) + O(points): no derivative is formed of the whole program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats, Indices
from designopt.collocation.statement.mesh import Mesh
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.functions.functions import (
    EndSymbols,
    ProblemFunctions,
    SideBySide,
    map_side_by_side,
)
from designopt.collocation.transcription.functions.points import PointFunctions, nonzeros
from designopt.collocation.transcription.functions.samples import SampleEntries, SamplePoint
from designopt.collocation.transcription.layout import Block, Layout, PhaseLayout, RowCollector, layout
from designopt.dynamics.expressions import column
from designopt.lazy import casadi as ca

#: Source of constant entries.
ONE = 0


class Entries:
    """A sparse matrix whose nonzeros are fixed linear combinations of function results.

    Results are added as sources; contributions to one position are summed.
    """

    def __init__(self) -> None:
        self._sources: list[Any] = [ca.MX(1.0)]
        self._size = 1
        self._contributions: list[tuple[Any, Any, Any, Any]] = []

    def source(self, numbers: Any) -> int:
        """Add a column of `numbers` (MX) and return the source of its first entry."""
        first = self._size
        self._sources.append(numbers)
        self._size += numbers.numel()
        return first

    def add(self, rows: ArrayLike, columns: ArrayLike, sources: ArrayLike, factors: ArrayLike) -> None:
        """Add ``factor * source`` at (row, column), broadcast to one shape."""
        contribution = np.broadcast_arrays(rows, columns, sources, factors)
        self._contributions.append(tuple(np.ravel(array) for array in contribution))  # type: ignore[arg-type]

    def matrix(self, left: Floats, right: Floats) -> Any:
        """The matrix (MX), its rows multiplied by `left` (m,), its columns by `right` (n,)."""
        shape = (len(left), len(right))
        if not self._contributions:
            return ca.MX(*shape)
        rows, columns, sources, factors = (np.concatenate(part) for part in zip(*self._contributions, strict=True))
        positions, entry_of = _distinct_positions(rows, columns, shape)
        factors = factors * left[rows] * right[columns]
        mixing = constant_matrix(entry_of, sources, factors, (len(positions), self._size))
        return ca.MX(ca.Sparsity.nonzeros(*shape, positions.tolist()), mixing @ ca.vertcat(*self._sources))


def stretch(column: Any, begin: int, end: int) -> Any:
    """Entries `begin` to `end` of a column (MX); an empty range is a column too, where CasADi makes a row of it."""
    return column[begin:end] if begin < end else ca.MX(0, 1)


def constant_matrix(rows: Indices, columns: Indices, values: Floats, shape: tuple[int, int]) -> Any:
    """A constant sparse CasADi matrix (DM); entries at one position are summed."""
    positions, entry_of = _distinct_positions(rows, columns, shape)
    sums = np.bincount(entry_of, weights=values, minlength=len(positions))
    return ca.DM(ca.Sparsity.nonzeros(*shape, positions.tolist()), sums.tolist())  # lists convert fastest


def _distinct_positions(rows: Indices, columns: Indices, shape: tuple[int, int]) -> tuple[Indices, Indices]:
    """The distinct positions, counted down the columns, and the index of each entry among them."""
    order = _order(rows, shape[0])
    order = order[_order(columns[order], shape[1])]
    keys = columns[order] * shape[0] + rows[order]
    is_new = np.concatenate([keys[:1] >= 0, keys[1:] != keys[:-1]])
    entry_of = np.empty(len(keys), np.int64)
    entry_of[order] = np.cumsum(is_new) - 1
    return keys[is_new], entry_of


def _order(keys: Indices, count: int) -> Indices:
    """The permutation that sorts `keys` below `count`, stably and in linear time: NumPy sorts 16-bit integers by
    radix."""
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    if count > 1 << 16:
        order = order[np.argsort((keys[order] >> 16).astype(np.uint16), kind="stable")]
    return order


@dataclass(frozen=True, eq=False)
class Transcription:
    """The program: functions of scaled variables (size n) and parameters, with descriptions of its rows and columns.

    `objective`, `constraints` (m rows), `gradient` -> (nothing, grad), `jacobian` -> (nothing, J), `hessian` (upper
    triangle) have the arguments that CasADi's solvers require; their first results (f, g), which no solver uses, stay
    empty to save their computation. A variable is ``shift + scale * scaled``; row i of the constraints is divided by
    ``row_scale[i]``, the objective multiplied by `cost_scale`. The cost of `constant_cost` has no variable.
    """

    problem_functions: ProblemFunctions
    layout: Layout
    blocks: tuple[Block, ...]
    scale: Floats
    shift: Floats
    row_scale: Floats
    cost_scale: float
    parameter_size: int
    objective: ca.Function
    constraints: ca.Function
    gradient: ca.Function
    jacobian: ca.Function
    hessian: ca.Function
    constant_cost: bool

    def box(self, bounds: ProgramBounds) -> tuple[Floats, Floats]:
        """Lower and upper limits (n,) of the scaled variables."""
        low, high = self.limits(bounds)
        return low[: self.layout.size], high[: self.layout.size]

    def row_box(self, bounds: ProgramBounds) -> tuple[Floats, Floats]:
        """Lower and upper limits (m,) of the scaled rows."""
        low, high = self.limits(bounds)
        return low[self.layout.size :], high[self.layout.size :]

    def limits(self, bounds: ProgramBounds) -> tuple[Floats, Floats]:
        """Lower and upper limits (n + m,) of the scaled variables, then of the scaled rows."""
        if bounds not in self._of_bounds:
            low, high = (
                np.concatenate([(of_variables - self.shift) / self.scale, of_rows / self.row_scale])
                for of_variables, of_rows in ((bounds.low, bounds.row_low), (bounds.high, bounds.row_high))
            )
            low.flags.writeable = high.flags.writeable = False
            self._of_bounds[bounds] = low, high
        return self._of_bounds[bounds]

    @cached_property
    def _of_bounds(self) -> WeakKeyDictionary[ProgramBounds, tuple[Floats, Floats]]:
        """The scaled limits, as long as the bounds exist."""
        return WeakKeyDictionary()


def transcribe(
    functions: ProblemFunctions, meshes: Sequence[Mesh], scale: Floats, shift: Floats, cost_scale: float,
    program_layout: Layout | None = None,
) -> Transcription:  # fmt: skip
    """The program of `functions` on `meshes` (one per phase) with variables scaled by `scale` and `shift` (n,)."""
    program_layout = program_layout or layout(
        functions.problem, functions.points, meshes, functions.integral_variables, functions.samples
    )
    rows = RowCollector(functions, program_layout)
    parts = _Parts(functions, program_layout, rows, scale, shift, cost_scale)
    for i, phase_layout in enumerate(program_layout.phases):
        parts.add_phase(i, phase_layout)
    for sample, at in zip(functions.samples, program_layout.samples, strict=True):
        parts.add_samples(sample, at)
    parts.add_ends()
    x, p = parts.x, parts.parameters
    per_row, none = 1.0 / parts.row_scale, np.ones(1)
    f, g = parts.cost, parts.values
    gradient = parts.gradient.matrix(scale, none)
    constant_cost = gradient.nnz() == 0
    gradient = ca.densify(gradient)
    J, H = parts.jacobian.matrix(per_row, scale), parts.hessian.matrix(scale, scale)
    return Transcription(
        problem_functions=functions,
        layout=program_layout,
        blocks=tuple(rows.blocks),
        scale=scale,
        shift=shift,
        row_scale=parts.row_scale,
        cost_scale=cost_scale,
        parameter_size=p.numel(),
        objective=ca.Function("nlp_f", [x, p], [f], ["x", "p"], ["f"]),
        constraints=ca.Function("nlp_g", [x, p], [g], ["x", "p"], ["g"]),
        gradient=ca.Function("nlp_grad_f", [x, p], [ca.MX(1, 1), gradient], ["x", "p"], ["f", "grad_f_x"]),
        jacobian=ca.Function("nlp_jac_g", [x, p], [ca.MX(rows.count, 1), J], ["x", "p"], ["g", "jac_g_x"]),
        hessian=ca.Function(
            "nlp_hess_l", [x, p, parts.of_cost, parts.multipliers], [H], ["x", "p", "lam_f", "lam_g"],
            ["triu_hess_gamma_x_x"],
        ),
        constant_cost=constant_cost,
    )  # fmt: skip


class _Parts:
    """Expressions of the scaled variables `x` and of the `parameters` in the functions of a program.

    `cost` and `values` (of the constraints) are scaled; `gradient` (n, 1), `jacobian` and `hessian` are collected with
    respect to unscaled variables.
    """

    def __init__(
        self,
        functions: ProblemFunctions,
        layout: Layout,
        rows: RowCollector,
        scale: Floats,
        shift: Floats,
        cost_scale: float,
    ) -> None:
        self.problem_functions, self.layout, self.rows, self.cost_scale = functions, layout, rows, cost_scale
        self.row_scale = rows.scales(scale)
        self.x, self.parameters = ca.MX.sym("x", layout.size), ca.MX.sym("p", layout.numbers)
        self.multipliers, self.of_cost = ca.MX.sym("lam_g", rows.count), ca.MX.sym("lam_f")
        self._variables: Any = ca.DM(scale.tolist()) * self.x + ca.DM(shift.tolist())
        self.gradient, self.jacobian, self.hessian = Entries(), Entries(), Entries()
        r, c, f = rows.of_variables()
        self.jacobian.add(r, c, ONE, f)
        self.cost: Any = ca.MX(0.0)
        self.values: Any = constant_matrix(r, c, f / self.row_scale[r], (rows.count, layout.size)) @ self._variables

    def add_phase(self, i: int, layout: PhaseLayout) -> None:
        """Add all points of phase i."""
        functions = self.problem_functions.functions[i]
        count, per_point = len(layout.point), functions.rows.count
        points = SideBySide(self._arguments(i, layout), count)
        weights = ca.DM((self.cost_scale * layout.mesh.weights[layout.mesh.first :]).tolist()).T
        # the variables of each point: its own, then those of the phase
        columns = np.hstack([layout.point, np.broadcast_to(layout.theta, (count, len(layout.theta)))])
        rows, of_point, at, factors = self.rows.of_points(i)
        K = constant_matrix(
            rows, at * per_point + of_point, factors / self.row_scale[rows], (self.rows.count, per_point * count)
        )
        self.values += K @ ca.vec(map_side_by_side(functions.values, points))

        if functions.jacobian_rows.size:
            first = self.jacobian.source(ca.vec(map_side_by_side(functions.jacobian, points)))
            each, entry = _nonzeros_in_rows(functions, of_point)
            self.jacobian.add(
                rows[each],
                columns[at[each], functions.jacobian_columns[entry]],
                first + at[each] * len(functions.jacobian_rows) + entry,
                factors[each],
            )
        self.cost += ca.dot(weights, map_side_by_side(functions.cost, points))
        if functions.cost_columns.size:
            slopes = map_side_by_side(functions.cost_gradient, points)
            first = self.gradient.source(ca.vec(slopes * ca.repmat(weights, len(functions.cost_columns), 1)))
            variables = columns[:, functions.cost_columns].ravel()
            self.gradient.add(variables, 0, first + np.arange(len(variables)), 1.0)
        if functions.hessian_rows.size:
            mu = ca.reshape(K.T @ self.multipliers, per_point, count)
            curvature = map_side_by_side(functions.hessian, points.with_more(mu, self.of_cost * weights))
            self._add_hessian(columns, functions.hessian_rows, functions.hessian_columns, ca.vec(curvature))

    def add_samples(self, point: SamplePoint, entries: SampleEntries) -> None:
        """Add the samples of one entry of a phase: part of the cost, of the row of an integral, or rows."""
        count, size, width = entries.count, point.size, point.nw + len(self.layout.phases[point.phase].theta)
        arguments = self._sample_arguments(point, entries)
        values = point.values.map(count)(*arguments)
        weight = self.problem_functions.direct.get((point.phase, point.number), 0.0) if point.kind == "sum" else 0.0
        rows = self._sample_rows(point, entries)
        mu: Any = ca.MX(size, count)
        if rows is None:
            self.cost += self.cost_scale * weight * ca.sum2(values)
            mu = ca.repmat(self.cost_scale * weight * self.of_cost, size, count)
        else:
            factor = -1.0 if point.kind == "sum" else 1.0
            each = np.arange(count * size)
            K = constant_matrix(rows.ravel(), each, factor / self.row_scale[rows.ravel()], (self.rows.count, len(each)))
            self.values += K @ ca.vec(values)
            mu = ca.reshape(K.T @ self.multipliers, size, count)
        jacobian, of_row, variable = point.jacobian
        if of_row.size:
            first = (self.jacobian if rows is not None else self.gradient).source(
                ca.vec(jacobian.map(count)(*arguments))
            )
            sample = np.repeat(np.arange(count), len(of_row))
            each, entry = entries.joined(sample, np.tile(variable, count), width)
            columns, weights = entries.columns[entry], entries.weights[entry]
            if rows is None:
                self.gradient.add(columns, 0, first + each, self.cost_scale * weight * weights)
            else:
                self.jacobian.add(
                    rows[sample[each], np.tile(of_row, count)[each]], columns, first + each, factor * weights
                )
        curvature, first_of, second_of = point.hessian
        if first_of.size:
            first = self.hessian.source(ca.vec(curvature.map(count)(*arguments, mu)))
            sample = np.repeat(np.arange(count), len(first_of))
            each, a = entries.joined(sample, np.tile(first_of, count), width)
            pairs, b = entries.joined(sample[each], np.tile(second_of, count)[each], width)
            each, a = each[pairs], a[pairs]
            left, right = entries.columns[a], entries.columns[b]
            is_one_variable = np.tile(first_of == second_of, count)[each]
            # Of one variable, each pair of columns occurs twice: its upper half counts. Of two variables, a column that
            # both contain occurs once and counts twice.
            factors = np.where(is_one_variable, np.where(left <= right, 1.0, 0.0), np.where(left == right, 2.0, 1.0))
            factors = factors * entries.weights[a] * entries.weights[b]
            self.hessian.add(np.minimum(left, right), np.maximum(left, right), first + each, factors)

    def _sample_rows(self, point: SamplePoint, entries: SampleEntries) -> Indices | None:
        """The rows (n, size) of samples, the row of their integral for sums; None for a part of the cost."""
        if point.kind == "sum" and (point.phase, point.number) in self.problem_functions.direct:
            return None
        kind = "integral" if point.kind == "sum" else "sample"
        name = point.name if point.kind == "sum" or point.size == 1 else f"{point.name}[0]"
        (block,) = [b for b in self.rows.blocks if (b.kind, b.phase, b.names[0]) == (kind, point.phase, name)]
        return np.broadcast_to(block.rows, (entries.count, point.size))

    def _sample_arguments(self, point: SamplePoint, entries: SampleEntries) -> list[Any]:
        """Arguments of the functions of a sample, for all samples side by side."""
        phase_layout, count, nw = self.layout.phases[point.phase], entries.count, point.nw
        is_point_variable = entries.variable < nw
        at = entries.sample[is_point_variable] * nw + entries.variable[is_point_variable]
        stencil = constant_matrix(
            at, entries.columns[is_point_variable], entries.weights[is_point_variable], (count * nw, self.layout.size)
        )
        theta = self._variables[phase_layout.theta.tolist()] if len(phase_layout.theta) else ca.MX(0, 1)
        return [
            ca.reshape(stencil @ self._variables, nw, count),
            ca.repmat(theta, 1, count),
            ca.repmat(stretch(self.parameters, phase_layout.constants, phase_layout.signals), 1, count),
            ca.reshape(stretch(self.parameters, entries.signals, entries.end), point.ns, count),
            ca.DM(entries.fractions.tolist()).T,
            ca.reshape(stretch(self.parameters, entries.begin, entries.signals), len(point.data_names), count),
        ]

    def add_ends(self) -> None:
        """Add the functions of the ends, after all phases."""
        ends = end_functions(self.problem_functions.ends, self.layout)
        arguments = [
            self._variables[ends.variables.tolist()],
            end_constants(self.layout, self.parameters),
        ]
        self.cost += self.cost_scale * ends.cost(*arguments)
        if ends.gradient_columns.size:
            first = self.gradient.source(self.cost_scale * ends.gradient(*arguments))
            variables = ends.variables[ends.gradient_columns]
            self.gradient.add(variables, 0, first + np.arange(len(variables)), 1.0)
        begin, end = self.rows.ends_first, self.rows.count
        mu = ca.MX(0, 1)
        if begin < end:
            self.values = ca.vertcat(self.values[:begin], self.values[begin:] + ends.constraints(*arguments))
            mu = self.multipliers[begin:]  # the rows of the ends are not scaled
        if ends.jacobian_rows.size:
            first = self.jacobian.source(ends.jacobian(*arguments))
            sources = first + np.arange(len(ends.jacobian_rows))
            self.jacobian.add(begin + ends.jacobian_rows, ends.variables[ends.jacobian_columns], sources, 1.0)
        if ends.hessian_rows.size:
            curvature = ends.hessian(*arguments, mu, self.cost_scale * self.of_cost)
            self._add_hessian(ends.variables[None, :], ends.hessian_rows, ends.hessian_columns, curvature)

    def _arguments(self, i: int, layout: PhaseLayout) -> list[Any]:
        """Arguments of the functions of a point, for all points of the phase side by side."""
        ns, count = self.problem_functions.points[i].signals.numel(), len(layout.point)
        point_variables = self._variables[
            int(layout.point[0, 0]) : int(layout.point[-1, -1]) + 1
        ]  # they are neighbours
        theta = self._variables[layout.theta.tolist()] if len(layout.theta) else ca.MX(0, 1)
        return [
            ca.reshape(point_variables, layout.point.shape[1], count),
            ca.repmat(theta, 1, count),
            ca.repmat(stretch(self.parameters, layout.constants, layout.signals), 1, count),
            ca.reshape(stretch(self.parameters, layout.signals, layout.numbers_end), ns, count),
            ca.DM(layout.mesh.fractions[layout.mesh.first :].tolist()).T,
        ]

    def _add_hessian(self, variables: Indices, rows: Indices, columns: Indices, numbers: Any) -> None:
        """Add upper triangles, one for each row of `variables` (k, local), with the nonzeros `numbers`."""
        a, b = variables[:, rows], variables[:, columns]
        factor = np.where((a == b) & (rows != columns), 2.0, 1.0)  # two local variables that coincide count twice
        first = self.hessian.source(numbers)
        sources = first + np.arange(a.size).reshape(a.shape)
        self.hessian.add(np.minimum(a, b), np.maximum(a, b), sources, factor)


def _nonzeros_in_rows(functions: PointFunctions, of_point: Indices) -> tuple[Indices, Indices]:
    """The nonzeros of the point's Jacobian in rows `of_point` (k,): indices in `of_point`, and of the nonzeros."""
    order = np.argsort(functions.jacobian_rows, kind="stable")
    counts = np.bincount(functions.jacobian_rows, minlength=functions.rows.count)
    begins = np.concatenate([[0], np.cumsum(counts)])
    repeats = counts[of_point]
    each = np.repeat(np.arange(len(of_point)), repeats)
    within = np.arange(len(each)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    return each, order[begins[of_point[each]] + within]


@dataclass(frozen=True, eq=False)
class EndFunctions:
    """Functions of the gathered `variables` and of all constants: the terminal cost, the constraints between ends."""

    variables: Indices
    cost: ca.Function
    gradient: ca.Function
    gradient_columns: Indices
    constraints: ca.Function
    jacobian: ca.Function
    jacobian_rows: Indices
    jacobian_columns: Indices
    hessian: ca.Function
    hessian_rows: Indices
    hessian_columns: Indices


def end_functions(symbols_of: EndSymbols, layout: Layout) -> EndFunctions:
    """The functions, with their derivatives with respect to the variables on which they depend."""
    symbols, variables, constants = [], [], []
    zero_symbols, by = [], []
    expressions = ca.vertcat(symbols_of.cost, *symbols_of.constraints)
    for i, (phase_layout, ends) in enumerate(zip(layout.phases, symbols_of.phases, strict=True)):
        x0, xf, t0, tf, integrals, data_multipliers = ends
        nx = phase_layout.states.shape[1]
        symbols += [x0[:nx], xf[:nx]]
        variables += [*phase_layout.states[0], *phase_layout.states[-1]]
        for j in range(nx, x0.numel()):
            for symbol, slot in ((x0[j], 0), (xf[j], -1)):
                if ca.depends_on(expressions, symbol):
                    symbols.append(symbol)
                    variables.append(phase_layout.point[slot, j])
        constants.append(data_multipliers)
        for name, time in (("t0", t0), ("tf", tf)):
            if name in phase_layout.times:
                symbols.append(time)
                variables.append(phase_layout.times[name])
            else:
                constants.append(time)
        for j in range(integrals.numel()):
            if (i, j) in layout.integrals:
                symbols.append(integrals[j])
                variables.append(layout.integrals[i, j])
            else:
                zero_symbols.append(integrals[j])
                by.append(ca.SX(0.0))
    symbols.append(symbols_of.parameters)
    variables += list(layout.parameters.values())
    v: Any = ca.vertcat(*symbols)
    c = column(constants)
    cost, rows = symbols_of.cost, column(symbols_of.constraints)
    if zero_symbols:
        cost, rows = ca.substitute([cost, rows], [ca.vertcat(*zero_symbols)], [ca.vertcat(*by)])
    gradient: Any = ca.jacobian(cost, v)
    jacobian: Any = ca.jacobian(rows, v)
    mu, sigma = ca.SX.sym("mu", rows.numel()), ca.SX.sym("sigma")
    hessian: Any = ca.triu(ca.hessian(sigma * cost + ca.dot(mu, rows), v)[0])

    G, J, H = gradient.sparsity(), jacobian.sparsity(), hessian.sparsity()
    return EndFunctions(
        np.array(variables, np.int64),
        ca.Function("end_cost", [v, c], [ca.densify(cost)]),
        ca.Function("end_gradient", [v, c], [nonzeros(gradient)]),
        np.array(G.get_col(), np.int64),
        ca.Function("end_rows", [v, c], [ca.densify(rows)]),
        ca.Function("end_jacobian", [v, c], [nonzeros(jacobian)]),
        np.array(J.row(), np.int64),
        np.array(J.get_col(), np.int64),
        ca.Function("end_hessian", [v, c, mu, sigma], [nonzeros(hessian)]),
        np.array(H.row(), np.int64),
        np.array(H.get_col(), np.int64),
    )


def end_constants(layout: Layout, parameters: Any) -> Any:
    """All constants of the functions of the ends: of each phase its numeric data, then its fixed times."""
    return ca.vertcat(
        *(stretch(parameters, phase_layout.constants, phase_layout.signals) for phase_layout in layout.phases)
    )
