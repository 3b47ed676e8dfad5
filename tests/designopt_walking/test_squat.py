"""Standing up from a squat: costs and springs of the specification of predicted walking, section 5 (problem A)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from designopt_muscle.osim.read import read_model
from designopt_walking.bundled import planar_walker, squat_leg
from designopt_walking.models.squat import ARRAYS, SquatToStand
from designopt_walking.programs.gait import GaitError, program_options
from designopt_walking.programs.squat import Squat, squat_to_stand, squat_walker
from single_intervals import interval_differences

import designopt
from designopt.collocation import Program, Solution, TrajectoryProblem, checked
from designopt.plugin import InputFile, InvalidSetting


def stated(squat: Squat, **parameters: float) -> TrajectoryProblem:
    walker, _ = squat_walker(read_model(squat_leg().content), squat)
    return replace(squat_to_stand(walker, squat), parameters=parameters)


def solved(problem: TrajectoryProblem, intervals: int = 25) -> Solution:
    solution = Program(problem, program_options(intervals, 1e-6)).solve()
    assert solution.success
    return solution


@pytest.mark.parametrize(
    ("drive", "parameters", "intervals", "cost", "stiffness"),
    [
        ("torques", {"knee_stiffness": 0.0}, 25, 0.2292160, 0.0),
        ("torques", {}, 25, 0.1051563, 82.955),
        ("muscles", {"knee_stiffness": 0.0}, 50, 0.1974966, 0.0),
        ("muscles", {}, 25, 0.1470708, 74.99),
    ],
)
def test_costs_and_springs_are_those_of_the_reference(  # type: ignore[no-untyped-def]
    drive, parameters, intervals: int, cost: float, stiffness: float
) -> None:
    """A1 without and with a chosen spring, A2, A3; costs may be lower where the constraints hold (A2: by 0.11 %)."""
    solution = solved(stated(Squat(drive=drive), **parameters), intervals)
    assert 0.998 * cost < solution.objective < 1.001 * cost
    assert solution.violation < 1e-5
    assert solution.parameters["knee_stiffness"] == pytest.approx(stiffness, rel=5e-3)


@pytest.mark.parametrize("drive", ["torques", pytest.param("muscles", marks=pytest.mark.slow)])
def test_the_slope_of_the_cost_is_its_difference_between_springs(drive) -> None:  # type: ignore[no-untyped-def]
    problem = stated(Squat(drive=drive), knee_stiffness=40.0)
    program = Program(problem, program_options(25, 1e-8))
    low, middle, high = (program.solve(replace(problem, parameters={"knee_stiffness": k})) for k in (39.5, 40.0, 40.5))
    slope = middle.parameter_multipliers["knee_stiffness"]
    assert slope == pytest.approx(high.objective - low.objective, rel=1e-2)


@pytest.mark.parametrize(
    ("drive", "meshes"), [("torques", (25, 50)), pytest.param("muscles", (25,), marks=pytest.mark.slow)]
)
def test_motions_of_single_intervals_are_within_the_error_estimate(drive, meshes) -> None:  # type: ignore[no-untyped-def]
    """Section 10.4, with LSODA at a relative error of 1e-9. The estimate of an interval in which a control leaves its
    bound is optimistic, here by up to 1.41; twice the intervals reduce the largest error to a fourth and less."""
    squat = Squat(drive=drive)
    walker, _ = squat_walker(read_model(squat_leg().content), squat)
    problem = replace(squat_to_stand(walker, squat), parameters={"knee_stiffness": 40.0})
    largest = []
    for intervals in meshes:
        program = Program(problem, program_options(intervals, 1e-6))
        solution = checked(problem, program.problem_functions, program.solve())
        differences = interval_differences(walker, solution.phase, solution.parameters)
        assert (differences <= 1.5 * solution.phase.error).all()
        assert differences.max() <= solution.error_estimate
        assert solution.phase.segment_errors == pytest.approx(differences, rel=1e-4, abs=1e-6)
        largest.append(differences.max())
    assert [b / a for a, b in pairwise(largest)] == [pytest.approx(0.0, abs=0.25)] * (len(meshes) - 1)


def outcomes(folder: Path, **execution: object) -> list[np.ndarray]:
    """All designs and outputs of a small search."""
    study = designopt.define(
        study="springs",
        seed=5,
        model={"use": "squat_to_stand", "intervals": 8},
        space={"knee_stiffness": {"low": 0, "high": 200, "unit": "N m/rad"}},
        objectives=[{"name": "effort", "minimize": "effort"}, {"name": "control", "minimize": "peak_control"}],
        solver={"use": "nsga2", "population": 3},
        budget={"evaluations": 6},
        execution=execution,
    )
    result = study.run(folder)
    assert len(result.outcomes.X) == 6
    return [result.outcomes.X, *result.outcomes.figures.values()]


@pytest.mark.parametrize(
    "execution", [{"executor": "serial"}, pytest.param({"executor": "dask", "workers": 2}, marks=pytest.mark.slow)]
)
def test_a_search_with_the_same_seed_has_the_same_numbers(tmp_path: Path, execution: dict[str, object]) -> None:
    """Section 10.7: again on one process, and on two workers."""
    first, repeated = outcomes(tmp_path / "first", executor="serial"), outcomes(tmp_path / "again", **execution)
    for values, expected in zip(repeated, first, strict=True):
        np.testing.assert_array_equal(values, expected)


@pytest.mark.slow
def test_the_cost_with_a_chosen_spring_converges_with_the_mesh() -> None:
    """References of the muscle-driven squat on 25, 50 and 100 intervals."""
    problem = stated(Squat(drive="muscles"))
    solutions = [solved(problem, intervals) for intervals in (25, 50, 100)]
    costs = [solution.objective for solution in solutions]
    assert costs == pytest.approx([0.1470708, 0.1469928, 0.1469059], rel=1e-3)
    assert costs == sorted(costs, reverse=True)
    assert costs[2] == pytest.approx(costs[1], rel=1e-3)
    assert [s.parameters["knee_stiffness"] for s in solutions] == pytest.approx([74.99, 75.51, 75.46], rel=5e-3)


def test_the_model_returns_outputs_and_arrays() -> None:
    outputs, arrays = SquatToStand(intervals=20).evaluate({"knee_stiffness": 80.0}, {}, set(ARRAYS))
    assert outputs["effort"] == pytest.approx(0.1052, rel=5e-3)
    assert outputs["device_work"] == pytest.approx(0.5 * 80.0 * 2.0**2, rel=1e-6)
    assert outputs["resimulation_error"] < 2e-2
    assert arrays["angles"][0] == pytest.approx([-0.5, -2.0, -2.0])
    assert np.abs(arrays["speeds"][[0, -1]]).max() < 1e-9


def test_fits_of_paths_that_wrap_are_as_exact_as_stated() -> None:
    _, paths = squat_walker(read_model(squat_leg().content), Squat(drive="muscles"))
    assert {fit.muscle for fit in paths.fits} >= {"rect_fem_r", "vas_int_r", "psoas_r"}
    assert max(fit.length_error for fit in paths.fits) < 0.09e-3
    assert max(fit.arm_error for fit in paths.fits) < 0.4e-3
    assert max(fit.largest_arm_error for fit in paths.fits) < 2.2e-3


def test_a_model_that_is_no_such_leg_is_refused() -> None:
    with pytest.raises(GaitError, match="needs one hip, knee and ankle"):
        squat_walker(read_model(planar_walker().content), Squat())
    with pytest.raises(InvalidSetting, match=r"leg\.osim.*not well-formed"):
        SquatToStand(model=InputFile("leg.osim", b"<x")).check()
