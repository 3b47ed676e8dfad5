"""Diagnosis of every frame after solving: the shortfall of frames without a solution, the margin of the others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from designopt.arrays import Floats, Integers
from designopt_mechanics.sharing.solvers.solve import FrameSolutions
from designopt_mechanics.sharing.statement.formulation import Formulation
from designopt_mechanics.sharing.static.sharing import Sharing
from designopt_mechanics.sharing.static.shortfall import closest, shortfall, strength_factors
from designopt_mechanics.sharing.status import SharingStatus


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The diagnosis of n frames: `status` (n,); the solution `x` (n, v); its residual, `missing` (n, m); the proof of
    infeasibility, `combination` (n, m) of rows and `deficit` (n,); the `factor` (n,) on the strength that would make
    the frame feasible.
    """

    status: Integers
    x: Floats
    missing: Floats
    combination: Floats
    deficit: Floats
    factor: Floats


def diagnose(formulation: Formulation, frame_solutions: FrameSolutions, passive_moments: Floats) -> Diagnosis:
    """A frame that has not converged is infeasible if this is proved, else it is reported as not converged."""
    frames, m = formulation.right_side.shape
    diagnosis = Diagnosis(
        np.where(frame_solutions.converged, SharingStatus.OPTIMAL, SharingStatus.NOT_CONVERGED).astype(np.int64),
        np.array(frame_solutions.x),
        np.zeros((frames, m)),
        np.zeros((frames, m)),
        np.zeros(frames),
        np.ones(frames),
    )
    left = np.flatnonzero(~frame_solutions.converged)
    if not len(left):
        return diagnosis
    lack = shortfall(formulation.take(left))
    short, lack = left[lack.is_proof], lack.take(lack.is_proof)
    if len(short):
        part = formulation.take(short)
        diagnosis.status[short] = SharingStatus.INFEASIBLE
        diagnosis.x[short] = closest(part, lack)
        diagnosis.missing[short] = lack.missing
        diagnosis.combination[short] = lack.combination
        diagnosis.deficit[short] = lack.deficit
        diagnosis.factor[short] = strength_factors(part, passive_moments[short])
    return diagnosis


#: Smallest share of the strength that is computed: smaller ones are negligible.
_MIN_STRENGTH = 1e-3


def margins(sharing: Sharing) -> Floats:
    """(n,) the share of their strength that the muscles could lose and still balance the frame alone.

    It is 1 - f with the least factor f on the forces of all muscles, at least 0.001, for which there are activations
    that balance the moments, by a linear program for each frame. Negative margins are frames beyond the muscles: -0.5
    means that half as much strength again is needed, minus infinity that no strength is enough. Reserves help only in
    rows that no muscle crosses. NaN in frames with bad input; frames beyond a rate limit are treated as independent.
    """
    formulation, frames = sharing.formulation, sharing.frames
    is_reserve = formulation.to_reserve != 0
    has_muscle = ((formulation.matrix != 0) & ~is_reserve.any(axis=0)).any(axis=(0, 2))
    idle = is_reserve[has_muscle].any(axis=0)
    alone = replace(
        formulation, lower=np.where(idle, 0.0, formulation.lower), upper=np.where(idle, 0.0, formulation.upper)
    )
    passive = np.einsum("nmk,nk->nm", sharing.balance.arms[frames], sharing.muscles.passive[frames])
    margin_values = np.full(len(sharing.status), np.nan)
    margin_values[frames] = 1.0 - strength_factors(alone, passive, _MIN_STRENGTH)
    return margin_values
