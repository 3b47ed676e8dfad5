"""The front that is kept in results/reference is one, and its designs still give their numbers."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from designopt_knee.model import FourBarKnee, initial_states
from designopt_knee.parameters import EQUATION_PARAMETERS, complete

from designopt.dynamics.simulation.side_by_side import run_alone
from designopt.problem import Problem
from designopt.study.load import study_from_file

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "results" / "reference" / "knee_damper_front.csv"
RUN = TABLE.with_name("knee_damper_run.json")
OBJECTIVES = ("mismatch", "flexion_error")


@pytest.fixture(scope="module")
def front():
    with TABLE.open() as lines:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(lines)]


def test_no_design_of_the_front_is_better_than_another_in_every_objective(front):
    F = np.array([[row[name] for name in OBJECTIVES] for row in front])
    assert len(F) >= 20
    for row in F:
        assert not ((row >= F).all(axis=1) & (row > F).any(axis=1)).any()


def test_the_front_was_made_with_the_present_study_and_version_of_the_model(front):
    """A changed study or model has another digest: run it and `results/reference/knee_damper.py` again."""
    run = json.loads(RUN.read_text(encoding="utf-8"))
    assert run["problem"] == Problem.from_study(study_from_file(ROOT / run["study"])).digest
    assert run["front"] == len(front)
    for chosen in run["chosen"].values():
        assert any(all(row[name] == value for name, value in chosen.items()) for row in front)


@pytest.fixture(scope="module")
def knee():
    model = FourBarKnee(parameter_set="substitute_v2")
    model.prepare()
    return model


def last_cycles(knee, row, cycles):
    """Knee angle (deg) of the last five of so many simulated cycles (5, samples)."""
    leg = complete(knee._base(), {}, {"stiffness": row["stiffness"], "damping_ratio": row["damping_ratio"]})
    strides = knee.strides(np.array([leg[name] for name in EQUATION_PARAMETERS]))
    state, angles = next(iter(initial_states(1))), []
    for _ in range(cycles):
        stride = run_alone(strides(state))
        state = stride.x[-1]
        angles = [*angles[-4:], np.degrees(stride.y[:-1, 0])]
    return np.array(angles)


def check_period(knee, row):
    knee_angle = last_cycles(knee, row, 200)
    misfit = np.sqrt(np.mean((knee_angle[1:] - knee_angle[:-1]) ** 2, axis=1))
    assert misfit.max() < 0.02, row
    assert np.ptp(knee_angle.max(axis=1)) < 0.02, row


def test_designs_of_the_front_are_period_t_after_200_cycles(front, knee):
    """Every tenth; the slow test takes all."""
    for row in front[::10]:
        check_period(knee, row)


@pytest.mark.slow
def test_every_design_of_the_front_is_period_t_after_200_cycles(front, knee):
    for row in front:
        check_period(knee, row)


def test_every_design_of_the_front_is_stable_clears_the_ground_and_gives_its_numbers_again(front, knee):
    for row in front:
        design = {"stiffness": row["stiffness"], "damping_ratio": row["damping_ratio"]}
        outputs, _ = knee.evaluate(design, {}, set())
        assert outputs["period_n"] == 1.0
        assert outputs["floquet_modulus"] < 0.95
        assert outputs["subharmonic"] < 1e-9
        assert outputs["toe_clearance"] > 0.0095
        assert 1.0 - outputs["rho"] == pytest.approx(row["mismatch"], abs=1e-3)
        assert abs(outputs["peak_error"]) == pytest.approx(row["flexion_error"], abs=0.1)
        assert outputs["floquet_modulus"] == pytest.approx(row["floquet_modulus"], abs=0.05)
