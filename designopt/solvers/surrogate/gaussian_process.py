"""Gaussian-process regression: kernel, maximum a posteriori hyperparameters, predictions with slopes.

The kernel is Matern 5/2 with one length scale for each group of columns (Rasmussen & Williams 2006, equation 4.17 and
section 5.1). Mean and amplitude of the process are eliminated by their estimates (Jones, Schonlau & Welch 1998,
equations 5 and 6). The prior of the length scales grows with the square root of the dimension (Hvarfner, Hellsten &
Nardi 2024); otherwise many parameters look important after few observations. It may expect them near a common level;
otherwise single parameters look important or unimportant by chance. A share of the kernel may be additive. Slopes may
be observed in addition to values (Morris, Mitchell & Ylvisaker 1993; Forrester, Sóbester & Keane 2008, chapter 7).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from designopt.lazy import scipy
from designopt.solvers.surrogate.additive import (
    GroupKernels,
    group_derivatives,
    with_additive_part,
)
from designopt.solvers.surrogate.matern import (
    Array,
    Indices,
    Slopes,
    along_length_scales,
    matern,
    noise_of_observations,
    observation_correlations,
    slopes_with_observations,
    squared_distances,
    with_observations,
)

if TYPE_CHECKING:
    from collections.abc import Callable

#: Noise variance, relative to the variance of the process: its bounds, the upper one for models without random numbers
#: (their jumps are not noise, and designs near known ones give no information), and the prior of its logarithm.
NOISE_BOUNDS = (1e-9, 1.0)
MOST_WITHOUT_NOISE = 1e-3
NOISE_PRIOR = (float(np.log(1e-7)), 4.0)
#: Noise variance of rounding errors for a deterministic model.
ROUNDING = 1e-8
#: Noise variance of local fits to values that may jump: initial value, and value below which nothing jumps.
JUMPY, SMOOTH = 0.1, 1e-5
#: Bounds of the length scales, in units of a parameter's range.
LENGTH_BOUNDS = (5e-3, 1e3)
#: Prior of the logarithm of a length scale in d dimensions: mean LENGTH_PRIOR[0] + log(d)/2, standard deviation.
LENGTH_PRIOR = (float(np.sqrt(2.0)), float(np.sqrt(3.0)))
#: Its standard deviation about the level that all length scales of a process have in common, if they have one.
ABOUT_LEVEL = 0.5
#: Standard deviation and bound of the log odds of the additive share of the kernel, whose prior has a mean of 0.
ADDITIVE_PRIOR, ADDITIVE_BOUND = 2.0, 7.0


@dataclass(frozen=True)
class Hyperparameters:
    """`lengths` (groups,), one for each group of columns; `noise` is the variance of the noise relative to that of the
    process, `noisy` whether it may exceed rounding errors, `common_level` whether the prior expects similar lengths,
    `additive` the additive share of the kernel, fitted unless 0."""

    lengths: Array
    noise: float
    noisy: bool = True
    common_level: bool = True
    additive: float = 0.0

    @property
    def logarithms(self) -> Array:
        """All as one vector for a search (groups + 1,), with an additive share (groups + 2,): the last are its log
        odds."""
        logarithms = np.log(np.append(self.lengths, self.noise))
        return np.append(logarithms, np.log(self.additive / (1.0 - self.additive))) if self.additive else logarithms

    def at(self, logarithms: Array) -> Hyperparameters:
        """The inverse of `logarithms`, other fields as here."""
        count = len(self.lengths)
        values = np.exp(logarithms)
        share = float(values[-1] / (1.0 + values[-1])) if self.additive else 0.0
        return replace(self, lengths=values[:count], noise=float(values[count]), additive=share)


def first_guess(
    groups: int, noisy: bool = True, length: float = 0.5, common_level: bool = True, additive: float = 0.0
) -> Hyperparameters:
    """Length scales of `length` of the range times the root of the dimension, almost no noise."""
    return Hyperparameters(np.full(groups, length * np.sqrt(groups)), 1e-6, noisy, common_level, additive)


@dataclass(frozen=True)
class CholeskyFactor:
    """The `inverse` (n, n) of the lower Cholesky factor of the correlations of values at `scaled_points` (n, d),
    with this `noise` and the `additive` share of the kernel, of columns in `groups` (d,)."""

    scaled_points: Array
    noise: float
    additive: float
    groups: Indices
    inverse: Array

    def carried_on(self, scaled_points: Array, noise: float, additive: float) -> Array | None:
        """The inverse factor of these points, if they start with the known ones; a new point costs only the square of
        their number."""
        n = len(self.scaled_points)
        if (
            noise != self.noise
            or additive != self.additive
            or n > len(scaled_points)
            or not np.array_equal(scaled_points[:n], self.scaled_points)
        ):
            return None
        new_points = scaled_points[n:]
        if not len(new_points):
            return self.inverse
        projection = self.inverse @ self._correlations(self.scaled_points, new_points)
        schur_complement = self._correlations(new_points, new_points) - projection.T @ projection
        schur_complement[np.diag_indices(len(schur_complement))] += noise
        factor, info = scipy.linalg.lapack.dpotrf(schur_complement, lower=1, clean=1)
        if info:
            return None
        corner = np.tril(scipy.linalg.lapack.dtrtri(factor, lower=1)[0])
        return np.block(
            [
                [self.inverse, np.zeros_like(projection)],
                [-corner @ (projection.T @ self.inverse), corner],
            ]
        )

    def _correlations(self, a: Array, b: Array) -> Array:
        return with_additive_part(matern(squared_distances(a, b))[0], a, b, self.additive, self.groups)


@dataclass(frozen=True)
class GaussianProcess:
    """A process with `values` (n,) at `points` (n, d); column j has the length scale ``lengths[groups[j]]``.

    Some points may have `observed_slopes`. `reusable` factors of its first points save work.
    """

    points: Array
    values: Array
    groups: Indices
    hyperparameters: Hyperparameters
    observed_slopes: Slopes | None = None
    reusable: tuple[CholeskyFactor, ...] = field(default=(), compare=False, repr=False)
    jumps: float = 0.0
    """Variance of the jumps of the values, relative to that of the process: they follow a second kernel of much shorter
    length scales, instead of noise. 0 with observed slopes."""

    @cached_property
    def scales(self) -> Array:
        """Inverse length scales (d,) of the columns."""
        return np.asarray(1.0 / self.hyperparameters.lengths[self.groups])

    @cached_property
    def scaled_points(self) -> Array:
        """The points in units of length scales (n, d)."""
        return np.asarray(self.points * self.scales)

    @property
    def additive(self) -> float:
        """The additive share of the kernel: 0 with observed slopes or jumps."""
        return 0.0 if self.observed_slopes is not None or self.jumps else self.hyperparameters.additive

    @cached_property
    def inverse_factor(self) -> Array:
        """The inverse of the lower Cholesky factor of the correlation matrix."""
        return self._inverse_factor(ROUNDING if self.jumps else self.hyperparameters.noise)

    @cached_property
    def spread_factor(self) -> Array:
        """The inverse factor for standard deviations: without the noise for a deterministic model.

        The noise in the hyperparameters then represents jumps, and a known design gives no information
        (re-interpolation: Forrester, Keane & Bressloff 2006).
        """
        h = self.hyperparameters
        return self.inverse_factor if self.jumps or h.noisy or h.noise <= ROUNDING else self._inverse_factor(ROUNDING)

    def _inverse_factor(self, noise: float) -> Array:
        if self.observed_slopes is None:
            for factor in self.reusable:
                if (inverse_factor := factor.carried_on(self.scaled_points, noise, self.additive)) is not None:
                    return inverse_factor
        R, _ = observation_correlations(self.scaled_points, self.scales, self.observed_slopes, self.jumps)
        R = with_additive_part(R, self.scaled_points, self.scaled_points, self.additive, self.groups)
        of_each = noise_of_observations(len(self.points), self.scales, self.observed_slopes)
        R[np.diag_indices(len(R))] += noise * of_each
        lower, info = scipy.linalg.lapack.dpotrf(R, lower=1, clean=1)
        jitter = 1e-10
        while info and jitter < 1.0:
            R[np.diag_indices(len(R))] += jitter * of_each
            lower, info = scipy.linalg.lapack.dpotrf(R, lower=1, clean=1)
            jitter *= 10.0
        inverse, _ = scipy.linalg.lapack.dtrtri(lower, lower=1)
        return np.asarray(np.tril(inverse))

    @property
    def factors(self) -> tuple[CholeskyFactor, ...]:
        """Factors that a process with more points may reuse; none with slopes or jumps."""
        h = self.hyperparameters
        if self.observed_slopes is not None or self.jumps:
            return ()
        factor = CholeskyFactor(self.scaled_points, h.noise, self.additive, self.groups, self.inverse_factor)
        return (
            (factor,)
            if self.spread_factor is self.inverse_factor
            else (factor, replace(factor, noise=ROUNDING, inverse=self.spread_factor))
        )

    @cached_property
    def mean(self) -> float:
        """The estimated mean of the process."""
        ones = self.inverse_factor[:, : len(self.values)].sum(axis=1)
        return float(ones @ (self.inverse_factor @ _observations(self.values, self.observed_slopes)) / (ones @ ones))

    @cached_property
    def _whitened_values(self) -> Array:
        return np.asarray(self.inverse_factor @ _observations(self.values - self.mean, self.observed_slopes))

    @cached_property
    def variance(self) -> float:
        """The estimated variance of the process."""
        return max(float(self._whitened_values @ self._whitened_values) / len(self._whitened_values), 1e-300)

    @cached_property
    def weights(self) -> Array:
        """Weight of each observation's correlation with a point in the prediction there."""
        return np.asarray(self.inverse_factor.T @ self._whitened_values)

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Mean and standard deviation (k,), without the noise, at `points` (k, d)."""
        at = points * self.scales
        R = with_observations(at, self.scaled_points, self.scales, self.observed_slopes, self.jumps)
        R = with_additive_part(R, at, self.scaled_points, self.additive, self.groups)
        projection = self.spread_factor @ R.T
        share = np.maximum(1.0 + self.jumps - np.einsum("ij,ij->j", projection, projection), 1e-14)
        return self.mean + R @ self.weights, np.sqrt(self.variance * share)

    def slopes(self, point: Array) -> tuple[float, float, Array, Array]:
        """Mean, standard deviation and their derivatives (d,) at one `point` (d,)."""
        at = point * self.scales
        R, outer = slopes_with_observations(at, self.scaled_points, self.scales, self.observed_slopes, self.jumps)
        if self.additive:
            apart = at - self.scaled_points
            by_group, first = group_derivatives(apart**2, self.groups)
            R = (1.0 - self.additive) * R + self.additive * by_group
            outer = (1.0 - self.additive) * outer + 2.0 * self.additive * first * apart * self.scales
        projection = self.spread_factor @ R
        share = max(1.0 + self.jumps - float(projection @ projection), 1e-14)
        sd = float(np.sqrt(self.variance * share))
        solution = self.spread_factor.T @ projection
        mean_slope = self.weights @ outer
        sd_slope = -self.variance / sd * (solution @ outer)
        return self.mean + float(R @ self.weights), sd, mean_slope, sd_slope

    def fantasised(self, points: Array) -> GaussianProcess:
        """The process with its predictions at `points` (k, d) as values (Kriging believer: Ginsbourger, Le Riche &
        Carraro 2010)."""
        if not len(points):
            return self
        values = np.append(self.values, self.predict(points)[0])
        return replace(self, points=np.vstack([self.points, points]), values=values, reusable=self.factors)

    def near(self, point: Array, count: int, jumps: bool = False) -> GaussianProcess:
        """The process of the `count` points nearest to `point` (d,), fitted to them.

        With `jumps` and without observed slopes, the fitted noise of a deterministic model is treated as jumps, as
        between branches of a solution.
        """
        distances = ((self.points - point) ** 2).sum(axis=1)
        rows = np.sort(np.argsort(distances, kind="stable")[:count])
        slopes = None if self.observed_slopes is None else self.observed_slopes.among(rows)
        local = replace(self, points=self.points[rows], values=self.values[rows], observed_slopes=slopes, reusable=())
        if np.ptp(local.values) == 0.0:
            return local
        h = self.hyperparameters
        if h.noisy or slopes is not None or not jumps:
            hyperparameters, _ = fit_hyperparameters(local.points, local.values, self.groups, h, slopes)
            return replace(local, hyperparameters=hyperparameters)
        starts = [replace(h, noisy=True, noise=noise) for noise in (h.noise, JUMPY)]
        hyperparameters, _ = min(
            (fit_hyperparameters(local.points, local.values, self.groups, start) for start in starts), key=itemgetter(1)
        )
        return replace(
            local,
            hyperparameters=hyperparameters,
            jumps=hyperparameters.noise if hyperparameters.noise > SMOOTH else 0.0,
        )

    def leave_one_out(self) -> tuple[Array, Array]:
        """Mean and standard deviation (n,) at every point, predicted from all others (Rasmussen & Williams 2006,
        equation 5.12, of a value and its slopes together)."""
        n, slopes = len(self.values), self.observed_slopes
        precision = np.einsum("ij,ij->j", self.inverse_factor, self.inverse_factor)[:n]
        error, variance = self.weights[:n] / precision, 1.0 / precision
        if slopes is not None:
            for i, row in enumerate(slopes.rows.tolist()):
                of_point = np.append(row, n + len(slopes.rows) * np.arange(len(slopes.columns)) + i)
                L = self.inverse_factor[:, of_point]
                covariance = np.linalg.inv(L.T @ L)
                error[row], variance[row] = covariance[0] @ self.weights[of_point], covariance[0, 0]
        return self.values - error, np.sqrt(self.variance * variance)

    def factor_of(self, trend: Array) -> float:
        """The generalised least-squares coefficient of `trend` (n,) in the values, besides a constant."""
        columns = np.column_stack([trend, np.ones(len(trend))])
        coefficients, *_ = np.linalg.lstsq(self.inverse_factor @ columns, self.inverse_factor @ self.values, rcond=None)
        return float(coefficients[0])

    def label_likelihood(self) -> float:
        """The sum of the log probabilities of the signs of all values, each predicted from the others."""
        mean, sd = self.leave_one_out()
        return float(scipy.special.log_ndtr(np.sign(self.values) * mean / sd).sum())


def _observations(values: Array, slopes: Slopes | None) -> Array:
    return values if slopes is None else np.append(values, slopes.flat)


def fit_hyperparameters(
    points: Array, values: Array, groups: Indices, start: Hyperparameters, slopes: Slopes | None = None
) -> tuple[Hyperparameters, float]:
    """The hyperparameters of maximum posterior density, searched from `start`, and its negative logarithm (up to a
    constant)."""
    if slopes is not None:
        start = replace(start, additive=0.0)
    bounds = [tuple(np.log(LENGTH_BOUNDS))] * len(start.lengths) + [
        tuple(np.log((NOISE_BOUNDS[0], NOISE_BOUNDS[1] if start.noisy else MOST_WITHOUT_NOISE)))
    ]
    if start.additive:
        bounds.append((-ADDITIVE_BOUND, ADDITIVE_BOUND))
    minimum = scipy.optimize.minimize(
        _negative_posterior(points, values, groups, start, slopes),
        start.logarithms,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 25, "maxfun": 40},
    )
    return start.at(np.clip(minimum.x, *np.array(bounds).T)), float(minimum.fun)


def _negative_posterior(
    points: Array, values: Array, groups: Indices, start: Hyperparameters, slopes: Slopes | None = None
) -> Callable[[Array], tuple[float, Array]]:
    """The negative logarithm of the posterior and its gradient, as a function of the hyperparameters' logarithms."""
    n, count = len(values), len(start.lengths)
    size = len(_observations(values, slopes))
    prior_mean = np.append(np.full(count, LENGTH_PRIOR[0] + 0.5 * np.log(count)), NOISE_PRIOR[0])
    about = ABOUT_LEVEL if start.common_level else LENGTH_PRIOR[1]
    covariance = np.diag(np.append(np.full(count, about**2), NOISE_PRIOR[1] ** 2))
    covariance[:count, :count] += LENGTH_PRIOR[1] ** 2 - about**2
    precision, normalizer = np.linalg.inv(covariance), 0.5 * float(np.linalg.slogdet(covariance)[1])
    columns = np.eye(count)[groups]  # (d, groups)

    def function(logarithms: Array) -> tuple[float, Array]:
        h = start.at(logarithms)
        scales = 1.0 / h.lengths[groups]
        scaled_points = points / h.lengths[groups]
        R, first = observation_correlations(scaled_points, scales, slopes)
        if h.additive:
            kernels = GroupKernels.between(scaled_points, groups)
            from_groups_alone = kernels.correlations - R
            R = R + h.additive * from_groups_alone
        noise = noise_of_observations(n, scales, slopes)
        R[np.diag_indices(size)] += h.noise * noise
        factor, info = scipy.linalg.lapack.dpotrf(R, lower=1, clean=1, overwrite_a=1)
        if info:
            return 1e25, np.zeros(len(logarithms))
        lower, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
        inverse = lower + lower.T  # the factor's upper triangle is zero, and so is the inverse's
        inverse[np.diag_indices(size)] *= 0.5
        ones = inverse[:, :n].sum(axis=1)
        mean = float(ones @ _observations(values, slopes)) / float(ones[:n].sum())
        residual = _observations(values - mean, slopes)
        weights = inverse @ residual
        variance = max(float(residual @ weights) / size, 1e-300)
        off = logarithms[: count + 1] - prior_mean
        pull = precision @ off
        value = (
            0.5 * size * np.log(variance) + float(np.log(np.diag(factor)).sum()) + 0.5 * float(off @ pull) + normalizer
        )
        W = inverse - np.outer(weights, weights) / variance
        along = along_length_scales(W, scaled_points, first, scales, slopes, h.noise) @ columns
        by_noise = h.noise * float((np.diag(W) * noise).sum())
        if not h.additive:
            return value, np.append(0.5 * along, 0.5 * by_noise) + pull
        along = (1.0 - h.additive) * along + h.additive * kernels.along_lengths(W)
        by_odds = h.additive * (1.0 - h.additive) * float((W * from_groups_alone).sum())
        odds = logarithms[-1] / ADDITIVE_PRIOR
        value += 0.5 * float(odds**2) + float(np.log(ADDITIVE_PRIOR))
        return value, np.append(np.append(0.5 * along, 0.5 * by_noise) + pull, 0.5 * by_odds + odds / ADDITIVE_PRIOR)

    return function
