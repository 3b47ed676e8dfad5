"""SciPy's global search: SciPy's own sequence, published optima, order of designs, whole numbers, endings."""

import numpy as np
import pytest
from scipy import optimize

from designopt.plugin import Diverged, InvalidSetting
from designopt.problem import StageEnded
from designopt.solvers.scipy_searches.differential_evolution import DifferentialEvolution
from designopt.study.study import DesignVariable
from designopt.testing import InProcess, check_solver, no_outcomes, problem_from


def branin(x: float, y: float) -> float:
    """Dixon & Szegö (1978); three minima of 0.397887 at (-pi, 12.275), (pi, 2.275) and (9.42478, 2.475)."""
    b, c, t = 5.1 / (4.0 * np.pi**2), 5.0 / np.pi, 1.0 / (8.0 * np.pi)
    return float((y - b * x**2 + c * x - 6.0) ** 2 + 10.0 * (1.0 - t) * np.cos(x) + 10.0)


AREA = [DesignVariable("x", "real", -5.0, 10.0), DesignVariable("y", "real", 0.0, 15.0)]
BRANIN = problem_from(lambda d, s: {"f": branin(d["x"], d["y"])}, AREA, minimize=["f"])


def run(solver, problem, budget=None, *, seed=1, start=None) -> tuple[InProcess, str]:
    evaluate = InProcess(problem, budget)
    start_outcomes = no_outcomes(problem) if start is None else evaluate.outcomes(np.array(start, ndmin=2, dtype=float))
    try:
        return evaluate, solver.solve(problem, evaluate, np.random.default_rng(seed), start_outcomes)
    except StageEnded:
        return evaluate, "budget"


def best(evaluate: InProcess) -> float:
    """The smallest objective of a feasible design."""
    outcomes = evaluate.outcomes(evaluate.X)
    return float(outcomes.objectives[outcomes.feasible].min())


def test_it_keeps_the_rules_of_solvers():
    settings = {"strategy": "rand1exp", "weight_low": 0.6, "weight_high": 0.6, "generations": 4}
    check_solver(DifferentialEvolution, settings, budget=40)


# -------------------------------------------------------------------------------------------------------- as in SciPy


def scaled(U: np.ndarray) -> np.ndarray:
    return np.array([-5.0, 0.0]) + 15.0 * U


def test_differential_evolution_asks_for_the_designs_that_scipy_evaluates():
    evaluate, _ = run(DifferentialEvolution(population=20, generations=15, tolerance=0.0), BRANIN, seed=3)
    first = (evaluate.batches[0] - [-5.0, 0.0]) / 15.0
    expected = []

    def function(U):
        expected.append(scaled(U.T))
        return np.array([branin(x, y) for x, y in expected[-1].tolist()])

    rng = np.random.default_rng(3)
    rng.integers(0, 2**63, size=2)  # what the first population is drawn with
    optimize.differential_evolution(
        function, [(0.0, 1.0)] * 2, init=first, maxiter=15, rng=rng, tol=0.0, polish=False, vectorized=True,
        updating="deferred",
    )  # fmt: skip
    assert len(evaluate.batches) == 16
    once = dict.fromkeys(map(tuple, np.vstack(expected).round(9).tolist()))  # a trial may be the design it is made of
    np.testing.assert_allclose(evaluate.X, list(once), atol=2e-9)


# -------------------------------------------------------------------------------------------------------- what is found


def test_differential_evolution_finds_a_minimum_of_branin_and_ends_by_itself():
    evaluate, ended = run(DifferentialEvolution(), BRANIN)
    assert ended == "it converged: the objectives of the population are alike"
    assert best(evaluate) == pytest.approx(0.397887, abs=2e-3)  # all alike within 1 %
    # 15 for each parameter, a generation in one batch; now and then a trial is a design that is known.
    assert len(evaluate.batches[0]) == 30
    assert {len(batch) for batch in evaluate.batches} <= {28, 29, 30}


def test_a_simplex_search_at_the_end_gives_the_last_digits():
    plain, polished = (
        best(run(DifferentialEvolution(generations=12, polish=polish), BRANIN)[0]) for polish in (False, True)
    )
    assert polished == pytest.approx(0.397887358, abs=1e-7)
    assert polished < plain - 1e-6


def test_limits_and_failures_are_kept_out_by_order():
    # The objective pulls to x = 0, which fails below 0.2 and breaks the limit below 0.5.
    def function(design, scenario):
        if design["x"] < 0.2:
            raise Diverged("no answer")
        return {"f": design["x"] + design["y"] ** 2, "g": 0.5 - design["x"]}

    space = [DesignVariable("x", "real", 0.0, 1.0), DesignVariable("y", "real", -1.0, 1.0)]
    problem = problem_from(function, space, minimize=["f"], limits={"g": 0.0})
    evaluate, _ = run(DifferentialEvolution(), problem, 900)
    assert best(evaluate) == pytest.approx(0.5, abs=0.02)


def test_whole_numbers_choices_and_conditions_are_searched_too():
    def function(design, scenario):
        offset = {"a": 3.0, "b": 1.0, "c": 2.0}[design["kind"]]
        return {"f": offset + (design["n"] - 4) ** 2 + (design.get("x", 0.9) - 0.3) ** 2}

    space = [
        DesignVariable("kind", "choice", values=("a", "b", "c")),
        DesignVariable("n", "int", -10, 10),
        DesignVariable("x", "real", 0.0, 1.0, when={"kind": ("b",)}),
    ]
    evaluate, _ = run(DifferentialEvolution(), problem_from(function, space, minimize=["f"]), 600)
    assert best(evaluate) == pytest.approx(1.0, abs=0.02)
    assert len(np.unique(evaluate.X, axis=0)) == len(evaluate.X)  # a known design is not asked again


def test_known_designs_are_the_beginning_and_are_not_asked_again():
    start = [[3.1, 2.2], [-5.0, 0.0], [10.0, 15.0]]
    evaluate, _ = run(DifferentialEvolution(population=10), BRANIN, 60, start=start)
    assert not (evaluate.X[:, None] == np.array(start)).all(axis=2).any()
    assert len(evaluate.batches[0]) == 7
    assert best(evaluate) < 0.5  # the first one is near a minimum


def test_a_search_ends_where_every_design_is_known():
    problem = problem_from(lambda d, s: {"f": d["n"] ** 2}, [DesignVariable("n", "int", -2, 2)], minimize=["f"])
    evaluate, ended = run(DifferentialEvolution(generations=20), problem)
    assert ended.startswith("it ")
    assert len(evaluate.X) <= 5


def test_the_largest_number_of_generations_is_reported():
    _, ended = run(DifferentialEvolution(generations=2), BRANIN)
    assert ended == "it reached its maximum number of generations"


# -------------------------------------------------------------------------------------------------------------- checks


def test_the_smallest_sensible_budget_is_one_population():
    assert DifferentialEvolution().minimum_budget(BRANIN) == 30
    assert DifferentialEvolution(population=7).minimum_budget(BRANIN) == 7


def test_questions_that_they_cannot_answer_are_refused():
    problem_of_two = problem_from(lambda d, s: {"f": 0.0, "g": 0.0}, AREA, minimize=["f", "g"])
    nothing = problem_from(lambda d, s: {"f": 0.0}, [DesignVariable("x", "fixed", values=(1.0,))], minimize=["f"])
    with pytest.raises(InvalidSetting, match="has one objective; this study has 2"):
        DifferentialEvolution().check(problem_of_two)
    with pytest.raises(InvalidSetting, match="needs a free parameter"):
        DifferentialEvolution().check(nothing)
    with pytest.raises(InvalidSetting, match=r"^weight_low: is above weight_high \(0.4\)"):
        DifferentialEvolution(weight_high=0.4).check(BRANIN)
