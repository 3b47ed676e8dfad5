"""The residual form of a mechanism is the same discretisation with far smaller derivatives."""

import casadi as ca
import numpy as np
import pytest
from chains import GRAVITY, INERTIA, LENGTH, MASS, chain, raised
from scipy.integrate import solve_ivp

from designopt.collocation import Guess, Options, Program
from designopt.collocation.transcription.functions.functions import state
from designopt.dynamics import Simulator

SCHEMES = {
    "radau": {"scheme": "radau", "degree": 3, "intervals": 30},
    "hermite_simpson": {"scheme": "hermite_simpson", "intervals": 40},
    "trapezoidal": {"scheme": "trapezoidal", "intervals": 80},
}


@pytest.mark.parametrize("links", [2, 3])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_both_forms_agree_when_started_from_one_another(links, scheme):
    # cold starts must not be compared: chains have many local optima
    problem = raised(links)
    forms = {form: Program(problem, Options(form=form, **SCHEMES[scheme])) for form in ("explicit", "residual")}
    explicit = forms["explicit"].solve()
    residual = forms["residual"].solve(guess=Guess.from_solution(explicit))
    repeated = forms["explicit"].solve(guess=Guess.from_solution(residual))

    assert explicit.success
    assert residual.success
    assert repeated.success
    assert residual.objective == pytest.approx(explicit.objective, rel=1e-9)  # 1e-7 is asked for
    assert repeated.objective == pytest.approx(explicit.objective, rel=1e-9)
    for name in (*(v.name for v in problem.phases[0].system.states), "u1"):
        first, second = (solution.phase.values[name] for solution in (explicit, residual))
        np.testing.assert_allclose(first, second, atol=1e-5 * np.abs(first).max())


def test_the_unknown_rates_are_the_accelerations():
    motion = Program(raised(2), Options(form="residual", **SCHEMES["radau"])).solve().phase

    for name, rate in (("a1", "v1"), ("a2", "v2")):
        np.testing.assert_allclose(motion.values[name], motion.rates[rate], rtol=1e-9, atol=1e-9)
    inside = slice(1, None)  # the left end of a radau phase is extrapolated
    system = chain(2)
    columns = [np.array([motion.values[v.name] for v in table]) for table in (system.states, system.controls)]
    expected = np.array(system.rhs.map(len(motion.times))(columns[0], columns[1], [], [], [], 0.0), float)
    np.testing.assert_allclose(motion.values["a2"][inside], expected[3, inside], rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(
    ("links", "residual", "explicit"),
    [(2, 150, 200), (5, 600, 3000), pytest.param(10, 2500, 25000, marks=pytest.mark.slow)],
)
def test_derivatives_of_the_residual_form_are_far_smaller(links, residual, explicit):
    # operations in the Hessian of one point, measured here: 81 and 235, 524 and 3640, 2119 and 32104
    operations = {
        form: state(raised(links), residual=form).functions[0].hessian.n_instructions() for form in (True, False)
    }

    assert operations[True] < residual
    assert operations[False] > explicit


@pytest.mark.parametrize("links", [2, 3])
def test_a_system_in_residual_form_moves_as_lagrange_says(links):
    system = chain(links)
    start = np.concatenate([np.linspace(0.5, 2.0, links), np.zeros(links)])
    torques = np.linspace(0.3, -0.2, links)
    times = np.linspace(0.0, 2.0, 21)

    simulated = Simulator(system, rtol=1e-9, atol=1e-11, compiled=False).run(start, times, u=torques)

    expected = solve_ivp(lagrange(links, torques), (0.0, 2.0), start, "DOP853", times, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(simulated.x, expected.y.T, atol=1e-6)


def lagrange(links, torques):
    """Rates from positions of the links' centres alone: d/dt dT/dq' - dT/dq + dV/dq = Q, solved with numbers."""
    q, v = ca.SX.sym("q", links), ca.SX.sym("v", links)
    joint, kinetic, potential = ca.SX.zeros(2), 0.0, 0.0
    for i in range(links):
        along = LENGTH * ca.vertcat(ca.sin(q[i]), -ca.cos(q[i]))
        velocity = ca.jacobian(joint + 0.5 * along, q) @ v
        kinetic += 0.5 * MASS * ca.sumsqr(velocity) + 0.5 * INERTIA * v[i] ** 2
        potential += MASS * GRAVITY * (joint + 0.5 * along)[1]
        joint += along
    relative = ca.vertcat(q[0], q[1:] - q[:-1])  # torques act on the angles of the joints
    momentum = ca.gradient(kinetic, v)
    forces = ca.gradient(kinetic - potential, q) + ca.jacobian(relative, q).T @ ca.DM(torques)
    terms = ca.Function(
        "terms", [q, v], [ca.jacobian(momentum, v), forces - ca.jacobian(momentum, q) @ v]
    )  # fmt: skip

    def rates(_, x):
        M, right = (np.array(entry, float) for entry in terms(x[:links], x[links:]))
        return np.concatenate([x[links:], np.linalg.solve(M, right).ravel()])

    return rates
