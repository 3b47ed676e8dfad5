"""Which method solves which sharing problem, and in which parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt_mechanics.sharing.solvers.compiled import Kernel, Outcome, kernel
from designopt_mechanics.sharing.solvers.interior import InteriorSolution, solve_interior
from designopt_mechanics.sharing.statement.convex import ConvexProblem
from designopt_mechanics.sharing.statement.cost import Cost
from designopt_mechanics.sharing.statement.formulation import Formulation
from designopt_mechanics.sharing.statement.limits import AllLimits, LinearLimits

#: Up to this exponent the dual method is tried first; above, its multipliers are too badly scaled.
_STEEPEST = 3.0
#: Limits of the largest activation count as active from this multiplier on; those of a frame sum to 1.
_ACTIVE = 1e-4
#: A limit of the largest activation that no longer counts.
_FAR = 10.0


@dataclass(frozen=True, eq=False)
class FrameSolutions:
    """Variables `x` (n, v), `multipliers` (n, m) of the scaled rows, whether a frame `converged`, `iterations` (n,)."""

    x: Floats
    multipliers: Floats
    converged: Mask
    iterations: Integers


def solve(formulation: Formulation, *, strict: bool = False) -> FrameSolutions:
    """Solve all frames. Those that have not converged are infeasible, or nearly so.

    With `strict`, the formulation being that of the smallest maximum, its stages are solved one after the other.
    """
    if strict:
        return _stages(formulation)
    if not formulation.separable:
        interior_solution = solve_interior(formulation.problem())
        return FrameSolutions(
            interior_solution.x,
            interior_solution.multipliers,
            interior_solution.converged,
            interior_solution.iterations,
        )
    compiled = kernel() if formulation.cost.invertible and not _steep(formulation.cost) else None
    return _by_blocks(formulation) if compiled is None else _by_kernel(formulation, compiled)


def _by_kernel(formulation: Formulation, compiled: Kernel) -> FrameSolutions:
    """All frames by the compiled method, and what it leaves unsolved by the interior-point method."""
    solutions = compiled(formulation)
    x, multipliers, iterations = solutions.x, solutions.multipliers, solutions.iterations
    unsolved = solutions.outcomes == Outcome.UNSOLVED
    for b in np.flatnonzero(unsolved.any(axis=0)):
        rows, columns = np.flatnonzero(solutions.row_blocks == b), np.flatnonzero(solutions.column_blocks == b)
        frames = np.flatnonzero(unsolved[:, b])
        repeated = _solve_block(formulation, rows, columns, frames)
        x[np.ix_(frames, columns)], multipliers[np.ix_(frames, rows)] = repeated.x, repeated.multipliers
        iterations[frames] = np.maximum(iterations[frames], repeated.iterations)
        solutions.outcomes[frames[repeated.converged], b] = Outcome.CONVERGED
    return FrameSolutions(x, multipliers, (solutions.outcomes == Outcome.CONVERGED).all(axis=1), iterations)


def _by_blocks(formulation: Formulation) -> FrameSolutions:
    """All frames by the interior-point method, one connected part of the problem after the other."""
    count, m, v = formulation.matrix.shape
    frames = np.arange(count)
    solved = FrameSolutions(
        np.empty((count, v)), np.zeros((count, m)), np.ones(count, dtype=np.bool_), np.zeros(count, dtype=np.int64)
    )
    for rows, columns in blocks(np.asarray((formulation.matrix != 0).any(axis=0))):
        part = _solve_block(formulation, rows, columns, frames)
        solved.x[:, columns] = part.x
        solved.multipliers[:, rows] = part.multipliers[:, : len(rows)]
        solved.converged[:] &= part.converged
        solved.iterations[:] = np.maximum(solved.iterations, part.iterations)
    return solved


def _solve_block(formulation: Formulation, rows: Integers, columns: Integers, frames: Integers) -> InteriorSolution:
    """The solution of some frames of a connected part of the problem; muscles without a row have an empty one."""
    objective = replace(formulation, cost=formulation.cost.rows(columns).take(frames)).problem().objective
    matrix, needed = np.zeros((len(frames), 1, len(columns))), np.zeros((len(frames), 1))
    if len(rows):
        matrix, needed = formulation.matrix[np.ix_(frames, rows, columns)], formulation.needed[np.ix_(frames, rows)]
    lower, upper = (bound[np.ix_(frames, columns)] for bound in (formulation.lower, formulation.upper))
    return solve_interior(ConvexProblem(objective, matrix, needed, lower, upper))


def _steep(cost: Cost) -> bool:
    """Whether an exponent is too large for the dual method."""
    return bool(np.any((cost.weight > 0) & (cost.exponent > _STEEPEST))) and not cost.saturating


def _stages(formulation: Formulation) -> FrameSolutions:
    """The strict smallest maximum: muscles that hold the maximum up are fixed there, and the next largest is sought."""
    assert formulation.limits is not None
    first, *further = formulation.limits.parts
    assert isinstance(first, LinearLimits)
    k = first.count
    lower, upper, right = formulation.lower.copy(), formulation.upper.copy(), np.zeros(first.right.shape)
    answer = solve_interior(formulation.problem())
    x, multipliers, weights = (np.array(a) for a in (answer.x, answer.multipliers, answer.limit_multipliers[:, :k]))
    iterations, going, first_converged = answer.iterations.copy(), answer.converged.copy(), answer.converged
    is_fixed = np.zeros(weights.shape, dtype=np.bool_)
    for _ in range(k):
        active = (weights > _ACTIVE) & ~is_fixed & going[:, None]
        going &= active.any(axis=1)
        stage = np.flatnonzero(going)
        if not len(stage):
            break
        is_fixed |= active
        lower[:, :k] = np.where(active, x[:, :k], lower[:, :k])
        upper[:, :k] = np.where(active, x[:, :k], upper[:, :k])
        right[is_fixed] = _FAR
        limits = (
            LinearLimits(first.matrix[stage], right[stage], first.arrow),
            *(limit.take(stage) for limit in further),
        )
        part = replace(formulation.take(stage), lower=lower[stage], upper=upper[stage], limits=AllLimits(limits))
        answer = solve_interior(part.problem())
        good = stage[answer.converged]
        x[good], multipliers[good] = answer.x[answer.converged], answer.multipliers[answer.converged]
        weights[stage] = answer.limit_multipliers[:, :k]
        iterations[stage] += answer.iterations
        going[stage] &= answer.converged
    return FrameSolutions(x, multipliers, first_converged, iterations)


def blocks(pattern: Mask) -> list[tuple[Integers, Integers]]:
    """Rows and columns of the connected components of a pattern (m, v), in the order of their first rows.

    Columns without an entry form a last block without rows, if there are any.
    """
    m = len(pattern)
    joined = (pattern.astype(np.int64) @ pattern.T.astype(np.int64) + np.eye(m, dtype=np.int64)) > 0
    while not np.array_equal(further := (joined.astype(np.int64) @ joined.astype(np.int64)) > 0, joined):
        joined = further
    label = joined.argmax(axis=1)  # the first row that each hangs together with
    components = []
    for first in np.unique(label):
        rows = np.flatnonzero(label == first)
        components.append((rows, np.flatnonzero(pattern[rows].any(axis=0))))
    idle = np.flatnonzero(~pattern.any(axis=0))
    if len(idle):
        components.append((np.zeros(0, dtype=np.int64), idle))
    return components
