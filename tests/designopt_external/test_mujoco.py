"""The model `mujoco`: attributes of MJCF and URDF as design inputs, signals, tables, scenes; mistakes are sentences."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from designopt_external.mujoco.model import Mujoco
from fmus import needs_mujoco

import designopt
from designopt.api import Study
from designopt.study.language.errors import StudyError
from designopt.testing import check_model

pytestmark = needs_mujoco

MJCF = """\
<mujoco>
  <option timestep="0.001" integrator="RK4"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="bob" pos="0 0 1">
      <joint name="swing" type="hinge" axis="0 1 0"/>
      <geom name="rod" type="capsule" fromto="0 0 0 0 0 -0.4" size="0.01"/>
      <geom name="weight" type="box" pos="0 0 -0.4" size="0.03 0.03 0.03"/>
      <site name="tip" pos="0 0 -0.4"/>
    </body>
  </worldbody>
  <actuator><motor name="drive" joint="swing"/><position name="servo" joint="swing" kp="0"/></actuator>
  <sensor><jointvel name="rate" joint="swing"/><framepos name="tip" objtype="site" objname="tip"/></sensor>
  <keyframe><key name="lifted" qpos="0.5"/></keyframe>
</mujoco>
"""
STUDY = """\
study: pendulum
model:
  use: mujoco
  file: pendulum.xml
  duration: 1 s
  inputs:
    stiffness: {set: joint/swing/stiffness, unit: N*m/rad}
    mass: {set: body/bob/mass, unit: kg}
    angle: {set: initial/swing, unit: rad}
  outputs:
    energy: {energy: total, take: last}
    peak_rate: {sensor: rate, take: largest, unit: rad/s}
space:
  stiffness: [1 N*m/rad, 20 N*m/rad]
  mass: [0.5 kg, 2 kg]
  angle: [0.1 rad, 0.5 rad]
objectives: [{minimize: peak_rate}]
solver: {use: latin_hypercube, samples: 4}
execution: {executor: serial}
"""
DESIGN = {"stiffness": 10.0, "mass": 1.0, "angle": 0.3}
OUTPUTS = "  outputs:\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pendulum.xml").write_text(MJCF)
    return tmp_path


def study(*changes: tuple[str, str]) -> Study:
    """The study with replaced parts of its text."""
    text = STUDY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    Path("study.yaml").write_text(text)
    return designopt.load("study.yaml")


def outputs(*changes: tuple[str, str], **design: float) -> Any:
    evaluation = study(*changes).evaluate({**DESIGN, **design})
    assert evaluation.status == "ok", evaluation.message
    return evaluation.outputs


def test_energy_is_conserved_and_inputs_reach_the_compiled_model() -> None:
    plain = outputs()
    start = outputs(("take: last}", "take: first}"))
    assert plain["energy"] == pytest.approx(start["energy"], rel=1e-6)
    # a spring without gravity: the energy is that of the spring at the start
    weightless = ("pendulum.xml", "weightless.xml")
    Path("weightless.xml").write_text(MJCF.replace('integrator="RK4"', 'integrator="RK4" gravity="0 0 0"'))
    assert outputs(weightless)["energy"] == pytest.approx(0.5 * 10.0 * 0.3**2, rel=1e-6)
    # the inertia of the geoms is scaled with the mass: the peak rate is that of the stiffness per mass
    heavy = outputs(weightless, mass=2.0, stiffness=20.0)
    assert heavy["peak_rate"] == pytest.approx(outputs(weightless)["peak_rate"], rel=1e-9)


def test_the_model_passes_the_conformance_test() -> None:
    arrays = ("space:", "  arrays: {rate: {sensor: rate, unit: rad/s}}\nspace:")
    settings = study(
        arrays, ("peak_rate: {sensor: rate", "top: {sensor: rate"), ("minimize: peak_rate", "minimize: top")
    )
    check_model(Mujoco, settings.definition.model.settings, [DESIGN, {**DESIGN, "mass": 0.7}], refused=[
        {**DESIGN, "mass": -1.0}
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("{position: joint/swing, take: first, unit: rad}", 0.3),
        ("{sensor: tip, component: 2, take: first, unit: m}", 1.0 - 0.4 * math.cos(0.3)),
        ("{position: site/tip, component: 0, take: first, unit: m}", -0.4 * math.sin(0.3)),
        ("{velocity: joint/swing, take: first}", 0.0),
        ("{actuator: drive, take: max}", 0.0),
        ("{contact: count, take: max}", 0.0),
        ("{energy: kinetic, take: first}", 0.0),
        ("{position: joint/swing, take: crossing, level: 9}", math.inf),
    ],
)
def test_signals_are_those_of_the_model(source: str, value: float) -> None:
    changed = (
        "energy: {energy: total, take: last}",
        f"energy: {source}",
    )
    assert outputs(changed)["energy"] == pytest.approx(value, abs=1e-12)


def test_a_resting_box_presses_with_its_weight() -> None:
    Path("box.xml").write_text(
        '<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/><body name="box" pos="0 0 0.05">'
        '<freejoint name="free"/><geom name="box" type="box" size="0.05 0.05 0.05"/></body></worldbody></mujoco>'
    )
    text = STUDY[: STUDY.index("  inputs:")].replace("pendulum.xml", "box.xml") + (
        "  inputs: {mass: {set: body/box/mass, unit: kg}, half: {set: geom/box/size/2, unit: m}}\n"
        "  outputs: {press: {contact: force, between: [box, floor]}, depth: {contact: depth}}\n"
        "space: {mass: [1 kg, 3 kg], half: [40 mm, 60 mm]}\nobjectives: [{minimize: press}]\n"
        "solver: {use: latin_hypercube, samples: 2}\nexecution: {executor: serial}\n"
    )
    Path("study.yaml").write_text(text)
    evaluation = designopt.load("study.yaml").evaluate({"mass": 2.0, "half": 0.05})
    assert evaluation.status == "ok", evaluation.message
    assert evaluation.outputs["press"] == pytest.approx(2.0 * 9.81, rel=1e-3)
    assert 0.0 < evaluation.outputs["depth"] < 1e-3


def test_controls_and_the_initial_state_come_from_tables_keyframes_and_conditions() -> None:
    Path("drive.csv").write_text("time,drive\n0,0\n0.5,3\n1,3\n")
    Path("start.csv").write_text("time,swing,swing_velocity\n0,0.2,1.5\n1,9,9\n")
    torque = ("energy: {energy: total, take: last}", "energy: {actuator: drive, take: mean}")
    assert outputs(torque, (OUTPUTS, f"  signals: drive.csv\n{OUTPUTS}"))["energy"] == pytest.approx(2.25, rel=1e-3)
    constant = (OUTPUTS, "  conditions: {torque: {set: control/drive, unit: N*m}}\n" + OUTPUTS)
    scenario = ("objectives:", "scenarios: [{name: a, torque: 2 N*m}]\nobjectives:")
    assert outputs(torque, constant, scenario)["energy"] == pytest.approx(2.0)
    free = (
        ("    angle: {set: initial/swing, unit: rad}\n", ""),
        ("  angle: [0.1 rad, 0.5 rad]\n", ""),
    )
    angle = ("energy: {energy: total, take: last}", "energy: {position: joint/swing, take: first}")
    rate = ("energy: {energy: total, take: last}", "energy: {velocity: joint/swing, take: first}")
    design = {"stiffness": 10.0, "mass": 1.0}
    table = (OUTPUTS, f"  initial: start.csv\n{OUTPUTS}")
    assert study(*free, angle, table).evaluate(design).outputs["energy"] == 0.2
    assert study(*free, rate, table).evaluate(design).outputs["energy"] == 1.5
    key = (OUTPUTS, f"  keyframe: lifted\n{OUTPUTS}")
    assert study(*free, angle, key).evaluate(design).outputs["energy"] == 0.5


def test_a_scene_has_the_outlines_of_the_geoms_where_they_are() -> None:
    evaluation = study((OUTPUTS, f"  step: 100 ms\n{OUTPUTS}")).evaluate(DESIGN, arrays=["time", "scene"])
    scene = evaluation.arrays["scene"]
    assert scene.shape[0] == len(evaluation.arrays["time"]) == 11
    assert scene.shape[2] == 3
    points = scene[0][np.isfinite(scene[0]).all(axis=1)]
    tip = np.array([-0.4 * math.sin(0.3), 0.0, 1.0 - 0.4 * math.cos(0.3)])
    assert np.linalg.norm(points - tip, axis=1).min() == pytest.approx(0.01, abs=0.03)
    assert points[:, 2].min() > 1.0 - 0.4 - 0.06


def test_an_unstable_simulation_is_diverged_and_a_refused_model_invalid() -> None:
    stiff = study(("[1 N*m/rad, 20 N*m/rad]", "[1 N*m/rad, 1e12 N*m/rad]"))
    evaluation = stiff.evaluate({**DESIGN, "stiffness": 1e12})
    assert evaluation.status == "diverged", evaluation
    assert "unstable" in evaluation.message
    assert not Path("MUJOCO_LOG.TXT").exists()


def test_urdf_and_meshes_and_includes_are_read_from_the_files_of_the_study() -> None:
    Path("cube.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    Path("part.xml").write_text(
        '<mujoco><asset><mesh name="cube" file="cube.obj" scale="0.1 0.1 0.1"/></asset></mujoco>'
    )
    Path("assembly.xml").write_text(
        MJCF.replace("<worldbody>", '<include file="part.xml"/>\n<worldbody>').replace(
            'type="box" pos="0 0 -0.4" size="0.03 0.03 0.03"', 'type="mesh" mesh="cube"'
        )
    )
    assembled = ("pendulum.xml", "assembly.xml\n  files: [part.xml, cube.obj]")
    assert outputs(assembled)["peak_rate"] > 0.0
    Path("arm.urdf").write_text(
        '<robot name="arm"><link name="base"/><link name="bob"><inertial><origin xyz="0 0 -0.4"/><mass value="1"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="swing" type="continuous"><parent link="base"/><child link="bob"/>'
        '<axis xyz="0 1 0"/></joint></robot>'
    )
    rate = ("{sensor: rate, take: largest, unit: rad/s}", "{velocity: joint/swing, take: largest, unit: rad/s}")
    assert outputs(("pendulum.xml", "arm.urdf"), rate)["peak_rate"] > 0.0


def test_the_gripper_lifts_the_ball_only_with_enough_force() -> None:
    loaded = designopt.load(Path(__file__).parents[2] / "studies" / "gripper_mujoco" / "gripper_mujoco.yaml")
    design = {"friction": 0.8, "finger": 0.05}
    strong = loaded.evaluate({**design, "force": 8.0}, scenario="heavy", arrays=["scene", "ball_height"])
    weak = loaded.evaluate({**design, "force": 0.3}, scenario="heavy")
    assert strong.outputs["height"] > 0.08 > weak.outputs["height"]
    assert strong.arrays["ball_height"].shape == strong.arrays["scene"].shape[:1]


STIFFNESS = "{set: joint/swing/stiffness, unit: N*m/rad}"
ENERGY = "{energy: total, take: last}"
#: A part of the study, its replacement, and the message.
MISTAKES = [
    ("joint/swing/stiffness", "joint/swng/stiffness", "the model has no joint 'swng'; did you mean 'swing'?"),
    ("joint/swing/stiffness", "joint/swing/stifness", "has no number 'stifness'; did you mean 'stiffness'?"),
    ("joint/swing/stiffness", "joint/stiffness", "is not KIND/NAME/ATTRIBUTE or KIND/NAME/ATTRIBUTE/POSITION"),
    ("joint/swing/stiffness", "jont/swing/stiffness", "did you mean 'joint'?"),
    ("joint/swing/stiffness", "geom/weight/size", "write the position from 0, as in geom/weight/size/0"),
    ("joint/swing/stiffness", "geom/weight/size/3", "the position is from 0 to 2, not 3"),
    ("joint/swing/stiffness", "geom/weight/mass/0", "mass is one number; write geom/weight/mass"),
    ("joint/swing/stiffness", "control/engine", "the model has no actuator 'engine'; there are drive, servo"),
    ("joint/swing/stiffness", "initial/swing", "is set by 'stiffness' too; remove one"),
    (STIFFNESS, "{unit: N*m/rad}", "'set' is missing"),
    (STIFFNESS, "{set: joint/swing/stiffness, unit: N*m/radd}", "radd"),
    (STIFFNESS, "{set: joint/swing/stiffness, unit: kg}", "incompatible units"),
    (ENERGY, "{energy: all}", "'all' is not one of kinetic, potential, total"),
    (ENERGY, "{sensor: speed}", "the model has no sensor 'speed'; there are rate, tip"),
    (ENERGY, "{sensor: tip, component: 3}", "is 3, and the sensor has 3 components, from 0"),
    (ENERGY, "{sensor: tip, energy: total}", "has sensor and energy; remove all but one"),
    (ENERGY, "{take: last}", "needs one of sensor, actuator, energy, contact, position, velocity"),
    (ENERGY, "{contact: force, between: [rod, wall]}", "the model has no geom 'wall'; there are floor, rod, weight"),
    (ENERGY, "{energy: total, between: [rod]}", "is for contacts; remove it, or write contact: force"),
    (ENERGY, "{position: jnt/swing}", "'jnt/swing' is not joint/NAME or body/NAME or site/NAME; did you mean 'joint'?"),
    (ENERGY, "{energy: total, level: 2}", "is for crossings; add 'take: crossing', or remove it"),
    ("file: pendulum.xml", "file: pendulm.xml", "did you mean 'pendulum.xml'?"),
    ("file: pendulum.xml", "file: broken.xml", "broken.xml:3: is not XML"),
    ("file: pendulum.xml", "file: invalid.xml", "invalid.xml: "),
    ("file: pendulum.xml", "file: html.xml", "begins with <html>; MJCF begins with <mujoco>, URDF with <robot>"),
    ("file: pendulum.xml", "file: native.xml", "native.xml:2: <extension> loads compiled code, which"),
    ("file: pendulum.xml", "file: outside.xml", "outside.xml:2: '../secret.stl' is outside the study's folder"),
    ("file: pendulum.xml", "file: mesh.xml", "needs the file 'cube.obj'; add it to the study: files: [cube.obj]"),
    ("duration: 1 s", "duration: 1e9 s", "samples; at most"),
    ("duration: 1 s", "duration: 1 s\n  step: 1.5 ms", "is not a multiple of the model's time step, 0.001 s"),
    ("duration: 1 s", "duration: 1 s\n  keyframe: liftd", "the model has no keyframe 'liftd'; did you mean 'lifted'?"),
    ("duration: 1 s", "duration: 1 s\n  signals: short.csv", "short.csv: has signals from 0 s to 0.5 s"),
    ("duration: 1 s", "duration: 1 s\n  columns: {engine: a}", "the model has no input 'engine' over time"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "mistake", "message"), MISTAKES, ids=[m[1].strip()[:40] for m in MISTAKES])
def test_a_mistake_is_reported_at_its_place_with_the_way_out(part: str, mistake: str, message: str) -> None:
    Path("broken.xml").write_text("<mujoco>\n<option\n</mujoco>")
    Path("invalid.xml").write_text('<mujoco>\n<worldbody><geom type="bx"/></worldbody></mujoco>')
    Path("html.xml").write_text("<html/>")
    Path("native.xml").write_text('<mujoco>\n<extension><plugin plugin="my.plugin"/></extension></mujoco>')
    Path("outside.xml").write_text('<mujoco>\n<asset><mesh name="a" file="../secret.stl"/></asset></mujoco>')
    Path("mesh.xml").write_text('<mujoco>\n<asset><mesh name="a" file="cube.obj"/></asset></mujoco>')
    Path("short.csv").write_text("time,drive\n0,1\n0.5,1\n")
    with pytest.raises(StudyError) as raised:
        study((part, mistake))
    issues = [issue for issue in raised.value.issues if message in issue.message]
    assert issues, [issue.message for issue in raised.value.issues]
    assert issues[0].line is not None
    assert issues[0].column is not None
