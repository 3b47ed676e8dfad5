"""Results of an estimation from measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solution.solution import Solution


@dataclass(frozen=True)
class ConfidenceInterval:
    """An estimate: its `value`, standard `deviation`, and the confidence interval from `low` to `high`.

    The deviation is infinite if the measurements do not determine it, and zero at a bound (`at_bound`).
    """

    value: float
    deviation: float
    low: float
    high: float
    unit: str
    at_bound: bool = False


@dataclass(frozen=True, eq=False)
class Fit:
    """One measured phase: `times` (n,) of the measurements in s, and by name the `measured` and `fitted` values,
    standard deviations `sigma` and standardised `residuals` (n,), NaN for missing values.

    `bands` (slots,) are standard deviations of all variables at the mesh points.
    """

    times: Floats
    measured: Mapping[str, Floats]
    fitted: Mapping[str, Floats]
    sigma: Mapping[str, Floats]
    residuals: Mapping[str, Floats]
    bands: Mapping[str, Floats]


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """Estimates: `solution` is the fit, `unknowns` have their confidence intervals at the `level`.

    Unknowns are free parameters by name, and "phase.initial.x", "phase.t0", "phase.tf" if free; `covariance` (k, k) is
    theirs, in the order of `names`, without those at a bound. `chi_squared` of `count` values has `degrees_of_freedom`;
    `p_value` is the probability of a larger one if the standard deviations are correct. Of `dimension` independent
    unknowns, inputs included, the measurements determine `rank`; `undetermined` lists the other combinations. `weakest`
    is one standard deviation along the least determined combination, `condition` its ratio to that of the best
    determined one, all relative to the values. `fits` are by phase, `doubts` explain missing intervals.
    """

    solution: Solution
    level: float
    unknowns: Mapping[str, ConfidenceInterval]
    names: tuple[str, ...]
    covariance: Floats
    chi_squared: float
    count: int
    degrees_of_freedom: int
    p_value: float
    dimension: int
    rank: int
    condition: float
    undetermined: tuple[str, ...]
    weakest: str
    fits: Mapping[str, Fit]
    doubts: tuple[str, ...]

    @property
    def identifiable(self) -> bool:
        """Whether the measurements determine all unknowns."""
        return self.rank == self.dimension

    @cached_property
    def correlation(self) -> Floats:
        """Correlations (k, k) of the unknowns; not a number for those that are not determined."""
        with np.errstate(all="ignore"):
            deviations = np.sqrt(self.covariance.diagonal())
            return np.asarray(self.covariance / np.outer(deviations, deviations))

    def __repr__(self) -> str:
        """A short text; the arrays would fill many screens."""
        intervals_text = ", ".join(f"{n}={i.value:.6g} ± {i.value - i.low:.2g}" for n, i in self.unknowns.items())
        fit = f"chi_squared={self.chi_squared:.4g} of {self.degrees_of_freedom} degrees of freedom"
        return f"Estimate({intervals_text}; {fit}; {self.rank} of {self.dimension} unknowns determined)"
