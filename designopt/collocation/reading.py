"""From the solver's numbers to a `Solution`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.collocation.boxes import Boxes
from designopt.collocation.layout import PhaseLayout
from designopt.collocation.points import Point
from designopt.collocation.problem import Phase, TrajectoryProblem
from designopt.collocation.scheme import lagrange
from designopt.collocation.solution import Iterate, Kind, PhaseSolution, Solution
from designopt.collocation.status import Status
from designopt.collocation.transcription import Statement, Transcription

Vector = NDArray[np.float64]


def read_solution(
    statement: Statement,
    problem: TrajectoryProblem,
    made: Transcription,
    given: Boxes,
    iterate: Iterate,
    status: Status,
    stats: Mapping[str, Any],
    timing: Mapping[str, float],
) -> Solution:
    """The solution of `problem` at the solver's `iterate`."""
    x = made.shift + made.scale * iterate.x
    phases, ends = {}, []
    at = 0
    for i, (phase, place) in enumerate(zip(problem.phases, made.layout.phases, strict=True)):
        point = statement.points[i]
        size = point.constants.numel() + point.signals.numel() * len(place.point)
        solution, constants = _phase(point, phase, place, given, x, given.parameters[at : at + size])
        at += size
        phases[phase.name] = solution
        integrals = np.array(list(solution.integrals.values()))
        ends.append((x[place.states[0]], x[place.states[-1]], solution.t0, solution.tf, integrals, constants))
    parameters = {name: float(x[index]) for name, index in made.layout.parameters.items()}
    objective, figures = _figures(statement, ends, list(parameters.values()))
    units = {v.name: v.unit for v in problem.variables}
    history = _history(stats)
    g = np.asarray(made.constraints(iterate.x, given.parameters), float).ravel()
    low, high = given.row_low / made.row_scale, given.row_high / made.row_scale
    violation = float(np.maximum(np.maximum(low - g, g - high), 0.0).max(initial=0.0))
    return Solution(
        status=status,
        message=status.value,
        objective=objective,
        terms={name: figures[name] for name in problem.terms},
        figures={name: figures[name] for name in problem.figures},
        phases=phases,
        parameters=parameters,
        parameter_bounds={
            name: (float(given.low[k]), float(given.high[k])) for name, k in made.layout.parameters.items()
        },
        parameter_units=units,
        parameter_multipliers={
            name: float(-iterate.of_bounds[k] / made.scale[k] / made.cost_scale)
            for name, k in made.layout.parameters.items()
        },
        violation=violation,
        iterations=int(stats.get("iter_count", 0)),
        history=history,
        timing=timing,
        iterate=iterate,
    )


def _phase(
    point: Point, phase: Phase, place: PhaseLayout, given: Boxes, x: Vector, numbers: Vector
) -> tuple[PhaseSolution, Vector]:
    """One phase, and its data that are numbers."""
    mesh = place.mesh
    nc = point.constants.numel()
    constants = numbers[:nc]
    fixed = list(constants[len(point.constant_names) :])
    t0 = float(x[place.t0]) if place.t0 >= 0 else float(fixed.pop(0))
    tf = float(x[place.tf]) if place.tf >= 0 else float(fixed.pop(0))
    form = point.form
    tables: list[tuple[Kind, Any]] = [
        ("state", phase.system.states),
        ("unknown", form.unknowns if form else ()),
        ("control", phase.system.controls),
        ("algebraic", phase.system.algebraic),
    ]
    kinds = {v.name: kind for kind, table in tables for v in table}
    units = {v.name: v.unit for _, table in tables for v in table}
    at_points = x[place.point]
    values, bounds = {}, {}
    for j, name in enumerate(point.names):
        if j < point.nx:
            values[name] = x[place.states[:, j]]
            inner = place.states[1 if mesh.slots > 2 else 0, j]
        else:
            values[name] = np.concatenate(
                [_extrapolated(mesh.schemes[0].points, at_points[:, j], mesh.first), at_points[:, j]]
            )
            inner = place.point[0, j]
        bounds[name] = (float(given.low[inner]), float(given.high[inner]))
    rates, path, integrands = _point_values(point, place, at_points, x, constants, numbers[nc:])
    duration = tf - t0
    weights = mesh.weights[mesh.first :]
    first = _extrapolated_rows(mesh.schemes[0].points, rates, mesh.first)
    all_rates = np.vstack([first, rates]) / duration
    return (
        PhaseSolution(
            name=phase.name,
            mesh=mesh,
            t0=t0,
            tf=tf,
            times=t0 + mesh.fractions * duration,
            values=values,
            rates={v.name: all_rates[:, j] for j, v in enumerate(phase.system.states)},
            kinds=kinds,
            units=units,
            bounds=bounds,
            path=path,
            integrals={name: float(weights @ integrands[:, j]) for j, name in enumerate(phase.integrals)},
        ),
        constants[: len(point.constant_names)],
    )


def _point_values(
    point: Point, place: PhaseLayout, at_points: Vector, x: Vector, constants: Vector, signals: Vector
) -> tuple[Vector, dict[str, Vector], Vector]:
    """Rates times duration (points, nx), path constraints by name, integrands times duration (points, integrals)."""
    count = len(place.point)
    fractions = place.mesh.fractions[place.mesh.first :]
    found = point.everything.map(count)(
        at_points.T, np.tile(x[place.theta][:, None], count), np.tile(constants[:, None], count),
        signals.reshape(count, -1).T, fractions[None, :],
    )  # fmt: skip
    rates, path, integrands = (np.asarray(entry, float).T.reshape(count, -1) for entry in found)
    named, at = {}, 0
    for name, size in zip(point.phase.path, point.path_sizes, strict=True):
        for k in range(size):
            named[name if size == 1 else f"{name}[{k}]"] = path[:, at + k]
        at += size
    return rates, named, integrands


def _extrapolated(points: Vector, values: Vector, first: int) -> Vector:
    """What the polynomial through the first interval's points gives at its left end, if there is no point."""
    return _extrapolated_rows(points, values[:, None], first)[:, 0]


def _extrapolated_rows(points: Vector, values: Vector, first: int) -> Vector:
    if first == 0:
        return np.empty((0, values.shape[1]))
    inner = points[1:]
    return np.asarray(lagrange(inner, np.zeros(1)) @ values[: len(inner)])


def _figures(statement: Statement, ends: list[Any], parameters: list[float]) -> tuple[float, dict[str, float]]:
    """The cost, and terms and figures by name."""
    import casadi as ca

    symbols = statement.ends
    names = list(symbols.figures)
    function = ca.Function("figures", symbols.all, [symbols.cost, ca.vertcat(*symbols.figures.values())])
    cost, figures = function(*(part for phase in ends for part in phase), parameters)
    return float(cost), dict(zip(names, np.asarray(figures, float).ravel().tolist(), strict=True))


def _history(stats: Mapping[str, Any]) -> dict[str, Vector]:
    given = stats.get("iterations", {})
    names = {"objective": "obj", "primal": "inf_pr", "dual": "inf_du", "barrier": "mu", "step": "alpha_pr"}
    return {name: np.asarray(given.get(key, []), float) for name, key in names.items()}
