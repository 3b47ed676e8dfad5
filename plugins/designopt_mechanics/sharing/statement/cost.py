"""The cost of one variable, a convex function whose slope can be inverted: what makes the dual problem small."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Floats

#: Newton steps that invert the slope of a sum of a power and a square; the iteration is monotone and quadratic.
_STEPS = 60


@dataclass(frozen=True, eq=False)
class Cost:
    """``w g(x) + q x^2 / 2 + b x`` for every variable, g(x) = |x|^p or, if `saturating`, -sqrt(1 - x^2).

    All arrays broadcast with x, of shape (variables, frames or 1). Where w is 0 the cost is a quadratic function and p
    does not matter. Every variable has w > 0 with p > 1, or q > 0, in the methods that invert the slope.
    """

    weight: Floats
    exponent: Floats
    quadratic: Floats
    linear: Floats
    saturating: bool = False

    @cached_property
    def is_quadratic(self) -> bool:
        """Whether no variable has a power in its cost."""
        return not np.any(self.weight)

    @property
    def steady(self) -> bool:
        """Whether the cost is the same in all frames."""
        return all(part.shape[1] == 1 for part in (self.weight, self.quadratic, self.linear))

    @property
    def invertible(self) -> bool:
        """Whether every slope has one x: every variable has a square, or a power above 1."""
        powers = (self.weight > 0) & (np.asarray(self.saturating) | (self.exponent > 1.0))
        return bool(np.all(powers | (self.quadratic > 0)))

    def take(self, frames: Any) -> Cost:
        """The cost of some of the frames (indices, mask or slice)."""
        if self.steady:
            return self

        def part(array: Floats) -> Floats:
            return array if array.shape[1] == 1 else array[:, frames]

        return replace(self, weight=part(self.weight), quadratic=part(self.quadratic), linear=part(self.linear))

    def rows(self, variables: Any) -> Cost:
        """The cost of some of the variables (indices or mask)."""
        return Cost(
            self.weight[variables],
            self.exponent[variables],
            self.quadratic[variables],
            self.linear[variables],
            self.saturating,
        )

    def value(self, x: Floats) -> Floats:
        """(variables, frames) the cost of each variable."""
        total = x * (0.5 * self.quadratic * x + self.linear)
        if self.is_quadratic:
            return total
        if self.saturating:
            with np.errstate(invalid="ignore"):
                return np.asarray(total - np.where(self.weight > 0, self.weight * np.sqrt(1.0 - x * x), 0.0))
        return np.asarray(total + self.weight * np.abs(x) ** self.exponent)

    def slope(self, x: Floats) -> Floats:
        """(variables, frames) the first derivatives."""
        total = self.quadratic * x + self.linear
        if self.is_quadratic:
            return total
        if self.saturating:
            with np.errstate(invalid="ignore", divide="ignore"):
                return np.asarray(total + np.where(self.weight > 0, self.weight * x / np.sqrt(1.0 - x * x), 0.0))
        return np.asarray(total + self.weight * self.exponent * np.abs(x) ** (self.exponent - 1.0) * np.sign(x))

    def curvature(self, x: Floats) -> Floats:
        """(variables, frames) the second derivatives."""
        total = np.broadcast_to(self.quadratic, np.broadcast_shapes(self.quadratic.shape, x.shape))
        if self.is_quadratic:
            return total
        p = self.exponent
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.saturating:
                bend = self.weight / (1.0 - x * x) ** 1.5
            else:
                bend = self.weight * p * (p - 1.0) * np.abs(x) ** (p - 2.0)
        return np.asarray(total + np.where((self.weight > 0) & (p != 1.0), bend, 0.0))

    def inverse(self, s: Floats) -> tuple[Floats, Floats]:
        """The x at which the slope is `s` (variables, frames), and dx/ds, which broadcasts with it."""
        difference = s - self.linear
        if self.is_quadratic:
            return difference / self.quadratic, 1.0 / self.quadratic
        size = np.abs(difference)
        x = self._inverse_of_size(size)
        curvature = np.maximum(self.curvature(x), 1e-300)
        return np.copysign(x, difference), 1.0 / curvature

    def _inverse_of_size(self, size: Floats) -> Floats:
        """The x >= 0 at which the slope without its constant is `size` >= 0."""
        w, p, q = self.weight, self.exponent, self.quadratic
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.saturating:
                ratio = size / w
                curve_x = np.where(w > 0, ratio / np.sqrt(1.0 + ratio * ratio), np.inf)
                curve_x = np.where((w > 0) & ~np.isfinite(ratio), 1.0, curve_x)
            else:
                curve_x = np.where(w > 0, (size / (w * p)) ** (1.0 / (p - 1.0)), np.inf)
            straight = np.where(q > 0, size / q, np.inf)
        x = np.minimum(curve_x, straight)
        if not np.any((w > 0) & (q > 0)):
            return np.asarray(x)
        has_both = np.broadcast_to((w > 0) & (q > 0), x.shape)
        bare = replace(self, linear=np.zeros((1, 1)))
        for _ in range(_STEPS):  # the slope is convex on x >= 0 and x starts above the root: monotone from above
            with np.errstate(divide="ignore", invalid="ignore"):
                step = (bare.slope(x) - size) / bare.curvature(x)
            step = np.where(has_both & (x > 0), np.maximum(step, 0.0), 0.0)
            x = np.maximum(x - step, 0.0)
            if not np.any(step > 1e-15 * x):
                break
        return np.asarray(x)
