"""Inverse dynamics: three methods and two other formulations agree; loads, residuals and parts of forces."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from body_postures import random_postures
from designopt_wholebody.consistency.rates import Motion, Projection
from designopt_wholebody.dynamics.balance import angle_axes, moment_balance
from designopt_wholebody.dynamics.decomposition import force_parts
from designopt_wholebody.dynamics.inverse import InverseMethod, inverse_dynamics
from designopt_wholebody.dynamics.loads import GRAVITY, Loads
from designopt_wholebody.dynamics.rotation import angular_matrix, angular_velocity
from designopt_wholebody.kinematics.angles import joint_angles
from designopt_wholebody.kinematics.posture import posture, rotation
from designopt_wholebody.kinematics.tree import tree
from designopt_wholebody.model.library import content_of, load_model
from designopt_wholebody.model.reading import read_model
from designopt_wholebody.subject import Subject, make_subject
from newton_euler import newton_euler
from numpy.typing import NDArray

Array = NDArray[np.float64]
METHODS: tuple[InverseMethod, ...] = ("newton", "lagrange", "velocity_transformation")
CONTACTS = ("hand_R", "hand_L", "foot_R", "foot_L")


def random_motion(subject: Subject, frames: int, seed: int) -> Motion:
    """Consistent positions, velocities of about 1 and accelerations of about 10 (m, s)."""
    rng = np.random.default_rng(seed)
    q = random_postures(subject, frames, seed)
    projection = Projection(subject)
    qdot = projection.velocities(q, rng.normal(size=q.shape))
    qddot = projection.accelerations(q, qdot, 10.0 * rng.normal(size=q.shape))
    return Motion(np.arange(frames) / 100.0, q, qdot, qddot, np.zeros(frames, dtype=bool))


def random_loads(frames: int, seed: int, bodies: tuple[str, ...] = CONTACTS) -> Loads:
    rng = np.random.default_rng(seed)
    shape = (frames, len(bodies), 3)
    return Loads(bodies, 300.0 * rng.normal(size=shape), 100.0 * rng.normal(size=shape))


@pytest.fixture(scope="module")
def moving(full: Subject) -> Motion:
    return random_motion(full, 10, seed=1)


@pytest.mark.parametrize("method", METHODS)
def test_the_full_model_agrees_with_newton_and_euler_to_1e_9(
    full: Subject, moving: Motion, method: InverseMethod
) -> None:
    # acceptance test 5: random consistent motion, loads at four contacts, forces and torques of kilonewtons
    loads = random_loads(10, seed=2)
    expected = newton_euler(full, moving, loads)
    assert np.abs(expected.force).max() > 800.0
    assert np.abs(expected.torque).max() > 500.0
    solution = inverse_dynamics(full, moving, loads, method=method)
    assert solution.joints == expected.joints
    assert solution.difference(expected) < 1e-9


def test_angular_velocity_is_that_of_the_printed_matrices(full: Subject, moving: Motion) -> None:
    """Nunes 2017, 5.41 (one point, three vectors) and 5.43 (two points, u and w)."""
    q, qdot = moving.q, moving.qdot
    for name in ("pelvis", "humerus_R"):
        body = full.bodies[name]
        x, dx = body.triples_of(q), body.triples_of(qdot)
        if body.layout == "1p3v":
            (u, v, w), (du, dv, dw) = np.moveaxis(x[:, 1:], 1, 0), np.moveaxis(dx[:, 1:], 1, 0)
            printed = [
                u[:, 1] * du[:, 2] + v[:, 1] * dv[:, 2] + w[:, 1] * dw[:, 2],
                u[:, 2] * du[:, 0] + v[:, 2] * dv[:, 0] + w[:, 2] * dw[:, 0],
                u[:, 0] * du[:, 1] + v[:, 0] * dv[:, 1] + w[:, 0] * dw[:, 1],
            ]
        else:
            (u, w), (du, dw) = np.moveaxis(x[:, 2:], 1, 0), np.moveaxis(dx[:, 2:], 1, 0)
            v = np.cross(w, u)
            X, Y, Z = 0, 1, 2
            rows_u = [
                (-w[:, Y] * v[:, Y], w[:, X] * v[:, Y], u[:, Y]),
                (u[:, Z], -w[:, Z] * v[:, Z], w[:, Y] * v[:, Z]),
                (w[:, Z] * v[:, X], u[:, X], -w[:, X] * v[:, X]),
            ]
            rows_w = [
                (u[:, Y] * v[:, Y], -u[:, X] * v[:, Y], w[:, Y]),
                (w[:, Z], u[:, Z] * v[:, Z], -u[:, Y] * v[:, Z]),
                (-u[:, Z] * v[:, X], w[:, X], u[:, X] * v[:, X]),
            ]
            printed = [
                sum(a * du[:, i] + b * dw[:, i] for i, (a, b) in enumerate(zip(ru, rw, strict=True)))
                for ru, rw in zip(rows_u, rows_w, strict=True)
            ]
        omega = angular_velocity(body, q, qdot)
        assert np.allclose(omega, np.stack(printed, axis=1), atol=1e-12)
        G = angular_matrix(body, q)
        assert np.allclose(np.einsum("fis,fs->fi", G, qdot[:, body.columns]), omega, atol=1e-12)


def test_a_random_eight_body_human_as_a_tree_has_the_same_joint_loads() -> None:
    """Two independent formulations in one house: recursion over relative coordinates, and natural coordinates."""
    import casadi as ca
    from designopt_mechanics.body import Body
    from designopt_mechanics.dynamics.recursion import efforts
    from designopt_mechanics.loads import Load
    from designopt_mechanics.motions import Rotate, Slide
    from designopt_mechanics.state import TreeState
    from designopt_mechanics.tree import Coordinate, Frame, Point, Tree

    text = "model: eight\nbased_on: wholebody21\nonly: [thorax, pelvis, thigh_R, shank_R, foot_R]\n"
    model = read_model(text.encode(), "eight.yaml", content_of)
    rng = np.random.default_rng(8)
    landmarks = {name: np.array(p) + 0.01 * rng.normal(size=3) for name, p in model.landmarks.items()}
    subject = make_subject(model, landmarks, mass=float(rng.uniform(50, 100)))
    assert len(subject.bodies) == 8

    unit = np.eye(3)
    spin = [((0.0, 0.0, 1.0), "z"), ((1.0, 0.0, 0.0), "x"), ((0.0, 1.0, 0.0), "y")]
    coordinates, frames, axes0, at0 = [], [], {"ground": unit}, {"ground": np.zeros(3)}
    for link in tree(subject):
        body = subject.bodies[link.body]
        A, at = body.axes(subject.q0), subject.landmarks[link.at]
        motions: list[Any] = []
        if link.joint is None:
            for axis, name in zip(unit, "xyz", strict=True):
                coordinates.append(Coordinate(f"{link.body}_p{name}", "m"))
                motions.append(Slide(tuple(axis), coordinates[-1].name))
        for axis, name in spin:
            coordinates.append(Coordinate(f"{link.body}_{name}"))
            motions.append(Rotate(axis, coordinates[-1].name))
        before = axes0[link.parent]
        mass = Body(body.inertia.mass, body.inertia.centre - body.local[link.at], body.inertia.tensor)
        offset = before.T @ (at - at0[link.parent])
        # slides are along the parent's axes: the turn of the frame comes with the spin
        frames.append(Frame(link.body, link.parent, tuple(motions), mass, tuple(offset), before.T @ A))
        axes0[link.body], at0[link.body] = A, at
    state = TreeState.symbols(Tree(tuple(coordinates), tuple(frames)))
    triples = []
    for body in subject.bodies.values():
        link = next(link for link in tree(subject) if link.body == body.name)
        origin = body.local[link.at]
        for point in body.points:
            triples.append(state.position(Point(body.name, tuple(body.local[point] - origin))))
        for v in body.vectors:
            tip = state.position(Point(body.name, tuple(unit["uvw".index(v)])))
            triples.append(tip - state.position(Point(body.name)))
    q = ca.vertcat(*triples)
    qdot = ca.jtimes(q, state.z, state.dz)
    qddot = ca.jtimes(qdot, state.z, state.dz) + ca.jtimes(qdot, state.dz, state.ddz)
    force, moment = 300.0 * rng.normal(size=3), 100.0 * rng.normal(size=3)
    needed = efforts(state, tuple(GRAVITY), [Load("foot_L", tuple(force), tuple(moment))])
    joints = [part for link in tree(subject) for part in needed.joints[link.body]]
    function = ca.Function("human", [state.z, state.dz, state.ddz], [q, qdot, qddot, *joints])

    m = len(coordinates)
    values = [function(*(s * rng.normal(size=m) for s in (0.5, 1.0, 10.0))) for _ in range(4)]
    stacked = [np.stack([np.asarray(v[k].full()).ravel() for v in values]) for k in range(3 + len(joints))]
    motion = Motion(np.arange(4.0), *stacked[:3], np.zeros(4, dtype=bool))
    rigid = [k for k, name in enumerate(subject.constraints.names) if name.kind in ("rigid", "spherical")]
    assert np.abs(subject.constraints.values(motion.q)[:, rigid]).max() < 1e-12
    loads = Loads(("foot_L",), np.tile(force, (4, 1, 1)), np.tile(moment, (4, 1, 1)))
    for method in METHODS:
        solution = inverse_dynamics(subject, motion, loads, method=method)
        for k, link in enumerate(tree(subject)):
            F, T = stacked[3 + 2 * k], stacked[4 + 2 * k]
            ours = (
                (solution.residual_force, solution.residual_torque) if link.joint is None else solution.at(link.joint)
            )
            assert np.abs(ours[0] - F).max() < 1e-9
            assert np.abs(ours[1] - T).max() < 1e-9


def test_a_standing_body_is_carried_by_its_feet(full: Subject) -> None:
    """At rest on both feet with half the weight each: no residual, and each hip carries the half less its leg."""
    q = np.repeat(full.q0[None], 2, axis=0)
    still = Motion(np.array([0.0, 0.01]), q, 0 * q, 0 * q, np.zeros(2, dtype=bool))
    total = sum(body.inertia.mass for body in full.bodies.values())
    centre = full.centre_of_mass(full.q0)
    half = -0.5 * total * GRAVITY
    feet = ("foot_R", "foot_L")
    loads = Loads(feet, np.tile(half, (2, 2, 1)), np.tile(np.cross(centre, half), (2, 2, 1)))
    solution = inverse_dynamics(full, still, loads)
    assert np.abs(solution.residual_force).max() < 1e-9
    assert np.abs(solution.residual_torque).max() < 1e-9
    leg = sum(full.bodies[f"{name}_R"].inertia.mass for name in ("thigh", "shank", "foot"))
    assert solution.at("hip_R")[0][0] == pytest.approx([0.0, -(0.5 * total - leg) * 9.81, 0.0], abs=1e-9)
    parts = force_parts(full, q, solution, "knee_R")
    assert (parts.compression > 0.9 * (parts.compression + parts.shear)).all()
    assert (parts.traction == 0.0).all()


def test_a_hanging_arm_pulls_its_joints_apart(full: Subject) -> None:
    q = full.q0[None]
    still = Motion(np.zeros(1), q, 0 * q, 0 * q, np.zeros(1, dtype=bool))
    solution = inverse_dynamics(full, still)
    for joint in ("elbow_R", "elbow_L", "wrist_R", "knee_L"):
        parts = force_parts(full, q, solution, joint)
        assert parts.traction[0] > 0.9 * np.hypot(parts.traction, parts.shear)[0] > 0.0, joint
        assert parts.compression[0] == 0.0


def test_both_sides_name_compression_the_same(full: Subject) -> None:
    q = full.q0[None]
    still = Motion(np.zeros(1), q, 0 * q, 0 * q, np.zeros(1, dtype=bool))
    push = np.array([[[0.0, 200.0, -80.0], [0.0, 200.0, 80.0]]])
    at = np.stack([full.landmarks["CAP_R"], full.landmarks["CAP_L"]])[None]
    solution = inverse_dynamics(full, still, Loads(("hand_R", "hand_L"), push, np.cross(at, push)))
    for joint in ("sternoclavicular", "acromioclavicular", "glenohumeral", "elbow"):
        right, left = (force_parts(full, q, solution, f"{joint}_{side}") for side in "RL")
        assert right.compression[0] == pytest.approx(left.compression[0])
        assert right.compression[0] > 10.0  # pressed up and inwards
        assert right.shear[0] == pytest.approx(left.shear[0])
        assert right.off_axis[0] == pytest.approx(left.off_axis[0])
    with pytest.raises(ValueError, match=r"neck.*no axis of compression"):
        force_parts(full, q, solution, "neck")


def test_parts_of_a_force_make_the_force(full: Subject, moving: Motion) -> None:
    solution = inverse_dynamics(full, moving, random_loads(10, seed=5))
    for joint in ("elbow_R", "glenohumeral_L"):
        parts = force_parts(full, moving.q, solution, joint)
        total = np.sqrt(parts.compression**2 + parts.traction**2 + parts.shear**2)
        assert np.allclose(total, np.linalg.norm(solution.at(joint)[0], axis=1))
        assert (parts.compression * parts.traction == 0.0).all()


def test_off_axis_torque_is_what_a_revolute_joint_does_not_turn_about(full: Subject, moving: Motion) -> None:
    """The segments turn relative to each other about the axis alone."""
    solution = inverse_dynamics(full, moving, random_loads(10, seed=5))
    checked = 0
    for name, joint in full.model.joints.items():
        if joint.type != "revolute" or joint.compression is None or name not in solution.joints:
            continue
        ends = (full.bodies[joint.proximal], full.bodies[joint.distal])
        before, after = (angular_velocity(body, moving.q, moving.qdot) for body in ends)
        axis = (after - before) / np.linalg.norm(after - before, axis=1, keepdims=True)
        across = np.linalg.norm(np.cross(axis, solution.at(name)[1]), axis=1)
        assert np.allclose(force_parts(full, moving.q, solution, name).off_axis, across, rtol=1e-6), name
        checked += 1
    assert checked >= 4


def test_moments_about_the_axes_of_angles_give_the_power_of_the_joint(full: Subject, moving: Motion) -> None:
    """sum of moment times rate of the angle = torque times relative angular velocity, at the hip with three angles."""
    solution = inverse_dynamics(full, moving, random_loads(10, seed=6))
    angles = full.model.angles["hip_R"]
    axes = angle_axes(full, moving.q, angles)
    thigh, pelvis = full.bodies["thigh_R"], full.bodies["pelvis"]
    relative = angular_velocity(thigh, moving.q, moving.qdot) - angular_velocity(pelvis, moving.q, moving.qdot)
    rates = np.linalg.solve(axes.swapaxes(-1, -2), relative[..., None])[..., 0]
    h = 1e-6
    later, earlier = (joint_angles(full, moving.q + s * moving.qdot) for s in (h, -h))
    signs = np.array(list(angles.names.values()))
    for k, name in enumerate(angles.names):
        slope = (later.angle(f"hip_R.{name}") - earlier.angle(f"hip_R.{name}")) / (2 * h)
        assert np.allclose(signs[k] * slope, rates[:, k], atol=1e-4)
    balance = moment_balance(full, moving, solution)
    columns = [balance.rows.index(f"hip_R.{name}") for name in angles.names]
    power = (balance.moments[:, columns] * signs * rates).sum(axis=1)
    assert np.allclose(power, np.einsum("fi,fi->f", solution.at("hip_R")[1], relative))
    assert balance.columns == ()
    assert not any(row.startswith("scapula") for row in balance.rows)


def test_one_frame_without_a_load_is_missing_and_alone(full: Subject, moving: Motion) -> None:
    loads = random_loads(10, seed=7)
    complete = inverse_dynamics(full, moving, loads)
    loads.force[4, 1, 2] = np.nan
    q = moving.q.copy()
    q[7, 5] = np.nan
    solution = inverse_dynamics(full, replace(moving, q=q), loads)
    checked = newton_euler(full, replace(moving, q=q), loads)
    for result in (solution, checked):
        assert np.array_equal(np.flatnonzero(np.isnan(result.force).any(axis=(1, 2))), [4, 7])
        assert np.isnan(result.residual_torque[[4, 7]]).all()
    unchanged = np.setdiff1d(np.arange(10), [4, 7])
    assert np.abs(solution.torque[unchanged] - complete.torque[unchanged]).max() < 1e-9
    balance = moment_balance(full, replace(moving, q=q), solution)
    assert np.array_equal(np.flatnonzero(balance.status), [4, 7])


def test_what_cannot_be_computed_is_refused(full: Subject, moving: Motion) -> None:
    rods = make_subject(load_model("two_rods"))
    q = rods.q0[None]
    still = Motion(np.zeros(1), q, 0 * q, 0 * q, np.zeros(1, dtype=bool))
    with pytest.raises(ValueError, match="rods"):
        inverse_dynamics(rods, still)
    with pytest.raises(ValueError, match="10 frames, the loads have 3"):
        inverse_dynamics(full, moving, random_loads(3, seed=1))
    with pytest.raises(ValueError, match="there is no method 'recursive'"):
        inverse_dynamics(full, moving, method="recursive")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="2 loads"):
        Loads(("hand_R", "hand_L"), np.zeros((3, 1, 3)), np.zeros((3, 1, 3)))
    with pytest.raises(KeyError, match="there is no joint 'elbow'"):
        inverse_dynamics(full, moving).at("elbow")


def test_the_pose_of_the_laboratory_does_not_matter(full: Subject) -> None:
    """Turned about the vertical and shifted: joint loads turn with it."""
    t = np.arange(5) / 100.0
    turn = rotation([0.0, 1.0, 0.0], np.array([0.7]))[0]
    shift = np.array([2.0, 0.1, -3.0])
    q = posture(full, {"neck": rotation([0, 1, 0], t)})
    moved = np.empty_like(q)
    for body in full.bodies.values():
        x = body.triples_of(q) @ turn.T
        x[:, : len(body.points)] += shift
        moved[:, body.columns] = x.reshape(len(q), -1)
    still = np.zeros_like(q)
    original = inverse_dynamics(full, Motion(t, q, still, still, np.zeros(5, dtype=bool)))
    displaced = inverse_dynamics(full, Motion(t, moved, still, still, np.zeros(5, dtype=bool)))
    assert np.abs(original.torque @ turn.T - displaced.torque).max() < 1e-9
    assert np.abs(original.force @ turn.T - displaced.force).max() < 1e-9
