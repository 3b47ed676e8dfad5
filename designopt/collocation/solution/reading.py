"""Conversion of the solver's numbers to a `Solution`, and the peaks of its motion."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solution.optimality.multipliers import path_blocks
from designopt.collocation.solution.optimality.named_multipliers import NamedMultipliers
from designopt.collocation.solution.solution import (
    ConstraintValues,
    Iterate,
    Kind,
    PhaseSolution,
    PhaseValues,
    Solution,
    Status,
)
from designopt.collocation.statement.added.peaks import path_rows
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.functions.functions import PerPoint, ProblemFunctions
from designopt.collocation.transcription.functions.samples import numeric_arguments
from designopt.collocation.transcription.layout import Layout
from designopt.collocation.transcription.transcription import Transcription
from designopt.dynamics.expressions import column
from designopt.lazy import casadi as ca


class Reader:
    """Reads variables of the programs of a problem with the `layout`; caches its functions."""

    def __init__(self, functions: ProblemFunctions, layout: Layout) -> None:
        self.problem_functions, self.layout = functions, layout
        self._of_points = [
            PerPoint(point.all_expressions, len(phase_layout.point))
            for point, phase_layout in zip(functions.points, layout.phases, strict=True)
        ]
        ends = functions.ends
        figures = ca.densify(column(ends.figures.values()))
        self._ends = PerPoint(ca.Function("figures", ends.all, [ends.cost, figures]), 1)

    def phase(self, i: int, x: Floats, parameters: Floats) -> PhaseValues:
        """Phase i at variables `x` (n,), not scaled, and the program's `parameters`."""
        layout = self.layout.phases[i]
        mesh = layout.mesh
        constants, signals = layout.constants_and_signals(parameters)
        rates, path, integrands, outputs = self._of_points[i](
            layout.at_points(x), x[layout.theta], constants, signals, mesh.fractions[mesh.first :, None]
        )
        integrals = mesh.weights[mesh.first :] @ integrands
        for sample, at in zip(self.problem_functions.samples, self.layout.samples, strict=True):
            if sample.phase == i and sample.kind == "sum":
                arguments = numeric_arguments(sample, at, x, x[layout.theta], constants, parameters)
                integrals[sample.number] = float(np.asarray(sample.values.map(at.count)(*arguments), float).sum())
        return PhaseValues(constants, signals, *layout.times_at(x, constants), rates, path, outputs, integrals)

    def ends(self, phases: Sequence[PhaseValues], x: Floats) -> list[Any]:
        """The arguments of all functions of the ends."""
        arguments: list[Any] = []
        for layout, point, values in zip(self.layout.phases, self.problem_functions.points, phases, strict=True):
            constants = values.constants[: len(point.constant_names)]
            arguments += [*layout.at_ends(x), values.t0, values.tf, values.integrals, constants]
        return [*arguments, x[list(self.layout.parameters.values())]]

    def figures(self, phases: Sequence[PhaseValues], x: Floats) -> tuple[float, dict[str, float]]:
        """The cost, and terms and figures by name."""
        cost, figures = self._ends(*self.ends(phases, x))
        return float(cost[0, 0]), dict(zip(self.problem_functions.ends.figures, figures.ravel().tolist(), strict=True))

    def cost(self, x: Floats, parameters: Floats) -> float:
        """The objective at variables `x` (n,), not scaled."""
        return self.figures([self.phase(i, x, parameters) for i in range(len(self.layout.phases))], x)[0]


class SearchEnd(Protocol):
    """The last iterate of a run, its scaled constraints `rows` (m,), its status, and statistics of the solver."""

    @property
    def iterate(self) -> Iterate: ...

    @property
    def rows(self) -> Floats: ...

    @property
    def status(self) -> Status: ...

    @property
    def stats(self) -> Mapping[str, Any]: ...


class SolutionReader:
    """Reads the ends of runs for a `problem` within `bounds` as solutions; fields that these share are computed
    once."""

    def __init__(
        self, reader: Reader, problem: TrajectoryProblem, transcription: Transcription, bounds: ProgramBounds
    ) -> None:
        self._reader, self._problem, self._transcription, self._bounds = reader, problem, transcription, bounds
        self._outputs = [
            {v.name: j for j, v in enumerate(point.outputs) if v.name not in point.names}
            for point in reader.problem_functions.points
        ]
        self._of_phases = [_phase_fields(i, problem, transcription, bounds) for i in range(len(problem.phases))]
        self._of_constraints, self._limited_integrals = _constraint_fields(problem, transcription, bounds)
        parameters = transcription.layout.parameters
        self._of_program: dict[str, Any] = {
            "parameter_bounds": {name: bounds.box(k) for name, k in parameters.items()},
            "parameter_units": {v.name: v.unit for v in problem.variables},
            "scales": scales_by_name(reader.problem_functions, transcription),
        }

    def solution(self, end: SearchEnd, x: Floats, facts: Mapping[str, Any]) -> Solution:
        """The solution at the `end` of a run with variables `x` (n,), not scaled; `facts` are its other fields."""
        reader, problem, transcription = self._reader, self._problem, self._transcription
        values = [reader.phase(i, x, self._bounds.parameters) for i in range(len(problem.phases))]
        multipliers = NamedMultipliers(problem, transcription, self._bounds, x, end.iterate, values)
        objective, figures = reader.figures(values, x)
        rows = end.rows * transcription.row_scale
        for row, phase, number in self._limited_integrals:
            rows[row] = values[phase].integrals[number]
        constraints = ConstraintValues(values=rows, **self._of_constraints)
        return Solution(
            status=end.status,
            message=end.status.value,
            objective=objective,
            terms={name: figures[name] for name in problem.terms},
            figures={name: figures[name] for name in problem.figures},
            phases={phase.name: self._phase(i, x, values[i], multipliers) for i, phase in enumerate(problem.phases)},
            parameters={name: float(x[k]) for name, k in transcription.layout.parameters.items()},
            parameter_multipliers=LazyMapping(multipliers.parameter_multipliers),
            violation=constraints.violation,
            iterations=int(end.stats.get("iter_count", 0)),
            history=_history(end.stats, transcription.cost_scale),
            iterate=end.iterate,
            constraints=constraints,
            multipliers=LazyMapping(multipliers.limit_multipliers),
            data_sensitivity=LazyMapping(multipliers.data_multipliers),
            **self._of_program,
            **facts,
        )

    def _phase(self, i: int, x: Floats, values: PhaseValues, multipliers: NamedMultipliers) -> PhaseSolution:
        layout, point = self._transcription.layout.phases[i], self._reader.problem_functions.points[i]
        phase, mesh, of_phase = self._problem.phases[i], layout.mesh, self._of_phases[i]
        all_points, rates, outputs = layout.at_points(x).copy(), values.rates, values.outputs
        if mesh.first:
            first = mesh.left[None, :]
            all_points, rates, outputs = (
                np.vstack([first @ of_collocated[: first.shape[1]], of_collocated])
                for of_collocated in (all_points, rates, outputs)
            )
            all_points[: mesh.first, : point.nx] = x[layout.states[: mesh.first]]
        rates = rates / values.duration
        return PhaseSolution(
            name=phase.name,
            mesh=mesh,
            t0=values.t0,
            tf=values.tf,
            times=values.t0 + mesh.fractions * values.duration,
            values={
                **dict(zip(point.names, all_points.T, strict=True)),
                **{name: outputs[:, j] for name, j in self._outputs[i].items()},
            },
            rates=dict(zip(point.names[: point.nx], rates.T, strict=True)),
            path=dict(zip(of_phase["path_limits"], values.path.T, strict=True)),
            integrals=dict(zip(phase.integrals, values.integrals.tolist(), strict=True)),
            costates=LazyMapping(lambda: multipliers.state_multipliers(i)),
            end_multipliers=LazyMapping(lambda: multipliers.end_multipliers(i)),
            bound_multipliers=LazyMapping(lambda: multipliers.bound_multipliers(i)),
            path_multipliers=LazyMapping(lambda: multipliers.path_multipliers(i)),
            **of_phase,
        )


def _phase_fields(
    i: int, problem: TrajectoryProblem, transcription: Transcription, program_bounds: ProgramBounds
) -> dict[str, Any]:
    """Fields of the solution of phase i that do not depend on its values: kinds, units and limits."""
    phase, layout, point = problem.phases[i], transcription.layout.phases[i], transcription.problem_functions.points[i]
    system = phase.system
    tables: list[tuple[Kind, Any]] = [
        ("state", system.states),
        ("unknown", point.form.unknowns if point.form else ()),
        ("control", system.controls),
        ("algebraic", system.algebraic),
        ("output", [v for v in point.outputs if v.name not in point.names]),
    ]
    bounds, ends = {}, {}
    for j, name in enumerate(point.names):
        inner = layout.point[0, j]
        if j < point.nx:
            states = layout.states[:, j]
            inner = states[1 if layout.mesh.slots > 2 else 0]
            ends[name] = program_bounds.box(states[0]), program_bounds.box(states[-1])
        bounds[name] = program_bounds.box(inner)
        if not isinstance(phase.held_controls.get(name, 0), int):  # the boxes of its points are its values
            bounds[name] = phase.ranges[name]
    path_names = [name for block in path_blocks(transcription, i) for name in block.names]
    return {
        "kinds": {v.name: kind for kind, table in tables for v in table},
        "units": {v.name: v.unit for _, table in tables for v in table},
        "bounds": bounds,
        "ends": ends,
        "path_limits": {n: (phase.path[_stem(n)].low, phase.path[_stem(n)].high) for n in path_names},
    }


def _stem(name: str) -> str:
    """The name of a constraint, from that of one of its rows."""
    return name.split("[")[0]


def _constraint_fields(
    problem: TrajectoryProblem, transcription: Transcription, bounds: ProgramBounds
) -> tuple[dict[str, Any], list[tuple[int, int, int]]]:
    """Fields of `ConstraintValues` other than the values; the row, phase and number of each integral with a limit.

    The program limits an integral by the box of a variable that equals it; here the limits stand at the row of the
    integral, whose value is the integral."""
    units, limited_integrals = [], []
    low, high = bounds.row_low.copy(), bounds.row_high.copy()
    for block in transcription.blocks:
        phase = problem.phases[block.phase]
        tables: Mapping[str, Mapping[str, Any]] = {
            "path": phase.path,
            "sample": phase.samples,
            "ends": problem.constraints,
            "integral": phase.integrals,
        }
        limits = tables.get(block.kind, {})
        stated_block = limits.get(
            _stem(block.names[0])
        )  # a variant need not repeat constraints that the problem adds itself
        units.append(stated_block.unit if stated_block else "")
        if (
            block.kind == "integral"
            and stated_block
            and (math.isfinite(stated_block.low) or math.isfinite(stated_block.high))
        ):
            limited_integrals.append((block.first, block.phase, list(phase.integrals).index(block.names[0])))
            low[block.first], high[block.first] = stated_block.low, stated_block.high
    fields = {
        "blocks": transcription.blocks, "units": tuple(units), "low": low, "high": high,
        "scale": transcription.row_scale,
    }  # fmt: skip
    return fields, limited_integrals


def scales_by_name(functions: ProblemFunctions, transcription: Transcription) -> dict[str, float]:
    """Scales of variables by "phase.name", of parameters by name."""
    scale_of = {}
    for phase, point, phase_layout in zip(
        functions.problem.phases, functions.points, transcription.layout.phases, strict=True
    ):
        for j, name in enumerate(point.names):
            scale_of[f"{phase.name}.{name}"] = float(transcription.scale[phase_layout.point[0, j]])
        scale_of.update({f"{phase.name}.{n}": float(transcription.scale[k]) for n, k in phase_layout.times.items()})
    scale_of.update({name: float(transcription.scale[k]) for name, k in transcription.layout.parameters.items()})
    return scale_of


def _history(stats: Mapping[str, Any], cost_scale: float) -> dict[str, Floats]:
    iterations = stats.get("iterations", {})
    names = {"objective": "obj", "primal": "inf_pr", "dual": "inf_du", "barrier": "mu", "step": "alpha_pr"}
    history = {name: np.asarray(iterations.get(key, []), float) for name, key in names.items()}
    history["objective"] = history["objective"] / cost_scale
    return history


Value = TypeVar("Value")


class LazyMapping(Mapping[str, Value]):
    """A mapping whose entries are computed together, by `compute`, at the first access."""

    def __init__(self, compute: Callable[[], Mapping[str, Value]]) -> None:
        self._compute: Callable[[], Mapping[str, Value]] | None = compute
        self._cache: Mapping[str, Value] = {}

    def _all(self) -> Mapping[str, Value]:
        if self._compute is not None:
            with np.errstate(all="ignore"):  # the last iterate of a failed solve may contain any numbers
                self._cache = self._compute()
            self._compute = None
        return self._cache

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


def peak_values(problem: TrajectoryProblem, solution: Solution) -> dict[str, float]:
    """The peaks of `problem` in its `solution`, by name."""
    peak_of, phases, rows = {}, [phase.name for phase in problem.phases], solution.constraints
    for name, peak in problem.peaks.items():
        room, own_rows = math.inf, path_rows(peak)
        for block in rows.blocks if peak.state else ():
            if block.kind in ("path", "sample") and phases[block.phase] == peak.phase:
                columns = [j for j, label in enumerate(block.names) if label in own_rows]
                room = min(room, float(rows.values[block.rows[:, columns]].min(initial=math.inf)))
        if room < math.inf:
            level = float(solution.phases[peak.phase].values[peak.state][0])
            peak_of[name] = level + room if peak.extremum == "smallest" else level - room
    return peak_of
