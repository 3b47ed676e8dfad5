"""Rates of controls and held controls, asked for in a study of the solver collocation."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from designopt import define
from designopt.collocation import Options, Rate, solve, with_rates
from designopt.plugin import find, load_file
from designopt.problem import Problem
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text

MODEL = Path(__file__).with_name("moved_block.py")


@pytest.fixture(autouse=True)
def _model() -> None:
    load_file(str(MODEL), MODEL.read_bytes())


def run(folder: Path, solver: dict[str, Any], **sections: Any) -> Any:
    study = define(
        **{
            "study": "moved",
            "model": {"use": "moved_block"},
            "space": {"duration": [0.5, 1.0]},
            "objectives": [{"name": "effort", "minimize": "effort"}],
            "execution": {"executor": "serial"},
            "solver": {"use": "collocation", **solver},
            **sections,
        }
    )
    return study.run(folder / "s")


def sampled_optimum(pieces: int) -> float:
    """Least sum of u_k^2 h for a unit mass that moves 1 m from rest to rest in 1 s: a problem of least norm."""
    h = 1.0 / pieces
    left = 1.0 - h * (np.arange(pieces) + 0.5)
    u = np.linalg.pinv(np.array([np.full(pieces, h), h * left])) @ [0.0, 1.0]
    return float(u @ u) * h


def test_a_held_force_costs_what_a_sampled_controller_spends(tmp_path: Path) -> None:
    result = run(tmp_path, {"held": {"force": 6}, "intervals": 12})
    (record,) = result.programs()
    assert record.status == "solved"
    assert record.figures["program(objective)"] == pytest.approx(sampled_optimum(6), rel=1e-7)
    force = record.solution.phase.values["force"][1:].reshape(6, -1)
    assert np.ptp(force, axis=1).max() < 1e-9
    # the model's own motion has a free force, and the run says why the two differ
    (event,) = [e["text"] for e in result.events if e["kind"] == "objective_differs"]
    assert "the model's own motions do not include the solver's 'rates' and 'held'" in event
    assert result.outcomes.objectives[0, 0] == pytest.approx(12.0, rel=1e-6)  # 12 m^2 d^2 / T^3


def test_the_shortest_move_with_a_limited_rate_takes_the_time_of_a_bounded_jerk(tmp_path: Path) -> None:
    """Jerk +j, -j, -j, +j for a quarter of the time each: T = (32 d / j)^(1/3)."""
    result = run(
        tmp_path,
        {"rates": {"force": {"low": -4.0, "high": 4.0}}, "intervals": 40},
        model={"use": "moved_block", "begins_slack": True},
        space={"duration": {"low": 0.5, "high": 10.0, "unit": "s"}},
        objectives=[{"name": "time", "minimize": "time"}],
    )
    (record,) = result.programs()
    assert record.figures["program(objective)"] == pytest.approx(2.0, rel=1e-6)
    assert record.figures["optimum(duration)"] == pytest.approx(2.0, rel=1e-6)
    assert "program(rate_penalty)" not in record.figures


def test_a_force_that_is_linear_on_each_piece_has_a_held_rate(tmp_path: Path) -> None:
    result = run(tmp_path, {"rates": {"force": {}}, "held": {"force_rate": 2}, "intervals": 10})
    (record,) = result.programs()
    # a line through both halves is the optimum without any pieces: 6 - 12 t
    assert record.figures["program(objective)"] == pytest.approx(12.0, rel=1e-8)
    assert record.solution.phase.values["force_rate"][1:] == pytest.approx(-12.0, rel=1e-6)


def test_the_penalty_of_rates_is_a_mean_over_scenarios_and_is_distinguished_from_the_objective(tmp_path: Path) -> None:
    loads = [{"name": "light", "mass": 1.0}, {"name": "heavy", "mass": 2.0}]
    result = run(
        tmp_path,
        {"rates": {"force": {"penalty": 0.05}}, "intervals": 20},
        scenarios=loads,
        objectives=[{"name": "effort", "minimize": "effort", "over": "mean"}],
    )
    (record,) = result.programs()
    model = find("model", "moved_block").target()
    alone = []
    for mass in (1.0, 2.0):
        problem = replace(model.trajectory_problem({"mass": mass}), parameters={"duration": 1.0})
        alone.append(solve(with_rates(problem, {"force": Rate(penalty=0.05)}), Options(intervals=20)))
    effort = np.mean([solution.figures["effort"] for solution in alone])
    assert record.figures["program(objective)"] == pytest.approx(effort, rel=1e-7)
    paid = np.mean([solution.objective - solution.figures["effort"] for solution in alone])
    assert record.figures["program(rate_penalty)"] == pytest.approx(paid, rel=1e-7)


TEXT = """\
study: moved
model: {use: moved_block}
space: {duration: [0.5, 1]}
objectives: [{name: effort, minimize: effort}]
solver: {use: collocation, SETTING}
"""


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("rates: {forse: {high: 1}}", "no such control; did you mean 'force'?"),
        ("held: {torque: 4}", "no such control (it has force)"),
        ("rates: {force: {low: 1, high: -1}}", "the limits of a rate are 1 to -1"),
        ("rates: {force: {penalty: -1}}", "0"),
        ("held: {force: 0}", "1"),
        ("held: {force: 4}, scheme: hermite_simpson", "use radau"),
        ("held: {force: 1000000000}", "at most 100000"),
        ("confidence: 0.9", "is not fitted to measurements"),
    ],
)
def test_invalid_statements_about_controls_are_refused_with_their_place(setting: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        study_from_text(TEXT.replace("SETTING", setting), "moved.yaml", problem_of=Problem.from_study)
    (issue,) = caught.value.issues
    assert issue.line == 5
    assert issue.column > 28
    assert message in issue.message
