"""Functions of a problem at the ends of its phases: terminal cost, constraints, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.arrays import Indices
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.statement.symbols import Ends, EndVariables, Named, PhaseEnds, stacked
from designopt.collocation.transcription.entries import stretch
from designopt.collocation.transcription.mesh.layout import Layout
from designopt.collocation.transcription.mesh.points import CollocationPoint, column, nonzeros, stated
from designopt.lazy import casadi as ca


@dataclass(frozen=True, eq=False)
class EndSymbols:
    """Symbols for all functions of the ends, and the problem's expressions of them.

    `phases` has (initial variables, final variables, t0, tf, integrals, constants) of each; `cost`, `constraints` in
    their order, `figures` by name: terms of the cost and figures of the problem. `left` marks phases with an initial
    variable other than a state in these functions: those need a point at their left end.
    """

    phases: tuple[tuple[Any, Any, Any, Any, Any, Any], ...]
    parameters: Any
    cost: Any
    constraints: tuple[Any, ...]
    figures: Mapping[str, Any]
    left: tuple[bool, ...]

    @property
    def all(self) -> list[Any]:
        """All symbols, phase by phase, parameters at the end."""
        return [*(s for phase in self.phases for s in phase), self.parameters]


def end_symbols(problem: TrajectoryProblem, points: Sequence[CollocationPoint]) -> EndSymbols:
    """The functions of the ends. Raises `ProblemError` for unknown names in them."""
    phases, named = [], {}
    parameters = {v.name: ca.SX.sym(v.name) for v in problem.variables}
    for phase, point in zip(problem.phases, points, strict=True):
        states, vectors = point.names[: point.nx], phase.system.vectors
        x0 = {n: ca.SX.sym(f"{n}_initial") for n in point.names}
        xf = {n: ca.SX.sym(f"{n}_final") for n in point.names}
        t0, tf = ca.SX.sym("t0"), ca.SX.sym("tf")
        integral = {n: ca.SX.sym(n) for n in phase.integrals}
        constant = {n: ca.SX.sym(n) for n in point.constant_names}
        phases.append((
            column(list(x0.values())), column(list(xf.values())), t0, tf, column(list(integral.values())),
            column(list(constant.values())),
        ))  # fmt: skip
        named[phase.name] = PhaseEnds(
            EndVariables(x0, t0, states, vectors),
            EndVariables(xf, tf, states, vectors),
            t0,
            tf,
            Named(integral, "integral"),
            Named(constant, "data entry that is a number"),
        )
    parameter_multipliers = stacked(parameters, [v for phase in problem.phases for v in phase.system.vectors])
    e = Ends(Named(named, "phase"), Named({**parameters, **parameter_multipliers}, "parameter"))
    figures = {n: stated(f"terms.{n}", f, e, scalar=True) for n, f in problem.terms.items()}
    figures.update({n: stated(f"figures.{n}", f, e, scalar=True) for n, f in problem.figures.items()})
    cost = stated("cost", problem.cost, e, scalar=True)
    constraints = tuple(stated(f"constraints.{n}", c.value, e) for n, c in problem.constraints.items())
    every = ca.vertcat(cost, *constraints, *figures.values())
    left = tuple(
        point.nx < len(point.names) and bool(ca.depends_on(every, of_phase[0][point.nx :]))
        for point, of_phase in zip(points, phases, strict=True)
    )
    return EndSymbols(tuple(phases), column(list(parameters.values())), cost, constraints, figures, left)


def unlinked_warnings(problem: TrajectoryProblem, symbols: EndSymbols) -> tuple[str, ...]:
    """A warning for each phase that begins when the one before ends, but whose states, which that has too, begin
    anywhere: neither `initial` nor a constraint or the cost says where."""
    warnings = []
    terms = ca.vertcat(symbols.cost, *symbols.constraints)
    for i, (before, phase) in enumerate(zip(problem.phases, problem.phases[1:], strict=False), start=1):
        if phase.t0 is not None and phase.t0 != before.tf:  # not one motion
            continue
        vectors = [v for v in phase.system.vectors if v.name in phase.initial]
        stated_names = {*phase.initial, *(name for v in vectors for name in v.names)}
        controls = {v.name for v in phase.system.controls}
        common = {v.name for v in before.system.states if f"{v.name}_rate" not in controls}  # a control may jump
        loose = [
            v.name
            for j, v in enumerate(phase.system.states)
            if v.name in common and v.name not in stated_names and not ca.depends_on(terms, symbols.phases[i][0][j])
        ]
        if loose:
            few = ", ".join(loose[:4]) + (" ..." if len(loose) > 4 else "")
            warnings.append(
                f"unlinked: {few} of {phase.name} may begin anywhere, not where {before.name} ends: add the constraint"
                f" linked({before.name}, {phase.name}), or give 'initial' what it jumps to"
            )
    return tuple(warnings)


def linear_integrals(problem: TrajectoryProblem, symbols: EndSymbols) -> dict[tuple[int, int], float]:
    """The integrals (phase, number) that appear only in the cost and only with a constant factor: they need no
    variable."""
    factors = {}
    constraint_rows = ca.vertcat(*symbols.constraints) if symbols.constraints else ca.SX(0, 1)
    for i, (phase, (_, _, _, _, integrals, _)) in enumerate(zip(problem.phases, symbols.phases, strict=True)):
        for j, integral in enumerate(phase.integrals.values()):
            symbol = integrals[j]
            slope = ca.jacobian(symbols.cost, symbol)
            limited = integral.low > -float("inf") or integral.high < float("inf")
            if slope.is_constant() and not limited and not ca.depends_on(constraint_rows, symbol):
                factors[i, j] = float(slope)
    return factors


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


def end_functions(symbols_of: EndSymbols, places: Layout) -> EndFunctions:
    """The functions, with their derivatives with respect to the variables on which they depend."""
    symbols, where, constants = [], [], []
    replaced, by = [], []
    stated = ca.vertcat(symbols_of.cost, *symbols_of.constraints)
    for i, (phase_layout, ends) in enumerate(zip(places.phases, symbols_of.phases, strict=True)):
        x0, xf, t0, tf, integrals, data_multipliers = ends
        nx = phase_layout.states.shape[1]
        symbols += [x0[:nx], xf[:nx]]
        where += [*phase_layout.states[0], *phase_layout.states[-1]]
        for j in range(nx, x0.numel()):
            for symbol, slot in ((x0[j], 0), (xf[j], -1)):
                if ca.depends_on(stated, symbol):
                    symbols.append(symbol)
                    where.append(phase_layout.point[slot, j])
        constants.append(data_multipliers)
        for time, index in ((t0, phase_layout.t0), (tf, phase_layout.tf)):
            if index >= 0:
                symbols.append(time)
                where.append(index)
            else:
                constants.append(time)
        for j in range(integrals.numel()):
            if (i, j) in places.integrals:
                symbols.append(integrals[j])
                where.append(places.integrals[i, j])
            else:
                replaced.append(integrals[j])
                by.append(ca.SX(0.0))
    symbols.append(symbols_of.parameters)
    where += list(places.parameters.values())
    v: Any = ca.vertcat(*symbols)
    c = column(constants)
    cost, rows = symbols_of.cost, column(list(symbols_of.constraints))
    if replaced:
        cost, rows = ca.substitute([cost, rows], [ca.vertcat(*replaced)], [ca.vertcat(*by)])
    gradient: Any = ca.jacobian(cost, v)
    jacobian: Any = ca.jacobian(rows, v)
    mu, sigma = ca.SX.sym("mu", rows.numel()), ca.SX.sym("sigma")
    hessian: Any = ca.triu(ca.hessian(sigma * cost + ca.dot(mu, rows), v)[0])

    G, J, H = gradient.sparsity(), jacobian.sparsity(), hessian.sparsity()
    return EndFunctions(
        np.array(where, np.int64),
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


def end_constants(places: Layout, parameters: Any) -> Any:
    """All constants of the functions of the ends: of each phase its numeric data, then its fixed times."""
    return ca.vertcat(
        *(stretch(parameters, phase_layout.constants, phase_layout.signals) for phase_layout in places.phases)
    )
