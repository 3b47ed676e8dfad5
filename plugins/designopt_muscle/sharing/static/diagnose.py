"""What became of every frame after solving, and what those without a solution lack."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Vector
from designopt_muscle.sharing.solvers.solve import FrameSolutions
from designopt_muscle.sharing.statement.formulation import Formulation
from designopt_muscle.sharing.static.shortfall import closest, shortfall, strength_factors
from designopt_muscle.sharing.status import SharingStatus


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Of n frames: `status` (n,); the answer `x` (n, v); what it leaves, `missing` (n, m); the proof that nothing else
    would do, `combination` (n, m) of rows and `deficit` (n,); the `factor` (n,) on the strength that would."""

    status: NDArray[np.int64]
    x: Vector
    missing: Vector
    combination: Vector
    deficit: Vector
    factor: Vector


def diagnose(formulation: Formulation, found: FrameSolutions, passive_moments: Vector) -> Diagnosis:
    """A frame that has not converged is infeasible if that can be proved, else it is said not to have converged."""
    frames, m = formulation.needed.shape
    diagnosis = Diagnosis(
        np.where(found.converged, SharingStatus.OPTIMAL, SharingStatus.NOT_CONVERGED).astype(np.int64),
        np.array(found.x),
        np.zeros((frames, m)),
        np.zeros((frames, m)),
        np.zeros(frames),
        np.ones(frames),
    )
    left = np.flatnonzero(~found.converged)
    if not len(left):
        return diagnosis
    lack = shortfall(formulation.take(left))
    short, lack = left[lack.proved], lack.take(lack.proved)
    if len(short):
        part = formulation.take(short)
        diagnosis.status[short] = SharingStatus.INFEASIBLE
        diagnosis.x[short] = closest(part, lack)
        diagnosis.missing[short] = lack.missing
        diagnosis.combination[short] = lack.combination
        diagnosis.deficit[short] = lack.deficit
        diagnosis.factor[short] = strength_factors(part, passive_moments[short])
    return diagnosis
