"""Frames that cannot be balanced: the shortfall, the proof, and the muscle strength that would be enough.

The least squares ``min |needed - A x|^2`` over the bounds leave a residual y. It is a normal of the set of attainable
moments, so ``needed . y > max over x of (A x) . y`` proves that no activations balance the frame (Farkas). The right
side is a sum of one term for each variable: the proof does not depend on a solver.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt_mechanics.sharing.solvers.interior import solve_interior
from designopt_mechanics.sharing.statement.convex import ConvexProblem
from designopt_mechanics.sharing.statement.formulation import Formulation
from designopt_mechanics.sharing.statement.limits import AllLimits

#: A proof is valid if the difference exceeds this share of the compared numbers.
_MARGIN = 1e-9
#: Muscles that add less than this share of the largest to the proof may take any activation.
_FREE = 1e-6


@dataclass(frozen=True, eq=False)
class Shortfall:
    """The shortfall of n frames, in the units of the rows.

    `missing` (n, m) is the least-squares shortfall, `x` (n, v) its variables. `combination` (n, m) is the unit vector y
    of the proof, `deficit` (n,) is ``right_side . y`` less its maximum over the variables. `is_proof` (n,) marks
    frames whose proof holds.
    """

    missing: Floats
    x: Floats
    combination: Floats
    deficit: Floats
    is_proof: Mask

    def take(self, frames: Mask) -> Shortfall:
        """The shortfall of some of the frames."""
        return Shortfall(*(getattr(self, f.name)[frames] for f in fields(self)))


def shortfall(formulation: Formulation) -> Shortfall:
    """The least shortfall of each frame, and whether it proves that the frame is infeasible."""
    frames, m, v = formulation.matrix.shape
    weight = (formulation.rows / formulation.rows.max()) ** 2
    matrix = np.concatenate([formulation.matrix, np.broadcast_to(np.eye(m), (frames, m, m))], axis=2)
    infinity = np.full((frames, m), np.inf)
    limits = formulation.limits
    problem = ConvexProblem(
        _Squares(np.append(np.zeros(v), weight)),
        matrix,
        formulation.right_side,
        np.concatenate([formulation.lower, -infinity], axis=1),
        np.concatenate([formulation.upper, infinity], axis=1),
        None if limits is None else _ExtendedLimits(limits, m),
    )
    lack = solve_interior(problem)
    x = lack.x[:, :v]
    missing = (formulation.right_side - np.einsum("nmv,nv->nm", formulation.matrix, x)) * formulation.rows
    length = np.sqrt((missing**2).sum(axis=1))
    combination = _without_dust(formulation, missing / np.where(length > 0, length, 1.0)[:, None])
    multipliers = lack.limit_multipliers * (formulation.rows.max() ** 2 / np.where(length > 0, length, 1.0))[:, None]
    deficit, size = _deficit(formulation, combination, multipliers, x)
    return Shortfall(missing, x, combination, deficit, deficit > _MARGIN * size)


def _without_dust(formulation: Formulation, combination: Floats) -> Floats:
    """The combination without rounding errors in rows that an unbounded variable balances: they would spoil the
    proof.
    """
    is_unbounded = ~np.isfinite(formulation.lower) | ~np.isfinite(formulation.upper)
    has_reserve = (np.abs(formulation.matrix) * is_unbounded[:, None, :]).max(axis=2, initial=0.0) > 0
    return np.asarray(np.where(has_reserve, 0.0, combination))


def _deficit(formulation: Formulation, combination: Floats, multipliers: Floats, x: Floats) -> tuple[Floats, Floats]:
    """The difference of ``right_side . y`` and its maximum over the variables, and the magnitude of both numbers.

    Limits g(x) <= 0 enter with their linear parts at `x` and multipliers z >= 0: feasible x reach at most the maximum
    of ``(A^T y - G^T z) x + z (G x0 - g(x0))`` over the bounds.
    """
    y = combination * formulation.rows
    s = np.einsum("nmv,nm->nv", formulation.matrix, y)
    total = np.zeros(len(y))
    if formulation.limits is not None:
        z = np.where(multipliers > 1e-9 * np.abs(s).max(axis=1, keepdims=True), multipliers, 0.0)
        values, gradients = formulation.limits.at(x, np.arange(len(x)))
        slopes = np.einsum("ncv,nc->nv", gradients, z)
        total = (slopes * x).sum(axis=1) - (z * values).sum(axis=1)
        s = s - slopes
    best = np.where(s > 0, formulation.upper, formulation.lower)
    largest_moment = np.where(s == 0.0, 0.0, s * np.where(s == 0.0, 0.0, best))
    needed_moment = formulation.right_side * y
    size = np.abs(needed_moment).sum(axis=1) + np.abs(largest_moment).sum(axis=1) + np.abs(total)
    return needed_moment.sum(axis=1) - largest_moment.sum(axis=1) - total, np.where(np.isfinite(size), size, np.inf)


def closest(formulation: Formulation, shortfall: Shortfall) -> Floats:
    """(n, v) the best of all variables with the least shortfall.

    Muscles in the proof stay at their bounds; the criterion chooses among the others. If it fails, the activations of
    `shortfall` stay.
    """
    y = shortfall.combination * formulation.rows
    s = np.einsum("nmv,nm->nv", formulation.matrix, y)
    counts = np.abs(s) > _FREE * np.abs(s).max(axis=1, keepdims=True)
    bound = np.where(s > 0, formulation.upper, formulation.lower)
    problem = formulation.problem()
    left = ConvexProblem(
        problem.objective,
        problem.matrix,
        formulation.right_side - shortfall.missing / formulation.rows,
        np.where(counts, bound, formulation.lower),
        np.where(counts, bound, formulation.upper),
        problem.limits,
    )
    interior_solution = solve_interior(left)
    return np.where(interior_solution.converged[:, None], interior_solution.x, shortfall.x)


def strength_factors(formulation: Formulation, passive: Floats, least: float = 1.0) -> Floats:
    """(n,) the least factor, at least `least`, on the forces of the muscles that makes a frame feasible; infinite
    without one.

    Passive forces scale with the muscle; `passive` (n, m) are their moments. With d = 1 / factor the rows are ``A x +
    passive = d (needed + passive)``: a linear program for the largest d up to 1 / least. Reserves do not scale, and
    need not as they are unbounded.
    """
    frames, _, v = formulation.matrix.shape
    passive_rows = passive / formulation.rows
    matrix = np.concatenate([formulation.matrix, -(formulation.right_side + passive_rows)[:, :, None]], axis=2)
    slope = np.zeros(v + 1)
    slope[-1] = -1.0
    limits = formulation.limits
    problem = ConvexProblem(
        _Linear(slope),
        matrix,
        -passive_rows,
        np.concatenate([formulation.lower, np.zeros((frames, 1))], axis=1),
        np.concatenate([formulation.upper, np.full((frames, 1), 1.0 / least)], axis=1),
        None if limits is None else _ExtendedLimits(limits, 1),
    )
    interior_solution = solve_interior(problem)
    d = interior_solution.x[:, -1]
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(interior_solution.converged & (d > 1e-9), 1.0 / d, np.inf))


@dataclass(frozen=True, eq=False)
class _ExtendedLimits:
    """Limits of the first variables, where more follow."""

    limits: AllLimits
    extra: int

    @property
    def count(self) -> int:
        return self.limits.count

    @property
    def arrow(self) -> bool:
        return False

    def at(self, x: Floats, frames: Integers) -> tuple[Floats, Floats]:
        values, gradients = self.limits.at(x[:, : -self.extra], frames)
        return values, np.concatenate([gradients, np.zeros((*gradients.shape[:2], self.extra))], axis=2)

    def bend(self, multipliers: Floats, frames: Integers) -> Floats | None:
        inner = self.limits.bend(multipliers, frames)
        if inner is None:
            return None
        padding = ((0, 0), (0, self.extra), (0, self.extra))
        return np.pad(inner, padding)


@dataclass(frozen=True, eq=False)
class _Squares:
    weight: Floats

    def at(self, x: Floats, frames: Integers) -> tuple[Floats, Floats]:
        return self.weight * x, np.broadcast_to(self.weight, x.shape)


@dataclass(frozen=True, eq=False)
class _Linear:
    slope: Floats

    def at(self, x: Floats, frames: Integers) -> tuple[Floats, Floats]:
        return np.broadcast_to(self.slope, x.shape), np.zeros(x.shape)
