"""Gaussian-process regression: a kernel, its most probable hyperparameters, predictions with slopes.

The kernel is Matern 5/2 with one length scale for each group of columns (Rasmussen & Williams 2006, equation 4.17 and
section 5.1). Mean and amplitude of the process are eliminated by their estimates (Jones, Schonlau & Welch 1998,
equations 5 and 6). The prior of the length scales grows with the square root of the dimension (Hvarfner, Hellsten &
Nardi 2024), without which many parameters look important after few observations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from designopt.lazy import scipy

if TYPE_CHECKING:
    from collections.abc import Callable

Array = NDArray[np.float64]

#: Noise variance, relative to the variance of the process: its bounds, the upper one of models without random numbers
#: (what they jump by is no noise, and designs beside known ones are no news), and the prior of its logarithm.
NOISE_BOUNDS = (1e-9, 1.0)
MOST_WITHOUT_NOISE = 1e-3
NOISE_PRIOR = (float(np.log(1e-7)), 4.0)
#: Bounds of the length scales, in units of a parameter's range.
LENGTH_BOUNDS = (5e-3, 1e3)
#: Prior of the logarithm of a length scale in d dimensions: mean LENGTH_PRIOR[0] + log(d)/2, standard deviation.
LENGTH_PRIOR = (float(np.sqrt(2.0)), float(np.sqrt(3.0)))
ROOT5 = float(np.sqrt(5.0))


@dataclass(frozen=True)
class Hyperparameters:
    """`lengths` (groups,), one for each group of columns; `noise` is the variance of the noise relative to that of the
    process, `noisy` whether it may be more than a model's own rounding."""

    lengths: Array
    noise: float
    noisy: bool = True

    @property
    def logarithms(self) -> Array:
        """All of them as one vector (groups + 1,) for a search."""
        return np.asarray(np.log(np.append(self.lengths, self.noise)))

    def at(self, logarithms: Array) -> Hyperparameters:
        """The inverse of `logarithms`, all else as here."""
        values = np.exp(logarithms)
        return replace(self, lengths=values[:-1], noise=float(values[-1]))


def first_guess(groups: int, noisy: bool = True, length: float = 0.5) -> Hyperparameters:
    """Length scales of `length` of the range times the root of the dimension, almost no noise."""
    return Hyperparameters(np.full(groups, length * np.sqrt(groups)), 1e-6, noisy)


@dataclass(frozen=True)
class GaussianProcess:
    """A process with `values` (n,) at `points` (n, d); column j has the length scale ``lengths[groups[j]]``."""

    points: Array
    values: Array
    groups: NDArray[np.int64]
    hyperparameters: Hyperparameters

    @cached_property
    def _scales(self) -> Array:
        return np.asarray(1.0 / self.hyperparameters.lengths[self.groups])

    @cached_property
    def _scaled(self) -> Array:
        return np.asarray(self.points * self._scales)

    @cached_property
    def _inverse_factor(self) -> Array:
        """The inverse of the lower Cholesky factor of the correlation matrix."""
        R, _ = _matern(_squared_distances(self._scaled, self._scaled))
        R[np.diag_indices(len(R))] += self.hyperparameters.noise
        factor, failed = scipy.linalg.lapack.dpotrf(R, lower=1, clean=1)
        jitter = 1e-10
        while failed and jitter < 1.0:
            R[np.diag_indices(len(R))] += jitter
            factor, failed = scipy.linalg.lapack.dpotrf(R, lower=1, clean=1)
            jitter *= 10.0
        inverse, _ = scipy.linalg.lapack.dtrtri(factor, lower=1)
        return np.asarray(np.tril(inverse))

    @cached_property
    def mean(self) -> float:
        """The estimated mean of the process."""
        ones = self._inverse_factor.sum(axis=1)
        return float(ones @ (self._inverse_factor @ self.values) / (ones @ ones))

    @cached_property
    def _whitened(self) -> Array:
        return np.asarray(self._inverse_factor @ (self.values - self.mean))

    @cached_property
    def variance(self) -> float:
        """The estimated variance of the process."""
        return max(float(self._whitened @ self._whitened) / len(self.values), 1e-300)

    @cached_property
    def _weights(self) -> Array:
        return np.asarray(self._inverse_factor.T @ self._whitened)

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Mean and standard deviation (k,), without the noise, at `points` (k, d)."""
        R, _ = _matern(_squared_distances(points * self._scales, self._scaled))
        explained = self._inverse_factor @ R.T
        share = np.maximum(1.0 - np.einsum("ij,ij->j", explained, explained), 1e-14)
        return self.mean + R @ self._weights, np.sqrt(self.variance * share)

    def slopes(self, point: Array) -> tuple[float, float, Array, Array]:
        """Mean, standard deviation and their derivatives (d,) at one `point` (d,)."""
        apart = point * self._scales - self._scaled
        R, slope = _matern(np.einsum("ij,ij->i", apart, apart))
        explained = self._inverse_factor @ R
        share = max(1.0 - float(explained @ explained), 1e-14)
        sd = float(np.sqrt(self.variance * share))
        # dR_i/dx_j = 2 slope_i apart_ij scale_j
        outer = 2.0 * slope[:, None] * apart * self._scales
        backed = self._inverse_factor.T @ explained
        mean_slope = self._weights @ outer
        sd_slope = -self.variance / sd * (backed @ outer)
        return self.mean + float(R @ self._weights), sd, mean_slope, sd_slope

    def believing(self, points: Array) -> GaussianProcess:
        """The process as it would be if the values at `points` (k, d) were what it predicts there."""
        if not len(points):
            return self
        values = np.append(self.values, self.predict(points)[0])
        return GaussianProcess(np.vstack([self.points, points]), values, self.groups, self.hyperparameters)

    def near(self, point: Array, count: int) -> GaussianProcess:
        """The process of the `count` points nearest to `point` (d,) alone, fitted to them."""
        distances = ((self.points - point) ** 2).sum(axis=1)
        rows = np.sort(np.argsort(distances, kind="stable")[:count])
        points, values = self.points[rows], self.values[rows]
        if np.ptp(values) == 0.0:
            return GaussianProcess(points, values, self.groups, self.hyperparameters)
        return GaussianProcess(
            points, values, self.groups, fitted(points, values, self.groups, self.hyperparameters)[0]
        )

    def leave_one_out(self) -> tuple[Array, Array]:
        """Mean and standard deviation (n,) at every point, predicted from all others (Rasmussen & Williams 2006,
        equation 5.12)."""
        precision = np.einsum("ij,ij->j", self._inverse_factor, self._inverse_factor)
        return self.values - self._weights / precision, np.sqrt(self.variance / precision)


def fitted(
    points: Array, values: Array, groups: NDArray[np.int64], start: Hyperparameters
) -> tuple[Hyperparameters, float]:
    """The hyperparameters of the maximum posterior likelihood, searched from `start`, and its negative logarithm (up to
    a constant)."""
    count = len(start.lengths)
    bounds = [tuple(np.log(LENGTH_BOUNDS))] * count + [
        tuple(np.log((NOISE_BOUNDS[0], NOISE_BOUNDS[1] if start.noisy else MOST_WITHOUT_NOISE)))
    ]
    found = scipy.optimize.minimize(
        _negative_posterior(points, values, groups, start),
        start.logarithms,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 25, "maxfun": 40},
    )
    return start.at(np.clip(found.x, *np.array(bounds).T)), float(found.fun)


def _negative_posterior(
    points: Array, values: Array, groups: NDArray[np.int64], start: Hyperparameters
) -> Callable[[Array], tuple[float, Array]]:
    """The negative logarithm of the posterior and its gradient, as a function of the hyperparameters' logarithms."""
    n, count = len(values), len(start.lengths)
    prior_mean = np.append(np.full(count, LENGTH_PRIOR[0] + 0.5 * np.log(count)), NOISE_PRIOR[0])
    prior_sd = np.append(np.full(count, LENGTH_PRIOR[1]), NOISE_PRIOR[1])
    columns = np.eye(count)[groups]  # (d, groups)

    def function(logarithms: Array) -> tuple[float, Array]:
        h = start.at(logarithms)
        scaled = points / h.lengths[groups]
        R, slope = _matern(_squared_distances(scaled, scaled))
        R[np.diag_indices(n)] += h.noise
        factor, failed = scipy.linalg.lapack.dpotrf(R, lower=1, clean=1)
        if failed:
            return 1e25, np.zeros(count + 1)
        lower, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
        inverse = np.tril(lower) + np.tril(lower, -1).T
        ones = inverse.sum(axis=1)
        residual = values - float(ones @ values) / float(ones.sum())
        weights = inverse @ residual
        variance = max(float(residual @ weights) / n, 1e-300)
        z = (logarithms - prior_mean) / prior_sd
        value = 0.5 * n * np.log(variance) + float(np.log(np.diag(factor)).sum()) + 0.5 * float(z @ z)
        W = inverse - np.outer(weights, weights) / variance
        # dR/dlog(length_k) = -2 slope * (squared distance along k); the sum over pairs by matrix products
        A = W * slope
        along = 2.0 * (A.sum(axis=1) @ scaled**2) - 2.0 * np.einsum("ij,ij->j", scaled, A @ scaled)
        gradient = np.append(-along @ columns, 0.5 * h.noise * float(np.trace(W)))
        return value, gradient + z / prior_sd

    return function


def _squared_distances(a: Array, b: Array) -> Array:
    squares = np.einsum("ij,ij->i", a, a)[:, None] + np.einsum("ij,ij->i", b, b)[None] - 2.0 * (a @ b.T)
    return np.asarray(np.maximum(squares, 0.0))


def _matern(squared: Array) -> tuple[Array, Array]:
    """The correlation at squared scaled distances, and its derivative by them."""
    r = np.sqrt(squared)
    decay = np.exp(-ROOT5 * r)
    return (1.0 + ROOT5 * r + 5.0 / 3.0 * squared) * decay, -5.0 / 6.0 * (1.0 + ROOT5 * r) * decay
