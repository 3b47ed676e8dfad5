"""Designs of another store that answer a question better than a search for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from designopt.arrays import Floats
from designopt.counts import plural
from designopt.report.labels import number
from designopt.run.start_from import rescored_outcomes, translate
from designopt.store.errors import StoreError
from designopt.store.provenance import recall_stores
from designopt.store.result import Result
from designopt.study.language.units import UnitError

#: Least gain of a better design, as a share of the objective's range among the feasible designs.
_GAIN = 1e-3


def better_designs(result: Result, earlier: Result) -> dict[int, Floats]:
    """Objectives (k,), which are minimised, by the numbers of those designs of `earlier`, best first, that the study of
    `result` permits, whose evaluations both have in common, and that are feasible and dominated by no design of
    `result`."""
    try:
        outcomes = rescored_outcomes(earlier, result.problem, str(result.path))
    except StoreError:
        return {}
    feasible_objectives = result.outcomes.objectives[result.outcomes.feasible]
    margin = _GAIN * np.ptp(feasible_objectives, axis=0) if len(feasible_objectives) else 0.0
    front_objectives = result.outcomes.objectives[result.front()]
    objectives = {
        row: outcomes.objectives[row]
        for row in np.flatnonzero(outcomes.feasible).tolist()
        if not np.all(front_objectives <= outcomes.objectives[row] + margin, axis=1).any()
        and _same_evaluations(result, earlier, row)
    }
    return dict(sorted(objectives.items(), key=lambda entry: tuple(entry[1])))


def _same_evaluations(result: Result, earlier: Result, row: int) -> bool:
    """Whether the study of `result` permits design `row` of `earlier` and would evaluate it in the same way."""
    problem = result.problem
    try:
        X = translate(earlier.outcomes.X[row : row + 1], earlier.problem.space, problem.space)
    except UnitError:
        return False
    return len(X) == 1 and problem.keys(X) == earlier.keys([row])


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
