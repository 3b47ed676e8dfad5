"""The problem: search coordinates, units, relations, evaluation keys, canonical form, and how figures are judged."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from designopt.canonical import canonical_json
from designopt.plugin import InputFile, Quantity, Use, find, model, objective, solver
from designopt.problem import Outcomes, Problem
from designopt.space import Space
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import DesignVariable, Objective, Scenario, Stage, StudyConstraint, StudyDefinition


class Figures(TypedDict):
    f: float
    g: float


@dataclass(frozen=True)
class Solver:
    """A group of settings inside a setting."""

    tolerance: float = 1e-8


@model("problem_test", version=3)
def problem_test(
    design, scenario, *, gain: float = 2.0, data: InputFile | None = None, solver: Solver = Solver()
) -> Figures:
    """Never evaluated."""
    raise AssertionError("declared to be checked, never to be run")


@objective("problem_test_peak", version=1)
def problem_test_peak(f, *, window: int = 3) -> Annotated[float, Quantity("", "peak")]:
    """Never evaluated."""
    raise AssertionError("declared to be checked, never to be run")


def over(name: str = "worst", **settings) -> Use:
    return Use(find("aggregation", name), settings)


def minimized(text: str, direction="minimize", aggregation: Use | None = None) -> Objective:
    return Objective(text, Expression.parse(text), direction, aggregation or over())


def limit(text: str, aggregation: Use | None = None, **limits: float) -> StudyConstraint:
    return StudyConstraint("limit", Expression.parse(text), aggregation or over(), **limits)


def real(name: str, low: float = 0.0, high: float = 1.0, **options) -> DesignVariable:
    return DesignVariable(name, "real", low, high, **options)


def problem(*parameters: DesignVariable, settings=None, relations=(), **options) -> Problem:
    return Problem(
        model=options.pop("model", Use(find("model", "problem_test"), settings or {})),
        space=Space(parameters or (real("x"),), tuple(Expression.parse(r) for r in relations)),
        scenarios=options.pop("scenarios", (Scenario("nominal"),)),
        objectives=options.pop("objectives", (minimized("f"),)),
        **options,
    )


# ------------------------------------------------------------------------------------------------- search coordinates

MIXED = Space(
    (
        real("x", -1.0, 2.0),
        real("k", 0.3, 700.0, scale="log"),
        DesignVariable("mass", "fixed", values=(3.5,)),
        DesignVariable("n", "int", -2, 3),
        DesignVariable("kind", "choice", values=("soft", "hard", "none")),
    )
)


def test_columns_are_the_free_parameters_in_their_order():
    assert MIXED.names == ("x", "k", "n", "kind")


def test_bounds_in_search_coordinates_leave_half_a_step_around_integers_and_choices():
    assert MIXED.lower.tolist() == [-1.0, np.log(0.3), -2.5, -0.5]
    assert MIXED.upper.tolist() == [2.0, np.log(700.0), 3.5, 2.5]


def test_search_bounds_lead_exactly_to_the_bounds_of_the_parameters():
    assert MIXED.from_search(np.array([MIXED.lower, MIXED.upper])).tolist() == [[-1.0, 0.3, -2, 0], [2.0, 700.0, 3, 2]]


def test_search_coordinates_beyond_the_bounds_are_clipped():
    assert MIXED.from_search(np.array([[-9.0, -99.0, -99.0, -99.0]])).tolist() == [[-1.0, 0.3, -2, 0]]


@given(st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4))
def test_designs_are_in_bounds_whole_where_they_must_be_and_come_back_from_search_coordinates(u):
    X = MIXED.from_search(MIXED.lower + np.array([u]) * (MIXED.upper - MIXED.lower))
    assert np.all(X >= [-1.0, 0.3, -2, 0])
    assert np.all(X <= [2.0, 700.0, 3, 2])
    assert np.array_equal(X[:, 2:], np.rint(X[:, 2:]))
    assert not np.any(np.signbit(X[:, 2:]) & (X[:, 2:] == 0.0))  # no -0.0: it would look like another design
    np.testing.assert_allclose(MIXED.from_search(MIXED.to_search(X)), X, rtol=1e-14)


def test_integers_are_equally_likely_in_search_coordinates():
    S = np.linspace(MIXED.lower, MIXED.upper, 60001)
    counts = np.unique(MIXED.from_search(S)[:, 2], return_counts=True)[1]
    assert counts.max() - counts.min() <= 2


# -------------------------------------------------------------------------------------------------- values and units


def test_values_are_in_the_studys_units_with_the_right_types():
    values = MIXED.values([0.5, 3.0, 2.0, 1.0])
    assert values == {"x": 0.5, "k": 3.0, "mass": 3.5, "n": 2, "kind": "hard"}
    assert type(values["n"]) is int


def test_the_model_receives_its_own_units():
    space = Space(
        (
            real("temperature", 0.0, 100.0, unit="degC", offset=273.15),
            DesignVariable("length", "choice", values=(10, 25), unit="mm", factor=1e-3),
            DesignVariable("force", "fixed", values=(2,), unit="kN", factor=1e3),
            DesignVariable("offset", "int", -3, 3, unit="mm", factor=1e-3),
        )
    )
    assert space.design([20.0, 1.0, -2.0]) == pytest.approx(
        {"temperature": 293.15, "length": 0.025, "force": 2000.0, "offset": -0.002}
    )
    assert space.values([20.0, 1.0, -2.0]) == {"temperature": 20.0, "length": 25, "force": 2, "offset": -2}


def test_excess_adds_up_what_breaks_the_relations():
    space = Space((real("x"), real("y")), (Expression.parse("x <= 0.5"), Expression.parse("y >= 2*x")))
    X = np.array([[0.25, 0.5], [0.75, 1.75], [0.5, 0.5], [1.0, 1.0]])
    assert space.relation_violation(X).tolist() == [0.0, 0.25, 0.5, 1.5]


def test_relations_see_choices_by_value_and_fixed_parameters():
    parameters = (DesignVariable("n", "choice", values=(2, 8)), DesignVariable("most", "fixed", values=(5,)))
    assert Space(parameters, (Expression.parse("n <= most"),)).relation_violation(
        np.array([[0.0], [1.0]])
    ).tolist() == [0.0, 3.0]


def test_a_relation_that_cannot_be_computed_is_broken_without_bound():
    space = Space((real("x", -1.0, 1.0),), (Expression.parse("log(x) <= 1"),))
    assert space.relation_violation(np.array([[0.5], [-0.5], [0.0]])).tolist() == [0.0, np.inf, np.inf]


# --------------------------------------------------------------------------------------------------------------- keys


def key(p: Problem, *x: float) -> bytes:
    return p.keys(np.array([x]))[0][0]


def test_a_key_never_changes():
    # Recorded when the format was fixed: users' stores hold such keys. Another format needs another store format.
    p = Problem(
        model=Use(find("model", "problem_test"), {"gain": 2.5}),
        space=MIXED,
        scenarios=(Scenario("flat"), Scenario("steep", {"slope": 0.1, "ground": "sand"})),
        objectives=(minimized("f"),),
        figures={"peak": Use(find("objective", "problem_test_peak"))},
    )
    keys = p.keys(np.array([[0.5, 3.0, 2.0, 1.0]]))
    assert [k.hex() for k in keys[0]] == [
        "66ced9aeab98549aceab7f03540fd688",
        "24975e9a53fc82e11512164b050963ee",
    ]


def test_there_is_one_key_of_16_bytes_per_design_and_scenario():
    p = problem(scenarios=(Scenario("a"), Scenario("b", {"slope": 1.0})))
    keys = p.keys(np.array([[0.1], [0.2], [0.1]]))
    assert [len(row) for row in keys] == [2, 2, 2]
    assert {len(k) for row in keys for k in row} == {16}
    assert keys[0] == keys[2]
    assert len({*keys[0], *keys[1]}) == 4


def test_the_order_of_parameters_and_the_names_of_scenarios_do_not_matter():
    a, b = real("a"), real("b")
    assert key(problem(a, b), 0.1, 0.2) == key(problem(b, a), 0.2, 0.1)
    assert key(problem(a, b), 0.1, 0.2) != key(problem(a, b), 0.2, 0.1)
    assert key(problem(scenarios=(Scenario("x"),)), 0.1) == key(problem(scenarios=(Scenario("y"),)), 0.1)


def test_what_is_asked_of_the_figures_does_not_matter_to_the_key():
    wide = problem(real("x", -9, 9), objectives=(minimized("g", "maximize"),), constraints=(limit("f", maximum=1.0),))
    assert key(wide, 0.1) == key(problem(), 0.1)


def test_a_default_written_out_has_the_same_key():
    assert key(problem(settings={"gain": 2.0}), 0.1) == key(problem(), 0.1)


def test_negative_zero_is_zero():
    assert key(problem(real("x", -1, 1)), -0.0) == key(problem(real("x", -1, 1)), 0.0)


def test_equal_designs_in_different_units_have_one_key():
    metres, millimetres = real("x", 0, 1, unit="m"), real("x", 0, 1000, unit="mm", factor=1e-3)
    assert key(problem(metres), 0.25) == key(problem(millimetres), 250.0)


def fixed(value, **options) -> Problem:
    return problem(real("x"), DesignVariable("n", "fixed", values=(value,), **options))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (problem(settings={"gain": 2.5}), problem()),
        (problem(settings={"solver": Solver(1e-6)}), problem()),
        (problem(settings={"data": InputFile("a.csv", b"1")}), problem(settings={"data": InputFile("a.csv", b"2")})),
        (problem(scenarios=(Scenario("a", {"slope": 1.0}),)), problem(scenarios=(Scenario("a", {"slope": 2.0}),))),
        (problem(scenarios=(Scenario("a", {"slope": 1.0}),)), problem(scenarios=(Scenario("a", {"angle": 1.0}),))),
        (problem(real("x")), problem(real("y"))),
        (problem(figures={"p": Use(find("objective", "problem_test_peak"))}), problem()),
        (
            problem(figures={"p": Use(find("objective", "problem_test_peak"))}),
            problem(figures={"p": Use(find("objective", "problem_test_peak"), {"window": 4})}),
        ),
        (
            problem(figures={"p": Use(find("objective", "problem_test_peak"))}),
            problem(figures={"q": Use(find("objective", "problem_test_peak"))}),
        ),
        (problem(model=Use(replace(find("model", "problem_test"), version=4))), problem()),
        (problem(model=Use(replace(find("model", "problem_test"), name="another"))), problem()),
        (fixed(1), fixed(1.0)),
        (fixed(1), fixed("1")),
        (fixed(1), fixed(True)),
        (fixed("1"), fixed(True)),
        (fixed(3), fixed(3, unit="mm", factor=1e-3)),
        (fixed(3, unit="cm", factor=1e-2), fixed(3, unit="mm", factor=1e-3)),
        (fixed("a"), fixed("b")),
        (fixed("a"), problem(real("x"))),
    ],
)
def test_whatever_changes_the_answer_changes_the_key(one, other):
    assert key(one, 0.1) != key(other, 0.1)


def test_a_file_counts_by_its_content_and_not_by_its_name():
    a, b = (problem(settings={"data": InputFile(name, b"1,2")}) for name in ("a.csv", "elsewhere/b.csv"))
    assert key(a, 0.1) == key(b, 0.1)


def test_integers_reals_and_choices_of_equal_value_differ():
    x = (
        DesignVariable("x", "real", 0, 3),
        DesignVariable("x", "int", 0, 3),
        DesignVariable("x", "choice", values=("0", "1")),
    )
    assert len({key(problem(p), 1.0) for p in x}) == 3


def test_a_choice_counts_by_its_value_and_not_by_its_place():
    few, more = DesignVariable("c", "choice", values=(10, 30)), DesignVariable("c", "choice", values=(10, 20, 30))
    assert key(problem(few), 1.0) == key(problem(more), 2.0)
    assert key(problem(few), 1.0) != key(problem(more), 1.0)


def test_a_choice_with_a_unit_counts_by_its_value_too():
    few, more = (DesignVariable("c", "choice", values=v, unit="mm", factor=1e-3) for v in ((10, 30), (10, 20, 30)))
    assert key(problem(few), 1.0) == key(problem(more), 2.0)
    assert key(problem(few), 1.0) != key(problem(more), 1.0)


def test_texts_cannot_be_read_as_two_values():
    p, q = (
        problem(real("x"), DesignVariable("a", "fixed", values=(a,)), DesignVariable("b", "fixed", values=(b,)))
        for a, b in (("u\0b\0", "v"), ("u", "\0b\0v"))
    )
    assert key(p, 0.0) != key(q, 0.0)


CONDITIONAL = (
    DesignVariable("kind", "choice", values=("spring", "rubber")),
    real("stiffness", 1.0, 9.0, when={"kind": ("spring",)}),
    real("x"),
)


def test_what_is_inactive_has_no_part_in_the_key():
    p = problem(*CONDITIONAL)
    assert key(p, 1.0, 2.0, 0.5) == key(p, 1.0, 3.0, 0.5)
    assert key(p, 0.0, 2.0, 0.5) != key(p, 0.0, 3.0, 0.5)
    assert key(p, 0.0, 2.0, 0.5) != key(p, 1.0, 2.0, 0.5)


def test_a_design_in_which_everything_is_active_has_the_key_that_it_has_without_conditions():
    always = (CONDITIONAL[0], replace(CONDITIONAL[1], when={}), CONDITIONAL[2])
    assert key(problem(*CONDITIONAL), 0.0, 2.0, 0.5) == key(problem(*always), 0.0, 2.0, 0.5)


def test_a_fixed_parameter_counts_only_where_it_is_active():
    mass = DesignVariable("mass", "fixed", values=(3.0,), when={"kind": ("spring",)})
    without, with_mass = problem(CONDITIONAL[0]), problem(CONDITIONAL[0], mass)
    assert key(without, 1.0) == key(with_mass, 1.0)
    assert key(without, 0.0) != key(with_mass, 0.0)


def test_recorded_derivatives_and_the_seed_of_a_random_model_belong_to_the_key():
    keys = [key(p, 0.1) for p in (problem(), problem(gradients=True), problem(seed=0), problem(seed=1))]
    assert len(set(keys)) == 4
    assert [problem().canonical().keys() ^ problem(gradients=True, seed=0).canonical().keys()] == [
        {"gradients", "seed"}
    ]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_design_that_is_not_finite_is_refused(bad):
    with pytest.raises(ValueError, match="NaN or infinite"):
        problem().keys(np.array([[bad]]))


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_keys_of_reals_are_equal_exactly_when_the_values_are(a, b):
    p = problem(real("x", -1e300, 1e300))
    assert (key(p, a) == key(p, b)) == (a == b)


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
    "other",
    [
        problem(real("x", 0.0, 2.0)),
        problem(real("x", 0.5, 1.0, scale="log")),
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
def test_another_question_has_another_digest(other):
    assert other.digest != problem().digest


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
        Problem.of(study).digest
        == Problem.of(StudyDefinition(**parts, seed=2, text="other", path=Path(tmp_path))).digest
    )
    assert Problem.of(study).output_names == ("f", "g")


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
    assert Problem.of(study_of("problem_test_random")).seed == 5
    assert Problem.of(study_of("problem_test")).seed is None


def test_derivatives_are_recorded_when_a_solver_wants_them_and_the_model_has_them():
    steep = Stage("steep", Use(find("solver", "problem_test_steep")))
    blind = Stage("blind", Use(find("solver", "sobol"), {"samples": 4}))
    assert Problem.of(study_of("problem_test_derived", blind, steep)).gradients
    assert not Problem.of(study_of("problem_test_derived", blind)).gradients
    assert not Problem.of(study_of("problem_test", steep)).gradients


# -------------------------------------------------------------------------------------------------------------- judge

NAN = np.nan


def judged(p: Problem, failed=None, **figures) -> Outcomes:
    raw = {name: np.array(values, dtype=float) for name, values in figures.items()}
    shape = next(iter(raw.values())).shape
    failed = np.zeros(shape, dtype=bool) if failed is None else np.array(failed)
    return p.judge(np.full((shape[0], len(p.space.free)), 0.5), raw, failed)


def test_objectives_are_made_small_and_maximised_ones_negated():
    out = judged(problem(objectives=(minimized("f"), minimized("g", "maximize"))), f=[[1.0], [2.0]], g=[[3.0], [-4.0]])
    assert out.objectives.tolist() == [[1.0, -3.0], [2.0, 4.0]]
    assert out.feasible.all()
    assert not out.failed.any()


TWO = (Scenario("a"), Scenario("b"))


def test_the_worst_scenario_depends_on_the_direction():
    p = problem(scenarios=TWO, objectives=(minimized("f"), minimized("f", "maximize")))
    assert judged(p, f=[[1.0, 5.0]]).objectives.tolist() == [[5.0, -1.0]]


def test_quantiles_and_tails_of_maximised_figures_are_taken_at_their_bad_end():
    p = problem(
        scenarios=tuple(Scenario(str(i)) for i in range(5)),
        objectives=(
            minimized("f", "maximize", over("quantile", level=0.75)),
            minimized("f", "maximize", over("cvar", level=0.6)),
        ),
    )
    # Large is good: the value that three of four exceed, and the mean of the two smallest.
    assert judged(p, f=[[10.0, 20.0, 30.0, 40.0, 50.0]]).objectives.tolist() == [[-20.0, -15.0]]


@pytest.mark.parametrize(
    ("limits", "figures", "violation"),
    [
        ({"maximum": 2.0}, [2.0, 1.0], 0.0),
        ({"maximum": 2.0}, [1.0, 5.0], 1.5),  # relative to the limit
        ({"maximum": 0.0}, [0.25, -1.0], 0.25),  # absolute for a limit of 0
        ({"minimum": -4.0}, [-5.0, 3.0], 0.25),
        ({"minimum": 1.0, "maximum": 2.0}, [0.5, 3.0], 1.0),
        ({"equals": 1.0}, [1.0, 1.0], 0.0),
        ({"equals": 2.0}, [1.0, 2.0], 0.5),
        ({"equals": 2.0}, [2.0, 5.0], 1.5),
        ({"equals": 1000.0}, [1000.0009, 999.9991], 0.0),  # a millionth is as good as equal
        ({"equals": 0.0}, [2e-6, 0.0], 2e-6),
    ],
)
def test_a_limit_holds_in_the_scenario_where_it_is_hardest(limits, figures, violation):
    out = judged(problem(scenarios=TWO, constraints=(limit("f", **limits),)), f=[figures])
    assert out.violation.tolist() == [violation]
    assert out.feasible.tolist() == [violation == 0.0]


def test_violations_of_several_limits_add_up():
    p = problem(constraints=(limit("f", maximum=1.0), limit("g", maximum=1.0)))
    assert judged(p, f=[[2.0], [2.0]], g=[[0.0], [1.5]]).violation.tolist() == [1.0, 1.5]


def test_one_failed_scenario_makes_a_failed_design_without_objectives():
    out = judged(problem(scenarios=TWO), failed=[[False, False], [False, True]], f=[[1.0, 2.0], [1.0, NAN]])
    assert out.failed.tolist() == [False, True]
    assert out.objectives.tolist() == [[2.0], [np.inf]]
    assert out.violation.tolist() == [0.0, np.inf]


@pytest.mark.parametrize("text", ["log(f)", "1/f", "f**0.5"])
def test_an_objective_or_limit_that_is_not_a_number_makes_a_failed_design(text):
    for p in (problem(objectives=(minimized(text),)), problem(constraints=(limit(text, maximum=1e9),))):
        assert judged(p, f=[[1.0], [-0.0 if text == "1/f" else -1.0]]).failed.tolist() == [False, True]


def test_a_figure_may_fail_where_no_objective_looks():
    out = judged(problem(), f=[[1.0]], g=[[NAN]])
    assert not out.failed.any()


def test_designs_that_break_a_relation_are_invalid_and_carry_their_excess():
    p = problem(real("x"), relations=("x <= 0.25",))
    out = p.judge(np.array([[0.25], [0.75]]), {"f": np.array([[1.0], [NAN]])}, np.zeros((2, 1), dtype=bool))
    assert out.invalid.tolist() == [False, True]
    assert out.violation.tolist() == [0.0, 0.5]
    assert out.objectives.tolist() == [[1.0], [np.inf]]


def test_a_design_that_the_model_refuses_in_one_scenario_is_invalid_and_not_failed():
    p = problem(real("x"), scenarios=TWO, relations=("x <= 0.5",))
    X = np.array([[0.1], [0.2], [0.3], [0.75]])
    refused = np.array([[False, False], [False, True], [False, False], [False, False]])
    failed = np.array([[False, False], [True, False], [True, False], [False, False]])
    out = p.judge(X, {"f": np.ones((4, 2))}, failed, refused=refused)
    assert out.invalid.tolist() == [False, True, False, True]
    assert out.violation.tolist() == [0.0, np.inf, np.inf, 0.25]
    assert out.objectives[:, 0].tolist() == [1.0, np.inf, np.inf, np.inf]
    rank = out.rank_violation
    assert rank[0] == 0.0 < 1.0 <= rank[3] < rank[1] < rank[2] == 2.0


def test_no_designs_have_no_outcomes():
    out = problem().judge(np.empty((0, 1)), {"f": np.empty((0, 1))}, np.empty((0, 1), dtype=bool))
    assert len(out) == 0
    assert out.objectives.shape == (0, 1)


def test_judging_leaves_its_arguments_alone():
    failed, figures = np.array([[False], [True]]), {"f": np.array([[1.0], [NAN]])}
    problem(relations=("x <= 0.1",)).judge(np.array([[0.0], [0.5]]), figures, failed)
    assert failed.tolist() == [[False], [True]]
    assert figures["f"][0, 0] == 1.0


def ranked(violation, failed, invalid) -> list[float]:
    n = len(violation)
    out = Outcomes(
        np.zeros((n, 1)), np.zeros((n, 1)), np.array(violation), np.array(failed), np.array(invalid), figures={}
    )
    return out.rank_violation.tolist()


def test_rank_violation_puts_feasible_before_infeasible_before_invalid_before_failed():
    violation = [0.0, 1e-300, 0.5, 2.0, 1e300, 1e-300, 0.5, 1e300, np.inf, np.inf]
    invalid = [False] * 5 + [True] * 4 + [False]
    failed = [False] * 5 + [True] * 5
    rank = ranked(violation, failed, invalid)
    assert rank == sorted(rank)
    assert rank[0] == 0.0
    assert all(0.0 < r < 1.0 for r in rank[1:5])
    assert all(1.0 <= r < 2.0 for r in rank[5:9])
    assert rank[9] == 2.0


@given(st.floats(0.0, 1e6), st.floats(0.0, 1e6))
def test_rank_violation_keeps_the_order_of_violations(a, b):
    first, second = ranked([a, b], [False, False], [False, False])
    assert (first <= second) == (a <= b) or first == second


def test_taking_rows_takes_them_everywhere():
    out = judged(problem(constraints=(limit("f", maximum=1.0),)), f=[[1.0], [2.0], [3.0]])
    part = out.take(np.array([2, 0]))
    assert part.objectives.tolist() == [[3.0], [1.0]]
    assert part.violation.tolist() == [2.0, 0.0]
    assert part.figures["f"].tolist() == [[3.0], [1.0]]
    assert len(out.take(out.feasible)) == 1
