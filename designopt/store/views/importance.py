"""Which parameters matter, from the designs that are on record, whatever asked for them."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Matrix
from designopt.problem import Outcomes, Problem

#: Fewer designs with a result say nothing.
MIN_DESIGNS = 20
#: Designs of a class of values, at least, and classes at most.
IN_CLASS, CLASSES = 10, 12


def importance(problem: Problem, outcomes: Outcomes) -> Matrix:
    """How much of the spread of each objective the free parameters explain one by one (m, d), from 0 to 1.

    The correlation ratio of the ranks: the designs are put into classes of equally many neighbouring values of a
    parameter (one for each value of a choice), and the variance of the mean ranks of the classes is compared with the
    whole one (Pearson 1905; a first-order Sobol' index from given data: Plischke, Borgonovo & Smith 2013), without what
    chance alone gives (Kelley 1935). It sees effects with an optimum inside, no interaction; where a search has drawn
    parameters together, they share what they explain. NaN with fewer than 20 designs with a result, or no spread.
    """
    rows = np.flatnonzero(~outcomes.failed)
    free = problem.space.free
    found = np.full((len(problem.objectives), len(free)), np.nan)
    active = problem.space.active(outcomes.X)
    for j, p in enumerate(free):
        there = rows[active[rows, j]]
        if len(there) < MIN_DESIGNS:
            continue
        x = outcomes.X[there, j]
        classes = _classes(x, distinct=p.kind != "real")
        for i in range(len(problem.objectives)):
            found[i, j] = _explained(classes, _ranks(outcomes.objectives[there, i]))
    return found


def _ranks(y: Matrix) -> Matrix:
    """Ranks, equal values sharing their mean."""
    _, place, count = np.unique(y, return_inverse=True, return_counts=True)
    ends = np.cumsum(count)
    return np.asarray((ends - (count - 1) / 2.0)[place])


def _classes(x: Matrix, *, distinct: bool) -> Matrix:
    """The class of each value: equal values together, neighbours in equal numbers."""
    values, place = np.unique(x, return_inverse=True)
    if distinct and len(values) <= CLASSES:
        return np.asarray(place, float)
    count = int(np.clip(len(x) // IN_CLASS, 2, CLASSES))
    return np.asarray(np.floor((_ranks(x) - 0.5) / len(x) * count))


def _explained(classes: Matrix, ranks: Matrix) -> float:
    """The adjusted correlation ratio."""
    whole = float(((ranks - ranks.mean()) ** 2).sum())
    members = [ranks[classes == one] for one in np.unique(classes)]
    if whole == 0.0 or len(members) < 2 or len(ranks) <= len(members):
        return float("nan") if whole == 0.0 else 0.0
    within = float(sum(((some - some.mean()) ** 2).sum() for some in members))
    adjusted = 1.0 - within / whole * (len(ranks) - 1.0) / (len(ranks) - len(members))
    return max(0.0, adjusted)
