"""Ask and tell: evaluations carried out elsewhere, in a laboratory or by another program.

Each `ask` is a run that continues as far as possible without a further evaluation: the solver starts from its seed and
receives the recorded results, as in any resumed run. The store is the only state, so asking is as durable as running.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.counts import plural
from designopt.problem import Problem
from designopt.run.evaluations.points import CORRECTED
from designopt.run.evaluations.work import Waiting, Work
from designopt.run.runner import run_study
from designopt.store.errors import reading
from designopt.store.folder import Store
from designopt.store.journal.reader import JournalReader
from designopt.store.journal.writer import Journal
from designopt.study.study import Scenario, StudyDefinition
from designopt.workers.ask_tell import AskTellExecutor


@dataclass(frozen=True)
class PendingEvaluation:
    """A pending evaluation: the `values` of a design in the study's units, and the conditions.

    `number` is that of the design in the store, `kind` its purpose: ``scenario``, ``validation`` or ``neighbour``
    (within the tolerances). `key` identifies it.
    """

    number: int
    values: Mapping[str, Any]
    scenario: str
    conditions: Mapping[str, Any]
    kind: str
    key: bytes = field(repr=False)
    scenario_index: int = field(repr=False)


def ask(study: StudyDefinition, store: Path, count: int, recall: Sequence[str | Path] = ()) -> list[PendingEvaluation]:
    """Up to `count` pending evaluations of `study` in the folder `store`; none when the study is complete.

    They stay the same until they have results. Fewer than `count` if the solver needs results before it proposes more.
    Results with the same keys in the stores `recall` are taken over.
    Raises the exceptions of `run_study`, and `ValueError` for a study whose solver has programs.
    """
    if count < 1:
        raise ValueError(f"ask for at least one evaluation, not {count}")
    study = _without_assumptions(study)
    waiting: tuple[Work, ...] = ()
    try:
        exists = (store / "journal.db").exists()
        run_study(study, store, resume=exists, recall=recall, start=lambda evaluations: AskTellExecutor())
    except Waiting as wait:
        waiting = wait.works
    if any(work.kind == "program" for work in waiting):
        raise ValueError("the solver of this study solves its own programs, which cannot be evaluated externally")
    problem = Problem.from_study(study)
    return [evaluation for work in waiting for evaluation in _pending_evaluations(study, problem, work)][:count]


def _without_assumptions(study: StudyDefinition) -> StudyDefinition:
    """`study` without default neighbours: each would be an experiment."""
    has_assumptions = study.tolerances is not None and study.tolerances.assumed
    return dataclasses.replace(study, tolerances=None) if has_assumptions else study


def _pending_evaluations(study: StudyDefinition, problem: Problem, work: Work) -> list[PendingEvaluation]:
    return [
        _evaluation(study, problem, work.kind, int(work.designs[i]), int(work.numbers[i]), work.X[[i]], key)
        for i, key in enumerate(work.keys)
    ]


def _evaluation(
    study: StudyDefinition, problem: Problem, kind: str, design: int, index: int, X: Floats, key: bytes
) -> PendingEvaluation:
    """The evaluation `key` of the `design` with this number and values `X` (1, d), in a scenario of its `kind`."""
    scenario = _scenario(study, problem, kind, index)
    x = problem.space.shifted(X, scenario.shift)[0].tolist()
    return PendingEvaluation(design, problem.space.values(x), scenario.name, dict(scenario.values), kind, key, index)


def recorded_evaluations(study: StudyDefinition, store: Path) -> list[tuple[PendingEvaluation, float]]:
    """The evaluations in the folder `store` that have a result, in any order, with the times when they were recorded
    (s since 1970). Raises `StoreError`."""
    study = _without_assumptions(study)
    problem = Problem.from_study(study)
    with reading(store), contextlib.closing(JournalReader.read(store.absolute(), problem)) as journal:
        X, _ = journal.designs()
        records = list(journal.evaluations("key, kind, design, number, finished"))
    return [
        (_evaluation(study, problem, kind, design, index, X[[design]], key), float(end_time or 0.0))
        for key, kind, design, index, end_time in records
        if kind in ("scenario", "validation", "neighbour")
    ]


def _scenario(study: StudyDefinition, problem: Problem, kind: str, index: int) -> Scenario:
    if kind == "validation" and study.validate is not None:
        return study.validate.scenarios[index]
    scenarios = problem.without_shifts.scenarios
    return scenarios[index % len(scenarios)] if kind == "neighbour" else problem.scenarios[index]


def tell(
    study: StudyDefinition,
    store: Path,
    evaluations: Sequence[PendingEvaluation],
    results: Sequence[Mapping[str, float] | None],
    why: str,
    *,
    correct: bool = False,
) -> dict[bytes, str]:
    """Record results of `evaluations`: outputs of the model by name, or None without a result, with the reason `why`.
    Durable on return. With `correct` they replace recorded ones, which stay in the journal as events; returns a
    sentence on each that changed, by its key.

    Raises `ValueError` for an output that is missing or not a number, for an evaluation that already has a result, and
    `StoreError`.
    """
    if len(evaluations) != len(results):
        raise ValueError(f"{plural(len(evaluations), 'evaluation')} but {plural(len(results), 'result')}")
    keys = [evaluation.key for evaluation in evaluations]
    if len(set(keys)) < len(keys):
        raise ValueError("one evaluation has two results in one call")
    study = _without_assumptions(study)
    problem = Problem.from_study(study)
    rows = [_row(problem, evaluation, outputs, why) for evaluation, outputs in zip(evaluations, results, strict=True)]
    with Store.resume(store.absolute(), study, problem) as open_store:
        journal = open_store.journal
        journal.session = max((int(record["id"]) for record in journal.records("session")), default=0)
        end_time = time.time()
        records = [(*row, None, 0.0, 0.0, 1, journal.session, "outside", end_time, None) for row in rows]
        if correct:
            return _correct(journal, evaluations, records)
        X, _ = journal.designs()
        for evaluation in evaluations:
            if not 0 <= evaluation.number < len(X) or (
                evaluation.kind == "scenario"
                and problem.keys(X[[evaluation.number]])[0][evaluation.scenario_index] != evaluation.key
            ):
                raise ValueError(
                    f"design {evaluation.number} in scenario '{evaluation.scenario}' was not proposed by {store}"
                )
        known_before = [
            evaluation for evaluation in evaluations if journal.evaluation(evaluation.key, "status") is not None
        ]
        if known_before:
            raise ValueError(
                f"design {known_before[0].number} in scenario '{known_before[0].scenario}' already has a result"
            )
        journal.add_evaluations(records)
        journal.commit()
        journal.count()
        return {}


def _correct(
    journal: Journal, evaluations: Sequence[PendingEvaluation], records: Sequence[tuple[Any, ...]]
) -> dict[bytes, str]:
    """Replace the results of `evaluations` by `records` where they differ; each former one becomes an event. Returns a
    sentence on each by its key. Raises `ValueError` for an evaluation without a result."""
    corrections, sentences = [], dict[bytes, str]()
    for evaluation, record in zip(evaluations, records, strict=True):
        kind = {"scenario": "", "neighbour": f" (neighbour {evaluation.scenario_index})"}.get(
            evaluation.kind, f" ({evaluation.kind})"
        )
        subject = f"design {evaluation.number} in scenario '{evaluation.scenario}'{kind}"
        former = journal.evaluation(evaluation.key, "status, reason, outputs")
        if former is None:
            raise ValueError(f"{subject} has no result yet, so there is none to correct")
        results = former, record[4:7]
        before, after = ((status, reason, json.loads(outputs or "{}")) for status, reason, outputs in results)
        if before != after:
            corrections.append(record)
            sentences[evaluation.key] = f"{subject}: {_in_words(*results[1])}, formerly {_in_words(*results[0])}"
    for sentence in sentences.values():
        journal.add_event(CORRECTED, sentence)
    if corrections:
        journal.replace_evaluations(corrections)
        journal.commit()
    return sentences


def _in_words(status: str, reason: str | None, outputs: str | None) -> str:
    """A recorded result: ``wear = 3.5``, or why there is none."""
    if status == "ok":
        return ", ".join(f"{name} = {value}" for name, value in json.loads(outputs or "{}").items())
    return f"no result ({reason})" if reason else "no result"


def _row(
    problem: Problem, evaluation: PendingEvaluation, outputs_or_none: Mapping[str, float] | None, why: str
) -> tuple[Any, ...]:
    """The first columns of the record: key, kind, design, number, status, reason, outputs."""
    start = (evaluation.key, evaluation.kind, evaluation.number, evaluation.scenario_index)
    if outputs_or_none is None:
        return (*start, "diverged", why or None, None)
    outputs = {str(name): _number(name, value) for name, value in outputs_or_none.items()}
    fields = problem.model.plugin.outputs
    unknown = [name for name in outputs if fields and name not in fields]
    missing = [name for name, output in fields.items() if output.required and name not in outputs]
    if not fields:
        missing += sorted(set[str]().union(*problem.expression_names) - outputs.keys() - problem.figures.keys())
    if unknown or missing:
        problem_text = f"'{missing[0]}' is missing" if missing else f"the model has no output '{unknown[0]}'"
        raise ValueError(f"design {evaluation.number}: {problem_text} in its result")
    for name, use in problem.figures.items():
        needs = [need for need in use.plugin.needs if need not in outputs]
        if needs:
            raise ValueError(f"figure '{name}' needs the array '{needs[0]}', which cannot be supplied externally")
        outputs[name] = float(use.build()(*(outputs[need] for need in use.plugin.needs)))
    wrong = [name for name, value in outputs.items() if not math.isfinite(value)]
    figures = {name: value if math.isfinite(value) else None for name, value in outputs.items()}
    text = json.dumps(figures, separators=(",", ":"))
    return (*start, "nonfinite" if wrong else "ok", wrong[0] if wrong else None, text)


def _number(name: str, value: Any) -> float:
    try:
        return float(np.asarray(value, float).reshape(()))
    except (TypeError, ValueError) as error:
        raise ValueError(f"'{name}' is not a number: {value!r}") from error
