"""Functions of one coordinate in OpenSim models, with their derivatives, of arrays and as CasADi expressions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from designopt_mechanics.functions.piecewise import choose

from designopt.arrays import Floats, Integers
from designopt.lazy import casadi as ca


class Function(Protocol):
    """A function of one variable."""

    def value(self, x: Floats) -> Floats:
        """Values at `x` (n,)."""

    def slope(self, x: Floats) -> Floats:
        """First derivatives at `x` (n,)."""

    def expression(self, x: Any) -> Any:
        """The function of a CasADi expression."""


@dataclass(frozen=True)
class Polynomial:
    """`coefficients`, highest power first: constants and lines too."""

    coefficients: tuple[float, ...]

    def value(self, x: Floats) -> Floats:
        return x if self.coefficients == (1.0, 0.0) else np.asarray(np.polyval(self.coefficients, x))

    def slope(self, x: Floats) -> Floats:
        if len(self.coefficients) == 2:
            return np.full(np.shape(x), self.coefficients[0])
        return np.asarray(np.polyval(np.polyder(np.asarray(self.coefficients)), x))

    def expression(self, x: Any) -> Any:
        total: Any = 0.0
        for coefficient in self.coefficients:
            total = total * x + coefficient
        return total


def is_constant(function: Function) -> bool:
    """Whether a function is the same everywhere."""
    if isinstance(function, ScaledFunction):
        return is_constant(function.inner)
    return isinstance(function, Polynomial) and not any(function.coefficients[:-1])


@dataclass(frozen=True)
class Sine:
    """``amplitude sin(omega x + phase) + offset``."""

    amplitude: float
    omega: float
    phase: float
    offset: float

    def value(self, x: Floats) -> Floats:
        return np.asarray(self.amplitude * np.sin(self.omega * x + self.phase) + self.offset)

    def slope(self, x: Floats) -> Floats:
        return np.asarray(self.amplitude * self.omega * np.cos(self.omega * x + self.phase))

    def expression(self, x: Any) -> Any:
        return self.amplitude * ca.sin(self.omega * x + self.phase) + self.offset


@dataclass(frozen=True)
class ScaledFunction:
    """`scale` times another function."""

    inner: Function
    scale: float

    def value(self, x: Floats) -> Floats:
        return self.scale * self.inner.value(x)

    def slope(self, x: Floats) -> Floats:
        return self.scale * self.inner.slope(x)

    def expression(self, x: Any) -> Any:
        return self.scale * self.inner.expression(x)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Cubics between `knots` (k + 1): `coefficients` (4, k), highest power first, of x minus the left knot.

    Outside of the knots it follows the tangents at the ends.
    """

    knots: Floats
    coefficients: Floats

    def value(self, x: Floats) -> Floats:
        inner, h, c = self._piece_at(x)
        return np.asarray(
            ((c[0] * h + c[1]) * h + c[2]) * h + c[3] + (x - inner) * ((3 * c[0] * h + 2 * c[1]) * h + c[2])
        )

    def slope(self, x: Floats) -> Floats:
        _, h, c = self._piece_at(x)
        return np.asarray((3 * c[0] * h + 2 * c[1]) * h + c[2])

    def _piece_at(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        inner = np.minimum(np.maximum(x, self.knots[0]), self.knots[-1])
        i = np.searchsorted(self.knots[1:-1], inner, side="right")
        return inner, inner - self.knots[i], self.coefficients[:, i]

    def expression(self, x: Any) -> Any:
        inner = ca.fmin(ca.fmax(x, self.knots[0]), self.knots[-1])
        left, *c = choose(inner, self.knots[1:-1], [self.knots[:-1], *self.coefficients])
        h = inner - left
        return ((c[0] * h + c[1]) * h + c[2]) * h + c[3] + (x - inner) * ((3 * c[0] * h + 2 * c[1]) * h + c[2])


def limit_to_range(function: Function, low: float, high: float) -> Function:
    """The same function from `low` to `high`; further out it may have fewer pieces, and so a smaller expression."""
    if isinstance(function, ScaledFunction):
        return ScaledFunction(limit_to_range(function.inner, low, high), function.scale)
    if not isinstance(function, Pieces):
        return function
    first = max(int(np.searchsorted(function.knots, low, side="right")) - 1, 0)
    last = min(int(np.searchsorted(function.knots, high, side="left")), len(function.knots) - 1)
    first, last = min(first, len(function.knots) - 2), max(last, 1)
    return Pieces(function.knots[first : last + 1], function.coefficients[:, first:last])


def simm_spline(x: Floats, y: Floats) -> Pieces:
    """The cubic spline of SIMM through `x` (n), which increases, and `y` (n); a line through two points.

    The third derivative in the end pieces is that of the cubic through the first (last) four points (Forsythe, Malcolm
    and Moler, Computer Methods for Mathematical Computations, 1977).
    """
    n = len(x)
    if n == 2:
        return Pieces(x, np.array([[0.0], [0.0], [(y[1] - y[0]) / (x[1] - x[0])], [y[0]]]))
    h = np.diff(x)
    d = np.diff(y) / h
    matrix, right = np.zeros((n, n)), np.zeros(n)
    for i in range(1, n - 1):  # unknowns are a sixth of the second derivatives
        matrix[i, i - 1 : i + 2] = h[i - 1], 2.0 * (h[i - 1] + h[i]), h[i]
        right[i] = d[i] - d[i - 1]
    matrix[0, :2] = -h[0], h[0]
    matrix[-1, -2:] = h[-1], -h[-1]
    if n > 3:
        second = np.diff(d) / (x[2:] - x[:-2])
        third = np.diff(second) / (x[3:] - x[:-3])
        right[0], right[-1] = h[0] ** 2 * third[0], -(h[-1] ** 2) * third[-1]
    return _from_sixths(x, y, np.asarray(np.linalg.solve(matrix, right), dtype=np.float64))


def natural_spline(x: Floats, y: Floats) -> Pieces:
    """The cubic spline through `x` and `y` (n) whose second derivatives are 0 at the ends."""
    n = len(x)
    h = np.diff(x)
    matrix, right = np.eye(n), np.zeros(n)
    for i in range(1, n - 1):
        matrix[i, i - 1 : i + 2] = h[i - 1], 2.0 * (h[i - 1] + h[i]), h[i]
        right[i] = (y[i + 1] - y[i]) / h[i] - (y[i] - y[i - 1]) / h[i - 1]
    return _from_sixths(x, y, np.asarray(np.linalg.solve(matrix, right), dtype=np.float64))


def lines(x: Floats, y: Floats) -> Pieces:
    """Straight lines between points."""
    return _from_sixths(x, y, np.zeros(len(x)))


def _from_sixths(x: Floats, y: Floats, sixth: Floats) -> Pieces:
    h, d = np.diff(x), np.diff(y) / np.diff(x)
    linear = d - h * (sixth[1:] + 2.0 * sixth[:-1])
    return Pieces(x, np.array([np.diff(sixth) / h, 3.0 * sixth[:-1], linear, y[:-1]]))


@dataclass(frozen=True, eq=False)
class ManyPolynomial:
    """A polynomial of m variables: `coefficients` (k,) of the products of powers `exponents` (k, m)."""

    coefficients: Floats
    exponents: Integers

    def values(self, x: Floats) -> Floats:
        """(n,) at `x` (n, m)."""
        return np.asarray(np.prod(x[:, None] ** self.exponents, axis=2) @ self.coefficients)

    def slopes(self, x: Floats) -> Floats:
        """(n, m) first derivatives at `x` (n, m)."""
        columns = []
        for j in range(x.shape[1]):
            lower = self.exponents.copy()
            lower[:, j] = np.maximum(lower[:, j] - 1, 0)
            columns.append(ManyPolynomial(self.coefficients * self.exponents[:, j], lower).values(x))
        return np.column_stack(columns)


def ordered_exponents(variables: int, order: int) -> Integers:
    """(k, m) all powers whose sum is at most `order`, the last variable counting first (OpenSim's order)."""
    every = itertools.product(range(order + 1), repeat=variables)
    return np.array([powers for powers in every if sum(powers) <= order], dtype=np.int64)
