"""How well the numbers of a program are determined by its optimum: second derivatives of the least objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt.collocation import Program, Solution
from designopt.collocation.transcription.boxes import boxes
from designopt.lazy import scipy

#: Scaled distance from a bound at which a variable counts as held by it, and the shift that keeps the matrix regular.
_HELD, _SHIFT = 1e-6, 1e-10
#: Share of the largest eigenvalue below which a combination of factors is not determined.
UNDETERMINED = 1e-8


@dataclass(frozen=True, eq=False)
class Identifiability:
    """Identifiability of factors: each alone, and with all others free.

    `widths` (k,): a change of a factor by this width raises the minimum of the objective by the given amount while the
    others are re-optimised; infinite for an undetermined factor. `alone` (k,): the same with the others fixed.
    `weakest` (k,) is the combination of unit length that the objective determines least, and `condition` the ratio of
    the eigenvalues.
    """

    names: tuple[str, ...]
    widths: Floats
    alone: Floats
    weakest: Floats
    condition: float


def information(program: Program, solution: Solution, names: Sequence[str]) -> Floats:
    """(k, k) second derivatives of the least objective by the parameters `names`, the motion following.

    The Schur complement of the optimality conditions at the solution; bounds and limits that hold there are kept.
    """
    transcription, names = program.transcription, list(names)
    if not names:
        return np.zeros((0, 0))
    program_bounds = boxes(program.problem_functions, program.problem, transcription.layout, transcription.blocks)
    x, multipliers = solution.iterate.x, solution.iterate.constraint_multipliers
    H = scipy.sparse.csc_matrix(transcription.hessian(x, program_bounds.parameters, 1.0, multipliers).sparse())
    H = H + scipy.sparse.triu(H, 1).T
    J = scipy.sparse.csr_matrix(transcription.jacobian(x, program_bounds.parameters)[1].sparse())
    low, high = (
        (program_bounds.low - transcription.shift) / transcription.scale,
        (program_bounds.high - transcription.shift) / transcription.scale,
    )
    free = (x > low + _HELD) & (x < high - _HELD)
    columns = np.array([transcription.layout.parameters[name] for name in names])
    free[columns] = False
    rows = solution.constraints
    near = np.minimum(np.abs(rows.values - rows.low), np.abs(rows.high - rows.values)) / rows.scale
    at_limit = near <= _HELD
    w = np.flatnonzero(free)
    A = J[at_limit][:, w]
    n, m = A.shape[1], A.shape[0]
    kkt = scipy.sparse.bmat(
        [[H[w][:, w] + _SHIFT * scipy.sparse.identity(n), A.T], [A, -_SHIFT * scipy.sparse.identity(m)]], format="csc"
    )
    right = np.vstack([H[w][:, columns].toarray(), J[at_limit][:, columns].toarray()])
    follow = scipy.sparse.linalg.splu(kkt).solve(right)
    schur_complement = H[columns][:, columns].toarray() - right.T @ follow
    scale = transcription.scale[columns]
    reduced_hessian = schur_complement / (transcription.cost_scale * np.outer(scale, scale))
    return np.asarray(0.5 * (reduced_hessian + reduced_hessian.T))


def identifiability(names: Sequence[str], of_trials: Sequence[Floats], rise: float) -> Identifiability:
    """How well factors are determined by trials whose informations (k, k) add up; `rise` is that of the objective."""
    total = np.sum(of_trials, axis=0)
    values, vectors = np.linalg.eigh(total)
    is_determined = values > UNDETERMINED * max(float(values[-1]), 1e-300)
    spread = (vectors[:, is_determined] ** 2 / values[is_determined]).sum(axis=1)
    open_ways = (vectors[:, ~is_determined] ** 2).sum(axis=1) > UNDETERMINED
    widths = np.where(open_ways, np.inf, np.sqrt(2.0 * rise * spread))
    diagonal = np.diag(total)
    alone = np.where(diagonal > 0, np.sqrt(2.0 * rise / np.where(diagonal > 0, diagonal, 1.0)), np.inf)
    condition = float(values[-1] / values[0]) if is_determined.all() else np.inf
    return Identifiability(tuple(names), widths, alone, vectors[:, 0], condition)
