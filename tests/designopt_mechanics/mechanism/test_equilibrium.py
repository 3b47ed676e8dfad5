"""Postures at rest: closed forms of posture, stiffness and buckling load."""

import numpy as np
import pytest
from designopt_mechanics import Body, Coordinate, Frame, Mechanism, Point, PointLoad, Rotate, Spring, Tree, Wire, solve
from designopt_mechanics.coordinate_laws import CoordinateLaw
from designopt_mechanics.mechanism.loops import LoopSolver
from designopt_mechanics.model_file.reading import read
from designopt_mechanics.tasks.equilibrium import EquilibriumTask
from designopt_mechanics.tasks.task import TaskSettings
from linkages import GRAVITY, four_bar, link

from designopt.plugin import Diverged

STIFFNESS, LENGTH = 40.0, 0.5


def column(bars: int) -> Mechanism:
    """Upright bars without mass in the balance, rotational springs in the joints, a load of 1 N on top."""
    names = [f"b{i}" for i in range(bars)]
    frames = tuple(
        Frame(n, names[i - 1] if i else "ground", (Rotate((0, 0, 1), n),), Body(1e-3, inertia=1e-3),
              position=(0.0, LENGTH if i else 0.0, 0.0))
        for i, n in enumerate(names)
    )  # fmt: skip
    tree = Tree(tuple(Coordinate(n) for n in names), frames)
    load = PointLoad("top", Point(names[-1], (0.0, LENGTH, 0.0)), (0.0, -1.0, 0.0))
    laws = {n: CoordinateLaw(stiffness=STIFFNESS) for n in names}
    return Mechanism(tree, (0.0, 0.0, 0.0), loads=(load,), laws=laws)


@pytest.mark.parametrize(("bars", "critical"), [(1, 1.0), (2, (3.0 - np.sqrt(5.0)) / 2.0)])
def test_a_column_of_hinged_bars_buckles_at_the_textbook_load(bars: int, critical: float) -> None:
    """k / L for one bar, (3 - sqrt 5) / 2 of it for two (Timoshenko and Gere, Theory of Elastic Stability)."""
    outputs = solve(column(bars), "equilibrium", buckling=["top"]).outputs
    assert outputs["buckling_factor"] == pytest.approx(critical * STIFFNESS / LENGTH, rel=1e-6)
    assert outputs["stable"] == 1.0


def test_a_spring_that_pulls_down_never_buckles() -> None:
    mechanism = column(1)
    load = PointLoad("top", Point("b0", (0.0, LENGTH, 0.0)), (0.0, 1.0, 0.0))
    upward = Mechanism(mechanism.tree, (0.0, 0.0, 0.0), loads=(load,), laws=mechanism.laws)
    assert solve(upward, "equilibrium", buckling=["top"]).outputs["buckling_factor"] == np.inf


def test_a_linkage_hangs_where_its_potential_is_least() -> None:
    """The four-bar in weight: no small turn of the crank lowers the centre of mass; the pins carry the weight."""
    mechanism = four_bar()
    result = solve(mechanism, "equilibrium")
    assert result.outputs["stable"] == 1.0
    from designopt_mechanics.mechanism.loops import LoopSolver

    loops = LoopSolver(mechanism)
    z = np.array([result.outputs[n] for n in mechanism.tree.names])

    def height(crank: float) -> float:
        row = loops.follow(z, [[crank]], []).z[0]
        a, b, c = row[0], row[0] + row[1], row[2]
        centres = [
            0.135 * np.sin(a) + 0.03 * np.cos(a),
            0.3 * np.sin(a) + 0.36 * np.sin(b) + 0.03 * np.cos(b),
            0.27 * np.sin(c) + 0.03 * np.cos(c),
        ]
        return float(9.81 * sum(centres))

    h = 1e-3
    low, middle, high = (height(z[0] + s * h) for s in (-1.0, 0.0, 1.0))
    assert (high - low) / (2 * h) == pytest.approx(0.0, abs=1e-4)
    assert (high - 2 * middle + low) / h**2 == pytest.approx(result.outputs["stiffness_crank"], rel=1e-4)


def test_a_start_in_an_unstable_posture_stays_and_is_called_unstable() -> None:
    tree = Tree((Coordinate("q", reference=np.pi / 2),), (link("q", "ground", (0.0, 0.0), 1.0),))
    upright = np.arctan2(0.45, 0.03)  # the centre of mass above the hinge
    outputs = solve(Mechanism(tree, GRAVITY), "equilibrium", initial={"q": float(upright)}).outputs
    assert outputs["q"] == pytest.approx(upright)
    assert outputs["stable"] == 0.0
    assert outputs["stiffness_q"] == pytest.approx(-9.81 * np.hypot(0.45, 0.03))


def test_without_a_posture_at_rest_the_sentence_says_so() -> None:
    tree = Tree((Coordinate("x", "m"),), (Frame("mass", motions=()), link("x", "mass", (0.0, 0.0), 1.0)))
    load = PointLoad("push", Point("x"), moment=(0.0, 0.0, 5.0))
    with pytest.raises(Diverged, match="no posture at rest was reached in 200 steps"):
        solve(Mechanism(tree, (0.0, 0.0, 0.0), loads=(load,)), "equilibrium")


def test_springs_hold_a_platform_with_the_stiffness_of_their_wires() -> None:
    tree = Tree((Coordinate("turn"),), (link("turn", "ground", (0.0, 0.0), 1.0),))
    spring = Spring(Wire("s", (Point("ground", (1.0, 1.0, 0.0)), Point("turn", (1.0, 0.0, 0.0)))), 100.0, 1.0)
    outputs = solve(Mechanism(tree, (0.0, 0.0, 0.0), springs=(spring,)), "equilibrium", initial={"turn": 0.1}).outputs
    assert outputs["turn"] == pytest.approx(0.0, abs=1e-9)
    assert outputs["stiffness_turn"] == pytest.approx(100.0, rel=1e-9)
    assert outputs["tension_s"] == pytest.approx(0.0, abs=1e-8)


TRUSS = b"""
gravity: [0, 0, 0]
parameters: {load: 100 N}
coordinates: {a: {unit: rad, reference: 45 deg}, b: {unit: rad, reference: 135 deg}}
frames:
  left: {motions: [rotate: {axis: [0, 0, 1], by: a}], body: {mass: 1, inertia: 1}}
  right: {place: [2, 0, 0], motions: [rotate: {axis: [0, 0, 1], by: b}], body: {mass: 1, inertia: 1}}
meet: [{on: left, at: [1.41421356237, 0, 0]}, {on: right, at: [1.41421356237, 0, 0]}]
loads: {weight: {on: left, at: [1.41421356237, 0, 0], force: [0, -load, 0]}}
"""


def test_the_forces_of_a_structure_that_cannot_move_are_those_of_its_triangle() -> None:
    truss = read(TRUSS, "truss.yaml")
    rest = EquilibriumTask(TaskSettings(truss, LoopSolver(truss)))
    outputs, _ = rest.evaluate(truss.values, {}, set())
    assert outputs["cut_meet"] == pytest.approx(100.0 / np.sqrt(2.0), rel=1e-6)
    assert outputs["stable"] == 1.0
    assert "stiffness_min" not in outputs
    assert rest.gradient(truss.values, {}, ["load"])["force_right"]["load"] == pytest.approx(np.sqrt(0.5), rel=1e-6)


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("inverse_dynamics", {"motion": {"a": "time"}}),
        ("kinematics", {"grid": {"over": {"a": {"low": 0, "high": 1}}}}),
        ("trajectory", {"program": {"end": {"a": 1.0}}}),
        ("equilibrium", {"buckling": ["weight"]}),
    ],
)
def test_a_structure_that_cannot_move_is_named_where_a_task_moves_it(task: str, settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="the mechanism has no freedom"):
        solve(read(TRUSS, "truss.yaml"), task, **settings)  # type: ignore[arg-type]


WATT = b"""
gravity: [0, 0, 0]
coordinates: {left: {unit: rad}, mid: {unit: rad, reference: 90 deg}, right: {unit: rad, reference: 180 deg}}
frames:
  left: {motions: [rotate: {axis: [0, 0, 1], by: left}], body: {mass: 0.2, inertia: 1e-3}}
  coupler: {parent: left, place: [0.3, 0, 0], motions: [rotate: {axis: [0, 0, 1], by: mid}],
            body: {mass: 0.1, inertia: 1e-3}}
  right: {place: [0.6, 0.15, 0], motions: [rotate: {axis: [0, 0, 1], by: right}], body: {mass: 0.2, inertia: 1e-3}}
meet: [{on: coupler, at: [0.15, 0, 0]}, {on: right, at: [0.3, 0, 0]}]
springs:
  hold: {points: [{on: ground, at: [0.3, -0.3, 0]}, {on: coupler, at: [0.075, 0, 0]}], stiffness: 100 N/m, rest: 0.2}
independent: [left]
"""


def test_a_search_goes_on_past_dead_centres_of_the_leading_coordinate() -> None:
    """The spring is slack where its end is 0.2 m from its support; `left` has a dead centre on the way there."""
    outputs = solve(read(WATT, "watt.yaml"), "equilibrium").outputs
    assert outputs["tension_hold"] == pytest.approx(0.0, abs=1e-6)
    assert outputs["left"] < -0.5
