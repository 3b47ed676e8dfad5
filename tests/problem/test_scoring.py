"""How figures become objectives, violations and feasibility."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problem_cases import limit, minimized, over, problem, real

from designopt.problem import Outcomes, Problem
from designopt.study.study import Scenario

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
