"""Limits that no design meets together: number of violations of each, and the best value."""

from __future__ import annotations

from itertools import combinations, islice
from typing import NamedTuple

import numpy as np

from designopt.counts import count, plural
from designopt.report.labels import number
from designopt.report.section import Table
from designopt.store.result import Result
from designopt.store.views import activity
from designopt.store.views.activity import LimitActivity
from designopt.store.views.table import stated_constraints

#: Maximum number of named pairs, and of limits (the most violated) for pairs.
PAIRS, PAIRED = 3, 50

_SIGNS = {"min": "≥", "max": "≤", "equals": "="}


class BrokenLimit(NamedTuple):
    """A limit in words, with its unit, and its values for all designs."""

    text: str
    unit: str
    of: LimitActivity

    @property
    def share(self) -> float:
        """The share of the designs with a result that violate it."""
        return float(self.of.broken.sum() / max(int(self.of.known.sum()), 1))

    @property
    def distance(self) -> float:
        """Smallest violation, relative to the limit's size; negative within the limit."""
        return float(-self.of.margin[self.of.best] / (abs(self.of.limit) or 1.0))

    @property
    def best(self) -> str:
        """The value nearest to meeting it, with its unit."""
        return f"{number(float(self.of.values[self.of.best]))} {self.unit}".rstrip()


def broken_limits(result: Result) -> list[BrokenLimit]:
    """The limits violated by designs with a result, most violated first, then by `distance`. Empty if a design meets
    all limits."""
    if result.outcomes.feasible.any():
        return []
    limits = [
        BrokenLimit(f"{c.name} {_SIGNS[limit.side]} {number(limit.limit)} {c.unit}".rstrip(), c.unit, limit)
        for c in stated_constraints(result.problem)
        for limit in activity.limits(result.problem, result.outcomes, c)
        if limit.broken.any()
    ]
    return sorted(limits, key=lambda one: (-one.share, -one.distance))


def conflicts(limits: list[BrokenLimit]) -> list[str]:
    """Sentences about pairs of limits that some designs meet separately, but none together."""
    apart = (
        f"No evaluated design satisfies both {a.text} and {b.text}."
        for a, b in combinations([one for one in limits if one.share < 1.0][:PAIRED], 2)
        if not np.any(a.of.known & b.of.known & ~a.of.broken & ~b.of.broken)
    )
    return list(islice(apart, PAIRS))


def findings(result: Result) -> list[str]:
    """Why no design meets all limits, in sentences: limits that all violate, pairs that none meets together, else the
    most violated limit."""
    limits = broken_limits(result)
    sentences = [
        f"Every design violates {one.text}: the best has {one.best} (design {one.of.best})."
        for one in limits
        if one.share == 1.0
    ]
    sentences += conflicts(limits)
    if limits and not sentences:
        first = limits[0]
        broken, evaluated = int(first.of.broken.sum()), int(first.of.known.sum())
        sentences.append(f"{count(broken)} of {plural(evaluated, 'design')} violate {first.text}, more than any other limit.")
    return sentences


def table(result: Result) -> Table | None:
    """The violated limits for the page; None if a design meets all limits."""
    rows = tuple(
        (one.text, int(one.of.broken.sum()), f"{one.share:.1%}".replace("%", " %"), one.best, one.of.best)
        for one in broken_limits(result)
    )
    head = ("limit", "violated by", "share of results", "best value", "design")
    return Table("Violated limits", head, rows) if rows else None


def lines(limits: list[BrokenLimit]) -> list[list[str]]:
    """The same for the terminal, its head first."""
    rows = [
        [one.text, f"{count(int(one.of.broken.sum()))} of {count(int(one.of.known.sum()))}", one.best, str(one.of.best)]
        for one in limits
    ]
    return [["limit", "violated by", "best value", "design"], *rows]
