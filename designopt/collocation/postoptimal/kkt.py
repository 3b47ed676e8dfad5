"""The optimality conditions of a solved program, linearised at its optimum on the active limits.

With F the free variables and c the active rows, a change of the data that changes the gradient of the Lagrangian by g
and the active rows by r changes the optimum by

    [H_FF  J_F'] [dx]       [g]
    [J_F    0  ] [dlambda] = -[r]

The optimum is a differentiable function of the data, and this holds, if the active rows are independent, no active
limit has a zero multiplier and H is positive definite where J_F dx = 0 (Fiacco, Introduction to Sensitivity and
Stability Analysis in Nonlinear Programming, 1983, theorem 3.2.2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Floats, Indices, Mask
from designopt.collocation.solution.solution import Iterate
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.transcription import Transcription
from designopt.lazy import scipy

#: A limit is weakly active within this scaled distance, which the variable would not pass by more without the limit.
NEAR = 2e-5
#: Smallest scaled multiplier of an active limit.
CLEAR = 1e-2
#: Condition number beyond which a matrix is singular.
SINGULAR = 1e13
#: Replacement of the zeros of the matrix to determine the signs of pivots.
SHIFT = 1e-7


@dataclass(frozen=True, eq=False)
class ActiveSet:
    """The `free` variables (n,), the active rows (m,), and the weakly active limits.

    `weak_variables` and `weak_rows` are at a limit with a multiplier near zero.
    """

    free: Mask
    rows: Mask
    weak_variables: Indices
    weak_rows: Indices


def active_set(transcription: Transcription, bounds: ProgramBounds, iterate: Iterate, rows: Floats) -> ActiveSet:
    """The active set at the `iterate`, where the scaled constraints are `rows` (m,)."""
    low, high = transcription.box(bounds)
    row_low, row_high = transcription.row_box(bounds)
    on_bound, near = _active(iterate.x, iterate.bound_multipliers, low, high)
    active, near_rows = _active(rows, iterate.constraint_multipliers, row_low, row_high)
    fixed, equations = low == high, row_low == row_high
    initial_set = ActiveSet(~(on_bound | fixed), active | equations, np.empty(0, np.int64), np.empty(0, np.int64))
    near, near_rows = near & ~fixed, near_rows & ~equations
    if not near.any() and not near_rows.any():
        return initial_set
    # the step to the optimum without the limits in question gives the distance
    kkt = Kkt(
        transcription,
        bounds,
        iterate,
        replace(initial_set, free=initial_set.free | near, rows=initial_set.rows & ~near_rows),
    )
    if kkt.factor is None:
        return initial_set
    multipliers = np.where(near_rows, iterate.constraint_multipliers, 0.0)
    gradient = np.where(near, -iterate.bound_multipliers, 0.0) - kkt.jacobian.T @ multipliers
    step, _ = kkt.changes(gradient[:, None], np.zeros((len(rows), 1)), np.zeros((len(near), 1)))
    return replace(
        initial_set,
        weak_variables=np.flatnonzero(near & (np.abs(step[:, 0]) < NEAR)),
        weak_rows=np.flatnonzero(near_rows & (np.abs(kkt.jacobian @ step[:, 0]) < NEAR)),
    )


def _active(values: Floats, multipliers: Floats, low: Floats, high: Floats) -> tuple[Mask, Mask]:
    """Masks of `values` (n,) at an active limit (the multiplier exceeds the distance), and of questionable ones."""
    with np.errstate(invalid="ignore"):
        distance = np.where(multipliers > 0.0, high - values, values - low)
    distance = np.where(np.isfinite(distance), np.maximum(distance, 0.0), np.inf)
    return np.abs(multipliers) > distance, (distance < NEAR) & (np.abs(multipliers) < CLEAR)


class Kkt:
    """The linearised conditions of a program at the scaled variables and multipliers of `iterate`."""

    def __init__(
        self, transcription: Transcription, bounds: ProgramBounds, iterate: Iterate, active: ActiveSet
    ) -> None:
        self.active = active
        self.free, self.rows = np.flatnonzero(active.free), np.flatnonzero(active.rows)
        upper = _sparse(transcription.hessian(iterate.x, bounds.parameters, 1.0, iterate.constraint_multipliers))
        self.hessian = (upper + scipy.sparse.triu(upper, 1).T).tocsc()
        self.jacobian = _sparse(transcription.jacobian(iterate.x, bounds.parameters)[1])

    @cached_property
    def own_hessian(self) -> Any:
        """H of the free variables (f, f)."""
        return self.hessian[self.free][:, self.free]

    @cached_property
    def own_jacobian(self) -> Any:
        """J of the active rows with respect to the free variables (a, f)."""
        return self.jacobian[self.rows][:, self.free]

    @cached_property
    def factor(self) -> Any:
        """The factors of the matrix; None if it is singular."""
        return factorise(self.own_hessian, self.own_jacobian)

    @cached_property
    def independent(self) -> bool:
        """Whether the active rows are independent."""
        return factorise(scipy.sparse.eye(len(self.free), format="csc"), self.own_jacobian) is not None

    @cached_property
    def is_minimum(self) -> bool:
        """Whether H is positive definite in the null space of the active rows (as many negative pivots as rows)."""
        f, a = len(self.free), len(self.rows)
        K = matrix(self.own_hessian + SHIFT * scipy.sparse.eye(f), self.own_jacobian, SHIFT)
        order = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
        factors = scipy.sparse.linalg.splu(K, **order)
        if not np.array_equal(factors.perm_r, factors.perm_c):  # exchanged rows: no count of signs
            return self.factor is not None
        return int((factors.U.diagonal() < 0.0).sum()) == a

    def changes(self, gradient: Floats, rows: Floats, variables: Floats) -> tuple[Floats, Floats]:
        """Changes of all variables (n, k) and of the multipliers of all rows (m, k), scaled.

        `gradient` (n, k) is the change of the gradient of the Lagrangian, `rows` (m, k) that of the rows at constant
        variables, `variables` (n, k) that of the fixed variables.
        """
        changes = np.where(self.active.free[:, None], 0.0, variables)
        right = np.vstack([
            (gradient + self.hessian @ changes)[self.free],
            (rows + self.jacobian @ changes)[self.rows],
        ])  # fmt: skip
        step = self.factor.solve(-right)
        row_multipliers = np.zeros(rows.shape)
        changes[self.free], row_multipliers[self.rows] = step[: len(self.free)], step[len(self.free) :]
        return changes, row_multipliers


def matrix(hessian: Any, jacobian: Any, shift: float = 0.0) -> Any:
    """The matrix of the conditions, with -`shift` in place of the zeros of its diagonal."""
    corner = -shift * scipy.sparse.eye(jacobian.shape[0]) if shift else None
    return scipy.sparse.bmat([[hessian, jacobian.T], [jacobian, corner]], format="csc")


def factorise(hessian: Any, jacobian: Any) -> Any:
    """The factors of the matrix of the conditions, or None if it is singular."""
    K = matrix(hessian, jacobian)
    if not K.shape[0]:
        return _EmptyFactors()
    try:
        factors = scipy.sparse.linalg.splu(K)
    except RuntimeError:  # a pivot is exactly zero
        return None
    inverse = scipy.sparse.linalg.LinearOperator(
        K.shape, matvec=factors.solve, rmatvec=lambda v: factors.solve(v, trans="T"), dtype=float
    )
    with np.errstate(all="ignore"):
        condition = scipy.sparse.linalg.onenormest(inverse) * abs(K).sum(axis=0).max()
    return factors if condition < SINGULAR else None


class _EmptyFactors:
    """The factors of a matrix without rows."""

    def solve(self, right: Floats) -> Floats:
        return right


def _sparse(matrix: Any) -> Any:
    rows, columns = matrix.sparsity().get_triplet()
    shape = matrix.shape
    return scipy.sparse.csc_matrix((np.asarray(matrix.nonzeros(), float), (rows, columns)), shape=shape)
