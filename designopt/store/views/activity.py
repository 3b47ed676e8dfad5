"""Bounds of the space that designs have reached, and limits that hold them back, as data; the report says them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from designopt.arrays import Integers, Mask, Matrix
from designopt.problem import Outcomes, Problem, unequal
from designopt.space import Space
from designopt.study.study import StudyConstraint

#: A value this share of its range away from a bound, or of a limit's size away from it, has reached it.
NEAR = 0.01

Side = Literal["min", "max", "equals"]
Rows = Integers


class Attained(NamedTuple):
    """`share` of some designs have `parameter` at the bound `side` of its range."""

    parameter: str
    side: Literal["low", "high"]
    share: float


class Activity(NamedTuple):
    """How a constraint shapes some designs: the shares that touch one of its limits and that pass it, and the smallest
    distance from a limit in the constraint's unit, negative where it is passed (NaN where nothing is known)."""

    constraint: str
    active: float
    violated: float
    margin: float


class LimitActivity(NamedTuple):
    """One limit of a constraint: the values (n,) of all designs that it limits, their distances (n,) from it, negative
    beyond, and which of them touch it."""

    side: Side
    limit: float
    values: Matrix
    margin: Matrix
    active: Mask

    @property
    def known(self) -> Mask:
        """The designs (n,) of which it is known whether they keep the limit."""
        return np.isfinite(self.margin)

    @property
    def broken(self) -> Mask:
        """The designs (n,) that break it."""
        return np.asarray(self.known & (self.margin < 0.0))

    @property
    def best(self) -> int:
        """The row of the design that keeps it best, or comes nearest to it."""
        return int(np.argmax(np.where(self.known, self.margin, -np.inf)))


def attained_bounds(space: Space, X: Matrix, near: float = NEAR) -> list[Attained]:
    """The bounds that designs `X` have reached, to within the share `near` of the range. Choices have none; of a
    conditional parameter, designs in which it is active count."""
    found = []
    S, active = space.to_search(X), space.active(X)
    for j, p in enumerate(space.free):
        rows = active[:, j]
        if p.kind == "choice" or not rows.any():
            continue
        width = space.upper[j] - space.lower[j]
        slack = 0.5 if p.kind == "int" else 0.0
        gaps = (S[rows, j] - space.lower[j] - slack, space.upper[j] - slack - S[rows, j])
        low, high = (float(np.mean(gap <= near * width)) for gap in gaps)
        found += [Attained(p.name, "low", low)] * (low > 0.0) + [Attained(p.name, "high", high)] * (high > 0.0)
    return found


def limits(problem: Problem, outcomes: Outcomes, constraint: StudyConstraint) -> Iterator[LimitActivity]:
    """The limits of `constraint` with what is known about them of all designs.

    A value touches a limit when it is within `NEAR` of the limit's size (of the range of feasible values when the limit
    is 0). Where all values are whole numbers none does: those meet a limit by what they are.
    """
    low, high = problem.limited(constraint, outcomes.figures, len(outcomes))
    with np.errstate(invalid="ignore"):
        for side, limit, values, sign in (("min", constraint.minimum, low, 1), ("max", constraint.maximum, high, -1)):
            if limit is not None:
                margin = sign * (values - limit)
                near = np.abs(margin) <= NEAR * _size(outcomes, values, limit)
                yield LimitActivity(side, limit, values, margin, near & ~_counted(values))  # type: ignore[arg-type]
        if constraint.equals is not None:
            off = unequal(low, high, constraint.equals)
            yield LimitActivity("equals", constraint.equals, high, 0.0 - off, off == 0.0)


def constraint_activity(problem: Problem, outcomes: Outcomes, rows: Rows) -> list[Activity]:
    """How each constraint shapes the designs `rows`; one whose share `active` is 0 is inactive there."""
    found = []
    for constraint in problem.constraints:
        sides = list(limits(problem, outcomes, constraint))
        margin = np.min([side.margin[rows] for side in sides], axis=0)
        known = np.isfinite(margin)
        active = np.any([side.active[rows] for side in sides], axis=0)[known]
        if len(active):
            passed, least = float(np.mean(margin[known] < 0.0)), float(margin[known].min())
            found.append(Activity(constraint.name, float(active.mean()), passed, least))
        else:
            found.append(Activity(constraint.name, 0.0, 0.0, np.nan))
    return found


def _counted(values: Matrix) -> bool:
    finite = values[np.isfinite(values)]
    return bool(np.all(finite == np.rint(finite)))


def _size(outcomes: Outcomes, values: Matrix, limit: float) -> float:
    """What closeness to a limit is measured by. Not the range of all values: designs far outside would make everything
    within the limit look close to it."""
    if limit:
        return abs(limit)
    feasible = values[outcomes.feasible & np.isfinite(values)]
    return float(np.ptp(feasible)) if len(feasible) else 0.0
