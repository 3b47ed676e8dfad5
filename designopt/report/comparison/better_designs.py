"""Designs of another store that answer a question better than a search for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from designopt.arrays import Integers
from designopt.counts import plural
from designopt.report.labels import number
from designopt.run.start_from import judged, translated
from designopt.store.errors import StoreError
from designopt.store.result import Result
from designopt.study.language.units import UnitError

#: Least gain of a better design, as a share of the objective's range among the designs feasible_objectives.
_GAIN = 1e-3


def better_designs(result: Result, earlier: Result) -> Integers:
    """Numbers (k,) of the designs of `earlier`, best first, that the study of `result` permits, whose evaluations both
    have in common, and that are feasible and dominated by no design of `result`."""
    problem, searched = result.problem, result.outcomes
    try:
        outcomes = judged(earlier, problem, str(result.path))
    except StoreError:
        return np.empty(0, np.int64)
    feasible_objectives = searched.objectives[searched.feasible]
    margin = (
        _GAIN * np.ptp(feasible_objectives, axis=0) if len(feasible_objectives) else np.zeros(len(problem.objectives))
    )
    rows = [
        row
        for row in np.flatnonzero(outcomes.feasible).tolist()
        if not np.all(feasible_objectives <= outcomes.objectives[row] + margin, axis=1).any()
        and _same_evaluations(result, earlier, row)
    ]
    return np.array(sorted(rows, key=lambda row: tuple(outcomes.objectives[row])), np.int64)


def _same_evaluations(result: Result, earlier: Result, row: int) -> bool:
    """Whether the study of `result` permits design `row` of `earlier` and would evaluate it in the same way."""
    problem = result.problem
    try:
        X = translated(earlier.outcomes.X[row : row + 1], earlier.problem.space, problem.space)
    except UnitError:
        return False
    return len(X) == 1 and problem.keys(X) == earlier.keys([row])


def note_on_better_designs(result: Result, store: Path) -> str:
    """A sentence about the designs of an earlier `store` that are better than those of `result`; "" without any."""
    if not result.problem.objectives:
        return ""
    earlier = Result.open(store)
    rows = better_designs(result, earlier)
    if not len(rows):
        return ""
    if len(result.problem.objectives) > 1:
        better = f"{plural(len(rows), 'design')} of {store} would enter the front, {store}/{rows[0]} among them"
    else:
        objective = result.problem.objectives[0]
        value = objective.sign * float(judged(earlier, result.problem, str(store)).objectives[rows[0], 0])
        better = f"{store}/{rows[0]} is better: {objective.name} {number(value, 4)} {objective.unit}".rstrip()
    return f"{better}, within the same bounds and limits; start from such designs: start_from: {{store: {store}}}"
