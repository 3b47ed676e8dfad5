"""Tolerances of parameters in a study file, neighbours within them, and robust studies."""

from typing import Annotated, TypedDict

import numpy as np
import pytest

import designopt
from designopt.plugin import Quantity
from designopt.problem import Problem
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text
from designopt.study.neighbours import shifts
from designopt.study.study import Tolerance, Tolerances

STUDY = """
study: near
model: {use: test_wheel, mass: 10 kg}
space:
  stiffness: {low: 1 kN/m, high: 2 kN/m, unit: kN/m, tolerance: 2 %}
  offset: {low: -5 mm, high: 5 mm, unit: mm, tolerance: {deviation: 0.1 mm}}
objectives: [{minimize: peak_error}]
solver: {use: sobol, samples: 8}
"""


def load(text: str, *overrides: str):
    return study_from_text(text, "near.yaml", overrides=overrides, problem_of=Problem.from_study)


def test_tolerances_are_shares_of_the_value_or_amounts_in_its_unit_uniform_or_normal():
    tolerances = load(STUDY).tolerances
    assert tolerances.of == (
        Tolerance("stiffness", 0.02, relative=True, low=np.nextafter(0.0, 1.0) / 1000.0 or 0.0),
        Tolerance("offset", pytest.approx(0.1), normal=True, low=-10.0, high=10.0),
    )
    assert (tolerances.neighbours, tolerances.front, tolerances.assumed) == (None, None, False)


def test_the_report_may_state_them_instead():
    text = STUDY.replace(", tolerance: 2 %", "").replace(", tolerance: {deviation: 0.1 mm}", "")
    tolerances = load(text, "report.tolerances={of: {offset: 100 um}, neighbours: 32, front: 64}").tolerances
    assert tolerances.of == (Tolerance("offset", pytest.approx(0.1), low=-10.0, high=10.0),)
    assert (tolerances.neighbours, tolerances.front) == (32, 64)


def test_without_any_one_percent_is_assumed_of_the_value_or_of_the_largest_one_where_the_range_holds_0():
    text = STUDY.replace(", tolerance: 2 %", "").replace(", tolerance: {deviation: 0.1 mm}", "")
    tolerances = load(text).tolerances
    assert tolerances.assumed
    assert [(t.parameter, t.size, t.relative) for t in tolerances.of] == [
        ("stiffness", 0.01, True),
        ("offset", pytest.approx(0.05), False),
    ]


@pytest.mark.parametrize(
    ("low", "high", "size", "relative"),
    [(-5, -1, 0.01, True), (1, 5, 0.01, True), (-5, 1, 0.05, False), (-1, 5, 0.05, False), (-5, 0, 0.05, False)],
)
def test_the_assumed_tolerance_of_a_range_below_zero_is_that_of_the_range_above(low, high, size, relative):
    text = STUDY.replace("{low: -5 mm, high: 5 mm", f"{{low: {low} mm, high: {high} mm")
    text = text.replace(", tolerance: 2 %", "").replace(", tolerance: {deviation: 0.1 mm}", "")
    (offset,) = (t for t in load(text).tolerances.of if t.parameter == "offset")
    assert (offset.size, offset.relative) == (pytest.approx(size), relative)


@pytest.mark.parametrize("value", [-4.0, 4.0])
def test_neighbours_of_a_value_below_zero_lie_on_both_sides_of_it(value):
    tolerances = Tolerances((Tolerance("offset", 0.05, relative=True, low=-10.0, high=10.0),))
    space = Problem.from_study(load(STUDY)).space
    near = [space.shifted(np.array([[1.5, value]]), shift)[0, 1] for shift in shifts(tolerances, 64, seed=1)]
    assert min(near) == pytest.approx(value - 0.2, abs=0.01)
    assert max(near) == pytest.approx(value + 0.2, abs=0.01)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("space.stiffness.tolerance=3 kg", "incompatible units"),
        ("space.stiffness.tolerance=0", "must be above 0, not 0"),
        ("space.stiffness.tolerance=-2 %", "must be above 0, not -2"),
        ("space.teeth={low: 3, high: 9, type: int, tolerance: 1}", "only a parameter of type real has a tolerance"),
        ("space.kind={values: [steel, rubber], tolerance: 1 %}", "only a parameter of type real has a tolerance"),
        ("report.tolerances={of: {stifness: 1 %}}", "'stifness' is not in space; did you mean 'stiffness'?"),
        ("report.tolerances={of: {offset: 1 %}}", "'offset' has a tolerance in space already"),
        ("report.tolerances={neighbours: -1}", "-1"),
    ],
)
def test_an_invalid_tolerance_is_refused_with_its_place(override, message):
    with pytest.raises(StudyError) as refused:
        load(STUDY, override)
    (issue,) = refused.value.issues
    assert message in issue.message
    assert issue.file == f"--set {override}"


class Oven(TypedDict):
    temperature: Annotated[float, Quantity("K", "of the oven")]


class Heat(TypedDict):
    loss: Annotated[float, Quantity("W", "of heat")]


def oven_study(**tolerance: str) -> designopt.Study:
    @designopt.model("oven", version=1)
    def oven(design: Oven, scenario) -> Heat:
        """An oven."""
        return {"loss": design["temperature"]}

    return designopt.define(
        study="oven",
        model={"use": oven},
        space={"temperature": {"low": "20 degC", "high": "80 degC", **tolerance}},
        objectives=[{"minimize": "loss"}],
        solver={"use": "sobol", "samples": 8},
    )


def test_a_tolerance_of_a_temperature_is_a_difference_not_a_share_of_a_value_with_another_zero():
    assert oven_study(tolerance="2 degC").definition.tolerances.of == (
        Tolerance("temperature", pytest.approx(2.0), low=None, high=None),
    )
    assert oven_study().definition.tolerances.of == (Tolerance("temperature", pytest.approx(0.8), low=None, high=None),)
    with pytest.raises(
        StudyError, match=r"a share of a value in degC depends on its zero: give the tolerance as a difference in degC"
    ):
        oven_study(tolerance="1 %")


def test_neighbours_lie_within_the_tolerances_and_more_of_them_keep_those_before():
    study = load(STUDY)
    space = Problem.from_study(study).space
    X = np.array([[1.5, 2.0], [2.0, 5.0]])
    near = np.stack([space.shifted(X, shift) for shift in shifts(study.tolerances, 64, seed=1)], axis=1)
    off = near - X[:, None]
    assert (np.abs(off[:, :, 0]) <= 0.02 * X[:, None, 0] + 1e-12).all()
    assert np.abs(off[:, :, 0]).max() > 0.019 * 1.5
    assert near[1, :, 1].max() > 5.0  # beyond the bound of the search, not of what the model admits
    assert np.std(off[0, :, 1]) == pytest.approx(0.1, rel=0.1)
    assert np.abs(off[:, :, 1]).max() <= 0.3 + 1e-12
    assert shifts(study.tolerances, 20, seed=1) == shifts(study.tolerances, 64, seed=1)[:20]


def test_neighbours_stay_in_the_models_domain():
    tolerances = Tolerances((Tolerance("offset", 1.0, low=-10.0, high=10.0),))
    space = Problem.from_study(load(STUDY)).space
    near = [space.shifted(np.array([[1.5, 9.9]]), shift)[0, 1] for shift in shifts(tolerances, 32, seed=0)]
    assert max(near) == 10.0


def test_a_robust_study_evaluates_every_design_with_neighbours_in_every_scenario():
    text = STUDY + "scenarios: [{name: light, load: 10}, {name: heavy, load: 20}]\n"
    study = load(text, "robust=3")
    assert [s.name for s in study.scenarios] == [
        "light", "heavy", "light_n1", "heavy_n1", "light_n2", "heavy_n2", "light_n3", "heavy_n3",
    ]  # fmt: skip
    problem, plain = Problem.from_study(study), Problem.from_study(load(text))
    X = np.array([[1.5, 2.0]])
    assert problem.keys(X)[0][:2] == plain.keys(X)[0]
    assert len(set(problem.keys(X)[0])) == 8
    assert problem.without_shifts.digest == plain.digest
    assert study.objectives[0].over.plugin.name == "worst"


def test_a_robust_study_needs_tolerances_that_are_stated():
    text = STUDY.replace(", tolerance: 2 %", "").replace(", tolerance: {deviation: 0.1 mm}", "")
    with pytest.raises(StudyError) as refused:
        load(text, "robust=3")
    assert "needs the tolerances of parameters" in refused.value.issues[0].message


def test_tolerances_are_no_part_of_keys_and_problem():
    text = STUDY.replace(", tolerance: 2 %", "").replace(", tolerance: {deviation: 0.1 mm}", "")
    assert Problem.from_study(load(STUDY)).digest == Problem.from_study(load(text)).digest
