"""Separable sharing problems of many frames, frames last, so that every array operation runs over all frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt_mechanics.sharing.solvers.matrices import FullMatrices, Matrices
from designopt_mechanics.sharing.statement.cost import Cost

Frames = Integers | slice


@dataclass(frozen=True, eq=False)
class Variables:
    """Bounds `lower` and `upper` (v, n or 1) of v variables, and what each costs."""

    lower: Floats
    upper: Floats
    cost: Cost

    def take(self, frames: Frames) -> Variables:
        """The problem of selected frames; arrays common to all frames stay unchanged."""
        if self.lower.shape[1] == self.upper.shape[1] == 1 and self.cost.steady:
            return self
        lower, upper = (a if a.shape[1] == 1 else a[:, frames] for a in (self.lower, self.upper))
        return Variables(lower, upper, self.cost.take(frames))

    def best(self, s: Floats) -> Floats:
        """(v, n) the x within the bounds at which cost less s x is least, for the `s` (v, n) of each."""
        return np.asarray(np.minimum(np.maximum(self.cost.inverse(s)[0], self.lower), self.upper))

    def best_and_slope(self, s: Floats) -> tuple[Floats, Floats]:
        """The x of `best`, and dx/ds, both (v, n)."""
        free_minimum, slope = self.cost.inverse(s)
        x = np.minimum(np.maximum(free_minimum, self.lower), self.upper)
        return x, slope * (x == free_minimum)


@dataclass(frozen=True, eq=False)
class Batch:
    """Problems of n frames with v variables and m rows: `matrix` (m, v, n), `right_side` (m, n)."""

    matrix: Matrices | FullMatrices
    right_side: Floats
    variables: Variables

    def take(self, frames: Frames) -> Batch:
        """Some of the frames."""
        return Batch(self.matrix.take(frames), self.right_side[:, frames], self.variables.take(frames))


@dataclass(frozen=True, eq=False)
class DualSolution:
    """`x` (v, n), `multipliers` (m, n), whether a frame `converged` (n,), the `iterations` (n,) it took, whether its
    multipliers prove that it is `infeasible` (n,)."""

    x: Floats
    multipliers: Floats
    converged: Mask
    iterations: Integers
    infeasible: Mask

    @classmethod
    def empty(cls, rows: int, variables: int, frames: int) -> DualSolution:
        """Batch of as many frames, without results yet."""
        return cls(
            np.empty((variables, frames)),
            np.empty((rows, frames)),
            np.zeros(frames, dtype=np.bool_),
            np.zeros(frames, dtype=np.int64),
            np.zeros(frames, dtype=np.bool_),
        )

    def assign(self, frames: Frames, part: DualSolution) -> None:
        """Write the results of selected frames; iterations are added."""
        self.x[:, frames] = part.x
        self.multipliers[:, frames] = part.multipliers
        self.converged[frames] = part.converged
        self.iterations[frames] += part.iterations
        self.infeasible[frames] = part.infeasible
