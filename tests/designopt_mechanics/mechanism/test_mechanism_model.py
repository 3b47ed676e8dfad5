"""The model `mechanism` in studies: design inputs, conditions, tables of motion, branches, errors of its settings."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from designopt_mechanics.mechanism.equations import mechanism_system
from designopt_mechanics.mechanism.loops import LoopSolver
from designopt_mechanics.model_file.reading import read
from designopt_mechanics.model_file.wire_arms import WireArms
from designopt_mechanics.tasks.model import MechanismModel

import designopt
from designopt.files import InputFile
from designopt.plugin import Diverged, InvalidDesign, InvalidSetting
from designopt.report.terminal import summary_table
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_file

FILES = Path(__file__).parents[3] / "studies" / "mechanisms"
SLIDER = (FILES / "slider_crank.yaml").read_text(encoding="utf-8")
MOTION = {"angle": "2*pi*time/turn"}


def model(text: str = SLIDER, name: str = "m.yaml", **settings: Any) -> MechanismModel:
    return MechanismModel(file=InputFile(name, text.encode()), **{"task": "inverse_dynamics", **settings})


def mistakes(built: MechanismModel) -> str:
    return "; ".join(str(mistake) for mistake in built.check())


def test_parameters_are_inputs_or_conditions_and_default_to_the_file() -> None:
    built = model(motion=MOTION, conditions=["turn"], set={"load": "loads.work.force.0"}, samples=41)
    assert mistakes(built) == ""
    declared = built.declares()
    assert set(declared.inputs) == {"crank", "rod", "load"}
    assert declared.inputs["crank"].default == 0.06
    assert declared.inputs["load"].unit == "N"
    assert set(declared.conditions) == {"turn"}
    outputs, _ = built.evaluate({}, {}, set())
    assert set(outputs) == set(declared.outputs)
    faster, _ = built.evaluate({"crank": 0.06}, {"turn": 0.2}, set())
    assert faster["angle_speed_mean"] == pytest.approx(2.0 * outputs["angle_speed_mean"], rel=1e-9)
    pushed, _ = built.evaluate({"load": -500.0}, {}, set())
    assert pushed["cut_meet_peak"] > 5.0 * outputs["cut_meet_peak"]
    with pytest.raises(InvalidDesign, match=r"the body of 'crank', mass: -0\.\d+ kg is not a mass"):
        built.evaluate({"crank": -0.06}, {}, set())


def test_a_parameter_that_makes_an_inertia_of_no_body_is_an_invalid_design() -> None:
    text = LIMITED.replace("inertia: 0.09", "inertia: [0.001, 0.09, moment]") + "parameters: {moment: 0.09}\n"
    built = model(text, motion={"th": "0.1", "lift": "0.1"}, samples=3)
    assert built.evaluate({"moment": 0.091}, {}, set())
    with pytest.raises(InvalidDesign, match=r"the body of 'arm', inertia: no body has the principal moments 0\.001, 0"):
        built.evaluate({"moment": 0.2}, {}, set())
    with pytest.raises(InvalidDesign, match=r"the body of 'arm', inertia: has the negative principal moment -0\.09"):
        built.evaluate({"moment": -0.09}, {}, set())


def test_a_study_stays_within_the_ranges_of_the_file_and_drives_by_plain_numbers(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(SLIDER)
    text = """study: wide
model: {use: mechanism, file: m.yaml, task: simulation, drives: {angle: 5}, duration: 0.1 s, samples: 3}
space: {crank: {low: 40 mm, high: 81 mm, unit: mm}}
solver: {use: sobol, samples: 2}
"""
    (tmp_path / "study.yaml").write_text(text)
    with pytest.raises(StudyError, match=r"study.yaml:3:\d+: .*must be at most 0\.08 m, not 0\.081"):
        study_from_file(tmp_path / "study.yaml")
    (tmp_path / "study.yaml").write_text(text.replace("81 mm", "80 mm"))
    assert study_from_file(tmp_path / "study.yaml").model.settings["drives"] == {"angle": 5.0}
    (tmp_path / "m.yaml").write_text(SLIDER.replace("high: 80 mm", "high: 74 mm"))
    (tmp_path / "study.yaml").write_text(
        text.replace("{low: 40 mm, high: 81 mm, unit: mm}", "{low: 4, high: 7.4, unit: cm}")
    )
    assert study_from_file(tmp_path / "study.yaml").space[0].high == 7.4  # 0.07400000000000001 m
    plain, quoted = (
        model(task="simulation", drives={"angle": effort}, duration=0.1, samples=3) for effort in (5.0, "5")
    )
    assert plain.evaluate({}, {}, set())[0] == quoted.evaluate({}, {}, set())[0]


def test_a_parameter_that_changes_nothing_is_no_design_variable(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(SLIDER + "points: {end: {on: rod, at: [0.5*rod, 0, 0]}}\n")
    study = """study: idle
model: {use: mechanism, file: m.yaml, task: kinematics, grid: {over: {angle: {low: 0, high: 6, points: 3}}}}
space: {turn: {low: 0.2, high: 0.3, unit: s}, rod: {low: 200, high: 300, unit: mm}}
solver: {use: sobol, samples: 2}
"""
    (tmp_path / "study.yaml").write_text(study)
    with pytest.raises(
        StudyError, match=r"study.yaml:3:\d+: .*formula of m.yaml or of .* it would change nothing"
    ) as raised:
        study_from_file(tmp_path / "study.yaml")
    assert len(raised.value.issues) == 1
    (tmp_path / "study.yaml").write_text(study.replace("turn: {low: 0.2, high: 0.3, unit: s}", "turn: 0.3 s"))
    assert study_from_file(tmp_path / "study.yaml")
    motion = study.replace("kinematics", "inverse_dynamics").replace("grid", "motion")
    (tmp_path / "study.yaml").write_text(
        motion.replace("over: {angle: {low: 0, high: 6, points: 3}}", "angle: 2*time/turn")
    )
    assert study_from_file(tmp_path / "study.yaml")
    every = read((FILES.parents[1] / "tests/designopt_mechanics/mechanism/every_entry.yaml").read_bytes(), "every.yaml")
    assert every.unused_parameters == ()


def test_a_table_of_motion_gives_the_forces_of_its_formula() -> None:
    time = np.linspace(0.0, 0.4, 81)
    rows = "\n".join(f"{t:.6f},{np.degrees(0.5 + np.sin(6.0 * t)):.9f}" for t in time)
    table = InputFile("m.csv", f"time,angle [deg]\n{rows}\n".encode())
    settings = {"duration": 0.4, "samples": 21, "outputs": ["force_rod_peak", "effort_angle_rms"]}
    of_table, _ = model(motion_file=table, **settings).evaluate({}, {}, set())
    of_formula, _ = model(motion={"angle": "0.5 + sin(6*time)"}, **settings).evaluate({}, {}, set())
    assert of_table == pytest.approx(of_formula, rel=1e-4)


def recorded(cells: str, columns: str = "angle", header: str = "inDegrees=yes\n") -> bytes:
    """An STO file with one row per line of cells."""
    return f"swing\nversion=1\n{header}endheader\ntime\t{columns}\n{cells}".replace(",", "\t").encode()


@pytest.mark.parametrize(
    ("name", "columns", "header"),
    [
        ("m.mot", "angle,pelvis_tx", "inDegrees=yes\n"),
        ("m.STO", "/jointset/hinge/angle/value,/jointset/hinge/angle/speed", "inDegrees=yes\n"),
        ("m.sto", "angle,swing", "inDegrees=no\n"),
        ("m.csv", "angle,swing", "comment"),
    ],
)
def test_a_recording_moves_the_independent_coordinates_in_the_unit_of_its_header(
    name: str, columns: str, header: str
) -> None:
    time = np.linspace(0.0, 0.4, 81)
    scale = 1.0 if "no" in header else 180.0 / np.pi
    cells = "\n".join(f"{t:.6f},{scale * (0.5 + np.sin(6.0 * t)):.9f},0" for t in time)
    content = recorded(cells, columns, header)
    if header == "comment":
        rows = [f"{1e3 * t:.3f}{row[8:]}" for t, row in zip(time, cells.split(), strict=True)]
        content = "\n".join(["# inDegrees=yes", f"time_ms,{columns}", *rows]).encode()
    settings = {"duration": 0.4, "samples": 21, "outputs": ["force_rod_peak", "effort_angle_rms"]}
    built = model(motion_file=InputFile(name, content), **settings)
    assert mistakes(built) == ""
    assert [note for note in built.remarks({}) if f"{name}: columns that move nothing: {columns.split(',')[1]}" in note]
    of_formula, _ = model(motion={"angle": "0.5 + sin(6*time)"}, **settings).evaluate({}, {}, set())
    assert built.evaluate({}, {}, set())[0] == pytest.approx(of_formula, rel=1e-4)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (recorded("0,1\n1,2\n2,nan\n3,4\n"), r"m\.sto, row 3 \(2 s\): column 'angle' has no number; fill the gap"),
        (recorded("0,1\n1,2\n2\n3,4\n"), r"m\.sto, line 8: 1 values, but 2 columns have a label"),
        (recorded("0,1\n2,2\n1,3\n3,4\n"), r"m\.sto, line 8: the time 1 s is not later than 2 s in line 7"),
        (recorded("0,1\n1,2\n2,2\n30,4\n"), r"m\.sto: the times are too unevenly spaced .*row 4 \(30 s\)"),
        (recorded("0,1\n1,2\n2,2\n"), r"m\.sto: a motion needs at least 4 rows, not 3"),
        (recorded("0,1\n1,2\n2,2\n3,2\n", "angel"), r"m\.sto: column 'angel': .*did you mean 'angle'"),
        (recorded("0,1\n1,2\n2,2\n3,2\n", "pelvis"), r"m\.sto: no column is a coordinate; there are angle"),
        (recorded("0,1\n", header="inDegrees=maybe\n"), r"m\.sto, line 3: inDegrees is 'maybe'"),
        (b"0 1 2", r"m\.sto: there is no line 'endheader'"),
    ],
)
def test_a_recording_that_is_no_motion_is_an_error_with_its_place(table: bytes, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert mistakes(model(motion_file=InputFile("m.sto", table))) == ""


def test_an_assumed_unit_of_a_recording_is_a_remark() -> None:
    built = model(motion_file=InputFile("m.sto", recorded("0,0\n1,1\n2,2\n3,9\n", header="")))
    assert [note[:40] for note in built.remarks({})] == [
        "m.sto: the header does not say inDegrees", "m.sto: column 'angle' reaches 9 in a tab"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("time,angel\n0,1\n1,2\n2,3\n3,4\n", r"m\.csv:1:6: no coordinate 'angel'; did you mean 'angle'"),
        ("time,angle\n0,1\n1,\n2,3\n3,4\n", r"m\.csv:3:1: no value for 'angle'"),
        ("time,angle\n0,1\n1,nan\n2,3\n3,4\n", r"m\.csv:3:3: "),
        ("time,angle [kg]\n0,1\n1,2\n2,3\n3,4\n", "kg"),
        ("time,angle\n0,1\n2,2\n1,3\n3,4\n", r"time must increase \(row 3\)"),
        ("time,angle\n0,1\n1,2\n2,3\n", "a motion needs at least 4 rows, not 3"),
        ("time,angle\n0,1\n1,2\n2,3\n30,4\n", r"too unevenly spaced .*row 4 \(30 s\)"),
        ("angle\n0\n1\n2\n3\n", "needs a column 'time'"),
    ],
)
def test_a_table_that_is_wrong_is_an_error_with_its_place(table: str, message: str) -> None:
    built = model(motion_file=InputFile("m.csv", table.encode()))
    with pytest.raises(AssertionError, match=message):
        assert mistakes(built) == ""


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_noise_of_a_table_that_inverse_dynamics_differentiates_is_a_remark(noise: float) -> None:
    time = np.linspace(0.0, 1.0, 101)
    angles = 30.0 * np.sin(6.0 * time) + noise * np.random.default_rng(0).standard_normal(101)
    rows = "".join(f"{t:.3f},{angle:.6f}\n" for t, angle in zip(time, angles, strict=True))
    notes = model(motion_file=InputFile("m.csv", f"time,angle [deg]\n{rows}".encode())).remarks({})
    named = [note for note in notes if note.startswith("m.csv: angle has noise of about 0.") and "lowpass" in note]
    assert len(named) == bool(noise)


@pytest.mark.parametrize("header", ["time,angle [deg]", "# inDegrees=yes\ntime,angle"], ids=["plain", "recording"])
@pytest.mark.parametrize("dropped", [False, True])
def test_a_dropped_row_of_a_motion_is_a_remark(header: str, dropped: bool) -> None:
    time = np.delete(np.linspace(0.0, 1.0, 101), [40] if dropped else [])
    rows = "".join(f"{t:.3f},{30.0 * np.sin(6.0 * t):.6f}\n" for t in time)
    notes = model(motion_file=InputFile("m.csv", f"{header}\n{rows}".encode())).remarks({})
    beginning = "m.csv: the samples are 0.01 s apart, and a sample seems to be missing, the first after 0.39 s: check"
    assert len([note for note in notes if note.startswith(beginning)]) == dropped


@pytest.mark.parametrize(("unit", "doubts"), [("s", 0), ("ms", 1)])
def test_seconds_under_a_head_in_milliseconds_are_a_remark(unit: str, doubts: int) -> None:
    rows = "".join(f"{0.01 * k},{0.02 * k}\n" for k in range(20))
    built = model(motion_file=InputFile("m.csv", f"time [{unit}],angle\n{rows}".encode()))
    assert mistakes(built) == ""
    assert len([n for n in built.remarks({}) if n.startswith("m.csv: the rows are 1e-05 s apart")]) == doubts


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"motion": {"angle": "time +"}}, "motion.angle: not a formula"),
        ({"motion": {"swing": "time", "angle": "time"}}, "moves swing, angle; the mechanism has 1 degrees of freedom"),
        ({"motion": MOTION, "outputs": ["force_rd_peak"]}, "no output 'force_rd_peak'; did you mean 'force_rod_peak'?"),
        ({"motion": MOTION, "targets": {"pen": [[0.1, 0.1]]}}, "targets.pen: the mechanism has no point 'pen'"),
        ({"motion": MOTION, "conditions": ["tun"]}, "no parameter 'tun'; did you mean 'turn'"),
        ({"motion": MOTION, "set": {"x": "frames.rod.bdy"}}, "'frames.rod.bdy' is not the path of a number"),
        ({"motion": MOTION, "branch": "crossed"}, "no branch 'crossed'"),
        ({"task": "simulation", "drives": {"angle": "2*anlge"}}, "no name 'anlge'; did you mean 'angle'"),
        ({"task": "kinematics"}, "grid: needs over"),
    ],
)
def test_settings_that_do_not_fit_are_errors_with_the_way_out(settings: dict[str, Any], message: str) -> None:
    assert message in mistakes(model(**settings))


def test_a_mistake_of_the_whole_file_has_no_empty_name() -> None:
    assert "m.yaml:2:1: bodies with mass need a 'gravity'" in mistakes(
        model(SLIDER.replace("gravity: [0, -9.81, 0]\n", ""))
    )


def test_forces_by_least_squares_are_marked_and_refused_otherwise() -> None:
    """The four-bar with a second rocker on the same pins, and a pin between the two: one too many."""
    text = (FILES / "four_bar.yaml").read_text()
    meet = text[text.index("meet:") : text.index("points:")]
    pins = """meet:
  a: [{on: coupler, at: [coupler, 0, 0]}, {on: rocker, at: [rocker, 0, 0]}]
  b: [{on: coupler, at: [coupler, 0, 0]}, {on: twin, at: [rocker, 0, 0]}]
  c: [{on: twin, at: [0.05, 0, 0]}, {on: rocker, at: [0.05, 0, 0]}]
"""
    twin = """frames:
  twin: {place: [base, 0, 0], motions: [rotate: {axis: [0, 0, 1], by: twin}], body: {mass: 0.1, inertia: 1e-4}}
"""
    text = text.replace(meet, pins).replace("frames:\n", twin, 1)
    text = text.replace("frames:\n  twin", "  twin: {unit: rad, reference: 100 deg}\nframes:\n  twin", 1)
    motion = {"angle": "pi/2 + 0.5*time"}
    with pytest.raises(Diverged, match=r"are redundant: the forces in the joints of") as raised:
        model(text, motion=motion, samples=5).evaluate({}, {}, set())
    assert raised.value.reason == "redundant"
    for task, settings in (("inverse_dynamics", {"motion": motion}), ("equilibrium", {}), ("simulation", {})):
        assert "redundant" in mistakes(model(text, task=task, **settings))  # before a run, too
    built = model(text, motion=motion, samples=5, redundant="least_squares")
    assert mistakes(built) == ""
    assert built.declares().outputs["least_squares"].notable
    assert built.evaluate({}, {}, set())[0]["least_squares"] == 1.0
    assert built.gradient({"crank": 0.048}, {}) == {}


def test_efforts_on_components_of_a_quaternion_are_moments() -> None:
    """They have no unit, so that the work of an effort by a displacement is that of a moment."""
    text = """gravity: [0, 0, 0]
coordinates: {qw: {unit: "1", reference: 1}, qx: {unit: "1"}, qy: {unit: "1"}, qz: {unit: "1"}, x: {unit: m}}
frames:
  hand: {motions: [slide: {axis: [1, 0, 0], by: x}, ball: [qw, qx, qy, qz]], body: {mass: 1, inertia: [2, 2, 1]}}
drives: {qx: 2 N m, x: 3 N}
"""
    simulated = model(text, task="simulation").declares().outputs
    moved = model(text, motion=dict.fromkeys(("qw", "qx", "qy", "qz", "x"), "0.1*time")).declares().outputs
    system = mechanism_system(LoopSolver(model(text).mechanism), ("qw", "x"))
    assert [simulated[f"effort_{n}_peak"].unit for n in ("qx", "x")] == ["N m", "N"]
    assert [moved[f"effort_{n}_peak"].unit for n in ("qw", "x")] == ["N m", "N"]
    assert [control.unit for control in system.controls] == ["N m", "N"]


def test_arms_of_wires_take_files_with_parameters_and_refuse_loops() -> None:
    text = """gravity: [0, -9.81, 0]
parameters: {reach: 0.05}
coordinates: {q: {unit: rad, range: [0, 1]}}
frames: {arm: {motions: [rotate: {axis: [0, 0, 1], by: q}], body: {mass: 1, centre: [2*reach, 0, 0], inertia: 0.01}}}
wires: {w: {points: [{on: ground, at: [0, 0.3, 0]}, {on: arm, at: [reach, 0, 0]}]}}
"""
    arms = WireArms(file=InputFile("arm.yaml", text.encode()), wire="w", coordinate="q")
    arms.check()
    at_rest = 0.3 * 0.05 / np.hypot(0.3, 0.05)
    assert arms.evaluate({}, {}, {"arm"})[1]["arm"][0] == pytest.approx(at_rest)
    with pytest.raises(InvalidSetting, match="has loops, which wire_arms does not close; use the model mechanism"):
        WireArms(file=InputFile("m.yaml", SLIDER.encode()), wire="w", coordinate="angle").check()


def two_branches() -> str:
    return (FILES / "four_bar.yaml").read_text() + "branches: {crossed: {swing: 200 deg, sway: -100 deg}}\n"


def test_a_branch_is_a_condition_of_scenarios() -> None:
    built = model(two_branches(), motion={"angle": "pi/2 + 0.2*time"}, samples=11)
    assert mistakes(built) == ""
    assert "branch" in built.declares().conditions
    upright, _ = built.evaluate({}, {}, set())
    crossed, _ = built.evaluate({}, {"branch": "crossed"}, set())
    assert np.sin(crossed["sway_mean"]) * np.sin(upright["sway_mean"]) < 0.0


@pytest.mark.parametrize(
    ("task", "settings", "name"),
    [
        ("kinematics", {"grid": {"over": {"angle": {"low": 1.5, "high": 1.8, "points": 3}}}}, "postures"),
        ("trajectory", {"program": {"start": {"angle": 1.5}, "end": {"angle": 1.8}, "intervals": 8}}, "sway"),
    ],
)
def test_a_branch_holds_in_every_posture(task: str, settings: dict[str, Any], name: str) -> None:
    built = model(two_branches(), task=task, samples=11, **settings)
    above, below = (built.evaluate({}, scenario, {name})[1][name] for scenario in ({}, {"branch": "crossed"}))
    assert np.abs(above - below).max() > 0.5


def test_a_motion_that_cannot_close_or_stops_at_a_dead_centre_is_a_status_with_the_reason() -> None:
    with pytest.raises(Diverged, match=r"cannot close from .* the largest gap is") as raised:
        model((FILES / "four_bar.yaml").read_text(), motion={"angle": "2*pi*time"}).evaluate(
            {"crank": 0.069, "base": 0.19}, {}, set()
        )
    assert raised.value.reason == "cannot_close"
    with pytest.raises(Diverged, match=r"cannot close from|a dead centre at"):
        model(motion={"stroke": "0.24 + 0.02*time*10"}, duration=0.2).evaluate({}, {}, set())


@pytest.mark.parametrize(
    ("task", "settings", "message"),
    [
        ("simulation", {"motion": MOTION}, "motion: has no effect in the task simulation: it is for inverse_dynamics"),
        ("kinematics", {"drives": {"turn": "1"}}, "drives: has no effect .* it is for simulation and equilibrium"),
    ],
)
def test_settings_of_another_task_are_mistakes(task: str, settings: dict[str, Any], message: str) -> None:
    assert re.search(message, mistakes(model(task=task, **settings)))


LIMITED = """gravity: [0, -9.81, 0]
coordinates:
  th: {unit: rad, range: [-90 deg, 80 deg], largest_effort: 9 N m, largest_speed: 4 rad/s}
  lift: {unit: m, range: [0, 0.4]}
frames:
  arm: {motions: [rotate: {axis: [0, 0, 1], by: th}], body: {mass: 3 kg, centre: [0.3, 0, 0], inertia: 0.09}}
  hand: {parent: arm, motions: [slide: {axis: [1, 0, 0], by: lift}], body: {mass: 0.2 kg}}
"""


@pytest.mark.parametrize(
    ("motion", "notes"),
    [
        ({"th": "0.2 + 0.5*sin(2*pi*time)", "lift": "0.1"}, []),
        ({"th": "-90*pi/180*1.0001", "lift": "0.4"}, []),
        (
            {"th": "10 + 60*sin(2*pi*time)", "lift": "0.1"},
            [
                "motion: th goes from -50 to 70 rad, beyond its range of -1.571 to 1.396 rad, and has up to 377 rad/s,"
                " beyond its largest speed of 4, and turns by up to 108 deg from one of 201 samples to"
                " the next; are its values in degrees? They are in rad: multiply them by pi/180"
            ],
        ),
        (
            {"th": "0.2 + sin(2*pi*time)", "lift": "200 + 100*sin(2*pi*time)"},
            [
                "motion: th has up to 6.283 rad/s, beyond its largest speed of 4",
                "motion: lift goes from 100 to 300 m, beyond its range of 0 to 0.4 m; are its values in mm?"
                " They are in m: divide them by 1000",
            ],
        ),
        (
            {"th": "0.1", "lift": "-0.3"},
            [
                "motion: lift goes from -0.3 to -0.3 m, beyond its range of 0 to 0.4 m;"
                " with the opposite sign it keeps its limits"
            ],
        ),
    ],
)
def test_a_motion_beyond_limits_of_the_file_is_a_remark_with_the_probable_cause(
    motion: dict[str, str], notes: list[str]
) -> None:
    built = model(LIMITED, motion=motion)
    assert mistakes(built) == ""
    assert built.remarks({}) == notes


@pytest.mark.parametrize(
    ("settings", "notes"),
    [
        ({"task": "simulation", "initial": {"th": -1.5, "lift": 0.1, "th_speed": 3.0}}, []),
        (
            {"task": "simulation", "initial": {"th": -60.0, "th_speed": 90.0}},
            [
                "initial: th = -60 rad is outside its range of -1.571 to 1.396 rad; is it in degrees? Write -60 deg",
                "initial: th_speed = 90 rad/s is outside its range of -4 to 4 rad/s; is it in deg/s? Multiply it by"
                " pi/180",
            ],
        ),
        (
            {"task": "equilibrium", "initial": {"th": 1.5, "lift": 150.0}},
            [
                "initial: lift = 150 m is outside its range of 0 to 0.4 m; is it in mm? Divide it by 1000",
                "initial: th = 1.5 rad is outside its range of -1.571 to 1.396 rad",
            ],
        ),
        (
            {
                "task": "kinematics",
                "grid": {"over": {"th": {"low": -90.0, "high": 1.5}, "lift": {"low": 0.0, "high": 0.5}}},
            },
            [
                "grid.over.low: th = -90 rad is outside its range of -1.571 to 1.396 rad; is it in degrees?"
                " Write -90 deg"
            ],
        ),
    ],
    ids=["within", "degrees", "mm", "a grid in degrees"],
)
def test_an_initial_state_or_a_grid_beyond_limits_of_the_file_is_a_remark(
    settings: dict[str, Any], notes: list[str]
) -> None:
    built = model(LIMITED, **settings)
    assert mistakes(built) == ""
    assert sorted(built.remarks({})) == notes


def test_more_than_a_turn_of_a_coordinate_without_a_range_is_a_remark() -> None:
    built = model(LIMITED.replace("range: [-90 deg, 80 deg], ", ""), task="simulation", initial={"th": 90.0})
    assert built.remarks({}) == ["initial: th = 90 rad is more than a turn; is it in degrees? Write 90 deg"]


@pytest.mark.parametrize(
    ("motion", "settings", "turn"),
    [
        ("pi/2 + 2*pi*time/0.5", {"duration": 0.5}, ""),
        ("pi/2 + 2*pi*time/0.5", {"duration": 100.0}, "up to 360 deg from one of 201"),  # 100 ms
        ("90 + 360*time/0.5", {"duration": 0.5}, "up to 103.1 deg from one of 201"),  # degrees
        ("90 + 360*time/0.5", {"duration": 0.5, "samples": 1001}, ""),
    ],
)
def test_a_turn_that_the_samples_do_not_resolve_is_a_remark(motion: str, settings: dict[str, Any], turn: str) -> None:
    notes = model(motion={"angle": motion}, **settings).remarks({})
    assert [turn in note for note in notes] == [True] * bool(turn)


def test_coordinates_that_keep_each_others_ranges_may_be_exchanged() -> None:
    text = LIMITED.replace(
        "lift: {unit: m, range: [0, 0.4]}", "lift: {unit: rad, range: [100 deg, 170 deg], reference: 120 deg}"
    )
    text = text.replace("slide: {axis: [1, 0, 0]", "rotate: {axis: [0, 0, 1]").replace("0.2 kg", "0.2 kg, inertia: 0.1")
    notes = model(text, motion={"th": "2 + 0.5*sin(time)", "lift": "0.5*sin(time)"}).remarks({})
    assert [note.split("; ")[1] for note in notes] == ["are th and lift exchanged?", "are lift and th exchanged?"]


def test_results_beyond_limits_of_the_file_are_warned_of_after_a_run(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(LIMITED)
    settings = "use: mechanism, file: m.yaml, task: inverse_dynamics, samples: 21"
    (tmp_path / "study.yaml").write_text(
        f"study: held\nmodel: {{{settings}, motion: {{th: 2*sin(time), lift: 0.1}}}}\nsolver: {{use: evaluate}}\n"
    )
    result = designopt.load(tmp_path / "study.yaml").run(tmp_path / "held.study")
    warnings = [line for line in summary_table(result).splitlines() if line.startswith("warning")]
    assert [warning.split(" (")[0] for warning in warnings] == [
        "warning: th_max is 96.43 deg, beyond -90 to 80 deg",
        "warning: effort_th_peak is 9.025 N m, beyond 0 to 9 N m",
    ]
    few = model(LIMITED, motion={"th": "time", "lift": "0.1"}, outputs=["effort_th_rms", "th_peak", "th_rms"])
    usual = {name: output.usual for name, output in few.declares().outputs.items()}
    assert usual["effort_th_rms"] == pytest.approx((0.0, 9.0), rel=1e-5)
    assert usual["th_peak"] == pytest.approx((0.0, np.pi / 2.0), rel=1e-5)
    assert usual["th_rms"] is None


ARM = """<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="2.4"/>
    <inertia ixx="0.002" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="fore"><inertial><origin xyz="0.25 0 0"/><mass value="1.5"/>
    <inertia ixx="0.001" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 -1 0"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="fore"/><origin xyz="0.4 0 0"/>
    <axis xyz="0 -1 0"/></joint>
</robot>"""


@pytest.mark.parametrize(
    ("text", "stated", "wrong", "note"),
    [
        (ARM, "", "", None),
        (ARM, 'xx="0.002"', 'xx="0"', None),  # a rod without thickness
        (
            ARM,
            '"2.4"',
            '"2400"',
            "body 'upper': no material is so dense that 2400 kg have an inertia of only 0.03 kg m^2; its mass is 1600"
            " times that of all other bodies together: is it in g?",
        ),
        (
            ARM,
            'yy="0.03" izz="0.03"',
            'yy="30000" izz="30000"',
            "body 'upper': 2.4 kg and 30000 kg m^2 are a radius of gyration of 112 m in a mechanism of 0.65 m; is its"
            " inertia in kg mm^2?",
        ),
        (LIMITED, "", "", None),
        (
            LIMITED,
            "inertia: 0.09",
            "inertia: 900",  # kg cm^2
            "body 'arm': 3 kg and 900 kg m^2 are a radius of gyration of 17.3 m in a mechanism of 0.7 m; is its"
            " inertia in kg cm^2?",
        ),
        (
            LIMITED,
            "inertia: 0.09",
            "inertia: 9e-6",  # t m^2, or with a mass in g: a disc of 1.3 cm^2
            "body 'arm': no material is so dense that 3 kg have an inertia of only 9e-06 kg m^2; check their units",
        ),
        (LIMITED, "-9.81", "-9810", "gravity is 9810 m/s^2; is it in mm/s^2?"),
        (LIMITED, "-9.81", "-274 ", "gravity is 274 m/s^2; check its unit"),
        (
            LIMITED,
            "mass: 0.2 kg",
            "mass: 2000 kg",
            "body 'hand': its mass is 667 times that of all other bodies together: is it in g?",
        ),
    ],
)
def test_an_improbable_gravity_mass_or_inertia_is_a_remark(
    text: str, stated: str, wrong: str, note: str | None
) -> None:
    assert stated in text
    motion = {"shoulder": "0", "elbow": "0"} if text is ARM else {"th": "0", "lift": "0"}
    built = model(text.replace(stated, wrong, 1), motion=motion)
    assert built.remarks({}) == ([] if note is None else [f"m.yaml: {note}"])


@pytest.mark.parametrize(
    ("spring", "note"),
    [
        ("points: [{on: ground, at: [0, 0.2, 0]}, {on: arm, at: [0.2, 0, 0]}], stiffness: 100, rest: 1", None),
        (
            "points: [{on: ground, at: [0, 0.2, 0]}, {on: arm, at: [0.2, 0, 0]}], stiffness: 100, rest: 150",
            "spring 'balance': its rest length is 150 m in a mechanism of 0.7 m; is it in mm?",
        ),
        (
            "points: [{on: ground, at: [0, 20, 0]}, {on: arm, at: [0.2, 0, 0]}], stiffness: 100, rest: 0",
            "'balance': its point on 'ground' is at 20 m in a mechanism of 0.7 m; is it in cm?",
        ),
    ],
)
def test_a_length_of_a_spring_far_beyond_the_mechanism_is_a_remark(spring: str, note: str | None) -> None:
    built = model(f"{LIMITED}springs: {{balance: {{{spring}}}}}\n", motion={"th": "0", "lift": "0"})
    assert built.remarks({}) == ([] if note is None else [f"m.yaml: {note}"])
