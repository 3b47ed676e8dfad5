"""Rows: a CasADi function over arrays, in a compiled loop or by CasADi's map, with the same numbers."""

import logging
import threading
import tracemalloc

import casadi as ca
import numpy as np
import pytest

from designopt.dynamics import rows as module
from designopt.dynamics.compile import CompilerError
from designopt.dynamics.rows import Rows, outputs_over
from designopt.dynamics.system import System, Variable

PATHS = [True, False]


@pytest.fixture(params=PATHS, ids=["compiled", "interpreted"])
def compiled(request):
    """Both ways to evaluate; the compiled one is skipped without a compiler."""
    if request.param:
        request.getfixturevalue("compiler")
    return request.param


@pytest.fixture(scope="session")
def arm():
    """Moment arms (2,), a matrix (2, 3) and the height of a point of a planar arm, from angles, lengths and a shift."""
    q, lengths, shift = ca.SX.sym("q", 2), ca.SX.sym("lengths", 3), ca.SX.sym("shift")
    height = lengths[0] * ca.sin(q[0]) + lengths[1] * ca.sin(q[0] + q[1]) + shift
    matrix = ca.jacobian(ca.exp(-lengths * q[0]) * height, lengths)[:2, :]
    return ca.Function(
        "arm", [q, lengths, shift], [ca.gradient(height, q), matrix, height], ["q", "lengths", "shift"], ["r", "J", "h"]
    )


def frames(n, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.uniform(0.1, 0.4, size=(n, 3)), rng.normal(size=n)


def one_by_one(function, *args):
    return [[np.array(r) for r in function.call([np.array(a[k]) for a in args])] for k in range(len(args[0]))]


@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_every_row_is_what_the_function_gives_for_its_arguments(arm, compiled, n):
    q, lengths, shift = frames(n)
    r, jacobian, height = Rows(arm, compiled=compiled)(q, lengths, shift)
    assert (r.shape, jacobian.shape, height.shape) == ((n, 2), (n, 2, 3), (n,))
    for k, (r_k, jacobian_k, height_k) in enumerate(one_by_one(arm, q, lengths, shift)):
        np.testing.assert_allclose(r[k], r_k.ravel(), rtol=1e-14)
        np.testing.assert_allclose(jacobian[k], jacobian_k, rtol=1e-14)
        np.testing.assert_allclose(height[k], height_k.item(), rtol=1e-14)


def test_compiled_and_interpreted_numbers_are_equal_to_round_off(arm, compiler):
    args = frames(5000)
    for one, interpreted in zip(Rows(arm, compiled=True)(*args), Rows(arm, compiled=False)(*args), strict=True):
        np.testing.assert_allclose(one, interpreted, rtol=4 * np.finfo(float).eps)


def test_a_value_without_rows_is_shared_by_all(arm, compiled):
    q, lengths, _ = frames(9)
    rows = Rows(arm, compiled=compiled)
    shared = rows(q, lengths[0], 0.5)
    repeated = rows(q, np.tile(lengths[0], (9, 1)), np.full((9, 1), 0.5))
    for one, separate in zip(shared, repeated, strict=True):
        assert one.tolist() == separate.tolist()
    assert rows(q[0], lengths[0], [0.5])[0].shape == (1, 2)


def test_matrices_are_read_and_written_as_numpy_indexes_them(compiled):
    a, b = ca.MX.sym("a", 2, 3), ca.MX.sym("b", 3, 4)
    product = Rows(ca.Function("product", [a, b], [a @ b, a[0, :], ca.MX(3, 2)]), compiled=compiled)
    rng = np.random.default_rng(2)
    left, right = rng.normal(size=(5, 2, 3)), rng.normal(size=(3, 4))
    result, first, zero = product(left, right)
    np.testing.assert_allclose(result, left @ right, rtol=1e-13)
    assert first.tolist() == left[:, 0].tolist()
    assert zero.tolist() == np.zeros((5, 3, 2)).tolist()


def test_views_that_are_not_contiguous_and_integers_are_read_right(arm, compiled):
    q, lengths, shift = frames(12)
    rows = Rows(arm, compiled=compiled)
    strided = rows(np.asfortranarray(q)[::2], lengths[::2], shift[::2])
    assert strided[2].tolist() == rows(q[::2].copy(), lengths[::2].copy(), shift[::2].copy())[2].tolist()
    assert rows(np.array([[1, 2]]), [1, 2, 3], 1)[2].tolist() == rows([[1.0, 2.0]], [1.0, 2.0, 3.0], 1.0)[2].tolist()


def test_nan_stays_in_its_row(arm, compiled):
    q, lengths, shift = frames(40)
    rows = Rows(arm, compiled=compiled)
    sound = rows(q, lengths, shift)
    shift[17] = np.nan
    q[3, 0] = np.inf
    marred = rows(q, lengths, shift)
    assert np.flatnonzero(np.isnan(marred[2])).tolist() == [3, 17]
    keep = np.delete(np.arange(40), [3, 17])
    for one, disturbed in zip(sound, marred, strict=True):
        assert one[keep].tolist() == disturbed[keep].tolist()


def test_no_rows_give_empty_results(arm, compiled):
    r, jacobian, height = Rows(arm, compiled=compiled)(np.empty((0, 2)), [0.1, 0.2, 0.3], np.empty(0))
    assert (r.shape, jacobian.shape, height.shape) == ((0, 2), (0, 2, 3), (0,))


def test_empty_inputs_and_results_are_passed_through(compiled):
    x, u = ca.SX.sym("x", 2), ca.SX.sym("u", 0)
    rows = Rows(ca.Function("empty", [x, u], [x * 2, ca.SX(0, 1)], ["x", "u"], ["y", "none"]), compiled=compiled)
    for nothing in ((), np.empty((3, 0))):
        double, none = rows(np.ones((3, 2)), nothing)
        assert double.tolist() == [[2.0, 2.0]] * 3
        assert none.shape == (3, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: np.ones((4, 3))}, r"arm: q has shape \(4, 3\), not \(n, 2\) or \(2,\) for all rows"),
        ({1: np.ones(4)}, r"lengths has shape \(4,\), not \(n, 3\) or \(3,\)"),
        ({2: np.ones((4, 2))}, r"shift has shape \(4, 2\), not \(n,\) or a number"),
        ({2: np.ones(5)}, "differ in their number of rows: q has 4, lengths has 4, shift has 5"),
        ({0: [["a", "b"]]}, "q is not an array of numbers"),
        ({0: [[1.0, 2.0], [3.0]]}, "q is not an array of numbers"),
    ],
)
def test_arrays_that_do_not_fit_are_named(arm, compiled, change, message):
    args = list(frames(4))
    for i, value in change.items():
        args[i] = value
    with pytest.raises(ValueError, match=message):
        Rows(arm, compiled=compiled)(*args)


def test_a_missing_argument_is_reported_with_the_names_of_all(arm):
    with pytest.raises(ValueError, match=r"arm takes 3 arrays \(q, lengths, shift\), not 2"):
        Rows(arm, compiled=False)([0, 0], [1, 1, 1])


def test_memory_in_work_does_not_grow_with_the_number_of_rows(arm, monkeypatch):
    """What CasADi allocates is not traced: the largest of its maps is looked at instead."""
    chunks = []
    blocks = module._blocks
    monkeypatch.setattr(module, "_blocks", lambda n, most: [chunks.append(b) or b for b in blocks(n, most)])
    args = frames(100_000)
    rows = Rows(arm, compiled=False)
    tracemalloc.start()
    results = rows(*args)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    width = 2 + 3 + 1 + 2 + 6 + 1
    assert max(count for _, count in chunks) * width <= module._IN_WORK
    assert sum(count for _, count in chunks) == 100_000
    assert peak < 1.9 * sum(r.nbytes for r in results)  # 1.05 alone; other threads may allocate


def test_functions_with_look_up_tables_run_in_both_ways(compiled):
    table = ca.interpolant("table", "linear", [[0.0, 1.0, 3.0]], [0.0, 10.0, 50.0])
    x = ca.MX.sym("x")
    rows = Rows(ca.Function("looked_up", [x], [table(x)]), compiled=compiled)
    assert rows([0.5, 2.0, 3.0])[0].tolist() == [5.0, 30.0, 50.0]


def test_threads_share_one_object(arm, compiled):
    rows = Rows(arm, compiled=compiled)
    args = [frames(3000, seed) for seed in range(4)]
    expected = [rows(*a)[1] for a in args]
    results = [None] * 4

    def work(i):
        results[i] = rows(*args[i])[1]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((one == reference).all() for one, reference in zip(results, expected, strict=True))


def test_without_a_compiler_the_map_runs_with_a_warning(arm, monkeypatch, caplog, tmp_path):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with caplog.at_level(logging.WARNING):
        rows = Rows(arm)
    assert not rows.compiled
    assert "arm runs over rows interpreted" in caplog.text
    assert rows(*frames(3))[2].shape == (3,)
    with pytest.raises(CompilerError, match="no C compiler"):
        Rows(arm, compiled=True)


def test_the_outputs_of_a_system_are_those_of_its_expressions_at_every_time():
    x, u, k, m = (ca.SX.sym(n) for n in ("x", "u", "k", "m"))
    system = System.from_expressions(
        "spring",
        states=[(Variable("x", "m"), x, (u - k * x) / m)],
        controls=[(Variable("u", "N"), u)],
        parameters=[(Variable("k", "N/m"), k)],
        data=[(Variable("m", "kg"), m)],
        outputs=[(Variable("force", "N"), u - k * x), (Variable("weight", "N"), 9.81 * m)],
    )
    times = np.linspace(0.0, 1.0, 5)
    values = {"x": times**2, "u": np.cos(times), "more": times}
    outputs = outputs_over(system, values, {"k": 3.0, "other": 1.0}, {"m": 2.0}, times)
    np.testing.assert_allclose(outputs["force"], np.cos(times) - 3.0 * times**2, rtol=1e-15)
    np.testing.assert_array_equal(outputs["weight"], np.full(5, 9.81 * 2.0))
    assert list(outputs) == ["force", "weight"]


def test_a_system_without_outputs_or_parameters_has_no_outputs_over_time():
    x = ca.SX.sym("x")
    system = System.from_expressions("still", states=[(Variable("x", "m"), x, -x)])
    assert outputs_over(system, {"x": np.zeros(3)}, {}, {}, np.zeros(3)) == {}


@pytest.mark.parametrize("rows", [1, 3])
def test_results_that_are_zero_for_every_argument_are_zero_in_a_block_of_one_row(rows: int) -> None:
    """CasADi's map of one row makes such a result sparse when another argument is empty, and then writes nothing."""
    arguments = [ca.SX.sym("t"), ca.SX(0, 1)]
    zeros = Rows(ca.Function("zeros", arguments, [ca.SX.zeros(6, 1)]), compiled=False)
    left_in_memory = [np.full((rows, 6), 1e200) for _ in range(50)]
    del left_in_memory
    (result,) = zeros(np.ones(rows), np.zeros(0))
    assert not result.any()
