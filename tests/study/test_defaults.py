"""What a study file may leave out: names of figures, a population; and what `--set` says of a short file."""

import pytest

from designopt.problem import Problem
from designopt.study.language.errors import StudyError
from designopt.study.load import load_text

STUDY = """
study: short
model: {use: test_wheel, mass: 10 kg}
space: {stiffness: [1000, 2000]}
objectives:
  - minimize: peak_error
  - {name: similarity, maximize: rho}
constraints:
  - {of: toe_clearance, min: 5 mm}
solver: {use: nsga2}
budget: {evaluations: 60}
"""


def load(text: str, *overrides: str):
    return load_text(text, "short.yaml", overrides=overrides, problem_of=Problem.of)


def test_figures_without_a_name_go_by_what_they_are():
    study = load(STUDY)
    assert [o.name for o in study.objectives] == ["peak_error", "similarity"]
    assert [c.name for c in study.constraints] == ["toe_clearance"]
    assert load(STUDY, "objectives.peak_error.over=mean").objectives[0].over.plugin.name == "mean"


def test_an_expression_that_is_no_name_needs_one():
    with pytest.raises(StudyError) as refused:
        load(STUDY.replace("minimize: peak_error", "minimize: abs(peak_error)"))
    assert [issue.message for issue in refused.value.issues] == [
        "'name' is missing ('abs(peak_error)' is no name itself, give it one)"
    ]


@pytest.mark.parametrize(("evaluations", "population"), [(5, 5), (30, 8), (60, 12), (499, 99), (500, 100), (5000, 100)])
def test_a_population_that_is_not_given_has_five_generations_in_its_budget(evaluations, population):
    study = load(STUDY, f"budget.evaluations={evaluations}")
    assert study.stages[0].solver.settings["population"] == population


def test_a_population_that_is_given_stays():
    study = load(STUDY, "solver.population=20")
    assert study.stages[0].solver.settings["population"] == 20


def test_a_stage_of_a_study_without_stages_is_set_otherwise():
    with pytest.raises(StudyError) as refused:
        load(STUDY, "stages.nsga2.budget.evaluations=200")
    (issue,) = refused.value.issues
    assert issue.file == "--set stages.nsga2.budget.evaluations=200"
    assert "set solver.... or budget...., as in budget.evaluations=200" in issue.message
