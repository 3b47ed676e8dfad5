"""The tree-structured Parzen estimator: Optuna's own sequence, conditions, limits, failures, known designs."""

import importlib.util
import sys
import warnings

import numpy as np
import pytest

from designopt.plugin import Diverged, InvalidSetting
from designopt.problem import StageEnded
from designopt.solvers.tpe import TPE
from designopt.study.study import DesignVariable
from designopt.testing import InProcess, check_solver, no_outcomes, problem_from
from designopt.testing.problems import conformance_problems

optuna = pytest.importorskip("optuna")


def branin(x: float, y: float) -> float:
    """Dixon & Szegö (1978); the smallest value is 0.397887."""
    b, c, t = 5.1 / (4.0 * np.pi**2), 5.0 / np.pi, 1.0 / (8.0 * np.pi)
    return float((y - b * x**2 + c * x - 6.0) ** 2 + 10.0 * (1.0 - t) * np.cos(x) + 10.0)


AREA = [DesignVariable("x", "real", -5.0, 10.0), DesignVariable("y", "real", 0.0, 15.0)]
BRANIN = problem_from(lambda d, s: {"f": branin(d["x"], d["y"])}, AREA, minimize=["f"])


def run(problem, budget, *, seed=1, start=None, **settings) -> InProcess:
    evaluate = InProcess(problem, budget)
    known = no_outcomes(problem) if start is None else evaluate.outcomes(np.array(start, ndmin=2, dtype=float))
    with pytest.raises(StageEnded):
        TPE(**settings).solve(problem, evaluate, np.random.default_rng(seed), known)
    return evaluate


def test_it_keeps_the_rules_of_solvers():
    # Not where every design breaks the relation: thousands of proposals, each dearer than the one before.
    problems = conformance_problems(2)[:2]
    check_solver(TPE, {"startup": 5, "look_ahead": 1, "joint": False, "liar": True}, budget=20, problems=problems)


# ------------------------------------------------------------------------------------------------------- as in Optuna


@pytest.mark.parametrize("joint", [None, True, False])
def test_it_asks_for_the_designs_that_optuna_suggests(joint):
    rng = np.random.default_rng(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = optuna.samplers.TPESampler(seed=int(rng.integers(0, 2**32)), multivariate=joint, constant_liar=False)
    study = optuna.create_study(sampler=sampler)
    expected = []
    for _ in range(40):
        trial = study.ask()
        expected.append([trial.suggest_float("x", -5.0, 10.0), trial.suggest_float("y", 0.0, 15.0)])
        study.tell(trial, branin(*expected[-1]))
    assert run(BRANIN, 40, seed=7, look_ahead=1, joint=joint).X.tolist() == expected


def test_it_asks_design_by_design_as_far_ahead_as_it_is_reported():
    told_before = []

    class Counting(InProcess):
        def ahead(self, ask, tell, look_ahead):
            told = [0]

            def asking():
                told_before.append(told[0])
                return ask()

            def telling(outcomes):
                told[0] += 1
                tell(outcomes)

            super().ahead(asking, telling, look_ahead)

    with pytest.raises(StageEnded):
        TPE(look_ahead=3).solve(BRANIN, Counting(BRANIN, 20), np.random.default_rng(1), no_outcomes(BRANIN))
    assert told_before[:6] == [0, 0, 0, 1, 2, 3]


# ------------------------------------------------------------------------------------------------------- what it finds


def test_it_comes_nearer_to_a_minimum_than_chance():
    space = [DesignVariable(f"x{i}", "real", -1.0, 1.0) for i in range(4)]
    bowl = problem_from(lambda d, s: {"f": sum((x - 0.3) ** 2 for x in d.values())}, space, minimize=["f"])

    def median(**settings):
        found = []
        for seed in range(3):
            evaluate = run(bowl, 60, seed=seed, **settings)
            found.append(evaluate.outcomes(evaluate.X).objectives.min())
        return float(np.median(found))

    assert median() < 0.5 * median(startup=1000)


def test_conditions_choices_and_scales_are_searched_as_they_are():
    asked = []

    def function(design, scenario):
        asked.append(dict(design))
        if design["kind"] == "spring":
            return {"f": (np.log10(design["stiffness"]) - 4.0) ** 2 + 0.1 * abs(design["coils"] - 7)}
        return {"f": 2.0 + design["hardness"]}

    space = [
        DesignVariable("stiffness", "real", 1e2, 1e6, scale="log", when={"kind": ("spring",)}),
        DesignVariable("hardness", "real", 0.0, 1.0, when={"kind": ("rubber",)}),
        DesignVariable("kind", "choice", values=("rubber", "spring")),
        DesignVariable("coils", "int", 3, 12, when={"kind": ("spring",)}),
    ]
    evaluate = run(problem_from(function, space, minimize=["f"]), 80)
    assert all(("stiffness" in d) == ("coils" in d) == (d["kind"] == "spring") != ("hardness" in d) for d in asked)
    # It has learned which branch is the better one, and where in it.
    assert np.mean([d["kind"] == "spring" for d in asked[40:]]) > 0.7
    assert evaluate.outcomes(evaluate.X).objectives.min() < 0.15


def test_a_front_of_two_objectives_is_approached():
    # Schaffer (1984): the Pareto set of x^2 and (x - 2)^2 is 0 <= x <= 2.
    problem = problem_from(
        lambda d, s: {"f": d["x"] ** 2, "g": (d["x"] - 2.0) ** 2},
        [DesignVariable("x", "real", -100.0, 100.0)],
        minimize="fg",
    )
    X = run(problem, 100).X[:, 0]
    assert np.mean((X[50:] > -2.0) & (X[50:] < 4.0)) > 0.2  # chance would be 0.03


def test_failed_designs_come_behind_infeasible_ones_and_these_behind_feasible_ones():
    # Three bands over x: fails above 0.7, breaks the limit above 0.3. The objective pulls towards failure.
    def function(design, scenario):
        if design["x"] > 0.7:
            raise Diverged("no answer")
        return {"f": -design["x"], "h": design["x"] - 0.3}

    space = [DesignVariable("x", "real", 0.0, 1.0)]
    X = run(problem_from(function, space, minimize=["f"], limits={"h": 0.0}), 80).X[:, 0]
    assert np.mean(X[40:] > 0.7) < 0.1
    assert np.mean((X[40:] > 0.1) & (X[40:] <= 0.32)) > 0.6


def test_where_every_design_fails_it_goes_on_to_the_end_of_its_budget():
    def function(design, scenario):
        raise Diverged("never")

    for objectives in ("f", "fg"):
        assert len(run(problem_from(function, AREA, minimize=objectives), 25).X) == 25


# ------------------------------------------------------------------------------------------------------- known before


def test_designs_of_an_earlier_stage_are_known_from_the_start():
    start = np.random.default_rng(0).uniform([-5.0, 0.0], [10.0, 15.0], (40, 2))
    start = np.vstack([start, [[np.pi, 2.275]]])
    X = run(BRANIN, 20, start=start).X
    # No random beginning, and near one of the three minima from the first design on.
    minima = np.array([[-np.pi, 12.275], [np.pi, 2.275], [9.42478, 2.475]])
    distance = np.linalg.norm(X[:, None] - minima, axis=2).min(axis=1)
    chance = np.linalg.norm(start[:40, None] - minima, axis=2).min(axis=1)
    assert np.median(distance) < 0.5 * np.median(chance)


def test_known_designs_that_failed_or_are_inactive_are_taken_as_such():
    def function(design, scenario):
        if design.get("x", 0.0) > 0.5:
            raise Diverged("no answer")
        return {"f": design.get("x", 0.4)}

    space = [
        DesignVariable("kind", "choice", values=("u", "v")),
        DesignVariable("x", "real", 0.0, 1.0, when={"kind": ("u",)}),
    ]
    start = [[0.0, 0.9], [0.0, 0.2], [1.0, 0.5]] * 4
    X = run(problem_from(function, space, minimize=["f"]), 30, start=start).X
    assert np.mean((X[:, 0] == 0.0) & (X[:, 1] > 0.5)) < 0.2


# -------------------------------------------------------------------------------------------------------------- checks


def test_nothing_to_search_for_is_refused():
    with pytest.raises(InvalidSetting, match="needs a free parameter"):
        TPE().check(
            problem_from(lambda d, s: {"f": 0.0}, [DesignVariable("x", "fixed", values=(1.0,))], minimize=["f"])
        )
    with pytest.raises(InvalidSetting, match="needs an objective"):
        TPE().check(problem_from(lambda d, s: {"f": 0.0}, AREA, minimize=[]))


def test_without_optuna_the_way_to_it_is_reported(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "optuna" else find(name, *a))
    with pytest.raises(InvalidSetting, match=r"^use: tpe needs Optuna; .*pip install 'designopt\[surrogate\]'"):
        TPE().check(BRANIN)


def test_optuna_says_nothing_by_itself(capfd):
    before = optuna.logging.get_verbosity()
    run(BRANIN, 15)
    assert capfd.readouterr() == ("", "")
    assert optuna.logging.get_verbosity() == before


def test_it_is_declared_without_loading_optuna():
    import subprocess

    code = "import sys, designopt.solvers.tpe\nprint([m for m in ('optuna', 'scipy') if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
