"""Designs of another store that answer a question better than a search for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from designopt.arrays import Floats, Integers
from designopt.counts import plural
from designopt.decision import nondominated
from designopt.report.labels import number
from designopt.run.start_from import rescored_outcomes, translate_with_rows
from designopt.store.errors import StoreError
from designopt.store.provenance import recall_stores
from designopt.store.result import Result
from designopt.study.language.units import UnitError

#: Least gain of a better design, as a share of the objective's range over the front, or of the best value of one
#: objective.
_GAIN = 1e-3


def better_designs(result: Result, earlier: Result) -> dict[int, Floats]:
    """Objectives (k,), which are minimised, by the numbers of those designs of `earlier`, best first, that would enter
    the front of `result`: its study permits them, both have their evaluations in common, they are feasible, and
    neither a design of `result` nor one of them dominates them."""
    try:
        outcomes = rescored_outcomes(earlier, result.problem, str(result.path))
    except StoreError:
        return {}
    rows = _same_evaluations(result, earlier, np.flatnonzero(outcomes.feasible))
    if not len(rows):
        return {}
    front = result.outcomes.objectives[result.front()]
    ranges, sizes = (np.ptp(front, axis=0), np.abs(front[0])) if len(front) else (np.zeros(1), np.zeros(1))
    margin = _GAIN * np.where(ranges > 0.0, ranges, sizes)
    enters_front = nondominated(np.vstack([front, outcomes.objectives[rows] + margin]))[len(front) :]
    objectives = {row: outcomes.objectives[row] for row in rows[enters_front].tolist()}
    return dict(sorted(objectives.items(), key=lambda entry: tuple(entry[1])))


def _same_evaluations(result: Result, earlier: Result, rows: Integers) -> Integers:
    """Those of the `rows` of `earlier` that the study of `result` permits and would evaluate in the same way."""
    problem = result.problem
    try:
        X, indices = translate_with_rows(earlier.outcomes.X[rows], earlier.problem.space, problem.space)
    except UnitError:
        return rows[:0]
    keys = zip(problem.keys(X), earlier.keys(rows[indices]), strict=True)
    return rows[indices][[key == earlier_key for key, earlier_key in keys]]


def better_in_other_stores(result: Result) -> list[str]:
    """A clause for each store from which the completed run of `result` took over evaluations, on its designs that are
    better than those of `result`."""
    result = result.stored or result
    if not result.problem.objectives or result.ended == "not ended":
        return []
    return [clause for store in recall_stores(result.path) if (clause := _clause_on(result, store))]


def _clause_on(result: Result, store: Path) -> str:
    """The clause of `better_in_other_stores` on one `store`; "" without better designs."""
    try:
        objectives = better_designs(result, Result.open(store))
    except StoreError:
        return ""
    if not objectives:
        return ""
    row, values = next(iter(objectives.items()))
    if len(values) > 1:
        better = f"{plural(len(objectives), 'design')} of {store} would enter the front, {store}/{row} among them"
    else:
        (objective,) = result.problem.objectives
        value = number(objective.sign * float(values[0]), 4)
        better = f"{store}/{row} is better: {objective.name} {value} {objective.unit}".rstrip()
    return f"{better}, within the same bounds and limits; start from such designs: start_from: {{store: {store}}}"
