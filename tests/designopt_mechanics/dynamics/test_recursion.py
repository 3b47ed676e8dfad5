"""The recursion, the paper's literal form and differentiated energies are the same mechanics."""

import json
from pathlib import Path
from typing import Any

import casadi as ca
import kronecker
import numpy as np
import pytest
from designopt_mechanics.body import Body
from designopt_mechanics.dynamics.matrices import (
    bias,
    coriolis_matrix,
    forward_dynamics,
    gravity_force,
    kinetic_energy,
    mass_matrix,
    potential_energy,
)
from designopt_mechanics.dynamics.recursion import efforts, inverse_dynamics
from designopt_mechanics.loads import Load, force_on, generalised_force, load_at
from designopt_mechanics.motions import Rotate, Slide
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Coordinate, Frame, Point, Tree
from designopt_mechanics.wires import Wire, lengths, moment_arms, pulls
from random_trees import GRAVITY, random_case

#: Acceptance of the specification between independent formulations.
EQUAL = 1e-10
CASES = [(seed, 1 + seed % 8, 1 + seed % min(4, 1 + seed % 8)) for seed in range(12)]


def numbers(*expressions: Any, inputs: Any, at: Any) -> list[Any]:
    """Values of expressions of the columns `of` at the arrays `at`."""
    return [np.asarray(r, float) for r in ca.Function("f", list(inputs), list(expressions)).call(list(at))]


def draw(seed: int, n: int) -> list[Any]:
    return list(np.random.default_rng(100 + seed).uniform(-1.0, 1.0, (3, n)))


def close(a: Any, b: Any) -> bool:
    a, b = np.asarray(a, float).ravel(), np.asarray(b, float).ravel()
    return bool(np.abs(a - b).max() <= EQUAL * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize(("seed", "bodies", "coordinates"), CASES)
def test_random_trees_agree_with_the_literal_form_of_the_paper(seed: int, bodies: int, coordinates: int) -> None:
    case = random_case(seed, bodies, coordinates)
    z, dz, _ = draw(seed, coordinates)
    s = TreeState.symbols(case.tree)
    f = ca.vertcat(*(ca.SX(function(ca.vertsplit(s.z))) for function in case.functions))
    gradients = ca.jacobian(f, s.z)
    hessians = ca.vertcat(*(ca.hessian(f[i], s.z)[0] for i in range(bodies)))
    value, g, H = numbers(f, ca.densify(gradients), ca.densify(hessians), inputs=[s.z], at=[z])
    M, N, G = kronecker.equations(
        case.bodies, value.ravel(), g, H.reshape(bodies, coordinates, coordinates), dz, GRAVITY
    )
    mine = numbers(mass_matrix(s), coriolis_matrix(s), gravity_force(s, GRAVITY), inputs=[s.z, s.dz], at=[z, dz])
    for computed, expected in zip(mine, (M, N, G), strict=True):
        assert close(computed, expected)


@pytest.mark.parametrize(("seed", "bodies", "coordinates"), CASES)
def test_the_recursion_is_lagranges_equation_of_energies_written_by_points(
    seed: int, bodies: int, coordinates: int
) -> None:
    """Kinetic energy from velocities of points and turns of axes, differentiated; nothing of the recursion is used."""
    case = random_case(seed, bodies, coordinates)
    at = draw(seed, coordinates)
    s = TreeState.symbols(case.tree)
    energy, height = ca.SX(0.0), ca.SX(0.0)
    for frame in case.tree.frames:
        body = frame.body
        assert body is not None
        centre = s.position(Point(frame.name, body.centre))
        v = ca.jtimes(centre, s.z, s.dz)
        axes = s.axes(frame.name)
        spin = axes.T @ ca.reshape(ca.jtimes(ca.vec(axes), s.z, s.dz), 3, 3)
        w = ca.vertcat(spin[2, 1], spin[0, 2], spin[1, 0])
        energy += 0.5 * body.mass * ca.dot(v, v) + 0.5 * ca.dot(w, ca.SX(body.inertia) @ w)
        height -= body.mass * ca.dot(ca.SX(list(GRAVITY)), centre)
    momentum = ca.gradient(energy, s.dz)
    lagrange = ca.jtimes(momentum, s.z, s.dz) + ca.jtimes(momentum, s.dz, s.ddz) - ca.gradient(energy - height, s.z)
    mine = inverse_dynamics(s, GRAVITY)
    computed, expected, T, V, T_own, V_own = numbers(
        mine,
        lagrange,
        energy,
        height,
        kinetic_energy(s),
        potential_energy(s, GRAVITY),
        inputs=[s.z, s.dz, s.ddz],
        at=at,
    )
    assert close(computed, expected)
    assert close(T_own, T)
    assert close(V_own, V)


@pytest.mark.parametrize("seed", [3, 7, 11])
def test_forward_dynamics_undoes_inverse_dynamics_with_loads_in_both(seed: int) -> None:
    case = random_case(seed, 8, 4)
    z, dz, ddz = draw(seed, 4)
    s = TreeState.symbols(case.tree)
    loads = [
        load_at("b5", (0.1, 0.2, -0.3), (4.0, -3.0, 2.0), (0.5, 0.0, -1.0)),
        Load("b8", (1.0, 2.0, 3.0), (0.1, 0.2, 0.3)),
    ]
    forces = inverse_dynamics(s, GRAVITY, loads)
    back = forward_dynamics(s, forces, GRAVITY, loads)
    (accelerations,) = numbers(back, inputs=[s.z, s.dz, s.ddz], at=[z, dz, ddz])
    assert close(accelerations, ddz)


@pytest.mark.parametrize("seed", [2, 5, 9])
def test_a_load_moves_inverse_dynamics_as_virtual_work_says(seed: int) -> None:
    """Difference with and without a force and a moment, against the derivative of the place by the coordinates."""
    case = random_case(seed, 7, 3)
    at = draw(seed, 3)
    s = TreeState.symbols(case.tree)
    point = Point("b7", (0.1, -0.05, 0.2))
    force, moment = ca.SX([3.0, -2.0, 5.0]), ca.SX([0.4, 0.3, -0.2])
    loads = [force_on(s, point, force), Load("b7", ca.SX.zeros(3), moment)]
    difference = inverse_dynamics(s, GRAVITY) - inverse_dynamics(s, GRAVITY, loads)
    work = ca.dot(force, s.velocity(point)) + ca.dot(moment, s.angular_velocity("b7"))
    computed, expected, direct = numbers(
        difference, ca.gradient(work, s.dz), generalised_force(s, loads), inputs=[s.z, s.dz, s.ddz], at=at
    )
    assert close(computed, expected)
    assert close(direct, expected)


@pytest.mark.parametrize(("seed", "bodies", "coordinates"), CASES)
def test_moment_arms_are_minus_the_derivative_of_the_lengths(seed: int, bodies: int, coordinates: int) -> None:
    case = random_case(seed, bodies, coordinates)
    z, _, _ = draw(seed, coordinates)
    s = TreeState.symbols(case.tree)
    tensions = ca.SX([10.0, 20.0, 5.0])
    arms = moment_arms(s, case.wires)
    R, exact, through_loads, applied = numbers(
        arms,
        -ca.jacobian(lengths(s, case.wires), s.z).T,
        generalised_force(s, pulls(s, case.wires, tensions)),
        arms @ tensions,
        inputs=[s.z],
        at=[z],
    )
    assert close(R, exact)
    assert close(through_loads, applied)


@pytest.mark.parametrize("seed", [1, 6])
def test_the_mass_matrix_changes_as_the_coriolis_matrix_says(seed: int) -> None:
    case = random_case(seed, 6, 3)
    z, dz, _ = draw(seed, 3)
    s = TreeState.symbols(case.tree)
    M, N = mass_matrix(s), coriolis_matrix(s)
    rate = ca.reshape(ca.jtimes(ca.vec(M), s.z, s.dz), 3, 3)
    change, mass, steady = numbers(rate - 2.0 * N, M, bias(s) - N @ s.dz, inputs=[s.z, s.dz], at=[z, dz])
    assert np.abs(change + change.T).max() < EQUAL
    assert np.abs(mass - mass.T).max() < EQUAL
    assert np.linalg.eigvalsh(mass).min() > 0.0
    assert np.abs(steady).max() < EQUAL


def test_the_fixed_tree_has_the_published_numbers(skeletal: Path) -> None:
    """Specification of skeletal systems, section 9.2."""
    published = json.loads((skeletal / "generic_tree_case.json").read_text())
    functions: list[Any] = [
        "q1",
        "q2",
        lambda z: 0.3 + 0.1 * z["q1"] ** 2 - 0.05 * z["q1"] * z["q2"],
        lambda z: 0.4 * z["q1"] - 0.7 * ca.sin(z["q2"]),
    ]
    frames = []
    for i, b in enumerate(published["bodies"]):
        shift, angle = (b["d"], functions[i]) if b["type"] == "R" else (functions[i], b["theta"])
        parent = f"b{b['parent']}" if b["parent"] else "ground"
        body = Body(b["mass"], b["com"], b["Icm"])
        frames.append(Frame(f"b{i + 1}", parent, (Slide(b["Vd"], shift), Rotate(b["Vth"], angle)), body))
    tree = Tree((Coordinate("q1"), Coordinate("q2")), tuple(frames))
    wires = [
        Wire(f"m{k}", tuple(Point(f"b{p['body']}" if p["body"] else "ground", p["point"]) for p in path))
        for k, path in enumerate(published["muscles"])
    ]
    s = TreeState.symbols(tree)
    matrices = numbers(
        mass_matrix(s),
        coriolis_matrix(s),
        gravity_force(s, tuple(published["gravity"])),
        moment_arms(s, wires),
        inputs=[s.z, s.dz],
        at=[published["q"], published["qd"]],
    )
    for mine, name in zip(matrices, ("M", "N", "G", "R"), strict=True):
        assert np.abs(mine - np.reshape(published[name], mine.shape)).max() < 1e-14


def test_forces_in_a_joint_carry_what_hangs_on_it() -> None:
    """A pendulum turning at a steady rate: tension m (g + r w^2) at the lowest point, no moment about the pin."""
    tree = Tree(
        (Coordinate("q"),), (Frame("rod", motions=(Rotate((0, 0, 1), "q"),), body=Body(2.0, (0.0, -0.5, 0.0))),)
    )
    s = TreeState.symbols(tree)
    joint = efforts(s, (0.0, -9.81, 0.0)).joints["rod"]
    force, moment = numbers(*joint, inputs=[s.z, s.dz, s.ddz], at=[[0.0], [3.0], [0.0]])
    assert np.allclose(force.ravel(), [0.0, 2.0 * (9.81 + 0.5 * 9.0), 0.0], atol=1e-13)
    assert np.abs(moment).max() < 1e-13


def test_wires_that_hold_a_body_leave_the_joint_force_that_the_recursion_without_drives_has() -> None:
    """Tensions as loads: where they balance the effort at the joint it vanishes, and the contact force remains."""
    tree = Tree((Coordinate("q"),), (Frame("arm", motions=(Rotate((0, 0, 1), "q"),), body=Body(3.0, (0.3, 0.0, 0.0))),))
    wire = Wire("holds", (Point("ground", (0.0, 0.4, 0.0)), Point("arm", (0.3, 0.0, 0.0))))
    s = TreeState.symbols(tree)
    still = TreeState(tree, s.z, ca.SX([0.0]), ca.SX([0.0]))
    gravity = (0.0, -9.81, 0.0)
    tension = inverse_dynamics(still, gravity) / moment_arms(still, [wire]).T
    joint_efforts = efforts(still, gravity, pulls(still, [wire], tension))
    effort, contact, pull = numbers(
        joint_efforts.forces, joint_efforts.joints["arm"][0], tension, inputs=[s.z], at=[[0.0]]
    )
    # the wire has 4/5 of its tension upwards and carries all of the weight, which hangs at its end
    assert abs(float(effort.item())) < 1e-12
    assert float(pull.item()) == pytest.approx(3.0 * 9.81 / 0.8, rel=1e-13)
    assert np.allclose(contact.ravel(), [3.0 * 9.81 * 0.75, 0.0, 0.0], atol=1e-11)


def test_a_rotor_adds_its_inertia_to_its_own_variable_alone() -> None:
    plain = Tree((Coordinate("a"), Coordinate("b")), (
        Frame("one", motions=(Rotate((0, 0, 1), "a"),), body=Body(1.0, (0.2, 0.0, 0.0))),
        Frame("two", "one", (Rotate((0, 0, 1), "b"),), body=Body(1.0, (0.2, 0.0, 0.0)), position=(0.4, 0.0, 0.0)),
    ))  # fmt: skip
    geared = Tree(plain.coordinates, (
        plain.frames[0],
        Frame("two", "one", (Rotate((0, 0, 1), "b", inertia=0.7),), plain.frames[1].body, position=(0.4, 0.0, 0.0)),
    ))  # fmt: skip
    s, t = TreeState.symbols(plain), TreeState.symbols(geared)
    (M,), (geared_M,) = (numbers(mass_matrix(x), inputs=[x.z], at=[[0.3, -0.8]]) for x in (s, t))
    assert np.allclose(geared_M - M, [[0.0, 0.0], [0.0, 0.7]], atol=1e-15)
