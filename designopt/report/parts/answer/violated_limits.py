"""Limits that no design meets together: number of violations of each, and the best value."""

from __future__ import annotations

from itertools import combinations, islice
from typing import NamedTuple

import numpy as np

from designopt.counts import percent, plural
from designopt.report.labels import listed, number, values_in_words
from designopt.report.section import Table
from designopt.store.result import Result
from designopt.store.views import activity
from designopt.store.views.activity import LimitActivity
from designopt.store.views.table import stated_constraints

#: Maximum number of named pairs, and of limits (the most violated) for pairs.
PAIRS, PAIRED = 3, 50
#: Maximum number of parameters in the words about a design.
NAMED = 8

_SIGNS = {"min": "≥", "max": "≤", "equals": "="}


class BrokenLimit(NamedTuple):
    """A limit in words, with its unit, and its values for all designs."""

    text: str
    unit: str
    activity: LimitActivity

    @property
    def share(self) -> float:
        """The share of the designs with a result that violate it."""
        return float(self.activity.violated.sum() / max(int(self.activity.has_value.sum()), 1))

    @property
    def distance(self) -> float:
        """Smallest violation, relative to the limit's size; negative within the limit."""
        return float(-self.activity.margin[self.activity.best] / (abs(self.activity.limit) or 1.0))

    @property
    def best(self) -> str:
        """The value nearest to meeting it, with its unit."""
        return f"{number(float(self.activity.values[self.activity.best]))} {self.unit}".rstrip()


def broken_limits(result: Result) -> list[BrokenLimit]:
    """The limits of `violations` if no design meets all limits; else empty."""
    return [] if result.outcomes.feasible.any() else violations(result)


def violations(result: Result) -> list[BrokenLimit]:
    """The limits violated by designs with a result, most violated first, then by `distance`."""
    limits = [
        BrokenLimit(f"{c.name} {_SIGNS[limit.side]} {number(limit.limit)} {c.unit}".rstrip(), c.unit, limit)
        for c in stated_constraints(result.problem)
        for limit in activity.limits(result.problem, result.outcomes, c)
        if limit.violated.any()
    ]
    return sorted(limits, key=lambda limit: (-limit.share, -limit.distance))


def conflicts(limits: list[BrokenLimit]) -> list[str]:
    """Sentences about pairs of limits that some designs meet separately, but none together."""
    apart = (
        f"No evaluated design satisfies both {a.text} and {b.text}."
        for a, b in combinations([limit for limit in limits if limit.share < 1.0][:PAIRED], 2)
        if not np.any(a.activity.has_value & b.activity.has_value & ~a.activity.violated & ~b.activity.violated)
    )
    return list(islice(apart, PAIRS))


def mostly_infeasible(result: Result) -> list[str]:
    """A clause on the limit that most designs violate, if some of those with a result are feasible, but fewer than
    half; else none."""
    outcomes = result.outcomes
    result_count, feasible = int((~outcomes.failed).sum()), int(outcomes.feasible.sum())
    if not 0 < 2 * feasible < result_count or not (limits := violations(result)):
        return []
    first = limits[0]
    share = f"{result_count - feasible} of {plural(result_count, 'design')} with a result violate limits"
    return [f"{share}: {int(first.activity.violated.sum())} violate {first.text}, more than any other limit"]


def findings(result: Result) -> list[str]:
    """Why no design meets all limits, in sentences: limits that all violate, pairs that none meets together, else the
    most violated limit."""
    limits = broken_limits(result)
    sentences = [
        f"Every design violates {limit.text}: the best has {limit.best} (design {limit.activity.best})."
        for limit in limits
        if limit.share == 1.0
    ]
    sentences += conflicts(limits)
    if limits and not sentences:
        first = limits[0]
        violations, results = int(first.activity.violated.sum()), int(first.activity.has_value.sum())
        sentences.append(
            f"{violations} of {plural(results, 'design')} violate {first.text}, more than any other limit."
        )
    return [*sentences, *nearest(result)]


def nearest(result: Result) -> list[str]:
    """A sentence about the design with the smallest violation, and one about the bounds that it has reached."""
    row = result.least_violating()
    if row is None:
        return []
    words = values_in_words(result, row, limit=NAMED)
    end = "" if words.endswith("…") else "."
    sentences = [f"Design {row} violates the limits least{f': {words}' if words else ''}{end}"]
    free = {p.name: p for p in result.problem.space.free}
    bounds = [] if result.study.lists_designs else result.attained_bounds(np.array([row]))
    bound_names = [
        f"the {'lower' if side == 'low' else 'upper'} bound of {name}"
        f" ({number(free[name].low if side == 'low' else free[name].high)} {free[name].unit}".rstrip()
        + ")"
        for name, side, _ in bounds
    ]
    return [*sentences, *([f"It is at {listed(bound_names)}: feasible designs may lie beyond."] if bound_names else [])]


def table(result: Result) -> Table | None:
    """The violated limits for the page; None if a design meets all limits."""
    rows = tuple(
        (
            limit.text,
            int(limit.activity.violated.sum()),
            percent(limit.share, 1),
            limit.best,
            limit.activity.best,
        )
        for limit in broken_limits(result)
    )
    head = ("limit", "violated by", "share of results", "best value", "design")
    return Table("Violated limits", head, rows) if rows else None


def lines(limits: list[BrokenLimit]) -> list[list[str]]:
    """The same for the terminal, its head first."""
    rows = [
        [
            limit.text,
            f"{int(limit.activity.violated.sum())} of {int(limit.activity.has_value.sum())}",
            limit.best,
            str(limit.activity.best),
        ]
        for limit in limits
    ]
    return [["limit", "violated by", "best value", "design"], *rows]
