"""The sides of constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt.study.study import StudyConstraint

#: Equality tolerance, relative to the limit's size.
EQUAL = 1e-6


@dataclass(frozen=True)
class Limit:
    """One side of a constraint: ``sign * (value - bound) / size`` is at most 0, or equals 0 (`equality`).

    The value is aggregated towards its large end for the sign 1, towards its small end for -1.
    """

    constraint: StudyConstraint
    bound: float
    sign: float
    equality: bool

    @property
    def size(self) -> float:
        """The scale of violations: the size of the bound, 1 for a bound of 0."""
        return abs(self.bound) or 1.0


def unequal(low: Floats, high: Floats, limit: float) -> Floats:
    """Distance (n,) of figures with the ends `low` and `high` (n,) from the required value `limit`.

    0 within `EQUAL`: no search meets a real number exactly.
    """
    apart = np.maximum(np.abs(high - limit), np.abs(low - limit))
    return np.where(apart <= EQUAL * (abs(limit) or 1.0), 0.0, apart)
