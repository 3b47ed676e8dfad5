"""Conditional parameters in a study file: what `when` may say, and every mistake at its place."""

import numpy as np
import pytest

from designopt.problem import Problem
from designopt.space import Space
from designopt.study.language.errors import StudyError

STRESS = "when: {criterion: entropy}}"
TERMS = "when: {criterion: [entropy, min_max]}}"
LEVEL = "when: {terms: [3, 4]}}"

# what is replaced, by what, path, piece of the message
MISTAKES = [
    (
        STRESS,
        "when: {«criterio»: entropy}}",
        "space.stress.when.criterio",
        "is not in space; did you mean 'criterion'?",
    ),
    (STRESS, "when: {criterion: «entropi»}}", "space.stress.when.criterion", "'criterion' cannot be entropi; did you"),
    (STRESS, "when: {criterion: «sum»}}", "space.stress.when.criterion", "(known: cubed, entropy, min_max)"),
    (STRESS, "when: {criterion: «7»}}", "space.stress.when.criterion", "'criterion' cannot be 7"),
    (STRESS, "when: «{}»}", "space.stress.when", "names no parameter"),
    (STRESS, "when: «entropy»}", "space.stress.when", "expected a mapping, not the word 'entropy'"),
    (
        STRESS,
        "when: {criterion: «{is: entropy}»}}",
        "space.stress.when.criterion",
        "expected a word or a number or a list",
    ),
    (STRESS, "when: {«level»: 0.5}}", "space.stress.when.level", "a condition needs one of type choice, int or fixed"),
    (STRESS, "«wen»: {criterion: entropy}}", "space.stress", "unknown key 'wen'; did you mean 'when'?"),
    (TERMS, "when: {criterion: «[]»}}", "space.terms.when.criterion", "at least one value is needed"),
    (TERMS, "when: {criterion: [entropy, «entropy»]}}", "space.terms.when.criterion.1", "value entropy is given twice"),
    (TERMS, "when: {criterion: [entropy, «minmax»]}}", "space.terms.when.criterion.1", "did you mean 'min_max'?"),
    (TERMS, "«when»: {terms: 2}}", "space.terms.when", "circular conditions: terms -> terms"),
    (LEVEL, "when: {terms: [3, «5»]}}", "space.level.when.terms.1", "it is an integer from 1 to 4"),
    (LEVEL, "when: {terms: «2.5»}}", "space.level.when.terms", "'terms' cannot be 2.5"),
    (LEVEL, "when: {terms: «true»}}", "space.level.when.terms", "'terms' cannot be true"),
    (LEVEL, "when: {terms: «many»}}", "space.level.when.terms", "'terms' cannot be many"),
    (LEVEL, "when: {terms: «3 kg»}}", "space.level.when.terms", "incompatible units"),
]


@pytest.mark.parametrize(
    ("find", "replacement", "path", "fragment"), MISTAKES, ids=[f"{i}" for i, _ in enumerate(MISTAKES)]
)
def test_a_mistake_is_reported_once_at_its_place(refused_once, full_text, find, replacement, path, fragment) -> None:
    refused_once(full_text, find, replacement, path, fragment)


def test_an_input_that_the_model_needs_cannot_be_conditional(refused_once) -> None:
    text = (
        "study: s\nmodel: {use: test_wheel, mass: 3}\nspace:\n  kind: {values: [steel, rubber]}\n"
        "  stiffness: {low: 1, high: 2}\nobjectives: [{name: a, minimize: rho}]\nsolver: {use: test_grid}\n"
    )
    message = (
        "model 'test_wheel' needs 'stiffness' in every design; "
        "it cannot be conditional unless its annotation there is NotRequired[...]"
    )
    entry = "high: 2, «when»: {kind: steel}}"
    refused_once(text, "high: 2}", entry, "space.stiffness.when", message)


def test_a_circle_is_reported_once_at_its_first_parameter(mistakes) -> None:
    text = (
        "study: s\nmodel: {use: test_open}\nspace:\n"
        "  a: {values: [1, 2], when: {b: 1}}\n  b: {values: [1, 2], when: {c: 1}}\n"
        "  c: {values: [1, 2], when: {a: 1}}\n  d: {low: 0, high: 1, when: {c: 2}}\n"
        "objectives: [{name: f, minimize: f}]\nsolver: {use: test_grid}\n"
    )
    (issue,) = mistakes(text)
    assert (issue.path, issue.line) == ("space.a.when", 4)
    assert issue.message == "circular conditions: a -> b -> c -> a"


def test_conditions_are_values_of_their_parameters(load, full_text) -> None:
    study = load(full_text)
    assert {p.name: dict(p.when) for p in study.space} == {
        "criterion": {},
        "stress": {"criterion": ("entropy",)},
        "terms": {"criterion": ("entropy", "min_max")},
        "level": {"terms": (3, 4)},
    }


@pytest.mark.parametrize(
    ("controller", "when", "expected"),
    [
        ("stiffness: {values: [10 kN/m, 20 kN/m]}", "{stiffness: 10 kN/m}", (10_000.0,)),
        ("stiffness: {values: [10, 20], unit: kN/m}", "{stiffness: 10}", (10.0,)),
        ("stiffness: {values: [10, 20], unit: kN/m}", "{stiffness: 20000 N/m}", (20.0,)),
        ("stiffness: 10 kN/m", "{stiffness: 10000}", (10_000.0,)),
        ("stiffness: [1, 2], teeth: {type: int, low: 1, high: 9}", "{teeth: [2, 3.0]}", (2, 3)),
        ("stiffness: [1, 2], kind: {values: [steel, rubber]}", "{kind: [rubber]}", ("rubber",)),
    ],
)
def test_the_value_of_a_condition_may_carry_a_unit(load, controller, when, expected) -> None:
    text = (
        "study: s\nmodel: {use: test_wheel, mass: 3}\n"
        f"space: {{{controller}, damping: {{low: 0, high: 1, when: {when}}}}}\n"
        "objectives: [{name: a, minimize: rho}]\nsolver: {use: test_grid}\n"
    )
    *_, damping = load(text).space
    ((admitted),) = damping.when.values()
    assert admitted == expected
    assert [type(v) for v in admitted] == [type(v) for v in expected]


def test_true_and_one_are_different_values_of_a_choice(load) -> None:
    text = (
        "study: s\nmodel: {use: test_open}\nspace:\n  c: {values: [1, true]}\n  x: {low: 0, high: 1, when: {c: true}}\n"
        "objectives: [{name: f, minimize: f}]\nsolver: {use: test_grid}\n"
    )
    assert load(text).space[1].when == {"c": (True,)}


def test_a_condition_that_can_never_hold_is_refused(load) -> None:
    text = (
        "study: s\nmodel: {use: test_open}\nspace:\n  c: min_max\n  x: {low: 0, high: 1, when: {c: entropy}}\n"
        "objectives: [{name: f, minimize: f}]\nsolver: {use: test_grid}\n"
    )
    with pytest.raises(StudyError, match=r"space\.x\.when\.c: 'c' cannot be entropy; it is fixed at min_max"):
        load(text)


def test_a_mistake_in_the_controller_is_not_told_of_its_condition_too(mistakes, full_text) -> None:
    issues = mistakes(full_text.replace("values: [cubed, entropy, min_max]", "values: [cubed, entropi, min_max]"))
    assert [issue.path for issue in issues] == ["space.criterion.values.1"]


def test_a_fixed_parameter_may_be_conditional(load) -> None:
    text = (
        "study: s\nmodel: {use: test_open}\nspace:\n  c: {values: [a, b]}\n  x: {value: 3, when: {c: a}}\n"
        "objectives: [{name: f, minimize: f}]\nsolver: {use: test_grid}\n"
    )
    space = Space(load(text).space)
    assert [space.values([j]) for j in (0, 1)] == [{"c": "a", "x": 3}, {"c": "b"}]


def test_the_space_of_a_study_knows_what_is_active(load, full_text) -> None:
    problem = Problem.from_study(load(full_text))
    X = np.array([[0.0, 50.0, 4.0, 0.5], [1.0, 50.0, 4.0, 0.5], [2.0, 50.0, 2.0, 0.5]])
    assert problem.space.active(X).tolist() == [
        [True, False, False, False],
        [True, True, True, True],
        [True, False, True, False],
    ]
    assert problem.space.design(X[0]) == {"criterion": "cubed"}
