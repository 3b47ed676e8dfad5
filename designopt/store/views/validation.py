"""The chosen designs in validation scenarios, which no solver has used."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats, Mask
from designopt.problem import EQUAL, Outcomes, Problem
from designopt.store.journal import recorded_designs
from designopt.store.journal.reader import JournalReader
from designopt.study.study import StudyDefinition, Validation


@dataclass(frozen=True)
class ValidationResults:
    """Results of chosen designs (n) in the validation scenarios (s).

    `rows` are their rows in the outcomes, `labels` the reasons for the choice. `figures` and `objectives` (n, m, s) are
    NaN without a result, `statuses` "" before the evaluation. The objectives are in their own direction, for each
    scenario alone; `quantiles` (n, m, q) are over the scenarios with a result. `feasible_share` (n,) is the share of
    the evaluated scenarios with a result within all limits, `violated` (n,) by limit the share of those with a result
    that violate it.
    """

    rows: NDArray[np.int64]
    labels: tuple[str, ...]
    figures: Mapping[str, Floats]
    objectives: Floats
    statuses: NDArray[np.str_]
    quantiles: Floats
    feasible_share: Floats
    violated: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.rows)


def with_validation(study: StudyDefinition) -> StudyDefinition:
    """`study` with the validation scenarios after its own, for the workers."""
    scenarios = study.validate.scenarios if study.validate else ()
    return dataclasses.replace(study, scenarios=(*study.scenarios, *scenarios))


def validation_keys(problem: Problem, validation: Validation, X: Floats) -> list[list[bytes]]:
    """Keys of the evaluations of designs `X` in the scenarios of `validation`."""
    return dataclasses.replace(problem, scenarios=validation.scenarios).keys(X)


def read_validation(
    journal: JournalReader,
    problem: Problem,
    scoring_problem: Problem,
    validation: Validation,
    X: Floats,
    rows_by_label: Mapping[str, int],
) -> ValidationResults | None:
    """The validation of the designs in the rows `rows_by_label` of `X` in the journal of `problem`, scored by
    `scoring_problem`; None without records. Designs chosen for several reasons appear once."""
    labels: dict[int, list[str]] = {}
    for label, row in rows_by_label.items():
        labels.setdefault(row, []).append(label)
    rows = np.array(list(labels), np.int64)
    keys = validation_keys(problem, validation, X[rows]) if len(rows) else []
    records = [journal.evaluation(key, "status, outputs") or ("", None) for row in keys for key in row]
    if all(status == "" for status, _ in records):
        return None
    shape = (len(rows), len(validation.scenarios))
    statuses = np.array([status for status, _ in records], dtype="U12")
    names, values = recorded_designs.outputs([text for _, text in records], problem.output_names)
    figures = dict(zip(names, values.T, strict=True))
    # Every scenario is scored alone: as a design of its own in a problem with a single scenario.
    alone = dataclasses.replace(scoring_problem, scenarios=validation.scenarios[:1])
    outcomes = alone.judge(
        np.repeat(X[rows], shape[1], axis=0),
        {name: column[:, None] for name, column in figures.items()},
        (statuses != "ok")[:, None],
        np.zeros(len(statuses)),
        (statuses == "invalid")[:, None],
    )
    signs = np.array([o.sign for o in scoring_problem.objectives])
    objectives = np.where(outcomes.failed[:, None], np.nan, signs * outcomes.objectives)
    objectives = objectives.reshape(*shape, len(signs)).transpose(0, 2, 1)
    is_recorded = (statuses != "").reshape(shape)
    within_limits = (outcomes.feasible.reshape(shape) & is_recorded).sum(axis=1)
    return ValidationResults(
        rows=rows,
        labels=tuple(", ".join(label_parts) for label_parts in labels.values()),
        figures={name: column.reshape(shape) for name, column in figures.items()},
        objectives=objectives,
        statuses=statuses.reshape(shape),
        quantiles=_quantiles(objectives, validation.quantiles),
        feasible_share=np.where(
            is_recorded.any(axis=1), within_limits / np.maximum(is_recorded.sum(axis=1), 1), np.nan
        ),
        violated=_violation_shares(alone, outcomes, (statuses == "ok").reshape(shape)),
    )


def _violation_shares(problem: Problem, outcomes: Outcomes, has_result: Mask) -> dict[str, Floats]:
    """The share (n,), for each limit of `problem`, of the scenarios (n, s) that have a result (`has_result`) and
    violate it; `outcomes` has a row for each design and scenario."""
    constraint_values = problem.constraint_values(outcomes.figures)
    violating: dict[str, Mask] = {}  # by either side
    for limit, values in zip(problem.limits, constraint_values.T, strict=True):
        violation = np.abs(values) - EQUAL if limit.equality else values
        violates = ~(violation <= 0.0).reshape(has_result.shape) & has_result
        violating[limit.constraint.name] = violating.get(limit.constraint.name, False) | violates
    return {name: rows.sum(axis=1) / np.maximum(has_result.sum(axis=1), 1) for name, rows in violating.items()}


def _quantiles(values: Floats, levels: tuple[float, ...]) -> Floats:
    """Quantiles over the last axis without NaN; NaN if nothing remains."""
    result = np.full((*values.shape[:-1], len(levels)), np.nan)
    for cell in np.ndindex(values.shape[:-1]):
        finite = values[cell][np.isfinite(values[cell])]
        if len(finite):
            result[cell] = np.quantile(finite, levels)
    return result
