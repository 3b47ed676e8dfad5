"""Laws of forces that follow from the motion alone: limits and springs of coordinates, springs and ligaments on paths.

They and their constants are those of OpenSim 4.6 (opensim-core, the classes of the same names).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from designopt.arrays import Floats
from designopt.study.language.expressions.expression import Expression
from designopt_muscle.osim.functions import Function


class CoordinateForceLaw(Protocol):
    """A generalised force (N m or N) by the value `q` (rad or m) and rate `u` of its coordinate."""

    def force(self, q: Floats, u: Floats) -> Floats:
        """(n,) at `q` and `u` (n,)."""


class PathLaw(Protocol):
    """A tension (N) by the length `l` (m) of a path and its rate `v` (m/s)."""

    def tension(self, l: Floats, v: Floats) -> Floats:  # noqa: E741
        """(n,) at `l` and `v` (n,)."""


@dataclass(frozen=True)
class CoordinateLimit:
    """Springs (N m/rad or N/m) beyond `lower` and `upper`, with a damping that sets in over the way `transition`."""

    lower: float
    upper: float
    lower_stiffness: float
    upper_stiffness: float
    damping: float
    transition: float

    def force(self, q: Floats, u: Floats) -> Floats:
        above = smooth_step((q - self.upper) / self.transition)
        below = smooth_step((self.lower - q) / self.transition)
        spring = self.lower_stiffness * below * (self.lower - q) - self.upper_stiffness * above * (q - self.upper)
        return np.asarray(spring - self.damping * (above + below) * u)


@dataclass(frozen=True)
class CoordinateSpring:
    """A linear spring and damper at a coordinate."""

    stiffness: float
    rest_position: float
    viscosity: float

    def force(self, q: Floats, u: Floats) -> Floats:
        return -self.stiffness * (q - self.rest_position) - self.viscosity * u


@dataclass(frozen=True)
class CoordinateExpression:
    """An expression of `q` and `qdot`."""

    expression: Expression

    def force(self, q: Floats, u: Floats) -> Floats:
        return np.broadcast_to(np.asarray(self.expression.evaluate({"q": q, "qdot": u}), dtype=float), q.shape)


@dataclass(frozen=True)
class StretchSpring:
    """A spring (N/m) beyond the length `rest_length` (m), with a `dissipation` (s/m) in proportion to its force."""

    stiffness: float
    rest_length: float
    dissipation: float

    def tension(self, l: Floats, v: Floats) -> Floats:  # noqa: E741
        return np.asarray(self.stiffness * np.maximum(l - self.rest_length, 0.0) * (1.0 + self.dissipation * v))


@dataclass(frozen=True, eq=False)
class LigamentCurve:
    """A force (N) times a curve of length / `rest_length`, where it is longer."""

    rest_length: float
    force: float
    curve: Function

    def tension(self, l: Floats, v: Floats) -> Floats:  # noqa: E741
        return np.where(l > self.rest_length, self.force * self.curve.value(l / self.rest_length), 0.0)


@dataclass(frozen=True)
class Blankevoort:
    """A ligament with a toe region below the strain `transition`, then `stiffness` (N), and `damping` (N s) in
    tension (Blankevoort and Huiskes 1991)."""

    slack: float
    stiffness: float
    transition: float
    damping: float

    def tension(self, l: Floats, v: Floats) -> Floats:  # noqa: E741
        strain, rate = l / self.slack - 1.0, v / self.slack
        toe = 0.5 * self.stiffness / self.transition * strain**2
        spring = np.where(strain < self.transition, toe, self.stiffness * (strain - 0.5 * self.transition))
        damping = self.damping * np.maximum(rate, 0.0) * smooth_step(strain / 0.01)
        return np.where(strain > 0.0, spring + damping, 0.0)


def smooth_step(x: Floats) -> Floats:
    """A step from 0 at `x` = 0 to 1 at 1, with two continuous derivatives (10 x^3 - 15 x^4 + 6 x^5)."""
    s = np.clip(x, 0.0, 1.0)
    return np.asarray(s**3 * (10.0 - 15.0 * s + 6.0 * s**2))
