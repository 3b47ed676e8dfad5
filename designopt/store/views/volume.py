"""Hypervolume of the designs: reference point, and history over the run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from designopt import decision
from designopt.arrays import Floats, Integers, Mask
from designopt.problem import Outcomes, Problem
from designopt.study.study import StudyDefinition

#: Number of points of the history.
PLACES = 60


def study_reference_point(study: StudyDefinition, problem: Problem) -> Mapping[str, float]:
    """The reference point in `study`, by objective in its own direction."""
    reference = dict(study.reference)
    names = [o.name for o in problem.objectives]
    for stage in study.stages:
        budget = stage.budget.hypervolume
        if budget is not None and len(budget.reference) == len(names):
            reference = {**dict(zip(names, budget.reference, strict=True)), **reference}
    return reference


def reference(problem: Problem, stated_reference: Mapping[str, float], front: Floats) -> Floats | None:
    """The fixed reference point (m,) of the hypervolume, for minimised objectives; `front` (k, m)."""
    objectives = problem.objectives
    signs = np.array([o.sign for o in objectives])
    stated_point = np.array([stated_reference.get(o.name, np.nan) for o in objectives])
    if not np.isnan(stated_point).any():
        return np.asarray(signs * stated_point)
    if len(objectives) < 2 or not len(front):
        return None
    return np.asarray(
        np.where(
            np.isnan(stated_point), decision.beyond(front.max(axis=0), np.ptp(front, axis=0)), signs * stated_point
        )
    )


def history(outcomes: Outcomes, reference: Floats | None) -> tuple[Integers, Floats]:
    """Numbers of designs during the run, and the hypervolume at these times."""
    if reference is None or not len(outcomes):
        return np.empty(0, np.int64), np.empty(0)
    counts = np.unique(np.linspace(1, len(outcomes), PLACES).astype(np.int64))
    return counts, volumes_after(counts, outcomes.objectives, outcomes.feasible, reference)


def volumes_after(counts: Integers, objectives: Floats, feasible: Mask, reference: Floats) -> Floats:
    """The hypervolume after each of the rising numbers `counts` (k,) of designs with minimised `objectives` (n, m)."""
    archive = np.empty((0, len(reference)))
    volumes, begin = [], 0
    for row in counts.tolist():
        new = objectives[begin:row][feasible[begin:row]]
        archive = np.concatenate([archive, new[(new < reference).all(axis=1)]])
        archive = archive[decision.nondominated(archive)]
        volumes.append(decision.hypervolume(archive, reference))
        begin = row
    return np.array(volumes)
