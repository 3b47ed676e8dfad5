"""A user's own gait file takes the place of the bundled one."""

import pytest
from designopt_knee.gait import bundled_text

from designopt.problem import Problem
from designopt.study.language.errors import StudyError, render_text
from designopt.study.load import study_from_file

OWN_GAIT = """\
study: own_gait
model:
  use: four_bar_knee
  gait: walk.csv
  stop_when_periodic: true
  parameters: {foot_mass: 900 g, lower_body_angle: 24 deg}
space:
  stiffness: {low: 14, high: 20, unit: kN/m}
  shank_offset: {type: int, low: -3, high: 3, unit: mm}
  damping_ratio: 0.05
scenarios:
  - {name: raised, hip_hike: 1.003}
objectives:
  - {name: mismatch, minimize: 1 - rho}
solver: {use: full_factorial, levels: {stiffness: 3}}
"""


def test_users_gait_and_parameters_reach_the_model(tmp_path):
    (tmp_path / "walk.csv").write_text(bundled_text(), encoding="utf-8")
    (tmp_path / "own.yaml").write_text(OWN_GAIT, encoding="utf-8")
    study = study_from_file(tmp_path / "own.yaml", problem_of=Problem.from_study)
    settings = study.model.settings
    assert settings["gait"].text() == bundled_text()
    assert settings["parameters"]["foot_mass"] == pytest.approx(0.9)
    assert settings["parameters"]["lower_body_angle"] == pytest.approx(0.418879, abs=1e-6)
    design = Problem.from_study(study).space.design([16.0, -2])
    assert design["stiffness"] == pytest.approx(16000.0)
    assert design["shank_offset"] == pytest.approx(-0.002)


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        ("model.gait: hip height", "9.50855959e-01", "0.1"),
        ("model.gait: row 'knee' is missing", "knee,rad", "# knee,rad"),
    ],
)
def test_unusable_gait_file_is_an_error_of_the_study_at_its_place(tmp_path, change, old, new):
    (tmp_path / "walk.csv").write_text(bundled_text().replace(old, new), encoding="utf-8")
    (tmp_path / "own.yaml").write_text(OWN_GAIT, encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        study_from_file(tmp_path / "own.yaml")
    (issue,) = caught.value.issues
    assert issue.line == 4
    assert change in render_text(caught.value.issues)


def test_impossible_parameter_is_an_error_of_the_study(tmp_path):
    (tmp_path / "walk.csv").write_text(bundled_text(), encoding="utf-8")
    (tmp_path / "own.yaml").write_text(OWN_GAIT.replace("foot_mass: 900 g", "foot_mass: -1"), encoding="utf-8")
    with pytest.raises(StudyError, match="foot_mass"):
        study_from_file(tmp_path / "own.yaml")
