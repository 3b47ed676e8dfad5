"""Constraints between the points at which they are imposed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solution.solution import PhaseSolution
from designopt.collocation.solution.verification.equations import EquationsAlong
from designopt.collocation.statement.problem import Phase
from designopt.collocation.transcription.mesh.points import CollocationPoint

#: Refinement of the grid relative to the collocation points.
FINER = 10


def violation_between_points(
    phase: Phase, point: CollocationPoint, solution: PhaseSolution, parameters: Mapping[str, float]
) -> float:
    """Largest violation by the interpolated states of their bounds and of the limits of path constraints, on a grid ten
    times finer than the collocation points, relative to 1 + the largest absolute value.

    Infinite if a path constraint is NaN. Controls are clipped to their bounds. A solved problem satisfies all limits at
    the points themselves.
    """
    equations = EquationsAlong(phase, solution, parameters)
    states = [v.name for v in phase.system.states]
    other_names = point.names[len(states) :]
    trajectories, path = [], []
    for scheme, some in solution.mesh.groups:
        gaps = zip(scheme.points, scheme.points[1:], strict=False)
        tau = np.concatenate([*(np.linspace(a, b, FINER, endpoint=False) for a, b in gaps), [1.0]])
        x = equations.states(some, tau).reshape(-1, len(states))
        trajectories.append(x)
        if phase.path:
            w = np.hstack([x, equations.inputs_at(some, tau, other_names).reshape(len(x), -1)])
            path.append(point_values(point, equations, w, equations.fractions(some, tau).ravel())[0])
    bounds = [solution.bounds[name] for name in states]
    worst = _outside(np.vstack(trajectories), bounds)
    if path:
        sizes = zip(phase.path.values(), point.path_sizes, strict=True)
        worst = max(worst, _outside(np.vstack(path), [(c.low, c.high) for c, size in sizes for _ in range(size)]))
    return worst


def _outside(values: Floats, limits: list[tuple[float, float]]) -> float:
    low, high = np.array(limits).T
    beyond = np.maximum(np.maximum(low - values, values - high), 0.0).max(axis=0)
    shares = beyond / (1.0 + np.abs(values).max(axis=0))
    return float(np.where(np.isnan(shares), np.inf, shares).max(initial=0.0))


def point_values(
    point: CollocationPoint, equations: EquationsAlong, w: Floats, fractions: Floats
) -> tuple[Floats, Floats]:
    """Path constraints (n, rows), and integrands (n, integrals) times the duration, for variables `w` (n, nw) at
    `fractions` (n,)."""
    phase, solved, count = equations.phase, equations.solution, len(fractions)
    times = [solved.t0, solved.tf]
    free = [t for t, is_free in zip(times, point.phase.free_times, strict=True) if is_free]
    fixed = [t for t, is_free in zip(times, point.phase.free_times, strict=True) if not is_free]
    data = equations.data(fractions)
    columns = {v.name: data[:, i] for i, v in enumerate(phase.system.data)}
    theta = np.array([*(equations.parameters[n] for n in point.parameter_names), *free])
    constants = [*(columns[n] for n in point.constant_names), *(np.full(count, t) for t in fixed)]
    signals = [columns[n] for n in point.signal_names]
    arguments = (
        w.T,
        np.tile(theta[:, None], count),
        np.array(constants).reshape(-1, count),
        np.array(signals).reshape(-1, count),
        fractions[None, :],
    )
    _, path, integrands, _ = point.all_expressions.map(count)(*arguments)
    return np.asarray(path, float).T.reshape(count, -1), np.asarray(integrands, float).T.reshape(count, -1)
