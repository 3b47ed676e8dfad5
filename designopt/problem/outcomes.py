"""Outcomes of designs, as solvers receive them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats

#: Failure classes of an evaluation, in the order of reports; "ok" is the only success.
STATUSES = ("ok", "diverged", "nonfinite", "error", "timeout", "crashed", "lost_worker", "invalid", "unusable")
#: Those whose message ends with the cause, below a traceback or what a program printed.
ENDED_WITH_CAUSE = ("error", "timeout", "crashed")


@dataclass(frozen=True)
class Outcomes:
    """Outcomes of a batch of designs, one row per design in the order of the request.

    `objectives` (n, m) are minimised, and infinite without a value. `violation` (n,) is 0 for a feasible design and
    positive otherwise. `failed` (n,) marks designs without a result; `invalid` (n,) marks those among them that violate
    a relation, and were not evaluated, or that the model rejected. `figures` contains every output (n, scenarios), NaN
    without a value, for display and analysis; solvers do not need it.
    """

    X: Floats
    objectives: Floats
    violation: Floats
    failed: NDArray[np.bool_]
    invalid: NDArray[np.bool_]
    figures: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.X)

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Mask (n,) of evaluated designs within all limits."""
        return np.asarray(self.violation == 0.0)

    @property
    def rank_violation(self) -> Floats:
        """Violation (n,) mapped so that order alone decides: 0 feasible < (0, 1) infeasible < [1, 2) invalid < 2
        failed."""
        finite = np.where(np.isfinite(self.violation), self.violation, 0.0)
        fractions = np.minimum(finite / (1.0 + finite), np.nextafter(1.0, 0.0))
        fractions = np.where(self.invalid, 1.0 + np.where(np.isfinite(self.violation), fractions, 1.0), fractions)
        return np.where(self.failed & ~self.invalid, 2.0, np.minimum(fractions, np.nextafter(2.0, 1.0)))

    def take(self, rows: NDArray[Any]) -> Outcomes:
        """The outcomes of some rows (indices or mask)."""
        return Outcomes(
            self.X[rows],
            self.objectives[rows],
            self.violation[rows],
            self.failed[rows],
            self.invalid[rows],
            {name: values[rows] for name, values in self.figures.items()},
        )
