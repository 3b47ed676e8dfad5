"""Robots from URDF and MJCF: the same equations as in MuJoCo, and what is not carried over by line.

Ten robots were written for these tests (see `robots`); public ones are those of the packages `example-robot-data` and
`gymnasium`.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.dynamics.matrices import bias, gravity_force, mass_matrix
from designopt_mechanics.dynamics.recursion import inverse_dynamics
from designopt_mechanics.mechanism.mechanism import Mechanism
from designopt_mechanics.motions import Ball, Rotate
from designopt_mechanics.robot_files.reading import read_robot
from designopt_mechanics.robot_files.xml import ModelError
from designopt_mechanics.springs import tensions
from designopt_mechanics.state import TreeState
from designopt_mechanics.wires import lengths, moment_arms, wire_path
from robots import FINGER, FOUR_BAR, MJCF, URDF

from designopt.arrays import Floats

ROBOTS = {**URDF, **MJCF}


class Engine:
    """A robot in MuJoCo, without what is soft there: damping, springs, stops and constraints."""

    def __init__(self, text: str) -> None:
        self.mujoco = pytest.importorskip("mujoco", reason="the rigid-body engine of the comparison is not installed")
        self.model = self.mujoco.MjModel.from_xml_string(text)
        if text.startswith("<robot"):
            self.model.opt.gravity[:] = (0.0, 0.0, -9.81)
        self.data = self.mujoco.MjData(self.model)

    def matrices(self, q: Floats, v: Floats) -> tuple[Floats, Floats, Floats]:
        """Mass matrix, bias and gravity force in MuJoCo's velocities."""
        model, data = self.model, self.data
        matrix = np.zeros((model.nv, model.nv))
        data.qpos[:], data.qvel[:] = q, v
        self.mujoco.mj_forward(model, data)
        self.mujoco.mj_fullM(model, data, matrix)
        moving = data.qfrc_bias.copy()
        data.qvel[:] = 0.0
        self.mujoco.mj_forward(model, data)
        return matrix, moving, -data.qfrc_bias.copy()


def in_velocities(engine: Engine, mechanism: Mechanism, z: Floats, dz: Floats) -> tuple[Floats, Floats, Floats]:
    """Positions and velocities of MuJoCo, and the (v, m) derivative of these by the rates of the coordinates.

    The joints of a body are the motions of its frame, without the constant shifts to and from an anchor; a quaternion
    has an angular velocity about the axes of the body.
    """
    model, names = engine.model, list(mechanism.tree.names)
    state = TreeState.symbols(mechanism.tree)
    q, E = np.zeros(model.nq), np.zeros((model.nv, len(names)))
    for frame in mechanism.tree.frames:
        motions = [m for m in frame.motions if not isinstance(getattr(m, "distance", None), float)]
        if not motions:
            continue
        body = model.body(frame.name)
        at, dof = model.jnt_qposadr[body.jntadr[0]], body.dofadr[0]
        for motion in motions:
            if isinstance(motion, Ball):
                columns = [names.index(str(component)) for component in motion.quaternion]
                w, x, y, k = q[at : at + 4] = z[columns]
                E[dof : dof + 3, columns] = 2.0 * np.array([[-x, w, k, -y], [-y, -k, w, x], [-k, y, -x, w]])
                continue
            value = motion.angle if isinstance(motion, Rotate) else motion.distance
            variable = ca.SX(state.named[value] if isinstance(value, str) else value(state.named))
            function = ca.Function("v", [state.z], [variable, ca.jacobian(variable, state.z)])
            displacement, slope = (np.asarray(r).ravel() for r in function(z))
            q[at], E[dof] = displacement[0] + model.qpos0[at] * (body.name != "trunk"), slope
            at, dof = at + 1, dof + 1
    return q, E @ dz, E


def posture(mechanism: Mechanism, seed: int) -> tuple[Floats, Floats]:
    """A random posture with unit quaternions, and rates that keep their length."""
    rng = np.random.default_rng(seed)
    names = mechanism.tree.names
    z, dz = rng.uniform(-1.2, 1.2, len(names)), rng.normal(size=len(names))
    for i, name in enumerate(names):
        if name.endswith("_qw"):
            part = slice(i, i + 4)
            z[part] /= np.linalg.norm(z[part])
            dz[part] -= z[part] * (z[part] @ dz[part])
    return z, dz


def _without_lengths(matrix: Floats, mechanism: Mechanism, z: Floats) -> None:
    """Take out of a mass matrix the inertia that the length of a quaternion has of its own."""
    for i, label in enumerate(mechanism.tree.names):
        if label.endswith("_qw"):
            matrix[i : i + 4, i : i + 4] -= np.outer(z[i : i + 4], z[i : i + 4])


@pytest.mark.parametrize("name", ROBOTS)
def test_mass_matrix_bias_and_gravity_force_are_those_of_mujoco(name: str) -> None:
    engine, mechanism = Engine(ROBOTS[name]), read_robot(ROBOTS[name].encode(), name).mechanism
    state = TreeState.symbols(mechanism.tree)
    functions = [mass_matrix(state), bias(state, mechanism.gravity), gravity_force(state, mechanism.gravity)]
    ours = ca.Function("ours", [state.z, state.dz], functions)
    for seed in range(3):
        z, dz = posture(mechanism, seed)
        q, v, E = in_velocities(engine, mechanism, z, dz)
        M, moving, weight = engine.matrices(q, v)
        matrix, ours_moving, ours_weight = (np.asarray(r) for r in ours(z, dz))
        _without_lengths(matrix, mechanism, z)
        np.testing.assert_allclose(matrix, E.T @ M @ E, atol=1e-10)
        np.testing.assert_allclose(ours_weight.ravel(), E.T @ weight, atol=1e-10)
        if "qw" not in "".join(mechanism.tree.names) and "coupled" not in name:
            np.testing.assert_allclose(ours_moving.ravel(), E.T @ moving, atol=1e-10)


#: Public robots by package: quadrupeds, humanoids, arms, flying and swimming ones, all with open licences.
_PUBLIC = {
    "example-robot-data": (
        "a1.urdf", "go2.urdf", "laikago.urdf", "solo12.urdf", "centauro.urdf", "g1_29dof_with_hand_rev_1_0.urdf",
        "talos_full_v2.urdf", "simple_humanoid.urdf", "panda.urdf", "ur5_robot.urdf", "ur10_robot.urdf", "xarm7.urdf",
        "z1.urdf", "kinova.urdf", "baxter.urdf", "tiago_pro.urdf", "hextilt_flying_arm_5.urdf",
    ),
    "gymnasium": (
        "hopper.xml", "humanoid.xml", "inverted_double_pendulum.xml", "point.xml", "pusher_v5.xml", "reacher.xml",
        "swimmer.xml", "walker2d_v5.xml",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("package", "name"), [(p, name) for p, names in _PUBLIC.items() for name in names])
def test_mass_matrix_and_gravity_force_of_a_public_robot_are_those_of_mujoco(package: str, name: str) -> None:
    """Relative to the largest entry; shapes of URDF, which the engine looks up in files of meshes, are left out."""
    try:
        (file,) = (f for f in distribution(package).files or () if f.name == name)
    except PackageNotFoundError:
        pytest.skip(f"the robots of the package {package} (extra: robots) are not installed")
    text = Path(str(file.locate())).read_text(encoding="utf-8")
    if name.endswith(".urdf"):
        text = re.sub(r"<!--.*?-->|<\?xml.*?\?>", "", text, flags=re.DOTALL)
        text = re.sub(r"<(visual|collision)\b([^>]*/>|.*?</\1>)", "", text, flags=re.DOTALL).strip()
    engine, mechanism = Engine(text), read_robot(text.encode(), name).mechanism
    state = TreeState.symbols(mechanism.tree)
    ours = ca.Function("ours", [state.z], [mass_matrix(state), gravity_force(state, mechanism.gravity)])
    for seed in range(2):
        z, dz = posture(mechanism, seed)
        q, v, E = in_velocities(engine, mechanism, z, dz)
        M, _, weight = engine.matrices(q, v)
        matrix, ours_weight = (np.asarray(r) for r in ours(z))
        _without_lengths(matrix, mechanism, z)
        np.testing.assert_allclose(matrix, E.T @ M @ E, atol=1e-10 * np.abs(matrix).max())
        np.testing.assert_allclose(ours_weight.ravel(), E.T @ weight, atol=1e-10 * (1.0 + np.abs(ours_weight).max()))


def test_what_published_files_often_have_is_read_and_noted() -> None:
    text = """<robot name="arm"><link name="base"/><link name="rod"><inertial><mass value="1"/>
      <inertia ixx="1e-3" iyy="1e-3" izz="1e-2" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="turn" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
      <limit effort="3" velocity="2"/></joint></robot>"""
    robot = read_robot(text.encode(), "arm.urdf")
    notes = sorted(map(str, robot.omissions), reverse=True)
    assert [note.split(":")[0] for note in notes] == ["line 4", "line 1"]
    assert "lower and upper are both 0: the joint has no range here" in notes[0]
    assert "each must be at most the sum of the others; the tensor is used as it stands" in notes[1]
    assert robot.mechanism.tree.coordinates[0].high == np.inf
    state = TreeState.symbols(robot.mechanism.tree)
    assert float(ca.Function("M", [state.z], [mass_matrix(state)])(0.3)) == pytest.approx(1e-3)


def test_a_tendon_through_sites_has_the_length_the_moment_arms_and_the_spring_force_of_mujoco() -> None:
    text = MJCF["tendon and springs"]
    engine, mechanism = Engine(text), read_robot(text.encode(), "tendon.xml").mechanism
    state = TreeState.symbols(mechanism.tree)
    function = ca.Function(
        "t",
        [state.z, state.dz],
        [lengths(state, mechanism.wires), moment_arms(state, mechanism.wires), tensions(state, mechanism.springs)],
    )
    z, dz = np.array([0.4, -0.9]), np.zeros(2)
    length, arms, tension = (np.asarray(r).ravel() for r in function(z, dz))
    engine.matrices(z, dz)
    assert length[0] == pytest.approx(engine.data.ten_length[0], abs=1e-12)
    springs = (
        arms * tension[0] + np.asarray(ca.Function("p", [state.z, state.dz], [mechanism.passive(state)])(z, dz)).ravel()
    )
    np.testing.assert_allclose(springs, engine.data.qfrc_spring, atol=1e-10)


def test_tendons_over_cylinders_and_spheres_have_the_lengths_and_moment_arms_of_mujoco() -> None:
    robot = read_robot(FINGER.encode(), "finger.xml")
    mechanism = robot.mechanism
    assert [wire.name for wire in mechanism.wires] == ["over", "under", "ball", "beside"]
    omitted = [str(omission) for omission in robot.omissions if "spatial" in omission.path]
    assert len(omitted) == 1
    assert omitted[0].startswith("line 13: ")
    assert "the site 'inner' is inside of the geom 'knuckle'" in omitted[0]
    engine, state = Engine(FINGER), TreeState.symbols(mechanism.tree)
    angles = [touched.angle for wire in mechanism.wires for touched in wire_path(state, wire).touches]
    evaluate = ca.Function(
        "of", [state.z], [lengths(state, mechanism.wires), moment_arms(state, mechanism.wires), ca.vertcat(*angles)]
    )
    wound = np.zeros(4)
    for z in np.random.default_rng(3).uniform((-1.2, -0.3), (1.2, 0.3), (40, 2)):
        length, arms, arcs = (np.asarray(r) for r in evaluate(z))
        engine.matrices(z, np.zeros(2))
        np.testing.assert_allclose(length.ravel(), engine.data.ten_length[:4], atol=1e-12)
        engine_arms = np.zeros((engine.model.ntendon, 2))
        model = engine.model
        rows = (model.ten_J_rownnz, model.ten_J_rowadr, model.ten_J_colind.ravel())
        engine.mujoco.mju_sparse2dense(engine_arms, engine.data.ten_J.ravel(), *rows)
        np.testing.assert_allclose(-arms.T, engine_arms[:4], atol=1e-12)
        wound += arcs.ravel() > 0.0
    assert ((wound > 5) & (wound <= 40)).all()


def test_a_connect_closes_a_loop_where_the_points_lie_in_the_reference_posture() -> None:
    mechanism = read_robot(FOUR_BAR.encode(), "four_bar.xml").mechanism
    (pin,) = mechanism.meets
    assert (pin.first.frame, pin.second.frame) == ("coupler", "rocker")
    np.testing.assert_allclose(pin.second.position, (0.0, 0.0, 0.3), atol=1e-12)


def test_limits_damping_friction_and_gears_of_joints_become_laws() -> None:
    elbow = read_robot(URDF["arm of three turns"].encode(), "arm.urdf").mechanism.laws["elbow"]
    assert (elbow.damping, elbow.friction, elbow.largest_effort, elbow.largest_speed) == (0.2, 0.1, 40.0, 3.0)
    motor = MJCF["pendulum from geoms"].replace(
        "</mujoco>", '<actuator><motor joint="hinge" gear="50" ctrlrange="-2 1"/></actuator></mujoco>'
    )
    hinge = read_robot(motor.encode(), "p.xml").mechanism.laws["hinge"]
    assert (hinge.ratio, hinge.largest_effort) == (50.0, 100.0)


def test_limits_of_a_joint_beyond_a_turn_are_probably_in_degrees() -> None:
    for limits, count in (('lower="-180" upper="180"', 1), ('lower="-6.2832" upper="6.2832"', 0)):
        text = f"""<robot name="small"><link name="base"/>
<link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="arm"/><limit {limits}/></joint></robot>"""
        omissions = [str(omission) for omission in read_robot(text.encode(), "arm.urdf").omissions]
        assert ["-180 to 180 rad are more than a turn: are they in degrees?" in note for note in omissions] == [
            True
        ] * count


def test_a_stated_total_mass_scales_all_bodies() -> None:
    text = MJCF["coupled joints"].replace("<worldbody>", '<compiler settotalmass="5"/><worldbody>')
    frames = read_robot(text.encode(), "scaled.xml").mechanism.tree.frames
    assert sum(f.body.mass for f in frames if f.body is not None) == pytest.approx(5.0)


def test_elements_that_are_not_imported_are_listed_with_their_line() -> None:
    text = URDF["gantry"].replace("</robot>", "<gazebo/>\n<material name='red'/></robot>")
    omissions = read_robot(text.encode(), "gantry.urdf").omissions
    assert [(o.line, o.path) for o in omissions] == [(9, 'robot "small"/gazebo'), (10, 'robot "small"/material "red"')]
    mimics = read_robot(URDF["gripper with mimic"].encode(), "gripper.urdf").omissions
    assert [str(o) for o in mimics] == [
        'line 9: robot "small"/joint "finger_right"/limit: the joint follows \'finger_left\', which has its own',
        'line 10: robot "small"/joint "tip_slide"/limit: the joint follows \'finger_left\', which has its own',
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("<robot", 1, "not well-formed"),
        ('<!DOCTYPE r [<!ENTITY a "b">]><robot>&a;</robot>', 1, "document types and entities are not supported"),
        ("<sdf/>", 1, "begins with <sdf>"),
        ("<OpenSimDocument/>", 1, "models of OpenSim are read by muscle_sharing and dynamic_sharing"),
        ("<robot name='r'/>", 1, "has no link"),
        ("<mujoco><include file='/etc/passwd'/></mujoco>", 1, "is not supported"),
        (URDF["gantry"].replace('axis xyz="1 0 0"', 'axis xyz="1 0 nan"'), 6, "holds NaN"),
        (URDF["gantry"].replace('axis xyz="1 0 0"', 'axis xyz="0 0 0"'), 6, "length 0"),
        (URDF["gantry"].replace('mass value="3.0"', 'mass value="-3"'), 4, "-3 kg is not a mass"),
        (URDF["gantry"].replace('<child link="hoist"/>', '<child link="hook"/>'), 8, "there is no link 'hook'"),
        (URDF["gantry"].replace('upper="2"', 'upper="-3"', 1), 6, "is not below"),
        (URDF["gripper with mimic"].replace('joint="finger_left"', 'joint="finger_right"', 1), 9, "circle"),
        (MJCF["ball joint and hinges"].replace('type="ball"', 'type="bal"'), 2, "'bal' is not one of"),
        (MJCF["pendulum from geoms"].replace('size="0.04"', 'size="-1"'), 3, "positive numbers"),
        (MJCF["pendulum from geoms"].replace('type="capsule"', 'type="mesh"'), 3, "give the body an <inertial>"),
        (MJCF["tendon and springs"].replace('site site="via"', 'site site="v"'), 6, "there is no site 'v'"),
    ],
)
def test_a_mistake_in_a_robot_file_is_reported_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(ModelError, match=message) as raised:
        read_robot(text.encode(), "robot.xml")
    assert raised.value.line == line


@pytest.mark.parametrize(
    ("name", "path", "value", "before", "after"),
    [
        ("arm of three turns", "frames.hand.body.mass", 0.9, '<mass value="0.4"/>', '<mass value="0.9"/>'),
        (
            "arm of three turns",
            "frames.hand.place.2",
            -0.2,
            'hand"/><origin xyz="0.3 0.1 -0.05"',
            'hand"/><origin xyz="0.3 0.1 -0.2"',
        ),
        ("arm of three turns", "coordinates.elbow.damping", 0.5, 'damping="0.2"', 'damping="0.5"'),
        ("arm of three turns", "coordinates.elbow.friction", 0.3, 'friction="0.1"', 'friction="0.3"'),
        ("pendulum from geoms", "gravity.2", -3.7, "<worldbody>", '<option gravity="0 0 -3.7"/><worldbody>'),
    ],
)
def test_a_number_of_a_robot_is_a_parameter_by_its_path(
    name: str, path: str, value: float, before: str, after: str
) -> None:
    varied = read_robot(ROBOTS[name].encode(), "robot.xml", {"number": path}).mechanism
    edited = read_robot(ROBOTS[name].replace(before, after, 1).encode(), "robot.xml").mechanism
    assert needed_efforts(varied, [value]) == pytest.approx(needed_efforts(edited, []), rel=1e-12, abs=1e-14)
    assert needed_efforts(varied, varied.column()) != pytest.approx(needed_efforts(edited, []), rel=1e-3)


def needed_efforts(mechanism: Mechanism, p: list[float]) -> Floats:
    """The generalised forces of one state of motion."""
    state = TreeState.symbols(mechanism.tree)
    forces = inverse_dynamics(state, mechanism.gravity, mechanism.forces_on(state)) - mechanism.passive(state)
    function = ca.Function("efforts", [state.z, state.dz, state.ddz, mechanism.p], [forces])
    motion = np.random.default_rng(0).uniform(-1.0, 1.0, (3, len(mechanism.tree.names)))
    return np.asarray(function(*motion, p), dtype=np.float64).ravel()


def test_inertia_centre_and_stiffness_of_a_robot_are_parameters_in_their_units() -> None:
    by_path = {
        "across": "frames.lower.body.inertia.0.1",
        "out": "frames.lower.body.centre.0",
        "k": "coordinates.elbow.stiffness",
    }
    robot = read_robot(ROBOTS["arm of three turns"].encode(), "robot.urdf", by_path).mechanism
    plain = read_robot(ROBOTS["arm of three turns"].encode(), "robot.urdf").mechanism
    assert {p.name: p.unit for p in robot.parameters} == {"across": "kg m^2", "out": "m", "k": "N m/rad"}
    assert needed_efforts(robot, robot.column()) == pytest.approx(needed_efforts(plain, []), rel=1e-12)
    # a deviation moment acts with both accelerations: the tensor stays symmetric
    body = robot.tree.frame("lower").body
    assert body is not None
    assert ca.is_equal(body.inertia[0, 1], body.inertia[1, 0])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("frames.hand.body.mas", "did you mean 'frames.hand.body.mass'"),
        ("frames.hand", r"there are frames.hand.place.0, .*frames.hand.body.mass.* and \d+ more"),
        ("nothing.at.all", "there are frames.base.place.0"),
    ],
)
def test_a_path_to_no_number_of_a_robot_is_answered_with_those_that_exist(path: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_robot(ROBOTS["arm of three turns"].encode(), "robot.urdf", {"number": path})
