"""Every installed solver keeps the rules of solvers; the tables below say with which settings it is tried."""

import pytest

from designopt.plugin import find, installed
from designopt.testing import check_solver

#: Settings with which a solver works on a few dozens of designs. A solver that works without any need not be here;
#: which problems it is tried on follows from its attribute ``objectives`` and from what its `check` accepts.
SETTINGS = {
    "age_moea": [{"population": 8}],
    "cma_es": [{}, {"population": 8, "restarts": 1}],
    "de": [{"population": 10}, {"population": 8, "base": "rand", "differences": 2, "exchange": "exp", "jitter": True}],
    "differential_evolution": [{"population": 8}, {"strategy": "rand1exp", "polish": True}],
    "dual_annealing": [{}, {"polish": True}],
    "full_factorial": [{"levels": 3}],
    "genetic": [{"population": 8}],
    "halton": [{"samples": 23}],
    "latin_hypercube": [{"samples": 23}],
    "least_squares": [{}, {"differences": "central", "starts": 2}],
    "morris": [{"trajectories": 4}],
    "nelder_mead": [{}, {"starts": 2, "adaptive": True}],
    "nsga2": [
        {"population": 8},
        {"population": 8, "offspring": 5, "crossover": {"probability": 0.5}, "mutation": {"eta": 5}},
    ],
    "nsga3": [{"partitions": 7}],
    "random": [{"samples": 23}],
    "slsqp": [{}, {"differences": "central", "starts": 2}],
    "sms_emoa": [{"population": 8}, {"population": 6, "offspring": 1}],
    "sobol": [{"samples": 21}],
    "sobol_indices": [{"base": 4}, {"base": 2, "second_order": True}],
    "tpe": [{"startup": 3, "look_ahead": 2, "liar": True}],
}

#: Designs to be asked for, where they are not 24: what fits a test while the solver learns from them.
BUDGETS = {"tpe": 6}

#: Optional packages without which a solver cannot be tried.
EXTRAS = {"tpe": "optuna", "morris": "SALib", "sobol_indices": "SALib"}

CASES = [(listed.name, settings) for listed in installed("solver") for settings in SETTINGS.get(listed.name, [{}])]


@pytest.mark.parametrize(("name", "settings"), CASES, ids=[f"{name}-{settings}" for name, settings in CASES])
def test_every_installed_solver_keeps_the_rules(name, settings):
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name])
    check_solver(find("solver", name).target, settings, budget=BUDGETS.get(name, 24))


def test_the_table_names_solvers_that_exist():
    names = {listed.name for listed in installed("solver")}
    assert {*SETTINGS, *BUDGETS, *EXTRAS} <= names
