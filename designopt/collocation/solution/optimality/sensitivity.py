"""Sensitivity of the optimal objective to numbers of a problem that are not variables: data and fixed times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solution.optimality.multipliers import Multipliers
from designopt.collocation.solution.solution import PhaseValues
from designopt.collocation.statement.problem import Phase, TrajectoryProblem
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.functions.functions import ProblemFunctions, linear_integrals
from designopt.collocation.transcription.functions.samples import (
    SampleEntries,
    SamplePoint,
    numeric_arguments,
    samples_of,
)
from designopt.collocation.transcription.transcription import Transcription
from designopt.dynamics.expressions import column
from designopt.dynamics.signals import Signal
from designopt.lazy import casadi as ca

#: Functions of a statement, built on demand.
_FORMED: WeakKeyDictionary[ProblemFunctions, tuple[list[Any], Any]] = WeakKeyDictionary()


def data_sensitivity(
    problem: TrajectoryProblem,
    transcription: Transcription,
    bounds: ProgramBounds,
    multipliers: Multipliers,
    x: Floats,
    values: Sequence[PhaseValues],
) -> dict[str, float]:
    """d objective / d numeric data and fixed times, by "phase.name".

    The gradient of the Lagrangian at variables `x` (not scaled), where the functions of the phases have `values`. A
    fixed time also shifts the samples of signals over time. NaN if samples at given times would move over the mesh.
    """
    problem_functions = transcription.problem_functions
    of_points, end_multipliers = _functions(problem_functions)
    ends: list[Any] = []
    results: list[tuple[Phase, list[str], Floats]] = []
    for i, (phase, phase_layout, phase_values) in enumerate(
        zip(problem.phases, transcription.layout.phases, values, strict=True)
    ):
        point, count = problem_functions.points[i], len(phase_layout.point)
        nc, ns = len(phase_values.constants), point.signals.numel()
        arguments = phase_layout.arguments(x, phase_values.constants, phase_values.signals)
        fractions = arguments[-1][0]
        weights = phase_layout.mesh.weights[None, phase_layout.mesh.first :]
        of_rows = multipliers.by_point(transcription, i).T
        gradient = np.asarray(of_points[i].map(count)(*arguments, of_rows, weights), float).reshape(nc + ns, count)
        for sample, at in zip(problem_functions.samples, transcription.layout.samples, strict=True):
            if sample.phase == i:
                gradient = np.hstack(
                    [gradient, _sample_sensitivity(transcription, sample, at, multipliers, x, phase_values, bounds)]
                )
                fractions = np.concatenate([fractions, at.fractions])
        total = gradient[:nc].sum(axis=1)
        if any(s.phase == i and not samples_of(phase, s).of_duration for s in problem_functions.samples):
            total[len(point.constant_names) :] = np.nan  # samples would move over the mesh
        for j, name in enumerate(phase_layout.fixed_times, len(point.constant_names)):
            share = 1.0 - fractions if name == "t0" else fractions
            for k, entry in enumerate(point.signal_names):
                signal = phase.data[entry]
                if isinstance(signal, Signal) and not signal.of_duration:
                    slope = signal.slope(phase_values.t0 + fractions * phase_values.duration)
                    total[j] += float(gradient[nc + k] @ (slope * share))
        results.append((phase, [*point.constant_names, *phase_layout.fixed_times], total))
        data = phase_values.constants[: len(point.constant_names)]
        ends += [*phase_layout.at_ends(x), phase_values.t0, phase_values.tf, phase_values.integrals, data]
    limit_multipliers = [
        multipliers.constraint_multipliers[block.rows].ravel() for block in transcription.blocks if block.kind == "ends"
    ]
    ends += [x[list(transcription.layout.parameters.values())], np.concatenate([*limit_multipliers, np.empty(0)])]
    by_ends = [np.asarray(entry, float).ravel() for entry in end_multipliers(*ends)]
    sensitivities = {}
    for i, (phase, names, total) in enumerate(results):
        of_times = dict(zip(("t0", "tf"), by_ends[2 * i + 1], strict=True))
        direct = [*by_ends[2 * i], *(of_times[name] for name in names if name in of_times)]
        for name, of_point, of_end in zip(names, total, direct, strict=True):
            sensitivities[f"{phase.name}.{name}"] = float(of_point + of_end)
    return sensitivities


def _sample_sensitivity(
    transcription: Transcription, sample: SamplePoint, entries: SampleEntries, multipliers: Multipliers, x: Floats,
    values: PhaseValues,
    bounds: ProgramBounds,
) -> Floats:  # fmt: skip
    """The gradient (constants and signals, n) of the contribution of samples to the Lagrangian."""
    theta = x[transcription.layout.phases[sample.phase].theta]
    arguments = numeric_arguments(sample, entries, x, theta, values.constants, bounds.parameters)
    direct = transcription.problem_functions.direct.get((sample.phase, sample.number))
    kind, name = ("integral", sample.name) if sample.kind == "sum" else ("sample", sample.name)
    if sample.kind == "sum" and direct is not None:
        mu = np.full((1, entries.count), direct)
    else:
        (block,) = [
            b
            for b in transcription.blocks
            if (b.kind, b.phase) == (kind, sample.phase) and b.names[0] in (name, f"{name}[0]")
        ]
        rows = multipliers.constraint_multipliers[block.rows]
        mu = np.broadcast_to(-rows if sample.kind == "sum" else rows, (entries.count, sample.size)).T
    return np.asarray(sample.by_numbers.map(entries.count)(*arguments, mu), float).reshape(-1, entries.count)


def _functions(functions: ProblemFunctions) -> tuple[list[Any], Any]:
    """Derivatives of the Lagrangian: of a point with respect to constants and signals, one per phase; of the ends with
    respect to their data and times, phase by phase."""
    if functions in _FORMED:
        return _FORMED[functions]
    direct = linear_integrals(functions.problem, functions.ends)
    of_points = []
    for i, point in enumerate(functions.points):
        rows, _ = point.equations([j for phase, j in functions.integral_variables if phase == i])
        cost = point.running_cost([(j, weight) for (phase, j), weight in direct.items() if phase == i])
        mu, sigma = ca.SX.sym("mu", rows.numel()), ca.SX.sym("sigma")
        by = ca.vertcat(point.constants, point.signals)
        gradient = ca.densify(ca.gradient(ca.dot(mu, rows) + sigma * cost, by)) if by.numel() else ca.SX(0, 1)
        of_points.append(ca.Function("by_data", [*point.arguments, mu, sigma], [gradient]))
    ends = functions.ends
    rows = column(ends.constraints)
    mu = ca.SX.sym("mu", rows.numel())
    lagrangian = ends.cost + ca.dot(mu, rows)
    results = []
    for _, _, t0, tf, _, data in ends.phases:
        results.append(ca.densify(ca.gradient(lagrangian, data)) if data.numel() else ca.SX(0, 1))
        results.append(ca.densify(ca.gradient(lagrangian, ca.vertcat(t0, tf))))
    end_multipliers = ca.Function("by_ends", [*ends.all, mu], results)
    return _FORMED.setdefault(functions, (of_points, end_multipliers))
