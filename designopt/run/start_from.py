"""The designs of an earlier stage with which a stage begins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from designopt.problem import Outcomes
from designopt.study.study import StartFrom


def select(outcomes: Outcomes, start: StartFrom) -> Outcomes:
    """The designs of `outcomes` that `start` asks for, best first.

    ``nondominated``: feasible designs that no other dominates, by the first objective; of more than `count` those that
    are evenly spread in that order; without any feasible design the least violating ones. ``best``: the first `count`
    by feasibility, then rank of domination, then distance to the ideal point. Failed designs are never among them.
    """
    rows = np.flatnonzero(~outcomes.failed)
    if not len(rows):
        return outcomes.take(rows)
    feasible = rows[outcomes.feasible[rows]]
    if start.select == "best" or not len(feasible):
        count = start.count if start.count is not None else (1 if start.select == "nondominated" else len(rows))
        return outcomes.take(rows[_order(outcomes.take(rows))][:count])
    import moocore

    F = outcomes.objectives[feasible]
    front = (
        feasible[moocore.is_nondominated(F, keep_weakly=False)] if F.shape[1] > 1 else feasible[[np.argmin(F[:, 0])]]
    )
    front = front[np.lexsort(outcomes.objectives[front].T[::-1])]
    if start.count is not None and len(front) > start.count:
        front = front[np.unique(np.linspace(0, len(front) - 1, start.count).round().astype(int))]
    return outcomes.take(front)


def _order(outcomes: Outcomes) -> NDArray[np.int64]:
    """Rows from the best to the worst."""
    F = outcomes.objectives
    if F.shape[1] == 1:
        return np.asarray(np.lexsort((F[:, 0], outcomes.rank_violation)))
    import moocore

    span = F.max(axis=0) - F.min(axis=0)
    distance = np.linalg.norm((F - F.min(axis=0)) / np.where(span > 0.0, span, 1.0), axis=1)
    return np.asarray(np.lexsort((distance, moocore.pareto_rank(F), outcomes.rank_violation)))
