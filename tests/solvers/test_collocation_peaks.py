"""Largest values on the way as limits and objectives of programs, and the check of the mesh."""

import re

import numpy as np
import pytest

import designopt
from designopt.collocation import Constraint, Options, Peak, Phase, TrajectoryProblem, peak_values, solve, with_peaks
from designopt.dynamics import build_system
from designopt.study.language.errors import StudyError

SPACE = {
    "stiffness": {"low": "2 kN/m", "high": "200 kN/m", "unit": "N/m", "scale": "log"},
    "damping": {"low": 100, "high": 20000, "unit": "N s/m", "scale": "log"},
}
ROOM = {"name": "room", "of": "peak_travel", "max": "60 mm"}


def study(**sections):
    defaults = {
        "study": "peaks",
        "model": {"use": "quarter_car"},
        "space": SPACE,
        "objectives": [{"name": "ride", "minimize": "cost"}],
        "solver": {"use": "collocation", "intervals": 40},
        "execution": {"executor": "serial"},
    }
    return designopt.define(**{**defaults, **sections})


def run(folder, **sections):
    result = study(**sections).run(folder / "s.study")
    (program,) = result.programs()
    return result, program.figures


def test_a_limit_on_a_peak_is_kept_by_the_program_and_by_the_models_own_evaluation(tmp_path):
    result, figures = run(tmp_path, constraints=[ROOM])
    assert figures["peak_travel"] == pytest.approx(0.06 * (1.0 - 1e-4), rel=1e-4)  # active, but for the margin
    assert result.outcomes.feasible.tolist() == [True]
    table = result.to_pandas()
    assert table["peak_travel"][0] == pytest.approx(figures["peak_travel"], rel=1e-4)
    assert table["ride"][0] == pytest.approx(figures["program(objective)"], rel=1e-4)
    free, _ = run(tmp_path / "free")
    assert free.to_pandas()["peak_travel"][0] > 0.06  # the limit matters


@pytest.mark.slow
def test_no_suspension_of_a_grid_is_better_than_the_program_with_a_limited_peak(tmp_path):
    result, _ = run(tmp_path, constraints=[ROOM])
    best = result.outcomes.objectives[0, 0]
    X = result.outcomes.X[0]
    for factors in [(a, b) for a in (0.9, 1.0, 1.1) for b in (0.9, 1.0, 1.1)]:
        values = {"stiffness": X[0] * factors[0], "damping": X[1] * factors[1]}
        outputs = study().evaluate(values).outputs
        assert outputs["peak_travel"] > 0.06 * (1.0 - 2e-4) or outputs["cost"] >= best * (1.0 - 1e-4)


def test_a_peak_is_minimised_in_the_worst_of_scenarios(tmp_path):
    result, figures = run(
        tmp_path,
        objectives=[{"name": "soft", "minimize": "peak_acceleration", "over": "worst"}],
        constraints=[{**ROOM, "over": "worst"}],
        scenarios=[{"name": "empty"}, {"name": "loaded", "body_mass": 450}],
    )
    worst = max(figures["empty: peak_acceleration"], figures["loaded: peak_acceleration"])
    assert worst == pytest.approx(figures["program(objective)"], rel=1e-4)
    assert result.outcomes.objectives[0, 0] == pytest.approx(worst, rel=1e-3)
    assert result.outcomes.feasible.tolist() == [True]


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"constraints": [{"name": "room", "of": "peak_travel", "min": "60 mm"}]}, "constraint 'room' uses the"),
        ({"constraints": [{"name": "room", "of": "0.1 [m] - peak_travel", "max": "60 mm"}]}, "it can only be lowered"),
        ({"constraints": [{"name": "room", "of": "peak_travel**2", "max": "1 m^2"}]}, "it can only be lowered"),
        ({"objectives": [{"name": "room", "maximize": "peak_travel"}]}, "objective 'room' uses the largest value"),
    ],
)
def test_a_peak_that_no_cost_or_limit_reduces_is_refused(section, message):
    with pytest.raises(StudyError, match=re.escape(message)):
        study(**section)


def falling():
    """A stone thrown up from 1 m with 3 m/s: height 1 + 3 t - g t^2/2."""
    system = build_system(
        "stone",
        lambda v: {"height": v.speed, "speed": v.push / v.mass - v.gravity},
        states={"height": "m", "speed": "m/s"},
        controls={"push": "N"},
        data={"mass": "kg", "gravity": "m/s^2"},
    )
    phase = Phase(
        system,
        tf=0.6,
        bounds={"push": (0.0, 0.0)},
        initial={"height": 1.0, "speed": 3.0},
        data={"mass": 1.0, "gravity": 9.81},
    )
    ways = {"top": "largest", "bottom": "smallest", "reach": "size"}
    peaks = {name: Peak(lambda v: v["height"] - 1.2, extremum, "m") for name, extremum in ways.items()}
    return TrajectoryProblem([phase], cost=lambda e: e.tf, peaks=peaks)


@pytest.mark.parametrize(
    ("name", "sign", "expected"),
    [
        ("top", 1.0, 3.0**2 / (2 * 9.81) - 0.2),
        ("bottom", -1.0, -0.2),
        ("reach", 1.0, 3.0**2 / (2 * 9.81) - 0.2),
    ],
)
def test_peaks_are_those_of_the_parabola(name, sign, expected):
    problem = with_peaks(falling(), [name])
    problem = TrajectoryProblem(
        problem.phases, cost=lambda e: sign * problem.figures[name](e), figures=problem.figures, peaks=problem.peaks
    )
    solution = solve(problem, Options(intervals=60))
    assert solution.success
    assert solution.figures[name] == pytest.approx(expected, abs=1e-4)  # points are 5 ms apart
    assert peak_values(problem, solution)[name] == pytest.approx(expected, abs=1e-4)


def test_a_peak_is_largest_smallest_or_a_size():
    with pytest.raises(ValueError, match="a peak must be of one of largest, smallest, size, not of 'biggest'"):
        Peak(lambda v: v["height"], extremum="biggest")


def test_a_peak_that_nothing_presses_on_is_read_from_the_motion():
    problem = with_peaks(falling(), ["top"])
    problem = TrajectoryProblem(
        problem.phases,
        cost=lambda e: (problem.figures["top"](e) - 2.0) ** 2,
        figures=problem.figures,
        peaks=problem.peaks,
        constraints={"some room": Constraint(lambda e: problem.figures["top"](e), 0.0, 3.0)},
    )
    solution = solve(problem, Options(intervals=60))
    assert solution.figures["top"] == pytest.approx(2.0, abs=1e-4)
    assert peak_values(problem, solution)["top"] == pytest.approx(3.0**2 / (2 * 9.81) - 0.2, abs=1e-4)


def test_a_coarse_mesh_is_refined_until_the_model_agrees(tmp_path):
    coarse = {"use": "collocation", "intervals": 10}
    result, figures = run(tmp_path / "checked", solver=coarse)
    assert figures["program(error_estimate)"] <= 1e-4
    assert figures["program(objective)"] == pytest.approx(result.outcomes.objectives[0, 0], rel=1e-4)
    result, figures = run(tmp_path / "not", solver={**coarse, "mesh_check": 0})
    assert figures["program(error_estimate)"] > 0.1
    apart = np.abs(figures["program(objective)"] / result.outcomes.objectives[0, 0] - 1.0)
    assert apart > 1e-2
