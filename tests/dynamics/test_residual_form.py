"""Systems whose accelerations are unknowns of their equations: simulated and linearised without an inverted matrix."""

import casadi as ca
import numpy as np
import pytest
from rod_chains import GRAVITY, LENGTH, MASS, rod_chain, start

from designopt.dynamics import SimulationStatus, Simulator, System, Variable, linearise, residual
from designopt.dynamics.simulation import functions
from designopt.dynamics.simulation.tableau import METHODS

METHOD = pytest.mark.parametrize("method", METHODS)
#: Unknowns that are solved by operations written out: all, or none.
WRITTEN_OUT = pytest.mark.parametrize("few", [100, 0], ids=["written out", "factored in loops"])


@pytest.fixture
def no_explicit_form(monkeypatch):
    """A symbolic inversion fails the test."""
    monkeypatch.setattr("designopt.dynamics.system.explicit", lambda *_: pytest.fail("inverted with symbols"))


def smooth_residual(kind):
    """As `smooth`, the rates from M s = r with a matrix that depends on state and time; b' is not linear in s."""
    a, b, s1, s2, k, t = (ca.SX.sym(n) for n in ("a", "b", "s1", "s2", "k", "t"))
    upper = {"definite": b, "not symmetric": 0.3, "indefinite": 4.0}[kind]
    lower = b if kind == "definite" else 4.0 if kind == "indefinite" else a * t
    rows = [[2 + ca.sin(t), upper], [lower, 3 - a]]
    rates = [a * (1 - a), 2 * a]  # the rate of a without its explicit time, and what makes that of b from it
    first, second = (row[0] * (s1 - rates[0]) + row[1] * (s2 - rates[1]) for row in rows)
    return System.from_expressions(
        "smooth_residual",
        states=[(Variable("a", ""), a, s1 * ca.cos(t)), (Variable("b", ""), b, s1 * ca.cos(t) * s2 - k * (b - a**2))],
        parameters=[(Variable("k", ""), k)],
        outputs=[(Variable("slope", ""), s1 * ca.cos(t)), (Variable("shifted", ""), a + t)],
        guards={"above": a + 1.0},
        unknowns=[(Variable("s1", ""), s1, first), (Variable("s2", ""), s2, second)],
        time=t,
    )


KIND = pytest.mark.parametrize("kind", ["definite", "not symmetric", "indefinite"])


@METHOD
@KIND
@WRITTEN_OUT
def test_the_order_of_convergence_holds(compiler, monkeypatch, smooth_exact, method, kind, few):
    """With a wrong df/dt, or df/dx without its part through the unknowns, it would fall to 1 or 2."""
    monkeypatch.setattr(functions, "FEW_UNKNOWNS", few)
    simulator = Simulator(smooth_residual(kind), method)
    errors = []
    for k in range(4, 9):
        run = simulator.run([0.25, 0.0625], [0, 2], p=[3.0], step=2.0**-k)
        errors.append(np.abs(run.x[-1] - smooth_exact([2.0])[0]).max())
    assert np.log2(errors[-2] / errors[-1]) == pytest.approx(METHODS[method].order, abs=0.1)


@METHOD
@KIND
@WRITTEN_OUT
@pytest.mark.usefixtures("no_explicit_form")
def test_steps_are_those_of_the_explicit_form(compiler, monkeypatch, smooth, method, kind, few):
    monkeypatch.setattr(functions, "FEW_UNKNOWNS", few)
    times = np.linspace(0.0, 3.0, 7)
    stated = Simulator(smooth_residual(kind), method).run([0.25, 0.0625], times, p=[3.0], step=0.02)
    explicit = Simulator(smooth, method).run([0.25, 0.0625], times, p=[3.0], step=0.02)
    np.testing.assert_allclose(stated.x, explicit.x, rtol=1e-12)
    a = stated.x[:, 0]
    np.testing.assert_allclose(stated.y, np.column_stack([a * (1 - a) * np.cos(times), a + times]), rtol=1e-12)


@KIND
@WRITTEN_OUT
@pytest.mark.usefixtures("no_explicit_form")
def test_the_interpreted_path_uses_the_same_form(monkeypatch, smooth_exact, kind, few):
    monkeypatch.setattr(functions, "FEW_UNKNOWNS", few)
    simulator = Simulator(smooth_residual(kind), rtol=1e-8, atol=1e-10, compiled=False)
    times = np.linspace(0.0, 4.0, 9)
    run = simulator.run([0.25, 0.0625], times, p=[3.0])
    a, _ = smooth_exact(times).T
    assert np.abs(run.x - smooth_exact(times)).max() < 1e-7
    np.testing.assert_allclose(run.y[:, 0], a * (1 - a) * np.cos(times), atol=1e-7)


def test_look_up_tables_run_in_residual_form_too(compiler):
    x, s, t, p = (ca.MX.sym(n, k) for n, k in (("x", 1), ("s", 1), ("t", 1), ("p", 1)))
    u, z, q = (ca.MX.sym(n, 0) for n in "uzq")
    drag = ca.interpolant("drag", "bspline", [np.linspace(-1, 3, 41)], np.linspace(-1, 3, 41) ** 3)
    arguments = [x, s, u, z, p, q, t]
    names = list(residual.RESIDUAL_ARGUMENTS)
    form = residual.ResidualForm(
        (Variable("s", ""),),
        ca.Function("residual", arguments, [(2 + ca.cos(t)) * (s + p * drag(x))], names, ["F"]),
        ca.Function("rates", arguments, [s], names, ["xdot"]),
    )
    system = System("looked_up", (Variable("x", ""),), (Variable("p", ""),), residual_form=form)
    run = Simulator(system, rtol=1e-9, atol=1e-11, compiled=True).run([1.0], [0.0, 2.0], p=[1.0])
    assert run.x[-1, 0] == pytest.approx(1 / np.sqrt(5.0), rel=1e-6)  # x' = -x^3; the spline holds cubics exactly


@WRITTEN_OUT
@pytest.mark.parametrize("compiled", [True, False])
def test_a_matrix_that_becomes_singular_ends_the_run_as_not_finite(request, monkeypatch, compiled, few):
    if compiled:
        request.getfixturevalue("compiler")
    monkeypatch.setattr(functions, "FEW_UNKNOWNS", few)
    x, s = ca.SX.sym("x"), ca.SX.sym("s")
    system = System.from_expressions(
        "closing", states=[(Variable("x", ""), x, s)], unknowns=[(Variable("s", ""), s, x * s + 1)]
    )
    simulator = Simulator(system, compiled=compiled)
    assert simulator.run([0.0], [0.0, 1.0]).status is SimulationStatus.NONFINITE
    run = simulator.run([1.0], [0.0, 1.0])  # x = sqrt(1 - 2 t)
    assert run.status in (SimulationStatus.NONFINITE, SimulationStatus.STEP_TOO_SMALL)
    assert run.t[-1] == pytest.approx(0.5, abs=1e-4)


@KIND
@pytest.mark.usefixtures("no_explicit_form")
def test_the_linearisation_is_that_of_the_explicit_form(smooth, kind):
    stated = linearise(smooth_residual(kind), [0.3, 0.2], p=[3.0], t=0.7)
    explicit = linearise(smooth, [0.3, 0.2], p=[3.0], t=0.7)
    for name in ("A", "B", "P", "Q", "rates"):
        np.testing.assert_allclose(getattr(stated, name), getattr(explicit, name), atol=1e-14)
    np.testing.assert_allclose(stated.C, [[0.4 * np.cos(0.7), 0], [1, 0]], atol=1e-14)


def test_right_hand_side_and_outputs_are_derived_when_they_are_read(smooth):
    system = smooth_residual("not symmetric")
    point = [[0.3, 0.2], [], [], [3.0], [], 0.7]
    np.testing.assert_allclose(np.array(system.rhs(*point)), np.array(smooth.rhs(*point)), rtol=1e-14)
    np.testing.assert_allclose(np.array(system.output(*point)).ravel(), [0.21 * np.cos(0.7), 1.0], rtol=1e-14)
    assert system.rhs is system.rhs
    assert system.rhs.name_in() == ["x", "u", "z", "p", "q", "t"]


def test_rods_move_as_lagrange_says():
    """Mass matrix and forces from the energies alone, at a random state (a check of rod_chains.py)."""
    n = 3
    q, v = ca.SX.sym("q", 3 * n), ca.SX.sym("v", 3 * n)
    phi, psi, length = ca.vertsplit(q, n)
    joint, kinetic, potential = ca.SX.zeros(3), 0.0, 0.0
    for i in range(n):
        along = length[i] * ca.vertcat(ca.cos(psi[i]) * ca.cos(phi[i]), ca.cos(psi[i]) * ca.sin(phi[i]), ca.sin(psi[i]))
        for part, weight in ((0.5 - np.sqrt(1 / 12), 0.5), (0.5 + np.sqrt(1 / 12), 0.5)):  # same moments up to the 2nd
            kinetic += MASS * weight / 2 * ca.sumsqr(ca.jacobian(joint + part * along, q) @ v)
        potential += -MASS * ca.dot(joint + along / 2, GRAVITY) + 4000.0 / 2 * (length[i] - LENGTH) ** 2
        joint += along
    momentum = ca.gradient(kinetic, v)
    forces = ca.gradient(kinetic - potential, q) - ca.jacobian(momentum, q) @ v
    terms = ca.Function("terms", [q, v], [ca.jacobian(momentum, v), forces])
    rng = np.random.default_rng(3)
    x = start(n) + rng.normal(scale=0.2, size=6 * n)
    matrix, right = (np.array(e, float) for e in terms(x[: 3 * n], x[3 * n :]))
    accelerations = linearise(rod_chain(n, damping=0.0), x, p=[4000.0]).rates[3 * n :]
    np.testing.assert_allclose(accelerations, np.linalg.solve(matrix, right).ravel(), rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("no_explicit_form")
def test_a_chain_of_five_elastic_rods_keeps_its_energy(compiler):
    run = Simulator(rod_chain(5, damping=0.0), rtol=1e-9, atol=1e-11).run(start(5), np.linspace(0, 1, 11), p=[4000.0])
    assert run.status is SimulationStatus.DONE
    assert np.abs(run.y - run.y[0]).max() < 1e-6 * abs(run.y[0, 0])


@pytest.mark.usefixtures("no_explicit_form")
def test_the_linearisation_of_five_rods_is_the_difference_of_their_motion(compiler):
    system, x = rod_chain(5), start(5)
    simulator = Simulator(system, rtol=1e-11, atol=1e-13)
    linearisation, h, dt = linearise(system, x, p=[4000.0]), 1e-4, 1e-3
    j = 7  # an elevation
    ahead, behind = x.copy(), x.copy()
    ahead[j] += h
    behind[j] -= h
    ends = [simulator.run(at, [0.0, dt], p=[4000.0]).x[-1] for at in (ahead, behind)]
    expected = (ends[0] - ends[1]) / (2 * h)  # (I + A dt + A A dt^2 / 2 ...)[:, j], to third order
    A = linearisation.A
    series = np.eye(30) + A * dt + A @ A * dt**2 / 2 + A @ A @ A * dt**3 / 6 + A @ A @ A @ A * dt**4 / 24
    np.testing.assert_allclose(expected, series[:, j], atol=1e-4 * np.abs(series[:, j]).max())


@KIND
def test_half_of_a_symmetric_definite_matrix_is_kept_and_all_of_another(monkeypatch, kind):
    monkeypatch.setattr(functions, "FEW_UNKNOWNS", 0)
    unknowns = functions.run_functions(smooth_residual(kind)).unknowns
    assert unknowns is not None
    assert unknowns.symmetric == (kind == "definite")
    assert unknowns.linear.nnz_out(0) == (3 if kind == "definite" else 4)


@KIND
@WRITTEN_OUT
def test_runs_side_by_side_have_the_numbers_of_runs_alone(compiler, monkeypatch, kind, few):
    monkeypatch.setattr(functions, "FEW_UNKNOWNS", few)
    simulator = Simulator(smooth_residual(kind), compiled=True)
    runs = [{"x0": [0.1 * i, 0.0625], "times": [0.0, 0.5, 2.0], "p": [3.0 + i]} for i in range(11)]
    for run, trajectory in zip(runs, simulator.run_several(runs), strict=True):
        alone = simulator.run(**run)
        assert (trajectory.x.tobytes(), trajectory.y.tobytes()) == (alone.x.tobytes(), alone.y.tobytes())
        assert trajectory.evaluations == alone.evaluations
