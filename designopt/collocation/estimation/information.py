"""What measurements say of the unknowns of a fit: the information in the directions that the constraints leave.

With R the residuals' derivatives by all free variables and Z an orthonormal basis of the directions that keep the
active constraints, the singular values of R Z tell which combinations of unknowns the residuals determine, and
Z (Z'R'R Z)^-1 Z' is the covariance of the estimate (Bock, in Modelling of Chemical Reaction Systems, 1981, 102: the
generalised inverse of a constrained least-squares problem; Bard, Nonlinear Parameter Estimation, 1974, section 7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.arrays import Indices, Matrix
from designopt.collocation.postoptimal.kkt import Kkt, factorised
from designopt.lazy import scipy

#: Combinations whose singular value is below this share of the largest are not determined.
UNDETERMINED = 1e-8
#: Columns of a basis that are shorter than this beside the others depend on them.
DEPENDENT = 1e-9
#: More unknowns than this are not taken apart.
MOST = 2000


@dataclass(frozen=True, eq=False)
class Information:
    """Of `dimension` independent unknowns the residuals determine `rank`.

    `root` (n, rank) times its transpose is the covariance of all scaled variables, of what is determined; `null`
    (n, dimension - rank) are directions, scaled, along which the residuals do not change.
    """

    dimension: int
    rank: int
    root: Matrix
    null: Matrix


def information(kkt: Kkt, residuals: Any, first: Indices) -> Information | None:
    """What `residuals` (m, n; the Jacobian by the scaled variables) say; None for too many unknowns.

    The basis begins with the variables `first`, as far as they are free: parameters and the beginnings of states.
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
    moved = np.zeros((size, basis.shape[1]))
    moved[kkt.free] = basis @ vectors.T
    return Information(len(values), rank, moved[:, :rank] / values[:rank], moved[:, rank:])


def free_directions(kkt: Kkt, first: Indices) -> Matrix | None:
    """An orthonormal basis (free, d) of the directions that keep the active constraints; None for too many."""
    f, a = len(kkt.free), len(kkt.rows)
    d = f - a
    if d > MOST or d < 0:
        return None
    factors = factorised(scipy.sparse.eye(f, format="csc"), kkt.own_jacobian)
    if factors is None:
        return None
    place = np.full(kkt.active.free.shape[0], -1)
    place[kkt.free] = np.arange(f)
    chosen = [int(k) for k in place[first] if k >= 0][:MOST]
    rng = np.random.default_rng(0)
    columns = np.zeros((f, len(chosen))) if chosen else rng.standard_normal((f, max(d, 1)))
    columns[chosen, np.arange(len(chosen))] = 1.0
    basis = np.zeros((f, 0))
    while basis.shape[1] < d:
        along = factors.solve(np.vstack([columns, np.zeros((a, columns.shape[1]))]))[:f]
        along -= basis @ (basis.T @ along)
        Q, R, _ = scipy.linalg.qr(along, mode="economic", pivoting=True)
        length = np.abs(R.diagonal())
        new = Q[:, length > DEPENDENT * max(length.max(initial=0.0), 1e-300)]
        new = factors.solve(np.vstack([new, np.zeros((a, new.shape[1]))]))[:f]  # once more, against round-off
        new, _ = np.linalg.qr(new)
        basis = np.hstack([basis, new])[:, :d]
        columns = rng.standard_normal((f, max(d - basis.shape[1], 1)))  # what the first ones leave: unknown inputs
    return basis
