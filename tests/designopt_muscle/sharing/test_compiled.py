"""The dual method in C: the same answers as by arrays, blocks and frames by themselves, and what it leaves unsolved."""

from dataclasses import replace

import numpy as np
import pytest
from designopt_mechanics.sharing.solvers import compiled, solve
from designopt_mechanics.sharing.statement.cost import Cost
from designopt_mechanics.sharing.statement.formulation import Formulation

from designopt.dynamics.compile import find_compiler

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="there is no C compiler")

ROWS, VARIABLES, FRAMES = 7, 23, 150


def formulation(exponent: float = 2.0, *, quadratic: float = 0.0, saturating: bool = False) -> Formulation:
    """Two blocks and a variable without a row; activations of some 0.2 to 0.8 balance the rows."""
    rng = np.random.default_rng(4)
    is_entry = rng.random((ROWS, VARIABLES)) < 0.5
    is_entry[:3, 11:] = is_entry[3:, :11] = is_entry[:, -1] = False
    is_entry[[0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 12, 13, 14, 15]] = True
    turn = np.linspace(0.0, 3.0, FRAMES)[:, None, None] + rng.random((ROWS, VARIABLES))
    matrix = is_entry * (rng.normal(size=(ROWS, VARIABLES)) + 0.3 * np.sin(turn))
    activations = 0.5 + 0.3 * np.sin(np.linspace(0.0, 9.0, FRAMES)[:, None] + np.arange(VARIABLES))
    column, square = np.ones((VARIABLES, 1)), exponent == 2.0 and not saturating
    weight = column * rng.uniform(0.5, 2.0, (VARIABLES, 1))
    cost = Cost(
        0.0 * column if square else weight,
        exponent * column,
        2.0 * weight if square else quadratic * column,
        0.01 * rng.normal(size=(VARIABLES, FRAMES)),
        saturating,
    )
    bounds = np.ones((FRAMES, VARIABLES))
    return Formulation(
        matrix, np.einsum("nmv,nv->nm", matrix, activations), 0.0 * bounds, bounds, cost, np.ones(ROWS), 1.0,
        np.eye(VARIABLES), np.zeros((ROWS, VARIABLES)), np.zeros(FRAMES),
    )  # fmt: skip


@pytest.mark.parametrize(
    "problem",
    [
        formulation(),
        formulation(3.0),
        formulation(1.5),
        formulation(2.5, quadratic=0.3),
        formulation(saturating=True),
    ],
    ids=["squares", "cubes", "power 1.5", "power and square", "saturating"],
)
def test_compiled_solutions_are_optimal_and_those_of_the_arrays(problem):
    kernel = compiled.kernel()
    assert kernel is not None
    solution, reference = solve._by_kernel(problem, kernel), solve._by_arrays(problem)
    assert solution.converged.all()
    assert np.abs(np.einsum("nmv,nv->nm", problem.matrix, solution.x) - problem.right_side).max() <= 1e-10
    slope = problem.cost.slope(solution.x.T).T - np.einsum("nmv,nm->nv", problem.matrix, solution.multipliers)
    distance = solution.x - np.clip(solution.x - slope, problem.lower, problem.upper)
    assert np.nanmax(np.abs(distance)) <= 1e-8
    np.testing.assert_allclose(solution.x, reference.x, atol=1e-8)


def test_frames_in_any_order_and_alone_have_the_same_solutions():
    problem = formulation(3.0)
    order = np.random.default_rng(1).permutation(FRAMES)
    kernel = compiled.kernel()
    assert kernel is not None
    x = solve._by_kernel(problem, kernel).x
    np.testing.assert_allclose(solve._by_kernel(problem.take(order), kernel).x, x[order], atol=1e-9)
    np.testing.assert_allclose(solve._by_kernel(problem.take(np.array([77])), kernel).x, x[[77]], atol=1e-9)


def test_a_block_that_cannot_be_balanced_is_infeasible_and_the_other_block_is_solved():
    problem = formulation()
    problem.right_side[40:60, :3] *= 50.0
    kernel = compiled.kernel()
    assert kernel is not None
    outcomes = kernel(problem).outcomes
    expected = np.full((FRAMES, 2), compiled.Outcome.CONVERGED)
    expected[40:60, 0] = compiled.Outcome.INFEASIBLE
    np.testing.assert_array_equal(outcomes, expected)
    np.testing.assert_array_equal(solve.solve(problem).converged, expected.min(axis=1) == expected.max(axis=1))


def test_frames_that_the_kernel_leaves_unsolved_are_solved_by_the_interior_point_method():
    problem = formulation()
    kernel = compiled.kernel()
    assert kernel is not None
    reference = kernel(problem)

    def interrupted(problem: Formulation) -> compiled.BlockSolutions:
        solutions = kernel(problem)
        solutions.outcomes[20:23, 1] = compiled.Outcome.UNSOLVED
        columns = np.flatnonzero(solutions.column_blocks == 1)
        solutions.x[20:23, columns] = np.nan
        return replace(solutions)

    solution = solve._by_kernel(problem, interrupted)
    assert solution.converged.all()
    np.testing.assert_allclose(solution.x, reference.x, atol=1e-6)
    np.testing.assert_array_equal(solution.x[:20], reference.x[:20])


def test_without_a_compiler_the_arrays_give_the_answer(monkeypatch):
    problem = formulation(3.0)
    expected = solve.solve(problem).x
    monkeypatch.setenv("CC", "no-such-compiler")
    compiled.kernel.cache_clear()
    try:
        assert compiled.kernel() is None
        np.testing.assert_array_equal(solve.solve(problem).x, solve._by_arrays(problem).x)
        np.testing.assert_allclose(solve.solve(problem).x, expected, atol=1e-9)
    finally:
        compiled.kernel.cache_clear()
