"""Separable sharing problems of many frames at once, solved by Newton's method on their duals.

For ``min sum f_v(x_v)  subject to  A x = tau, lower <= x <= upper`` the dual has as many unknowns as there are rows:
x(lambda) = clip(f'^-1(A^T lambda)), and A x(lambda) = tau is solved by a semismooth Newton method with a search along
the convex dual (Qi & Sun, Math. Program. 58, 1993). Frames that are done leave the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt_mechanics.sharing.solvers.batch import Batch, DualSolution
from designopt_mechanics.sharing.solvers.cholesky import solve_definite

_TOLERANCE = 1e-13
_ACCEPTED = 1e-10
_ITERATIONS = 60
#: Iterations after which a frame is tested for infeasibility, and the margin of such a proof.
_PATIENCE, _MARGIN = 6, 1e-9
#: Least fall of the squared residual in a whole step, and the parts of a step between which it is searched otherwise.
_FALL = 1e-4
_HALVINGS = 12
_STEPS = np.append(0.5 ** np.arange(_HALVINGS), 0.0)
#: Shift of the diagonal of Newton's matrix, relative to its size: always, and times the relative residual
#: (without a guess, and with one, whose steps are nearly exact).
_MIN_SHIFT = 1e-15
_DAMPING, _GUESSED_DAMPING, _MOST_DAMPING = 1e-3, 1e-8, 1e8


@dataclass(eq=False)
class _State:
    """Where Newton's method stands: frames last."""

    multipliers: Floats
    x: Floats
    slope: Floats
    residual: Floats

    @classmethod
    def at(cls, batch: Batch, multipliers: Floats, s: Floats | None = None) -> _State:
        """The state at `multipliers` (m, n); `s` (v, n) is A^T lambda there, if it is known."""
        x, slope = batch.variables.best_and_slope(batch.matrix.transposed_times(multipliers) if s is None else s)
        return cls(multipliers, x, slope, batch.matrix.times(x) - batch.right_side)

    def take(self, frames: Integers) -> _State:
        return _State(*(part[:, frames] for part in (self.multipliers, self.x, self.slope, self.residual)))

    def assign(self, frames: Integers, part: _State) -> None:
        self.multipliers[:, frames] = part.multipliers
        self.x[:, frames] = part.x
        self.slope[:, frames] = part.slope
        self.residual[:, frames] = part.residual


def newton(batch: Batch, start: Floats, *, warm_start: bool = True, max_iterations: int = _ITERATIONS) -> DualSolution:
    """Solve all frames from multipliers `start` (m, n), in at most `max_iterations` steps.

    A `warm_start` from solutions of neighbouring frames needs next to no damping.
    """
    frames = batch.right_side.shape[1]
    state = _State.at(batch, start)
    solution = DualSolution.empty(*batch.matrix.shape)
    index = np.arange(frames)
    size = np.maximum(1.0, np.abs(batch.right_side).max(axis=0))
    damping = np.full(frames, _GUESSED_DAMPING if warm_start else _DAMPING)
    for iteration in range(max_iterations + 1):
        error = np.abs(state.residual).max(axis=0)
        left = (error <= _TOLERANCE * size) | (damping > _MOST_DAMPING) | (iteration == max_iterations)
        infeasible = np.zeros(len(index), dtype=np.bool_)
        if iteration >= _PATIENCE:
            infeasible = _infeasible(batch, state)
            left |= infeasible
        if left.any():
            columns = np.flatnonzero(left)
            good = error[columns] <= _ACCEPTED * size[columns]
            solution.assign(
                index[columns],
                DualSolution(
                    state.x[:, columns],
                    state.multipliers[:, columns],
                    good,
                    np.full(len(columns), iteration),
                    infeasible[columns] & ~good,
                ),
            )
            stay = np.flatnonzero(~left)
            if not len(stay):
                break
            index, batch, state = index[stay], batch.take(stay), state.take(stay)
            error, size, damping = error[stay], size[stay], damping[stay]
        normal = batch.matrix.normal(state.slope)
        diagonal = np.arange(len(normal))
        shift = np.einsum("iin->n", normal) / len(normal)
        if not shift.all():  # frames in which every variable is at a bound
            shift = np.where(shift > 0, shift, _size_of_normal(batch))
        normal[diagonal, diagonal] += shift * (_MIN_SHIFT + damping * np.minimum(1.0, error / size))
        state, halvings = _search(batch, state, solve_definite(normal, -state.residual))
        damping = np.where(halvings == 0, 0.1 * damping, np.where(halvings < _HALVINGS, damping, 100.0 * damping))
    return solution


def _infeasible(batch: Batch, state: _State) -> Mask:
    """(n,) whether the multipliers y of a frame prove that nothing solves it: y . needed > max over x of y . (A x).

    The multipliers of an infeasible frame grow along such a direction for ever.
    """
    s = batch.matrix.transposed_times(state.multipliers)
    bound = np.where(s > 0, batch.variables.upper, batch.variables.lower)
    largest_moment = np.where(s == 0.0, 0.0, s * np.where(s == 0.0, 0.0, bound))
    needed_moment = state.multipliers * batch.right_side
    size = np.abs(largest_moment).sum(axis=0) + np.abs(needed_moment).sum(axis=0)
    with np.errstate(invalid="ignore"):
        return np.asarray(needed_moment.sum(axis=0) - largest_moment.sum(axis=0) > _MARGIN * size)


def _size_of_normal(batch: Batch) -> Floats:
    """(n,) the size of A D A^T for variables within their ranges, which its shift is relative to."""
    variables = batch.variables
    middle = np.clip(0.5 * (np.maximum(variables.lower, -1.0) + np.minimum(variables.upper, 1.0)), 0.1, 0.5)
    d = 1.0 / np.maximum(variables.cost.curvature(middle), 1e-12)
    return batch.matrix.size(np.broadcast_to(d, batch.matrix.shape[1:]))


def _search(batch: Batch, start: _State, direction: Floats) -> tuple[_State, Integers]:
    """The state after a step along `direction` (m, n), and how often it was halved.

    A whole step is taken if the residual decreases. Else the step goes to the zero of the convex dual's slope along the
    direction, between the largest halved step with a negative slope and the previous one: by the secant, which is exact
    for squares as long as no variable reaches a bound on the way.
    """
    state = _State.at(batch, start.multipliers + direction)
    before = (start.residual**2).sum(axis=0)
    halvings = np.zeros(len(before), dtype=np.int64)
    bad = np.flatnonzero((state.residual**2).sum(axis=0) > (1.0 - _FALL) * before)
    if not len(bad):
        return state, halvings
    part, along = batch.take(bad), direction[:, bad]
    s, ds = part.matrix.transposed_times(start.multipliers[:, bad]), part.matrix.transposed_times(along)
    shape = (len(s), -1)
    x = batch.variables.take(np.tile(bad, len(_STEPS))).best(
        (s[:, None] + _STEPS[:, None] * ds[:, None]).reshape(shape)
    )
    slopes = np.einsum("vsn,vn->sn", x.reshape(len(s), len(_STEPS), -1), ds) - (part.right_side * along).sum(axis=0)
    falling = slopes <= 0.0
    falling[-1] = True
    low = falling.argmax(axis=0)
    high, each = np.maximum(low - 1, 0), np.arange(len(bad))
    rise = slopes[high, each] - slopes[low, each]
    share = np.where(rise > 0.0, -slopes[low, each] / np.where(rise > 0.0, rise, 1.0), 0.0)
    step = _STEPS[low] + (_STEPS[high] - _STEPS[low]) * share
    state.assign(bad, _State.at(part, start.multipliers[:, bad] + step * along, s + step * ds))
    halvings[bad] = low
    return state, halvings
