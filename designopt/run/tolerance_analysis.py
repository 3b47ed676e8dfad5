"""After the last stage: chosen designs, and others of the front, evaluated within the tolerances of parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from designopt import decision
from designopt.arrays import Floats
from designopt.counts import of_number
from designopt.run.evaluations.dispatch import Dispatcher
from designopt.run.evaluations.work import Work
from designopt.store.result import Result
from designopt.store.views.tolerances import LEAST, SHARE, beyond_limits, neighbours, spread_over
from designopt.study.study import StudyDefinition, Tolerances

#: Maximum default number of neighbours per chosen design.
MOST = 16
#: Number of additional candidates for a rule that chooses by robustness, with increasing margins to the limits.
ROBUST = 24


def plan(study: StudyDefinition, tolerances: Tolerances, result: Result) -> dict[int, int]:
    """Number of neighbours of designs, by row; it depends on numbers alone, so that a resumed run gets the same."""
    row_of_label = {label: row for label, row in result.chosen().items() if label != "robust"}
    rows = [row for row in dict.fromkeys(row_of_label.values()) if not result.outcomes.failed[row]]
    total = int(SHARE * len(result.outcomes))
    per_design = tolerances.neighbours
    if per_design is None and tolerances.assumed:
        per_design = min(MOST, total // max(1, len(rows)))
        per_design = 0 if per_design < LEAST else per_design
    elif per_design is None:
        per_design = MOST
    if not per_design:
        return {}
    if any(choice.method == "robust" for choice in study.choose):
        rows = list(dict.fromkeys([*rows, *with_margins(result)]))
    left = tolerances.front if tolerances.front is not None else max(0, total - per_design * len(rows))
    rest_of_front = [row for row in result.front().tolist() if row not in rows]
    return dict.fromkeys([*rows, *spread_over(rest_of_front, left // per_design)], per_design)


def with_margins(result: Result) -> list[int]:
    """Rows of feasible designs with increasing margins to their limits, each the one nearest to the ideal point of the
    front among all with that margin; designs of the front if there are no limits with margins."""
    front, outcomes = result.front(), result.outcomes
    beyond = beyond_limits(result.problem, outcomes)
    rows = np.flatnonzero(outcomes.feasible & np.isfinite(beyond))
    if not len(rows) or not len(front):
        return spread_over(front.tolist(), ROBUST)
    distance = decision.distance_from_ideal(outcomes.objectives[rows], outcomes.objectives[front])
    margin = -beyond[rows]
    levels = float(margin.max()) * np.linspace(0.0, 1.0, ROBUST) ** 2
    candidates = [int(rows[np.argmin(np.where(margin >= level, distance, np.inf))]) for level in levels]
    return list(dict.fromkeys(candidates))


def pending_neighbours(study: StudyDefinition, dispatcher: Dispatcher, tolerances: Tolerances) -> Work | None:
    """The neighbours that are not recorded yet, with slots registered in the ledger; None without any."""
    ledger = dispatcher.ledger
    if tolerances.assumed and SHARE * len(ledger.designs) < LEAST:
        return None
    result = dispatcher.result(study)
    counts = plan(study, tolerances, result)
    if not counts:
        return None
    problem, rows, count = ledger.problem.without_shifts, list(counts), max(counts.values())
    X = result.outcomes.X[rows]
    N = neighbours(problem, tolerances, X, count, study.seed)
    requests: dict[bytes, tuple[int, int]] = {}
    values: list[Floats] = []
    for i, near in enumerate(N):
        valid = problem.space.relation_violation(near) <= 0.0
        for k, keys in enumerate(problem.keys(near)):
            for s, key in enumerate(keys if valid[k] else ()):
                if key not in requests and ledger.is_pending(key):
                    requests[key] = (i, k * len(problem.scenarios) + s)
                    values.append(near[k])
    if not requests:
        return None
    designs = f"{len(rows)} {of_number(len(rows), 'design')}"
    text = f"{designs} with {count} {of_number(count, 'neighbour')} each, within the tolerances of the parameters"
    if not dispatcher.journal.has_event("tolerances", text):
        dispatcher.event("tolerances", text)
    return replace(ledger.work(X, requests, "neighbour"), X=np.array(values))
