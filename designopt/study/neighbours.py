"""Neighbours of designs: designs whose parameters deviate within their tolerances."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from designopt.lazy import scipy
from designopt.study.study import Scenario, Shift, Tolerance, Tolerances

#: Truncation of a normal distribution in standard deviations.
CUT = 3.0


def shifts(tolerances: Tolerances, count: int, seed: int) -> list[tuple[Shift, ...]]:
    """Deviations of the first `count` neighbours from their design, the same for all designs.

    Points of a scrambled Sobol' sequence (Owen 1998), distributed as each tolerance requires: a larger `count` adds
    neighbours and keeps the others.
    """
    sequence = scipy.stats.qmc.Sobol(len(tolerances.of), seed=np.random.default_rng(seed))
    points = sequence.random_base2(max(1, math.ceil(math.log2(max(count, 2)))))[:count]
    return [
        tuple(_shift(tolerance, float(u)) for tolerance, u in zip(tolerances.of, row, strict=True)) for row in points
    ]


def with_neighbours(scenarios: tuple[Scenario, ...], several: list[tuple[Shift, ...]]) -> tuple[Scenario, ...]:
    """The `scenarios`, followed by each of them with the design offset by each of `several` shifts."""
    neighbours = [Scenario(f"{s.name}_n{k}", s.values, shift) for k, shift in enumerate(several, 1) for s in scenarios]
    return (*scenarios, *neighbours)


def _shift(tolerance: Tolerance, u: float) -> Shift:
    """The quantile `u` of the tolerance."""
    if tolerance.normal:
        low, high = NormalDist().cdf(-CUT), NormalDist().cdf(CUT)
        off = NormalDist().inv_cdf(low + u * (high - low))
    else:
        off = 2.0 * u - 1.0
    factor, offset = (1.0 + tolerance.size * off, 0.0) if tolerance.relative else (1.0, tolerance.size * off)
    return Shift(tolerance.parameter, factor, offset, tolerance.low, tolerance.high)
