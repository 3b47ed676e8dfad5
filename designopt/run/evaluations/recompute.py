"""Recorded evaluations that a resumed run repeats."""

from __future__ import annotations

from designopt.counts import plural
from designopt.store.folder import Store
from designopt.study.study import StudyDefinition


def baselines_with_errors(study: StudyDefinition, store: Store) -> str:
    """Delete evaluations of baselines that ended with a model error, which may have been fixed; returns a message.

    No solver has learnt from them, so all other designs stay the same.
    """
    baseline = study.baseline
    if baseline is None or any(stage.start_from and stage.start_from.stage == baseline.name for stage in study.stages):
        return ""
    journal = store.journal
    points_of_stage = {name: set(journal.points(number, gaps=True)) for number, name in journal.stages().items()}
    alone = points_of_stage.pop(baseline.name, set()).difference(*points_of_stage.values())
    rows = journal.evaluations("key, design, status", "scenario")
    keys = [key for key, design, status in rows if status == "error" and design in alone]
    if not keys:
        return ""
    journal.forget(keys)
    return f"recomputing {plural(len(keys), 'evaluation')} of it that ended with a model error"
