"""Derivatives of the outputs of every task by parameters of the file, against central differences and closed forms."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from designopt_mechanics.tasks.model import MechanismModel

import designopt
from designopt.plugin import InputFile

#: A four-bar with a spring and a load, and a cable over a pulley on its rocker.
FOUR_BAR = """gravity: [0, -9.81, 0]
parameters:
  crank: {value: 0.12}
  coupler: {value: 0.3}
  stiffness: {value: 300}
  mass: {value: 0.8}
  radius: {value: 0.03}
coordinates:
  turn: {unit: rad, reference: 70 deg, range: [-2, 4], damping: 0.02}
  sway: {unit: rad, reference: -50 deg}
  rock: {unit: rad, reference: 80 deg}
frames:
  crank: {motions: [rotate: {axis: [0, 0, 1], by: turn}], body: {bar: {length: crank, diameter: 20 mm}, density: 7850}}
  coupler:
    parent: crank
    place: [crank, 0, 0]
    motions: [rotate: {axis: [0, 0, 1], by: sway}]
    body: {mass: mass, centre: [coupler/2, 0, 0], inertia: mass*coupler**2/12}
  rocker:
    place: [0.25, 0, 0]
    motions: [rotate: {axis: [0, 0, 1], by: rock}]
    body: {mass: 0.5, centre: [0.1, 0, 0], inertia: 2e-3}
meet: [{on: coupler, at: [coupler, 0, 0]}, {on: rocker, at: [0.25, 0, 0]}]
independent: [turn]
surfaces: {wheel: {on: rocker, at: [0.25, 0, 0], cylinder: {axis: [0, 0, 1], radius: radius}}}
springs:
  cable:
    points: [{on: ground, at: [-0.2, 0.5, 0]}, {over: wheel, turn: right}, {on: ground, at: [0.7, 0.3, 0]}]
    stiffness: stiffness
    rest: 0.8
    damping: 5
points: {pen: {on: coupler, at: [0.1, 0.05, 0]}}
loads: {push: {on: rocker, at: [0.25, 0, 0], force: [3 N, "-2*mass", 0]}}
"""
COLUMN = """gravity: [0, 0, 0]
parameters: {stiffness: {value: 40}, length: {value: 0.5}}
coordinates: {a: {unit: rad, stiffness: stiffness}, b: {unit: rad, stiffness: stiffness}}
frames:
  lower: {motions: [rotate: {axis: [0, 0, 1], by: a}], body: {mass: 1e-3, inertia: 1e-3}}
  upper:
    parent: lower
    place: [0, length, 0]
    motions: [rotate: {axis: [0, 0, 1], by: b}]
    body: {mass: 1e-3, inertia: 1e-3}
loads: {top: {on: upper, at: [0, length, 0], force: [0, -1 N, 0]}}
"""
CART = """gravity: [0, 0, 0]
parameters: {mass: {value: 2 kg}, largest: {value: 8 N}}
coordinates: {x: {unit: m, range: [-2, 2], largest_effort: 8}}
frames: {cart: {motions: [slide: {axis: [1, 0, 0], by: x}], body: {mass: mass}}}
"""


#: Two joints and four cables, two of them over both joints.
ARM = """gravity: [0, -9.81, 0]
parameters: {drum: {value: 0.03}, mass: {value: 1.5}}
coordinates: {lift: {unit: rad}, bend: {unit: rad}}
frames:
  upper: {motions: [rotate: {axis: [0, 0, 1], by: lift}], body: {mass: mass, centre: [0.15, 0, 0], inertia: 0.02}}
  fore:
    parent: upper
    place: [0.3, 0, 0]
    motions: [rotate: {axis: [0, 0, 1], by: bend}]
    body: {mass: 1, centre: [0.12, 0, 0], inertia: 0.01}
surfaces:
  shoulder: {on: ground, at: [0, 0, 0], cylinder: {axis: [0, 0, 1], radius: drum}}
  elbow: {on: upper, at: [0.3, 0, 0], cylinder: {axis: [0, 0, 1], radius: 0.02}}
wires:
  deltoid: {points: [{on: ground, at: [-0.1, 0.05, 0]}, {over: shoulder, turn: right}, {on: upper, at: [0.1, 0.02, 0]}]}
  brachialis: {points: [{on: upper, at: [0.1, 0.03, 0]}, {on: fore, at: [0.04, 0.02, 0]}]}
  biceps:
    points:
      - {on: ground, at: [-0.05, 0.06, 0]}
      - {over: shoulder, side: [0, 1, 0]}
      - {on: fore, at: [0.05, 0.03, 0]}
  triceps:
    points:
      - {on: ground, at: [0, -0.05, 0]}
      - {over: elbow, side: [0, -1, 0]}
      - {on: fore, at: [-0.02, -0.02, 0]}
"""


def model(text: str, task: str, **settings: Any) -> MechanismModel:
    built = MechanismModel(file=InputFile("file.yaml", text.encode()), task=task, **settings)  # type: ignore[arg-type]
    assert list(built.check()) == []
    return built


def compared(built: MechanismModel, steps: dict[str, float], tolerance: float, without: tuple[str, ...] = ()) -> None:
    """All outputs have derivatives, and these are those of central differences to a relative `tolerance`."""
    design = dict(built.mechanism.values)
    slopes = built.gradient({name: design[name] for name in steps}, {})
    outputs = built.evaluate(design, {}, set())[0]
    assert set(outputs) - set(slopes) == set(without)
    for name, step in steps.items():
        rows = [built.evaluate({**design, name: design[name] + n * step}, {}, set())[0] for n in (-2, -1, 1, 2)]
        for output, row in slopes.items():
            a, b, c, d = (r[output] for r in rows)
            expected = (a - 8.0 * b + 8.0 * c - d) / (12.0 * step)
            size = max(abs(expected), abs(outputs[output] / design[name]), 1e-3)
            assert row[name] == pytest.approx(expected, abs=tolerance * size), (output, name)


def test_those_of_a_simulation_solve_its_variational_equations() -> None:
    takes = ("turn_max", "rock_mean", "sway_speed_rms", "tension_cable_integral", "press_cable_wheel_mean")
    outputs = [*takes, "force_rocker_mean", "moment_crank_rms", "cut_meet_rms", "path_pen_x_min"]
    built = model(FOUR_BAR, "simulation", duration=0.5, samples=41, outputs=outputs, drives={"turn": "0.3 + mass*time"},
                  initial={"turn": 1.0, "turn_speed": 2.0})  # fmt: skip
    compared(built, {"coupler": 1e-4, "mass": 1e-3, "radius": 1e-4}, 1e-5)


def test_those_of_an_equilibrium_follow_from_its_balance_and_loops() -> None:
    built = model(FOUR_BAR, "equilibrium")
    compared(built, {"crank": 1e-4, "coupler": 1e-4, "stiffness": 0.1, "mass": 1e-3, "radius": 1e-4}, 1e-7)


@pytest.mark.parametrize("solver", ["{use: slsqp, gradient: model}", "{use: gp, startup: 4, gradients: true}"])
def test_a_study_searches_with_the_derivatives_of_a_posture_at_rest(solver: str, tmp_path: Path) -> None:
    (tmp_path / "four_bar.yaml").write_text(FOUR_BAR)
    (tmp_path / "rest.yaml").write_text(f"""study: rest
model: {{use: mechanism, file: four_bar.yaml, task: equilibrium, outputs: [tension_cable, stiffness_turn]}}
space: {{crank: {{low: 0.1, high: 0.14}}, stiffness: {{low: 200, high: 400}}}}
objectives: [{{name: tension, minimize: tension_cable, unit: N}}]
stages: [{{name: search, solver: {solver}, budget: {{evaluations: 12}}}}]
execution: {{executor: serial}}
""")
    result = designopt.load(tmp_path / "rest.yaml").run(tmp_path / "rest.study")
    slopes = [f for name, f in result.outcomes.figures.items() if name.startswith("d(tension_cable)/d(")]
    assert len(slopes) == 2
    assert all(np.isfinite(f).all() for f in slopes)


def test_the_buckling_load_of_a_column_has_the_derivatives_of_its_formula() -> None:
    """(3 - sqrt 5)/2 k/L for two bars (Timoshenko and Gere)."""
    built = model(COLUMN, "equilibrium", buckling=["top"], outputs=["buckling_factor", "stable", "stiffness_a"])
    factor, slopes = (3.0 - np.sqrt(5.0)) / 2.0 / 0.5, built.gradient({"stiffness": 40.0, "length": 0.5}, {})
    assert slopes["buckling_factor"]["stiffness"] == pytest.approx(factor, rel=1e-5)
    assert slopes["buckling_factor"]["length"] == pytest.approx(-factor * 40.0 / 0.5, rel=1e-5)
    assert slopes["stable"] == {"stiffness": 0.0, "length": 0.0}
    assert slopes["stiffness_a"]["stiffness"] == pytest.approx(1.0)


def test_those_of_a_grid_of_postures_are_of_the_same_postures() -> None:
    grid = {"over": {"turn": {"low": 0.9, "high": 1.6, "points": 9}}}
    built = model(FOUR_BAR, "kinematics", grid=grid)
    compared(built, {"crank": 1e-4, "coupler": 1e-4, "mass": 1e-3, "radius": 1e-4}, 1e-6,
             without=("workspace", "closed_share", "gap_max"))  # fmt: skip


def test_those_of_tensions_that_carry_a_motion_follow_from_their_least_squares() -> None:
    wires = ["deltoid", "brachialis", "biceps", "triceps"]
    outputs = ["tension_deltoid_mean", "tension_biceps_rms", "tension_brachialis_max", "force_fore_mean",
               "press_deltoid_shoulder_mean", "tension_triceps_max"]  # fmt: skip
    built = model(ARM, "inverse_dynamics", motion={"lift": "0.1 + 0.5*mass*time", "bend": "0.6 + 0.4*time"}, samples=9,
                  carried_by=wires, outputs=outputs, duration=0.5)  # fmt: skip
    values = built.evaluate(built.mechanism.values, {}, set())[0]
    assert min(values["tension_deltoid_mean"], values["tension_biceps_rms"]) > 1.0  # they share
    compared(built, {"drum": 1e-4, "mass": 1e-3}, 1e-6)


def test_those_of_an_optimal_motion_are_those_of_its_optimum() -> None:
    """Least effort of a cart: 12 m^2 d^2/T^3; shortest time: 2 sqrt(d m/F)."""
    outputs = ["effort_x_rms", "effort_x_integral", "x_mean", "power_x_integral", "x_speed_rms"]
    cart = model(CART, "trajectory", program={"end": {"x": 0.5}, "intervals": 10}, outputs=outputs)
    slopes = cart.gradient({"mass": 2.0}, {})
    assert slopes["effort"]["mass"] == pytest.approx(24.0 * 2.0 * 0.5**2, rel=1e-5)
    assert slopes["effort_x_rms"]["mass"] == pytest.approx(np.sqrt(12.0) * 0.5, rel=1e-3)
    assert abs(slopes["x_mean"]["mass"]) < 1e-6
    assert slopes["duration"]["mass"] == 0.0
    short = {"end": {"x": 1.0}, "shortest": 0.1, "longest": 5.0, "minimize": "duration", "intervals": 10}
    fast = model(CART, "trajectory", program=short, outputs=["x_speed_max", "x_integral"]).gradient({"mass": 2.0}, {})
    assert fast["duration"]["mass"] == pytest.approx(np.sqrt(1.0 / (2.0 * 8.0)), rel=2e-3)


def test_those_of_an_optimal_motion_in_loops_are_differences_of_optima() -> None:
    text = FOUR_BAR.replace("    damping: 5\n", "")
    program = {"start": {"turn": 1.0}, "end": {"turn": 1.5}, "shortest": 0.4, "intervals": 12}
    outputs = ["effort_turn_rms", "cut_meet_mean", "rock_speed_rms", "tension_cable_integral"]
    built = model(text, "trajectory", program=program, outputs=outputs, samples=61)
    slopes = built.gradient(built.mechanism.values, {})
    design = built.mechanism.values
    for name, step in (("crank", 1e-3), ("mass", 1e-2)):
        high, low = (built.evaluate({**design, name: design[name] + s * step}, {}, set())[0] for s in (1, -1))
        for output in ("effort", *outputs):
            expected = (high[output] - low[output]) / (2.0 * step)
            assert slopes[output][name] == pytest.approx(expected, rel=2e-3, abs=1e-4), (output, name)
