"""Acquisition function of a design: expected hypervolume improvement, and the probability of meeting all limits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.lazy import scipy

ROOT_2PI = float(np.sqrt(2.0 * np.pi))
#: Number of standard deviations beyond which the slope of a log probability is that there: squares lose all digits.
FAR = 1e7


@dataclass(frozen=True)
class Boxes:
    """Disjoint boxes (k, m) that fill the region not dominated by a front, below a reference point; all objectives are
    minimised. Lower corners may be -infinity."""

    lower: Floats
    upper: Floats

    @cached_property
    def edges(self) -> list[tuple[Floats, NDArray[np.intp]]]:
        """The distinct sides of the boxes by objective, and the indices of the lower, then the upper ones."""
        sides = np.concatenate([self.lower, self.upper])
        return [np.unique(side, return_inverse=True) for side in sides.T]

    @classmethod
    def above(cls, front: Floats, reference: Floats) -> Boxes:
        """The boxes beside `front` (n, m), by local upper bounds (Lacour, Klamroth & Fonseca 2017, algorithm 2 and
        section 2.3). Points of the front that are not below the `reference` (m,) are ignored."""
        m = len(reference)
        inside = front[(front < reference).all(axis=1)]
        bounds = reference[None].copy()  # (k, m)
        # Point j of defining[i] gives component j of bound i.
        defining = np.full((1, m, m), -np.inf)
        defining[0, np.arange(m), np.arange(m)] = reference
        for point in inside[np.lexsort(inside.T[::-1])]:
            above = (point < bounds).all(axis=1)
            if not above.any():
                continue
            old, old_defining = bounds[above], defining[above]
            new, new_defining = [], []
            for j in range(m):
                # The largest component j of the other defining points decides whether the new bound is needed.
                other_objectives = np.delete(old_defining[:, :, j], j, axis=1)
                splits = point[j] >= other_objectives.max(axis=1) if m > 1 else np.ones(len(old), dtype=bool)
                new_bounds, new_defining_points = old[splits].copy(), old_defining[splits].copy()
                new_bounds[:, j] = point[j]
                new_defining_points[:, j] = point
                new.append(new_bounds)
                new_defining.append(new_defining_points)
            bounds = np.concatenate([bounds[~above], *new])
            defining = np.concatenate([defining[~above], *new_defining])
        lower = np.full_like(bounds, -np.inf)
        for j in range(1, m):
            lower[:, j] = defining[:, :j, j].max(axis=1)
        keep = (lower < bounds).all(axis=1)
        return cls(lower[keep], bounds[keep])

    def volume_above(self, point: Floats) -> float:
        """The volume of the region that `point` (m,) dominates."""
        return float(np.prod(np.maximum(self.upper - np.maximum(self.lower, point), 0.0), axis=1).sum())


def expected_improvement(mean: Floats, sd: Floats, boxes: Boxes) -> Floats:
    """The expected hypervolume improvement (n,) of designs with independent normal objectives: `mean`, `sd` (n, m).

    A sum over boxes of products over objectives, exact (Emmerich, Deutz & Klinkenberg 2011; in this form Yang,
    Emmerich, Deutz & Bäck 2019). With one objective it is the expected improvement of Jones, Schonlau & Welch (1998).
    """
    product = np.ones((len(mean), len(boxes.upper)))
    for j in range(mean.shape[1]):
        product *= _gain(boxes, mean[:, j : j + 1], sd[:, j : j + 1], j)
    return np.asarray(product.sum(axis=1))


def improvement_slopes(mean: Floats, sd: Floats, boxes: Boxes) -> tuple[float, Floats, Floats]:
    """The expected improvement of one design, and its derivatives (m,) with respect to `mean` (m,) and `sd` (m,)."""
    m, k = len(mean), len(boxes.upper)
    gains, by_means, by_sds = np.empty((m, k)), np.empty((m, k)), np.empty((m, k))
    for j, (edges, ranks) in enumerate(boxes.edges):
        below, cdf, pdf = _expected_length_below(edges, mean[j], sd[j])
        upper, lower = ranks[k:], ranks[:k]
        gains[j] = np.maximum(below[upper] - below[lower], 0.0)
        by_means[j] = cdf[lower] - cdf[upper]
        by_sds[j] = pdf[upper] - pdf[lower]
    by_mean, by_sd = np.empty(m), np.empty(m)
    for j in range(m):
        other_gains = np.prod([gains[i] for i in range(m) if i != j], axis=0)
        by_mean[j], by_sd[j] = np.sum(by_means[j] * other_gains), np.sum(by_sds[j] * other_gains)
    return float(np.prod(gains, axis=0).sum()), by_mean, by_sd


def _gain(boxes: Boxes, mean: Floats, sd: Floats, j: int) -> Floats:
    """The expected length (n, k) of the part of side j of each box that lies above a normal value."""
    edges, ranks = boxes.edges[j]
    below, _, _ = _expected_length_below(edges[None], mean, sd)
    k = len(boxes.upper)
    return np.asarray(np.maximum(below[:, ranks[k:]] - below[:, ranks[:k]], 0.0))


def _expected_length_below(edges: Floats, mean: Floats | float, sd: Floats | float) -> tuple[Floats, Floats, Floats]:
    """The expected length below each of the `edges` and above a normal value, and the cumulative distribution and
    density of the standard normal distribution there; an edge may be -infinity."""
    z = (edges - mean) / sd
    cdf, pdf = np.asarray(scipy.special.ndtr(z)), np.asarray(np.exp(-0.5 * z * z) / ROOT_2PI)
    return sd * (np.where(np.isfinite(z), z, 0.0) * cdf + pdf), cdf, pdf


def log_feasibility(mean: Floats, sd: Floats, equality: NDArray[np.bool_], band: Floats) -> Floats:
    """The log probability (n,) that all limits are met: `mean`, `sd` (n, k) of values that must be at most 0, or 0
    (`equality`) within `band` (k,).

    An equality that is almost certainly violated counts by its distance in standard deviations, to give the search a
    gradient.
    """
    z = mean / sd
    inside = scipy.special.log_ndtr(-z)
    for j in np.flatnonzero(equality):
        wide = np.hypot(sd[:, j], band[j])
        inside[:, j] = -0.5 * (mean[:, j] / wide) ** 2
    return np.asarray(inside.sum(axis=1))


def feasibility_slopes(
    mean: Floats, sd: Floats, equality: NDArray[np.bool_], band: Floats
) -> tuple[float, Floats, Floats]:
    """`log_feasibility` of one design and its derivatives (k,) with respect to `mean` (k,) and `sd` (k,)."""
    with np.errstate(over="ignore"):  # a limit that hardly varies
        logarithm = scipy.special.log_ndtr(-(mean / sd))
        z = np.clip(mean / sd, -FAR, FAR)
    ratio = np.exp(-0.5 * z**2 - 0.5 * np.log(2.0 * np.pi) - scipy.special.log_ndtr(-z))  # pdf / cdf at -z
    value, by_mean, by_sd = logarithm, -ratio / sd, ratio * z / sd
    m, s = mean[equality], sd[equality]  # powers of the others' deviations may be 0, for a limit that never varied
    wide = np.hypot(s, band[equality])
    value[equality] = -0.5 * (m / wide) ** 2
    by_mean[equality], by_sd[equality] = -m / wide**2, m**2 * s / wide**4
    return float(value.sum()), by_mean, by_sd
