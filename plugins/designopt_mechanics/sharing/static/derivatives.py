"""Exact derivatives of a sharing with respect to net moments and muscle forces: the effect of a device or a stronger
muscle.

The optimality conditions with the active bounds are linear in the changes; the adjoint of Newton's matrix at the
solution gives the derivatives of a sum of activations with respect to all inputs at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt_mechanics.sharing.solvers.cholesky import solve_definite
from designopt_mechanics.sharing.solvers.newton import times, transposed_times
from designopt_mechanics.sharing.static.sharing import Sharing

#: Variables closer to a bound than this stay there.
_AT_BOUND = 1e-9


@dataclass(frozen=True, eq=False)
class FrameDerivatives:
    """Derivatives of one number by the inputs of every frame; 0 in frames that have no part in it.

    `by_moment` (n, m) by the needed moments in the unit of the row, `by_strength` (n, k) and `by_passive` (n, k) by the
    active and passive forces of the muscles in N.
    """

    by_moment: Floats
    by_strength: Floats
    by_passive: Floats


def activation_slopes(sharing: Sharing, weights: Floats) -> FrameDerivatives:
    """Derivatives of the sum of ``weights * activations``, both (n, k), over the balanced frames.

    For a peak, `weights` is 1 at the peak and 0 elsewhere. Raises `ValueError` for criteria that couple muscles (the
    smallest maximum, synergies, joint reactions).
    """
    formulation, frames, k = sharing.formulation, sharing.frames, len(sharing.muscles.names)
    if not sharing.separable:
        raise ValueError(
            "derivatives of activations are available only for criteria that are sums over the muscles of single frames"
        )
    good = np.asarray(sharing.status[frames] < 100)
    x = np.where(good[:, None], sharing.variables, 0.5)
    y = np.where(good[:, None], sharing.scaled_multipliers, 0.0)
    inside = (x > formulation.lower + _AT_BOUND) & (x < formulation.upper - _AT_BOUND) & good[:, None]
    curvature = formulation.cost.curvature(x.T).T
    free = np.where(inside, 1.0 / np.maximum(curvature, 1e-300), 0.0)
    gradient = np.zeros(x.shape)
    gradient[:, :k] = weights[frames]
    z = free * gradient
    matrix = formulation.matrix
    normal = np.matmul(matrix * free[:, None, :], matrix.transpose(0, 2, 1))
    u = solve_definite(normal.transpose(1, 2, 0), times(matrix, z).T).T
    q = z - free * transposed_times(matrix, u)
    by_row = u / formulation.rows
    by_matrix = -by_row[:, :, None] * x[:, None, :k] + (y / formulation.rows)[:, :, None] * q[:, None, :k]
    arms = sharing.balance.arms[frames]
    return _spread(
        sharing,
        by_row * good[:, None],
        (arms * by_matrix).sum(axis=1) * good[:, None],
        -np.einsum("nmk,nm->nk", arms, by_row) * good[:, None],
    )


def cost_slopes(sharing: Sharing) -> FrameDerivatives:
    """Derivatives of the cost, summed over the balanced frames: the multipliers, and what follows from them."""
    frames = sharing.frames
    good = np.asarray(sharing.status[frames] < 100)[:, None]
    multipliers = np.where(good, sharing.multipliers[frames], 0.0)
    force_slopes = np.einsum("nmk,nm->nk", sharing.balance.arms[frames], multipliers)
    activations = np.nan_to_num(sharing.activations[frames])
    return _spread(sharing, multipliers, -force_slopes * activations, -force_slopes)


def _spread(sharing: Sharing, *parts: Floats) -> FrameDerivatives:
    all_frames = []
    for part in parts:
        array = np.zeros((len(sharing.status), part.shape[1]))
        array[sharing.frames] = part
        all_frames.append(array)
    return FrameDerivatives(*all_frames)
