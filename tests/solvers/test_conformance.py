"""Every installed solver keeps the rules of solvers; the table below says with which settings it is tried."""

import pytest

from designopt.plugin import find, installed
from designopt.testing import check_solver

#: Settings with which a solver works on a few dozens of designs; a solver that needs no settings need not be here.
SETTINGS = {
    "age_moea": [{"population": 12}],
    "cma_es": [{}, {"population": 8, "restarts": 1}],
    "de": [{"population": 10}, {"population": 8, "base": "rand", "differences": 2, "exchange": "exp", "jitter": True}],
    "full_factorial": [{"levels": 3}],
    "genetic": [{"population": 12}],
    "halton": [{"samples": 23}],
    "latin_hypercube": [{"samples": 23}],
    "morris": [{"trajectories": 4}],
    "nsga2": [
        {"population": 12},
        {"population": 12, "offspring": 5, "crossover": {"probability": 0.5}, "mutation": {"eta": 5}},
    ],
    "nsga3": [{"partitions": 11}, {"directions": 8, "population": 10}],
    "random": [{"samples": 23}],
    "sms_emoa": [{"population": 12}, {"population": 6, "offspring": 1}],
    "sobol": [{"samples": 21}],
    "sobol_indices": [{"base": 4}],
}

CASES = [(listed.name, settings) for listed in installed("solver") for settings in SETTINGS.get(listed.name, [{}])]


@pytest.mark.parametrize(("name", "settings"), CASES, ids=[f"{name}-{settings}" for name, settings in CASES])
def test_every_installed_solver_keeps_the_rules(name, settings):
    check_solver(find("solver", name).target, settings, budget=40)
