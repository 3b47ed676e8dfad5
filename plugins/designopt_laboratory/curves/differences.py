"""Where two sets of curves differ: a permutation test of the complete curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from designopt_recordings.signals.runs import runs

from designopt.arrays import Floats, Mask

#: Permutations; all of them where there are fewer.
RESAMPLES = 5000


@dataclass(frozen=True, eq=False)
class CurveDifference:
    """The comparison of two sets of curves at s instants: `difference` (s,) of their means, `statistic` (s,) t of
    Welch, or of the pairs, `p` (s,) corrected for the complete curve. The statistic is above `threshold` where p is
    below `level`. `least_p` is the smallest p that so few curves can have.
    """

    difference: Floats
    statistic: Floats
    p: Floats
    threshold: float
    level: float
    least_p: float

    @property
    def significant(self) -> Mask:
        """(s,) where the curves differ."""
        return np.asarray(self.p <= self.level)

    def ranges(self) -> list[tuple[float, float]]:
        """First and last percent of each stretch in which the curves differ."""
        last = len(self.p) - 1
        return [(100.0 * first / last, 100.0 * (end - 1) / last) for first, end in runs(self.significant)]


def curve_difference(
    first: Floats, second: Floats, *, paired: bool = False, level: float = 0.05, seed: int = 0
) -> CurveDifference:
    """Whether `first` (n, s) and `second` (m, s) differ, and where; `paired` ones have the same order.

    The largest statistic of a permuted curve is the null distribution (Nichols & Holmes, Hum. Brain Mapp. 15 (2002) 1),
    so that the probability of a false difference anywhere in the curve is at most `level`. Curves are exchanged between
    the sets, or the signs of the differences of pairs, all points of a curve together. Raises `ValueError` for fewer
    than three curves of a set: no arrangement of them is improbable.
    """
    from scipy.stats import permutation_test

    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if min(len(x), len(y)) < 3:
        raise ValueError(f"{min(len(x), len(y))} curves in a set; a test needs at least 3 in each")
    if paired and len(x) != len(y):
        raise ValueError(f"{len(x)} and {len(y)} curves make no pairs")
    common = {"vectorized": True, "n_resamples": RESAMPLES, "rng": seed, "axis": -1}
    with np.errstate(invalid="ignore", divide="ignore"):
        if paired:
            test = permutation_test(((x - y).T,), _one_sample, permutation_type="samples", **common)
        else:
            test = permutation_test((x.T, y.T), _welch, permutation_type="independent", **common)
    largest = np.nanmax(np.abs(np.nan_to_num(test.null_distribution, nan=0.0)), axis=1)
    observed = np.nan_to_num(np.asarray(test.statistic))
    is_exact = len(largest) < RESAMPLES
    beyond = (largest[:, None] >= np.abs(observed) * (1.0 - 1e-12)).sum(axis=0)
    p = beyond / len(largest) if is_exact else (beyond + 1.0) / (len(largest) + 1.0)
    is_symmetric = paired or len(x) == len(y)  # the opposite arrangement has the same size of the statistic
    least_p = (2.0 if is_symmetric else 1.0) / len(largest) if is_exact else 1.0 / (len(largest) + 1.0)
    threshold = float(np.quantile(largest, 1.0 - level, method="higher"))
    return CurveDifference(x.mean(axis=0) - y.mean(axis=0), observed, np.minimum(p, 1.0), threshold, level, least_p)


def _welch(x: Floats, y: Floats, axis: int = -1) -> Floats:
    spread = x.var(axis, ddof=1) / x.shape[axis] + y.var(axis, ddof=1) / y.shape[axis]
    return np.asarray((x.mean(axis) - y.mean(axis)) / np.sqrt(spread))


def _one_sample(differences: Floats, axis: int = -1) -> Floats:
    return np.asarray(differences.mean(axis) / np.sqrt(differences.var(axis, ddof=1) / differences.shape[axis]))
