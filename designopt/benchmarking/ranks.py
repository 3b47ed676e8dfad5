"""Statistical comparison of solvers over problems: Demsar (2006), Journal of Machine Learning Research 7, 1-30.

Ranks of the medians on each problem, 1 for the best, are averaged over problems. The test of Friedman (1937) tells
whether any solvers differ: exactly, by all permutations of the ranks on each problem, as long as these are few, then in
the form of Iman & Davenport (1980). Two differ if their average ranks differ by more than
the critical difference of Nemenyi (1963); with pairs the test of Wilcoxon (1945) with Holm's correction (1979) uses the
sizes of the differences as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.lazy import scipy
from designopt.report.comparison.seeds import LEVEL, holm

#: Number of permutations, those of the first problem fixed, up to which the test of Friedman is exact.
PERMUTATIONS = 100_000


@dataclass(frozen=True)
class Ranks:
    """Average ranks (k,) of k solvers over `problems`, `p` of the test of Friedman (NaN below three solvers or two
    problems), and the `critical_difference` of Nemenyi."""

    average: Floats
    problems: int
    p: float
    critical_difference: float


@dataclass(frozen=True)
class PairTest:
    """Solvers number `first` and `second`: problems won by each, `p` of the test of Wilcoxon without and with Holm's
    correction over all pairs."""

    first: int
    second: int
    won: int
    lost: int
    p: float
    p_corrected: float


def ranks(medians: Floats) -> Ranks:
    """Ranks of `medians` (problems, k), larger ones being better, without NaN; at least one problem and two solvers."""
    n, k = medians.shape
    rank = scipy.stats.rankdata(-np.round(medians, 12), axis=1)
    average = np.asarray(rank.mean(axis=0))
    p = _friedman(rank) if k > 2 and n > 1 else math.nan
    q = float(scipy.stats.studentized_range.ppf(1.0 - LEVEL, k, np.inf)) / math.sqrt(2.0)
    return Ranks(average, n, p, q * math.sqrt(k * (k + 1.0) / (6.0 * n)))


def _friedman(rank: Floats) -> float:
    """The probability that ranks (problems, k) differ as much by chance."""
    n, k = rank.shape
    if math.factorial(k) ** (n - 1) <= PERMUTATIONS:
        sums: Floats = rank[:1]
        counts: Floats = np.ones(1)
        for row in rank[1:]:
            orders = np.array(list(permutations(row)))
            sums, group = np.unique((sums[:, None] + orders).reshape(-1, k), axis=0, return_inverse=True)
            counts = np.asarray(np.bincount(group.ravel(), np.repeat(counts, len(orders))), dtype=float)
        spread = (sums**2).sum(axis=1)
        return float(counts[spread >= (rank.sum(axis=0) ** 2).sum() - 1e-9].sum() / counts.sum())
    chi = float(scipy.stats.friedmanchisquare(*rank.T).statistic) if np.ptp(rank, axis=1).any() else 0.0
    remainder = n * (k - 1.0) - chi
    return (
        0.0
        if remainder <= 1e-12
        else float(scipy.stats.f.sf((n - 1.0) * chi / remainder, k - 1.0, (k - 1.0) * (n - 1.0)))
    )


def pair_tests(medians: Floats) -> list[PairTest]:
    """The signed-rank test for all pairs of columns of `medians` (problems, k); p is 1 without a difference."""
    pairs = list(combinations(range(medians.shape[1]), 2))
    rows = []
    for a, b in pairs:
        d = np.round(medians[:, a] - medians[:, b], 12)
        p = float(scipy.stats.wilcoxon(d[d != 0.0]).pvalue) if d.any() else 1.0
        rows.append((a, b, int((d > 0.0).sum()), int((d < 0.0).sum()), p))
    corrected_p = holm(np.array([row[4] for row in rows])) if rows else np.empty(0)
    return [PairTest(*row, float(p)) for row, p in zip(rows, corrected_p, strict=True)]


def behind_best(values: list[Floats]) -> tuple[int | None, NDArray[np.bool_]]:
    """The number of the solver with the largest median of `values`, scores (runs,) of each on one problem, None if it
    is 0 or no other solver has runs; and which others (k,) are significantly worse by the one-sided rank test of Mann &
    Whitney with Holm's correction."""
    medians = [float(np.median(v)) if len(v) else -np.inf for v in values]
    worse = np.zeros(len(values), bool)
    if not values or max(medians) <= 0.0:
        return None, worse
    best = int(np.argmax(medians))
    rivals = [j for j, v in enumerate(values) if j != best and len(v)]
    if not rivals:
        return None, worse
    p = np.array([_probability_by_chance(values[j], values[best]) for j in rivals])
    worse[rivals] = holm(p) < LEVEL
    return best, worse


def _probability_by_chance(values: Floats, best: Floats) -> float:
    """The probability that runs rank as far behind those of the best solver by chance; 1 if all are equal."""
    if np.ptp(np.concatenate([values, best])) == 0.0:
        return 1.0
    return float(scipy.stats.mannwhitneyu(best, values, alternative="greater").pvalue)
