"""Limits of different constraints that no design can keep together are a mistake of the study."""

import re

import pytest

from designopt.problem import Problem
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text

STUDY = """study: near
model: {use: test_wheel, mass: 10 kg}
space: {stiffness: {low: 1 kN/m, high: 2 kN/m}, offset: {low: -5 mm, high: 5 mm}}
objectives: [{minimize: peak_error}]
constraints:
  - {name: wide, of: toe_clearance, min: 5 cm}
  - {name: small, of: " toe_clearance", max: 38 mm}
solver: {use: sobol, samples: 8}
"""


def load(text, *overrides):
    return study_from_text(text, "near.yaml", overrides=overrides, problem_of=Problem.from_study)


def refused(text, *overrides):
    with pytest.raises(StudyError) as caught:
        load(text, *overrides)
    (issue,) = caught.value.issues
    return issue


def test_both_positions_and_both_limits_are_named_as_they_are_written():
    issue = refused(STUDY)
    assert (issue.line, issue.column, issue.path) == (7, 46, "constraints.1.max")
    assert issue.message == (
        "no design satisfies both: 'toe_clearance' must be at most 38 mm here and at least 5 cm in 'wide' "
        "(near.yaml:6:42)"
    )


def test_an_equality_beyond_a_limit_is_one_too():
    issue = refused(STUDY.replace("min: 5 cm", "equals: 40 mm"))
    assert "at most 38 mm here and equal to 40 mm in 'wide'" in issue.message


@pytest.mark.parametrize(
    ("what", "by"),
    [
        ("max: 38 mm", "max: 5 cm"),  # met by one value
        ("min: 5 cm", "equals: 0.0380000001"),  # an equality holds to within a millionth
        ("of: toe_clearance", "of: 2*toe_clearance"),
        ("max: 38 mm", "min: 38 mm"),
    ],
)
def test_limits_that_a_value_keeps_are_none(what, by):
    assert len(load(STUDY.replace(what, by)).constraints) == 2


TWO = "scenarios: [{name: calm}, {name: storm}]\n"


def test_with_several_scenarios_limits_over_different_aggregations_are_left_alone():
    assert "no design satisfies both" in refused(STUDY + TWO).message
    assert len(load(STUDY.replace("max: 38 mm", "max: 38 mm, over: mean") + TWO).constraints) == 2
    low = "over: {use: quantile, level: 0.2}"  # four fifths may lie above 5 cm, one fifth below 38 mm
    text = STUDY.replace("min: 5 cm", f"min: 5 cm, {low}").replace("max: 38 mm", f"max: 38 mm, {low}")
    assert len(load(text + TWO).constraints) == 2


def test_a_limit_from_the_command_line_is_reported_with_the_position_in_the_file():
    issue = refused(STUDY.replace("max: 38 mm", "max: 6 cm"), "constraints.1.max=4 cm")
    assert issue.file == "--set constraints.1.max=4 cm"
    assert re.search(r"at most 4 cm here and at least 5 cm in 'wide' \(near\.yaml:6:42\)$", issue.message)
