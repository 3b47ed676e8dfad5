"""Separable sharing problems of many frames at once, solved by Newton's method on their duals.

For ``min sum f_v(x_v)  subject to  A x = tau, lower <= x <= upper`` the dual has as many unknowns as there are rows:
x(lambda) = clip(f'^-1(A^T lambda)), and A x(lambda) = tau is solved by a semismooth Newton method with a search along
the convex dual (Qi & Sun, Math. Program. 58, 1993). All arrays have the frames last, so that every operation runs over
all frames; frames that are done leave the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from designopt_muscle.sharing.solvers.cholesky import solve_definite
from designopt_muscle.sharing.solvers.pattern import Matrices
from designopt_muscle.sharing.statement.cost import Cost

Vector = NDArray[np.float64]

#: Numbers that the frames of one array operation have together, so that they stay in a core's cache.
_CACHED = 400_000
#: Every so many frames are solved first, and the multipliers of the others start between them.
COARSE = 8
_TOLERANCE = 1e-13
_ACCEPTED = 1e-10
_ITERATIONS = 60
_HALVINGS = 12
#: How often a step is halved in those that are tried together.
_TRIED = ((0, 1, 2, 3), tuple(range(4, _HALVINGS)))
#: Iterations after which a frame is looked at for a proof that it is infeasible, and the margin of such a proof.
_PATIENCE, _MARGIN = 6, 1e-9
_ARMIJO = 1e-4
#: Shift of the diagonal of Newton's matrix, relative to its size: always, and times the relative residual
#: (without a guess, and with one, whose steps are nearly exact).
_LEAST_SHIFT = 1e-15
_DAMPING, _GUESSED_DAMPING, _MOST_DAMPING = 1e-3, 1e-8, 1e8


@dataclass(frozen=True, eq=False)
class Batch:
    """Problems of n frames with v variables and m rows: entries of `matrix` (m, v, n), `needed` (m, n), bounds (v, n or
    1)."""

    matrix: Matrices
    needed: Vector
    lower: Vector
    upper: Vector
    cost: Cost

    def take(self, frames: NDArray[np.bool_] | NDArray[np.int64] | slice) -> Batch:
        """Some of the frames."""

        def part(array: Vector) -> Vector:
            return array if array.shape[1] == 1 else array[:, frames]

        return Batch(
            self.matrix.take(frames),
            self.needed[:, frames],
            part(self.lower),
            part(self.upper),
            self.cost.take(frames),
        )


@dataclass(frozen=True, eq=False)
class DualSolution:
    """`x` (v, n), `multipliers` (m, n), whether a frame `converged` (n,), the `iterations` (n,) it took, whether its
    multipliers prove that it is `infeasible` (n,)."""

    x: Vector
    multipliers: Vector
    converged: NDArray[np.bool_]
    iterations: NDArray[np.int64]
    infeasible: NDArray[np.bool_]

    @classmethod
    def empty(cls, rows: int, variables: int, frames: int) -> DualSolution:
        """Of as many frames, nothing of which is known."""
        return cls(
            np.empty((variables, frames)),
            np.empty((rows, frames)),
            np.zeros(frames, dtype=np.bool_),
            np.zeros(frames, dtype=np.int64),
            np.zeros(frames, dtype=np.bool_),
        )


def solve_dual(batch: Batch, *, runs: int = 1) -> DualSolution:
    """Solve all frames; those that do not converge are infeasible, or need another method.

    The frames are `runs` motions of the same length, one after the other. Neighbouring frames of a motion are alike:
    every eighth is solved first, and the multipliers of the others start from the interpolated ones.
    """
    frames = batch.needed.shape[1]
    length = frames // runs
    if length < 4 * COARSE:
        return _in_batches(batch, None)
    of_one = np.unique(np.append(np.arange(0, length, COARSE), length - 1))
    coarse = (of_one + length * np.arange(runs)[:, None]).ravel()
    first = _in_batches(batch.take(coarse), None)
    guess = np.empty((len(first.multipliers), frames))
    for run in range(runs):
        some = np.flatnonzero(first.converged & (coarse // length == run))
        if len(some) < 2:
            return _in_batches(batch, None)
        every = np.arange(run * length, (run + 1) * length)
        guess[:, every] = np.stack([np.interp(every, coarse[some], row) for row in first.multipliers[:, some]])
    solution = DualSolution.empty(*batch.matrix.shape)
    _put(solution, coarse, first)
    rest = np.setdiff1d(np.arange(frames), coarse, assume_unique=True)
    _put(solution, rest, _in_batches(batch.take(rest), guess[:, rest]))
    return solution


def _put(solution: DualSolution, frames: NDArray[np.int64], part: DualSolution) -> None:
    solution.x[:, frames] = part.x
    solution.multipliers[:, frames] = part.multipliers
    solution.converged[frames] = part.converged
    solution.iterations[frames] = part.iterations
    solution.infeasible[frames] = part.infeasible


def _in_batches(batch: Batch, guess: Vector | None) -> DualSolution:
    frames = batch.matrix.shape[2]
    solution = DualSolution.empty(*batch.matrix.shape)
    each = batch.matrix.values.shape[0] + batch.matrix.products.shape[0] + 4 * batch.matrix.shape[1]
    size = max(64, _CACHED // each)
    for begin in range(0, frames, size):
        part = np.arange(begin, min(begin + size, frames))
        some = batch if len(part) == frames else batch.take(slice(begin, begin + size))
        _put(solution, part, _newton(some, None if guess is None else guess[:, part]))
    return solution


def first_multipliers(batch: Batch) -> Vector:
    """(m, n) where a solution starts that has no better guess.

    The unclipped minimiser of a quadratic cost; for other costs the multipliers that fit the slopes of the cost at the
    minimiser of the weighted squares best.
    """
    cost = batch.cost
    if cost.is_quadratic:
        diagonal = np.broadcast_to(1.0 / cost.quadratic, batch.matrix.shape[1:])
        at_zero = np.clip(-cost.linear * diagonal, batch.lower, batch.upper)
        missing = batch.needed - batch.matrix.times(np.broadcast_to(at_zero, batch.matrix.shape[1:]))
        return solve_definite(batch.matrix.normal(diagonal), missing)
    squares = Cost(np.zeros((1, 1)), cost.exponent, cost.quadratic + 2.0 * cost.weight, cost.linear, saturating=False)
    plain = Batch(batch.matrix, batch.needed, batch.lower, batch.upper, squares)
    x = _newton(plain, None).x
    free = ((x > batch.lower) & (x < batch.upper)).astype(np.float64)
    if cost.saturating:
        x = np.clip(x, -0.999, 0.999)
    weight = free / np.maximum(cost.curvature(x), 1e-12) + 1e-9
    slopes = batch.matrix.times(weight * cost.slope(x))
    return solve_definite(batch.matrix.normal(weight), slopes)


@dataclass(eq=False)
class _State:
    """Where Newton's method stands: frames last, `error` (n,) the largest residual of a row."""

    multipliers: Vector
    x: Vector
    slope: Vector
    residual: Vector

    @property
    def error(self) -> Vector:
        return np.asarray(np.abs(self.residual).max(axis=0))

    def take(self, frames: NDArray[np.bool_] | NDArray[np.int64]) -> _State:
        return _State(
            self.multipliers[:, frames],
            self.x[:, frames],
            self.slope[:, frames],
            self.residual[:, frames],
        )

    def put(self, frames: NDArray[np.int64], part: _State) -> None:
        self.multipliers[:, frames] = part.multipliers
        self.x[:, frames] = part.x
        self.slope[:, frames] = part.slope
        self.residual[:, frames] = part.residual


def _at(batch: Batch, multipliers: Vector) -> _State:
    unclipped, slope = batch.cost.inverse(batch.matrix.transposed_times(multipliers))
    x = np.minimum(np.maximum(unclipped, batch.lower), batch.upper)
    return _State(multipliers, x, slope * (x == unclipped), batch.matrix.times(x) - batch.needed)


def _dual(batch: Batch, state: _State) -> Vector:
    """(n,) the convex function of the multipliers whose gradient is the residual."""
    s = batch.matrix.transposed_times(state.multipliers)
    conjugate = (s * state.x - batch.cost.value(state.x)).sum(axis=0)
    return np.asarray(conjugate - (state.multipliers * batch.needed).sum(axis=0))


def _newton(batch: Batch, guess: Vector | None) -> DualSolution:
    frames = batch.matrix.shape[2]
    state = _at(batch, first_multipliers(batch) if guess is None else guess)
    solution = DualSolution.empty(*batch.matrix.shape)
    index = np.arange(frames)
    size = np.maximum(1.0, np.abs(batch.needed).max(axis=0))
    damping = np.full(frames, _DAMPING if guess is None else _GUESSED_DAMPING)
    for iteration in range(_ITERATIONS + 1):
        error = state.error
        proved = _infeasible(batch, state) if iteration >= _PATIENCE else np.zeros(len(index), dtype=np.bool_)
        left = (error <= _TOLERANCE * size) | proved | (damping > _MOST_DAMPING) | (iteration == _ITERATIONS)
        if left.any():
            solution.x[:, index[left]] = state.x[:, left]
            solution.multipliers[:, index[left]] = state.multipliers[:, left]
            solution.converged[index[left]] = error[left] <= _ACCEPTED * size[left]
            solution.iterations[index[left]] = iteration
            solution.infeasible[index[left]] = proved[left] & ~solution.converged[index[left]]
            stay = ~left
            index, batch, state = index[stay], batch.take(stay), state.take(stay)
            size, damping = size[stay], damping[stay]
            if not len(index):
                break
        normal = batch.matrix.normal(state.slope)
        diagonal = np.arange(len(normal))
        shift = np.einsum("iin->n", normal) / len(normal)
        if not shift.all():  # frames in which every variable is at a bound
            shift = np.where(shift > 0, shift, _size_of_normal(batch))
        normal[diagonal, diagonal] += shift * (_LEAST_SHIFT + damping * np.minimum(1.0, state.error / size))
        direction = solve_definite(normal, -state.residual)
        state, halvings = _search(batch, state, direction)
        damping = np.where(halvings == 0, 0.1 * damping, np.where(halvings < _HALVINGS, damping, 100.0 * damping))
    return solution


def _infeasible(batch: Batch, state: _State) -> NDArray[np.bool_]:
    """(n,) whether the multipliers y of a frame prove that nothing solves it: y . needed > max over x of y . (A x).

    The multipliers of an infeasible frame grow along such a direction for ever.
    """
    s = batch.matrix.transposed_times(state.multipliers)
    bound = np.where(s > 0, batch.upper, batch.lower)
    given = np.where(s == 0.0, 0.0, s * np.where(s == 0.0, 0.0, bound))
    wanted = state.multipliers * batch.needed
    size = np.abs(given).sum(axis=0) + np.abs(wanted).sum(axis=0)
    with np.errstate(invalid="ignore"):
        return np.asarray(wanted.sum(axis=0) - given.sum(axis=0) > _MARGIN * size)


def _size_of_normal(batch: Batch) -> Vector:
    """(n,) the size of A D A^T for variables within their ranges, which its shift is relative to."""
    middle = np.clip(0.5 * (np.maximum(batch.lower, -1.0) + np.minimum(batch.upper, 1.0)), 0.1, 0.5)
    d = 1.0 / np.maximum(batch.cost.curvature(middle), 1e-12)
    return batch.matrix.size(np.broadcast_to(d, batch.matrix.shape[1:]))


def _search(batch: Batch, start: _State, direction: Vector) -> tuple[_State, NDArray[np.int64]]:
    """The state after a step along `direction`, halved until the residual or the dual falls, and how often.

    Steps are tried several at a time, as few frames need it. Frames in which nothing falls stay where they are.
    """
    state = _at(batch, start.multipliers + direction)
    before = (start.residual**2).sum(axis=0)
    halvings = np.zeros(len(before), dtype=np.int64)
    bad = np.flatnonzero((state.residual**2).sum(axis=0) > (1.0 - _ARMIJO) * before)
    for halved in _TRIED:
        if not len(bad):
            return state, halvings
        tried = np.tile(bad, len(halved))
        steps = np.repeat(0.5 ** np.asarray(halved), len(bad))
        some, first = batch.take(tried), start.take(bad)
        found = _at(some, start.multipliers[:, tried] + steps * direction[:, tried])
        dual = np.tile(_dual(batch.take(bad), first), len(halved))
        slope = np.tile((first.residual * direction[:, bad]).sum(axis=0), len(halved))
        falls = _dual(some, found) <= dual + _ARMIJO * steps * slope
        falls |= (found.residual**2).sum(axis=0) <= (1.0 - _ARMIJO * steps) * before[tried]
        falls = falls.reshape(len(halved), -1)
        which, good = falls.argmax(axis=0), falls.any(axis=0)
        state.put(bad[good], found.take((which * len(bad) + np.arange(len(bad)))[good]))
        halvings[bad[good]] = np.asarray(halved)[which[good]]
        bad = bad[~good]
    state.put(bad, start.take(bad))
    halvings[bad] = _HALVINGS
    return state, halvings
