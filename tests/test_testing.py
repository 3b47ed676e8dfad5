"""The conformance tests for authors find what they are made to find, and say it in a sentence."""

import contextlib
import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

from designopt.plugin import Diverged, InvalidDesign, InvalidSetting, Use, discovery, model, solver
from designopt.problem import StageEnded
from designopt.study.study import DesignVariable, Scenario
from designopt.testing import InProcess, check_solver, no_outcomes, problem_from


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    """Declarations of a test end with it."""
    monkeypatch.setattr(discovery, "_declared_plugins", dict(discovery._declared_plugins))


# ------------------------------------------------------------------------------------------------- in-process evaluate

SQUARE = (DesignVariable("x", "real", 0.0, 1.0), DesignVariable("y", "real", 0.0, 1.0))


def line(design, scenario):
    if design["x"] > 0.9:
        raise Diverged("too far")
    return {"f": design["x"] + scenario.get("shift", 0.0), "g": design["y"]}


def test_designs_are_evaluated_in_every_scenario():
    problem = problem_from(line, SQUARE, minimize="fg", scenarios=(Scenario("a"), Scenario("b", {"shift": 2.0})))
    out = InProcess(problem)(np.array([[0.5, 0.25], [0.95, 0.0]]))
    assert out.figures["f"][0].tolist() == [0.5, 2.5]
    assert out.objectives.tolist() == [[2.5, 0.25], [np.inf, np.inf]]
    assert out.failed.tolist() == [False, True]


def test_the_batch_that_exceeds_the_budget_is_evaluated_as_far_as_it_goes():
    evaluate = InProcess(problem_from(line, SQUARE, minimize="fg", relations=["x <= y"]), budget=3)
    X = np.array([[0.1, 0.2], [0.2, 0.1], [0.3, 0.4]])  # the second breaks the relation and costs nothing
    assert evaluate(X).invalid.tolist() == [False, True, False]
    with pytest.raises(StageEnded):
        evaluate(X)
    assert evaluate.X.tolist() == [*X.tolist(), [0.1, 0.2], [0.2, 0.1]]
    with pytest.raises(AssertionError, match="called again after it had raised StageEnded"):
        evaluate(X)


def test_a_budget_that_is_just_spent_ends_the_stage_at_the_next_batch():
    evaluate = InProcess(problem_from(line, SQUARE, minimize="fg"), budget=2)
    assert len(evaluate(np.full((2, 2), 0.5))) == 2
    with pytest.raises(StageEnded):
        evaluate(np.full((1, 2), 0.5))


def test_a_bug_of_the_function_shows_itself():
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        InProcess(problem_from(lambda d, s: {"f": 1 / 0}, SQUARE, minimize="f"))(np.full((1, 2), 0.5))
    with pytest.raises(AssertionError, match=r"returned no 'h', which the study needs; it returned f, g"):
        InProcess(problem_from(line, SQUARE, minimize="h"))(np.full((1, 2), 0.5))


def test_no_outcomes_are_empty_outcomes():
    none = no_outcomes(problem_from(line, SQUARE, minimize="fg"))
    assert none.X.shape == (0, 2)
    assert none.objectives.shape == (0, 2)


def test_designs_refused_by_the_model_are_invalid_and_cost_no_budget():
    def function(design, scenario):
        if design["x"] > 0.5:
            raise InvalidDesign("too large")
        return {"f": design["x"]}

    evaluate = InProcess(problem_from(function, SQUARE, minimize="f"), budget=2)
    out = evaluate(np.array([[0.6, 0.0], [0.1, 0.0], [0.9, 0.0], [0.2, 0.0]]))
    assert out.invalid.tolist() == [True, False, True, False]
    assert out.violation.tolist() == [np.inf, 0.0, np.inf, 0.0]
    with pytest.raises(StageEnded):
        evaluate(np.array([[0.7, 0.0], [0.3, 0.0]]))


def test_inactive_parameters_are_imputed_and_not_given_to_the_model():
    space = (
        DesignVariable("kind", "choice", values=("a", "b")),
        DesignVariable("x", "real", 0.0, 1.0, when={"kind": ("b",)}),
    )
    evaluate = InProcess(problem_from(lambda d, s: {"f": d.get("x", 7.0)}, space, minimize="f"))
    out = evaluate(np.array([[0.0, 0.9], [1.0, 0.9]]))
    assert out.objectives[:, 0].tolist() == [7.0, 0.9]
    assert out.X.tolist() == [[0.0, 0.5], [1.0, 0.9]]


def test_random_numbers_of_a_model_follow_from_the_design():
    @model("chancy", version=1, unchecked=True)
    def chancy(design, scenario, rng):
        return {"f": rng.random()}

    problem = replace(problem_from(line, SQUARE, minimize="f"), model=Use(chancy.__designopt__), seed=1)
    X = np.array([[0.1, 0.2], [0.3, 0.4]])
    first, reversed_order = InProcess(problem)(X), InProcess(problem)(X[::-1])
    assert first.objectives.tolist() == reversed_order.objectives[::-1].tolist()
    assert first.objectives[0] != first.objectives[1]


# ------------------------------------------------------------------------------------------------------------- solvers


def declared(body):
    """A solver plugin whose `solve` is `body`."""
    return solver("declared", version=1)(type("Declared", (), {"solve": body}))


def draws(rng, problem, n=5):
    lower, upper = problem.space.lower, problem.space.upper
    return problem.space.from_search(lower + (upper - lower) * rng.random((n, len(lower))))


@pytest.mark.slow
def test_a_random_search_keeps_all_rules():
    def search(self, problem, evaluate, rng, start):
        while True:
            evaluate(draws(rng, problem))

    check_solver(declared(search))


def test_a_search_that_learns_keeps_all_rules():
    def search(self, problem, evaluate, rng, start):
        out = evaluate(draws(rng, problem))
        while True:
            best = out.X[np.argmin(out.rank_violation)]
            out = evaluate(np.vstack([draws(rng, problem, 2), best]))

    check_solver(declared(search))


def of_global_numpy(self, problem, evaluate, rng, start):
    evaluate(draws(np.random, problem))


def of_global_random(self, problem, evaluate, rng, start):
    X = draws(rng, problem)
    X[:, 0] = 0.5 * random.random()
    evaluate(X)


def of_what_it_remembers(self, problem, evaluate, rng, start):
    self.count = getattr(self, "count", 0) + 1
    evaluate(draws(rng, problem, self.count))


instances = itertools.count(5)


def of_its_number(self, problem, evaluate, rng, start):
    if not hasattr(self, "number"):
        self.number = next(instances)
    evaluate(draws(rng, problem, self.number))


def beyond_the_bounds(self, problem, evaluate, rng, start):
    evaluate(draws(rng, problem) + 10.0)


def of_fractions(self, problem, evaluate, rng, start):
    evaluate(problem.space.lower + 0.7 * (problem.space.upper - problem.space.lower) * np.ones((1, 1)))


def of_nan(self, problem, evaluate, rng, start):
    evaluate(np.full((1, len(problem.space.free)), np.nan))


def of_one_row(self, problem, evaluate, rng, start):
    evaluate(draws(rng, problem)[0])


def of_nothing(self, problem, evaluate, rng, start):
    pass


def that_never_ends(self, problem, evaluate, rng, start):
    while True:
        evaluate(draws(rng, problem, 0))


def that_goes_on_after_the_end(self, problem, evaluate, rng, start):
    for _ in range(100):
        try:
            evaluate(draws(rng, problem))
        except StageEnded:
            evaluate(draws(rng, problem))


def that_catches_everything(self, problem, evaluate, rng, start):
    try:
        for _ in range(100):
            evaluate(draws(rng, problem))
    except Exception:
        pass


def that_catches_what_comes_later(self, problem, evaluate, rng, start):
    out = evaluate(draws(rng, problem))
    while len(out):
        try:
            evaluate(draws(rng, problem))
        except Exception:
            return


def that_changes_outcomes(self, problem, evaluate, rng, start):
    while True:
        evaluate(draws(rng, problem)).objectives[:] = 0.0


def that_seeds_numpy(self, problem, evaluate, rng, start):
    np.random.seed(1)
    evaluate(draws(rng, problem))


def that_catches_all_for_ever(self, problem, evaluate, rng, start):
    while True:
        with contextlib.suppress(BaseException):
            evaluate(draws(rng, problem))


def that_returns_a_number(self, problem, evaluate, rng, start):
    evaluate(draws(rng, problem))
    return 3


def that_depends_on_the_budget(self, problem, evaluate, rng, start):
    evaluate(draws(rng, problem, 20 if getattr(evaluate, "_budget", 0) > 150 else 10))


def that_forgets_its_start(self, problem, evaluate, rng, start):
    evaluate(draws(rng if not len(start) else np.random.default_rng(next(instances)), problem))


def that_asks_ahead_for_two(self, problem, evaluate, rng, start):
    evaluate.ahead(lambda: draws(rng, problem, 2), lambda outcomes: None, 2)


def that_looks_no_design_ahead(self, problem, evaluate, rng, start):
    evaluate.ahead(lambda: draws(rng, problem, 1), lambda outcomes: None, 0)


def that_trips_over_failures(self, problem, evaluate, rng, start):
    for _ in range(100):
        out = evaluate(draws(rng, problem))
        assert np.isfinite(out.objectives).any(), "the solver's own mistake"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (of_global_numpy, "the same instance asked for other designs although its generator was equal"),
        (of_global_random, "the same instance asked for other designs"),
        (of_what_it_remembers, "the same instance asked for other designs"),
        (of_its_number, "a new instance asked for other designs"),
        (beyond_the_bounds, r"asked for x = .*; it must be within its bounds, -1\.0 to 2\.0"),
        (of_fractions, r"asked for n = .*; it must be an integer within its bounds, -2 to 3"),
        (of_nan, "asked for x = nan; it must be within its bounds"),
        (of_one_row, r"a batch has the shape \(designs, 4\), not \(4,\)"),
        (of_nothing, "asked for no design at all"),
        (that_never_ends, "batches did not spend a budget of 150 designs"),
        (that_goes_on_after_the_end, "evaluate was called again after it had raised StageEnded"),
        (that_catches_all_for_ever, "swallows StageEnded; what evaluate raises has to pass through solve"),
        (that_catches_everything, "swallows StageEnded; what evaluate raises has to pass through solve"),
        (that_catches_what_comes_later, "swallows StageEnded; what evaluate raises has to pass through solve"),
        (that_changes_outcomes, "changes the objectives of the outcomes that it is given"),
        (that_seeds_numpy, r"uses the global generator of numpy.random or random; it has to use rng alone"),
        (that_returns_a_number, "solve returns 3; it may return a sentence that says why it ended"),
        (that_depends_on_the_budget, "a new instance asked for other designs"),
        (that_forgets_its_start, "asked for other designs although its generator and start were equal"),
        (that_asks_ahead_for_two, "asks ahead for 2 designs at once; it must be one or none"),
        (that_looks_no_design_ahead, "looks 0 designs ahead; it must be an integer of at least 1"),
        (that_trips_over_failures, "the solver's own mistake"),
    ],
)
def test_a_solver_that_breaks_a_rule_is_found(body, message):
    with pytest.raises(AssertionError, match=message):
        check_solver(declared(body))


def test_a_search_that_asks_ahead_keeps_all_rules():
    def search(self, problem, evaluate, rng, start):
        outcomes = []
        evaluate.ahead(
            lambda: draws(rng, problem, 1) if len(outcomes) < 99 else draws(rng, problem, 0), outcomes.append, 3
        )
        return "has had enough"

    check_solver(declared(search))


def of_one_objective_alone(count):
    def check(self, problem):
        if len(problem.objectives) != count:
            raise InvalidSetting("use", f"needs {count} objectives")

    def search(self, problem, evaluate, rng, start):
        evaluate(draws(rng, problem))

    return solver("declared", version=1)(
        type("Declared", (), {"solve": search, "check": check, "minimum_budget": lambda self, problem: count - 1})
    )


def test_a_solver_is_tried_on_the_problems_that_it_accepts():
    with pytest.raises(AssertionError, match=r"refuses all problems \(use: needs 3 objectives\); give others"):
        check_solver(of_one_objective_alone(3))
    with pytest.raises(AssertionError, match="minimum_budget gives 0; it must be an integer of at least 1"):
        check_solver(of_one_objective_alone(1))
    check_solver(of_one_objective_alone(2))


def test_the_global_generators_are_left_as_they_were():
    def search(self, problem, evaluate, rng, start):
        evaluate(draws(rng, problem))

    random.seed(7)
    np.random.seed(7)
    expected = random.random(), np.random.random()
    random.seed(7)
    np.random.seed(7)
    check_solver(declared(search))
    assert (random.random(), np.random.random()) == expected


def test_objects_that_are_not_solvers_are_distinguished():
    with pytest.raises(AssertionError, match="int is not a solver plugin; decorate it"):
        check_solver(int)


def test_a_value_beyond_a_bound_by_rounding_is_moved_to_it():
    evaluate = InProcess(problem_from(line, SQUARE, minimize="fg"))
    low, high = evaluate.problem.space.bounds
    assert np.array_equal(evaluate(np.array([low - 1e-13, high + 1e-13])).X, [low, high])
    with pytest.raises(ValueError, match=r"proposes . = 1\.00001, which is outside its range, 0 to 1"):
        evaluate(np.array([high + 1e-5]))
