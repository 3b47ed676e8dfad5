"""Mechanism files: parameters, shapes, dyads, followed loops, branches; mistakes have a line and a column."""

from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics import Mechanism, read_mechanism, solve
from designopt_mechanics.mechanism.loops import CannotClose, LoopSolver
from designopt_mechanics.model_file.reading import read

from designopt.plugin import Diverged
from designopt.study.language.errors import StudyError

HERE = Path(__file__).parent
EVERY = (HERE / "every_entry.yaml").read_text(encoding="utf-8")
BARE = "gravity: [0, 0, 0]\ncoordinates: {q: {unit: rad, reference: 0.4}}\n"


def masses(mechanism: Mechanism, **numbers: float) -> dict[str, tuple[float, float]]:
    """Mass and moment about z of every body."""
    results = {}
    for frame in mechanism.tree.frames:
        if frame.body is not None:
            inertia = ca.SX(ca.vertcat(*np.broadcast_to(np.array(frame.body.inertia, dtype=object), 3).tolist()))
            f = ca.Function("body", [mechanism.p], [frame.body.mass, inertia[2]])
            results[frame.name] = tuple(float(v) for v in f(mechanism.column(numbers)))
    return results


def test_bodies_of_shapes_have_the_masses_of_their_volume_and_grow_with_their_parameters() -> None:
    mechanism = read_mechanism(HERE / "every_entry.yaml")
    before, after = masses(mechanism), masses(mechanism, crank=0.08, rod=0.3, mass=0.7)
    assert before["crank"] == pytest.approx(
        (7850 * np.pi * 1e-4 * 0.06, 7850 * np.pi * 1e-4 * 0.06 * (0.06**2 / 12 + 25e-6))
    )
    tube = 7850 * np.pi / 4 * (0.016**2 - 0.012**2)
    assert before["rod"] == pytest.approx((tube * 0.2, tube * 0.2 * (0.04 / 12 + (0.016**2 + 0.012**2) / 16)))
    assert before["wing"] == pytest.approx((2700 * 1e-5, 2700 * 1e-5 * (0.1**2 + 0.05**2) / 12))
    assert after["rod"][0] == pytest.approx(tube * 0.3)
    assert (before["piston"][0], after["piston"][0]) == pytest.approx((1.0, 1.4))
    assert after["wing"] == before["wing"]


def test_a_number_by_its_path_is_a_parameter_like_those_of_the_file() -> None:
    text = EVERY.encode()
    paths = {
        "spring": "springs.return.stiffness",
        "centre": "frames.piston.body.centre.0",
        "base": "wires.cord.points.0.at.1",
    }
    mechanism = read(text, "every.yaml", paths)
    assert {n: mechanism.values[n] for n in paths} == {"spring": 200.0, "centre": 0.005, "base": 0.1}
    changed = solve(mechanism, "simulation", {"spring": 400.0}, duration=0.02, samples=3).outputs
    stiffer = read(EVERY.replace("stiffness: 200 N/m", "stiffness: 400 N/m").encode(), "every.yaml")
    expected = solve(stiffer, "simulation", duration=0.02, samples=3).outputs
    assert changed["stroke_speed_peak"] == pytest.approx(expected["stroke_speed_peak"], rel=1e-9)
    with pytest.raises(ValueError, match=r"'frames.piston.parent' is not the path of a number that can vary"):
        read(text, "every.yaml", {"x": "frames.piston.parent"})


def test_a_dyad_is_a_function_of_the_file_that_closes_like_points_that_meet() -> None:
    """A four-bar by closed form and by its loop: the same angles, and the gap where the bars do not reach."""
    dyad = f"""{BARE}
dyads: {{tip: {{from: ["0.3*cos(q)", "0.3*sin(q)"], to: [0.9, 0], lengths: [0.8, 0.6], side: left}}}}
frames:
  crank: {{motions: [rotate: {{axis: [0, 0, 1], by: q}}], body: {{mass: 1, inertia: 0.1}}}}
  coupler: {{place: [0, 0, 0], motions: [rotate: {{axis: [0, 0, 1], by: tip_first}}]}}
  rocker: {{place: [0.9, 0, 0], motions: [rotate: {{axis: [0, 0, 1], by: tip_second}}]}}
points: {{tip: {{on: rocker, at: [0.6, 0, 0]}}}}
couplers: true
"""
    result = solve(read(dyad.encode(), "dyad.yaml"), "inverse_dynamics", motion={"q": "0.4 + time"}, samples=11)
    x, y = (result.arrays[f"path_tip_{axis}"] for axis in "xy")
    crank = result.arrays["q"]
    assert np.hypot(x - 0.3 * np.cos(crank), y - 0.3 * np.sin(crank)) == pytest.approx(0.8, abs=1e-12)
    short = dyad.replace("[0.8, 0.6]", "[0.4, 0.3]")
    with pytest.raises(Diverged, match=r"cannot close from .* the largest gap is 0.199") as raised:
        solve(read(short.encode(), "dyad.yaml"), "inverse_dynamics", motion={"q": "0.4 + time"}, samples=11)
    assert raised.value.reason == "cannot_close"


def test_formulas_use_unknowns_of_loops_that_are_followed_over_any_range() -> None:
    loop = f"""{BARE}
functions: {{angle: "2*lag - q"}}
loops: {{cam: {{unknowns: {{lag: 0.3}}, equations: ["lag + 0.3*sin(lag) - q"]}}}}
frames: {{wheel: {{motions: [rotate: {{axis: [0, 0, 1], by: angle}}], body: {{mass: 1, inertia: 0.1}}}}}}
points: {{rim: {{on: wheel, at: [1, 0, 0]}}}}
"""
    mechanism = read(loop.encode(), "loop.yaml")
    assert mechanism.tree.names == ("q", "lag")
    result = solve(mechanism, "inverse_dynamics", motion={"q": "0.4 + 40*time"}, samples=101)
    lag, q = result.arrays["lag"], result.arrays["q"]
    assert lag + 0.3 * np.sin(lag) == pytest.approx(q, abs=1e-12)
    assert result.arrays["path_rim_x"] == pytest.approx(np.cos(2 * lag - q), abs=1e-12)


def test_a_branch_selects_the_other_assembly() -> None:
    mechanism = read_mechanism(HERE.parents[2] / "studies" / "mechanisms" / "four_bar.yaml")
    text = (HERE.parents[2] / "studies" / "mechanisms" / "four_bar.yaml").read_text()
    named = read((text + "branches: {crossed: {swing: 200 deg, sway: -100 deg}}\n").encode(), "four_bar.yaml")
    loops = LoopSolver(named)
    first, crossed = loops.start(named.column()), loops.start(named.column(), "crossed")
    assert first == pytest.approx(LoopSolver(mechanism).start(mechanism.column()))
    assert np.sin(crossed[2]) * np.sin(first[2]) < 0.0
    with pytest.raises(ValueError, match="no branch 'cross'"):
        loops.start(named.column(), "cross")


def test_derivatives_by_all_parameters_are_those_of_differences() -> None:
    from designopt_mechanics.tasks.inverse_dynamics import InverseDynamicsTask
    from designopt_mechanics.tasks.task import TaskSettings

    mechanism = read(EVERY.encode(), "every.yaml", {"inertia": "frames.piston.body.centre.1"})
    motion = {"angle": "0.5 + 3*time + crank*time", "flap": "0.3*sin(4*time)"}
    task = InverseDynamicsTask(TaskSettings(mechanism, LoopSolver(mechanism), motion=motion, duration=0.4, samples=9))
    assert list(task.check()) == []
    values = mechanism.values
    slopes = task.gradient(values, {}, list(values))
    for name, value in values.items():
        h = 1e-6 * max(abs(value), 0.1)
        ahead, behind = (task.evaluate({**values, name: value + s * h}, {}, set())[0] for s in (1.0, -1.0))
        for output in (o for o in slopes if o.endswith(("_rms", "_mean")) and not o.startswith("moment_")):
            difference = (ahead[output] - behind[output]) / (2.0 * h)
            assert slopes[output][name] == pytest.approx(difference, rel=1e-5, abs=1e-6 * max(1.0, abs(ahead[output])))


@pytest.mark.parametrize(
    ("old", "new", "at", "message"),
    [
        ("rod: 200 mm", "rod: 200 kg", "tube:", "kg"),
        ("at: [rod, 0, 0]}, {on: piston", "at: [road, 0, 0]}, {on: piston", "", "'road' is not a number"),
        ("place: [crank, 0, 0]", "place: [mass, 0, 0]", "", "parameter 'mass'"),
        ("value: 60 mm, low", "value: 60, low", "", "has no unit, but low has: write 60 mm or the unit meant"),
        ("value: 60 mm, low", "value: 90 mm, low", "", "0.09 is not within 0.04 to 0.08"),
        ("low: 40 mm, high: 80 mm", "low: 90 mm, high: 30 mm", "", "low: 0.09 exceeds high: 0.03"),
        ("density: 7850 kg/m^3", "density: -1", "", "-1 kg/m^3 is not a density"),
        ("outer: 16 mm, inner: 12 mm", "outer: 10 mm, inner: 12 mm", "", "not less than the outer"),
        (
            "{on: rod, at: [rod, 0, 0]}, {on: piston",
            "{on: rod, at: [rod, 0, 0]}, {on: rod",
            "",
            "both points are on 'rod'",
        ),
        ("independent: [angle, flap]", "independent: [angle]", "", "name 2 independent coordinates"),
        ("lengths: [0.2, 2*rod]", "lengths: [0.2]", "", "must have 2 members"),
        ("swing: -150 deg", "swng: -150 deg", "", "no coordinate 'swng'"),
        ("0.5*flap + 0.1*lag", "0.5*flap + half", "", "'half' uses itself"),
        ("-2*stroke_speed", "-2*stroke_sped", "", "did you mean 'stroke_speed'?"),
        ("gravity: [0, -9.81, 0]", "title2: x", "title2", "no entry 'title2'"),
        (
            "at: [0, 0, 0]}]\nindependent",
            "at: [0, 300 mm, 0]}]\nindependent",
            "meet:",
            "the loops close in no posture: from the reference (angle",
        ),
        ("density: 7850 kg/m^3", "density: 7.85 g/mm^3", "", "7.85e+06 kg/m^3 is denser than any material"),
        ("density: 7850 kg/m^3", "density: 7.85", "", "write 7.85 g/cm^3, or 7.85 kg/m^3 if it is meant"),
        ("reference: 30 deg", "reference: 30", "", "write 30 deg, or 30 rad if it is meant"),
        ("swing: -150 deg", "swing: -150", "", "-150 without a unit is in rad, more than a turn"),
        ("swing: -150 deg", 'swing: "-150"', "", "-150 without a unit is in rad, more than a turn"),
    ],
)
def test_mistakes_are_reported_where_they_are(old: str, new: str, at: str, message: str) -> None:
    assert old in EVERY
    text = EVERY.replace(old, new, 1)
    line = text[: text.index(at or new)].count("\n") + 1
    with pytest.raises(StudyError) as raised:
        read(text.encode(), "bad.yaml")
    assert any(message in issue.message for issue in raised.value.issues), raised.value
    assert line in [issue.line for issue in raised.value.issues], raised.value


@pytest.mark.parametrize("value", ["{value: 12, unit: rad, low: 0, high: 20}", "12 rad"])
def test_an_angle_beyond_a_turn_whose_unit_is_stated_is_read(value: str) -> None:
    arm = "{motions: [rotate: {axis: [0, 0, 1], by: q}], body: {mass: 1, inertia: 1}}"
    text = f"parameters:\n  phase: {value}\n{BARE}frames: {{arm: {arm}}}\n"
    assert read(text.encode(), "turns.yaml").values == {"phase": 12.0}


def test_a_reference_out_of_reach_is_an_error_that_names_an_assembly() -> None:
    """The rocker of a crank-rocker cannot turn to 0."""
    text = (HERE.parents[2] / "studies" / "mechanisms" / "four_bar.yaml").read_text(encoding="utf-8")
    text = text.replace("sway: {unit: rad, reference: 100 deg}", "sway: {unit: rad}") + "\nindependent: [sway]\n"
    with pytest.raises(StudyError, match=r"but do at angle = .*: give reference values near such an assembly"):
        read(text.encode(), "far.yaml")


def test_a_start_that_cannot_close_is_an_error_with_its_gap() -> None:
    mechanism = read_mechanism(HERE.parents[2] / "studies" / "mechanisms" / "slider_crank.yaml")
    with pytest.raises(CannotClose, match=r"do not close .* a gap of .* stays at 'meet'"):
        LoopSolver(mechanism).start([0.5, 0.1, 0.4])
