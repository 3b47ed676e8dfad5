"""The shoulder with its rhythm: published numbers, control, and the map of where a simplification fails."""

import json
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.dynamics.matrices import coriolis_matrix, gravity_force, mass_matrix
from designopt_mechanics.report.rhythm import rhythm_map
from designopt_mechanics.report.shoulder import shoulder_torques
from designopt_mechanics.shoulder.chain import GRAVITY, shoulder
from designopt_mechanics.shoulder.model import ShoulderRhythm, controlled_arm
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Point

import designopt
from designopt.dynamics import Simulator

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.mark.parametrize("rhythm", ["original", "simplified"])
def test_the_shoulder_has_the_published_matrices(skeletal: Path, rhythm: Any) -> None:
    """Specification of skeletal systems, section 9.3."""
    check = json.loads((skeletal / "shoulder_rhythm.json").read_text())["check"]
    s = TreeState.symbols(shoulder(rhythm))
    matrices = ca.Function("m", [s.z, s.dz], [mass_matrix(s), coriolis_matrix(s) @ s.dz, gravity_force(s, GRAVITY)])
    computed = matrices(np.radians(check["q_deg"]), check["qd"])
    for mine, name in zip(computed, ("M", "N_qd", "G"), strict=True):
        expected = np.reshape(check["values"][rhythm][name], mine.shape)
        assert np.abs(np.asarray(mine, float) - expected).max() < 1e-13


def test_the_joint_of_the_humerus_is_where_it_was_published() -> None:
    s = TreeState.symbols(shoulder("original"))
    position = ca.Function("p", [s.z], [s.position(Point("humerus"))])
    joint = np.asarray(position(np.radians([40.0, 60.0, -30.0])), float).ravel()
    assert np.abs(joint - [-0.026725967, 0.006508123, 0.168451245]).max() < 1e-9


@pytest.mark.parametrize(
    ("rhythm", "elevation", "plane", "up", "plane_r", "up_r"),
    [
        ("simplified", 10.0, 1.0336, 0.1238, 0.9927, 0.9996),
        ("simplified", 90.0, 0.1176, 0.4423, 0.9993, 0.8189),
        pytest.param("distributed", 10.0, 1.0336, 0.1392, 0.9927, 0.9996, marks=pytest.mark.slow),
        pytest.param("distributed", 90.0, 0.1176, 0.8400, 0.9993, 0.8187, marks=pytest.mark.slow),
    ],
)
def test_torques_differ_as_in_the_reference_run(
    rhythm: Any, elevation: float, plane: float, up: float, plane_r: float, up_r: float
) -> None:
    """Section 8: quintic of 90 degrees in 1 s, 201 samples, normalised by the range of the reference."""
    outputs, _ = ShoulderRhythm().evaluate({"rhythm": rhythm, "elevation_angle": np.radians(elevation)}, {})
    assert outputs["plane_difference"] == pytest.approx(plane, abs=1e-4)
    assert outputs["elevation_difference"] == pytest.approx(up, abs=1e-4)
    assert outputs["plane_correlation"] == pytest.approx(plane_r, abs=1e-4)
    assert outputs["elevation_correlation"] == pytest.approx(up_r, abs=1e-4)


def test_computed_torque_of_the_true_rhythm_lets_an_initial_error_die_as_designed() -> None:
    """e0 (1 + 10 t) exp(-10 t), section 8: to 2.5e-10 rad."""
    e0, times = np.radians(5.0), np.linspace(0.0, 1.0, 101)
    simulator = Simulator(controlled_arm("original"), rtol=1e-11, atol=1e-13)
    start = [e0, np.pi / 2.0, np.radians(-30.0), 0.0, 0.0, 0.0]
    run = simulator.run(start, times, q={"elevation": np.pi / 2.0, "travel": np.pi / 2.0, "duration": 1.0})
    s = times
    expected = np.pi / 2.0 * (10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5)
    assert np.abs(run.x[:, 0] - expected - e0 * (1.0 + 10.0 * s) * np.exp(-10.0 * s)).max() < 2.5e-10


def test_the_arm_errs_only_where_the_computing_rhythm_is_wrong() -> None:
    model = ShoulderRhythm()
    right, wrong = (model.evaluate({"rhythm": rhythm}, {})[0] for rhythm in ("original", "simplified"))
    assert right["angle_error"] < 1e-6 < 1e-3 < wrong["angle_error"]
    assert right["plane_rms"] == 0.0


def test_the_bundled_study_runs_and_its_report_draws_it(tmp_path: Path) -> None:
    changes = ["stages.0.solver.levels.elevation_angle=2", "stages.0.solver.levels.travel=2"]
    result = designopt.load(STUDIES / "shoulder_rhythm.yaml", overrides=changes).run(tmp_path / "s.study")
    assert len(result.outcomes.X) == 8
    assert result.recommended() is None  # movements are asked about, not chosen
    section = shoulder_torques(result)
    assert section is not None
    assert len(section.figures) == 2
    mapped = rhythm_map(result)
    assert mapped is not None
    assert len(mapped.findings) == 4
    heat = mapped.figures[0].plot["data"][0]
    worst = 100.0 * np.nanmax(result.outcomes.figures["plane_difference"], axis=1)
    words = [result.problem.space.values(x.tolist())["rhythm"] for x in result.outcomes.X]
    assert heat["z"].shape == (2, 2)
    assert np.sort(10.0 ** heat["z"].ravel()) == pytest.approx(
        np.sort(worst[[word == "distributed" for word in words]]), rel=1e-3
    )
