"""Reasons why a study has no design to choose."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from designopt.counts import plural
from designopt.problem.scoring import aggregate
from designopt.solvers.listed_designs import listed_names
from designopt.store.result import Result
from designopt.study.study import Objective, StudyConstraint

#: Length of a program's message in a line, to which complete sentences are shown.
LONGEST = 400


def without_feasible(result: Result) -> str:
    """The reason why there is no feasible design."""
    outcomes = result.outcomes
    if not len(outcomes) and (end := most_frequent_end(result)):
        return f"No program has produced a design yet, so there is no design to choose. {end}"
    if not len(outcomes):
        return "Nothing has been evaluated yet, so there is no design to choose."
    if outcomes.failed.all() and (clause := result.never_finite() or without_number(result)):
        return f"{clause[0].upper()}{clause[1:]}, so there is no design to choose."
    if outcomes.failed.all():
        return "No evaluation gave a result, so there is no design to choose; the failures say why."
    return "No design satisfies all limits, so there is no design to choose."


def without_number(result: Result) -> str:
    """How many designs have a result in all scenarios but an objective or a constraint that is not a number, in a
    clause; "" without any."""
    lost = np.flatnonzero(result.outcomes.failed & (result.status == "ok").all(axis=1))
    if not len(lost):
        return ""
    problem, figures = result.problem, result.outcomes.figures
    items: tuple[Objective | StudyConstraint, ...] = (*problem.objectives, *problem.constraints)
    for item in items:
        values = aggregate(problem, item, figures, len(result.outcomes.X), 1.0)[lost]
        wrong = int((~np.isfinite(values)).sum())
        if wrong:
            share = f"{wrong} of {plural(len(result.outcomes.X), 'design')}"
            over = f" over '{item.over.plugin.name}'" if len(problem.scenarios) > 1 else ""
            advice = f"; 'min({item.expression.text}, NUMBER)' gives them one" if (values == np.inf).any() else ""
            return f"'{item.name}'{over} is not a finite number for {share}, although evaluations gave results{advice}"
    return ""


def failed_baselines(result: Result) -> list[str]:
    """A clause for each design of the baseline without a result: the status of its first failed evaluation, or the
    objective or limit that is not finite."""
    stage = result.study.baseline
    clauses = []
    for name in listed_names(stage.solver) if stage is not None else ():
        row = result.named.get(name)
        if row is not None and result.outcomes.failed[row]:
            status = next((str(s) for s in result.status[row] if s != "ok"), "")
            reason = status or f"'{_not_finite(result, row)}' is not a finite number"
            clauses.append(f"{name}, of the baseline, has no result: {reason}")
    return clauses


def _not_finite(result: Result, row: int) -> str:
    """The name of the first objective or constraint of the design `row` that is not a finite number; "" without any."""
    problem, outcomes = result.problem, result.outcomes
    figures = {name: values[[row]] for name, values in outcomes.figures.items()}
    items: tuple[Objective | StudyConstraint, ...] = (*problem.objectives, *problem.constraints)
    return next((i.name for i in items if not np.isfinite(aggregate(problem, i, figures, 1, 1.0)).all()), "")


def most_frequent_end(result: Result) -> str:
    """The most frequent status of programs without a result, with its first message, in a line; "" if all have one."""
    failures = [record for record in result.programs() if not record.ok]
    if not failures:
        return ""
    ((status, number),) = Counter(record.status for record in failures).most_common(1)
    message = next((record.message for record in failures if record.status == status), "")
    first = first_sentences(message)
    share = f"{number} of {len(result.programs())}"
    return f"Most frequent end of a program: {status}, {share}" + (f", the first: {first}" if first else "")


def first_sentences(message: str) -> str:
    """The first sentences of a program's message, at least one, in about `LONGEST` letters."""
    sentences = re.split(r"(?<=\.) (?=[A-Z])", message)
    complete = [n for n in range(1, len(sentences) + 1) if len(" ".join(sentences[:n])) <= LONGEST]
    return " ".join(sentences[: max([1, *complete])])
