"""The solver that chooses: what it takes for which problem, and that it says so."""

import numpy as np
import pytest
from pymoo_cases import run

from designopt.plugin import InvalidSetting
from designopt.solvers.auto import Auto
from designopt.solvers.evolution.many_objectives import NSGA2
from designopt.study.study import DesignVariable
from designopt.testing import problem_from

REAL = [DesignVariable("x", "real", 0.0, 1.0), DesignVariable("y", "real", 0.0, 1.0)]
MIXED = [DesignVariable("x", "real", 0.0, 1.0), DesignVariable("n", "int", 1, 9)]


def problem(goals, space=REAL):
    def function(design, scenario):
        rest = sum(value for name, value in design.items() if name != "x")
        return {f"f{i}": (design["x"] - i) ** 2 + rest for i in range(goals)}

    return problem_from(function, space, minimize=[f"f{i}" for i in range(goals)])


@pytest.mark.parametrize(
    ("goals", "space", "settings", "chosen"),
    [
        (1, REAL, {"evaluations": 40}, ("gp", {})),
        (2, MIXED, {"evaluations": 300}, ("gp", {})),
        (2, REAL, {"evaluations": 200, "cost": 1e-4}, ("nsga2", {"population": 17})),
        (2, REAL, {"evaluations": 2000}, ("nsga2", {"population": 54})),
        (3, REAL, {"evaluations": 400}, ("nsga2", {"population": 24})),
        (3, REAL, {"evaluations": 2000}, ("nsga3", {})),
        (5, REAL, {"evaluations": 200}, ("nsga2", {"population": 17})),
        (1, REAL, {"evaluations": 2000}, ("cma_es", {})),
        (1, MIXED, {"evaluations": 2000}, ("genetic", {"population": 54})),
        (1, REAL[:1], {"evaluations": 2000}, ("genetic", {"population": 54})),
    ],
)
def test_the_choice_follows_from_evaluations_cost_objectives_and_parameters(goals, space, settings, chosen):
    choice = Auto(**settings).choice(problem(goals, space))
    assert (choice.name, choice.settings) == chosen


def test_it_asks_for_the_designs_of_the_solver_that_it_chooses_and_says_why():
    problem_of_two = problem(2)
    evaluate = run(Auto(evaluations=500), problem_of_two, 120)
    assert np.array_equal(evaluate.X, run(NSGA2(population=27), problem_of_two, 120).X)
    why = "planned for 500 designs, 2 objectives and 2 parameters: an evolutionary search that preserves diversity"
    assert evaluate.notes == [("solver_chosen", f"nsga2 (population 27): {why}")]


def test_it_needs_what_its_choice_needs():
    assert Auto(evaluations=500).minimum_budget(problem(2)) == 27
    with pytest.raises(InvalidSetting, match="needs a free parameter"):
        Auto(evaluations=500).check(problem(2, [DesignVariable("x", "fixed", 1.0, 1.0, values=(1.0,))]))
