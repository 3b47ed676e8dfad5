"""Evaluation keys: what changes them, and what does not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problem_cases import CONDITIONAL, MIXED, Solver, limit, minimized, problem, real

from designopt.plugin import InputFile, Use, find
from designopt.problem import Problem, evaluation_seed
from designopt.study.study import DesignVariable, Scenario, Shift

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


def test_objectives_and_limits_do_not_enter_the_key():
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
    ("one", "changed"),
    [
        (problem(settings={"gain": 2.5}), problem()),
        (problem(settings={"solver": Solver(1e-6)}), problem()),
        (problem(settings={"data": InputFile("a.csv", b"1")}), problem(settings={"data": InputFile("a.csv", b"2")})),
        (problem(scenarios=(Scenario("a", {"slope": 1.0}),)), problem(scenarios=(Scenario("a", {"slope": 2.0}),))),
        (problem(scenarios=(Scenario("a", {"slope": 1.0}),)), problem(scenarios=(Scenario("a", {"angle": 1.0}),))),
        (problem(scenarios=(Scenario("a", {}, (Shift("x", 1.0, 0.1),)),)), problem()),
        (
            problem(scenarios=(Scenario("a", {}, (Shift("x", 1.1, 0.0),)),)),
            problem(scenarios=(Scenario("a", {}, (Shift("x", 1.0, 1.1),)),)),
        ),
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
def test_whatever_changes_the_answer_changes_the_key(one, changed):
    assert key(one, 0.1) != key(changed, 0.1)


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


def test_inactive_parameters_do_not_enter_the_key():
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


def test_the_random_numbers_of_an_evaluation_follow_from_its_key_and_the_seed_of_the_study():
    # Recorded when the format was fixed: results of stochastic models in users' stores were computed with such seeds.
    seeds = [evaluation_seed(key, seed) for key in (bytes(16), bytes(15) + b"1") for seed in (0, 1, -1)]
    assert len(set(seeds)) == 6
    assert seeds[:2] == [2891389769238885931, 11566106937896339926]


@pytest.mark.parametrize(
    "changed",
    [
        problem(real("x"), constraints=(limit("g", maximum=1.0),)),
        problem(real("x", 0.0, 2.0)),
        problem(objectives=(minimized("g"),)),
        problem(scenarios=(Scenario("a", {"slope": 1.0}),)),
    ],
)
def test_a_program_is_that_of_its_whole_problem(changed):
    solver, X = Use(find("solver", "sobol"), {"samples": 4}), np.array([[0.5]])
    assert problem().program_keys(solver, X, [0], [0]) == problem().program_keys(solver, X, [0], [0])
    assert problem().program_keys(solver, X, [0], [0]) != changed.program_keys(solver, X, [0], [0])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_design_that_is_not_finite_is_refused(bad):
    with pytest.raises(ValueError, match="NaN or infinite"):
        problem().keys(np.array([[bad]]))


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_keys_of_reals_are_equal_exactly_when_the_values_are(a, b):
    p = problem(real("x", -1e300, 1e300))
    assert (key(p, a) == key(p, b)) == (a == b)
