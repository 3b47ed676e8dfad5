"""What acts along a coordinate, gears, and ball joints: against closed forms and conserved quantities."""

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.body import Body
from designopt_mechanics.coordinate_laws import (
    CoordinateLaw,
    CoordinateLawError,
    coordinate_forces,
)
from designopt_mechanics.dynamics.matrices import forward_dynamics, kinetic_energy, mass_matrix
from designopt_mechanics.motions import Ball, Rotate
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Coordinate, Frame, Tree
from scipy.integrate import solve_ivp

INERTIA = (0.3, 0.2, 0.15)


def hinge(inertia: float = 0.0) -> Tree:
    frame = Frame("arm", motions=(Rotate((0, 0, 1), "q"),), body=Body(1.0, inertia=(1.0, 1.0, 1.0)))
    return Tree((Coordinate("q", "rad", -1.0, 1.0, inertia=inertia),), (frame,))


@pytest.mark.parametrize(
    ("law", "z", "dz", "force"),
    [
        (CoordinateLaw(damping=2.0), 0.3, 0.5, -1.0),
        (CoordinateLaw(friction=3.0, friction_speed=0.1), 0.0, 0.1, -3.0 / np.sqrt(2.0)),
        (CoordinateLaw(friction=3.0, friction_speed=1e-6), 0.0, -1.0, 3.0),
        (CoordinateLaw(stiffness=5.0, rest=0.2), 0.5, 0.0, -1.5),
        (CoordinateLaw(stops=(-1.0, 1.0), stop_stiffness=1e4), 1.01, 0.0, -100.0),
        (CoordinateLaw(stops=(-1.0, 1.0), stop_stiffness=1e4), -1.01, 0.0, 100.0),
        (CoordinateLaw(stops=(-1.0, 1.0), stop_stiffness=1e4, stop_dissipation=2.0), 1.01, 0.25, -150.0),
        (CoordinateLaw(stops=(-1.0, np.inf), stop_stiffness=1e4), 1.5, 0.0, 0.0),
    ],
)
def test_the_force_of_a_law_is_that_of_its_formula(law: CoordinateLaw, z: float, dz: float, force: float) -> None:
    state = TreeState.symbols(hinge())
    f = ca.Function("f", [state.z, state.dz], [coordinate_forces(state, {"q": law})])
    assert float(f(z, dz)) == pytest.approx(force, rel=3e-4, abs=1e-3)


def test_a_rotor_behind_a_gear_adds_the_square_of_the_ratio_to_the_inertia() -> None:
    state = TreeState.symbols(hinge(inertia=50.0**2 * 2e-4))
    assert float(ca.Function("M", [state.z], [mass_matrix(state)])(0.3)) == pytest.approx(1.5)


@pytest.mark.parametrize(
    "values",
    [{"damping": -1.0}, {"friction_speed": 0.0}, {"ratio": 0.0}, {"stop_stiffness": 1.0}, {"friction": np.nan}],
)
def test_an_impossible_law_is_refused(values: dict[str, float]) -> None:
    with pytest.raises(CoordinateLawError):
        CoordinateLaw(**values)


def test_a_free_body_on_a_ball_joint_keeps_energy_and_angular_momentum_through_every_posture() -> None:
    names = ("w", "x", "y", "z")
    tree = Tree(
        tuple(Coordinate(n, "1", reference=float(n == "w")) for n in names),
        (Frame("body", motions=(Ball(names),), body=Body(2.0, inertia=INERTIA)),),
    )
    state = TreeState.symbols(tree)
    momentum = state.axes("body") @ ca.diag(ca.SX(INERTIA)) @ state.axes("body").T @ state.angular_velocity("body")
    acceleration = ca.Function("a", [state.z, state.dz], [forward_dynamics(state, ca.SX.zeros(4))])
    conserved = ca.Function("c", [state.z, state.dz], [kinetic_energy(state), momentum])
    # near the middle axis of inertia: the body tumbles
    start = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 1e-3, 1.5, 1e-3])
    run = solve_ivp(
        lambda _, y: np.r_[y[4:], np.asarray(acceleration(y[:4], y[4:])).ravel()],
        (0.0, 20.0),
        start,
        rtol=1e-10,
        atol=1e-12,
        t_eval=[0.0, 5.0, 10.0, 15.0, 20.0],
    )
    energies, momenta = zip(*(conserved(y[:4], y[4:]) for y in run.y.T), strict=True)
    assert np.ptp(np.array(energies, dtype=float)) < 1e-8
    assert np.ptp(np.hstack([np.asarray(m) for m in momenta]), axis=1).max() < 1e-8
    assert np.abs(np.linalg.norm(run.y[:4], axis=0) - 1.0).max() < 1e-8
