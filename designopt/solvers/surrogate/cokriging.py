"""A process that also learns from cheap values: autoregressive co-kriging of two levels.

A full value is a factor times the cheap one plus an independent process of differences (Kennedy & O'Hagan 2000), in the
recursive form of Le Gratiet & Garnier (2014): the process of the cheap values is fitted first, then that of the
differences. If a full value has no cheap counterpart, the prediction replaces it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from designopt.solvers.surrogate.gaussian_process import GaussianProcess, Hyperparameters, first_guess
from designopt.solvers.surrogate.matern import Array, Slopes

#: Initial length scale of differences, over the root of the number of parameters.
SLOW = 2.0


@dataclass(frozen=True)
class CoKriging:
    """The process of ``factor * cheap + difference``, both independent; its interface is that of `GaussianProcess`."""

    cheap: GaussianProcess
    difference: GaussianProcess
    factor: float

    @classmethod
    def fitted_to(
        cls, cheap: GaussianProcess, full: GaussianProcess, fit: Callable[[Array], Hyperparameters]
    ) -> CoKriging:
        """The process fitted to those of cheap and of full values; `fit` returns the hyperparameters of differences
        (n,).

        The factor is estimated for slowly varying differences, then for their fitted hyperparameters.
        """
        with_full = cheap.fantasised(full.points)
        level = with_full.values[-len(full.points) :]
        smooth = replace(full, hyperparameters=first_guess(int(full.groups.max()) + 1, False, SLOW))
        factor = smooth.factor_of(level)
        hyperparameters = fit(full.values - factor * level)
        factor = replace(full, hyperparameters=hyperparameters).factor_of(level)
        return cls(
            with_full, replace(full, values=full.values - factor * level, hyperparameters=hyperparameters), factor
        )

    @property
    def points(self) -> Array:
        """Points (n, d) of the full values."""
        return self.difference.points

    @cached_property
    def values(self) -> Array:
        """The full values (n,)."""
        return np.asarray(self.difference.values + self.factor * self.cheap.predict(self.points)[0])

    @property
    def hyperparameters(self) -> Hyperparameters:
        """Those of the differences."""
        return self.difference.hyperparameters

    @property
    def variance(self) -> float:
        """The variance of the differences."""
        return self.difference.variance

    @property
    def observed_slopes(self) -> Slopes | None:
        """None: slopes are not used together with cheap values."""
        return None

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Mean and standard deviation (k,), without the noise, at `points` (k, d)."""
        (level, wide), (apart, narrow) = self.cheap.predict(points), self.difference.predict(points)
        return self.factor * level + apart, np.hypot(self.factor * wide, narrow)

    def slopes(self, point: Array) -> tuple[float, float, Array, Array]:
        """Mean, standard deviation and their derivatives (d,) at one `point` (d,)."""
        level, wide, by_level, by_wide = self.cheap.slopes(point)
        apart, narrow, by_apart, by_narrow = self.difference.slopes(point)
        sd = float(np.hypot(self.factor * wide, narrow))
        sd_slope = (self.factor**2 * wide * by_wide + narrow * by_narrow) / sd
        return self.factor * level + apart, sd, self.factor * by_level + by_apart, sd_slope

    def share(self, points: Array) -> Array:
        """The share (k,) of the variance at `points` (k, d) that cheap values would remove."""
        wide, narrow = self.factor * self.cheap.predict(points)[1], self.difference.predict(points)[1]
        return np.asarray(wide**2 / (wide**2 + narrow**2))

    def fantasised(self, points: Array) -> CoKriging:
        """The process with its predictions at `points` (k, d) as values (Kriging believer)."""
        return replace(self, cheap=self.cheap.fantasised(points), difference=self.difference.fantasised(points))

    def near(self, point: Array, count: int) -> CoKriging:
        """The process of the `count` full values nearest to `point` (d,), and of as many more cheap ones."""
        return replace(self, cheap=self.cheap.near(point, 2 * count), difference=self.difference.near(point, count))

    def leave_one_out(self) -> tuple[Array, Array]:
        """Mean and standard deviation (n,) of every full value, predicted from all others and the cheap ones."""
        mean, sd = self.difference.leave_one_out()
        return mean + self.values - self.difference.values, sd


def predicts_better(first: GaussianProcess | CoKriging, second: GaussianProcess | CoKriging) -> bool:
    """Whether `first` predicts left-out values better than `second`."""
    errors = [float(((p.values - p.leave_one_out()[0]) ** 2).sum()) for p in (first, second)]
    return errors[0] < errors[1]
