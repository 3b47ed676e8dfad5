"""A sharing problem as numbers: the variables of each frame, their rows, bounds, cost and limits.

The variables of a frame are activations a (or, with synergies, their commands h with a = W h), controls r of reserves
(with a cost |r| two of them, r = r+ - r-), and for the smallest maximum the bound t of all activations.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from designopt.arrays import Floats, Integers
from designopt_mechanics.sharing.statement.convex import ConvexProblem
from designopt_mechanics.sharing.statement.cost import Cost
from designopt_mechanics.sharing.statement.criteria import Criterion, JointReaction, Power, Tracking
from designopt_mechanics.sharing.statement.limits import AllLimits


@dataclass(frozen=True, eq=False)
class Terms:
    """Objective and constraints besides the balance of moments.

    `weights` (k,) of the muscles, 1 by default. With `stress` the force per cross-section F a / F_o replaces the
    activation in the criterion. `synergies` (k, s) is W, not negative. `rate_limit` (s) is the minimum time for an
    activation to change from 0 to 1: frames are then solved together.
    """

    criterion: Criterion = field(default_factory=Power)
    weights: Floats | None = None
    stress: bool = False
    tracking: Tracking | None = None
    synergies: Floats | None = None
    reactions: tuple[JointReaction, ...] = ()
    rate_limit: float | None = None


@dataclass(frozen=True, eq=False)
class Formulation:
    """The problems of n frames with m rows and v variables.

    `matrix` (n, m, v) and `right_side` (n, m) are relative to the sizes `rows` (m,) of the rows, the cost is relative
    to `scale`. `lower`, `upper` (n, v). `to_activation` (k, v) and `to_reserve` (m, v) map the variables. `cost` is a
    function of the variables, or of ``inner x`` (i, v) if that is given; `quadratic` (n, v, v), `linear` (n, v) and
    `constant` (n,) are added to it.
    """

    matrix: Floats
    right_side: Floats
    lower: Floats
    upper: Floats
    cost: Cost
    rows: Floats
    scale: float
    to_activation: Floats
    to_reserve: Floats
    constant: Floats
    inner: Floats | None = None
    quadratic: Floats | None = None
    linear: Floats | None = None
    limits: AllLimits | None = None

    @property
    def separable(self) -> bool:
        """Whether the problems are sums over the variables with bounds alone."""
        return self.inner is None and self.quadratic is None and self.limits is None

    def take(self, frames: Integers) -> Formulation:
        """The problems of some frames."""
        return Formulation(
            self.matrix[frames],
            self.right_side[frames],
            self.lower[frames],
            self.upper[frames],
            self.cost.take(frames),
            self.rows,
            self.scale,
            self.to_activation,
            self.to_reserve,
            self.constant[frames],
            self.inner,
            None if self.quadratic is None else self.quadratic[frames],
            None if self.linear is None else self.linear[frames],
            None if self.limits is None else self.limits.take(frames),
        )

    def problem(self) -> ConvexProblem:
        """The problem for the interior-point method."""
        objective = _Objective(self.cost, self.inner, self.quadratic, self.linear)
        return ConvexProblem(objective, self.matrix, self.right_side, self.lower, self.upper, self.limits)

    def value(self, x: Floats) -> Floats:
        """(n,) the cost of the variables `x` (n, v) in the units of the criterion."""
        total = self.cost.value((x if self.inner is None else x @ self.inner.T).T).sum(axis=0)
        if self.quadratic is not None:
            total = total + 0.5 * np.einsum("nv,nvw,nw->n", x, self.quadratic, x)
        if self.linear is not None:
            total = total + (self.linear * x).sum(axis=1)
        return np.asarray(total * self.scale + self.constant)

    def slope(self, x: Floats) -> Floats:
        """(n, v) the gradient of the cost at `x`, relative to `scale`."""
        objective = _Objective(self.cost, self.inner, self.quadratic, self.linear)
        return objective.at(x, np.arange(len(x)))[0]


@dataclass(frozen=True, eq=False)
class _Objective:
    cost: Cost
    inner: Floats | None
    quadratic: Floats | None
    linear: Floats | None

    def at(self, x: Floats, frames: Integers) -> tuple[Floats, Floats]:
        cost = self.cost.take(frames)
        activations = x if self.inner is None else x @ self.inner.T
        gradient, hessian = cost.slope(activations.T).T, np.asarray(cost.curvature(activations.T).T)
        if self.inner is not None:
            gradient = gradient @ self.inner
            hessian = np.matmul(self.inner.T * hessian[:, None, :], self.inner)
        if self.quadratic is not None:
            quadratic = self.quadratic[frames]
            gradient = gradient + np.matmul(quadratic, x[:, :, None])[:, :, 0]
            if hessian.ndim == 2:
                full = np.array(quadratic)
                index = np.arange(x.shape[1])
                full[:, index, index] += hessian
                hessian = full
            else:
                hessian = hessian + quadratic
        if self.linear is not None:
            gradient = gradient + self.linear[frames]
        return np.asarray(gradient), np.asarray(hessian)
