"""Small systems are eliminated by nodes: against NumPy's dense methods, and against fronts in a solve."""

import ctypes

import benchmark_problems as problems
import numpy as np
import pytest
import scipy.sparse as sp

from designopt.collocation import Options, solve
from designopt.collocation.interior import library as interior
from designopt.collocation.linear import library
from designopt.dynamics.compile import find_compiler, lane_flags, load_library

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="there is no C compiler")

#: Solves one system by nodes: the number of negative pivots, or -1 if a pivot is too small or the system too large.
SOLVE_BY_NODES = """
int solve_by_nodes(int n, const int *begin, const int *row, const double *value, double *b) {
    Memory memory = {0};
    Pattern pattern = {n, begin, row};
    int *partner = TAKE(&memory, int, 2 * n);
    pair_up(pattern, value, partner, partner + n, &memory);
    Analysis *analysis = analyse(pattern, partner, partner + n);
    Factor *factor = new_factor(analysis);
    factor->is_by_nodes = 1;
    factorize(analysis, value, FIRST_THRESHOLD, 1e-100, NULL, factor);
    int negative = factor->is_by_nodes ? factor->negative : -1;
    solve(analysis, factor, 0, b);
    free_factor(factor), free_analysis(analysis), free(partner);
    return negative;
}
"""


def solved_by_nodes(matrix, right):
    """The number of negative pivots (-1 if fronts took over), and the solution."""
    code = load_library(library.source() + SOLVE_BY_NODES, "a test of nodes", lane_flags())
    lower = sp.csc_matrix(sp.tril(matrix))
    lower.sort_indices()
    begin, row = lower.indptr.astype(np.int32), lower.indices.astype(np.int32)
    x = np.array(right, float)
    negative = code.solve_by_nodes(
        len(x), *(each.ctypes.data_as(ctypes.c_void_p) for each in (begin, row, lower.data, x))
    )
    return negative, x


def random_system(rng):
    """Newton's equations of a program: a Hessian block, equations of a few variables, some without a variable that
    only they have."""
    n = int(rng.integers(4, 50))
    m = int(rng.integers(1, n))
    hessian = sp.diags(10.0 ** rng.uniform(-3, 3, n)) + sp.random(n, n, 0.02, random_state=rng)
    jacobian = sp.random(m, n, min(3.0 / n, 1.0), random_state=rng) + sp.eye(m, n, int(rng.integers(0, n - m + 1)))
    return sp.csc_matrix(sp.bmat([[hessian + hessian.T, jacobian.T], [jacobian, sp.csc_matrix((m, m))]]))


def test_solutions_and_signs_of_eigenvalues_are_those_of_dense_methods():
    rng = np.random.default_rng(3)
    count = 0
    for _ in range(80):
        matrix = random_system(rng)
        eigenvalues = np.linalg.eigvalsh(matrix.toarray())
        x = rng.standard_normal(matrix.shape[0])
        negative, solution = solved_by_nodes(matrix, matrix @ x)
        if np.abs(eigenvalues).min() < 1e-6 * np.abs(eigenvalues).max():
            continue
        count += negative >= 0
        assert negative in (-1, (eigenvalues < 0.0).sum())
        assert np.abs(matrix @ solution - matrix @ x).max() < 1e-7 * np.abs(matrix).max() * np.abs(x).max()
    assert count > 40  # few systems need other pivots than the pairs


def test_equations_exchange_variables_so_that_each_has_one():
    # both equations prefer the second variable, as it comes later and in as few equations; the first of them takes it
    matrix = sp.csc_matrix([[1.0, 0.0, 1.0, 1.0], [0.0, 2.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    negative, x = solved_by_nodes(matrix, [1.0, 2.0, 3.0, 4.0])
    assert negative == 2
    np.testing.assert_allclose(matrix @ x, [1.0, 2.0, 3.0, 4.0], rtol=1e-14)


@pytest.mark.parametrize(
    ("variable", "equation", "count"), [(2.0, 0.0, 1), (-2.0, -1.0, 2), (2.0, 1.0, 0), (-2.0, 1.0, 1)]
)
def test_a_pair_has_the_signs_of_its_eigenvalues(variable, equation, count):
    matrix = sp.csc_matrix([[variable, 0.5], [0.5, equation]])
    negative, x = solved_by_nodes(matrix, [1.0, 2.0])
    assert negative == count
    np.testing.assert_allclose(matrix @ x, [1.0, 2.0], rtol=1e-14)


@pytest.mark.parametrize("size", [0.0, 1e-14])
def test_fronts_take_over_where_a_pivot_is_too_small(size):
    # the first two are variables: an entry joins the last two, so that only the last one is an equation
    matrix = sp.csc_matrix([[size, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0]])
    negative, x = solved_by_nodes(matrix, [1.0, 2.0, 3.0, 4.0])
    assert negative == -1
    np.testing.assert_allclose(matrix @ x, [1.0, 2.0, 3.0, 4.0], rtol=1e-14)


#: What lets the search eliminate by nodes, and the end of back substitution of a pair.
BY_NODES, BACK = "t->factor->is_by_nodes = 1;", "own[0] -= sum0, own[1] -= sum1;"


def solved_with(name, monkeypatch, old, new):
    """The solution of a problem whose search has the text `new` for `old`."""
    text = interior.source()
    assert text.count(old) == 1
    with monkeypatch.context() as patch:
        patch.setattr(interior, "source", lambda: text.replace(old, new))
        patch.setattr(interior, "_load_library", interior._load_library.__wrapped__)  # without its cache
        return solve(getattr(problems, name)(), Options(intervals=20, check=False))


@pytest.mark.parametrize("name", ["cart_pole", "goddard", "quarter_car", "double_integrator", "linear_tangent"])
def test_a_solve_is_that_with_fronts(name, monkeypatch):
    solution = solve(getattr(problems, name)(), Options(intervals=20, check=False))
    reference = solved_with(name, monkeypatch, BY_NODES, BY_NODES.replace("1", "0"))
    assert solution.solver == reference.solver
    assert solution.iterations == reference.iterations
    assert solution.objective == pytest.approx(reference.objective, rel=1e-11)
    assert not np.array_equal(solution.iterate.x, reference.iterate.x)  # otherwise it compares fronts with fronts


@pytest.mark.parametrize("name", ["cart_pole", "goddard"])
def test_fronts_take_over_where_solutions_by_nodes_are_not_exact(name, monkeypatch):
    solution = solved_with(name, monkeypatch, BACK, BACK.replace("-=", "+="))
    reference = solved_with(name, monkeypatch, BY_NODES, BY_NODES.replace("1", "0"))
    assert solution.solver == reference.solver
    np.testing.assert_array_equal(solution.iterate.x, reference.iterate.x)
