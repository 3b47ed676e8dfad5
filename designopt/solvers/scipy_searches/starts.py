"""Starting points of searches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Annotated

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import scipy
from designopt.plugin import Quantity
from designopt.problem import Outcomes
from designopt.solvers.ends import apart_note
from designopt.solvers.scipy_searches.points import EvaluatedPoints

Starts = Annotated[
    int,
    Quantity(
        "",
        "number of successive searches: from the best designs of start_from or the centre, then spread",
        ge=1,
        le=100_000,
    ),
]


class SearchStop(Exception):
    """A search cannot continue; the argument is the reason."""


def from_each(points: EvaluatedPoints, starts: Floats, search: Callable[[Floats], str], objective: int = 0) -> str:
    """Search over `points` from one start after another; returns a sentence about their ends, and how far apart they
    are in the objective of that number."""
    reasons, begins = [], []
    for u in starts:
        begins.append(len(points))
        try:
            reasons.append(search(u))
        except SearchStop as error:
            reasons.append(str(error))
    if len(reasons) == 1:
        return f"the search {reasons[0]}"
    counts = "; ".join(f"{count} {reason}" for reason, count in Counter(reasons).most_common())
    note = apart_note(points.problem, points.objectives(objective), begins, objective)
    return f"of {len(reasons)} searches {counts}{note}"


def starting_points(points: EvaluatedPoints, start: Outcomes, merit: Floats, count: int) -> Floats:
    """Starting points (count, d): the best of `start` by violation and then `merit` (n,); without any, the centre.

    Points of the Sobol' sequence, which spread over the whole space, complete the `count`.
    """
    good = np.flatnonzero(~start.failed)
    order = good[np.lexsort((merit[good], start.rank_violation[good]))][:count]
    d = len(points.problem.space.free)
    U = points.coordinates(start.X[order]) if len(order) else np.full((1, d), 0.5)
    if (missing := count - len(U)) > 0:
        # Unscrambled, the first point is a corner and the second the centre.
        sequence = scipy.stats.qmc.Sobol(d, scramble=False).random_base2(math.ceil(math.log2(missing + 2)))
        U = np.vstack([U, sequence[2 : 2 + missing]])
    return U


def best_known(points: EvaluatedPoints, start: Outcomes, count: int) -> Floats:
    """Coordinates (k, d) of the best designs of `start` that have a result, at most `count`."""
    starts = min(count, int((~start.failed).sum()))
    if not starts:
        return np.empty((0, len(points.problem.space.free)))
    return starting_points(points, start, start.objectives[:, 0], starts)
