"""The frames of a motion by the dual method: frames at a stride first, then those between them from their multipliers.

Neighbouring frames are alike, so with a good guess of the multipliers most frames need one Newton step.
"""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats
from designopt_mechanics.sharing.solvers.batch import Batch, DualSolution, Variables
from designopt_mechanics.sharing.solvers.cholesky import solve_definite
from designopt_mechanics.sharing.solvers.dual_newton import newton
from designopt_mechanics.sharing.statement.cost import Cost

#: Distances of the frames that are solved together, one after the other.
STRIDES = (64, 8, 1)
#: Numbers that the frames of one array operation have together, so that they stay in a core's cache.
_CACHED = 400_000


def solve_dual(batch: Batch, *, runs: int = 1) -> DualSolution:
    """Solve all frames; those that do not converge are infeasible, or need another method.

    The frames are `runs` motions of the same length, one after the other.
    """
    frames = batch.right_side.shape[1]
    length = frames // runs
    solution = DualSolution.empty(*batch.matrix.shape)
    guess: Floats | None = None
    left = np.ones(frames, dtype=np.bool_)
    for stride in STRIDES:
        if stride > 1 and length < 4 * stride:
            continue
        of_one = np.append(np.arange(0, length - 1, stride), length - 1)
        in_turn = (of_one + length * np.arange(runs)[:, None]).ravel()
        in_turn = in_turn[left[in_turn]]
        part = batch if len(in_turn) == frames else batch.take(in_turn)
        solution.assign(in_turn, _solution(part, None if guess is None else guess[:, in_turn]))
        left[in_turn] = False
        guess = _between(solution, runs) if stride > 1 else None
    return solution


def _between(solution: DualSolution, runs: int) -> Floats | None:
    """(m, n) multipliers between those of the frames that have converged; None where a run has less than two."""
    guess = np.empty_like(solution.multipliers)
    length = guess.shape[1] // runs
    every = np.arange(length)
    for run in range(runs):
        in_run = slice(run * length, (run + 1) * length)
        converged_frames = np.flatnonzero(solution.converged[in_run])
        if len(converged_frames) < 2:
            return None
        guess[:, in_run] = [
            np.interp(every, converged_frames, row_values[converged_frames])
            for row_values in solution.multipliers[:, in_run]
        ]
    return guess


def _solution(batch: Batch, guess: Floats | None) -> DualSolution:
    """The solution from a `guess` (m, n): the first step in parts that stay in the cache, then all remaining frames
    together."""
    if guess is None:
        return newton(batch, first_multipliers(batch), warm_start=False)
    frames = batch.right_side.shape[1]
    size = max(64, _CACHED // (batch.matrix.numbers + 4 * batch.matrix.shape[1]))
    if frames <= size:
        return newton(batch, guess)
    solution = DualSolution.empty(*batch.matrix.shape)
    for begin in range(0, frames, size):
        part = slice(begin, begin + size)
        solution.assign(part, newton(batch.take(part), guess[:, part], max_iterations=1))
    left = np.flatnonzero(~solution.converged)
    if len(left):
        solution.assign(left, newton(batch.take(left), solution.multipliers[:, left]))
    return solution


def first_multipliers(batch: Batch) -> Floats:
    """(m, n) the unclipped minimiser of a quadratic cost.

    For other costs the multipliers that fit the slopes of the cost at the minimiser of the weighted squares best.
    """
    variables, matrix = batch.variables, batch.matrix
    cost = variables.cost
    if cost.is_quadratic:
        diagonal = np.broadcast_to(1.0 / cost.quadratic, matrix.shape[1:])
        at_zero = np.clip(-cost.linear * diagonal, variables.lower, variables.upper)
        missing = batch.right_side - matrix.times(np.broadcast_to(at_zero, matrix.shape[1:]))
        return solve_definite(matrix.normal(diagonal), missing)
    squares = Cost(np.zeros((1, 1)), cost.exponent, cost.quadratic + 2.0 * cost.weight, cost.linear, saturating=False)
    plain = Batch(matrix, batch.right_side, Variables(variables.lower, variables.upper, squares))
    x = newton(plain, first_multipliers(plain), warm_start=False).x
    free = ((x > variables.lower) & (x < variables.upper)).astype(np.float64)
    if cost.saturating:
        x = np.clip(x, -0.999, 0.999)
    weight = free / np.maximum(cost.curvature(x), 1e-12) + 1e-9
    slopes = matrix.times(weight * cost.slope(x))
    return solve_definite(matrix.normal(weight), slopes)
