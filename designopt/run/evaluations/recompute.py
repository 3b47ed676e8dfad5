"""Recorded evaluations that a resumed run repeats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from designopt.counts import plural
from designopt.store.folder import Store
from designopt.store.journal.recorded_designs import CODE, KIND_CODE
from designopt.study.study import StudyDefinition


def baselines_with_errors(study: StudyDefinition, store: Store) -> str:
    """Delete evaluations of baselines that ended with a model error, which may have been fixed; returns a message.

    No solver has learnt from them, so all other designs stay the same.
    """
    baseline = study.baseline
    if baseline is None or any(stage.start_from and stage.start_from.stage == baseline.name for stage in study.stages):
        return ""
    journal, contents = store.journal, store.contents
    if contents is None:
        return ""
    points_of_stage = {name: set(journal.points(number, gaps=True)) for number, name in journal.stages().items()}
    alone = points_of_stage.pop(baseline.name, set()).difference(*points_of_stage.values())
    evaluations = contents.evaluations
    wrong = (evaluations.kind == KIND_CODE["scenario"]) & (evaluations.status == CODE["error"])
    wrong &= np.isin(evaluations.design, list(alone))
    if not wrong.any():
        return ""
    keys = evaluations.take(wrong).keys
    journal.forget(keys)
    store.contents = replace(contents, evaluations=evaluations.take(~wrong))
    return f"recomputing {plural(len(keys), 'evaluation')} of it that ended with a model error"
