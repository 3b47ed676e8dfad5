"""A convex problem in each of many frames, as the interior-point method takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from designopt.arrays import Floats, Integers


class ConvexCost(Protocol):
    """A convex function of the variables of each frame."""

    def at(self, x: Floats, frames: Integers) -> tuple[Floats, Floats]:
        """Gradient (n, v) and Hessian, (n, v) if diagonal or (n, v, v), at `x` (n, v) of these frames."""


class ConvexLimits(Protocol):
    """Convex functions of the variables with upper bound 0.

    `arrow`: each is a function of one variable, which no other has, and of the last one; systems are then solved by
    elimination.
    """

    @property
    def count(self) -> int:
        """How many."""

    @property
    def arrow(self) -> bool:
        """See above."""

    def at(self, x: Floats, frames: Integers) -> tuple[Floats, Floats]:
        """Values (n, c) and gradients (n, c, v) at `x` (n, v) of these frames."""

    def bend(self, multipliers: Floats, frames: Integers) -> Floats | None:
        """(n, v, v) the sum of their Hessians times `multipliers` (n, c), which they do not depend on x; or None."""


@dataclass(frozen=True, eq=False)
class ConvexProblem:
    """``min f(x) subject to matrix x = right_side, lower <= x <= upper, limits(x) <= 0`` in each of n frames.

    `matrix` (n, m, v), `right_side` (n, m), `lower` and `upper` (n, v), infinite without a bound. A variable with equal
    bounds is fixed.
    """

    objective: ConvexCost
    matrix: Floats
    right_side: Floats
    lower: Floats
    upper: Floats
    limits: ConvexLimits | None = None
