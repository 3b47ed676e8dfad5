"""Importance of parameters, from all recorded designs."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats
from designopt.problem import Outcomes, Problem

#: Minimum number of designs with a result: four classes of a parameter, so that an optimum within its range shows.
MIN_DESIGNS = 40
#: Minimum number of designs per class, and maximum number of classes.
IN_CLASS, CLASSES = 10, 12


def importance(problem: Problem, outcomes: Outcomes) -> Floats:
    """The share (m, d) of the variation of each objective that each free parameter explains alone, from 0 to 1.

    The correlation ratio of the ranks: the designs are divided into classes of equally many neighbouring values of a
    parameter (one for each value of a choice), and the variance of the mean ranks of the classes is compared with the
    total variance (Pearson 1905; a first-order Sobol' index from given data: Plischke, Borgonovo & Smith 2013),
    corrected for chance (Kelley 1935). It detects effects with an interior optimum, but no interactions; parameters
    correlated by a search share the explained part. NaN with fewer than 40 designs with a result, or without variation.
    """
    rows = np.flatnonzero(~outcomes.failed)
    free = problem.space.free
    shares = np.full((len(problem.objectives), len(free)), np.nan)
    active = problem.space.active(outcomes.X)
    for j, p in enumerate(free):
        active_rows = rows[active[rows, j]]
        if len(active_rows) < MIN_DESIGNS:
            continue
        x = outcomes.X[active_rows, j]
        classes = _classes(x, distinct=p.kind != "real")
        for i in range(len(problem.objectives)):
            shares[i, j] = _correlation_ratio(classes, _ranks(outcomes.objectives[active_rows, i]))
    return shares


def _ranks(y: Floats) -> Floats:
    """Ranks; equal values share their mean."""
    _, inverse, count = np.unique(y, return_inverse=True, return_counts=True)
    ends = np.cumsum(count)
    return np.asarray((ends - (count - 1) / 2.0)[inverse])


def _classes(x: Floats, *, distinct: bool) -> Floats:
    """The class of each value: equal values together, equal numbers of neighbours."""
    values, inverse = np.unique(x, return_inverse=True)
    if distinct and len(values) <= CLASSES:
        return np.asarray(inverse, float)
    count = int(np.clip(len(x) // IN_CLASS, 2, CLASSES))
    return np.asarray(np.floor((_ranks(x) - 0.5) / len(x) * count))


def _correlation_ratio(classes: Floats, ranks: Floats) -> float:
    """The adjusted correlation ratio."""
    total_variation = float(((ranks - ranks.mean()) ** 2).sum())
    members = [ranks[classes == class_number] for class_number in np.unique(classes)]
    if total_variation == 0.0 or len(members) < 2 or len(ranks) <= len(members):
        return float("nan") if total_variation == 0.0 else 0.0
    within = float(sum(((member_ranks - member_ranks.mean()) ** 2).sum() for member_ranks in members))
    share = 1.0 - within / total_variation * (len(ranks) - 1.0) / (len(ranks) - len(members))
    return max(0.0, share)
