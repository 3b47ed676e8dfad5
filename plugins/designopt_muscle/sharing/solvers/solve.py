"""Which method solves which sharing problem, and in which parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from designopt_muscle.sharing.solvers.blocks import blocks
from designopt_muscle.sharing.solvers.dual import Batch, solve_dual
from designopt_muscle.sharing.solvers.interior import Problem, solve_interior
from designopt_muscle.sharing.solvers.pattern import Matrices, Pattern
from designopt_muscle.sharing.statement.formulation import Formulation
from designopt_muscle.sharing.statement.limits import AllLimits, LinearLimits

Vector = NDArray[np.float64]

#: Up to this exponent the dual method is tried first; above, its multipliers are too badly scaled.
_STEEPEST = 3.0
#: Limits of the largest activation count as active from this multiplier on; those of a frame sum to 1.
_ACTIVE = 1e-4
#: A limit of the largest activation that no longer counts.
_FAR = 10.0


@dataclass(frozen=True, eq=False)
class Solved:
    """Variables `x` (n, v), `multipliers` (n, m) of the scaled rows, whether a frame `converged`, `iterations` (n,)."""

    x: Vector
    multipliers: Vector
    converged: NDArray[np.bool_]
    iterations: NDArray[np.int64]


def solve(formulation: Formulation, *, strict: bool = False) -> Solved:
    """Solve all frames. Those that have not converged are infeasible, or nearly so.

    With `strict`, the formulation being that of the smallest maximum, its stages are solved one after the other.
    """
    if strict:
        return _stages(formulation)
    if not formulation.separable:
        found = solve_interior(formulation.problem())
        return Solved(found.x, found.multipliers, found.converged, found.iterations)
    frames, m, v = formulation.matrix.shape
    solved = Solved(
        np.empty((frames, v)),
        np.zeros((frames, m)),
        np.ones(frames, dtype=np.bool_),
        np.zeros(frames, dtype=np.int64),
    )
    there = np.asarray((formulation.matrix != 0).any(axis=0))
    for rows, columns in blocks(there):
        part = _block(formulation, rows, columns, there[np.ix_(rows, columns)])
        solved.x[:, columns] = part.x
        solved.multipliers[:, rows] = part.multipliers[:, : len(rows)]
        solved.converged[:] &= part.converged
        solved.iterations[:] = np.maximum(solved.iterations, part.iterations)
    return solved


def _block(
    formulation: Formulation, rows: NDArray[np.int64], columns: NDArray[np.int64], there: NDArray[np.bool_]
) -> Solved:
    """The solution of the block of these rows and columns, with entries where `there` is true."""
    cost = formulation.cost.rows(columns)
    frames = len(formulation.needed)
    needed = formulation.needed[:, rows]
    if not len(rows):  # muscles without a row: one that asks nothing of them
        there, needed = np.zeros((1, len(columns)), dtype=np.bool_), np.zeros((frames, 1))
    lower, upper = formulation.lower[:, columns], formulation.upper[:, columns]
    steep = bool(np.any((cost.weight > 0) & (cost.exponent > _STEEPEST))) and not cost.saturating
    if cost.invertible and not steep:
        batch = Batch(
            _matrices(formulation, rows, columns, there),
            np.ascontiguousarray(needed.T),
            _narrow(lower.T),
            _narrow(upper.T),
            cost,
        )
        found = solve_dual(batch)
        solved = Solved(found.x.T, found.multipliers.T, found.converged, found.iterations)
        hopeless = found.infeasible
    else:
        none = np.zeros(frames, dtype=np.bool_)
        shape = (frames, len(columns)), needed.shape
        solved = Solved(np.zeros(shape[0]), np.zeros(shape[1]), none, np.zeros(frames, dtype=np.int64))
        hopeless = none
    left = np.flatnonzero(~solved.converged & ~hopeless)
    if not len(left):
        return solved
    objective = (
        replace(
            formulation,
            cost=cost.take(left),
        )
        .problem()
        .objective
    )
    nothing = np.zeros((len(left), 1, len(columns)))
    part = formulation.matrix[np.ix_(left, rows, columns)] if len(rows) else nothing
    again = solve_interior(Problem(objective, part, needed[left], lower[left], upper[left]))
    x, multipliers = np.array(solved.x), np.array(solved.multipliers)
    x[left], multipliers[left] = again.x, again.multipliers
    converged, iterations = np.array(solved.converged), np.array(solved.iterations)
    converged[left], iterations[left] = again.converged, again.iterations
    return Solved(x, multipliers, converged, iterations)


def _matrices(
    formulation: Formulation, rows: NDArray[np.int64], columns: NDArray[np.int64], there: NDArray[np.bool_]
) -> Matrices:
    """The entries of a block in all frames."""
    pattern = Pattern.of(there)
    if not len(rows):
        return Matrices.of(pattern, np.zeros((0, len(formulation.needed))))
    entries = formulation.matrix[:, rows[pattern.rows], columns[pattern.columns]]
    return Matrices.of(pattern, np.ascontiguousarray(entries.T))


def _narrow(bounds: Vector) -> Vector:
    """Bounds (v, n) that are the same in all frames as (v, 1)."""
    return np.ascontiguousarray(bounds[:, :1] if (bounds == bounds[:, :1]).all() else bounds)


def _stages(formulation: Formulation) -> Solved:
    """The strict smallest maximum: muscles that hold the maximum up are fixed there, and the next largest is sought."""
    assert formulation.limits is not None
    first, *others = formulation.limits.parts
    assert isinstance(first, LinearLimits)
    k = first.count
    lower, upper, right = formulation.lower.copy(), formulation.upper.copy(), np.zeros(first.right.shape)
    answer = solve_interior(formulation.problem())
    x, multipliers, weights = (np.array(a) for a in (answer.x, answer.multipliers, answer.limit_multipliers[:, :k]))
    iterations, going, first_converged = answer.iterations.copy(), answer.converged.copy(), answer.converged
    held = np.zeros(weights.shape, dtype=np.bool_)
    for _ in range(k):
        active = (weights > _ACTIVE) & ~held & going[:, None]
        going &= active.any(axis=1)
        stage = np.flatnonzero(going)
        if not len(stage):
            break
        held |= active
        lower[:, :k] = np.where(active, x[:, :k], lower[:, :k])
        upper[:, :k] = np.where(active, x[:, :k], upper[:, :k])
        right[held] = _FAR
        limits = (
            LinearLimits(first.matrix[stage], right[stage], first.arrow),
            *(other.take(stage) for other in others),
        )
        part = replace(formulation.take(stage), lower=lower[stage], upper=upper[stage], limits=AllLimits(limits))
        answer = solve_interior(part.problem())
        good = stage[answer.converged]
        x[good], multipliers[good] = answer.x[answer.converged], answer.multipliers[answer.converged]
        weights[stage] = answer.limit_multipliers[:, :k]
        iterations[stage] += answer.iterations
        going[stage] &= answer.converged
    return Solved(x, multipliers, first_converged, iterations)
