"""Contacts of points with planes: they carry, they rub, they take energy only, and what they push on pushes back."""

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.body import Body
from designopt_mechanics.contacts import Contact, ContactError, Plane, contact_forces, contact_loads, gaps
from designopt_mechanics.dynamics.matrices import forward_dynamics
from designopt_mechanics.dynamics.recursion import efforts
from designopt_mechanics.equations import equations_of
from designopt_mechanics.loads import generalised_force
from designopt_mechanics.motions import MotionError, Rotate, Slide
from designopt_mechanics.springs import positive
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Coordinate, Frame, Point, Tree
from designopt_mechanics.tree_rows import TreeRows

from designopt.dynamics import Simulator, System

GRAVITY = (0.0, -9.81, 0.0)
BALL = Tree(
    (Coordinate("x", "m"), Coordinate("y", "m")),
    (Frame("ball", motions=(Slide((1, 0, 0), "x"), Slide((0, 1, 0), "y")), body=Body(2.0)),),
)


def moved(contact: Contact, start: list[float], end: float, gravity: Any = GRAVITY) -> np.ndarray:
    """States (n, 4) of the ball under one contact: x, y and their speeds."""
    s = TreeState.symbols(BALL)
    parts = equations_of(s, gravity=gravity, loads=contact_loads(s, [contact]))
    system = System.from_expressions("ball", states=parts.states, unknowns=parts.unknowns)
    run = Simulator(system, rtol=1e-8, atol=1e-10).run(start, np.linspace(0.0, end, 201))
    return run.x


def test_a_ball_comes_to_rest_as_deep_as_its_weight_presses() -> None:
    states = moved(Contact("ball", Point("ball"), stiffness=2e4, dissipation=5.0), [0.0, 0.01, 0.0, 0.0], 3.0)
    depth = 2.0 * 9.81 / 2e4
    expected = depth - 1e-4**2 / (4.0 * depth)  # p(s) = depth has the solution s = depth - e^2 / (4 depth)
    assert states[-1, 1] == pytest.approx(-expected, rel=1e-6)
    assert np.abs(states[-1, 2:]).max() < 1e-6


def test_without_dissipation_a_ball_bounces_back_to_its_height() -> None:
    states = moved(Contact("ball", Point("ball"), stiffness=1e5), [0.0, 0.05, 0.0, 0.0], 0.21)
    assert states[:, 1].min() < 0.0
    assert states[-1, 3] > 0.0
    assert states[-1, 1] + states[-1, 3] ** 2 / (2.0 * 9.81) == pytest.approx(0.05, rel=1e-5)


@pytest.mark.parametrize("angle", [0.2, 0.5])
def test_on_a_slope_a_ball_slides_only_where_friction_does_not_hold_it(angle: float) -> None:
    """Coulomb: g (sin - mu cos); below the friction angle the point creeps at w tan / sqrt(mu^2 - tan^2)."""
    mu, slip = 0.4, 1e-3
    down = np.array([np.sin(angle), -np.cos(angle), 0.0]) * 9.81
    contact = Contact("ball", Point("ball"), stiffness=1e5, dissipation=20.0, friction=mu, slip_speed=slip)
    depth = 2.0 * 9.81 * np.cos(angle) / 1e5
    states = moved(contact, [0.0, -depth, 0.0, 0.0], 0.5, tuple(down))
    if np.tan(angle) > mu:
        assert states[-1, 2] == pytest.approx(0.5 * 9.81 * (np.sin(angle) - mu * np.cos(angle)), rel=0.01)
    else:
        assert states[-1, 2] == pytest.approx(slip * np.tan(angle) / np.sqrt(mu**2 - np.tan(angle) ** 2), rel=1e-3)


def pair() -> tuple[Tree, Contact]:
    """Two free bodies in the plane, the point of one over a tilted plane of the other."""
    names = [f"{b}_{c}" for b in "ab" for c in ("x", "y", "r")]
    frames = []
    for b in "ab":
        motions = (Slide((1, 0, 0), f"{b}_x"), Slide((0, 1, 0), f"{b}_y"), Rotate((0, 0, 1), f"{b}_r"))
        frames.append(Frame(b, motions=motions, body=Body(1.5, (0.02, 0.01, 0), (0.02, 0.02, 0.03))))
    tree = Tree(tuple(Coordinate(n, "rad" if n.endswith("r") else "m") for n in names), tuple(frames))
    normal = (np.sin(0.3), np.cos(0.3), 0.0)
    plane = Plane("b", (0.0, 0.1, 0.0), normal)
    return tree, Contact("touch", Point("a", (0.0, -0.1, 0.0)), plane, 5e3, dissipation=2.0, friction=0.7)


def test_between_two_bodies_force_and_reaction_cancel_and_take_energy() -> None:
    tree, contact = pair()
    s = TreeState.symbols(tree)
    force = generalised_force(s, contact_loads(s, [contact]))
    stored = ca.SX.sym("s")
    law = ca.Function("law", [stored], [5e3 * positive(-stored, 1e-4)])
    gap = gaps(s, [contact])
    power = ca.dot(force, s.dz) + law(gap) * s.rate(-gap)  # less what the compliance stores
    f = ca.Function("f", [s.z, s.dz], [force, power, gap])
    rng, pressed = np.random.default_rng(3), 0
    for _ in range(200):
        z, dz = rng.uniform(-0.1, 0.1, 6), rng.uniform(-0.3, 0.3, 6)
        z[1] += 0.2
        forces, gain, apart = (np.asarray(r, float).ravel() for r in f(z, dz))
        size = max(1e-3, float(np.abs(forces).max()))
        assert abs(forces[0] + forces[3]) < 1e-12 * size
        assert abs(forces[1] + forces[4]) < 1e-12 * size
        whole_turn = forces[2] + forces[5] + z[0] * forces[1] - z[1] * forces[0] + z[3] * forces[4] - z[4] * forces[3]
        assert abs(whole_turn) < 1e-12 * size
        if apart[0] < -1e-3:
            pressed += 1
            assert gain[0] < 0.0
    assert pressed > 20


def test_the_force_is_the_printed_law() -> None:
    tree, contact = pair()
    s = TreeState.symbols(tree)
    f = ca.Function("f", [s.z, s.dz], [contact_forces(s, [contact]), gaps(s, [contact])])
    still = f([0.0, 0.19, 0.0, 0.0, 0.0, 0.0], np.zeros(6))
    force, gap = (np.asarray(r, float).ravel() for r in still)
    assert gap[0] == pytest.approx(-0.01 * np.cos(0.3), rel=1e-12)
    pressed = 0.5 * 5e3 * (-gap[0] + np.hypot(gap[0], 1e-4))
    assert force == pytest.approx(pressed * np.array([np.sin(0.3), np.cos(0.3), 0.0]), rel=1e-12)


def test_motion_and_joint_forces_with_contacts_are_those_of_newtons_law() -> None:
    """Two linked bodies on the ground, pressed by two contacts: one between the links, one on the ground."""
    body = Body(1.0, (0.2, 0.0, 0.0), (0.02, 0.03, 0.03))
    tree = Tree(
        (Coordinate("a1"), Coordinate("a2"), Coordinate("b1")),
        (
            Frame("a", motions=(Rotate((0, 0, 1), "a1"), Rotate((0, 1, 0), "a2")), body=body),
            Frame("b", "a", (Rotate((0, 0, 1), "b1"),), body, position=(0.4, 0.0, 0.0)),
        ),
    )
    contacts = [
        Contact("tip", Point("b", (0.4, -0.02, 0.0)), Plane(position=(0, -0.1, 0)), 3e3, dissipation=0.5, friction=0.8),
        Contact("stop", Point("b", (0.1, 0.05, 0.0)), Plane("a", (0.0, 0.02, 0.0), (0, -1, 0)), 2e3, friction=0.3),
    ]
    s = TreeState.symbols(tree)
    loads = contact_loads(s, contacts)
    z, dz = np.array([-0.3, 0.1, 0.4]), np.array([-0.5, 0.3, 0.7])
    frames = ("a", "b")
    total = {n: sum((ca.vertcat(w.force, w.moment) for w in loads if w.frame == n), ca.SX.zeros(6)) for n in frames}
    wrenches = [np.asarray(r, float).ravel() for r in ca.Function("w", [s.z, s.dz], [total[n] for n in frames])(z, dz)]
    assert np.abs(wrenches[1]).max() > 10.0  # both contacts press
    expected = ca.Function("a", [s.z, s.dz], [forward_dynamics(s, 0.0, GRAVITY, loads)])(z, dz)
    force = efforts(s, GRAVITY, loads).joints["a"][0]
    speeds = [s.velocity(Point(n, body.centre)) for n in frames]
    accelerated = sum(body.mass * (ca.jtimes(v, s.z, s.dz) + ca.jtimes(v, s.dz, s.ddz)) for v in speeds)
    result = ca.Function("f", [s.z, s.dz, s.ddz], [force, accelerated])(z, dz, expected)
    carried, momentum_rate = (np.asarray(r, float).ravel() for r in result)
    pushed = 2.0 * body.mass * np.array(GRAVITY) + wrenches[0][:3] + wrenches[1][:3]
    assert carried == pytest.approx(momentum_rate - pushed, rel=1e-9, abs=1e-9)
    rows = TreeRows(tree, GRAVITY, contacts=contacts, compiled=False)
    needed = rows.inverse_dynamics(z[None], dz[None], np.asarray(expected, float).T)
    assert np.abs(needed).max() < 1e-9
    on_points = rows.contact_forces(z[None], dz[None])
    assert on_points.shape == (1, 2, 3)
    assert on_points[0].sum(axis=0) == pytest.approx(wrenches[0][:3] + wrenches[1][:3] + on_points[0][1], rel=1e-9)


def test_a_point_on_a_turntable_slips_by_the_speed_of_the_table_beneath_it() -> None:
    """The table turns about the vertical, so that at a radius r along x it moves with -w r along z."""
    coordinates = (Coordinate("turn"), *BALL.coordinates)
    tree = Tree(coordinates, (Frame("table", motions=(Rotate((0, 1, 0), "turn"),), body=Body(5.0)), *BALL.frames))
    contact = Contact("rubber", Point("ball"), Plane("table"), 1e4, friction=0.5, slip_speed=0.05)
    s = TreeState.symbols(tree)
    force = ca.Function("f", [s.z, s.dz], [contact_forces(s, [contact])])
    pressed, speed = 0.5 * 1e4 * (2e-3 + np.hypot(2e-3, 1e-4)), 3.0 * 0.4
    components = np.asarray(force([0.8, 0.4, -2e-3], [3.0, 0.0, 0.0]), float).ravel()
    rubbed = 0.5 * pressed * speed / np.hypot(speed, 0.05)
    assert components == pytest.approx([0.0, pressed, -rubbed], rel=1e-9, abs=1e-9)


def test_a_plane_that_turns_toward_a_point_is_damped_by_the_rate_of_their_distance() -> None:
    tree, contact = pair()
    contact = replace(contact, friction=0.0)
    s = TreeState.symbols(tree)
    gap = gaps(s, [contact])
    damped = 5e3 * positive(-gap, 1e-4) * positive(1.0 - 2.0 * s.rate(gap), 1e-2) / positive(ca.SX(1.0), 1e-2)
    size = ca.norm_2(contact_forces(s, [contact]))
    evaluate = ca.Function("f", [s.z, s.dz], [size, damped, s.rate(gap)])
    turning = evaluate([0.02, 0.19, 0.1, 0.0, 0.0, -0.2], [0.0, 0.0, 0.0, 0.0, 0.0, 0.8])
    assert abs(float(turning[2])) > 1e-3
    assert float(turning[0]) == pytest.approx(float(turning[1]), rel=1e-10)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stiffness": -1.0}, "contact 'c', stiffness: -1 is not finite"),
        ({"friction": np.inf}, "contact 'c', friction: inf is not finite"),
        ({"slip_speed": 0.0}, "contact 'c', slip_speed: 0 is not finite and positive"),
        ({"plane": Plane("ball")}, "contact 'c', point: lies on 'ball' like the plane"),
    ],
)
def test_impossible_contacts_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ContactError, match=message):
        Contact("c", Point("ball"), **settings)
    with pytest.raises(MotionError, match="has the length 2, not 1"):
        Plane(normal=(0, 2, 0))


def test_a_state_without_rates_has_gaps_but_no_forces() -> None:
    contact = Contact("c", Point("ball"))
    state = TreeState(BALL, ca.SX.sym("z", 2))
    assert gaps(state, [contact]).shape == (1, 1)
    with pytest.raises(ValueError, match="no rates"):
        contact_forces(state, [contact])
