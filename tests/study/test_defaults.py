"""What a study file may leave out: names of figures, a population; and what `--set` says of a short file."""

import json

import pytest

from designopt.problem import Problem
from designopt.store import archive
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text

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
    return study_from_text(text, "short.yaml", overrides=overrides, problem_of=Problem.from_study)


def test_figures_without_a_name_go_by_what_they_are():
    study = load(STUDY)
    assert [o.name for o in study.objectives] == ["peak_error", "similarity"]
    assert [c.name for c in study.constraints] == ["toe_clearance"]
    assert load(STUDY, "objectives.peak_error.over=mean").objectives[0].over.plugin.name == "mean"


def test_an_expression_that_is_no_name_needs_one():
    with pytest.raises(StudyError) as refused:
        load(STUDY.replace("minimize: peak_error", "minimize: abs(peak_error)"))
    assert [issue.message for issue in refused.value.issues] == [
        "'name' is missing ('abs(peak_error)' is not a name; give one)"
    ]


@pytest.mark.parametrize(
    ("evaluations", "population"),
    [(1, 2), (5, 5), (30, 12), (100, 12), (200, 17), (1000, 38), (6900, 100), (50000, 100)],
)
def test_a_population_that_is_not_given_fits_the_budget(evaluations, population):
    override = f"budget.evaluations={evaluations}"
    if evaluations < population:
        with pytest.raises(StudyError, match="needs at least 2 designs"):
            load(STUDY, override)
        return
    assert load(STUDY, override).stages[0].solver.settings["population"] == population


def test_a_budget_of_time_alone_leaves_the_population_of_the_solver():
    study = load(STUDY.replace("evaluations: 60", "wall: 1 h"))
    assert study.stages[0].solver.settings["population"] == 100


@pytest.mark.parametrize("name", ["random", "sobol", "halton", "latin_hypercube"])
def test_a_sampler_takes_as_many_designs_as_its_budget_has(name):
    study = load(STUDY.replace("nsga2", name))
    assert study.stages[0].solver.settings["samples"] == 60
    assert load(STUDY.replace("nsga2", f"{name}, samples: 20")).stages[0].solver.settings["samples"] == 20


def test_a_sampler_without_a_number_and_without_a_budget_says_what_is_missing():
    with pytest.raises(StudyError, match="'samples' is missing"):
        load(STUDY.replace("nsga2", "sobol").replace("budget: {evaluations: 60}", ""))


def test_budget_used_before_counts_after_a_resume_with_a_larger_one(tmp_path):
    study = load(STUDY.replace("nsga2", "auto"), "budget.evaluations=400")
    decoded = archive.decode(json.loads(json.dumps(archive.encode(study))), file=lambda digest: b"")
    assert decoded.stages == study.stages
    assert decoded.stages[0].solver.settings["evaluations"] == 400


def test_a_population_that_is_given_stays():
    study = load(STUDY, "solver.population=20")
    assert study.stages[0].solver.settings["population"] == 20


def test_a_stage_of_a_study_without_stages_is_set_otherwise():
    with pytest.raises(StudyError) as refused:
        load(STUDY, "stages.nsga2.budget.evaluations=200")
    (issue,) = refused.value.issues
    assert issue.file == "--set stages.nsga2.budget.evaluations=200"
    assert "set solver.... or budget...., as in budget.evaluations=200" in issue.message
