"""The walker's equations and its impact against laws of mechanics that they were not derived from."""

import casadi as ca
import numpy as np
import pytest
from designopt_motion import biped_equations as equations
from designopt_motion.biped_equations import ANGLES, GRAVITY, LINKS, MASS
from numpy.typing import NDArray

Vector = NDArray[np.float64]

RNG = np.random.default_rng(5)
STATES = [(RNG.uniform(-0.6, 0.6, 5), RNG.uniform(-3.0, 3.0, 5), RNG.uniform(-40.0, 40.0, 5)) for _ in range(5)]


@pytest.fixture(scope="module")
def walker() -> object:
    return equations.system()


@pytest.mark.parametrize("state", STATES)
def test_the_motors_power_is_the_rate_of_the_energy(walker, state) -> None:
    """dE/dt = sum of torque times joint rate, in a slope and with springs; nothing else does work on the walker."""
    q, w, u = state
    slope, hip, knee = 0.1, 30.0, 12.0
    rates = np.asarray(walker.rhs(np.r_[q, w], u, [], [0.5, 0.7, hip, knee], [slope], 0.0)).ravel()
    x = ca.SX.sym("x", 10)
    energy = equations.kinetic_energy(x[:5], x[5:]) + equations.potential_energy(x[:5], slope, hip, knee)
    gradient = np.asarray(ca.Function("gradient", [x], [ca.gradient(energy, x)])(np.r_[q, w])).ravel()
    power = float(u @ np.array(equations.joint_speeds(w)))
    assert gradient @ rates == pytest.approx(power, rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("state", STATES)
def test_the_ground_carries_what_the_moving_links_do_not(walker, state) -> None:
    """The force on the stance foot is the rate of momentum less weight; momentum by differences along the motion."""
    q, w, u = state
    p, h = [0.5, 0.7, 0.0, 0.0], 1e-5
    x = ca.SX.sym("x", 10)
    centres = equations.places(x[:5]).centres
    momentum = sum(
        (link["mass"] * equations.speed_of(c, x[:5], x[5:]) for link, c in zip(LINKS, centres, strict=True)),
        ca.SX.zeros(2),
    )
    momentum_of = ca.Function("momentum", [x], [momentum])
    state_now = np.r_[q, w]
    rates = np.asarray(walker.rhs(state_now, u, [], p, [0.0], 0.0)).ravel()
    ahead, behind = (np.asarray(momentum_of(state_now + sign * h * rates)).ravel() for sign in (1.0, -1.0))
    expected = (ahead - behind) / (2.0 * h) + [0.0, MASS * GRAVITY]
    force = np.asarray(walker.output(state_now, u, [], p, [0.0], 0.0)).ravel()[2:]
    assert force == pytest.approx(expected, rel=1e-6, abs=1e-4)  # differences of an order of h^2 = 1e-10


@pytest.mark.parametrize("state", STATES)
def test_the_impact_is_that_of_a_free_walker_with_an_impulse_at_the_landing_foot(state) -> None:
    """M (v+ - v-) = J^T impulse, J v+ = 0 of the walker with seven coordinates: its stance foot is free to leave."""
    q, w, _ = state
    x, v = ca.SX.sym("x", 7), ca.SX.sym("v", 7)  # place of the stance foot, then angles
    where = equations.places(x[2:])
    energy: ca.SX = ca.SX(0.0)
    for i, (link, centre) in enumerate(zip(LINKS, where.centres, strict=True)):
        speed = ca.jtimes(centre + x[:2], x, v)
        energy += 0.5 * link["mass"] * ca.dot(speed, speed) + 0.5 * link["inertia"] * v[2 + i] ** 2
    foot = where.joints[-1] + x[:2]
    matrices = ca.Function("matrices", [x, v], [ca.hessian(energy, v)[0], ca.jacobian(foot, x)])
    M, J = (np.asarray(m, float) for m in matrices(np.r_[0.0, 0.0, q], np.r_[0.0, 0.0, w]))
    system = np.block([[M, -J.T], [J, np.zeros((2, 2))]])
    after = np.linalg.solve(system, np.r_[M @ np.r_[0.0, 0.0, w], 0.0, 0.0])[2:7]
    symbols = [ca.SX.sym(n, 5) for n in ("q", "w", "w_after")]
    impact = ca.Function("impact", symbols, [equations.impact(*symbols)])
    assert np.asarray(impact(q, w, after[::-1])).ravel() == pytest.approx(0.0, abs=1e-10)
    assert np.abs(np.asarray(impact(q, w, w[::-1]))).max() > 0.1  # without an impulse nothing balances


def test_a_walker_that_stands_straight_rests_on_its_foot(walker) -> None:
    forces = np.asarray(walker.output(np.zeros(10), np.zeros(5), [], [0.5, 0.7, 0.0, 0.0], [0.0], 0.0)).ravel()
    assert forces == pytest.approx([0.0, 0.0, 0.0, MASS * GRAVITY], abs=1e-9)
    assert [v.name for v in walker.states[:5]] == list(ANGLES)
