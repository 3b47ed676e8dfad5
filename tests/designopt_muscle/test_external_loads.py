"""Forces from outside in the axes of the ground, of the loaded body, or of another one."""

import numpy as np
import pytest
from designopt_mechanics.robot_files.xml import ModelError
from designopt_mechanics.tree_rows import TreeRows
from designopt_muscle.geometry.kinematics import Kinematics, kinematics
from designopt_muscle.geometry.loads import body_loads, sum_by_body
from designopt_muscle.models.static_sharing import StaticSharing
from designopt_muscle.osim.read import read_model
from designopt_muscle.osim.tree import tree_of
from designopt_recordings.table import TimeTable
from small_models import hinge

from designopt.arrays import Floats
from designopt.plugin import InputFile

TIME = np.linspace(0.0, 1.0, 21)
ANGLE = 0.4 + 0.9 * np.sin(2.0 * TIME)
FORCE = np.column_stack([5.0 + TIME, -20.0 + 3.0 * TIME, 2.0 * TIME])
POINT = np.column_stack([0.25 + 0.1 * TIME, 0.02 * TIME, 0.01 + 0.0 * TIME])
TORQUE = np.column_stack([0.1 * TIME, 0.2 - TIME, 1.5 * TIME])
ALL = ("force", "point", "torque")


def assignment(force: str = "ground", point: str = "ground", named: tuple[str, ...] = ALL, body: str = "arm") -> bytes:
    identifiers = "".join(f"<{what}_identifier>{what}_v</{what}_identifier>" for what in named)
    return f"""<?xml version="1.0"?>
<OpenSimDocument Version="40000"><ExternalLoads name="loads"><objects><ExternalForce name="hand">
  <applied_to_body>{body}</applied_to_body>
  <force_expressed_in_body>{force}</force_expressed_in_body>
  <point_expressed_in_body>{point}</point_expressed_in_body>
  {identifiers}
</ExternalForce></objects></ExternalLoads></OpenSimDocument>
""".encode()


def external_loads(content: bytes, table: TimeTable, motion: Kinematics, time: Floats) -> dict[str, Floats]:
    return sum_by_body(body_loads(content, table, motion, time))


def recorded() -> TimeTable:
    names = [f"{what}_v{axis}" for what in ALL for axis in "xyz"]
    return TimeTable(TIME, names, np.concatenate([FORCE, POINT, TORQUE], axis=1), False)


@pytest.fixture
def motion():
    return kinematics(read_model(hinge()), {"flexion": ANGLE})


def turn(values: np.ndarray) -> np.ndarray:
    """From the axes of the arm, which turns about z at the origin of the ground, to those of the ground."""
    c, s = np.cos(ANGLE), np.sin(ANGLE)
    x, y, z = values.T
    return np.column_stack([c * x - s * y, s * x + c * y, z])


@pytest.mark.parametrize("force", ["ground", "arm"])
@pytest.mark.parametrize("point", ["ground", "arm"])
def test_force_torque_and_point_turn_with_the_body_whose_axes_they_are_in(motion, force, point):
    loads = external_loads(
        assignment(force, f"/bodyset/{point}" if point == "arm" else point), recorded(), motion, TIME
    )
    pull, torque = (turn(part) if force == "arm" else part for part in (FORCE, TORQUE))
    at = turn(POINT) if point == "arm" else POINT
    np.testing.assert_allclose(loads["arm"][:, :3], pull, atol=1e-12)
    np.testing.assert_allclose(loads["arm"][:, 3:], np.cross(at, pull) + torque, atol=1e-12)


def test_a_force_without_a_point_acts_at_the_origin_of_its_body():
    """As OpenSim's ExternalForce; the origin of the arm is moved away from that of the ground here."""
    moved = hinge().replace(
        b"<socket_child_frame>arm</socket_child_frame>",
        b"<socket_child_frame>arm_offset</socket_child_frame><frames><PhysicalOffsetFrame name='arm_offset'>"
        b"<socket_parent>/bodyset/arm</socket_parent><translation>-0.3 0 0</translation>"
        b"<orientation>0 0 0</orientation></PhysicalOffsetFrame></frames>",
    )
    places = kinematics(read_model(moved), {"flexion": ANGLE})
    loads = external_loads(assignment(named=("force",)), recorded(), places, TIME)
    origin = 0.3 * np.column_stack([np.cos(ANGLE), np.sin(ANGLE), 0.0 * ANGLE])
    np.testing.assert_allclose(places.origin["arm"], origin, atol=1e-12)
    np.testing.assert_allclose(loads["arm"][:, 3:], np.cross(origin, FORCE), atol=1e-12)


def test_a_torque_alone_is_a_pure_moment(motion):
    loads = external_loads(assignment(named=("torque",)), recorded(), motion, TIME)
    np.testing.assert_allclose(loads["arm"], np.concatenate([0.0 * TORQUE, TORQUE], axis=1), atol=1e-12)


def test_the_net_moment_of_a_hinge_is_that_of_the_force_in_the_arm():
    """Closed form: in the axes of the arm the load's moment about the pin is x F_y - y F_x + T_z whatever the angle."""
    model = read_model(hinge())
    places = kinematics(model, {"flexion": ANGLE})
    load = external_loads(assignment("arm", "arm"), recorded(), places, TIME)
    rows = TreeRows(tree_of(model), gravity=model.gravity, loaded=("arm",), compiled=False)
    still = np.zeros((len(TIME), 1))
    needed = rows.inverse_dynamics(ANGLE[:, None], still, still, load)[:, 0]
    weight = 9.81 * 0.2 * np.cos(ANGLE)
    moment = POINT[:, 0] * FORCE[:, 1] - POINT[:, 1] * FORCE[:, 0] + TORQUE[:, 2]
    np.testing.assert_allclose(needed, weight - moment, atol=1e-10)


def test_a_study_takes_loads_in_the_axes_of_a_body():
    head = "time," + ",".join(recorded().names)
    rows = np.column_stack([TIME, FORCE, POINT, TORQUE])
    table = "\n".join([head, *(",".join(repr(float(v)) for v in row) for row in rows)])
    angles = "\n".join(["time,flexion", *(f"{t!r},{a!r}" for t, a in zip(TIME.tolist(), ANGLE.tolist(), strict=True))])
    study = StaticSharing(model=InputFile("hinge.osim", hinge()), inverse_dynamics="compute", reserve=10.0)
    moments = {}
    for axes in ("ground", "arm"):
        scenario = {
            "motion": InputFile("angles.csv", angles.encode()),
            "external_loads": InputFile("loads.xml", assignment(axes, "arm")),
            "external_forces": InputFile("forces.csv", table.encode()),
        }
        _, arrays = study.evaluate({}, scenario, frozenset({"net_moments"}))
        moments[axes] = arrays["net_moments"][:, 0]
    in_arm = POINT[:, 0] * FORCE[:, 1] - POINT[:, 1] * FORCE[:, 0]
    assert np.abs(moments["arm"] - moments["ground"]).max() > 1.0
    inner = slice(5, -5)
    inertia = 0.01 + 0.2**2
    ddq = -3.6 * np.sin(2.0 * TIME)
    expected = inertia * ddq + 9.81 * 0.2 * np.cos(ANGLE) - in_arm - TORQUE[:, 2]
    np.testing.assert_allclose(moments["arm"][inner], expected[inner], atol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("arm", "hand"), "force_expressed_in_body is 'hand', which is not a body of the model 'hinge'"),
        (("ground", "hand"), "point_expressed_in_body is 'hand', which is not a body of the model 'hinge'"),
    ],
)
def test_bodies_that_are_not_there_are_named_with_their_place(motion, change, message):
    axes = {"force": "arm", "point": "ground"}
    stated = {what: body.replace(*change) for what, body in axes.items()}
    with pytest.raises(ModelError, match=message) as caught:
        external_loads(assignment(**stated), recorded(), motion, TIME)
    assert caught.value.line == (4 if stated["force"] == "hand" else 5)


def test_nothing_acts_on_the_ground(motion):
    with pytest.raises(ModelError, match="applied_to_body is 'ground', which is not a body"):
        external_loads(assignment(body="ground"), recorded(), motion, TIME)


def test_omitted_elements_of_a_force_come_from_the_files_defaults(motion):
    """A default force in the axes of the arm, as OpenSim writes it, counts as if it were written with each force."""
    axes = b"<force_expressed_in_body>arm</force_expressed_in_body>"
    stated, head = assignment("arm"), b'<ExternalLoads name="loads">'
    default = b'%s<defaults><ExternalForce name="default">%s</ExternalForce></defaults>' % (head, axes)
    left_out = stated.replace(b"\n  " + axes, b"").replace(head, default)
    assert left_out.count(axes) == 1
    load = external_loads(left_out, recorded(), motion, TIME)["arm"]
    assert load == pytest.approx(external_loads(stated, recorded(), motion, TIME)["arm"], abs=1e-12)
    elements = axes.replace(b"arm", b"ground") + b"<applied_to_body>"
    ground = external_loads(assignment("ground"), recorded(), motion, TIME)["arm"]
    with_own = left_out.replace(b"<applied_to_body>", elements)
    assert external_loads(with_own, recorded(), motion, TIME)["arm"] == pytest.approx(ground, abs=1e-12)
