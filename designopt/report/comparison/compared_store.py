"""What the parts of a comparison know of one store."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Matrix
from designopt.lazy import moocore
from designopt.store.result import Result


@dataclass(frozen=True)
class ComparedStore:
    """One store: its `label`, and `objectives` (n, m) in the common units, to be minimised, infinite without one."""

    label: str
    result: Result
    objectives: Matrix

    @property
    def front(self) -> NDArray[np.intp]:
        """Designs that no other one of this store dominates in the common objectives."""
        rows = np.flatnonzero(self.result.outcomes.feasible)
        if not len(rows):
            return rows
        F = self.objectives[rows]
        if F.shape[1] == 1:
            return rows[[int(np.argmin(F[:, 0]))]]
        keep = moocore.is_nondominated(F, keep_weakly=False)
        return np.asarray(rows[keep][np.lexsort(F[keep].T[::-1])])
