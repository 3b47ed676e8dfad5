"""The task `trajectory`: optimal motions against closed forms, with loops, limits and clearances."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from designopt_mechanics.mechanism.equations import mechanism_system
from designopt_mechanics.mechanism.loops import LoopSolver
from designopt_mechanics.model_file.reading import read
from designopt_mechanics.tasks.task import TaskSettings
from designopt_mechanics.tasks.trajectory import TrajectoryTask
from scipy.integrate import solve_ivp

import designopt
from designopt.arrays import Floats
from designopt.collocation import Options, Program, resimulate, solve
from designopt.report.parts.answer.limits import attained_bounds
from designopt.report.terminal import summary_table
from designopt.store.result import Result

STUDIES = Path(__file__).parents[3] / "studies/mechanisms"

CART = b"""
gravity: [0, 0, 0]
coordinates: {x: {unit: m, range: [-1, 2], largest_effort: 8 N}}
frames: {cart: {motions: [slide: {axis: [1, 0, 0], by: x}], body: {mass: 2 kg}}}
"""

CRANE = b"""
gravity: [0, -9.81, 0]
coordinates: {x: {unit: m, range: [-1, 2]}, swing: {unit: rad, range: [-1, 1]}}
frames:
  trolley: {motions: [slide: {axis: [1, 0, 0], by: x}], body: {mass: 2 kg}}
  load: {parent: trolley, motions: [rotate: {axis: [0, 0, 1], by: swing}], body: {mass: 1 kg, centre: [0, -0.8, 0]}}
"""

FIVE_BAR = b"""
gravity: [0, 0, 0]
coordinates:
  left: {unit: rad, reference: 2.0, range: [0, 3.1]}
  right: {unit: rad, reference: 1.1, range: [0, 3.1]}
  left_fore: {unit: rad, reference: -1.2}
  right_fore: {unit: rad, reference: 1.2}
frames:
  left: {place: [-0.12, 0, 0], motions: [rotate: {axis: [0, 0, 1], by: left}],
         body: {mass: 0.3 kg, centre: [0.1, 0, 0], inertia: 0.001}}
  left_fore: {parent: left, place: [0.2, 0, 0], motions: [rotate: {axis: [0, 0, 1], by: left_fore}],
              body: {mass: 0.2 kg, centre: [0.15, 0, 0], inertia: 0.001}}
  right: {place: [0.12, 0, 0], motions: [rotate: {axis: [0, 0, 1], by: right}],
          body: {mass: 0.3 kg, centre: [0.1, 0, 0], inertia: 0.001}}
  right_fore: {parent: right, place: [0.2, 0, 0], motions: [rotate: {axis: [0, 0, 1], by: right_fore}],
               body: {mass: 0.2 kg, centre: [0.15, 0, 0], inertia: 0.001}}
meet: [{on: left_fore, at: [0.3, 0, 0]}, {on: right_fore, at: [0.3, 0, 0]}]
independent: [left, right]
points: {tool: {on: left_fore, at: [0.3, 0, 0]}}
clearances: {post: {points: [{on: left_fore, at: [0.3, 0, 0]}, {on: ground, at: [0, 0.43, 0]}], radius: 20 mm}}
"""


def task(content: bytes, **program: Any) -> TrajectoryTask:
    mechanism = read(content, "file.yaml")
    settings = TaskSettings(mechanism, LoopSolver(mechanism), samples=101, program=program)
    return TrajectoryTask(settings)


def test_the_least_effort_of_a_cart_is_that_of_the_cubic_motion() -> None:
    outputs, arrays = task(CART, end={"x": 0.5}, intervals=10).evaluate({}, {}, {"effort_x"})
    # u = m d (6 - 12 t) / T^2; its square integrates to 12 m^2 d^2 / T^3
    assert outputs["effort"] == pytest.approx(12.0 * 2.0**2 * 0.5**2, rel=1e-6)
    np.testing.assert_allclose(arrays["effort_x"], 2.0 * 0.5 * (6.0 - 12.0 * np.linspace(0.0, 1.0, 101)), atol=1e-5)


def test_the_shortest_motion_of_a_cart_uses_the_largest_effort_throughout() -> None:
    outputs, _ = task(CART, end={"x": 1.0}, shortest=0.1, longest=5.0, minimize="duration").evaluate({}, {}, set())
    assert outputs["duration"] == pytest.approx(2.0 * np.sqrt(1.0 * 2.0 / 8.0), rel=1e-3)  # bang-bang


LEAST_TIME = """study: least_time
model:
  use: mechanism
  file: m.yaml
  task: trajectory
  program: {end: {x: 1.0}, shortest: 0.1 s, longest: 5 s, minimize: duration, intervals: 4}
space: {mass: 2 kg}
objectives: [{name: time, minimize: duration, unit: s}]
solver: {use: evaluate}
"""
SPEED_LIMIT = CART.replace(b"largest_effort", b"largest_speed: 1 m/s, largest_effort").replace(b"2 kg", b"mass")
SPEED_LIMIT += b"parameters: {mass: 2 kg}\n"


def least_time(folder: Path, text: str, mechanism: bytes = SPEED_LIMIT) -> Result:
    (folder / "m.yaml").write_bytes(mechanism)
    (folder / "study.yaml").write_text(text)
    return designopt.load(folder / "study.yaml").run(folder / "least_time.study")


def test_a_motion_on_a_coarse_mesh_is_warned_of_with_what_it_passes_and_a_fine_one_is_not(tmp_path: Path) -> None:
    coarse = [line for line in summary_table(least_time(tmp_path, LEAST_TIME)).splitlines() if "warning" in line]
    assert [line.split(" ")[1] for line in coarse] == ["error_estimate", "resimulation_error", "effort_x_peak"]
    assert "beyond 0 to 8.08 N (largest magnitude of the drive of x; limits of the file and 1%)" in coarse[-1]
    assert coarse[-1].endswith(
        "1%): the mesh is too coarse; raise program.intervals of the model, or state program.refine_to"
    )
    (tmp_path / "fine").mkdir()
    fine = LEAST_TIME.replace("intervals: 4", "intervals: 40, refine_to: 1e-4")
    assert "warning" not in summary_table(least_time(tmp_path / "fine", fine))


def test_least_time_is_that_of_the_evaluated_motion_where_the_design_is_part_of_the_program(tmp_path: Path) -> None:
    text = LEAST_TIME.replace("intervals: 4", "intervals: 40, refine_to: 1e-4")
    free = text.replace("mass: 2 kg", "mass: {low: 2, high: 3, unit: kg}")
    times = []
    for name, study in (("evaluated", text), ("program", free.replace("use: evaluate", "use: collocation, starts: 2"))):
        (tmp_path / name).mkdir()
        result = least_time(tmp_path / name, study)
        times.append(float(result.outcomes.objectives.min()))
    # 0.25 s to reach 1 m/s by 4 m/s^2, and to stop; 0.75 m between
    assert times == pytest.approx([1.25, 1.25], rel=1e-4)


PRESS = b"""
gravity: [0, -9.81, 0]
coordinates:
  angle: {unit: rad, reference: 90 deg, largest_effort: 60 N m}
  swing: {unit: rad, reference: 180 deg}
  drop: {unit: m, reference: -140 mm}
frames:
  crank: {motions: [rotate: {axis: [0, 0, 1], by: angle}],
          body: {bar: {length: 60 mm, diameter: 20 mm}, density: 7850}}
  rod: {parent: crank, place: [60 mm, 0, 0], motions: [rotate: {axis: [0, 0, 1], by: swing}],
        body: {bar: {length: 200 mm, diameter: 16 mm}, density: 7850}}
  ram: {motions: [slide: {axis: [0, 1, 0], by: drop}], body: {mass: 3 kg}}
meet: [{on: rod, at: [200 mm, 0, 0]}, {on: ram, at: [0, 0, 0]}]
springs: {lift: {points: [{on: ground, at: [0, 0, 0]}, {on: ram, at: [0, 0, 0]}], stiffness: 2000, rest: 100 mm}}
"""


@pytest.mark.parametrize("longest", [0.1, 1.0])
def test_least_time_of_a_press_does_not_depend_on_how_wide_the_range_of_durations_is(longest: float) -> None:
    ends = {"start": {"angle": np.pi / 2}, "end": {"angle": -np.pi / 2}}
    press = task(PRESS, **ends, minimize="duration", shortest=0.02, longest=longest)
    assert press.evaluate({}, {}, set())[0]["duration"] == pytest.approx(0.0254663, rel=1e-4)


def test_a_kink_that_is_the_length_of_a_spring_along_a_line_is_said_to_be_that() -> None:
    press = task(PRESS, end={"angle": 1.0})
    (warning,) = Program(press.trajectory_problem({}), Options(intervals=4)).warnings
    assert "has abs (fabs(drop)), probably the length of spring 'lift', whose ends lie on one line" in warning
    aside = task(PRESS.replace(b"on: ground, at: [0,", b"on: ground, at: [0.01,"), end={"angle": 1.0})
    assert Program(aside.trajectory_problem({}), Options(intervals=4)).warnings == ()


COARSE_EVALUATION = LEAST_TIME.replace("mass: 2 kg", "mass: {low: 2, high: 3, unit: kg}").replace(
    "use: evaluate", "use: collocation, refine: {tolerance: 1e-6}"
)


def test_a_motion_beyond_a_limit_on_a_mesh_coarser_than_the_program_is_laid_to_this_mesh(
    tmp_path: Path,
) -> None:
    table = summary_table(least_time(tmp_path, COARSE_EVALUATION))
    (warning,) = [line for line in table.splitlines() if "effort_x_peak" in line]
    assert "widen the space" not in warning
    assert "the mesh is too coarse; raise program.intervals of the model, or state program.refine_to" in warning
    assert re.search(r"the solver has its own mesh \(error estimate \d\.\de-\d\d\), which the model's", warning)


@pytest.mark.parametrize(("low", "reason"), [("2", ": from the foundry"), ("2.1", "")])
def test_the_reason_of_a_range_in_the_file_is_quoted_at_a_bound_that_is_the_end_of_this_range(
    tmp_path: Path, low: str, reason: str
) -> None:
    text = COARSE_EVALUATION.replace("low: 2,", f"low: {low},")
    mechanism = SPEED_LIMIT.replace(b"mass: 2 kg}", b"mass: {value: 2 kg, low: 2 kg, why: from the foundry}}")
    result = least_time(tmp_path, text, mechanism)
    bounds = attained_bounds(result, np.array(result.front()))
    assert bounds == [f"mass is at its lower bound ({low} kg) in the best design{reason}"]


def test_a_closed_loop_moves_from_posture_to_posture_around_an_obstacle_with_true_efforts() -> None:
    program = {"start": {"left": 2.4, "right": 1.4}, "end": {"left": 1.75, "right": 0.75}, "refine_to": 1e-5}
    five_bar = task(FIVE_BAR, **program)
    assert list(five_bar.check()) == []
    outputs, arrays = five_bar.evaluate({}, {}, {"effort_left", "power_left", "power_right", "scene", "time"})
    assert outputs["clearance_post_min"] >= -1e-4
    assert outputs["resimulation_error"] < 1e-3
    # from rest to rest without gravity the drives do no work in all
    total = np.trapezoid(arrays["power_left"] + arrays["power_right"], arrays["time"])
    assert abs(total) < 1e-2 * outputs["work"]
    assert arrays["scene"].shape[0] == 101


def test_the_resimulation_of_a_coarse_motion_is_that_of_the_loops_in_all_coordinates() -> None:
    """The crank falls out of its optimal motion, whose instability is e^8: the loops are followed on their branch."""
    mechanism = read((STUDIES / "four_bar.yaml").read_bytes(), "four_bar.yaml")
    loops = LoopSolver(mechanism)
    program = {"start": {"angle": 1.5}, "end": {"angle": 1.8}, "intervals": 8}
    motion = TrajectoryTask(TaskSettings(mechanism, loops, program=program))
    problem = motion.trajectory_problem({})
    solution = solve(problem, Options(intervals=8, check=False))
    resimulated = resimulate(problem.phases[0], solution.phase, solution.parameters)
    assert np.abs(resimulated.states["angle"] - solution.phase.interpolate(resimulated.times)["angle"]).max() > 1.0
    rates, p = mechanism_system(loops, ["angle"]).rhs, mechanism.column()
    x = np.concatenate([loops.follow(loops.start(p), [[1.5]], p).z[0], np.zeros(3)])
    for (a, b), angle in zip(pairwise(resimulated.times), resimulated.states["angle"][1:], strict=True):

        def rhs(t: float, x: Floats, a: float = a, b: float = b) -> Floats:
            effort = solution.phase.interpolate(np.clip([t], a + 1e-12, b - 1e-12))["effort_angle"]
            return np.asarray(rates(x, effort, [], p, [], t), dtype=np.float64).ravel()

        x = solve_ivp(rhs, (a, b), x, "DOP853", rtol=1e-9, atol=1e-9).y[:, -1]
        assert angle == pytest.approx(x[0], abs=1e-4)


def test_the_links_of_an_optimal_motion_stay_clear_of_a_post() -> None:
    """The straight way of the tool passes 14 mm below the centre of a post that needs 25 mm."""
    start, bars = (
        FIVE_BAR[: FIVE_BAR.index(b"clearances:")],
        b"""
surfaces: {post: {on: ground, at: [0, 0.39, 0], cylinder: {axis: [0, 0, 1], radius: 20 mm}}}
clearances:
  left: {points: [{on: left_fore, at: [0, 0, 0]}, {on: left_fore, at: [0.3, 0, 0]}], surface: post, radius: 5 mm}
  tool: {points: [{on: right_fore, at: [0.3, 0, 0]}], surface: post, radius: 5 mm}
""",
    )
    program = {"start": {"left": 2.4, "right": 1.4}, "end": {"left": 1.75, "right": 0.75}, "intervals": 30}
    motion = task(start + bars, **program)
    assert list(motion.check()) == []
    outputs, arrays = motion.evaluate({}, {}, {"left", "left_fore"})
    # the tool is at the end of the left bar: where that is nearest they differ by rounding
    assert -1e-4 <= outputs["clearance_left_min"] <= outputs["clearance_tool_min"] + 1e-12
    assert outputs["clearance_tool_min"] < 1e-3
    assert outputs["effort"] > 1.02 * task(start, **program).evaluate({}, {}, set())[0]["effort"]
    # the clearance of a bar by its points
    x, y = arrays["left"], arrays["left"] + arrays["left_fore"]
    elbow = np.stack([-0.12 + 0.2 * np.cos(x), 0.2 * np.sin(x)], axis=1)[:, None]
    points = elbow + np.linspace(0.0, 0.3, 3001)[:, None] * np.stack([np.cos(y), np.sin(y)], axis=1)[:, None]
    nearest = np.linalg.norm(points - [0.0, 0.39], axis=2).min()
    assert outputs["clearance_left_min"] == pytest.approx(nearest - 0.025, abs=1e-6)


def test_the_end_of_a_wire_moves_around_the_surface_that_the_wire_runs_over() -> None:
    """The straight way leads through the cylinder, where a wire has none; its effort would be 12 m^2 d^2 / T^3."""
    content = b"""
gravity: [0, 0, 0]
coordinates: {x: {unit: m, reference: -0.6}, y: {unit: m}}
frames: {cart: {motions: [slide: {axis: [1, 0, 0], by: x}, slide: {axis: [0, 1, 0], by: y}], body: {mass: 1}}}
surfaces: {drum: {on: ground, at: [0, 0, 0], cylinder: {axis: [0, 0, 1], radius: 0.45}}}
wires: {w: {points: [{on: ground, at: [0, 1, 0]}, {over: drum, side: [0, 1, 0]}, {on: cart, at: [0, 0, 0]}]}}
"""
    program = {"start": {"x": -0.6, "y": -0.05}, "end": {"x": 0.6, "y": -0.05}, "intervals": 20}
    outputs, arrays = task(content, **program).evaluate({}, {}, {"x", "y"})
    assert np.hypot(arrays["x"], arrays["y"]).min() == pytest.approx(0.45, abs=2e-4)
    assert np.abs(arrays["y"]).max() > 0.44
    assert outputs["effort"] > 1.2 * 12.0 * 1.2**2


def test_a_crane_moves_its_load_from_rest_to_rest_with_the_drive_of_its_trolley_alone() -> None:
    crane = task(CRANE, end={"x": 0.5, "swing": 0.0}, drives=["x"], shortest=2.0, refine_to=1e-6)
    assert list(crane.check()) == []
    outputs, _ = crane.evaluate({}, {}, set())
    assert outputs["x_max"] == pytest.approx(0.5, abs=0.05)
    assert 0.01 < outputs["swing_peak"] < 0.5
    assert outputs["effort_swing_peak"] < 1e-3 * outputs["effort_x_peak"]  # no drive, so no effort


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ({}, "needs end"),
        ({"end": {"lift": 1.0}}, "no coordinate 'lift'; did you mean 'left'"),
        ({"end": {"left": 3.1, "right": 0.0}}, "end: the loops do not close at left = 3.1, right = 0"),
        ({"end": {"left_fore": 0.1}}, "or of as many others"),
        ({"end": {"left": 3.13}}, "end: left = 3.13 rad is outside its range 0 to 3.1 rad"),
        ({"end": {"left": 100.0}}, "left = 100 rad is outside its range 0 to 3.1 rad; is it in degrees? Write 100 deg"),
        ({"end": {"left": 2.0}, "shortest": 2.0, "longest": 1.0}, "is below the shortest"),
        ({"end": {"left": 2.0}, "drives": ["left_fore"]}, "must be among left, right"),
        ({"end": {"left": 2.0}, "drives": ["left", "right", "left_fore"]}, "do not determine"),
    ],
)
def test_a_mistake_in_a_program_is_reported(program: dict[str, Any], message: str) -> None:
    mistakes = list(task(FIVE_BAR, **program).check())
    assert any(message in str(mistake) for mistake in mistakes), mistakes
