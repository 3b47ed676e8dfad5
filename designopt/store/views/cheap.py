"""Cheap evaluations of a search: not points of a stage, not on a front."""

from __future__ import annotations

import numpy as np

from designopt.problem import Outcomes, Problem
from designopt.store.journal import recorded_designs
from designopt.store.journal.reader import JournalReader


def read_cheap(journal: JournalReader, problem: Problem) -> Outcomes | None:
    """The cheaply evaluated designs of `problem`, in the order of their numbers, scored like full evaluations; None
    without any."""
    rows = list(journal.evaluations("design, number, status, outputs", "cheap"))
    if not rows:
        return None
    X, relation_violation = journal.designs()
    designs, design_index = np.unique([row[0] for row in rows], return_inverse=True)
    at = design_index.reshape(-1), np.array([row[1] for row in rows], np.int64)
    status = np.full((len(designs), len(problem.scenarios)), "", dtype="U12")
    status[at] = [row[2] for row in rows]
    names, values = recorded_designs.outputs([row[3] for row in rows], problem.output_names)
    figures = {}
    for name, column in zip(names, values.T, strict=True):
        figures[name] = np.full(status.shape, np.nan)
        figures[name][at] = column
    alike = list(problem.first_occurrence)
    status, figures = status[:, alike], {name: table[:, alike] for name, table in figures.items()}
    return problem.judge(X[designs], figures, status != "ok", relation_violation[designs], status == "invalid")
