"""What a study file says of where the range of a parameter ends."""

import pytest

from designopt.problem import Problem
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text

STUDY = """
study: near
model: {use: test_wheel, mass: 10 kg}
space:
  stiffness:
    low: 1 kN/m
    high: 2 kN/m
    why: >-
      softer springs bottom out;
      stiffer ones are not sold.
  offset: {low: -5 mm, high: 5 mm}
objectives: [{minimize: peak_error}]
solver: {use: sobol, samples: 8}
"""


def load(text, *overrides):
    return study_from_text(text, "near.yaml", overrides=overrides, problem_of=Problem.from_study)


def test_the_reason_is_one_line_and_no_part_of_the_problem():
    stiffness, offset = load(STUDY).space
    assert stiffness.why == "softer springs bottom out; stiffer ones are not sold"
    assert offset.why == ""
    assert Problem.from_study(load(STUDY)).digest == Problem.from_study(load(STUDY, "space.stiffness.why=other")).digest


@pytest.mark.parametrize("section", ["{value: 1500, why: sold}", "{values: [1500, 1600], why: sold}"])
def test_a_parameter_without_a_range_has_no_reason_for_its_bounds(section):
    with pytest.raises(StudyError, match=r"says why a range ends where it does; this is (fixed|choice) and has none"):
        load(STUDY, f"space.stiffness={section}")


def test_a_reason_is_a_text():
    with pytest.raises(StudyError, match=r"space\.stiffness\.why"):
        load(STUDY, "space.stiffness.why=3")
