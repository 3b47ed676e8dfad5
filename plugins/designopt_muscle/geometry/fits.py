"""Polynomials for the lengths of muscle paths that wrap around surfaces, fitted to lengths and moment arms together."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from designopt_mechanics.state import TreeState

from designopt.arrays import Floats, Integers
from designopt.lazy import casadi as ca
from designopt_muscle.geometry.geometry import muscle_geometry
from designopt_muscle.geometry.symbolic import Ranges, wraps
from designopt_muscle.osim.model import OsimModel

#: Total degree of the polynomials, and number of random postures.
DEGREE, POSTURES = 6, 4000
#: Moment arm (m, or 1) below which a path does not cross a coordinate.
_CROSSED = 1e-9


@dataclass(frozen=True, eq=False)
class PathFit:
    """The length (m) of the path of `muscle`: sum of `coefficients` (t,) times products of `exponents` (t, d) of the
    `coordinates` (d) that it crosses, each scaled from `low`..`high` (d,) to -1..1.

    `length_error` (m) is the largest, `arm_error` (m) the root mean square and `largest_arm_error` (m) the largest of
    all coordinates, at the postures of the fit.
    """

    muscle: str
    coordinates: tuple[str, ...]
    low: Floats
    high: Floats
    exponents: Integers
    coefficients: Floats
    length_error: float
    arm_error: float
    largest_arm_error: float

    def length(self, values: Mapping[str, Any]) -> Any:
        """The length for `values` of the coordinates by name: expressions, or arrays (n,)."""
        unit_values = [
            (2.0 * values[name] - low - high) / (high - low)
            for name, low, high in zip(self.coordinates, self.low.tolist(), self.high.tolist(), strict=True)
        ]
        powers = [[1.0] for _ in unit_values]
        for x, column in zip(unit_values, powers, strict=True):
            for _ in range(int(self.exponents.max(initial=0))):
                column.append(column[-1] * x)
        total: Any = 0.0
        for row, coefficient in zip(self.exponents.tolist(), self.coefficients.tolist(), strict=True):
            term: Any = coefficient
            for column, exponent in zip(powers, row, strict=True):
                if exponent:
                    term = term * column[exponent]
            total = total + term
        return total


@dataclass(frozen=True, eq=False)
class PolynomialPaths:
    """Expressions of path lengths from `fits`; a callable as `designopt_walking.walker.walker_of` takes it."""

    fits: tuple[PathFit, ...]

    def __call__(self, state: TreeState) -> dict[str, Any]:
        """Lengths (m) by muscle."""
        return {fit.muscle: ca.SX(fit.length(state.named)) for fit in self.fits}


def polynomial_paths(model: OsimModel, ranges: Ranges, *, every: bool = False, degree: int = DEGREE) -> PolynomialPaths:
    """Fits of the paths that wrap, or of `every` path, over random postures within the `ranges` of the coordinates.

    Lengths and moment arms of all crossed coordinates are fitted together by least squares. The postures are denser at
    the ends of the ranges (the distribution of Chebyshev), where polynomials are worst and motions begin and end.
    Raises `ValueError` for a crossed coordinate without a finite range.
    """
    muscles = [muscle.name for muscle in model.muscles if every or wraps(model, muscle)]
    if not muscles:
        return PolynomialPaths(())
    rng = np.random.default_rng(0)
    values = {}
    for name in model.free:
        low, high = ranges.get(name, (np.nan, np.nan))
        if np.isfinite(low) and np.isfinite(high) and low < high:
            values[name] = low + (high - low) * 0.5 * (1.0 - np.cos(np.pi * rng.uniform(size=POSTURES)))
    geometry = muscle_geometry(model, values)
    fits = []
    for name in muscles:
        k = geometry.muscles.index(name)
        arms = geometry.arms[:, :, k]
        coordinates = [c for i, c in enumerate(geometry.coordinates) if np.abs(arms[:, i]).max() > _CROSSED]
        without = [c for c in coordinates if c not in values]
        if without:
            raise ValueError(f"the path of '{name}' crosses '{without[0]}', which has no finite range")
        columns = [geometry.coordinates.index(c) for c in coordinates]
        box = np.array([ranges[c] for c in coordinates], dtype=np.float64).reshape(-1, 2)
        postures = np.column_stack([values[c] for c in coordinates]) if coordinates else np.zeros((POSTURES, 0))
        fits.append(_fit(name, coordinates, box, postures, (geometry.lengths[:, k], arms[:, columns]), degree))
    return PolynomialPaths(tuple(fits))


def _fit(
    muscle: str, coordinates: Sequence[str], box: Floats, postures: Floats, of_path: tuple[Floats, Floats], degree: int
) -> PathFit:
    """The fit of lengths (n,) and arms (n, d), `of_path`, at `postures` (n, d) in a `box` (d, 2)."""
    lengths, arms = of_path
    low, high = box[:, 0], box[:, 1]
    x = (2.0 * postures - low - high) / (high - low)
    d = len(coordinates)
    exponents = np.array([e for e in itertools.product(range(degree + 1), repeat=d) if sum(e) <= degree]).reshape(-1, d)
    powers = x[:, None, :] ** exponents
    blocks = [powers.prod(axis=2)]
    for i in range(d):
        factors = powers.copy()
        factors[:, :, i] = exponents[:, i] * x[:, None, i] ** np.maximum(exponents[:, i] - 1, 0)
        blocks.append(factors.prod(axis=2) * (2.0 / (high[i] - low[i])))
    targets = [lengths, *(-arms[:, i] for i in range(d))]
    coefficients, *_ = np.linalg.lstsq(np.concatenate(blocks), np.concatenate(targets), rcond=None)
    errors = [block @ coefficients - target for block, target in zip(blocks, targets, strict=True)]
    of_arms = np.stack(errors[1:], axis=1) if d else np.zeros((1, 1))
    return PathFit(
        muscle,
        tuple(coordinates),
        low,
        high,
        exponents,
        np.asarray(coefficients, dtype=np.float64),
        float(np.abs(errors[0]).max()),
        float(np.sqrt((of_arms**2).mean(axis=0)).max()),
        float(np.abs(of_arms).max()),
    )
