"""Starting designs of a stage: from an earlier stage, or from another store.

Designs from another store are fixed when the run begins and stored in ``start_from.json``: a resume repeats
the run even if that store has changed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from designopt import decision
from designopt.arrays import Floats, Integers, Mask
from designopt.lazy import moocore
from designopt.problem import Outcomes, Problem
from designopt.space import Space, display_value
from designopt.store import safe_files
from designopt.store.disk.durable import write_durably
from designopt.store.errors import StoreError, explain, reading
from designopt.store.result import Result
from designopt.study.language import units
from designopt.study.language.checking.refusals import is_number
from designopt.study.study import DesignVariable, Objective, StartFrom, StudyConstraint, StudyDefinition

#: File of a store with the designs that its stages took from other stores.
FILE = "start_from.json"
#: Values within this share of a range beyond its end are moved to it: units were converted.
ROUNDING = 1e-12


@dataclass(frozen=True)
class StartingDesigns:
    """Designs `X` (n, d) for a stage, from the folder `store`; `left_out` more are outside the space."""

    store: str
    X: Floats
    left_out: int

    @property
    def summary(self) -> str:
        """Description for the user."""
        text = f"{len(self.X)} design{'' if len(self.X) == 1 else 's'} of {self.store}"
        return text + (f"; {self.left_out} more are outside this space and were left out" if self.left_out else "")


def select(outcomes: Outcomes, start: StartFrom) -> Outcomes:
    """The designs of `outcomes` selected by `start`, best first.

    ``nondominated``: nondominated feasible designs, by the first objective; of more than `count`, evenly spaced ones in
    that order; without any feasible design those with the smallest violation. ``best``: the first `count` by
    feasibility, then rank of domination, then distance to the ideal point. Failed designs are excluded.
    """
    rows = np.flatnonzero(~outcomes.failed)
    if not len(rows):
        return outcomes.take(rows)
    feasible = rows[outcomes.feasible[rows]]
    if start.select == "best" or not len(feasible):
        count = start.count if start.count is not None else (1 if start.select == "nondominated" else len(rows))
        return outcomes.take(rows[_order(outcomes.take(rows))][:count])
    front = feasible[decision.nondominated(outcomes.objectives[feasible])]
    front = front[np.lexsort(outcomes.objectives[front].T[::-1])]
    if start.count is not None and len(front) > start.count:
        front = front[np.unique(np.linspace(0, len(front) - 1, start.count).round().astype(int))]
    return outcomes.take(front)


def _order(outcomes: Outcomes) -> Integers:
    """Rows from the best to the worst."""
    F = outcomes.objectives
    if F.shape[1] == 1:
        return np.asarray(np.lexsort((F[:, 0], outcomes.rank_violation)))
    span = F.max(axis=0) - F.min(axis=0)
    distance = np.linalg.norm((F - F.min(axis=0)) / np.where(span > 0.0, span, 1.0), axis=1)
    return np.asarray(np.lexsort((distance, moocore.pareto_rank(F), outcomes.rank_violation)))


# ----------------------------------------------------------------------------------------------------- other stores


def take(
    study: StudyDefinition, problem: Problem, path: Path, records: Mapping[str, StartingDesigns] | None = None
) -> dict[str, StartingDesigns]:
    """Designs for the stages of `study`, whose store is `path`, from other stores and the `records` ones, by stage.

    Raises `StoreError` if one of them cannot be read, or its designs do not have the parameters of this problem.
    """
    designs_of_stage = dict(records or {})
    for stage in study.stages:
        origin = stage.start_from
        if origin is not None and origin.store is not None and stage.name not in designs_of_stage:
            if Path(origin.store).resolve() == path.resolve():
                raise StoreError(f"{path}: stage '{stage.name}' cannot start from its own store", path)
            designs_of_stage[stage.name] = _take(Path(origin.store), origin, problem, f"{path}: stage '{stage.name}'")
    return designs_of_stage


def settle(
    study: StudyDefinition, problem: Problem, path: Path, proposals: Mapping[str, StartingDesigns]
) -> dict[str, StartingDesigns]:
    """Designs for the stages from other stores: as recorded in the store `path`, else as `proposals`; recorded from
    now on."""
    file = path / FILE
    try:
        text = safe_files.read_bytes(file)
    except FileNotFoundError:
        text = b"{}"
    except OSError as error:
        raise explain(error, path) from error
    with reading(path, FILE):
        width = len(problem.space.free)
        records = {
            name: StartingDesigns(
                str(record["store"]), np.array(record["designs"], float).reshape(-1, width), int(record["left_out"])
            )
            for name, record in json.loads(text).items()
        }
        for name, designs in records.items():
            if not _is_within(problem.space, designs.X):
                raise ValueError(f"a design of stage '{name}' is outside the space")
    starts = take(study, problem, path, {**proposals, **records})
    if starts.keys() != records.keys():
        data = {n: {"store": t.store, "designs": t.X.tolist(), "left_out": t.left_out} for n, t in starts.items()}
        try:
            write_durably(file, json.dumps(data).encode())
        except OSError as error:
            raise explain(error, path) from error
    return starts


def _is_within(space: Space, X: Floats) -> bool:
    """Whether all designs `X` are within the bounds of the space, up to rounding."""
    with np.errstate(all="ignore"):
        S = space.to_search(X)
    margin = ROUNDING * np.maximum(np.abs(space.lower), np.abs(space.upper))
    return bool(((space.lower - margin <= S) & (space.upper + margin >= S)).all())


def _take(store: Path, origin: StartFrom, problem: Problem, who: str) -> StartingDesigns:
    source = Result.open(store)
    theirs = source.problem.space
    source_names = {p.name for p in theirs.parameters}
    missing = [p.name for p in problem.space.free if p.name not in source_names]
    if missing:
        names = ", ".join(f"'{name}'" for name in missing)
        their_names = ", ".join(p.name for p in theirs.parameters)
        raise StoreError(
            f"{who} cannot start from {store}: its designs have no parameter {names} (they have {their_names})", store
        )
    best = select(rescored_outcomes(source, problem, who), origin)
    try:
        X = translate(best.X, theirs, problem.space)
    except units.UnitError as error:
        raise StoreError(f"{who} cannot start from {store}: {error}", store) from error
    return StartingDesigns(str(store.absolute()), X, len(best) - len(X))


def rescored_outcomes(source: Result, problem: Problem, who: str) -> Outcomes:
    """The other store's designs scored by this problem, from the records there; by its own problem if these are
    insufficient and the objectives have the same names and directions."""
    has_same_objectives = {(o.name, o.direction) for o in source.problem.objectives} == {
        (o.name, o.direction) for o in problem.objectives
    }
    outcomes = source.outcomes
    items: list[Objective | StudyConstraint] = [*problem.objectives, *problem.constraints]
    for item in items:
        unknown = sorted(item.expression.names - outcomes.figures.keys())
        if unknown and has_same_objectives:
            return source.outcomes
        if unknown:
            raise StoreError(
                f"{who} cannot start from {source.path}: its objectives differ, and '{unknown[0]}', which "
                f"'{item.name}' needs, is not recorded there; use the names of its objectives",
                source.path,
            )
    with_source_scenarios = dataclasses.replace(problem, scenarios=source.problem.scenarios)
    return with_source_scenarios.judge(
        outcomes.X, outcomes.figures, source.status != "ok", np.where(outcomes.invalid, np.inf, 0.0)
    )


def translate(X: Floats, theirs: Space, ours: Space) -> Floats:
    """Designs `X` of the space `theirs` as designs of the space `ours`, matched by name and converted by unit.

    Designs outside our space are dropped: a value beyond a bound, an unknown choice, another value of a parameter fixed
    here, a violated relation. So are repetitions. Raises `UnitError` for incompatible units.
    """
    return translate_with_rows(X, theirs, ours)[0]


def translate_with_rows(X: Floats, theirs: Space, ours: Space) -> tuple[Floats, Integers]:
    """The designs of `translate`, and the row of `X` of each. Raises `UnitError` as it does."""
    column = {p.name: j for j, p in enumerate(theirs.free)}
    source = {p.name: p for p in theirs.parameters}
    active = theirs.active(X)
    designs_here = np.zeros((len(X), len(ours.free)))
    inside = np.ones(len(X), bool)
    inactive: dict[str, Mask] = {}
    for p in ours.parameters:
        source_parameter = source.get(p.name)
        if source_parameter is None:  # unknown there: no design that needs it is one of ours
            if p.kind != "fixed":
                inactive[p.name] = np.ones(len(X), bool)
                designs_here[:, ours.names.index(p.name)] = _value_inside(p)
            continue
        j = column.get(p.name)
        values = [
            source_parameter.values[0] if j is None else display_value(source_parameter, x)
            for x in (X[:, 0 if j is None else j]).tolist()
        ]
        is_active = np.ones(len(X), bool) if j is None else active[:, j]
        entries = np.array([_entry(p, source_parameter, value) for value in values], float).reshape(len(X))
        if p.kind == "fixed":
            inside &= ~is_active | np.isfinite(entries)
        else:
            inactive[p.name] = ~is_active
            inside &= ~is_active | np.isfinite(entries)
            designs_here[:, ours.names.index(p.name)] = np.where(np.isfinite(entries), entries, _value_inside(p))
    needs = ours.active(designs_here)
    for j, p in enumerate(ours.free):
        inside &= ~(needs[:, j] & inactive[p.name])
    designs, rows = ours.impute(designs_here[inside]), np.flatnonzero(inside)
    is_within = ours.relation_violation(designs) <= 0.0
    designs, rows = designs[is_within], rows[is_within]
    _, first = np.unique(designs, axis=0, return_index=True)
    return designs[np.sort(first)], rows[np.sort(first)]


def _entry(p: DesignVariable, source_parameter: DesignVariable, value: Any) -> float:
    """The column entry of `p` for a `value` of the same parameter elsewhere; NaN if `p` does not admit it."""
    numeric = is_number(value)
    number = units.Amount(float(value), source_parameter.unit).value_in(p.unit) if numeric else np.nan
    if p.kind in ("choice", "fixed"):
        matches = [i for i, choice in enumerate(p.values) if _is_equal(choice, value, number)]
        return float(matches[0]) if matches else np.nan
    if p.kind == "int":
        nearest_integer = float(np.rint(number))
        number = (
            nearest_integer if abs(number - nearest_integer) <= ROUNDING * max(1.0, abs(nearest_integer)) else np.nan
        )
    room = ROUNDING * (p.high - p.low)
    return min(max(number, p.low), p.high) if p.low - room <= number <= p.high + room else np.nan


def _is_equal(choice: Any, value: Any, number: float) -> bool:
    """Whether `choice` equals `value`, which is `number` in the unit of `choice`, NaN for text and truth values."""
    if np.isfinite(number) and isinstance(choice, (int, float)) and not isinstance(choice, bool):
        return abs(number - choice) <= ROUNDING * max(abs(number), abs(choice))
    return type(choice) is type(value) and bool(choice == value)


def _value_inside(p: DesignVariable) -> float:
    return 0.0 if p.kind == "choice" else p.low
