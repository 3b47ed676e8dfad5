"""Least squares with bounds in many frames at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.arrays import Floats, Mask
from designopt_muscle.markers.residuals import MarkerResiduals

#: Frames that share one array operation.
_BATCH = 256
#: A step of all coordinates (rad, m) below this is the last one; Newton's leave the square of it.
_STEP = 1e-6
#: After a step below this the second derivatives count too: the minimum is close.
_CLOSE = 0.1
#: Two objectives (m^2) as far apart as this are the same.
_ROUNDING = 1e-17
#: No step turns a coordinate by more than this (rad).
_TURN = 1.0
#: Damping at first, at least after a step that raised the objective, and at most.
_DAMPING, _RAISED, _STRONGEST = 1e-8, 1e-3, 1e8


@dataclass(frozen=True, eq=False)
class Minimum:
    """Coordinates `q` (n, m) with the objective `cost` (n,); `converged` (n,), and the Gauss-Newton `matrix` there."""

    q: Floats
    cost: Floats
    converged: Mask
    matrix: Floats

    def take(self, frames: Any) -> Minimum:
        """The minima of some frames: indices or a mask."""
        return Minimum(self.q[frames], self.cost[frames], self.converged[frames], self.matrix[frames])

    def replace(self, frames: Any, better: Minimum) -> None:
        """Put the minima `better` in place of those of some frames."""
        self.q[frames], self.cost[frames] = better.q, better.cost
        self.converged[frames], self.matrix[frames] = better.converged, better.matrix


def minimise(
    residuals: MarkerResiduals,
    start: Floats,
    low: Floats,
    high: Floats,
    free: Mask | None = None,
    *,
    steps: int = 100,
    near: bool = False,
) -> Minimum:
    """A minimum of the objective of each frame from `start` (n, m) with `low` <= q <= `high` (m,).

    Levenberg-Marquardt with projected steps (Kanzow, Yamashita and Fukushima 2004): coordinates at a bound that the
    gradient pushes against are kept there for the step. Close to the minimum, or if `start` is `near` it, the steps
    are Newton's. Only `free` (m,) coordinates move; those that the markers do not determine stay at their start.
    Frames do not influence each other. A frame whose last step of at most `steps` was below 1e-6 (rad, m) has
    converged; the objective after an undamped one is that of its quadratic model, and the matrix the one before it.
    """
    free = np.ones(len(low), dtype=bool) if free is None else free
    parts = [
        _minimise(residuals.take(frames), np.clip(start[frames], low, high), low, high, free, (steps, near))
        for frames in (np.arange(i, min(i + _BATCH, len(start))) for i in range(0, len(start), _BATCH))
    ]
    arrays = zip(*((p.q, p.cost, p.converged, p.matrix) for p in parts), strict=True)
    return Minimum(*(np.concatenate(column) for column in arrays))


def _minimise(
    residuals: MarkerResiduals, q: Floats, low: Floats, high: Floats, free: Mask, course: tuple[int, bool]
) -> Minimum:
    n, (steps, near) = len(q), course
    cost, gradient, matrix, hessian = residuals.normal_equations(q)
    damping = np.full(n, _DAMPING)
    last_step = np.full(n, 0.0 if near else np.inf)
    converged = np.zeros(n, dtype=bool)
    active, part = np.arange(n), residuals
    for _ in range(steps):
        x, g = q[active], gradient[active]
        fixed = ~free | ((x <= low) & (g > 0.0)) | ((x >= high) & (g < 0.0))
        close = last_step[active] < _CLOSE
        model = np.where(close[:, None, None], hessian[active], matrix[active])
        step = _step(model, g, damping[active], fixed)
        turn = np.abs(step[:, residuals.layout.turning]).max(axis=1, initial=_TURN)
        trial = np.clip(x + step * (_TURN / turn)[:, None], low, high)
        length = np.abs(trial - x).max(axis=1)
        last = (length < _STEP) & (damping[active] == _DAMPING)
        if last.any():
            move = (trial - x)[last]
            change = (move * (2.0 * g[last] + (model[last] @ move[:, :, None])[:, :, 0])).sum(axis=1)
            q[active[last]], cost[active[last]] = trial[last], np.maximum(cost[active[last]] + change, 0.0)
            converged[active[last]] = True
            active, trial, length = active[~last], trial[~last], length[~last]
            if not len(active):
                break
            part = residuals.take(active)
        values = part.normal_equations(trial)
        better = values[0] <= cost[active] + _ROUNDING
        frames = active[better]
        q[frames] = trial[better]
        for array, new in zip((cost, gradient, matrix, hessian), values, strict=True):
            array[frames] = new[better]
        last_step[active] = np.where(better, length, np.inf)
        damping[active] = np.where(
            better, np.maximum(damping[active] / 10.0, _DAMPING), np.maximum(damping[active] * 10.0, _RAISED)
        )
        is_done = (length < _STEP) | (damping[active] > _STRONGEST)
        converged[active[is_done]] = True
        if is_done.all():
            break
        if is_done.any():
            active = active[~is_done]
            part = residuals.take(active)
    return Minimum(q, cost, converged, matrix)


def _step(matrix: Floats, gradient: Floats, damping: Floats, fixed: Mask) -> Floats:
    """(n, m) solutions of the damped normal equations; 0 for `fixed` (n, m) coordinates."""
    m = gradient.shape[1]
    loose = ~fixed
    free_matrix = matrix * (loose[:, :, None] & loose[:, None, :])
    diagonal = np.arange(m)
    size = free_matrix[:, diagonal, diagonal]
    # a coordinate without effect has no diagonal: a unit one leaves it where it is
    floor = np.maximum(size.max(axis=1, keepdims=True) * 1e-12, 1e-300)
    free_matrix[:, diagonal, diagonal] = np.where(fixed | (size <= floor), 1.0, size * (1.0 + damping[:, None]))
    right = np.where(loose & (size > floor), gradient, 0.0)
    return np.asarray(-np.linalg.solve(free_matrix, right[:, :, None])[:, :, 0])


def unobservable(matrix: Floats) -> Mask:
    """Coordinates (n, m) that the residuals do not determine: parts of the null space of the matrix (n, m, m)."""
    size = np.sqrt(np.maximum(np.einsum("nii->ni", matrix), 0.0))
    flat = size <= 1e-7 * size.max(axis=1, keepdims=True)
    unit = np.where(flat, 1.0, size)
    correlation = matrix / (unit[:, :, None] * unit[:, None, :])
    lost = np.zeros(flat.shape, dtype=bool)
    # the smallest eigenvalue is at least the inverse of the inverse's trace; few frames need the eigenvectors
    inverse = np.linalg.inv(correlation + 1e-13 * np.eye(matrix.shape[1]))
    trace = np.einsum("nii->n", inverse)
    doubtful = np.flatnonzero(~((trace > 0.0) & (trace < 1e8)))
    if len(doubtful):
        values, vectors = np.linalg.eigh(correlation[doubtful])
        null = values < 1e-9
        lost[doubtful] = (vectors**2 * null[:, None, :]).sum(axis=2) > 1e-6
    return np.asarray(flat | lost)
