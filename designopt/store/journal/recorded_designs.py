"""The journal in memory, by columns, read in blocks: rows as objects need much more memory than their numbers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.problem import Outcomes, Problem
from designopt.store.journal.reader import JournalReader

#: Number of rows that are objects at the same time.
BLOCK = 4096


@dataclass(frozen=True)
class RecordedDesigns:
    """Designs whose scenarios are all recorded, in ask order; `points` are the numbers of the designs requested by each
    stage, in its ask order, `numbers` (n,) those of the rows."""

    outcomes: Outcomes
    numbers: NDArray[np.int64]
    status: NDArray[np.str_]
    reason: NDArray[np.object_]
    stage: NDArray[np.str_]
    wall: Floats
    points: Mapping[str, NDArray[np.int64]]

    def designs_of(self, stage: str) -> NDArray[np.int64]:
        """Rows of the designs requested by a stage of `points`, in its ask order; -1 for an incomplete design."""
        points = self.points[stage]
        row_of = np.full(max(int(points.max(initial=-1)), int(self.numbers.max(initial=-1))) + 1, -1, np.int64)
        row_of[self.numbers] = np.arange(len(self.numbers))
        return row_of[points]


def figure_names(problem: Problem) -> tuple[str, ...]:
    """Names of the expected figures: the declared ones, and those in expressions (of an undeclared model)."""
    used = [o.expression.names for o in problem.objectives] + [c.expression.names for c in problem.constraints]
    return tuple(dict.fromkeys([*problem.output_names, *(name for names in used for name in sorted(names))]))


def blocks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    """`rows` in lists of `BLOCK`."""
    rows = iter(rows)
    while block := list(itertools.islice(rows, BLOCK)):
        yield block


def designs(journal: JournalReader, problem: Problem, *, gaps: bool = False) -> tuple[Floats, Floats]:
    """All designs (n, d) and their violation of the relations (n,); NaN for lost ones with `gaps`."""
    width = len(problem.space.free) + 1
    parts = [
        np.array([[*x, relation_violation] for _, x, relation_violation in block], float)
        for block in blocks(journal.designs(gaps=gaps))
    ]
    table = np.concatenate(parts) if parts else np.empty((0, width))
    return table[:, :-1].copy(), table[:, -1].copy()


def outputs(texts: Sequence[str | None], names: Iterable[str], problem: Problem) -> tuple[tuple[str, ...], Floats]:
    """The figures of `problem` in the journal's JSON `texts`: names, starting with `names`, and values, NaN for missing
    ones."""
    data = json.loads(f"[{','.join(text or '{}' for text in texts)}]")  # in one call: a third of the time
    stored = tuple(dict.fromkeys(itertools.chain(names, *data)))
    values = np.array([[figures.get(name) for name in stored] for figures in data], float)
    return stored, values.reshape(len(data), len(stored))


def read(journal: JournalReader, problem: Problem, scored_with: Problem) -> RecordedDesigns:
    """The records of `problem`, with figures scored by `scored_with`."""
    X, relation_violation = designs(journal, problem)
    n, s = len(X), len(problem.scenarios)
    status = np.full((n, s), "", dtype="U12")
    reason = np.full((n, s), "", dtype=object)
    wall = np.zeros((n, s))
    figures = {name: np.full((n, s), np.nan) for name in figure_names(problem)}
    shared_texts: dict[str, str] = {}
    for block in blocks(journal.evaluations("kind, design, number, status, reason, outputs, wall")):
        block = [row[1:] for row in block if row[0] == "scenario"]
        cells = np.array([row[:2] for row in block], dtype=None if block else int).reshape(-1, 2)
        if cells.dtype.kind != "i" or (cells < 0).any():
            raise ValueError("a design or scenario has no number")
        # Designs after the last one were recorded during this read.
        some = np.flatnonzero((cells[:, 0] < n) & (cells[:, 1] < s)).tolist()
        rows = [block[i] for i in some]
        at = cells[some, 0], cells[some, 1]
        status[at] = [row[2] for row in rows]
        reason[at] = [shared_texts.setdefault(row[3] or "", row[3] or "") for row in rows]
        wall[at] = [row[5] or 0.0 for row in rows]
        names, values = outputs([row[4] for row in rows], figures, problem)
        for name, column in zip(names, values.T, strict=True):
            if name not in figures:
                figures[name] = np.full((n, s), np.nan)
            figures[name][at] = column
    alike = list(problem.first_occurrence)
    if alike != list(range(s)):  # an evaluation that two scenarios share is recorded for the first of them
        status, reason = status[:, alike], reason[:, alike]
        figures = {name: values[:, alike] for name, values in figures.items()}
    refused = status == "invalid"
    status[relation_violation > 0.0] = "invalid"
    reason[relation_violation > 0.0] = "relation"
    points = {name: np.array(numbers, np.int64) for name, numbers in journal.all_points().items()}
    stage = np.full(n, "", dtype=f"U{max(map(len, points), default=1)}")
    for name, numbers in reversed(points.items()):
        stage[numbers[numbers < n]] = name
    # The start of a program is a design that no stage requested.
    rows_ = np.flatnonzero((status != "").all(axis=1) & (stage != ""))
    scored_figures = {name: values[rows_] for name, values in figures.items()}
    outcomes = scored_with.judge(
        X[rows_], scored_figures, status[rows_] != "ok", relation_violation[rows_], refused[rows_]
    )
    return RecordedDesigns(outcomes, rows_, status[rows_], reason[rows_], stage[rows_], wall[rows_], points)
