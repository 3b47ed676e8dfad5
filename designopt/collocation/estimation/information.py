"""Information of measurements on the unknowns of a fit, in the directions that satisfy the constraints.

With R the derivatives of the residuals with respect to all free variables and Z an orthonormal basis of the null space
of the active constraints, the singular values of R Z give the combinations of unknowns that the residuals determine,
and Z (Z'R'R Z)^-1 Z' is the covariance of the estimate (Bock, in Modelling of Chemical Reaction Systems, 1981, 102: the
generalised inverse of a constrained least-squares problem; Bard, Nonlinear Parameter Estimation, 1974, section 7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.arrays import Floats, Indices
from designopt.collocation.postoptimal.kkt import Kkt, factorise
from designopt.lazy import scipy

#: Relative singular value below which a combination is undetermined.
UNDETERMINED = 1e-8
#: Relative length below which a column of a basis depends on the others.
DEPENDENT = 1e-9
#: Maximum number of unknowns for a decomposition.
MOST = 2000


@dataclass(frozen=True, eq=False)
class Information:
    """The information of residuals: they determine `rank` of `dimension` independent unknowns.

    `root` (n, rank) times its transpose is the covariance of all scaled variables in the determined directions; `null`
    (n, dimension - rank) contains the scaled directions along which the residuals are constant.
    """

    dimension: int
    rank: int
    root: Floats
    null: Floats


def information(kkt: Kkt, residuals: Any, first: Indices) -> Information | None:
    """Information from `residuals` (m, n), the Jacobian with respect to the scaled variables; None for too many
    unknowns.

    The basis starts with the variables `first`, as far as they are free: parameters and initial states.
    """
    basis = free_directions(kkt, first)
    if basis is None:
        return None
    size = kkt.active.free.shape[0]
    if not basis.shape[1]:
        return Information(0, 0, np.zeros((size, 0)), np.zeros((size, 0)))
    _, values, vectors = np.linalg.svd(residuals[:, kkt.free] @ basis, full_matrices=True)
    values = np.concatenate([values, np.zeros(max(0, basis.shape[1] - len(values)))])
    rank = int((values > UNDETERMINED * max(values[0], 1e-300)).sum())
    changes = np.zeros((size, basis.shape[1]))
    changes[kkt.free] = basis @ vectors.T
    return Information(len(values), rank, changes[:, :rank] / values[:rank], changes[:, rank:])


def free_directions(kkt: Kkt, first: Indices) -> Floats | None:
    """An orthonormal basis (free, d) of the null space of the active constraints; None if it is too large."""
    f, a = len(kkt.free), len(kkt.rows)
    d = f - a
    if d > MOST or d < 0:
        return None
    factors = factorise(scipy.sparse.eye(f, format="csc"), kkt.own_jacobian)
    if factors is None:
        return None
    index_of = np.full(kkt.active.free.shape[0], -1)
    index_of[kkt.free] = np.arange(f)
    columns_to_solve = [int(k) for k in index_of[first] if k >= 0][:MOST]
    rng = np.random.default_rng(0)
    columns = np.zeros((f, len(columns_to_solve))) if columns_to_solve else rng.standard_normal((f, max(d, 1)))
    columns[columns_to_solve, np.arange(len(columns_to_solve))] = 1.0
    basis = np.zeros((f, 0))
    while basis.shape[1] < d:
        along = factors.solve(np.vstack([columns, np.zeros((a, columns.shape[1]))]))[:f]
        along -= basis @ (basis.T @ along)
        Q, R, _ = scipy.linalg.qr(along, mode="economic", pivoting=True)
        length = np.abs(R.diagonal())
        new = Q[:, length > DEPENDENT * max(length.max(initial=0.0), 1e-300)]
        new = factors.solve(np.vstack([new, np.zeros((a, new.shape[1]))]))[:f]  # repeated against round-off
        new, _ = np.linalg.qr(new)
        basis = np.hstack([basis, new])[:, :d]
        columns = rng.standard_normal((f, max(d - basis.shape[1], 1)))  # the complement: unknown inputs
    return basis
