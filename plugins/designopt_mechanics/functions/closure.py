"""Joint variables that close a loop: given by equations, solved once over the range and then exact at every point.

A polynomial fit of the solution starts a fixed number of Newton steps that are written out as an expression. Newton's
method is quadratic, so that the value and its derivatives are those of the solution to round-off, and no iteration, no
tolerance and no state are left at run time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import casadi as ca

#: Condition of the equations' derivative by the unknowns above which a pose is singular.
_SINGULAR = 1e8
_NEWTON_STEPS = 30
#: A solution is on the same branch if it is nearer to where the tangent led than half the way plus this.
_SAME_BRANCH = 0.05
#: Error of the fit, in the unknowns, that two Newton steps bring to round-off together with two derivatives.
_FIT = 1e-5


class ClosureError(ValueError):
    """A loop that does not close, is singular or changes its branch; the message has place, residual and condition."""


@dataclass(frozen=True, eq=False)
class Closure:
    """`unknowns` y that make `equations` zero, for `coordinates` q within `ranges` (low, high).

    `equations` takes a mapping from all names to expressions and returns as many expressions as there are unknowns.
    `start` contains values of all unknowns near the solution at `at`, a point within the ranges (by default their
    middle): it selects the assembly branch, which is followed through the ranges. The closure is solved at `nodes`
    points per coordinate.

    Raises `ClosureError` if a loop does not close, a pose is singular (condition above 1e8) or the branch is lost;
    `ValueError` for arguments that do not fit.
    """

    coordinates: tuple[str, ...]
    unknowns: tuple[str, ...]
    equations: Callable[[Mapping[str, Any]], Sequence[Any]]
    ranges: Sequence[tuple[float, float]]
    start: Mapping[str, float]
    at: Mapping[str, float] | None = None
    nodes: int = 25
    residual: float = field(init=False, default=0.0)
    condition: float = field(init=False, default=0.0)
    _fit: Floats = field(init=False, repr=False, default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if not 1 <= len(self.coordinates) <= 3 or len(self.ranges) != len(self.coordinates):
            raise ValueError("a closure needs one to three coordinates, each with its range")
        for name, (low, high) in zip(self.coordinates, self.ranges, strict=True):
            if not (np.isfinite([low, high]).all() and low < high):
                raise ValueError(f"the range of '{name}' is {low:g} to {high:g}, which is not a range")
        if set(self.start) != set(self.unknowns):
            raise ValueError(f"start has values for {sorted(self.start)}, not for {sorted(self.unknowns)}")
        if self.nodes < 4:
            raise ValueError(f"a closure needs at least 4 nodes, not {self.nodes}")
        _solve(self)

    def function(self, unknown: str) -> Callable[[Mapping[str, Any]], Any]:
        """One of the unknowns as a joint function; outside of the ranges it is NaN."""
        row = self.unknowns.index(unknown)
        return lambda z: self.solution(z)[row]

    def solution(self, z: Mapping[str, Any]) -> Any:
        """(k, 1) all unknowns at the coordinates in `z`."""
        q = ca.vertcat(*(z[name] for name in self.coordinates))
        y = _polynomial(self, q)
        residual, _ = _functions(self)
        for _ in range(2):
            value, slope = residual(q, y)
            y = y - ca.solve(slope, value)
        inside = [ca.logic_and(q[i] >= low, q[i] <= high) for i, (low, high) in enumerate(self.ranges)]
        every = inside[0]
        for condition in inside[1:]:
            every = ca.logic_and(every, condition)
        return ca.if_else(every, y, np.nan)


def _functions(closure: Closure) -> tuple[Any, Any]:
    """(q, y) -> equations, their derivative by y; and the symbols' function with the derivative by q."""
    q, y = ca.SX.sym("q", len(closure.coordinates)), ca.SX.sym("y", len(closure.unknowns))
    symbols = {n: q[i] for i, n in enumerate(closure.coordinates)} | {n: y[i] for i, n in enumerate(closure.unknowns)}
    phi = ca.vertcat(*(ca.SX(e) for e in closure.equations(symbols)))
    if phi.numel() != y.numel():
        raise ValueError(f"a closure has {phi.numel()} equations for {y.numel()} unknowns")
    slope = ca.densify(ca.jacobian(phi, y))
    return ca.Function("phi", [q, y], [phi, slope]), ca.Function("by_q", [q, y], [ca.densify(ca.jacobian(phi, q))])


def _chebyshev(n: int) -> Floats:
    """n Chebyshev points on [-1, 1], increasing."""
    points: Floats = -np.cos((np.arange(n) + 0.5) * np.pi / n)
    return points


def _solve(closure: Closure) -> None:
    """Follow the solution over a grid of Chebyshev points, fit it, and check the fit in between."""
    lows, highs = np.array(closure.ranges, dtype=np.float64).T
    axis = _chebyshev(closure.nodes)
    shape = (closure.nodes,) * len(lows)
    residual, by_q = _functions(closure)
    at = np.array(
        [(closure.at or {}).get(n, 0.5 * (a + b)) for n, a, b in zip(closure.coordinates, lows, highs, strict=True)]
    )
    if not ((at >= lows) & (at <= highs)).all():
        raise ValueError(f"the place of the start {_as_text(closure, at)} is outside the ranges")
    y, _, _ = _newton(closure, residual, at, np.array([closure.start[n] for n in closure.unknowns], dtype=np.float64))
    grid = 0.5 * (lows + highs) + 0.5 * (highs - lows) * np.stack(np.meshgrid(*(axis,) * len(lows), indexing="ij"), -1)
    first = tuple(int(i) for i in np.unravel_index(np.argmin(((grid - at) ** 2).sum(-1)), shape))
    solutions = np.full((*shape, len(y)), np.nan)
    worst_residual = worst_condition = 0.0
    node_solutions: dict[tuple[int, ...], Floats] = {}
    front = [(first, at, y)]
    while front:
        index, origin, before = front.pop(0)
        if index in node_solutions:
            continue
        value, error, condition = _follow(closure, residual, by_q, origin, before, grid[index])
        node_solutions[index] = solutions[index] = value
        worst_residual, worst_condition = max(worst_residual, error), max(worst_condition, condition)
        for k, step in itertools.product(range(len(shape)), (-1, 1)):
            near = (*index[:k], index[k] + step, *index[k + 1 :])
            if 0 <= near[k] < closure.nodes and near not in node_solutions:
                front.append((near, grid[index], value))
    object.__setattr__(closure, "_fit", _coefficients(solutions, axis))
    object.__setattr__(closure, "residual", worst_residual)
    object.__setattr__(closure, "condition", worst_condition)
    _check_fit(closure, residual, axis, lows, highs)


def _coefficients(values: Floats, axis: Floats) -> Floats:
    """Chebyshev coefficients of `values` (n, ..., k) at the Chebyshev points along every axis but the last."""
    n = len(axis)
    basis = np.polynomial.chebyshev.chebvander(axis, n - 1)
    transform = basis.T * (np.where(np.arange(n) == 0, 1.0, 2.0) / n)[:, None]
    for k in range(values.ndim - 1):
        values = np.moveaxis(np.tensordot(transform, values, axes=(1, k)), 0, k)
    return values


def _polynomial(closure: Closure, q: Any) -> Any:
    """The fit (k, 1) at `q`, by Clenshaw's recurrence along one coordinate after the other."""

    def evaluate(coefficients: Any, along: int) -> Any:
        if along == len(closure.coordinates):
            return ca.SX(coefficients)
        low, high = closure.ranges[along]
        x = (2.0 * q[along] - (low + high)) / (high - low)
        terms = [evaluate(part, along + 1) for part in coefficients]
        partial_sum = next_term = ca.SX.zeros(len(closure.unknowns))
        for term in reversed(terms[1:]):
            partial_sum, next_term = 2.0 * x * partial_sum - next_term + term, partial_sum
        return x * partial_sum - next_term + terms[0]

    return evaluate(closure._fit, 0)


def _newton(closure: Closure, residual: Any, q: Floats, y: Floats) -> tuple[Floats, float, float]:
    """Solution, residual and condition at `q`, from `y`."""
    scale = 1.0
    for _ in range(_NEWTON_STEPS):
        value, slope = (np.asarray(r, dtype=np.float64) for r in residual(q, y))
        if not (np.isfinite(value).all() and np.isfinite(slope).all()):
            break
        condition = float(np.linalg.cond(slope))
        if not condition < _SINGULAR:
            raise ClosureError(f"the loop is singular at {_as_text(closure, q)}: condition {condition:.3g}")
        step = np.linalg.solve(slope, value.ravel())
        scale = max(1.0, float(np.abs(y).max()))
        largest = float(np.abs(step).max())
        y = y - step * min(1.0, 0.5 * scale / max(largest, 1e-300))
        if largest < 1e-13 * scale:
            return y, float(np.abs(value).max()), condition
    error = float(np.abs(value).max())
    raise ClosureError(
        f"the loop does not close at {_as_text(closure, q)}: residual {error:.3g} after {_NEWTON_STEPS} steps"
    )


def _follow(
    closure: Closure, residual: Any, by_q: Any, origin: Floats, y: Floats, target: Floats
) -> tuple[Floats, float, float]:
    """The solution at `target` on the branch of `y` at `origin`, with shorter steps where the tangent misses it."""
    progress, stride, jump = 0.0, 1.0, 0.0
    error = condition = 0.0
    while progress < 1.0:
        stride = min(stride, 1.0 - progress)
        q, goal = origin + progress * (target - origin), origin + (progress + stride) * (target - origin)
        _, slope = (np.asarray(r, dtype=np.float64) for r in residual(q, y))
        tangent = -np.linalg.solve(slope, np.asarray(by_q(q, y), dtype=np.float64) @ (goal - q))
        try:
            solution, error, condition = _newton(closure, residual, goal, y + tangent)
            jump = float(np.abs(solution - y - tangent).max())
            lost = jump > 0.5 * float(np.abs(tangent).max()) + _SAME_BRANCH
        except ClosureError:
            if stride < 1e-3:
                raise
            lost = True
        if lost:
            stride *= 0.5
            if stride < 1e-4:
                raise ClosureError(f"the branch is lost at {_as_text(closure, goal)}: the solution jumps by {jump:.3g}")
            continue
        y, progress = solution, progress + stride
        stride *= 2.0
    if progress == 0.0:
        y, error, condition = _newton(closure, residual, target, y)
    return y, error, condition


def _check_fit(closure: Closure, residual: Any, axis: Floats, lows: Floats, highs: Floats) -> None:
    """Between the nodes the fit must be near enough for the Newton steps."""
    q = ca.SX.sym("q", len(lows))
    fit = ca.Function("fit", [q], [_polynomial(closure, q)])
    between = np.concatenate([[-1.0], 0.5 * (axis[1:] + axis[:-1]), [1.0]])
    for fractions in itertools.product(between, repeat=len(lows)):
        at = 0.5 * (lows + highs) + 0.5 * (highs - lows) * np.array(fractions)
        guess = np.asarray(fit(at), dtype=np.float64).ravel()
        exact, _, _ = _newton(closure, residual, at, guess)
        error = float(np.abs(exact - guess).max())
        if error > _FIT * max(1.0, float(np.abs(exact).max())):
            raise ClosureError(
                f"{closure.nodes} nodes are too few for the loop: at {_as_text(closure, at)} they miss by {error:.3g};"
                " give more nodes or a smaller range"
            )


def _as_text(closure: Closure, q: Floats) -> str:
    return ", ".join(f"{n} = {v:.6g}" for n, v in zip(closure.coordinates, q, strict=True))
