"""Convex sharing problems of many frames at once by a primal-dual interior-point method.

For the criteria whose dual is not small (largest activation, synergies, joint reactions, p = 1) and for the frames
that the dual method leaves. Boyd & Vandenberghe, Convex Optimization (2004), section 11.7, with Mehrotra's choice of
the centring; the bounds of variables stay out of the linear systems. Frames come first here.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt_mechanics.sharing.solvers.cholesky import solve_definite
from designopt_mechanics.sharing.solvers.newton import ArrowSystem, DenseSystem, dense, times, transposed_times
from designopt_mechanics.sharing.statement.convex import ConvexProblem

_ITERATIONS = 100
#: Tolerances of stationarity, rows, limits, and products of multipliers and distances from bounds: aimed at, accepted.
_RESIDUAL, _ACCEPTED_RESIDUAL = 1e-11, 1e-8
_PRODUCT, _ACCEPTED_PRODUCT = 1e-16, 1e-12
#: Share of the way to the nearest bound that a step goes at most.
_SHARE = 0.995
_HALVINGS = 20
#: How often the rows of a linear system are solved for: the second time takes away the rounding of the first.
_REFINED = 2
#: A residual below which rounding decides whether it falls.
_NOISE = 4e-9
#: Number added to the diagonal of Newton's matrix: a reserve near 0 with a power above 2 has no curvature.
_MIN_CURVATURE = 1e-10


@dataclass(frozen=True, eq=False)
class InteriorSolution:
    """`x` (n, v), `multipliers` (n, m) of the rows, `limit_multipliers` (n, c), `converged` (n,), `iterations` (n,)."""

    x: Floats
    multipliers: Floats
    limit_multipliers: Floats
    converged: Mask
    iterations: Integers


@dataclass(frozen=True, eq=False)
class _Point:
    """x, multipliers of rows, of lower and upper bounds, of limits, and slacks of limits and bounds; (n, ...).

    Slacks of missing bounds are infinite. Slacks are separate variables: computed from x they lose their digits close
    to a bound.
    """

    x: Floats
    y: Floats
    low: Floats
    up: Floats
    w: Floats
    t: Floats
    below: Floats
    above: Floats

    def take(self, frames: Mask | Integers) -> _Point:
        return _Point(*(getattr(self, f.name)[frames] for f in fields(self)))

    def moved(self, by: _Point, step: Floats) -> _Point:
        return _Point(*(getattr(self, f.name) + step[:, None] * getattr(by, f.name) for f in fields(self)))

    def assign(self, frames: Mask | Integers, part: _Point) -> None:
        for f in fields(self):
            getattr(self, f.name)[frames] = getattr(part, f.name)


@dataclass(frozen=True, eq=False)
class _Conditions:
    """Residuals of the frames' optimality conditions at a point, and the parts of their derivatives."""

    stationarity: Floats
    rows: Floats
    limits: Floats
    hessian: Floats
    matrix: Floats  # 0 in the columns of fixed variables
    gradients: Floats  # of the limits
    free: Mask

    def residual(self) -> Floats:
        """(n,) the largest residual, without the products."""
        parts = (self.stationarity, self.rows, self.limits)
        return np.asarray(np.max([np.abs(part).max(axis=1, initial=0.0) for part in parts], axis=0))

    def norm(self, point: _Point, target: Floats) -> Floats:
        """(n,) Euclidean norm of all residuals, those of the products relative to `target` (n,)."""
        total = sum((part**2).sum(axis=1) for part in (self.stationarity, self.rows, self.limits))
        return np.asarray(
            np.sqrt(total + sum(((p - target[:, None]) ** 2 * m).sum(axis=1) for p, m in self._products(point)))
        )

    def _products(self, point: _Point) -> list[tuple[Floats, Floats]]:
        """Products of multipliers and slacks, and 1 for each bound."""
        pairs = [(point.low, point.below), (point.up, point.above), (point.w, point.t)]
        return [(m * np.where(np.isfinite(d), d, 0.0), np.isfinite(d).astype(np.float64)) for m, d in pairs]

    def product(self, point: _Point) -> tuple[Floats, Floats]:
        """(n,) mean and largest product."""
        products = self._products(point)
        count = np.maximum(sum(mask.sum(axis=1) for _, mask in products), 1.0)
        largest = np.max([p.max(axis=1, initial=0.0) for p, _ in products], axis=0)
        return np.asarray(sum(p.sum(axis=1) for p, _ in products) / count), np.asarray(largest)


def solve_interior(problem: ConvexProblem) -> InteriorSolution:
    """Solve all frames from the middle of the bounds."""
    frames = len(problem.right_side)
    point = _first(problem)
    converged = np.zeros(frames, dtype=np.bool_)
    iterations = np.zeros(frames, dtype=np.int64)
    active = np.arange(frames)
    last_step = np.full(frames, 0.5)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for iteration in range(_ITERATIONS + 1):
            current = point.take(active)
            conditions = _conditions(problem, current, active)
            residual = conditions.residual()
            mean, largest = conditions.product(current)
            size = np.maximum(1.0, np.abs(problem.right_side[active]).max(axis=1))
            fine = (residual <= _RESIDUAL * size) & (largest <= _PRODUCT)
            left = fine | (last_step[active] == 0.0) | ~np.isfinite(residual) | (iteration == _ITERATIONS)
            if left.any():
                good = (residual <= _ACCEPTED_RESIDUAL * size) & (largest <= _ACCEPTED_PRODUCT)
                converged[active[left]] = good[left]
                iterations[active[left]] = iteration
                active = active[~left]
                if not len(active):
                    break
                current, mean = current.take(~left), mean[~left]
                conditions = _conditions(problem, current, active)
            centring = np.clip((1.0 - last_step[active]) ** 2, 0.01, 0.5)
            target = np.maximum(centring * mean, 0.1 * _PRODUCT)
            direction = _direction(problem, current, conditions, target)
            next_point, last_step[active] = _line_search(problem, current, conditions, direction, target, active)
            point.assign(active, next_point)
    return InteriorSolution(np.clip(point.x, problem.lower, problem.upper), point.y, point.w, converged, iterations)


def _first(problem: ConvexProblem) -> _Point:
    frames, rows, variables = problem.matrix.shape
    low, up = problem.lower, problem.upper
    floor = np.where(np.isfinite(low), low, np.where(np.isfinite(up), up - 1.0, -0.5))
    ceiling = np.where(np.isfinite(up), up, np.where(np.isfinite(low), low + 1.0, 0.5))
    x = np.where(low == up, low, 0.5 * (floor + ceiling))
    ones = np.ones((frames, variables))
    bounded_low, bounded_up = np.isfinite(low) & (low < up), np.isfinite(up) & (low < up)
    count = problem.limits.count if problem.limits else 0
    t = np.ones((frames, count))
    if problem.limits:
        t = np.maximum(-problem.limits.at(x, np.arange(frames))[0], 0.1)
    return _Point(
        x,
        np.zeros((frames, rows)),
        ones * bounded_low,
        ones * bounded_up,
        np.ones((frames, count)),
        t,
        np.where(bounded_low, x - np.where(bounded_low, low, 0.0), np.inf),
        np.where(bounded_up, np.where(bounded_up, up, 0.0) - x, np.inf),
    )


def _conditions(problem: ConvexProblem, point: _Point, frames: Integers) -> _Conditions:
    lower, upper = problem.lower[frames], problem.upper[frames]
    free = lower < upper
    gradient, hessian = problem.objective.at(point.x, frames)
    matrix = problem.matrix[frames]
    rows = times(matrix, point.x) - problem.right_side[frames]
    matrix = matrix * free[:, None, :]
    stationarity = gradient - transposed_times(matrix, point.y) - point.low + point.up
    gradients = np.zeros((len(frames), 0, point.x.shape[1]))
    limits = np.zeros((len(frames), 0))
    if problem.limits:
        limits, gradients = problem.limits.at(point.x, frames)
        limits, gradients = limits + point.t, gradients * free[:, None, :]
        stationarity = stationarity + transposed_times(gradients, point.w)
        bend = problem.limits.bend(point.w, frames)
        if bend is not None:
            hessian = dense(hessian) + bend
    return _Conditions(
        np.where(free, stationarity, 0.0),
        rows,
        limits,
        hessian,
        matrix,
        gradients,
        free,
    )


def _direction(problem: ConvexProblem, point: _Point, conditions: _Conditions, target: Floats) -> _Point:
    """Newton's step for all conditions, with the products of multipliers and distances aimed at `target` (n,)."""
    mu = target[:, None]
    barrier = point.low / point.below + point.up / point.above + _MIN_CURVATURE
    push = (mu - point.w * point.t + point.w * conditions.limits) / point.t
    right = (
        -conditions.stationarity
        + (mu / point.below - point.low * conditions.free)
        - (mu / point.above - point.up * conditions.free)
    )
    right = np.where(conditions.free, right - transposed_times(conditions.gradients, push), 0.0)
    arrow = conditions.hessian.ndim == 2 and (problem.limits is None or problem.limits.arrow)
    kind: type[DenseSystem] | type[ArrowSystem] = ArrowSystem if arrow else DenseSystem
    system = kind(conditions.hessian, barrier, conditions.gradients, point.w / point.t, conditions.free)
    solution_columns = system.solve(np.concatenate([conditions.matrix.transpose(0, 2, 1), right[:, :, None]], axis=2))
    columns, particular = solution_columns[:, :, :-1], solution_columns[:, :, -1]
    schur = np.matmul(conditions.matrix, columns).transpose(1, 2, 0)
    x, y = particular, np.zeros(conditions.rows.shape)
    for _ in range(_REFINED):
        dy = solve_definite(schur, -(conditions.rows + times(conditions.matrix, x)).T).T
        x, y = x + times(columns, dy), y + dy
    low = mu / point.below - point.low - point.low / point.below * x
    up = mu / point.above - point.up + point.up / point.above * x
    change = system.limit_products(right + transposed_times(conditions.matrix, y), x)
    t = -conditions.limits - change
    w = push + point.w / point.t * change
    return _Point(x, y, low, up, w, t, x, -x)


def _line_search(
    problem: ConvexProblem,
    point: _Point,
    conditions: _Conditions,
    direction: _Point,
    target: Floats,
    frames: Integers,
) -> tuple[_Point, Floats]:
    """The point after a step that keeps off the bounds and lessens the norm of the conditions, and the step (n,)."""
    walls = [
        (point.below, direction.x),
        (point.above, -direction.x),
        (point.low, direction.low),
        (point.up, direction.up),
        (point.w, direction.w),
        (point.t, direction.t),
    ]
    step = np.ones(len(frames))
    for distance, way in walls:
        towards = np.where((way < 0) & (distance > 0), -distance / np.where(way < 0, way, -1.0), np.inf)
        step = np.minimum(step, _SHARE * towards.min(axis=1, initial=np.inf))
    step = np.where(np.isfinite(direction.x).all(axis=1) & np.isfinite(step), step, 0.0)
    before = conditions.norm(point, target)
    next_point = point.moved(direction, step)
    bad = np.flatnonzero(step > 0)
    for _ in range(_HALVINGS):
        trial = next_point.take(bad)
        tried_conditions = _conditions(problem, trial, frames[bad])
        falls = tried_conditions.norm(trial, target[bad]) <= (1.0 - 0.01 * step[bad]) * before[bad]
        rises = ~(falls | (tried_conditions.residual() <= _NOISE))
        bad = bad[rises]
        if not len(bad):
            break
        step[bad] *= 0.5
        next_point.assign(bad, point.take(bad).moved(direction.take(bad), step[bad]))
    step[bad] = 0.0
    next_point.assign(step == 0.0, point.take(step == 0.0))
    return next_point, step
