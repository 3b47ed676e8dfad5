"""The solver of linear systems that IPOPT loads: against NumPy's dense ones, and against MUMPS."""

import ctypes
from concurrent.futures import ThreadPoolExecutor

import benchmark_problems as problems
import numpy as np
import pytest
import scipy.sparse as sp

from designopt.collocation import Options, Program, solve
from designopt.collocation.linear import library
from designopt.dynamics.compile import find_compiler, lane_flags, load_library

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="there is no C compiler")

#: Where a result stands in the structure of integers that a call fills (flag, delayed pivots, negative ones).
FLAG, DELAYED, NEGATIVE = 0, 9, 14


class System:
    """A symmetric matrix, factorized by the library in the way IPOPT does."""

    def __init__(self, matrix, threshold=1e-8, lanes=None):
        self._library = load_library(library.source(), "the linear solver", lanes or lane_flags())
        lower = sp.csc_matrix(sp.tril(matrix))
        lower.sort_indices()
        self._size = lower.shape[0]
        self._begin, self._row = ((a + 1).astype(np.int32) for a in (lower.indptr, lower.indices))
        self._value = lower.data.copy()
        self._handles = ctypes.c_void_p(), ctypes.c_void_p()
        self._control, self.info = np.zeros(50), np.zeros(100, np.int32)  # both longer than the structures are
        self._call("default_control", self._control)
        self._control[6] = threshold  # after six whole numbers, one real, three whole ones and the smallest pivot
        self._call(
            "analyse", 0, self._size, self._begin, self._row, None, self._handles[0], self._control, self.info, None
        )
        self._call("factor", 4, self._begin, self._row, self._value, *self._handles, self._control, self.info, None)

    def _call(self, name, *arguments):
        def argument(a):
            if isinstance(a, np.ndarray):
                return a.ctypes.data_as(ctypes.c_void_p)
            return ctypes.byref(a) if isinstance(a, ctypes.c_void_p) else a

        getattr(self._library, f"ma97_{name}_d")(*map(argument, arguments))

    def solved(self, right):
        x = np.array(right, float)
        self._call("solve", 0, 1, x, self._size, *self._handles, self._control, np.zeros_like(self.info))
        return x

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._call("finalise", *self._handles)


def random_matrix(rng, *, dense):
    """A system as an optimizer has them: a symmetric block that need not be definite, equations below, zeros."""
    n = int(rng.integers(2, 120))
    m = int(rng.integers(0, n))
    H = sp.random(n, n, rng.uniform(0.0, 0.1), random_state=rng) + sp.diags(
        rng.standard_normal(n) * 10.0 ** rng.uniform(-4, 4, n) * (rng.random(n) < 0.7)
    )
    J = sp.lil_matrix(sp.random(m, n, min(3.0 / n, 1.0), random_state=rng) + sp.eye(m, n))
    if dense and m:
        J[:, n - 1] = 1.0
    return sp.csc_matrix(sp.bmat([[H + H.T, J.T], [J, sp.csc_matrix((m, m))]]) if m else H + H.T)


@needs_compiler
def test_solutions_and_signs_of_eigenvalues_are_those_of_dense_methods():
    rng = np.random.default_rng(1)
    delayed = 0
    for trial in range(80):
        matrix = random_matrix(rng, dense=trial % 4 == 0)
        eigenvalues = np.linalg.eigvalsh(matrix.toarray())
        regular = np.abs(eigenvalues).min() > 1e-10 * np.abs(eigenvalues).max()
        with System(matrix, threshold=1e-2) as system:
            if not regular:
                continue
            assert system.info[FLAG] == 0
            assert system.info[NEGATIVE] == (eigenvalues < 0.0).sum()
            delayed += system.info[DELAYED]
            x = rng.standard_normal(matrix.shape[0])
            error = matrix @ system.solved(matrix @ x) - matrix @ x
            assert np.abs(error).max() < 1e-9 * np.abs(matrix).max() * max(1.0, np.abs(x).max())
    assert delayed > 30  # pivots that did not hold went to the next front


@needs_compiler
def test_the_number_of_lanes_does_not_change_a_bit_of_a_solution():
    rng = np.random.default_rng(2)
    for _ in range(20):
        matrix = random_matrix(rng, dense=False)
        right = rng.standard_normal(matrix.shape[0])
        with System(matrix, 1e-2) as system, System(matrix, 1e-2, lanes=("-DLANES=2",)) as pairs:
            assert system.info[FLAG] == pairs.info[FLAG]
            if system.info[FLAG] == 0:
                np.testing.assert_array_equal(system.solved(right), pairs.solved(right))


@needs_compiler
@pytest.mark.parametrize(
    "matrix",
    [np.zeros((3, 3)), np.diag([1.0, 0.0, 2.0]), np.array([[1.0, 1.0], [1.0, 1.0]]), np.diag([1.0, np.nan])],
)
def test_a_singular_matrix_is_called_so(matrix):
    with System(sp.csc_matrix(matrix)) as system:
        assert system.info[FLAG] == -7


@needs_compiler
def test_a_long_chain_with_a_variable_that_all_equations_have_is_solved():
    n = 20_000
    rng = np.random.default_rng(0)
    H = sp.diags([*10.0 ** rng.uniform(-6, 6, n - 1), 0.0])
    J = sp.lil_matrix(sp.diags([np.full(n, 1.0), np.full(n - 1, -1.1)], [0, 1], shape=(n - 2, n)))
    J[:, n - 1] = rng.uniform(0.1, 1.0, (n - 2, 1))
    matrix = sp.csc_matrix(sp.bmat([[H, J.T], [J, sp.csc_matrix((n - 2, n - 2))]]))
    x = rng.standard_normal(matrix.shape[0])
    with System(matrix) as system:
        assert system.info[NEGATIVE] == n - 2
        error = matrix @ system.solved(matrix @ x) - matrix @ x
        assert np.abs(error).max() < 1e-7 * np.abs(matrix @ x).max()


@needs_compiler
@pytest.mark.parametrize("name", ["cart_pole", "van_der_pol", "linear_tangent", "double_integrator", "goddard"])
def test_a_solve_is_that_with_mumps(name):
    problem = getattr(problems, name)()
    solution = solve(problem, Options(intervals=20, check=False, ipopt={"print_level": 0}))
    mumps = solve(problem, Options(intervals=20, check=False, ipopt={"linear_solver": "mumps"}))

    assert (solution.solver, mumps.solver) == ("ipopt, exact hessian, designopt ldl", "ipopt, exact hessian, mumps")
    assert solution.status is mumps.status
    assert solution.objective == pytest.approx(mumps.objective, rel=1e-8)


@needs_compiler
def test_programs_of_one_structure_are_solved_in_threads():
    problem = problems.cart_pole()
    expected = Program(problem, Options(intervals=20)).solve().objective
    with ThreadPoolExecutor(4) as pool:
        objectives = list(
            pool.map(lambda n: Program(problem, Options(intervals=n)).solve().objective, [20, 21, 22] * 4)
        )
    assert objectives[::3] == [expected] * 4


@pytest.mark.parametrize(
    ("compile", "ipopt"), [("never", {}), ("auto", {"linear_solver": "mumps"}), ("always", {"hsllib": "libhsl.so"})]
)
def test_other_solvers_are_used_where_they_are_asked_for(compile, ipopt):
    assert library.settings(compile, ipopt) == {}


def test_without_a_compiler_it_is_mumps(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    solution = solve(problems.block_move(), Options(intervals=5))
    assert solution.solver == "ipopt, exact hessian, mumps"
    assert solution.objective == pytest.approx(12.0, rel=1e-9)
