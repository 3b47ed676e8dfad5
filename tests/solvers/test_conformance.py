"""Every installed solver keeps the rules of solvers; the tables below say with which settings it is tried."""

import subprocess
import sys
from pathlib import Path

import pytest

from designopt.plugin import find, installed_plugins, load_file
from designopt.problem import Problem
from designopt.study.load import study_from_data
from designopt.testing import check_solver

#: Settings with which a solver works on a few dozens of designs. A solver that works without any need not be here;
#: which problems it is tried on follows from its attribute ``objectives`` and from what its `check` accepts.
SETTINGS = {
    "auto": [{"evaluations": 400}, {"evaluations": 9, "cost": 0.001}],
    "cma_es": [{}, {"population": 8, "restarts": 1}],
    "collocation": [{"intervals": 8, "starts": 2, "chain": 2, "verify": 1, "persistent": False}],
    "differential_evolution": [{"population": 8}, {"strategy": "rand1exp", "polish": True}],
    "full_factorial": [{"levels": 3}],
    "genetic": [{"population": 8}],
    "gp": [{"startup": 4, "look_ahead": 2, "candidates": 16}],
    "halton": [{"samples": 23}],
    "latin_hypercube": [{"samples": 23}],
    "least_squares": [{}, {"differences": "central", "starts": 2}],
    "morris": [{"trajectories": 4}],
    "nelder_mead": [{}, {"starts": 2, "adaptive": True}],
    "nsga2": [
        {"population": 8},
        {"population": 8, "offspring": 5, "crossover": {"probability": 0.5}, "mutation": {"eta": 5}},
        {"population": 6, "look_ahead": 4},
    ],
    "nsga3": [{"partitions": 7}],
    "random": [{"samples": 23}],
    "slsqp": [{}, {"differences": "central", "starts": 2}],
    "sms_emoa": [{"population": 8}, {"population": 6, "offspring": 1}],
    "sobol": [{"samples": 21}],
    "sobol_indices": [{"base": 4}, {"base": 2, "second_order": True}],
}

#: Designs to be asked for, where they are not 24: what fits a test while the solver learns from them.
BUDGETS = {"gp": 8}

#: Optional packages without which a solver cannot be tried.
EXTRAS = {"morris": "SALib", "sobol_indices": "SALib"}

MODELS = Path(__file__).with_name("collocation_models.py")


def of_equations():
    """Problems of a model that states its equations: of one program, and of a sweep with a limit and two scenarios."""
    load_file(str(MODELS), MODELS.read_bytes())
    damping = {"low": 0.2, "high": 5.0, "unit": "N s/m", "scale": "log"}
    objective = {"name": "decay", "minimize": "error"}
    rest = {
        "study": "damped",
        "model": {"use": "damped_start"},
        "objectives": [objective],
        "solver": {"use": "random", "samples": 1},
    }
    sections = [
        {"space": {"damping": damping}},
        {
            "space": {"damping": damping, "stiffness": {"values": [1, 2, 4]}},
            "constraints": [{"name": "heat", "of": "loss", "max": 0.6}],
            "scenarios": [{"name": "light", "mass": 1.0}, {"name": "heavy", "mass": 2.0}],
        },
    ]
    return [Problem.from_study(study_from_data({**rest, **section})) for section in sections]


#: Problems for solvers that need more of a model than that it evaluates designs.
PROBLEMS = {"collocation": of_equations}

#: Every solver by default, with further settings of it when slow tests are asked for.
CASES = [
    pytest.param(listed.name, settings, id=f"{listed.name}-{settings}", marks=[pytest.mark.slow] if further else [])
    for listed in installed_plugins("solver")
    for further, settings in enumerate(SETTINGS.get(listed.name, [{}]))
]


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_every_installed_solver_keeps_the_rules(name, settings):
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name])
    problems = PROBLEMS.get(name, lambda: None)()
    check_solver(find("solver", name).target, settings, problems=problems, budget=BUDGETS.get(name, 24))


def test_the_table_names_solvers_that_exist():
    names = {listed.name for listed in installed_plugins("solver")}
    assert {*SETTINGS, *BUDGETS, *EXTRAS, *PROBLEMS} <= names


def test_solvers_are_declared_without_loading_pymoo_or_scipy():
    code = (
        "import sys\nfrom designopt.plugin import find, installed_plugins\n"
        "for listed in installed_plugins('solver'): find('solver', listed.name)\n"
        "print([m for m in ('pymoo', 'scipy', 'cma') if m in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
