"""Active bounds of the space and active limits, as data for the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt.problem import Outcomes, Problem, unequal
from designopt.space import Space
from designopt.study.study import StudyConstraint

#: Relative distance from a bound (of the range) or from a limit (of its size) within which it is active.
NEAR = 0.01

Side = Literal["min", "max", "equals"]
Rows = Integers


class BoundShare(NamedTuple):
    """The `share` of some designs with `parameter` at the bound `side` of its range."""

    parameter: str
    side: Literal["low", "high"]
    share: float


class Activity(NamedTuple):
    """Effect of a constraint on some designs: the share at one of its limits, the share that violates it, and the
    smallest distance from a limit in the constraint's unit, negative beyond it (NaN without values)."""

    constraint: str
    active: float
    violated: float
    margin: float


class LimitActivity(NamedTuple):
    """One limit of a constraint: the limited values (n,) of all designs, their distances (n,) from it, negative beyond,
    and a mask of those at the limit."""

    side: Side
    limit: float
    values: Floats
    margin: Floats
    active: Mask

    @property
    def has_value(self) -> Mask:
        """Mask (n,) of the designs with a value."""
        return np.isfinite(self.margin)

    @property
    def violated(self) -> Mask:
        """Mask (n,) of the designs that violate it."""
        return np.asarray(self.has_value & (self.margin < 0.0))

    @property
    def best(self) -> int:
        """The row of the design with the largest margin, or the smallest violation."""
        return int(np.argmax(np.where(self.has_value, self.margin, -np.inf)))


def attained_bounds(space: Space, X: Floats, near: float = NEAR) -> list[BoundShare]:
    """The bounds that designs `X` have reached, within the share `near` of the range. Choices have none; a conditional
    parameter counts in designs in which it is active."""
    bounds = []
    S, active = space.to_search(X), space.active(X)
    for j, p in enumerate(space.free):
        rows = active[:, j]
        if p.kind == "choice" or not rows.any():
            continue
        width = space.upper[j] - space.lower[j]
        slack = 0.5 if p.kind == "int" else 0.0
        gaps = (S[rows, j] - space.lower[j] - slack, space.upper[j] - slack - S[rows, j])
        low, high = (float(np.mean(gap <= near * width)) for gap in gaps)
        bounds += [BoundShare(p.name, "low", low)] * (low > 0.0) + [BoundShare(p.name, "high", high)] * (high > 0.0)
    return bounds


def limits(problem: Problem, outcomes: Outcomes, constraint: StudyConstraint) -> Iterator[LimitActivity]:
    """The limits of `constraint` with the values of all designs.

    A value is at a limit within `NEAR` of the limit's size (of the range of feasible values for a limit of 0). Integer
    values do not count: they meet a limit by their nature.
    """
    low, high = problem.limited(constraint, outcomes.figures, len(outcomes))
    with np.errstate(invalid="ignore"):
        for side, limit, values, sign in (("min", constraint.minimum, low, 1), ("max", constraint.maximum, high, -1)):
            if limit is not None:
                margin = sign * (values - limit)
                near = np.abs(margin) <= NEAR * _size(outcomes, values, limit)
                yield LimitActivity(side, limit, values, margin, near & (not is_count(values)))  # type: ignore[arg-type]
        if constraint.equals is not None:
            off = unequal(low, high, constraint.equals)
            yield LimitActivity("equals", constraint.equals, high, 0.0 - off, off == 0.0)


def constraint_activity(problem: Problem, outcomes: Outcomes, rows: Rows) -> list[Activity]:
    """The effect of each constraint on the designs `rows`; one whose share `active` is 0 is inactive there."""
    activities = []
    for constraint in problem.constraints:
        sides = list(limits(problem, outcomes, constraint))
        margin = np.min([side.margin[rows] for side in sides], axis=0)
        has_margin = np.isfinite(margin)
        active = np.any([side.active[rows] for side in sides], axis=0)[has_margin]
        if len(active):
            violating, least = float(np.mean(margin[has_margin] < 0.0)), float(margin[has_margin].min())
            activities.append(Activity(constraint.name, float(active.mean()), violating, least))
        else:
            activities.append(Activity(constraint.name, 0.0, 0.0, np.nan))
    return activities


def is_count(values: Floats) -> bool:
    """Whether all finite `values` are integers."""
    finite = values[np.isfinite(values)]
    return bool(np.all(finite == np.rint(finite)))


def _size(outcomes: Outcomes, values: Floats, limit: float) -> float:
    """The reference for closeness to a limit. Not the range of all values: with designs far outside, everything within
    the limit would be close to it."""
    if limit:
        return abs(limit)
    feasible = values[outcomes.feasible & np.isfinite(values)]
    return float(np.ptp(feasible)) if len(feasible) else 0.0
