"""One store of a comparison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from designopt import decision
from designopt.arrays import Floats
from designopt.store.result import Result


@dataclass(frozen=True)
class ComparedStore:
    """One store: its `label`, and `objectives` (n, m) in the common units, minimised, infinite without a value."""

    label: str
    result: Result
    objectives: Floats

    @property
    def front(self) -> NDArray[np.intp]:
        """Indices of the designs that are nondominated within this store in the common objectives."""
        rows = np.flatnonzero(self.result.outcomes.feasible)
        if not len(rows) or not self.objectives.shape[1]:
            return rows[:0]
        F = self.objectives[rows]
        keep = decision.nondominated(F)
        return np.asarray(rows[keep][np.lexsort(F[keep].T[::-1])])
