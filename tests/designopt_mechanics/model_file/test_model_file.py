"""Model files: what they say is built, what is wrong is told with line and column, and mutated files do no harm."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from designopt_mechanics.model_file.reading import bundled, read
from designopt_mechanics.model_file.wire_arms import WireArms
from designopt_mechanics.report.wires import wire_moment_arm
from designopt_mechanics.tree import Point
from designopt_mechanics.tree_rows import TreeRows

import designopt
from designopt.plugin import InputFile, InvalidSetting
from designopt.study.language.errors import StudyError

STUDIES = Path(__file__).parents[3] / "studies"

GOOD = """\
gravity: [0, -9.81, 0]
coordinates:
  hip: {unit: rad, range: [-90 deg, 90 deg], reference: 10 deg}
  slide: {unit: m, range: [0, 300 mm]}
functions:
  knee: "0.5*hip + 0.1*sin(hip)"
  rhythm: {affine: {hip: 0.3}, offset: 5 deg}
loops:
  bar: {coordinates: {hip: [-1.6, 1.6]}, unknowns: {y: 0}, equations: ["y + 0.3*sin(y) - hip"]}
frames:
  thigh:
    place: [0, 900 mm, 0]
    motions: [rotate: {axis: [0, 0, 1], by: hip}]
    body: {mass: 8, centre: [0, -0.2, 0], inertia: [0.1, 0.02, 0.1]}
  shank:
    parent: thigh
    place: [0, -0.4, 0]
    turn: {axis: [0, 0, 1], angle: 30 deg}
    motions: [rotate: {axis: [0, 0, -1], by: knee}, slide: {axis: [0, 1, 0], by: slide}]
    body: {mass: 3, centre: [0, -0.2, 0], inertia: [0.05, 0.01, 0.05]}
  bar: {parent: thigh, motions: [rotate: {axis: [0, 0, 1], by: y}], body: {mass: 0.1}}
wires:
  calf:
    points: [{on: thigh, at: [0, -0.3, 0]}, {on: shank, at: [0, -0.1, 0]}]
springs:
  band:
    points: [{on: ground, at: [0, 1.2, 0.1]}, {on: shank, at: [0.05, -0.3, 0]}]
    stiffness: 2 N/mm
    rest: 300 mm
    damping: 5
  cord: {points: [{on: thigh, at: [0, 0, 0]}, {on: shank, at: [0, 0, 0]}], stiffness: 1e4, rest: 0.4, pulls_only: true}
contacts:
  heel: {on: shank, at: [0, -0.4, 0], stiffness: 50 kN/m, dissipation: 1, friction: 0.8}
  bump: {on: shank, at: [0, -0.2, 0], stiffness: 1e4, plane: {on: thigh, at: [-0.1, -0.3, 0], normal: [1, 0, 0]}}
"""


def mistakes(text: str) -> list[str]:
    """The messages of a bad file as "line:column: path: message"."""
    with pytest.raises(StudyError) as raised:
        read(text.encode(), "made.yaml")
    return [f"{i.line}:{i.column}: {i.path}: {i.message}" for i in raised.value.issues]


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_a_file_states_units_functions_loops_frames_and_wires() -> None:
    model = read(GOOD.encode(), "made.yaml")
    assert model.gravity == (0.0, -9.81, 0.0)
    assert model.tree.coordinates[0].high == pytest.approx(np.pi / 2.0)
    assert model.tree.coordinates[1].high == pytest.approx(0.3)
    rows = TreeRows(model.tree, model.gravity, model.wires, compiled=False)
    at = np.array([[0.4, 0.05]])
    origin, along = rows.positions([Point("shank"), Point("shank", (1.0, 0.0, 0.0))], at)[0]
    turned = np.arctan2(along[1] - origin[1], along[0] - origin[0])
    assert turned == pytest.approx(0.4 + np.radians(30.0) - (0.2 + 0.1 * np.sin(0.4)), rel=1e-12)
    assert rows.moment_arms(at).shape == (1, 2, 1)
    band, cord = model.springs
    assert (band.stiffness, band.rest, band.damping, band.pulls_only) == (2000.0, 0.3, 5.0, False)
    assert cord.pulls_only
    heel, bump = model.contacts
    assert (heel.stiffness, heel.dissipation, heel.friction, heel.plane.frame) == (5e4, 1.0, 0.8, "ground")
    assert (bump.plane.frame, bump.plane.position, bump.plane.normal) == ("thigh", (-0.1, -0.3, 0.0), (1.0, 0.0, 0.0))


def test_springs_and_contacts_of_a_file_act_in_its_equations() -> None:
    """The wire's tension at rest holds the weight less what a spring along the wire already pulls."""
    text = files("designopt_mechanics.model_file").joinpath("models", "knee_patella.yaml").read_text(encoding="utf-8")
    points = "[{on: ground, at: [0, 0.2, 0.0]}, {on: tibia, at: [0.1, -0.2, 0.0]}]"
    more = f"springs:\n  helper: {{points: {points}, stiffness: 0.5, rest: 0}}\n"
    alone, helped = (WireArms(file=InputFile("knee.yaml", t.encode())) for t in (text, text + more))
    one, _ = alone.evaluate({}, {})
    helped_outputs, _ = helped.evaluate({}, {})
    assert 0.0 < helped_outputs["peak_tension"] < one["peak_tension"]
    assert helped_outputs["peak_arm"] == one["peak_arm"]
    pressed = "contacts:\n  floor: {on: tibia, at: [0.0, -0.4, 0.0], stiffness: 1e3, dissipation: 1}\n"
    pressing = WireArms(file=InputFile("knee.yaml", (text + pressed).encode()))
    assert pressing.evaluate({}, {})[0]["peak_arm"] == one["peak_arm"]
    floor = read((text + pressed).encode(), "knee.yaml").contacts[0]
    assert floor.plane.normal == (0.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed("by: hip}", "by: hop}"), "13:45: frames.thigh.motions.0.rotate.by: no coordinate or function 'hop'"),
        (changed("mass: 8", "mass: -8"), "14:18: frames.thigh.body.mass: -8 kg is not a mass"),
        (changed("mass: 8, ", ""), "14:11: frames.thigh.body: 'mass' is missing"),
        (changed("0.1, 0.02, 0.1]", "0.1, 0.02, 0.5]"), "14:52: frames.thigh.body.inertia: no body has the principal"),
        (changed("axis: [0, 0, 1], by: hip", "axis: [0, 0, 3], by: hip"), "13:30: frames.thigh.motions.0.rotate.axis"),
        (changed("parent: thigh\n", "parent: tigh\n"), "16:13: frames.shank.parent: no frame 'tigh'"),
        (changed("on: shank", "on: shnk"), "24:50: wires.calf.points.1.on: no frame 'shnk'; did you mean 'shank'?"),
        (changed("0.1*sin(hip)", "0.1*sine(hip)"), "6:24: functions.knee: no function 'sine'; did you mean 'sin'?"),
        (
            changed('"0.5*hip + 0.1*sin(hip)"', "{spline: {of: hip, x: [0, 1, 2, 3], y: [0, 1, 2, 3], degree: 4}}"),
            "6:70: functions.knee.spline.degree: a spline has the degree 3 or 5",
        ),
        (changed("0.5*hip +", "0.5*hop +"), "6:14: functions.knee: no coordinate 'hop'; did you mean 'hip'?"),
        (changed("900 mm", "900 kg"), "12:16: frames.thigh.place.1:"),
        (changed("reference: 10 deg", "reference: 100 deg"), "3:57: coordinates.hip.reference: the reference 1.745"),
        (changed("unit: rad", "unit: degrees"), "3:15: coordinates.hip.unit: 'degrees' is not one of rad, m"),
        (changed("gravity:", "gravty:"), "1:1: : no entry 'gravty' here; did you mean 'gravity'?"),
        (changed("y + 0.3*sin(y) - hip", "y**2 + 5 + 0*hip"), "9:8: loops.bar: the loop"),
        (changed("by: slide}", "by: hip}"), "19:82: frames.shank.motions.1.slide.by: 'hip' is in rad, not in m"),
        (changed("2 N/mm", "-2 N/mm"), "28:16: springs.band.stiffness: -2000 N/m is not finite"),
        (changed("pulls_only: true", "pulls_only: very"), "31:115: springs.cord.pulls_only: must be true or"),
        (changed("0.4, pulls_only: true", "0.4, pulls_only: true, damping: 1"), "31:130: springs.cord.damping: does"),
        (changed("rest: 300 mm", "rst: 300 mm"), "29:5: springs.band: no entry 'rst' here"),
        (changed("on: shank, at: [0, -0.4", "on: shnk, at: [0, -0.4"), "33:14: contacts.heel.on: no frame 'shnk'"),
        (changed("normal: [1, 0, 0]", "normal: [1, 1, 0]"), "34:103: contacts.bump.plane.normal: [1.0, 1.0, 0.0] has"),
        (changed("plane: {on: thigh", "plane: {on: shank"), "34:9: contacts.bump: lies on 'shank' like the plane"),
        (changed("{on: shank, at: [0, -0.1, 0]}]", "{on: shank, at: [0, 0.1, 0]}]").replace("angle: 30 deg", "angle: 0")
         .replace("reference: 10 deg", "reference: 0"), "24:13: wires.calf.points: two points one after the other"),
        ("coordinates: {}\n", "1:1: : 'frames' is missing"),
        ("a: [1\n", "1:4: : not valid YAML"),
        (changed("slide: {unit: m", "more: {unit: m}\n  slide: {unit: m"), "4:9: coordinates.more: mass"),
    ],

)  # fmt: skip
def test_mistakes_are_reported_with_line_and_column(text: str, message: str) -> None:
    assert any(line.startswith(message) for line in mistakes(text)), mistakes(text)


def test_bodies_with_mass_need_a_gravity_and_its_absence_is_reported_with_what_to_write() -> None:
    with pytest.raises(StudyError) as caught:
        read(GOOD.removeprefix("gravity: [0, -9.81, 0]\n").encode(), "leg.yaml")
    (issue,) = caught.value.issues
    assert (issue.file, issue.line) == ("leg.yaml", 1)
    assert "write gravity: [0, -9.81, 0] (m/s^2, in the axes of the ground), or gravity: [0, 0, 0]" in issue.message
    weightless = read(GOOD.replace("[0, -9.81, 0]", "[0, 0, 0]", 1).encode(), "leg.yaml")
    assert weightless.gravity == (0.0, 0.0, 0.0)


def test_several_mistakes_are_reported_at_once() -> None:
    text = changed("mass: 8", "mass: none").replace("on: shank", "on: shnk", 1)
    assert len(mistakes(text)) == 2


def test_the_quadriceps_pulls_with_the_arm_that_its_length_has() -> None:
    """Against fourth-order differences of the lengths; acceptance of the specification 1e-8."""
    outputs, arrays = WireArms().evaluate({}, {}, {"arm", "tension", "scene"})
    assert outputs["consistency"] < 1e-8
    assert 0.03 < outputs["peak_arm"] < 0.06  # measured quadriceps arms are 30 to 60 mm
    assert (arrays["arm"] < 0.0).all()  # extends
    assert np.isfinite(outputs["peak_tension"])


def test_moving_the_insertion_forwards_lengthens_the_arm() -> None:
    model = WireArms()
    near, far = (model.evaluate({"shift_x": x}, {"low": 0.3, "high": 1.5})[0]["mean_arm"] for x in (0.0, 0.02))
    assert far > 1.05 * near


def test_the_spine_shares_flexion_and_bending_and_the_shares_are_complete() -> None:
    model = bundled("lumbo_pelvic")
    rows = TreeRows(model.tree, compiled=False)
    axes = rows.positions([Point("L1", e) for e in np.eye(3)], [[0.5, 0.0]]) - rows.positions(
        [Point("L1")], [[0.5, 0.0]]
    )
    turned = axes[0]
    assert np.arctan2(-turned[0, 1], turned[0, 0]) == pytest.approx(0.5, rel=1e-9)
    outputs, _ = WireArms(mechanism="lumbo_pelvic", wire="erector", coordinate="flexion").evaluate({}, {})
    assert outputs["consistency"] < 1e-8
    assert 0.03 < outputs["mean_arm"] < 0.07


@pytest.mark.parametrize(
    ("settings", "name", "message"),
    [
        ({"wire": "quadricep"}, "wire", "did you mean 'quadriceps'"),
        ({"coordinate": "hip"}, "coordinate", "known: knee"),
        ({"mechanism": "elbow"}, "mechanism", "no bundled mechanism"),
        ({"file": InputFile("my.yaml", b"coordinates: {}\n")}, "file", "my.yaml:1:1: : 'frames' is missing"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], name: str, message: str) -> None:
    with pytest.raises(InvalidSetting, match=message) as raised:
        WireArms(**settings).check()
    assert raised.value.name == name


def test_the_bundled_study_runs_and_its_report_draws_it(tmp_path: Path) -> None:
    result = designopt.load(
        STUDIES / "knee_patella.yaml", overrides=["stages.0.solver.levels=3", "report.tolerances.neighbours=2"]
    ).run(tmp_path / "k.study")
    assert len(result.outcomes.X) == 9
    section = wire_moment_arm(result)
    assert section is not None
    assert len(section.figures) == 3
    assert section.figures[0].plot["layout"]["xaxis"]["title"]["text"] == "knee [deg]"
    assert max(section.figures[0].plot["data"][0]["x"]) > 90.0
