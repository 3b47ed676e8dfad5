"""Andrews' squeezing mechanism: the published numbers, by joint functions and by stabilised constraints."""

import csv
from functools import cache
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.andrews.mechanism import ANGLES, END, START, STIFFNESS, TORQUE, gaps, open_tree
from designopt_mechanics.andrews.mechanism import joint_functions as functions
from designopt_mechanics.andrews.model import AndrewsSqueezer
from designopt_mechanics.andrews.systems import system
from designopt_mechanics.report.andrews import andrews_angles
from designopt_mechanics.report.cost import andrews_cost
from designopt_mechanics.report.scene import mechanism_scene
from designopt_mechanics.state import TreeState

import designopt
from designopt.collocation import Options, solve_design
from designopt.dynamics import Simulator

STUDIES = Path(__file__).parents[2] / "studies"
END_SPEEDS = {
    "beta": 1139.92030225911,
    "Theta": -1424.37929517754,
    "gamma": 11.0329119106177,
    "Phi": 19.2933741050305,
    "delta": 0.573569914829457,
    "Omega": -19.2933741050305,
    "epsilon": 0.323179149249104,
}


@cache
def run(formulation: Any, tolerance: float, stabilisation: float = 0.0) -> Any:
    closed = formulation == "joint_functions"
    angles = [START["beta"]] if closed else [START[n] for n in ANGLES]
    data = {"torque": TORQUE, **({} if closed else {"stabilisation": stabilisation})}
    simulator = Simulator(system(formulation), rtol=tolerance, atol=0.1 * tolerance)
    times = np.linspace(0.0, 0.03, 61)
    return simulator.run([*angles, *np.zeros(len(angles))], times, p={"stiffness": STIFFNESS}, q=data)


def test_the_joint_functions_are_the_published_angles_at_start_and_end() -> None:
    """Differences are round-off: Theta after two and a half turns included."""
    beta = ca.SX.sym("beta")
    f = ca.Function("f", [beta], [ca.vertcat(*(functions(beta)[n] for n in ANGLES))])
    for published in (START, END):
        computed = np.asarray(f(published["beta"]), float).ravel()
        assert np.abs(computed - [published[n] for n in ANGLES]).max() < 1e-13


def test_the_loops_are_closed_over_a_whole_turn_and_the_slopes_are_as_stated() -> None:
    """Specification of skeletal systems, section 7: |f'| at most 1.250, |f''| at most 0.437."""
    state = TreeState.symbols(open_tree())
    gap = ca.Function("gap", [state.z], [gaps(state)])
    beta = ca.SX.sym("beta")
    f = ca.vertcat(*(functions(beta)[n] for n in ANGLES))
    first = ca.jacobian(f, beta)
    all_of = ca.Function("all", [beta], [f, first, ca.jacobian(first, beta)])
    turn = np.linspace(-np.pi, np.pi, 721)
    values, slopes, curvatures = (np.asarray(r, float) for r in all_of.map(721)(turn[None, :]))
    assert max(np.abs(np.asarray(gap(v), float)).max() for v in values.T) < 1e-16 * 10
    dependent = slice(1, None)
    assert np.abs(slopes.reshape(7, -1)[dependent]).max() == pytest.approx(1.250, abs=2e-3)
    assert np.abs(curvatures.reshape(7, -1)).max() == pytest.approx(0.437, abs=2e-3)


@pytest.mark.parametrize("formulation", ["joint_functions", "constraints"])
def test_the_first_acceleration_of_the_crank_is_the_published_one(formulation: Any) -> None:
    mechanism = system(formulation)
    closed = formulation == "joint_functions"
    angles = [START["beta"]] if closed else [START[n] for n in ANGLES]
    data = [TORQUE] if closed else [TORQUE, 0.0]
    rates = np.asarray(mechanism.rhs([*angles, *np.zeros(len(angles))], [], [], [STIFFNESS], data, 0.0), float).ravel()
    assert rates[len(angles)] == pytest.approx(14222.44391995411387, rel=1e-12)


def test_the_motion_agrees_with_the_reference_table_of_30_digit_arithmetic(skeletal: Path) -> None:
    with (skeletal / "andrews_reference_trajectory.csv").open() as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    table = np.array([[float(row[n]) for n in (*ANGLES, "beta_dot")] for row in rows])
    solution = run("joint_functions", 1e-11)
    assert np.allclose(solution.t, [float(row["t"]) for row in rows])
    assert np.abs(solution.y[:, :7] - table[:, :7]).max() < 1e-9
    assert np.abs(solution.y[:, 7] - table[:, 7]).max() < 1e-6  # of 1140 rad/s


def test_the_state_after_30_ms_is_the_reference_to_1e_8() -> None:
    state = run("joint_functions", 1e-11).y[-1]
    angles, speeds = np.array([END[n] for n in ANGLES]), np.array([END_SPEEDS[n] for n in ANGLES])
    assert np.abs(state[:7] / angles - 1.0).max() < 1e-8
    assert np.abs(state[7:14] / speeds - 1.0).max() < 1e-8


def test_the_energy_is_kept() -> None:
    energy = run("joint_functions", 1e-11).y[:, 15]
    assert energy[0] == pytest.approx(1.43783295753214, rel=1e-13)
    assert np.abs(energy - energy[0]).max() < 1e-10


def test_constraints_find_the_same_motion_with_gaps_that_stabilisation_keeps_small() -> None:
    exact = run("joint_functions", 1e-11).y
    free, stabilised = run("constraints", 1e-7), run("constraints", 1e-7, 2000.0)
    for motion in (free, stabilised):
        assert np.abs(motion.y[-1, :7] - exact[-1, :7]).max() < 1e-4
        assert motion.y[:, 14].max() > 1e-13  # the loops open: this is a measure of something
    assert stabilised.y[-1, 14] < 0.2 * free.y[-1, 14]


def test_the_interpreted_integration_finds_the_same_angles() -> None:
    simulator = Simulator(system("joint_functions"), rtol=1e-9, atol=1e-10, compiled=False)
    short = simulator.run([START["beta"], 0.0], [0.0, 0.005], p={"stiffness": STIFFNESS}, q={"torque": TORQUE})
    assert short.y[-1, 0] == pytest.approx(0.21107638590327, abs=1e-8)
    assert short.y[-1, 7] == pytest.approx(151.01070126923, rel=1e-6)


def test_an_evaluation_tells_error_and_drift_of_its_treatment() -> None:
    model = AndrewsSqueezer()
    exact, arrays = model.evaluate({"tolerance": 1e-9}, {}, {"angles", "scene", "time"})
    loose, _ = model.evaluate({"tolerance": 1e-5}, {})
    open_loops, _ = model.evaluate({"formulation": "constraints", "tolerance": 1e-6}, {})
    assert exact["error"] < 1e-8 < loose["error"]
    assert exact["drift"] == 0.0 < open_loops["drift"]
    assert exact["steps"] > loose["steps"]
    assert arrays["scene"].shape == (301, 26, 2)
    assert exact["crank"] == arrays["angles"][-1, 0]


def test_the_crank_turns_with_the_least_torque_and_a_simulation_with_it_ends_there() -> None:
    model = AndrewsSqueezer()
    options = Options(scheme="radau", intervals=40)
    solution = solve_design(model.trajectory_problem({}), {"stiffness": STIFFNESS}, options)
    assert solution.phase.resimulation_error < 2e-3
    assert solution.figures["effort"] == pytest.approx(1.02817e-3, rel=1e-3)
    assert solution.phase.values["beta"][-1] == pytest.approx(START["beta"] + 2.0 * np.pi, abs=1e-8)


def test_the_bundled_study_runs_and_its_report_draws_it(tmp_path: Path) -> None:
    changes = ["stages.0.solver.levels.tolerance=2", "stages.0.solver.levels.stabilisation=1",
               "space.tolerance.low=1e-6"]  # fmt: skip
    result = designopt.load(STUDIES / "andrews.yaml", overrides=changes).run(tmp_path / "andrews.study")
    assert len(result.outcomes.X) == 4
    words = [result.problem.space.values(x.tolist())["formulation"] for x in result.outcomes.X]
    best = words[int(np.nanargmin(result.outcomes.objectives[:, 0]))]
    assert best == "joint_functions"
    for part in (andrews_angles, andrews_cost, mechanism_scene):
        section = part(result)
        assert section is not None
        assert section.figures
    error, gap = andrews_cost(result).figures
    assert {line["name"] for line in error.plot["data"]} == {"joint functions", "constraints, 100 1/s"}
    assert [line["name"] for line in gap.plot["data"]] == ["constraints, 100 1/s"]  # joint functions have no gap
    assert all(f.plot["layout"]["yaxis"]["type"] == "log" for f in (error, gap))
    offered = [word for choice in andrews_angles(result).figures[2].choices for word in choice.options]
    assert {"constraints" in word for word in offered} == {True, False}
