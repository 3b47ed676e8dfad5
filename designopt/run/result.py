"""What a store holds, for reading: the face of a run towards reports and users."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from designopt.problem import Outcomes, Problem
from designopt.run.errors import reading
from designopt.run.journal import Journal
from designopt.run.ledger import figure_names
from designopt.run.store import read_arrays, read_study
from designopt.space import Matrix
from designopt.study.study import Study

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class _Table:
    """The journal in memory: designs whose scenarios are all recorded, in ask order."""

    outcomes: Outcomes
    numbers: NDArray[np.int64]
    status: NDArray[np.str_]
    reason: NDArray[np.object_]
    stage: NDArray[np.str_]
    wall: Matrix
    points: int


@dataclass(frozen=True)
class Result:
    """A read-only view of the store `path`, as it was when first looked at. Rows are distinct designs in ask order."""

    path: Path
    study: Study
    problem: Problem

    @classmethod
    def open(cls, path: str | Path, study: Study | None = None) -> Result:
        """The result in the folder `path`; `StoreError` when it is not a store. Runs no code of the store.

        With `study` the plugins are taken from there; without, those that are installed.
        """
        path = Path(path)
        study = study or read_study(path)
        result = cls(path, study, Problem.of(study))
        with reading(path):
            journal = Journal.read(path, result.problem)
            journal.close()
        return result

    # ------------------------------------------------------------------------------------------------- designs

    @property
    def outcomes(self) -> Outcomes:
        """All distinct designs with their objectives, violations and figures, in ask order."""
        return self._table.outcomes

    @property
    def status(self) -> NDArray[np.str_]:
        """Status (one of `STATUSES`) of each design in each scenario (n, s)."""
        return self._table.status

    @property
    def reason(self) -> NDArray[np.object_]:
        """What the failures of one status are grouped by (n, s); "" for successes."""
        return self._table.reason

    @property
    def stage(self) -> NDArray[np.str_]:
        """The stage that first asked for each design (n,)."""
        return self._table.stage

    @property
    def wall(self) -> Matrix:
        """Seconds that each evaluation took (n, s); 0 where nothing was evaluated."""
        return self._table.wall

    def message(self, i: int, scenario: int = 0) -> str:
        """What was said about design `i` in a scenario; "" for a success."""
        return str(self._evaluation(i, scenario, "message") or "")

    def arrays(self, i: int, scenario: int = 0) -> dict[str, NDArray[Any]]:
        """The kept arrays of design `i` in a scenario; empty when there are none."""
        reference = self._evaluation(i, scenario, "arrays")
        return read_arrays(self.path, reference) if reference else {}

    def _evaluation(self, i: int, scenario: int, column: str) -> Any:
        key = self.problem.keys(self.outcomes.X[i : i + 1] if i >= 0 else self.outcomes.X[[i]])[0][scenario]
        journal = Journal.read(self.path, self.problem)
        try:
            row = journal.evaluation(key, column)
        finally:
            journal.close()
        return row[0] if row else None

    # ------------------------------------------------------------------------------------------ what is good

    def front(self) -> NDArray[np.int64]:
        """Rows of the feasible designs that no other one dominates, sorted by the first objective."""
        rows = np.flatnonzero(self.outcomes.feasible)
        if not len(rows):
            return rows.astype(np.int64)
        F = self.outcomes.objectives[rows]
        if F.shape[1] == 1:
            return rows[[int(np.argmin(F[:, 0]))]].astype(np.int64)
        import moocore

        keep = moocore.is_nondominated(F, keep_weakly=False)
        order = np.lexsort(F[keep].T[::-1])
        return np.asarray(rows[keep][order], np.int64)

    def compromise(self) -> int | None:
        """The row of the front that is nearest to its ideal point when each objective's range on it is scaled to 1."""
        front = self.front()
        if not len(front):
            return None
        F = self.outcomes.objectives[front]
        span = F.max(axis=0) - F.min(axis=0)
        distance = np.linalg.norm((F - F.min(axis=0)) / np.where(span > 0.0, span, 1.0), axis=1)
        return int(front[np.argmin(distance)])

    def chosen(self) -> dict[str, int]:
        """Designs worth a closer look: the best of each objective, and the compromise between several."""
        front = self.front()
        if not len(front):
            return {}
        F = self.outcomes.objectives[front]
        named = {f"best {o.name}": int(front[np.argmin(F[:, j])]) for j, o in enumerate(self.problem.objectives)}
        compromise = self.compromise()
        if len(self.problem.objectives) > 1 and compromise is not None:
            named["compromise"] = compromise
        return named

    # --------------------------------------------------------------------------------------------- bookkeeping

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of points (proposals), designs, feasible designs, evaluations, and evaluations by status."""
        status = Counter(self.status.ravel().tolist())
        evaluations = sum(n for name, n in status.items() if name != "invalid") + int(
            ((self.status == "invalid") & (self.reason == "refused")).sum()
        )
        return {
            "points": self._table.points,
            "designs": len(self.outcomes),
            "feasible": int(self.outcomes.feasible.sum()),
            "evaluations": evaluations,
            **dict(status.most_common()),
        }

    def failures(self) -> dict[tuple[str, str], int]:
        """How many evaluations failed, by status and reason, most frequent first."""
        bad = self.status != "ok"
        pairs = zip(self.status[bad].tolist(), self.reason[bad].tolist(), strict=True)
        return dict(Counter((str(s), str(r)) for s, r in pairs).most_common())

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """What happened: mappings with time, session, kind and text."""
        return self._records("event")

    @cached_property
    def sessions(self) -> list[dict[str, Any]]:
        """The processes that worked on this store: start, end, why it ended, executor, versions (a mapping)."""
        with reading(self.path):
            return [{**row, "versions": json.loads(row["versions"] or "{}")} for row in self._records("session")]

    @property
    def ended(self) -> str:
        """Why the last session ended: done, interrupted, failure policy, error; "not ended" if it runs still."""
        last = self.sessions[-1] if self.sessions else {}
        return str(last.get("reason") or "not ended")

    def _records(self, table: str) -> list[dict[str, Any]]:
        journal = Journal.read(self.path, self.problem)
        try:
            with reading(self.path):
                return journal.records(table)
        finally:
            journal.close()

    # ------------------------------------------------------------------------------------------------- showing

    def to_pandas(self, rows: Sequence[int] | NDArray[Any] | None = None) -> pandas.DataFrame:
        """Designs as a table: parameters, objectives (in their own direction), violation, stage, figures by scenario.

        `rows` selects some, all by default. Needs pandas (``pip install designopt[pandas]``).
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas needs pandas; install it with: pip install 'designopt[pandas]'") from error
        return pandas.DataFrame(self._columns(rows), index=pandas.Index(self._chosen_rows(rows), name="design"))

    def _chosen_rows(self, rows: Sequence[int] | NDArray[Any] | None) -> NDArray[np.int64]:
        return np.asarray(np.arange(len(self.outcomes)) if rows is None else rows, np.int64)

    def _columns(self, rows: Sequence[int] | NDArray[Any] | None) -> dict[str, Any]:
        index = self._chosen_rows(rows)
        some = self.outcomes.take(index)
        values = [self.problem.space.values(x) for x in some.X.tolist()]
        table: dict[str, Any] = {p.name: [v[p.name] for v in values] for p in self.problem.space.parameters}
        for j, objective in enumerate(self.problem.objectives):
            table[objective.name] = np.where(some.failed, np.nan, objective.sign * some.objectives[:, j])
        table["violation"] = some.violation
        table["feasible"] = some.feasible
        table["stage"] = self.stage[index]
        scenarios = [s.name for s in self.problem.scenarios]
        for k, scenario in enumerate(scenarios):
            suffix = f"@{scenario}" if len(scenarios) > 1 else ""
            for name, figure in some.figures.items():
                table.setdefault(f"{name}{suffix}", figure[:, k])
            table[f"status{suffix}"] = self.status[index, k]
        return table

    def _repr_html_(self) -> str:
        """The chosen designs as a table, for notebooks."""
        chosen = self.chosen()
        counts = self.counts
        head = f"<b>{html.escape(self.study.title or self.study.name)}</b>: {counts['designs']} designs, "
        head += f"{counts['feasible']} feasible, {len(self.front())} on the front"
        if not chosen:
            return head
        columns = self._columns(list(chosen.values()))
        names = [*self.problem.space.names, *(o.name for o in self.problem.objectives)]
        rows = "".join(
            f"<tr><td>{html.escape(label)}</td>" + "".join(f"<td>{_shown(columns[n][i])}</td>" for n in names) + "</tr>"
            for i, label in enumerate(chosen)
        )
        header = "".join(f"<th>{html.escape(n)}</th>" for n in ("", *names))
        return f"{head}<table><tr>{header}</tr>{rows}</table>"

    # ------------------------------------------------------------------------------------------------- reading

    @cached_property
    def _table(self) -> _Table:
        journal = Journal.read(self.path, self.problem)
        try:
            with reading(self.path):
                return _read(journal, self.problem)
        finally:
            journal.close()


def _shown(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else html.escape(str(value))


def _read(journal: Journal, problem: Problem) -> _Table:
    designs = list(journal.designs())
    n, s = len(designs), len(problem.scenarios)
    X = np.array([x for _, x, _ in designs], float).reshape(n, len(problem.space.free))
    excess = np.array([violation for _, _, violation in designs], float)
    status = np.full((n, s), "", dtype="U12")
    reason = np.full((n, s), "", dtype=object)
    wall = np.zeros((n, s))
    figures = {name: np.full((n, s), np.nan) for name in figure_names(problem)}
    for design, scenario, code, why, outputs, seconds in journal.evaluations(
        "design, scenario, status, reason, outputs, wall"
    ):
        if design >= n:  # recorded while this was being read
            continue
        status[design, scenario], reason[design, scenario], wall[design, scenario] = code, why or "", seconds or 0.0
        for name, value in json.loads(outputs).items() if outputs else ():
            if name not in figures:
                figures[name] = np.full((n, s), np.nan)
            if value is not None:
                figures[name][design, scenario] = value
    status[excess > 0.0] = "invalid"
    reason[excess > 0.0] = "relation"
    names, first = journal.stages(), journal.first_stages()
    stage = np.array([names.get(first.get(i, 0), "") for i in range(n)], dtype=str)
    points = sum(len(journal.points(number)) for number in names)
    rows = np.flatnonzero((status != "").all(axis=1))
    taken = {name: values[rows] for name, values in figures.items()}
    outcomes = problem.judge(X[rows], taken, status[rows] != "ok", excess[rows])
    return _Table(outcomes, rows, status[rows], reason[rows], stage[rows], wall[rows], points)
