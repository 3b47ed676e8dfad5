"""Starting designs of a stage: from an earlier stage, or from another store.

Designs from another store are fixed when the run begins and kept in ``start_from.json``: a resume is a replay, whatever
has become of that store.
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
from designopt.arrays import Integers, Mask, Matrix
from designopt.lazy import moocore
from designopt.problem import Outcomes, Problem
from designopt.space import Space, shown_value
from designopt.store import safe_files
from designopt.store.disk.durable import write_durably
from designopt.store.disk.explain import explain
from designopt.store.errors import StoreError, reading
from designopt.store.result import Result
from designopt.study.language import units
from designopt.study.study import DesignVariable, Objective, StartFrom, StudyConstraint, StudyDefinition

#: File of a store with the designs that its stages took from other stores.
FILE = "start_from.json"
#: Values within this share of a range beyond its end are moved to it: units were converted.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Taken:
    """Designs `X` (n, d) for a stage, from the folder `store`; `left_out` more are outside the space."""

    store: str
    X: Matrix
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
    study: StudyDefinition, problem: Problem, path: Path, known: Mapping[str, Taken] | None = None
) -> dict[str, Taken]:
    """Designs for the stages of `study`, whose store is `path`, from other stores, besides the `known` ones, by stage.

    Raises `StoreError` if one of them cannot be read, or its designs do not have the parameters of this problem.
    """
    taken = dict(known or {})
    for stage in study.stages:
        origin = stage.start_from
        if origin is not None and origin.store is not None and stage.name not in taken:
            if Path(origin.store).resolve() == path.resolve():
                raise StoreError(f"{path}: stage '{stage.name}' cannot start from its own store", path)
            taken[stage.name] = _take(Path(origin.store), origin, problem, f"{path}: stage '{stage.name}'")
    return taken


def settle(study: StudyDefinition, problem: Problem, path: Path, taken: Mapping[str, Taken]) -> dict[str, Taken]:
    """Designs for the stages from other stores: as recorded in the store `path`, else as `taken`, and recorded from now
    on."""
    file = path / FILE
    try:
        text = safe_files.read_bytes(file)
    except FileNotFoundError:
        text = b"{}"
    except OSError as error:
        raise explain(error, path) from error
    with reading(path, FILE):
        width = len(problem.space.free)
        known = {
            name: Taken(str(kept["store"]), np.array(kept["designs"], float).reshape(-1, width), int(kept["left_out"]))
            for name, kept in json.loads(text).items()
        }
        for name, recorded in known.items():
            if not _within(problem.space, recorded.X):
                raise ValueError(f"a design of stage '{name}' is outside the space")
    settled = take(study, problem, path, {**taken, **known})
    if settled.keys() != known.keys():
        data = {n: {"store": t.store, "designs": t.X.tolist(), "left_out": t.left_out} for n, t in settled.items()}
        try:
            write_durably(file, json.dumps(data).encode())
        except OSError as error:
            raise explain(error, path) from error
    return settled


def _within(space: Space, X: Matrix) -> bool:
    """Whether all designs `X` are within the bounds of the space, up to rounding."""
    with np.errstate(all="ignore"):
        S = space.to_search(X)
    margin = ROUNDING * np.maximum(np.abs(space.lower), np.abs(space.upper))
    return bool(((space.lower - margin <= S) & (space.upper + margin >= S)).all())


def _take(store: Path, origin: StartFrom, problem: Problem, who: str) -> Taken:
    other = Result.open(store)
    theirs = other.problem.space
    there = {p.name for p in theirs.parameters}
    missing = [p.name for p in problem.space.free if p.name not in there]
    if missing:
        names = ", ".join(f"'{name}'" for name in missing)
        had = ", ".join(p.name for p in theirs.parameters)
        raise StoreError(
            f"{who} cannot start from {store}: its designs have no parameter {names} (they have {had})", store
        )
    best = select(_judged(other, problem, who), origin)
    try:
        X = translated(best.X, theirs, problem.space)
    except units.UnitError as error:
        raise StoreError(f"{who} cannot start from {store}: {error}", store) from error
    return Taken(str(store.absolute()), X, len(best) - len(X))


def _judged(other: Result, problem: Problem, who: str) -> Outcomes:
    """The other store's designs scored by this problem, from the records there; by its own problem if these are
    insufficient and the objectives have the same names and directions."""
    alike = {(o.name, o.direction) for o in other.problem.objectives} == {
        (o.name, o.direction) for o in problem.objectives
    }
    outcomes = other.outcomes
    items: list[Objective | StudyConstraint] = [*problem.objectives, *problem.constraints]
    for item in items:
        unknown = sorted(item.expression.names - outcomes.figures.keys())
        if unknown and alike:
            return other.outcomes
        if unknown:
            raise StoreError(
                f"{who} cannot start from {other.path}: its objectives differ, and '{unknown[0]}', which "
                f"'{item.name}' needs, is not recorded there; use the names of its objectives",
                other.path,
            )
    here = dataclasses.replace(problem, scenarios=other.problem.scenarios)
    return here.judge(outcomes.X, outcomes.figures, other.status != "ok", np.where(outcomes.invalid, np.inf, 0.0))


def translated(X: Matrix, theirs: Space, ours: Space) -> Matrix:
    """Designs `X` of the space `theirs` as designs of the space `ours`, matched by name and converted by unit.

    Designs outside our space are dropped: a value beyond a bound, an unknown choice, another value of a parameter fixed
    here, a violated relation. So are repetitions. Raises `UnitError` for incompatible units.
    """
    column = {p.name: j for j, p in enumerate(theirs.free)}
    source = {p.name: p for p in theirs.parameters}
    active = theirs.active(X)
    translated = np.zeros((len(X), len(ours.free)))
    inside = np.ones(len(X), bool)
    inactive: dict[str, Mask] = {}
    for p in ours.parameters:
        there = source.get(p.name)
        if there is None:  # fixed here, and unknown there
            continue
        j = column.get(p.name)
        values = [
            there.values[0] if j is None else shown_value(there, x) for x in (X[:, 0 if j is None else j]).tolist()
        ]
        used = np.ones(len(X), bool) if j is None else active[:, j]
        entries = np.array([_entry(p, there, value) for value in values], float).reshape(len(X))
        if p.kind == "fixed":
            inside &= ~used | np.isfinite(entries)
        else:
            inactive[p.name] = ~used
            inside &= ~used | np.isfinite(entries)
            translated[:, ours.names.index(p.name)] = np.where(np.isfinite(entries), entries, _inside(p))
    needed = ours.active(translated)
    for j, p in enumerate(ours.free):
        inside &= ~(needed[:, j] & inactive[p.name])
    found = ours.impute(translated[inside])
    found = found[ours.relation_violation(found) <= 0.0]
    _, first = np.unique(found, axis=0, return_index=True)
    return found[np.sort(first)]


def _entry(p: DesignVariable, there: DesignVariable, value: Any) -> float:
    """The column entry of `p` for a `value` of the same parameter elsewhere; NaN if `p` does not admit it."""
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    number = _converted(float(value), there.unit, p.unit) if numeric else np.nan
    if p.kind in ("choice", "fixed"):
        same = [i for i, own in enumerate(p.values) if _same(own, value, number)]
        return float(same[0]) if same else np.nan
    if p.kind == "int":
        whole = float(np.rint(number))
        number = whole if abs(number - whole) <= ROUNDING * max(1.0, abs(whole)) else np.nan
    room = ROUNDING * (p.high - p.low)
    return min(max(number, p.low), p.high) if p.low - room <= number <= p.high + room else np.nan


def _converted(value: float, unit: str, to: str) -> float:
    return value if unit == to else units.convert(value, unit, to)


def _same(own: Any, value: Any, number: float) -> bool:
    """Whether `own` equals `value`, which is `number` in the unit of `own`, NaN for text and truth values."""
    if np.isfinite(number) and isinstance(own, (int, float)) and not isinstance(own, bool):
        return abs(number - own) <= ROUNDING * max(abs(number), abs(own))
    return type(own) is type(value) and bool(own == value)


def _inside(p: DesignVariable) -> float:
    return 0.0 if p.kind == "choice" else p.low
