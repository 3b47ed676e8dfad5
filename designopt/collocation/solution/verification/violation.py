"""Motions between the points of the mesh: limits that are imposed only there, and controls that oscillate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solution.solution import PhaseSolution
from designopt.collocation.solution.verification.equations import EquationsAlong
from designopt.collocation.statement.problem import Phase
from designopt.collocation.transcription.mesh.points import CollocationPoint

#: Refinement of the grid relative to the collocation points.
FINER = 10
#: Violation of a limit, as a share of its size, that is reported.
NOTICEABLE = 0.01
#: A control oscillates with the mesh if it turns this many times with hardly more than an interval between turns, each
#: time by more than this share of its range.
TURNS, SWING = 8, 0.05
#: Range of a control, relative to its bounds or values, that is noise.
SMALL = 1e-3


@dataclass(frozen=True)
class Oscillation:
    """A control that oscillates with the mesh from `begin` to `end` (s), with its largest `swing`, and by how much it
    exceeds its bounds between the points, in its unit."""

    control: str
    begin: float
    end: float
    swing: float
    beyond: float


@dataclass(frozen=True)
class ViolationBetweenPoints:
    """Largest violation of one limit between the points: the `amount` in its unit, at a `time` (s), and the `share` of
    1 + the largest absolute value."""

    share: float
    amount: float
    time: float


def violations_between_points(
    phase: Phase, point: CollocationPoint, solution: PhaseSolution, parameters: Mapping[str, float]
) -> dict[str, ViolationBetweenPoints]:
    """Largest violations by the interpolated states of their bounds and of the limits of path constraints, by their
    names, on a grid ten times finer than the collocation points.

    Infinite if a path constraint is NaN. Controls are clipped to their bounds. A solved problem satisfies all limits at
    the points themselves.
    """
    equations = EquationsAlong(phase, solution, parameters)
    states = [v.name for v in phase.system.states]
    other_names = point.names[len(states) :]
    trajectories, path, fractions = [], [], []
    for scheme, some in solution.mesh.groups:
        gaps = zip(scheme.points, scheme.points[1:], strict=False)
        tau = np.concatenate([*(np.linspace(a, b, FINER, endpoint=False) for a, b in gaps), [1.0]])
        x = equations.states(some, tau).reshape(-1, len(states))
        trajectories.append(x)
        fractions.append(equations.fractions(some, tau).ravel())
        if phase.path:
            w = np.hstack([x, equations.inputs_at(some, tau, other_names).reshape(len(x), -1)])
            path.append(point_values(point, equations, w, fractions[-1])[0])
    times = solution.t0 + np.concatenate(fractions) * equations.duration
    violations = {}
    for name, values in zip(states, np.vstack(trajectories).T, strict=True):
        violations[name] = _outside(values, *solution.bounds[name], times)
    columns = iter(np.vstack(path).T if path else ())
    for (name, c), size in zip(phase.path.items(), point.path_sizes, strict=True):
        rows = [_outside(next(columns), c.low, c.high, times) for _ in range(size)]
        violations[f"path constraint '{name}'"] = max(rows, key=lambda violation: violation.share)
    return violations


def _outside(values: Floats, low: float, high: float, times: Floats) -> ViolationBetweenPoints:
    beyond = np.maximum(np.maximum(low - values, values - high), 0.0)
    beyond[np.isnan(beyond)] = np.inf
    worst = int(beyond.argmax())
    amount = float(beyond[worst])
    share = amount / (1.0 + float(np.abs(values).max())) if np.isfinite(amount) else np.inf
    return ViolationBetweenPoints(share, amount, float(times[worst]))


def oscillations(solution: PhaseSolution) -> Iterator[Oscillation]:
    """Controls that turn in nearly every interval, many times in a row."""
    steps = max(scheme.steps for scheme in solution.mesh.schemes)
    for name in (name for name, kind in solution.kinds.items() if kind == "control"):
        values, times = solution.values[name][1:], solution.times[1:]  # the first may be extrapolated
        changes = np.diff(values)
        large = np.flatnonzero(abs(changes) > SWING * np.ptp(values))
        turns = large[1:][np.diff(np.sign(changes[large])) != 0.0]  # the point before a step the other way
        runs = np.split(turns, np.flatnonzero(np.diff(turns) > steps + 1) + 1)
        longest = max(runs, key=len)
        low, high = solution.bounds[name]
        if len(longest) < TURNS or np.ptp(values) < SMALL * min(high - low, 1.0 + float(abs(values).max())):
            continue
        begin, end = float(times[longest[0]]), float(times[longest[-1]])
        places = np.linspace(begin, end, FINER * steps * len(longest))
        between = solution.at((places - solution.t0) / (solution.tf - solution.t0))[name]
        beyond = max(low - float(between.min()), float(between.max()) - high, 0.0)
        yield Oscillation(name, begin, end, float(abs(np.diff(values[longest])).max()), beyond)


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
