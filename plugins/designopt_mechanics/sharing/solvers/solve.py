"""Which method solves which sharing problem, and in which parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt_mechanics.sharing.solvers.batch import Batch, Variables
from designopt_mechanics.sharing.solvers.compiled import Kernel, Outcome, kernel
from designopt_mechanics.sharing.solvers.dual import solve_dual
from designopt_mechanics.sharing.solvers.interior import solve_interior
from designopt_mechanics.sharing.solvers.matrices import EntryPattern, FullMatrices, Matrices, is_full
from designopt_mechanics.sharing.statement.convex import ConvexProblem
from designopt_mechanics.sharing.statement.cost import Cost
from designopt_mechanics.sharing.statement.formulation import Formulation
from designopt_mechanics.sharing.statement.limits import AllLimits, LinearLimits

#: Maximum exponent for which the dual method is tried first; above, its multipliers are too badly scaled.
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
    solve_compiled = kernel() if formulation.cost.invertible and not _steep(formulation.cost) else None
    return _by_arrays(formulation) if solve_compiled is None else _by_kernel(formulation, solve_compiled)


def _by_kernel(formulation: Formulation, solve_compiled: Kernel) -> FrameSolutions:
    """All frames by the compiled method, and what it leaves unsolved by the interior-point method."""
    solutions = solve_compiled(formulation)
    x, multipliers, iterations = solutions.x, solutions.multipliers, solutions.iterations
    is_unsolved = solutions.outcomes == Outcome.UNSOLVED
    for b in np.flatnonzero(is_unsolved.any(axis=0)):
        rows, columns = np.flatnonzero(solutions.row_blocks == b), np.flatnonzero(solutions.column_blocks == b)
        block = _Block.from_formulation(formulation, rows, columns, np.ones(formulation.matrix.shape[1:], dtype=bool))
        part = FrameSolutions(x[:, columns], multipliers[:, rows], ~is_unsolved[:, b], iterations)
        retry = _complete(formulation, block, part, np.zeros(len(x), dtype=np.bool_))
        x[:, columns], multipliers[:, rows] = retry.x, retry.multipliers
        iterations = np.maximum(iterations, retry.iterations)
        solutions.outcomes[is_unsolved[:, b] & retry.converged, b] = Outcome.CONVERGED
    return FrameSolutions(x, multipliers, (solutions.outcomes == Outcome.CONVERGED).all(axis=1), iterations)


def _by_arrays(formulation: Formulation) -> FrameSolutions:
    """All frames by operations on arrays of frames, blocks of the same form together."""
    frames, m, v = formulation.matrix.shape
    solutions = FrameSolutions(
        np.empty((frames, v)),
        np.zeros((frames, m)),
        np.ones(frames, dtype=np.bool_),
        np.zeros(frames, dtype=np.int64),
    )
    is_entry = np.asarray((formulation.matrix != 0).any(axis=0))
    for group in _blocks_by_form(formulation, is_entry):
        for block, part in zip(group, _solutions(formulation, group), strict=True):
            solutions.x[:, block.columns] = part.x
            solutions.multipliers[:, block.rows] = part.multipliers[:, : len(block.rows)]
            solutions.converged[:] &= part.converged
            solutions.iterations[:] = np.maximum(solutions.iterations, part.iterations)
    return solutions


@dataclass(frozen=True, eq=False)
class _Block:
    """A connected part of the problem: its `rows` and `columns`, `right_side` (n, m), bounds (v, n or 1), `cost`.

    `is_entry` (m, v) marks the entries of the matrix. Muscles without a row have an empty one.
    """

    rows: Integers
    columns: Integers
    right_side: Floats
    lower: Floats
    upper: Floats
    cost: Cost
    is_entry: Mask

    @classmethod
    def from_formulation(
        cls,
        formulation: Formulation,
        rows: Integers,
        columns: Integers,
        is_entry: Mask,
    ) -> _Block:
        empty = not len(rows)
        return cls(
            rows,
            columns,
            np.zeros((len(formulation.right_side), 1)) if empty else formulation.right_side[:, rows],
            _narrow(formulation.lower[:, columns].T),
            _narrow(formulation.upper[:, columns].T),
            formulation.cost.rows(columns),
            np.zeros((1, len(columns)), dtype=np.bool_) if empty else is_entry[np.ix_(rows, columns)],
        )

    @property
    def key(self) -> tuple[bytes, ...] | None:
        """The form of the block: blocks of one form, such as both legs, are solved together; None for a unique one."""
        cost = self.cost
        parts = (self.lower, self.upper, cost.weight, cost.exponent, cost.quadratic, cost.linear)
        if any(part.shape[1] > 1 for part in parts) or not len(self.rows):
            return None
        return (repr(self.is_entry.shape).encode(), self.is_entry.tobytes(), *(np.array(p).tobytes() for p in parts))

    def matrix(self, formulation: Formulation, frames: Integers) -> Floats:
        """(f, m, v) of some frames."""
        if not len(self.rows):
            return np.zeros((len(frames), 1, len(self.columns)))
        return formulation.matrix[np.ix_(frames, self.rows, self.columns)]


def _steep(cost: Cost) -> bool:
    """Whether an exponent is too large for the dual method."""
    return bool(np.any((cost.weight > 0) & (cost.exponent > _STEEPEST))) and not cost.saturating


def _blocks_by_form(formulation: Formulation, is_entry: Mask) -> list[list[_Block]]:
    """The blocks of the problem; those of the same form in one list."""
    groups: dict[object, list[_Block]] = {}
    for rows, columns in blocks(is_entry):
        block = _Block.from_formulation(formulation, rows, columns, is_entry)
        groups.setdefault(block.key or block, []).append(block)
    return list(groups.values())


def _solutions(formulation: Formulation, group: list[_Block]) -> list[FrameSolutions]:
    """The solutions of blocks of the same form."""
    first, frames = group[0], len(formulation.right_side)
    cost = first.cost
    if not cost.invertible or _steep(cost):
        none = np.zeros(frames, dtype=np.bool_)
        return [
            _complete(
                formulation,
                block,
                FrameSolutions(
                    np.zeros((frames, len(block.columns))),
                    np.zeros(block.right_side.shape),
                    none,
                    none.astype(np.int64),
                ),
                none,
            )
            for block in group
        ]
    right_side = np.concatenate([block.right_side.T for block in group], axis=1)
    variables = Variables(first.lower, first.upper, cost)
    dual_solution = solve_dual(Batch(_matrices(formulation, group), right_side, variables), runs=len(group))
    parts = []
    for i, block in enumerate(group):
        in_run = slice(i * frames, (i + 1) * frames)
        solution = FrameSolutions(
            dual_solution.x[:, in_run].T,
            dual_solution.multipliers[:, in_run].T,
            dual_solution.converged[in_run],
            dual_solution.iterations[in_run],
        )
        parts.append(_complete(formulation, block, solution, dual_solution.infeasible[in_run]))
    return parts


def _matrices(formulation: Formulation, group: list[_Block]) -> Matrices | FullMatrices:
    """Those of blocks of the same form, one after the other."""
    is_entry, frames = group[0].is_entry, np.arange(len(formulation.right_side))
    if is_full(is_entry):
        return FullMatrices(np.concatenate([block.matrix(formulation, frames) for block in group]))
    pattern = EntryPattern.from_mask(is_entry)
    if not len(pattern.rows):
        return Matrices(pattern, np.zeros((0, len(frames) * len(group))))
    entries = [formulation.matrix[:, block.rows[pattern.rows], block.columns[pattern.columns]].T for block in group]
    return Matrices(pattern, np.concatenate(entries, axis=1))


def _complete(formulation: Formulation, block: _Block, solution: FrameSolutions, hopeless: Mask) -> FrameSolutions:
    """The solution of a block with the frames that are left, and not `hopeless`, by the interior-point method."""
    left = np.flatnonzero(~solution.converged & ~hopeless)
    if not len(left):
        return solution
    objective = replace(formulation, cost=block.cost.take(left)).problem().objective
    shape = (len(left), len(block.columns))
    lower, upper = (
        np.broadcast_to(bound if bound.shape[1] == 1 else bound[:, left], shape[::-1]).T
        for bound in (block.lower, block.upper)
    )
    retry = solve_interior(
        ConvexProblem(
            objective, block.matrix(formulation, left), block.right_side[left], np.array(lower), np.array(upper)
        )
    )
    x, multipliers = np.array(solution.x), np.array(solution.multipliers)
    x[left], multipliers[left] = retry.x, retry.multipliers
    converged, iterations = np.array(solution.converged), np.array(solution.iterations)
    converged[left], iterations[left] = retry.converged, retry.iterations
    return FrameSolutions(x, multipliers, converged, iterations)


def _narrow(bounds: Floats) -> Floats:
    """Bounds (v, n) that are the same in all frames as (v, 1)."""
    return np.ascontiguousarray(bounds[:, :1] if (bounds == bounds[:, :1]).all() else bounds)


def _stages(formulation: Formulation) -> FrameSolutions:
    """The strict smallest maximum: muscles that hold the maximum up are fixed there, and the next largest is sought."""
    assert formulation.limits is not None
    first, *other_limits = formulation.limits.parts
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
            *(limit.take(stage) for limit in other_limits),
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
    connections = (pattern.astype(np.int64) @ pattern.T.astype(np.int64) + np.eye(m, dtype=np.int64)) > 0
    while not np.array_equal(
        next_connections := (connections.astype(np.int64) @ connections.astype(np.int64)) > 0, connections
    ):
        connections = next_connections
    label = connections.argmax(axis=1)  # the first row that each hangs together with
    components = []
    for first in np.unique(label):
        rows = np.flatnonzero(label == first)
        components.append((rows, np.flatnonzero(pattern[rows].any(axis=0))))
    idle = np.flatnonzero(~pattern.any(axis=0))
    if len(idle):
        components.append((np.zeros(0, dtype=np.int64), idle))
    return components
