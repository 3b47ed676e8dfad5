"""Joint variables as piecewise polynomials of one coordinate: splines through tables of measured values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.lazy import casadi as ca

#: The value of a piecewise polynomial outside of its breaks: not a number, or the tangent at the end.
Outside = Literal["nan", "linear"]

#: Jumps of value, slope and curvature at a break, relative to their size nearby, that are round-off.
_SMOOTH = 1e-8


@dataclass(frozen=True, eq=False)
class Piecewise:
    """Polynomials between `breaks` (n + 1), highest power first in `coefficients` (k, n), of x minus the left break.

    This is the layout of `scipy.interpolate.PPoly`. Value, slope and curvature must be continuous, or the equations of
    motion jump. Outside of the breaks the value is NaN or, with ``outside="linear"``, follows the tangent.

    Raises `ValueError` for shapes that do not fit, breaks that do not increase, and jumps, with their place.
    """

    coordinate: str
    breaks: ArrayLike
    coefficients: ArrayLike
    outside: Outside = "nan"

    def __post_init__(self) -> None:
        x, c = np.array(self.breaks, dtype=np.float64), np.array(self.coefficients, dtype=np.float64)
        if x.ndim != 1 or len(x) < 2 or not np.isfinite(x).all() or not (np.diff(x) > 0.0).all():
            raise ValueError(f"breaks of a function of '{self.coordinate}' must be finite and increase, at least two")
        if c.ndim != 2 or c.shape[1] != len(x) - 1 or not len(c) or not np.isfinite(c).all():
            raise ValueError(f"coefficients of a function of '{self.coordinate}' must be finite (k, {len(x) - 1})")
        object.__setattr__(self, "breaks", x)
        object.__setattr__(self, "coefficients", c)
        self._check_smooth(x, c)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The coordinate that it depends on."""
        return (self.coordinate,)

    @property
    def range(self) -> tuple[float, float]:
        """First and last break."""
        x = np.asarray(self.breaks)
        return float(x[0]), float(x[-1])

    def __call__(self, z: Mapping[str, Any]) -> Any:
        x, c = np.asarray(self.breaks), np.asarray(self.coefficients)
        at = z[self.coordinate]
        low, high = self.range
        inner = ca.fmin(ca.fmax(at, low), high) if self.outside == "linear" else at
        left, *coefficients = choose(inner, x[1:-1], [x[:-1], *c])
        value, slope = coefficients[0], ca.SX(0.0)
        for power in coefficients[1:]:
            slope = slope * (inner - left) + value
            value = value * (inner - left) + power
        if self.outside == "linear":
            # inside, this is the polynomial; fmin and fmax have the derivative 1 there and 0 outside
            return value + (at - inner) * slope
        return ca.if_else(ca.logic_and(at >= low, at <= high), value, np.nan)

    def _check_smooth(self, x: Floats, c: Floats) -> None:
        h = np.diff(x)
        derivative = c
        for quantity in ("value", "slope", "curvature"):
            ends = sum((row * h ** (len(derivative) - 1 - i) for i, row in enumerate(derivative)), np.zeros(len(h)))
            starts = derivative[-1]
            jump = np.abs(ends[:-1] - starts[1:])
            size = np.maximum(np.abs(derivative * h ** np.arange(len(derivative) - 1, -1, -1)[:, None]).max(), 1e-300)
            if (jump > _SMOOTH * size).any():
                knot = x[1:-1][int(np.argmax(jump))]
                raise ValueError(
                    f"a function of '{self.coordinate}' jumps in its {quantity} at {knot:g}; it must be twice"
                    " continuously differentiable"
                )
            powers = np.arange(len(derivative) - 1, 0, -1)[:, None]
            derivative = derivative[:-1] * powers if len(derivative) > 1 else np.zeros((1, len(h)))


def spline(coordinate: str, x: ArrayLike, y: ArrayLike, outside: Outside = "nan", degree: int = 3) -> Piecewise:
    """The natural spline of `degree` 3 or 5 through `x` (n), which increases, and `y` (n); n is at least 4.

    At the knots of a cubic spline the third derivative jumps, and with it the Jacobian of equations of motion: Newton's
    method cycles where a node of a collocation mesh is at a knot. That of degree 5 has four continuous derivatives.
    Raises `ValueError` for other degrees, fewer points, abscissae that do not increase and values that are not finite.
    """
    from scipy.interpolate import CubicSpline, PPoly, make_interp_spline

    at, values = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if at.ndim != 1 or at.shape != values.shape or len(at) < 4:
        raise ValueError(
            f"a spline of '{coordinate}' needs at least 4 points, as many x as y; {at.size} and {values.size}"
        )
    if not (np.isfinite(at).all() and np.isfinite(values).all()):
        raise ValueError(f"a spline of '{coordinate}' needs finite numbers")
    if not (np.diff(at) > 0.0).all():
        first = int(np.argmax(np.diff(at) <= 0.0))
        raise ValueError(f"a spline of '{coordinate}' needs abscissae that increase: {at[first]:g}, {at[first + 1]:g}")
    if degree == 3:
        cubic = CubicSpline(at, values, bc_type="natural")
        return Piecewise(coordinate, cubic.x, cubic.c, outside)
    if degree != 5:
        raise ValueError(f"a spline of '{coordinate}' has the degree 3 or 5, not {degree}")
    natural = [(2, 0.0), (3, 0.0)]
    quintic = PPoly.from_spline(make_interp_spline(at, values, k=5, bc_type=(natural, natural)))
    return Piecewise(coordinate, at, quintic.c[:, np.diff(quintic.x) > 0.0], outside)  # without the repeated end knots


def polynomial(coordinate: str, coefficients: ArrayLike) -> Piecewise:
    """A polynomial of any value of one coordinate, highest power first."""
    c = np.atleast_1d(np.asarray(coefficients, dtype=np.float64))
    return _Polynomial(coordinate, (0.0, 1.0), c[:, None])


class _Polynomial(Piecewise):
    """One polynomial without ends."""

    @property
    def range(self) -> tuple[float, float]:
        return -np.inf, np.inf

    def __call__(self, z: Mapping[str, Any]) -> Any:
        value = ca.SX(0.0)
        for (power,) in np.asarray(self.coefficients):
            value = value * z[self.coordinate] + power
        return value


def choose(at: Any, breaks: Floats, columns: list[Floats]) -> list[Any]:
    """The entry of each of `columns` (n) for the interval of `at` between the n - 1 inner `breaks`, by bisection."""
    if not len(breaks):
        return [ca.SX(float(column[0])) for column in columns]
    middle = len(breaks) // 2
    lower = choose(at, breaks[:middle], [column[: middle + 1] for column in columns])
    upper = choose(at, breaks[middle + 1 :], [column[middle + 1 :] for column in columns])
    right = at >= breaks[middle]
    return [ca.if_else(right, u, v) for u, v in zip(upper, lower, strict=True)]
