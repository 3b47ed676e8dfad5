"""What a resumed run computes again although it is on record."""

from __future__ import annotations

from designopt.counts import plural
from designopt.store.folder import Store
from designopt.study.study import StudyDefinition


def baselines_with_errors(study: StudyDefinition, store: Store) -> str:
    """Forget evaluations of baselines that ended by an error of the model, which may be fixed since; what to say of it.

    No solver has learnt from them, so that all others are asked for the same designs as before.
    """
    baseline = study.baseline
    if baseline is None or any(stage.start_from and stage.start_from.stage == baseline.name for stage in study.stages):
        return ""
    journal = store.journal
    asked = {name: set(journal.points(number, gaps=True)) for number, name in journal.stages().items()}
    alone = asked.pop(baseline.name, set()).difference(*asked.values())
    rows = journal.evaluations("key, design, status", "scenario")
    keys = [key for key, design, status in rows if status == "error" and design in alone]
    if not keys:
        return ""
    journal.forget(keys)
    return f"recomputing {plural(len(keys), 'evaluation')} of it that ended with a model error"
