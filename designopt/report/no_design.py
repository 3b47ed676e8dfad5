"""Why a study has no design to choose."""

from __future__ import annotations

import textwrap
from collections import Counter

from designopt.store.result import Result

#: Of the message of a program so many characters are shown in a line.
LONGEST = 240


def without_feasible(result: Result) -> str:
    """Why there is nothing to choose from."""
    outcomes = result.outcomes
    if not len(outcomes) and (ended := most_frequent_end(result)):
        return f"No program has produced a design yet, so there is no design to choose. {ended}"
    if not len(outcomes):
        return "Nothing has been evaluated yet, so there is no design to choose."
    if outcomes.failed.all():
        return "No evaluation gave a result, so there is no design to choose; the failures say why."
    return "No design satisfies all limits, so there is no design to choose."


def most_frequent_end(result: Result) -> str:
    """How most programs without a result ended, and what was said first, in a line; "" where all have one."""
    failed = [record for record in result.programs() if not record.ok]
    if not failed:
        return ""
    ((status, number),) = Counter(record.status for record in failed).most_common(1)
    said = next((record.message for record in failed if record.status == status), "")
    first = textwrap.shorten(said, LONGEST, placeholder=" ...")
    share = f"{number} of {len(result.programs())}"
    return f"Most frequent end of a program: {status}, {share}" + (f", the first: {first}" if first else "")
