"""Which method solves which sharing problem, and in which parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt_mechanics.sharing.solvers.batch import Batch, Variables
from designopt_mechanics.sharing.solvers.compiled import Kernel, Outcome, kernel
from designopt_mechanics.sharing.solvers.dual import solve_dual
from designopt_mechanics.sharing.solvers.full_matrices import FullMatrices, is_full
from designopt_mechanics.sharing.solvers.interior import solve_interior
from designopt_mechanics.sharing.solvers.pattern import EntryPattern, Matrices
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
    return _by_arrays(formulation) if compiled is None else _by_kernel(formulation, compiled)


def _by_kernel(formulation: Formulation, compiled: Kernel) -> FrameSolutions:
    """All frames by the compiled method, and what it leaves unsolved by the interior-point method."""
    solutions = compiled(formulation)
    x, multipliers, iterations = solutions.x, solutions.multipliers, solutions.iterations
    unsolved = solutions.outcomes == Outcome.UNSOLVED
    for b in np.flatnonzero(unsolved.any(axis=0)):
        rows, columns = np.flatnonzero(solutions.row_blocks == b), np.flatnonzero(solutions.column_blocks == b)
        block = _Block.from_formulation(formulation, rows, columns, np.ones(formulation.matrix.shape[1:], dtype=bool))
        part = FrameSolutions(x[:, columns], multipliers[:, rows], ~unsolved[:, b], iterations)
        repeated = _finished(formulation, block, part, np.zeros(len(x), dtype=np.bool_))
        x[:, columns], multipliers[:, rows] = repeated.x, repeated.multipliers
        iterations = np.maximum(iterations, repeated.iterations)
        solutions.outcomes[unsolved[:, b] & repeated.converged, b] = Outcome.CONVERGED
    return FrameSolutions(x, multipliers, (solutions.outcomes == Outcome.CONVERGED).all(axis=1), iterations)


def _by_arrays(formulation: Formulation) -> FrameSolutions:
    """All frames by operations on arrays of frames, blocks of the same form together."""
    frames, m, v = formulation.matrix.shape
    solved = FrameSolutions(
        np.empty((frames, v)),
        np.zeros((frames, m)),
        np.ones(frames, dtype=np.bool_),
        np.zeros(frames, dtype=np.int64),
    )
    is_entry = np.asarray((formulation.matrix != 0).any(axis=0))
    for group in _blocks_by_form(formulation, is_entry):
        for block, part in zip(group, _solved(formulation, group), strict=True):
            solved.x[:, block.columns] = part.x
            solved.multipliers[:, block.rows] = part.multipliers[:, : len(block.rows)]
            solved.converged[:] &= part.converged
            solved.iterations[:] = np.maximum(solved.iterations, part.iterations)
    return solved


@dataclass(frozen=True, eq=False)
class _Block:
    """A connected part of the problem: its `rows` and `columns`, `needed` (n, m), bounds (v, n or 1), `cost`.

    `is_entry` (m, v) marks the entries of the matrix. Muscles without a row have an empty one.
    """

    rows: Integers
    columns: Integers
    needed: Floats
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
            np.zeros((len(formulation.needed), 1)) if empty else formulation.needed[:, rows],
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


def _solved(formulation: Formulation, group: list[_Block]) -> list[FrameSolutions]:
    """The solutions of blocks of the same form."""
    first, frames = group[0], len(formulation.needed)
    cost = first.cost
    if not cost.invertible or _steep(cost):
        none = np.zeros(frames, dtype=np.bool_)
        return [
            _finished(
                formulation,
                block,
                FrameSolutions(
                    np.zeros((frames, len(block.columns))), np.zeros(block.needed.shape), none, none.astype(np.int64)
                ),
                none,
            )
            for block in group
        ]
    needed = np.concatenate([block.needed.T for block in group], axis=1)
    variables = Variables(first.lower, first.upper, cost)
    dual_solution = solve_dual(Batch(_matrices(formulation, group), needed, variables), runs=len(group))
    parts = []
    for i, block in enumerate(group):
        in_run = slice(i * frames, (i + 1) * frames)
        solved = FrameSolutions(
            dual_solution.x[:, in_run].T,
            dual_solution.multipliers[:, in_run].T,
            dual_solution.converged[in_run],
            dual_solution.iterations[in_run],
        )
        parts.append(_finished(formulation, block, solved, dual_solution.infeasible[in_run]))
    return parts


def _matrices(formulation: Formulation, group: list[_Block]) -> Matrices | FullMatrices:
    """Those of blocks of the same form, one after the other."""
    is_entry, frames = group[0].is_entry, np.arange(len(formulation.needed))
    if is_full(is_entry):
        return FullMatrices(np.concatenate([block.matrix(formulation, frames) for block in group]))
    pattern = EntryPattern.from_mask(is_entry)
    if not len(pattern.rows):
        return Matrices(pattern, np.zeros((0, len(frames) * len(group))))
    entries = [formulation.matrix[:, block.rows[pattern.rows], block.columns[pattern.columns]].T for block in group]
    return Matrices(pattern, np.concatenate(entries, axis=1))


def _finished(formulation: Formulation, block: _Block, solved: FrameSolutions, hopeless: Mask) -> FrameSolutions:
    """The solution of a block with the frames that are left, and not `hopeless`, by the interior-point method."""
    left = np.flatnonzero(~solved.converged & ~hopeless)
    if not len(left):
        return solved
    objective = replace(formulation, cost=block.cost.take(left)).problem().objective
    shape = (len(left), len(block.columns))
    lower, upper = (
        np.broadcast_to(bound if bound.shape[1] == 1 else bound[:, left], shape[::-1]).T
        for bound in (block.lower, block.upper)
    )
    repeated = solve_interior(
        ConvexProblem(objective, block.matrix(formulation, left), block.needed[left], np.array(lower), np.array(upper))
    )
    x, multipliers = np.array(solved.x), np.array(solved.multipliers)
    x[left], multipliers[left] = repeated.x, repeated.multipliers
    converged, iterations = np.array(solved.converged), np.array(solved.iterations)
    converged[left], iterations[left] = repeated.converged, repeated.iterations
    return FrameSolutions(x, multipliers, converged, iterations)


def _narrow(bounds: Floats) -> Floats:
    """Bounds (v, n) that are the same in all frames as (v, 1)."""
    return np.ascontiguousarray(bounds[:, :1] if (bounds == bounds[:, :1]).all() else bounds)


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
