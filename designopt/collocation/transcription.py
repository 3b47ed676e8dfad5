"""The sparse nonlinear program of a trajectory problem on given meshes.

The rows of all points, their Jacobians and Hessians come from functions mapped over the points (`points`); constant
sparse matrices, built here with index arithmetic, combine them into the constraints, the gradient, the Jacobian and the
Hessian of the Lagrangian. Building costs O(model) + O(points): no derivative is ever taken of the whole program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from designopt.collocation.ends import EndSymbols, end_constants, end_functions, end_symbols, linear_integrals
from designopt.collocation.entries import Entries, combined, constant_matrix
from designopt.collocation.layout import Layout, PhaseLayout, layout
from designopt.collocation.mesh import Mesh
from designopt.collocation.points import Point, PointFunctions, point_functions
from designopt.collocation.problem import TrajectoryProblem

if TYPE_CHECKING:
    import casadi as ca

Indices = NDArray[np.int64]
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Block:
    """Rows of constraints of one kind: `kind` is defect, residual, algebraic, path, control, integral or ends.

    `phase` is its number (-1: of the ends), `names` (k) says what the rows of one point are, `slots` (n) at which
    points they stand; rows are counted from `first`, point by point.
    """

    kind: str
    phase: int
    names: tuple[str, ...]
    slots: Indices
    first: int

    @property
    def rows(self) -> Indices:
        """Row numbers (n, k)."""
        return self.first + np.arange(len(self.slots) * len(self.names)).reshape(len(self.slots), len(self.names))


@dataclass(frozen=True, eq=False)
class Statement:
    """A problem with the expressions of its points and ends: independent of meshes. `kept` integrals are variables."""

    problem: TrajectoryProblem
    points: tuple[Point, ...]
    functions: tuple[PointFunctions, ...]
    ends: EndSymbols
    kept: tuple[tuple[int, int], ...]


def state(problem: TrajectoryProblem, *, residual: bool = True) -> Statement:
    """Form all expressions of `problem` and their derivatives; the residual form where the system has one."""
    points = tuple(Point(phase, residual=residual) for phase in problem.phases)
    ends = end_symbols(problem, points)
    direct = linear_integrals(problem, ends)
    every = [(i, j) for i, phase in enumerate(problem.phases) for j in range(len(phase.integrals))]
    kept = tuple(key for key in every if key not in direct)
    functions = tuple(
        point_functions(
            point,
            [j for phase, j in kept if phase == i],
            [(j, weight) for (phase, j), weight in direct.items() if phase == i],
        )
        for i, point in enumerate(points)
    )
    return Statement(problem, points, functions, ends, kept)


@dataclass(frozen=True, eq=False)
class Transcription:
    """The program: functions of scaled variables (size n) and parameters, with what its rows and columns are.

    `objective`, `constraints` (m rows), `gradient` -> (f, grad), `jacobian` -> (g, J), `hessian` (upper triangle) have
    the arguments and results that CasADi's solvers ask for. A variable is ``shift + scale * scaled``; row i of the
    constraints is divided by ``row_scale[i]``.
    """

    statement: Statement
    layout: Layout
    blocks: tuple[Block, ...]
    scale: Vector
    shift: Vector
    row_scale: Vector
    cost_scale: float
    parameter_size: int
    objective: ca.Function
    constraints: ca.Function
    gradient: ca.Function
    jacobian: ca.Function
    hessian: ca.Function


class _Rows:
    """Numbers the rows and collects what they are made of: ``g = C x + K y`` with y the rows of all points."""

    def __init__(self, statement: Statement, places: Layout) -> None:
        self.statement, self.layout = statement, places
        self.blocks: list[Block] = []
        self.count = 0
        self.of_variables: list[tuple[Indices, Indices, Vector]] = []
        self.of_points: list[list[tuple[Indices, Indices, Indices, Vector]]] = [[] for _ in places.phases]
        for i, place in enumerate(places.phases):
            self._defects(i, place)
            self._point_rows(i, place)
            self._control_rows(i, place)
            self._integral_rows(i, place)
        self.ends_first = self.count
        for name, value in zip(statement.problem.constraints, statement.ends.constraints, strict=True):
            self._block("ends", -1, _numbered(name, value.numel()), np.zeros(1, np.int64))

    def _block(self, kind: str, phase: int, names: tuple[str, ...], slots: Indices) -> Indices:
        block = Block(kind, phase, names, slots, self.count)
        self.blocks.append(block)
        self.count += block.rows.size
        return block.rows

    def _variables(self, rows: Any, columns: Any, factors: Any) -> None:
        r, c, f = np.broadcast_arrays(rows, columns, factors)
        self.of_variables.append((r.ravel(), c.ravel(), f.ravel().astype(float)))

    def _points(self, phase: int, rows: Any, of_point: Any, points: Any, factors: Any) -> None:
        given = np.broadcast_arrays(rows, of_point, points, factors)
        r, y, k, f = (a.ravel() for a in given)
        self.of_points[phase].append((r, y, k, f.astype(float)))

    def _defects(self, i: int, place: PhaseLayout) -> None:
        mesh, point = place.mesh, self.statement.points[i]
        names = tuple(point.names[: point.nx])
        rows = self._block("defect", i, names, np.arange(1, mesh.slots))
        state = np.arange(point.nx)
        for scheme, some in mesh.groups:
            base, width = mesh.bases[some], mesh.widths[some]
            for a in range(scheme.steps):
                of_defect = rows[base + a]
                for r in range(scheme.steps + 1):
                    if scheme.P[a, r] != 0.0:
                        self._variables(of_defect, place.states[base + r], scheme.P[a, r])
                    if scheme.Q[a, r] != 0.0:
                        at = (base + r - mesh.first)[:, None]
                        self._points(i, of_defect, state, at, -scheme.Q[a, r] * width[:, None])

    def _point_rows(self, i: int, place: PhaseLayout) -> None:
        point, which = self.statement.points[i], self.statement.functions[i].rows
        phase = self.statement.problem.phases[i]
        slots = np.arange(place.mesh.first, place.mesh.slots)
        at = np.arange(len(slots))[:, None]
        if point.form is not None:
            names = tuple(v.name for v in point.form.unknowns)
            self._points(i, self._block("residual", i, names, slots), np.array(which.residuals), at, 1.0)
        if which.algebraic:
            names = tuple(v.name for v in phase.system.algebraic)
            self._points(i, self._block("algebraic", i, names, slots), np.array(which.algebraic), at, 1.0)
        begin = which.path.start
        for name, size in zip(phase.path, point.path_sizes, strict=True):
            rows = self._block("path", i, _numbered(name, size), slots)
            self._points(i, rows, begin + np.arange(size), at, 1.0)
            begin += size

    def _control_rows(self, i: int, place: PhaseLayout) -> None:
        mesh, point = place.mesh, self.statement.points[i]
        if not point.nu:
            return
        controls = place.point[:, point.nx + point.ns : point.nx + point.ns + point.nu]
        names = tuple(point.names[point.nx + point.ns : point.nx + point.ns + point.nu])
        for scheme, some in mesh.groups:
            for combination in scheme.control_rows:
                rows = self._block("control", i, names, mesh.bases[some] + 1)
                for r in np.flatnonzero(combination):
                    self._variables(rows, controls[mesh.bases[some] + r - mesh.first], combination[r])

    def _integral_rows(self, i: int, place: PhaseLayout) -> None:
        which = self.statement.functions[i].rows
        names = list(self.statement.problem.phases[i].integrals)
        mine = [(phase, j) for phase, j in self.statement.kept if phase == i]
        weights = place.mesh.weights[place.mesh.first :]
        for number, key in enumerate(mine):
            rows = self._block("integral", i, (names[key[1]],), np.zeros(1, np.int64))
            self._variables(rows, self.layout.integrals[key], 1.0)
            self._points(i, rows, which.integrands[number], np.arange(len(weights)), -weights)


def transcribe(
    statement: Statement, meshes: Sequence[Mesh], scale: Vector, shift: Vector, cost_scale: float,
    places: Layout | None = None,
) -> Transcription:  # fmt: skip
    """The program of `statement` on `meshes` (one per phase) with variables scaled by `scale` and `shift` (n,)."""
    import casadi as ca

    places = places or layout(statement.problem, statement.points, meshes, statement.kept)
    rows = _Rows(statement, places)
    row_scale = _row_scales(rows, places, scale)
    n, m = places.size, rows.count
    x, parameters = ca.MX.sym("x", n), ca.MX.sym("p", _parameter_size(statement, places))
    multipliers, of_cost = ca.MX.sym("lam_g", m), ca.MX.sym("lam_f")
    X = ca.DM(scale) * x + ca.DM(shift)

    cost: Any = ca.MX(0.0)
    values: Any = _constant_part(rows, row_scale, (m, n)) @ X
    jacobian, hessian = Entries(), Entries()
    for r, c, f in rows.of_variables:
        jacobian.add(r, c, 0, f)
    J_sources, H_sources = [ca.MX(1.0)], [ca.MX(1.0)]
    gradient_rows, gradient_parts = [], []
    J_size, H_size = 1, 1
    at = 0
    for i, place in enumerate(places.phases):
        point, functions = statement.points[i], statement.functions[i]
        count = len(place.point)
        W = ca.reshape(X[place.point.ravel().tolist()], place.point.shape[1], count)
        theta = X[place.theta.tolist()] if len(place.theta) else ca.MX(0, 1)
        nc, ns = point.constants.numel(), point.signals.numel()
        constants = parameters[at : at + nc]
        signals = ca.reshape(parameters[at + nc : at + nc + ns * count], ns, count)
        at += nc + ns * count
        fractions = ca.DM(place.mesh.fractions[place.mesh.first :]).T
        arguments = [W, theta, constants, signals, fractions]

        def mapped(function: Any, *more: Any, count: int = count, arguments: list[Any] = arguments) -> Any:
            made = function.map(function.name(), "serial", count, [1, 2], [])
            return made(*arguments, *more)

        weights = ca.DM(cost_scale * place.mesh.weights[place.mesh.first :])
        cost += ca.dot(weights, mapped(functions.cost).T)
        K, all_rows, of_point, of_points, factors = _mixing(rows, i, row_scale, functions.rows.count, count, m)
        values += K @ ca.vec(mapped(functions.values))

        # the variables of each point: its own, then those of the phase
        columns = np.hstack([place.point, np.broadcast_to(place.theta, (count, len(place.theta)))])
        nJ = len(functions.jacobian_rows)
        if nJ and len(all_rows):
            order = np.argsort(functions.jacobian_rows, kind="stable")
            counts = np.bincount(functions.jacobian_rows, minlength=functions.rows.count)
            begins = np.concatenate([[0], np.cumsum(counts)])
            repeats = counts[of_point]
            each = np.repeat(np.arange(len(all_rows)), repeats)
            within = np.arange(len(each)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
            entry = order[begins[of_point[each]] + within]
            jacobian.add(
                all_rows[each],
                columns[of_points[each], functions.jacobian_columns[entry]],
                J_size + of_points[each] * nJ + entry,
                factors[each],
            )
            J_sources.append(ca.vec(mapped(functions.jacobian)))
            J_size += nJ * count
        if len(functions.cost_columns):
            gradient_rows.append(columns[:, functions.cost_columns].ravel())
            nonzeros = mapped(functions.cost_gradient) * ca.repmat(weights.T, len(functions.cost_columns), 1)
            gradient_parts.append(ca.vec(nonzeros))
        nH = len(functions.hessian_rows)
        if nH:
            mu = ca.reshape(K.T @ multipliers, functions.rows.count, count)
            H_sources.append(ca.vec(mapped(functions.hessian, mu, of_cost * weights.T)))
            _add_hessian(
                hessian, columns[:, functions.hessian_rows], columns[:, functions.hessian_columns],
                functions.hessian_rows != functions.hessian_columns,
                H_size + np.arange(count)[:, None] * nH + np.arange(nH),
            )  # fmt: skip
            H_size += nH * count

    ends = end_functions(statement.points, statement.ends, places)
    v, c = X[ends.variables.tolist()], end_constants(statement.points, places, parameters)
    cost += cost_scale * ends.cost(v, c)
    if ends.gradient_columns.size:
        gradient_rows.append(ends.variables[ends.gradient_columns])
        gradient_parts.append(cost_scale * ends.gradient(v, c))
    end_rows = np.arange(rows.ends_first, m)
    if len(end_rows):
        values = ca.vertcat(values[: rows.ends_first], values[rows.ends_first :] + ends.constraints(v, c))
        jacobian.add(
            end_rows[ends.jacobian_rows], ends.variables[ends.jacobian_columns],
            J_size + np.arange(len(ends.jacobian_rows)), 1.0,
        )  # fmt: skip
        J_sources.append(ends.jacobian(v, c))
        J_size += len(ends.jacobian_rows)
    if len(ends.hessian_rows):
        mu = (ca.DM(1.0 / row_scale) * multipliers)[rows.ends_first :] if len(end_rows) else ca.MX(0, 1)
        H_sources.append(ends.hessian(v, c, mu, cost_scale * of_cost))
        _add_hessian(
            hessian, ends.variables[ends.hessian_rows], ends.variables[ends.hessian_columns],
            ends.hessian_rows != ends.hessian_columns, H_size + np.arange(len(ends.hessian_rows)),
        )  # fmt: skip
        H_size += len(ends.hessian_rows)

    if gradient_rows:
        g_rows = np.concatenate(gradient_rows)
        collect = constant_matrix(g_rows, np.arange(len(g_rows)), scale[g_rows], (n, len(g_rows)))
        gradient = ca.densify(collect @ ca.vertcat(*gradient_parts))
    else:
        gradient = ca.MX.zeros(n)
    r, c_, s, f = jacobian.joined()
    J = combined((r, c_, s, f / row_scale[r] * scale[c_]), (m, n), ca.vertcat(*J_sources))
    r, c_, s, f = hessian.joined()
    H = combined((r, c_, s, f * scale[r] * scale[c_]), (n, n), ca.vertcat(*H_sources))
    g = values * 1.0
    return Transcription(
        statement=statement,
        layout=places,
        blocks=tuple(rows.blocks),
        scale=scale,
        shift=shift,
        row_scale=row_scale,
        cost_scale=cost_scale,
        parameter_size=parameters.numel(),
        objective=ca.Function("nlp_f", [x, parameters], [cost], ["x", "p"], ["f"]),
        constraints=ca.Function("nlp_g", [x, parameters], [g], ["x", "p"], ["g"]),
        gradient=ca.Function("nlp_grad_f", [x, parameters], [cost, gradient], ["x", "p"], ["f", "grad_f_x"]),
        jacobian=ca.Function("nlp_jac_g", [x, parameters], [g, J], ["x", "p"], ["g", "jac_g_x"]),
        hessian=ca.Function(
            "nlp_hess_l", [x, parameters, of_cost, multipliers], [H], ["x", "p", "lam_f", "lam_g"],
            ["triu_hess_gamma_x_x"],
        ),
    )  # fmt: skip


def _constant_part(rows: _Rows, row_scale: Vector, shape: tuple[int, int]) -> Any:
    r, c, f = (np.concatenate(part) for part in zip(*rows.of_variables, strict=True))
    return constant_matrix(r, c, f / row_scale[r], shape)


def _mixing(
    rows: _Rows, i: int, row_scale: Vector, per_point: int, count: int, m: int
) -> tuple[Any, Indices, Indices, Indices, Vector]:
    """K (m, rows of all points of phase i), scaled, and its entries: row, row of the point, point, factor."""
    r, y, k, f = (np.concatenate(part) for part in zip(*rows.of_points[i], strict=True))
    return constant_matrix(r, k * per_point + y, f / row_scale[r], (m, per_point * count)), r, y, k, f


def _add_hessian(entries: Entries, a: Indices, b: Indices, different: Any, sources: Indices) -> None:
    """Upper triangles of parts, at their global places; what two variables that are one share counts twice."""
    factor = np.where((a == b) & different, 2.0, 1.0)
    entries.add(np.minimum(a, b), np.maximum(a, b), sources, factor)


def _row_scales(rows: _Rows, places: Layout, scale: Vector) -> Vector:
    """Defects are relative to the scale of their state, linear rows of controls to that of the control."""
    found = np.ones(rows.count)
    for block in rows.blocks:
        if block.kind == "defect":
            found[block.rows] = scale[places.phases[block.phase].states[0]]
        elif block.kind == "integral":
            number = list(rows.statement.problem.phases[block.phase].integrals).index(block.names[0])
            found[block.rows] = scale[places.integrals[block.phase, number]]
    return found


def _parameter_size(statement: Statement, places: Layout) -> int:
    return sum(
        point.constants.numel() + point.signals.numel() * len(place.point)
        for point, place in zip(statement.points, places.phases, strict=True)
    )


def _numbered(name: str, count: int) -> tuple[str, ...]:
    """Names of the rows of one constraint."""
    return (name,) if count == 1 else tuple(f"{name}[{i}]" for i in range(count))
