"""Reasons why a study has no design to choose."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from designopt.counts import plural
from designopt.problem.scoring import aggregate
from designopt.store.result import Result
from designopt.study.study import Objective, StudyConstraint

#: Length of a program's message in a line, to which complete sentences are shown.
LONGEST = 400


def without_feasible(result: Result) -> str:
    """The reason why there is no feasible design."""
    outcomes = result.outcomes
    if not len(outcomes) and (ended := most_frequent_end(result)):
        return f"No program has produced a design yet, so there is no design to choose. {ended}"
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
            return f"'{item.name}'{over} is not a finite number for {share}, although their evaluations gave results"
    return ""


def most_frequent_end(result: Result) -> str:
    """The most frequent status of programs without a result, with its first message, in a line; "" if all have one."""
    failed = [record for record in result.programs() if not record.ok]
    if not failed:
        return ""
    ((status, number),) = Counter(record.status for record in failed).most_common(1)
    message = next((record.message for record in failed if record.status == status), "")
    first = first_sentences(message, LONGEST)
    share = f"{number} of {len(result.programs())}"
    return f"Most frequent end of a program: {status}, {share}" + (f", the first: {first}" if first else "")


def first_sentences(message: str, length: int) -> str:
    """The first sentences of a program's message, at least one, in about `length` letters."""
    sentences = re.split(r"(?<=\.) (?=[A-Z])", message)
    complete = [n for n in range(1, len(sentences) + 1) if len(" ".join(sentences[:n])) <= length]
    return " ".join(sentences[: max([1, *complete])])
