"""Conversion of the solver's numbers to a `Solution`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from designopt.arrays import Vector
from designopt.collocation.solution.optimality.constraints import ConstraintValues
from designopt.collocation.solution.optimality.named_multipliers import NamedMultipliers, path_blocks
from designopt.collocation.solution.phase_values import PhaseValues
from designopt.collocation.solution.solution import Iterate, Kind, PhaseSolution, Solution
from designopt.collocation.solution.status import Status
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.functions.functions import ProblemFunctions
from designopt.collocation.transcription.functions.per_point import PerPoint
from designopt.collocation.transcription.mesh.layout import Layout
from designopt.collocation.transcription.mesh.points import column
from designopt.collocation.transcription.mesh.samples import numeric_arguments
from designopt.collocation.transcription.transcription import Transcription
from designopt.lazy import casadi as ca


class Reader:
    """Reads variables of the programs of `statement` with the layout `places`; caches its functions."""

    def __init__(self, statement: ProblemFunctions, places: Layout) -> None:
        self.statement, self.places = statement, places
        self._of_points = [
            PerPoint(point.everything, len(place.point))
            for point, place in zip(statement.points, places.phases, strict=True)
        ]
        ends = statement.ends
        figures = ca.densify(column(list(ends.figures.values())))
        self._ends = PerPoint(ca.Function("figures", ends.all, [ends.cost, figures]), 1)

    def phase(self, i: int, x: Vector, parameters: Vector) -> PhaseValues:
        """Phase i at variables `x` (n,), not scaled, and the program's `parameters`."""
        place, point = self.places.phases[i], self.statement.points[i]
        mesh, count = place.mesh, len(place.point)
        constants = parameters[place.constants : place.signals]
        signals = parameters[place.signals : place.numbers_end].reshape(count, -1)
        fixed = list(constants[len(point.constant_names) :])
        t0 = float(x[place.t0]) if place.t0 >= 0 else float(fixed.pop(0))
        tf = float(x[place.tf]) if place.tf >= 0 else float(fixed.pop(0))
        rates, path, integrands = self._of_points[i](
            x[place.point], x[place.theta], constants, signals, mesh.fractions[mesh.first :, None]
        )
        integrals = mesh.weights[mesh.first :] @ integrands
        for sample, at in zip(self.statement.samples, self.places.samples, strict=True):
            if sample.phase == i and sample.kind == "sum":
                given = numeric_arguments(sample, at, x, x[place.theta], constants, parameters)
                integrals[sample.number] = float(np.asarray(sample.values.map(at.count)(*given), float).sum())
        return PhaseValues(constants, signals, t0, tf, rates, path, integrals)

    def ends(self, phases: Sequence[PhaseValues], x: Vector) -> list[Any]:
        """The arguments of all functions of the ends."""
        given: list[Any] = []
        for place, point, values in zip(self.places.phases, self.statement.points, phases, strict=True):
            constants = values.constants[: len(point.constant_names)]
            given += [*place.at_ends(x), values.t0, values.tf, values.integrals, constants]
        return [*given, x[list(self.places.parameters.values())]]

    def figures(self, phases: Sequence[PhaseValues], x: Vector) -> tuple[float, dict[str, float]]:
        """The cost, and terms and figures by name."""
        cost, figures = self._ends(*self.ends(phases, x))
        return float(cost[0, 0]), dict(zip(self.statement.ends.figures, figures.ravel().tolist(), strict=True))

    def cost(self, x: Vector, parameters: Vector) -> float:
        """The objective at variables `x` (n,), not scaled."""
        return self.figures([self.phase(i, x, parameters) for i in range(len(self.places.phases))], x)[0]


def read_solution(
    reader: Reader,
    problem: TrajectoryProblem,
    made: Transcription,
    given: ProgramBounds,
    iterate: Iterate,
    rows: Vector,
    status: Status,
    stats: Mapping[str, Any],
    timing: Mapping[str, float],
    values: Sequence[PhaseValues] | None = None,
) -> Solution:
    """The solution of `problem` at the solver's `iterate`, where the scaled constraints are `rows` (m,) and the phases
    have these `values`, if already computed."""
    statement = reader.statement
    x = made.shift + made.scale * iterate.x
    values = values or [reader.phase(i, x, given.parameters) for i in range(len(problem.phases))]
    multipliers = NamedMultipliers(problem, made, given, x, iterate, values)
    phases = {
        phase.name: _phase(i, problem, made, given, x, of_phase, multipliers)
        for i, (phase, of_phase) in enumerate(zip(problem.phases, values, strict=True))
    }
    objective, figures = reader.figures(values, x)
    parameters = made.layout.parameters
    constraints = _constraints(problem, made, given, rows, values)
    return Solution(
        status=status,
        message=status.value,
        objective=objective,
        terms={name: figures[name] for name in problem.terms},
        figures={name: figures[name] for name in problem.figures},
        phases=phases,
        parameters={name: float(x[k]) for name, k in parameters.items()},
        parameter_bounds={name: (float(given.low[k]), float(given.high[k])) for name, k in parameters.items()},
        parameter_units={v.name: v.unit for v in problem.variables},
        parameter_multipliers=Deferred(multipliers.of_parameters),
        violation=constraints.violation,
        iterations=int(stats.get("iter_count", 0)),
        history=_history(stats, made.cost_scale),
        timing=timing,
        iterate=iterate,
        constraints=constraints,
        multipliers=Deferred(multipliers.of_limits),
        data_sensitivity=Deferred(multipliers.of_data),
        scales=scales_by_name(statement, made),
    )


def _phase(
    i: int,
    problem: TrajectoryProblem,
    made: Transcription,
    given: ProgramBounds,
    x: Vector,
    of_points: PhaseValues,
    multipliers: NamedMultipliers,
) -> PhaseSolution:
    phase, place, point = problem.phases[i], made.layout.phases[i], made.statement.points[i]
    mesh, system = place.mesh, phase.system
    tables: list[tuple[Kind, Any]] = [
        ("state", system.states),
        ("unknown", point.form.unknowns if point.form else ()),
        ("control", system.controls),
        ("algebraic", system.algebraic),
    ]
    at_points = x[place.point]
    first = mesh.left[None, :] if mesh.first else np.empty((0, 1))
    all_points = np.vstack([first @ at_points[: first.shape[1]], at_points])
    all_points[: mesh.first, : point.nx] = x[place.states[: mesh.first]]
    rates = np.vstack([first @ of_points.rates[: first.shape[1]], of_points.rates]) / of_points.duration
    bounds, ends = {}, {}
    for j, name in enumerate(point.names):
        inner = place.point[0, j]
        if j < point.nx:
            states = place.states[:, j]
            inner = states[1 if mesh.slots > 2 else 0]
            a, b = ((float(given.low[k]), float(given.high[k])) for k in (states[0], states[-1]))
            ends[name] = (a, b)
        bounds[name] = (float(given.low[inner]), float(given.high[inner]))
        if not isinstance(phase.held.get(name, 0), int):  # the boxes of its points are its values
            own = next(v for v in system.controls if v.name == name)
            bounds[name] = phase.bounds.get(name, (own.low, own.high))
    names = [name for block in path_blocks(made, i) for name in block.names]
    return PhaseSolution(
        name=phase.name,
        mesh=mesh,
        t0=of_points.t0,
        tf=of_points.tf,
        times=of_points.t0 + mesh.fractions * of_points.duration,
        values={name: all_points[:, j] for j, name in enumerate(point.names)},
        rates={v.name: rates[:, j] for j, v in enumerate(system.states)},
        kinds={v.name: kind for kind, table in tables for v in table},
        units={v.name: v.unit for _, table in tables for v in table},
        bounds=bounds,
        ends=ends,
        path=dict(zip(names, of_points.path.T, strict=True)),
        path_limits={n: (phase.path[_stem(n)].low, phase.path[_stem(n)].high) for n in names},
        integrals=dict(zip(phase.integrals, of_points.integrals.tolist(), strict=True)),
        costates=Deferred(lambda: multipliers.of_states(i)),
        end_multipliers=Deferred(lambda: multipliers.of_ends(i)),
        bound_multipliers=Deferred(lambda: multipliers.bound_multipliers(i)),
        path_multipliers=Deferred(lambda: multipliers.of_path(i)),
    )


def _stem(name: str) -> str:
    """The name of a constraint, from that of one of its rows."""
    return name.split("[")[0]


def _constraints(
    problem: TrajectoryProblem,
    made: Transcription,
    given: ProgramBounds,
    rows: Vector,
    of_points: Sequence[PhaseValues],
) -> ConstraintValues:
    """All rows, not scaled. Limits of an integral are those of a variable that equals it; here they are its own."""
    units = []
    values, low, high = rows * made.row_scale, given.row_low.copy(), given.row_high.copy()
    for block in made.blocks:
        phase = problem.phases[block.phase]
        tables: Mapping[str, Mapping[str, Any]] = {
            "path": phase.path,
            "sample": phase.samples,
            "ends": problem.constraints,
            "integral": phase.integrals,
        }
        stated = tables.get(block.kind, {})
        of = stated.get(_stem(block.names[0]))  # a variant need not repeat constraints that the problem adds itself
        units.append(of.unit if of else "")
        if block.kind == "integral" and of and (math.isfinite(of.low) or math.isfinite(of.high)):
            number = list(phase.integrals).index(block.names[0])
            values[block.first], low[block.first], high[block.first] = (
                of_points[block.phase].integrals[number], of.low, of.high,
            )  # fmt: skip
    return ConstraintValues(made.blocks, tuple(units), values, low, high, made.row_scale)


def scales_by_name(statement: ProblemFunctions, made: Transcription) -> dict[str, float]:
    """Scales of variables by "phase.name", of parameters by name."""
    found = {}
    for phase, point, place in zip(statement.problem.phases, statement.points, made.layout.phases, strict=True):
        for j, name in enumerate(point.names):
            found[f"{phase.name}.{name}"] = float(made.scale[place.point[0, j]])
        found.update(
            {f"{phase.name}.{n}": float(made.scale[k]) for n, k in (("t0", place.t0), ("tf", place.tf)) if k >= 0}
        )
    found.update({name: float(made.scale[k]) for name, k in made.layout.parameters.items()})
    return found


def _history(stats: Mapping[str, Any], cost_scale: float) -> dict[str, Vector]:
    given = stats.get("iterations", {})
    names = {"objective": "obj", "primal": "inf_pr", "dual": "inf_du", "barrier": "mu", "step": "alpha_pr"}
    history = {name: np.asarray(given.get(key, []), float) for name, key in names.items()}
    history["objective"] = history["objective"] / cost_scale
    return history


Value = TypeVar("Value")


class Deferred(Mapping[str, Value]):
    """A mapping whose entries are computed together, by `compute`, at the first access."""

    def __init__(self, compute: Callable[[], Mapping[str, Value]]) -> None:
        self._compute: Callable[[], Mapping[str, Value]] | None = compute
        self._known: Mapping[str, Value] = {}

    def _all(self) -> Mapping[str, Value]:
        if self._compute is not None:
            with np.errstate(all="ignore"):  # the last iterate of a failed solve may contain any numbers
                self._known = self._compute()
            self._compute = None
        return self._known

    def __getitem__(self, name: str) -> Value:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return repr(dict(self._all()))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self._all()),)
