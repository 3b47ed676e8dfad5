"""Progress of a run, read from the journal by another process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from designopt.run.progress import Snapshot
from designopt.run.steps import steps
from designopt.store.disk.lock import at_work
from designopt.store.progress_note import running

if TYPE_CHECKING:
    from designopt.store.result import Result


def snapshot(result: Result, looks: Sequence[tuple[float, int]]) -> Snapshot:
    """The state of the run, as its own progress line shows it.

    `looks` are times and numbers of recorded evaluations, from which the rate is computed.
    """
    counts, outcomes, stages = result.counts, result.outcomes, result.study.stages
    started_stages = set(result.stage.tolist())
    number = max((k for k, stage in enumerate(stages) if stage.name in started_stages), default=0)
    stage = stages[number]
    in_stage = result.stage == stage.name
    total = stage.budget.evaluations
    complete_count = int((in_stage & ~outcomes.invalid).sum())
    (first, before), (last, newest) = looks[0], looks[-1]
    rate = (newest - before) / (last - first) if last > first else 0.0
    left = (
        max(0, total - complete_count) * len(result.problem.scenarios) / rate
        if total is not None and rate > 0.0
        else None
    )
    F = outcomes.objectives[outcomes.feasible]
    best = {o.name: o.sign * float(F[:, j].min()) for j, o in enumerate(result.problem.objectives) if len(F)}
    session = result.sessions[-1] if result.sessions else {}
    until = float(session.get("ended") or time.time())
    duration = max(0.0, until - float(session.get("started") or until))
    failures = sum(n for (status, _), n in result.failures().items() if status != "invalid")
    invalid, count = int(np.sum(in_stage & outcomes.invalid)), len(steps(result.study))
    return Snapshot(
        stage.name, number + 1, count, complete_count, total, counts["evaluations"], failures, rate, duration, left,
        best, invalid, running(result.path) if at_work(result.path) else (),
    )  # fmt: skip
