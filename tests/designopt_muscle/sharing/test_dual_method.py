"""The dual method for separable problems: its matrices, its steps and where it starts."""

import numpy as np
import pytest
from designopt_mechanics.sharing.solvers.batch import Batch, Variables
from designopt_mechanics.sharing.solvers.dual import solve_dual
from designopt_mechanics.sharing.solvers.dual_newton import _infeasible, _State
from designopt_mechanics.sharing.solvers.matrices import EntryPattern, FullMatrices, Matrices, is_full
from designopt_mechanics.sharing.statement.cost import Cost

M, V = 5, 17


def matrices(n: int, share: float = 0.4) -> np.ndarray:
    """(n, m, v) with entries at the same places in all frames, that change slowly."""
    rng = np.random.default_rng(5)
    present = rng.random((M, V)) < share
    present[rng.integers(0, M, V), np.arange(V)] = True
    turn = np.linspace(0, 3, n)[:, None, None] + rng.random((M, V))
    return present * (rng.normal(size=(M, V)) + 0.3 * np.sin(turn))


def batch(values: np.ndarray, *, exponent: float = 2.0, full: bool = False) -> Batch:
    """Activations from 0 to 1: some between 0.1 and 0.9 balance the rows, the best ones are partly at bounds."""
    n = len(values)
    pattern = EntryPattern.from_mask((values != 0).any(axis=0))
    activations = 0.5 + 0.4 * np.sin(np.linspace(0, 9, n)[:, None] + np.arange(V))
    square = exponent == 2.0
    one, none = np.ones((V, 1)), np.zeros((V, 1))
    cost = Cost(none if square else one, exponent * one, 2.0 * one if square else none, none)
    return Batch(
        FullMatrices(values) if full else Matrices(pattern, values[:, pattern.rows, pattern.columns].T),
        np.einsum("nmv,nv->mn", values, activations),
        Variables(none, one, cost),
    )


def test_sparse_and_full_matrices_do_the_same():
    values = matrices(40)
    sparse, full = batch(values).matrix, batch(values, full=True).matrix
    rng = np.random.default_rng(6)
    x, y, d = rng.normal(size=(V, 40)), rng.normal(size=(M, 40)), rng.random((V, 40))
    assert sparse.shape == full.shape == (M, V, 40)
    np.testing.assert_allclose(sparse.times(x), full.times(x), atol=1e-13)
    np.testing.assert_allclose(sparse.transposed_times(y), full.transposed_times(y), atol=1e-13)
    np.testing.assert_allclose(sparse.size(d), full.size(d), atol=1e-13)
    below = np.tril_indices(M)
    np.testing.assert_allclose(sparse.normal(d)[below], full.normal(d)[below], atol=1e-13)
    some = np.array([3, 1, 30])
    np.testing.assert_array_equal(sparse.take(some).times(x[:, some]), sparse.times(x)[:, some])
    np.testing.assert_allclose(full.take(some).times(x[:, some]), full.times(x)[:, some], atol=1e-13)


def test_legs_are_sparse_and_matrices_with_entries_everywhere_are_not():
    assert not is_full(np.random.default_rng(0).random((7, 43)) < 0.4)
    assert is_full(np.ones((44, 300), dtype=bool))


@pytest.mark.parametrize("exponent", [2.0, 3.0])
@pytest.mark.parametrize("full", [False, True])
def test_solutions_are_optimal_whatever_the_frames_start_from(exponent, full):
    """No x in the bounds has a smaller Lagrangian, and the rows hold: sufficient, as the problem is convex."""
    problem = batch(matrices(600), exponent=exponent, full=full)
    solution = solve_dual(problem, runs=2)
    assert solution.converged.all()
    assert (solution.iterations > 0).all()
    assert np.abs(problem.matrix.times(solution.x) - problem.right_side).max() <= 1e-10
    s = problem.matrix.transposed_times(solution.multipliers)
    slope = exponent * solution.x ** (exponent - 1.0) - s
    away = solution.x - np.clip(solution.x - slope, 0.0, 1.0)
    assert np.abs(away).max() <= 1e-9
    assert (solution.x == 0.0).any()
    alone = solve_dual(problem.take(np.array([17, 301])))
    np.testing.assert_allclose(alone.x, solution.x[:, [17, 301]], atol=1e-9)


def test_a_frame_between_others_that_cannot_be_balanced_is_proved_infeasible():
    problem = batch(matrices(300))
    problem.right_side[:, 100:140] *= 50.0
    solution = solve_dual(problem)
    short = np.arange(300) // 20
    assert solution.infeasible[(short == 5) | (short == 6)].all()
    assert solution.converged[(short != 5) & (short != 6)].all()
    assert not (solution.converged & solution.infeasible).any()


def test_rounding_errors_prove_no_frame_infeasible():
    """What the frames need lies on the boundary of what their variables give, in the direction of the multipliers: both
    sides of the proof are equal, but for rounding errors of either sign."""
    problem = batch(matrices(400))
    multipliers = np.random.default_rng(2).normal(size=(M, 400))
    outermost = (problem.matrix.transposed_times(multipliers) > 0.0).astype(float)
    exact = Batch(problem.matrix, problem.matrix.times(outermost), problem.variables)
    assert not _infeasible(exact, _State.at(exact, multipliers)).any()
    beyond = Batch(problem.matrix, exact.right_side + 1e-3 * multipliers, problem.variables)
    assert _infeasible(beyond, _State.at(beyond, multipliers)).all()
