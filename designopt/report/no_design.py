"""Reasons why a study has no design to choose."""

from __future__ import annotations

import textwrap
from collections import Counter

from designopt.store.result import Result

#: Maximum length of a program's message in a line.
LONGEST = 240


def without_feasible(result: Result) -> str:
    """The reason why there is no feasible design."""
    outcomes = result.outcomes
    if not len(outcomes) and (ended := most_frequent_end(result)):
        return f"No program has produced a design yet, so there is no design to choose. {ended}"
    if not len(outcomes):
        return "Nothing has been evaluated yet, so there is no design to choose."
    if outcomes.failed.all():
        return "No evaluation gave a result, so there is no design to choose; the failures say why."
    return "No design satisfies all limits, so there is no design to choose."


def most_frequent_end(result: Result) -> str:
    """The most frequent status of programs without a result, with its first message, in a line; "" if all have one."""
    failed = [record for record in result.programs() if not record.ok]
    if not failed:
        return ""
    ((status, number),) = Counter(record.status for record in failed).most_common(1)
    said = next((record.message for record in failed if record.status == status), "")
    first = textwrap.shorten(said, LONGEST, placeholder=" ...")
    share = f"{number} of {len(result.programs())}"
    return f"Most frequent end of a program: {status}, {share}" + (f", the first: {first}" if first else "")
