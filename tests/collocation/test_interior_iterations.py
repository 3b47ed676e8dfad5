"""The interior point method on small programs: without its early reductions of the barrier parameter and its steps of
second order, and with IPOPT's first shift and multipliers, each iterate is that of IPOPT, which implements the same
paper (Wächter & Biegler 2006); the result satisfies the unscaled optimality conditions."""

from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

from designopt.collocation.interior import library, method
from designopt.collocation.interior.method import NEAR, RECORDED, SOLVED, Interior, Run
from designopt.collocation.solution.solution import Iterate
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.dynamics.compile import find_compiler

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")

FREE = np.inf


class SmallProgram:
    """Minimise `cost` over `x` (n,) within bounds, with `rows` (m,) within limits, as CasADi expressions."""

    def __init__(self, x, cost, rows, bounds=(-FREE, FREE), limits=(0.0, 0.0)):
        n, m = x.numel(), rows.numel()
        low, high = (np.broadcast_to(np.asarray(side, float), n).copy() for side in bounds)
        row_low, row_high = (np.broadcast_to(np.asarray(side, float), m).copy() for side in limits)
        self.bounds = ProgramBounds(low, high, row_low, row_high, np.zeros(0))
        self.expressions = {"x": x, "f": cost, "g": rows}
        p, factor, multipliers = ca.SX.sym("p", 0), ca.SX.sym("factor"), ca.SX.sym("y", m)
        curvature = ca.triu(ca.hessian(factor * cost + ca.dot(multipliers, rows), x)[0])
        cost, rows = ca.densify(cost), ca.densify(rows)
        self.transcription = SimpleNamespace(
            layout=SimpleNamespace(size=n),
            row_scale=np.ones(m),
            parameter_size=0,
            objective=ca.Function("f", [x, p], [cost]),
            constraints=ca.Function("g", [x, p], [rows]),
            gradient=ca.Function("df", [x, p], [cost, ca.densify(ca.gradient(cost, x))]),
            jacobian=ca.Function("dg", [x, p], [rows, ca.jacobian(rows, x)]),
            hessian=ca.Function("h", [x, p, factor, multipliers], [curvature]),
            box=lambda bounds: (bounds.low, bounds.high),
            row_box=lambda bounds: (bounds.row_low, bounds.row_high),
        )

    def run(self, start, tolerance=1e-8, constraint_tolerance=1e-4, acceptable=0.0, multipliers=None, limit=200):
        """The status and the run."""
        interior = Interior(self.transcription, library.loaded())
        run = Run(interior, self.bounds, np.asarray(start, float), multipliers)
        return run.go(tolerance, constraint_tolerance, acceptable, limit, lambda: False), run

    def by_ipopt(self, start):
        """IPOPT's statistics and solution."""
        b = self.bounds
        quiet = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "tol": 1e-8}}
        solver = ca.nlpsol("peer", "ipopt", self.expressions, quiet)
        solution = solver(x0=start, lbx=b.low, ubx=b.high, lbg=b.row_low, ubg=b.row_high)
        return solver.stats(), {name: solution[name].full().ravel() for name in ("x", "lam_g")}


def circle():
    """Full Newton steps along the circle increase cost and violation (Maratos 1978; Nocedal & Wright, example 15.4)."""
    x = ca.SX.sym("x", 2)
    return SmallProgram(x, 2.0 * (ca.sumsqr(x) - 1.0) - x[0], ca.sumsqr(x) - 1.0)


def hock_schittkowski_71():
    x = ca.SX.sym("x", 4)
    cost = x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]
    rows = ca.vertcat(x[0] * x[1] * x[2] * x[3], ca.sumsqr(x))
    return SmallProgram(x, cost, rows, (1.0, 5.0), ([25.0, 40.0], [FREE, 40.0]))


def waves():
    """Several minima, curvature of both signs."""
    x = ca.SX.sym("x", 2)
    cost = ca.sin(3.0 * x[0]) * ca.cos(2.0 * x[1]) + 0.1 * ca.sumsqr(x)
    return SmallProgram(x, cost, x[0] * x[1] + ca.exp(x[0]) - 1.5, (-3.0, 3.0))


def saddle():
    """Variables with one limit and with two, rows with one value and with two limits, cost without convexity."""
    x = ca.SX.sym("x", 3)
    cost = x[0] * x[1] * x[2] + 0.1 * ca.sumsqr(x - 0.3) ** 2
    rows = ca.vertcat(x[0] ** 2 + x[1] ** 2 - 2.0 * x[2], ca.sin(x[0] * x[2]) + x[1])
    return SmallProgram(x, cost, rows, (-2.0, [2.0, 2.0, FREE]), ([0.0, -0.5], [0.0, 0.5]))


#: Starts of `saddle`: uniform from -2 to 2, of seed 0.
STARTS = np.random.default_rng(0).uniform(-2.0, 2.0, (12, 3))


@pytest.mark.parametrize(
    ("program", "start"),
    [
        *((circle(), [np.cos(angle), np.sin(angle)]) for angle in (0.5, 1.0, 2.0)),
        (hock_schittkowski_71(), [1.0, 5.0, 5.0, 1.0]),
        (waves(), [-1.2, 1.0]),
        *((saddle(), STARTS[k]) for k in (0, 3, 6, 10, 11)),
    ],
    ids=["circle-0.5", "circle-1", "circle-2", "hs71", "waves", *(f"saddle-{k}" for k in (0, 3, 6, 10, 11))],
)
def test_every_iterate_is_that_of_ipopt(program, start, monkeypatch):
    """A difference in steps, corrections of second order, filter, shifts of the diagonal or barrier changes the
    iterates. Below a barrier of 1e-7, limits are relaxed differently, by less than 1e-8."""
    monkeypatch.setattr(method, "KAPPA_EARLY", 10.0)
    monkeypatch.setattr(method, "SECOND_BELOW", 0.0)
    monkeypatch.setattr(method, "FIRST_SHIFT", 1e-4)
    monkeypatch.setattr(method, "FAR_OFF", np.inf)
    status, run = program.run(start)
    statistics, solution = program.by_ipopt(start)

    assert status == SOLVED
    assert statistics["success"]
    history, expected = run.stats()["iterations"], statistics["iterations"]
    for name in RECORDED:
        if name != "d_norm":
            np.testing.assert_allclose(history[name], expected[name], rtol=1e-5, atol=1e-7, err_msg=name)
    iterate, _, _ = run.iterate()
    np.testing.assert_allclose(iterate.x, solution["x"], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(iterate.constraint_multipliers, solution["lam_g"], rtol=1e-5, atol=1e-6)


def test_early_reductions_of_large_barriers_save_iterations_to_the_same_optimum(monkeypatch):
    _, early = hock_schittkowski_71().run([1.0, 5.0, 5.0, 1.0])
    monkeypatch.setattr(method, "KAPPA_EARLY", 10.0)
    monkeypatch.setattr(method, "SECOND_BELOW", 0.0)
    _, late = hock_schittkowski_71().run([1.0, 5.0, 5.0, 1.0])

    assert early.iterations < late.iterations
    np.testing.assert_allclose(early.iterate()[0].x, late.iterate()[0].x, rtol=1e-7)


def test_barriers_fall_linearly_while_the_diagonal_is_shifted():
    """From this start the diagonal is shifted when the barrier of 0.02 is left early: the next one is a fifth of it.
    The one after that is its power 1.5 again."""
    _, run = waves().run([-1.4, 1.8])

    barriers = sorted(set(run.stats()["iterations"]["mu"]), reverse=True)
    assert barriers[:4] == pytest.approx([0.1, 0.02, 0.004, 0.004**1.5])


@pytest.mark.parametrize(("size", "start"), [(1.0, [0.0, 0.0, 1e-9]), (10.0, [0.0, 0.0, 1e-9]), (0.1, [1.0, 0.5, 0.0])])
def test_a_matrix_that_only_rounding_errors_make_regular_gives_steps_of_finite_length(size, start):
    """The minimum of (x - 2)^2 + y^2 + z^2 / 10 + z / 100 with x + 3 y = 4 and z^2 = 1. At z = 0 the gradients of the
    rows are dependent but for rounding errors, and multipliers grow to 1e15. By hand: x = 2.2, y = 0.6, z = 1 or -1."""
    x = ca.SX.sym("x", 3)
    cost = (x[0] - 2.0) ** 2 + x[1] ** 2 + 0.1 * x[2] ** 2 + 0.01 * x[2]
    rows = ca.vertcat(0.1 * x[0] + 0.3 * x[1] - 0.4, 0.3 * x[0] + 0.9 * x[1] - 1.2 + size * (x[2] ** 2 - 1.0))
    status, run = SmallProgram(x, cost, rows, (-5.0, 5.0)).run(start)
    iterate, _, _ = run.iterate()

    assert status == SOLVED
    assert run.iterations <= 12
    np.testing.assert_allclose(np.abs(iterate.x), [2.2, 0.6, 1.0], rtol=1e-6)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_steps_of_second_order_reach_limits_with_zero_multipliers_in_fewer_iterations(side, monkeypatch):
    """The minimum of x^2 + (y - z)^2 + z^2 with limits of x and y at zero, from inside. Each plain step halves the
    distance, because all multipliers of limits are zero."""
    x = ca.SX.sym("x", 3)
    cost = x[0] ** 2 + (x[1] - x[2]) ** 2 + x[2] ** 2
    limits = sorted([0.0, 3.0 * side])
    program = SmallProgram(x, cost, x[0] - x[1], bounds=([*2 * [limits[0]], -5.0], [*2 * [limits[1]], 5.0]))
    _, second = program.run(side * np.ones(3), tolerance=1e-11)
    monkeypatch.setattr(method, "SECOND_BELOW", 0.0)
    _, plain = program.run(side * np.ones(3), tolerance=1e-11)

    assert second.iterations <= 0.8 * plain.iterations
    for run in (second, plain):
        np.testing.assert_allclose(run.iterate()[0].x, 0.0, atol=1e-5)
        assert run.cost <= 1e-10


@pytest.mark.parametrize("limits", [(1.0, 1.0), (1.0, FREE), (1.0, 3.0)])
@pytest.mark.parametrize("steep", [1.0, 1e5])
def test_multipliers_of_a_steep_row_are_those_of_the_unscaled_row(limits, steep):
    """The solver divides the row by 1e3 and the cost by 1e2. By hand: the minimum of 5e3 x^2 with steep x >= steep
    is at 1, with the multiplier -1e4 / steep."""
    x = ca.SX.sym("x", 2)
    cost = 5e3 * x[0] ** 2 + 0.5 * (x[1] - 1.0) ** 2
    program = SmallProgram(x, cost, steep * x[0], limits=(steep * limits[0], steep * limits[1]))
    status, run = program.run([2.0, 0.0])
    iterate, rows, gradient = run.iterate()

    assert status == SOLVED
    assert rows == pytest.approx([steep], rel=1e-7)
    assert iterate.constraint_multipliers == pytest.approx([-1e4 / steep], rel=1e-6)
    assert np.abs(gradient).max() <= 1e-4

    warm_status, warm = program.run(iterate.x, multipliers=iterate)
    assert warm_status == SOLVED
    assert warm.iterations <= 3
    assert warm.stats()["iterations"]["inf_du"][0] <= 0.1  # the gradient of the cost alone is 1e4


def test_multipliers_of_bounds_belong_to_the_unscaled_cost():
    """By hand: the minimum of 1e4 (x - 2 y) in the unit square is at (0, 1), with the slopes of the cost there."""
    x = ca.SX.sym("x", 2)
    program = SmallProgram(x, 1e4 * (x[0] - 2.0 * x[1]), x[0] + x[1], (0.0, 1.0), (-FREE, FREE))
    status, run = program.run([0.5, 0.5])
    iterate, _, _ = run.iterate()

    assert status == SOLVED
    assert iterate.x == pytest.approx([0.0, 1.0], abs=1e-7)
    assert iterate.bound_multipliers == pytest.approx([-1e4, 2e4], rel=1e-6)
    warm_status, warm = program.run(iterate.x, multipliers=Iterate(iterate.x, np.zeros(1), iterate.bound_multipliers))
    assert warm_status == SOLVED
    assert warm.iterations <= 4


@pytest.mark.parametrize(
    ("power", "low", "tolerance"),
    [
        (4, -FREE, 1e-4),  # 1e8 x^4 / 4 is divided by 1e6: the tolerance alone would leave a gradient of 100
        (1, 0.0, 1e-2),  # 1e8 x with x >= 0, divided by 1e6: the tolerance alone leaves a cost of 2827
    ],
    ids=["gradient", "complementarity"],
)
def test_a_steep_cost_is_solved_to_its_own_accuracy(power, low, tolerance):
    x = ca.SX.sym("x", 1)
    program = SmallProgram(x, 1e8 / power * x**power, x, (low, FREE), (-FREE, FREE))
    status, run = program.run([1.0], tolerance=tolerance)

    assert status == SOLVED
    assert abs(1e8 * run.iterate()[0].x[0] ** max(power - 1, 1)) <= 1.0


def test_a_run_is_not_near_while_a_steep_row_is_violated():
    """Newton's steps toward the fourfold root multiply 1e12 x^4 by 0.316 each. Divided by 4e10, the row is below 0.1
    for more than 15 iterations in which the unscaled row is above 0.01."""
    x = ca.SX.sym("x", 2)
    program = SmallProgram(x, 0.5 * (x[1] - 1.0) ** 2, 1e12 * x[0] ** 4)
    status, run = program.run([1.0, 0.0], tolerance=1e-13, constraint_tolerance=1e-13, acceptable=0.1)

    assert status in (SOLVED, NEAR)
    assert abs(run.iterate()[1][0]) <= 1e-2


@pytest.mark.parametrize(
    ("violation", "slope", "multiplier"), [(6.0, 0.2, 0.0), (6.0, 0.05, -1.0), (4.0, 0.2, -1.0), (4.0, 5.0, -1.0)]
)
def test_first_multipliers_are_zero_if_they_leave_much_of_the_gradient_and_a_large_violation(
    violation, slope, multiplier
):
    """Those of least squares leave the slope in y."""
    x = ca.SX.sym("x", 2)
    program = SmallProgram(x, x[0] + slope * x[1], x[0] - violation)
    _, run = program.run([0.0, 0.0], limit=0)

    np.testing.assert_allclose(run.iterate()[0].constraint_multipliers, multiplier, atol=1e-12)
