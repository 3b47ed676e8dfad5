"""A solved motion between the points of its mesh: the error of each interval, violated limits, oscillating controls.

The error is the difference between the solution and the motion caused by its own controls. Source:
Patterson, Hager, Rao, "A ph mesh refinement method for optimal control", Optim. Control Appl. Meth. 36 (2015) 398-421,
section 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from designopt.arrays import Floats, Indices
from designopt.collocation.solution.solution import PhaseSolution
from designopt.collocation.solution.verification.equations import EquationsAlong
from designopt.collocation.statement.mesh import Scheme, derivative_matrix
from designopt.collocation.statement.problem import Phase
from designopt.collocation.transcription.functions.points import CollocationPoint

#: Panels of an interval, and Gauss points of each, in the search for pulses.
PANELS, GAUSS = 4, 5


def interval_errors(phase: Phase, solution: PhaseSolution, parameters: Mapping[str, float]) -> Floats:
    """The estimated relative error (intervals,) of the states of a phase.

    On each interval the dynamics along the interpolated solution are integrated from its left end with a quadrature one
    degree finer than the scheme. The error is the largest difference from the interpolated states, relative to 1 + the
    largest absolute value of that state on the interval, without errors of earlier intervals. It is reliable when small
    (below about 1e-3). Larger ones, and those where a control switches or a bound becomes active inside an interval,
    are optimistic by a factor of ten and more. It is infinite if the equations are not finite between the points.
    """
    equations = EquationsAlong(phase, solution, parameters)
    mesh = solution.mesh
    errors = np.empty(len(mesh))
    for scheme, intervals in mesh.groups:
        tau, A = finer_quadrature(3 if scheme.collocates_left_end else control_degree(scheme) + 2)
        x = equations.states(intervals, np.concatenate([[0.0], tau]))
        rates = equations.rates(x[:, 1:], intervals, tau)
        h = equations.duration * mesh.widths[intervals, None, None]
        with np.errstate(all="ignore"):
            integrals = x[:, :1] + h * np.einsum("jr,krn->kjn", A, rates)
            difference = np.abs(integrals - x[:, 1:]).max(axis=1) / (1.0 + np.abs(x).max(axis=1))
        errors[intervals] = difference.max(axis=1)
    return np.where(np.isnan(errors), np.inf, errors)


def pulse_errors(
    phase: Phase, point: CollocationPoint, solution: PhaseSolution, parameters: Mapping[str, float]
) -> Floats:
    """The effect of a pulse between the points of an interval on states and integrals (intervals,), relative as above.

    Rates and integrands along the interpolated solution are integrated over each interval with `PANELS` panels of Gauss
    points, which resolve a twentieth of the interval; integrals are relative to 1 + their size.
    """
    equations = EquationsAlong(phase, solution, parameters)
    mesh, states = solution.mesh, [v.name for v in phase.system.states]
    other_names = point.names[len(states) :]
    inner, weights = np.polynomial.legendre.leggauss(GAUSS)
    tau = (np.arange(PANELS)[:, None] + 0.5 * (inner + 1.0)).ravel() / PANELS
    weights = np.tile(0.5 * weights / PANELS, PANELS)
    errors = np.zeros(len(mesh))
    for scheme, intervals in mesh.groups:
        ends = equations.states(intervals, np.array([0.0, 1.0]))
        x = equations.states(intervals, tau)
        h = equations.duration * mesh.widths[intervals]
        with np.errstate(all="ignore"):
            increments = h[:, None] * np.einsum("j,kjn->kn", weights, equations.rates(x, intervals, tau))
            difference = np.abs(increments - (ends[:, 1] - ends[:, 0])) / (1.0 + np.abs(x).max(axis=1))
            errors[intervals] = difference.max(axis=1)
            if phase.integrals:
                fine = _integrals(point, equations, x, intervals, tau, other_names) @ weights
                points = scheme.points[1:] if not scheme.collocates_left_end else scheme.points
                of_scheme = scheme.weights[-len(points) :]
                coarse = (
                    _integrals(point, equations, equations.states(intervals, points), intervals, points, other_names)
                    @ of_scheme
                )
                sizes = 1.0 + np.abs(list(solution.integrals.values()))
                differences = np.abs(fine - coarse) * mesh.widths[intervals] / sizes[:, None]
                errors[intervals] = np.maximum(errors[intervals], differences.max(axis=0))
    return np.where(np.isnan(errors), np.inf, errors)


def _integrals(
    point: CollocationPoint,
    equations: EquationsAlong,
    x: Floats,
    intervals: Indices,
    tau: Floats,
    other_names: Sequence[str],
) -> Floats:
    """Integrands (integrals, k, n) times the duration for states `x` (k, n, nx) at the places `tau` (n,)."""
    count = len(intervals) * len(tau)
    w = np.hstack([x.reshape(count, -1), equations.inputs_at(intervals, tau, other_names).reshape(count, -1)])
    values = point_values(point, equations, w, equations.fractions(intervals, tau).ravel())[1]
    return np.asarray(values.T.reshape(-1, len(intervals), len(tau)))


def control_degree(scheme: Scheme) -> int:
    """The degree of the polynomial of controls on an interval."""
    return len(scheme.collocation_points) - 1


@lru_cache(maxsize=16)
def finer_quadrature(count: int) -> tuple[Floats, Floats]:
    """`count` right Radau points (n,) on [0, 1] and the matrix (n, n) that integrates from 0 to each of them."""
    from numpy.polynomial.legendre import legroots

    # the zeros of P_{n-1} - P_n, of which 1 is the last
    roots = legroots(np.concatenate([np.zeros(count - 1), [1.0, -1.0]])).real  # complex from NumPy 2.5 on
    points = np.concatenate([0.5 * (np.sort(roots)[:-1] + 1.0), [1.0]])
    D = derivative_matrix(np.concatenate([[0.0], points]))[1:, 1:]
    return points, np.asarray(np.linalg.inv(D), float)


#: Refinement of the grid relative to the collocation points.
FINER = 10
#: Violation of a limit, as a share of its size, that is reported.
NOTICEABLE = 0.01
#: A control oscillates with the mesh if it turns this many times with hardly more than an interval between turns, each
#: time by more than this share of its range.
TURNS, SWING = 8, 0.05
#: Turns within this share of the phase are those of one switch, which a refined mesh resolves far beyond the motion.
OF_A_SWITCH = 1e-3
#: It chatters if it has this many pulses of hardly more than an interval, at most this many intervals apart.
PULSES, APART = 6, 6
#: A pulse is a step of more than this share of a control's range, and one back, hardly more than an interval later.
PULSE = 0.25
#: Range of a control, relative to its bounds or values, that is noise.
SMALL = 1e-3


@dataclass(frozen=True)
class Oscillation:
    """A control that oscillates with the mesh from `begin` to `end` (s), with its largest `swing`, and by how much it
    exceeds its bounds between the points, in its unit; `pulses` counts those of a control that rests between them."""

    control: str
    begin: float
    end: float
    swing: float
    beyond: float
    pulses: int = 0


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
    for scheme, intervals in solution.mesh.groups:
        gaps = zip(scheme.points, scheme.points[1:], strict=False)
        tau = np.concatenate([*(np.linspace(a, b, FINER, endpoint=False) for a, b in gaps), [1.0]])
        x = equations.states(intervals, tau).reshape(-1, len(states))
        trajectories.append(x)
        fractions.append(equations.fractions(intervals, tau).ravel())
        if phase.path:
            w = np.hstack([x, equations.inputs_at(intervals, tau, other_names).reshape(len(x), -1)])
            path.append(point_values(point, equations, w, fractions[-1])[0])
    times = solution.t0 + np.concatenate(fractions) * equations.duration
    violations = {}
    for name, values in zip(states, np.vstack(trajectories).T, strict=True):
        violations[name] = _violation_outside(values, *solution.bounds[name], times)
    columns = iter(np.vstack(path).T if path else ())
    for (name, c), size in zip(phase.path.items(), point.path_sizes, strict=True):
        rows = [_violation_outside(next(columns), c.low, c.high, times) for _ in range(size)]
        violations[f"path constraint '{name}'"] = max(rows, key=lambda violation: violation.share)
    return violations


def _violation_outside(values: Floats, low: float, high: float, times: Floats) -> ViolationBetweenPoints:
    beyond = np.maximum(np.maximum(low - values, values - high), 0.0)
    beyond[np.isnan(beyond)] = np.inf
    worst = int(beyond.argmax())
    amount = float(beyond[worst])
    share = amount / (1.0 + float(np.abs(values).max())) if np.isfinite(amount) else np.inf
    return ViolationBetweenPoints(share, amount, float(times[worst]))


def oscillations(solution: PhaseSolution) -> Iterator[Oscillation]:
    """Controls that turn in nearly every interval, many times in a row, or that have many pulses of an interval."""
    steps = max(scheme.steps for scheme in solution.mesh.schemes)
    for name in (name for name, kind in solution.kinds.items() if kind == "control"):
        values, times = solution.values[name][1:], solution.times[1:]  # the first may be extrapolated
        changes = np.diff(values)
        large = np.flatnonzero(abs(changes) > SWING * np.ptp(values))
        turns = large[1:][np.diff(np.sign(changes[large])) != 0.0]  # the point before a step the other way
        turning, pulses = max(np.split(turns, np.flatnonzero(np.diff(turns) > steps + 1) + 1), key=len), 0
        if len(turning) < TURNS:
            runs = np.split(turns, np.flatnonzero(np.diff(turns) > APART * steps) + 1)
            turning = max(runs, key=lambda run: _pulses(run, steps))
            pulses = _pulses(turning, steps)
            if pulses < PULSES:
                continue
        low, high = solution.bounds[name]
        if _is_noise(values, low, high):
            continue
        begin, end = float(times[turning[0]]), float(times[turning[-1]])
        if not pulses and end - begin < OF_A_SWITCH * (solution.tf - solution.t0):
            continue
        fractions = np.linspace(begin, end, FINER * steps * len(turning))
        between = solution.at((fractions - solution.t0) / (solution.tf - solution.t0))[name]
        beyond = max(low - float(between.min()), float(between.max()) - high, 0.0)
        yield Oscillation(name, begin, end, float(abs(np.diff(values[turning])).max()), beyond, pulses)


def has_pulses(solution: PhaseSolution, control: str) -> bool:
    """Whether a control has pulses of hardly more than an interval, or steps in the first or the last one."""
    steps = max(scheme.steps for scheme in solution.mesh.schemes)
    values = solution.values[control][solution.mesh.first :]  # others are extrapolated
    if _is_noise(values, *solution.bounds[control]):
        return False
    changes = np.diff(values)
    large = np.flatnonzero(abs(changes) > PULSE * np.ptp(values))
    is_back = np.diff(np.sign(changes[large])) != 0.0
    at_ends = large[[0, -1]] if len(large) else large
    is_at_ends = (at_ends < steps) | (at_ends >= len(changes) - steps)
    return bool((is_back & (np.diff(large) <= steps + 1)).any() or is_at_ends.any())


def _is_noise(values: Floats, low: float, high: float) -> bool:
    return bool(np.ptp(values) < SMALL * min(high - low, 1.0 + float(abs(values).max())))


def _pulses(turns: Indices, steps: int) -> int:
    """The number of successive `turns` (n,), rows of points, that are hardly more than an interval of `steps` apart."""
    return int((np.diff(turns) <= steps + 1).sum())


def point_values(
    point: CollocationPoint, equations: EquationsAlong, w: Floats, fractions: Floats
) -> tuple[Floats, Floats]:
    """Path constraints (n, rows), and integrands (n, integrals) times the duration, for variables `w` (n, nw) at
    `fractions` (n,)."""
    phase, solution, count = equations.phase, equations.solution, len(fractions)
    times = [solution.t0, solution.tf]
    free = [t for t, is_free in zip(times, point.phase.free_times, strict=True) if is_free]
    fixed_times = [t for t, is_free in zip(times, point.phase.free_times, strict=True) if not is_free]
    data = equations.data(fractions)
    columns = {v.name: data[:, i] for i, v in enumerate(phase.system.data)}
    theta = np.array([*(equations.parameters[n] for n in point.parameter_names), *free])
    constants = [*(columns[n] for n in point.constant_names), *(np.full(count, t) for t in fixed_times)]
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
