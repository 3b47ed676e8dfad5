"""The canonical form of a problem, and its digest."""

from dataclasses import replace
from pathlib import Path

import pytest
from problem_cases import CONDITIONAL, MIXED, Figures, limit, minimized, over, problem, real

from designopt.canonical_form import canonical_json
from designopt.plugin import InputFile, Use, find, model, solver
from designopt.problem import Problem
from designopt.study.study import Scenario, Stage, StudyDefinition

# ----------------------------------------------------------------------------------------------------- canonical form


def test_the_canonical_form_is_plain_data_and_does_not_change():
    p = problem(
        *MIXED.parameters,
        settings={"data": InputFile("a.csv", b"1,2"), "gain": float("inf")},
        relations=("x<=2*k",),
        objectives=(minimized("1 - f", aggregation=over("cvar", level=0.8)), minimized("g", "maximize")),
        constraints=(limit("f", minimum=-1, maximum=2.0),),
    )
    assert p.digest == "6ed2d947cf139e8336cc70ea27c2e719"
    text = canonical_json(p.canonical())
    assert '"relations":["x <= 2*k"]' in text
    assert "a.csv" not in text


def test_equal_numbers_have_one_canonical_form():
    a = problem(real("x", 0, 1), constraints=(limit("f", maximum=1),))
    b = problem(real("x", 0.0, 1.0), constraints=(limit("f", maximum=1.0),))
    assert a.digest == b.digest


@pytest.mark.parametrize(
    "changed",
    [
        problem(real("x", 0.0, 2.0)),
        problem(real("x", 0.5, 1.0, scale="log")),
        problem(real("x", unit="m")),
        problem(relations=("x <= 0.5",)),
        problem(objectives=(minimized("f", "maximize"),)),
        problem(objectives=(minimized("f + 1"),)),
        problem(objectives=(minimized("f", aggregation=over("mean")),)),
        problem(constraints=(limit("g", maximum=1.0),)),
        problem(constraints=(limit("g", minimum=1.0),)),
        problem(scenarios=(Scenario("other"),)),
        problem(settings={"gain": 3.0}),
        problem(gradients=True),
        problem(seed=0),
    ],
)
def test_another_question_has_another_digest(changed):
    assert changed.digest != problem().digest


def test_conditions_belong_to_the_canonical_form_where_there_are_some():
    always = (CONDITIONAL[0], replace(CONDITIONAL[1], when={}), CONDITIONAL[2])
    assert problem(*CONDITIONAL).digest != problem(*always).digest
    assert problem(*CONDITIONAL).canonical()["space"][1]["when"] == {"kind": ["spring"]}
    assert "when" not in canonical_json(problem(*always).canonical())


def test_nan_is_not_data():
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": float("nan")})


def test_a_problem_is_the_part_of_a_study_that_decides_what_a_number_means(tmp_path):
    parts = {
        "name": "s",
        "model": Use(find("model", "problem_test")),
        "space": (real("x"),),
        "objectives": (minimized("f"),),
        "stages": (),
    }
    study = StudyDefinition(**parts, seed=1, title="one")
    assert (
        Problem.from_study(study).digest
        == Problem.from_study(StudyDefinition(**parts, seed=2, text="other", path=Path(tmp_path))).digest
    )
    assert Problem.from_study(study).output_names == ("f", "g")


@model("problem_test_random", version=1)
def problem_test_random(design, scenario, rng) -> Figures:
    """Never evaluated."""
    raise AssertionError("declared to be checked, never to be run")


@model("problem_test_derived", version=1)
class ProblemTestDerived:
    """Never evaluated."""

    def evaluate(self, design, scenario) -> Figures:
        raise AssertionError("declared to be checked, never to be run")

    def gradient(self, design, scenario):
        raise AssertionError("declared to be checked, never to be run")


@solver("problem_test_steep", version=1)
class ProblemTestSteep:
    """Never run."""

    wants_gradient = True

    def solve(self, problem, evaluate, rng, start):
        raise AssertionError("declared to be checked, never to be run")


def study_of(model: str, *stages: Stage, seed: int = 5) -> StudyDefinition:
    space, objectives = (real("x"),), (minimized("f"),)
    return StudyDefinition("s", Use(find("model", model)), space, objectives, stages, seed=seed)


def test_the_seed_of_the_study_matters_to_random_models_only():
    assert Problem.from_study(study_of("problem_test_random")).seed == 5
    assert Problem.from_study(study_of("problem_test")).seed is None


def test_derivatives_are_recorded_when_a_solver_wants_them_and_the_model_has_them():
    steep = Stage("steep", Use(find("solver", "problem_test_steep")))
    blind = Stage("blind", Use(find("solver", "sobol"), {"samples": 4}))
    assert Problem.from_study(study_of("problem_test_derived", blind, steep)).gradients
    assert not Problem.from_study(study_of("problem_test_derived", blind)).gradients
    assert not Problem.from_study(study_of("problem_test", steep)).gradients
