"""Transformation of values for processes: identity, or logarithmic compression of large ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats


@dataclass(frozen=True)
class Scale:
    """The transformation of values: minus `mean`, over `sd`, and compressed above the `knee`.

    An `odd` one also compresses values far below 0. Above the knee values grow only with the logarithm: a few huge ones
    would flatten all others for a process.
    """

    knee: float
    size: float
    mean: float = 0.0
    sd: float = 1.0
    odd: bool = False

    @classmethod
    def choices(cls, values: Floats, feasible: NDArray[np.bool_]) -> list[Scale]:
        """The scales to choose from for `values` (n,) of an objective: identity, and compression above a knee.

        Three quarters of them and the best `feasible` one are not above the knee.
        """
        knee = float(np.quantile(values, 0.75))
        if feasible.any():
            knee = max(knee, float(values[feasible].min()))
        size = max(knee - float(values.min()), 1e-12 * max(abs(knee), 1e-280))
        return [cls(np.inf, size)._standard(values), cls(knee, size)._standard(values)]

    @classmethod
    def choices_of_limit(cls, values: Floats) -> list[Scale]:
        """The scales to choose from for the `values` (n,) of a limit: identity, and compression beyond their usual
        size; 0 stays 0."""
        typical = float(np.median(np.abs(values))) or float(np.abs(values).max()) or 1.0
        return [cls(np.inf, typical, 0.0, typical), cls(3.0 * typical, 3.0 * typical, 0.0, typical, odd=True)]

    def _standard(self, values: Floats) -> Scale:
        transforms = self.scaled(values)
        return replace(self, mean=float(transforms.mean()), sd=float(transforms.std()) or 1.0)

    def scaled(self, values: Floats) -> Floats:
        """The transformed `values`."""
        if self.odd:
            return np.asarray(np.arcsinh(values / self.size) * self.size / self.sd)
        over = np.maximum(values - self.knee, 0.0)
        drawn_in = np.minimum(values, self.knee) + self.size * np.log1p(over / self.size)
        return np.asarray((drawn_in - self.mean) / self.sd)

    def slopes(self, values: Floats) -> Floats:
        """The derivatives of `scaled` at `values`."""
        if self.odd:
            return np.asarray(1.0 / np.sqrt(1.0 + (values / self.size) ** 2) / self.sd)
        over = np.maximum(values - self.knee, 0.0)
        return np.asarray(1.0 / (1.0 + over / self.size) / self.sd)

    def log_slopes(self, values: Floats) -> float:
        """The sum of the logarithms of the derivatives of `scaled` at `values`."""
        if self.odd:
            return float(-0.5 * np.log1p((values / self.size) ** 2).sum() - len(values) * np.log(self.sd))
        over = np.maximum(values - self.knee, 0.0)
        return float(-np.log1p(over / self.size).sum() - len(values) * np.log(self.sd))

    def values(self, transforms: Floats) -> Floats:
        """The inverse of `transforms`."""
        drawn_in = np.asarray(transforms) * self.sd + self.mean
        if self.odd:
            return np.asarray(np.sinh(np.clip(drawn_in / self.size, -500.0, 500.0)) * self.size)
        over = np.maximum(drawn_in - self.knee, 0.0)
        return np.asarray(np.minimum(drawn_in, self.knee) + self.size * np.expm1(np.minimum(over / self.size, 500.0)))
