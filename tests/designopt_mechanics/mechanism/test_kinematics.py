"""The task `kinematics`: workspace, ratios, manipulability and efforts against closed forms."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from designopt_mechanics import Body, Clearance, Coordinate, Frame, Mechanism, Point, Rotate, Surface, Tree, solve
from designopt_mechanics.mechanism.loops import LoopSolver
from designopt_mechanics.model_file.reading import read
from designopt_mechanics.tasks.kinematics import KinematicsTask
from designopt_mechanics.tasks.task import TaskSettings

from designopt.plugin import Diverged

DELTA = Path(__file__).parents[3] / "studies" / "mechanisms" / "delta_robot.yaml"

ARM = b"""
gravity: [0, -9.81, 0]
coordinates:
  q1: {unit: rad, range: [-1.5, 1.5]}
  q2: {unit: rad, range: [0.1, 3.0], reference: 1}
frames:
  upper: {motions: [rotate: {axis: [0, 0, 1], by: q1}], body: {mass: 2 kg, centre: [0.25, 0, 0]}}
  lower: {parent: upper, place: [0.5, 0, 0], motions: [rotate: {axis: [0, 0, 1], by: q2}],
          body: {mass: 1 kg, centre: [0.2, 0, 0]}}
points: {hand: {on: lower, at: [0.4, 0, 0]}}
clearances: {floor: {points: [{on: lower, at: [0.4, 0, 0]}, {on: ground, at: [0.2, -0.4, 0]}], radius: 100 mm}}
"""

ROCKER = b"""
gravity: [0, 0, 0]
coordinates:
  crank: {unit: rad, reference: 0.8}
  coupler: {unit: rad, reference: -0.4}
  rocker: {unit: rad, reference: 1.2}
frames:
  crank: {motions: [rotate: {axis: [0, 0, 1], by: crank}], body: {mass: 1 kg, inertia: [0.1, 0.1, 0.1]}}
  coupler: {parent: crank, place: [0.3, 0, 0], motions: [rotate: {axis: [0, 0, 1], by: coupler}], body: {mass: 1 kg}}
  rocker: {place: [0.5, 0, 0], motions: [rotate: {axis: [0, 0, 1], by: rocker}], body: {mass: 1 kg}}
meet: [{on: coupler, at: [0.4, 0, 0]}, {on: rocker, at: [0.25, 0, 0]}]
independent: [crank]
angles: {transmission: {between: [{on: coupler, along: [1, 0, 0]}, {on: rocker, along: [1, 0, 0]}]}}
"""


def task(content: bytes, over: dict[str, Any], drives: list[str] | None = None) -> KinematicsTask:
    mechanism = read(content, "file.yaml")
    grid = {"over": over, **({"drives": drives} if drives else {})}
    made_task = KinematicsTask(TaskSettings(mechanism, LoopSolver(mechanism), grid=grid))
    assert list(made_task.check()) == []
    return made_task


def test_manipulability_and_reach_of_a_planar_arm_are_those_of_its_jacobian() -> None:
    outputs, arrays = task(ARM, {"q1": {"points": 41}, "q2": {"points": 201}}).evaluate(
        {}, {}, {"postures", "counts", "clearance_floor"}
    )
    q2 = arrays["postures"][arrays["counts"] == 1.0, 1]
    product = 0.5 * 0.4 * np.abs(np.sin(q2))  # l1 l2 |sin q2|
    assert outputs["manipulability_hand_min"] == pytest.approx(product.min())
    assert outputs["manipulability_hand_mean"] == pytest.approx(product.mean())
    cell = 3.0 / 41 * 2.9 / 201
    assert outputs["reach_hand"] == pytest.approx(product.sum() * cell)
    assert (arrays["counts"] == (arrays["clearance_floor"] >= 0.0)).all()
    assert 0.0 < outputs["workspace"] == pytest.approx(arrays["counts"].mean())


def test_efforts_at_rest_are_the_slopes_of_the_potential_energy() -> None:
    outputs, _ = task(
        ARM, {"q1": {"low": 0.3, "high": 0.3, "points": 1}, "q2": {"low": 1, "high": 1, "points": 1}}
    ).evaluate({}, {}, set())
    lower = 9.81 * 1.0 * 0.2 * np.cos(1.3)
    assert outputs["effort_q2_max"] == pytest.approx(lower)
    assert outputs["effort_q1_max"] == pytest.approx(9.81 * (2.0 * 0.25 + 0.5) * np.cos(0.3) + lower)


def test_ratio_and_transmission_angle_of_a_four_bar_are_those_of_freudenstein() -> None:
    crank = 0.9
    a, b, c, d = 0.3, 0.4, 0.25, 0.5
    across = np.sqrt(a**2 + d**2 - 2.0 * a * d * np.cos(crank))
    transmission = np.arccos((b**2 + c**2 - across**2) / (2.0 * b * c))
    grid = {"crank": {"low": crank, "high": crank, "points": 1}}
    outputs, arrays = task(ROCKER, grid).evaluate({}, {}, {"postures"})
    assert outputs["angle_transmission_min"] == pytest.approx(min(transmission, np.pi - transmission), abs=1e-9)
    q1, q2, q3 = arrays["postures"][0]
    coupler = q1 + q2
    ratio = a * np.sin(q1 - coupler) / (c * np.sin(q3 - coupler))
    assert outputs["ratio_rocker_min"] == pytest.approx(ratio, abs=1e-9)


def test_the_share_of_postures_that_close_follows_from_the_limit_angle_of_a_four_bar() -> None:
    a, b, c, d = 0.3, 0.4, 0.25, 0.5
    outputs, _ = task(ROCKER, {"crank": {"low": 0.0, "high": np.pi, "points": 91}}).evaluate({}, {}, set())
    limit = np.arccos((a**2 + d**2 - (b + c) ** 2) / (2.0 * a * d))  # coupler and rocker in one line
    assert outputs["closed_share"] == pytest.approx(limit / np.pi, abs=1.0 / 90)
    assert outputs["gap_max"] == pytest.approx(a + d - b - c, rel=0.05)


def test_the_drives_of_a_delta_robot_are_those_of_its_closed_form() -> None:
    over = {name: {"low": -1.0, "high": 1.0, "points": 3} for name in "uvw"}
    delta = task(DELTA.read_bytes(), over, ["drive_1", "drive_2", "drive_3"])
    _, arrays = delta.evaluate({}, {}, {"postures"})
    names = delta.mechanism.tree.names
    for row in arrays["postures"]:
        u, v, w = row[:3]
        position = np.array([0.2 * u, 0.2 * v, -0.4 + 0.1 * w])
        for i in range(3):
            angle = 2.0 * np.pi * i / 3.0
            turn = np.array([[np.cos(angle), np.sin(angle), 0], [-np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
            x, y, z = turn @ position + [0.05 - 0.12, 0.0, 0.0]
            # |(arm cos t, 0, -arm sin t) - (x, y, z)| = forearm
            rest = (x**2 + y**2 + z**2 + 0.2**2 - 0.45**2) / (2.0 * 0.2)
            drive = np.arctan2(-z, x) - np.arccos(rest / np.hypot(x, z))
            assert row[names.index(f"drive_{i + 1}")] == pytest.approx(drive, abs=1e-9)


def test_a_grid_without_a_posture_that_closes_says_how_wide_the_gap_is() -> None:
    with pytest.raises(Diverged, match=r"none of the 3 postures counts: 0 close \(largest gap 0\.1"):
        task(ROCKER, {"crank": {"low": 3.0, "high": 3.2, "points": 3}}).evaluate({}, {}, set())


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({}, "needs over"),
        ({"over": {"cranc": {}}}, "did you mean 'crank'"),
        ({"over": {"crank": {}}}, "is no range"),
        ({"over": {"crank": {"low": 0, "high": 1}}, "drives": ["crank", "rocker"]}, "do not determine"),
        (
            {"over": {"crank": {"low": 0, "high": 1, "points": 1000}, "rocker": {"low": 0, "high": 1, "points": 1000}}},
            "at most",
        ),
    ],
)
def test_a_mistake_in_a_grid_is_reported(grid: dict[str, Any], message: str) -> None:
    mechanism = read(ROCKER, "file.yaml")
    mistakes = list(KinematicsTask(TaskSettings(mechanism, LoopSolver(mechanism), grid=grid)).check())
    assert any(message in str(mistake) for mistake in mistakes), mistakes


@pytest.mark.parametrize("axis", [None, (1.0, 2.0, -2.0)])
@pytest.mark.parametrize("seed", range(2))
def test_the_clearance_of_a_bar_from_a_surface_is_that_of_its_nearest_point(
    axis: tuple[float, float, float] | None, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    begin, end, centre = rng.uniform(-1.0, 1.0, (3, 3))
    tree = Tree((Coordinate("a"),), (Frame("arm", motions=(Rotate((0, 0, 1), "a"),), body=Body(1.0)),))
    direction = None if axis is None else (axis[0] / 3.0, axis[1] / 3.0, axis[2] / 3.0)
    surface = Surface("post", Point("ground", tuple(centre)), 0.05, direction)
    bar = Clearance(Point("arm", tuple(begin)), Point("arm", tuple(end)), 0.01, surface)
    mechanism = Mechanism(tree, (0.0, 0.0, 0.0), clearances={"post": bar})
    outputs = solve(mechanism, "inverse_dynamics", motion={"a": "0*time"}, samples=2).outputs
    gaps = begin + np.linspace(0.0, 1.0, 20001)[:, None] * (end - begin) - centre
    if direction is not None:
        gaps = gaps - (gaps @ np.array(direction))[:, None] * direction
    assert outputs["clearance_post_min"] == pytest.approx(np.linalg.norm(gaps, axis=1).min() - 0.06, abs=1e-6)
