"""NSGA-II: pymoo's own sequence where pymoo can be asked, and what the framework adds: failures, integers, start."""

import numpy as np
import pytest
from pymoo.algorithms.moo.nsga2 import NSGA2 as PymooNSGA2
from pymoo.optimize import minimize
from pymoo_cases import FRONTS, asks_of_pymoo, hypervolume, pymoo_problem, run

from designopt.plugin import Diverged, InvalidSetting
from designopt.solvers.evolution.many_objectives import NSGA2, Crossover, Mutation
from designopt.study.study import DesignVariable
from designopt.testing import problem_from

# ------------------------------------------------------------------------------------------------------- as in pymoo


@pytest.mark.parametrize("case", [*FRONTS, ("ackley", {})], ids=lambda case: case[0])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_proposed_designs_equal_those_of_pymoo(case, seed):
    problem, expected = asks_of_pymoo(case, PymooNSGA2(pop_size=24), 480, seed)
    assert len(expected) == 480
    assert np.array_equal(run(NSGA2(population=24), problem, 480, seed).X, expected)


@pytest.mark.parametrize("case", FRONTS, ids=lambda case: case[0])
def test_the_hypervolume_of_all_that_was_asked_is_never_lower_than_that_of_pymoos_population(case):
    problem, reference, _ = pymoo_problem(case[0], **case[1])
    populations = []
    minimize(
        reference,
        PymooNSGA2(pop_size=24),
        ("n_eval", 720),
        seed=1,
        callback=lambda algorithm: populations.append(algorithm.pop.get("F")[algorithm.pop.get("FEAS")[:, 0]]),
    )
    evaluate = run(NSGA2(population=24), problem, 720)
    outcomes = evaluate.outcomes(evaluate.X)
    far = outcomes.objectives[outcomes.feasible].max(axis=0) + 1.0  # beyond every feasible design: all of them count
    archive, population = [], []
    for generation, F in enumerate(populations, start=1):
        first_outcomes = outcomes.take(np.arange(24 * generation))
        archive.append(hypervolume(first_outcomes.objectives[first_outcomes.feasible], far))
        population.append(hypervolume(F, far))
    assert len(archive) == 30
    assert population[-1] > 0.0
    assert np.all(np.array(archive) >= np.array(population) * (1.0 - 1e-12))  # the sum of boxes is rounded
    assert np.all(np.diff(archive) >= -1e-12 * archive[-1])


def test_a_log_scale_parameter_is_searched_in_its_logarithm():
    def function(design, scenario):
        return {"f": (np.log(design["k"]) - 2.0) ** 2, "g": (np.log(design["k"]) + 1.0) ** 2}

    evaluate = run(
        NSGA2(population=20),
        problem_from(function, [DesignVariable("k", "real", 1e-4, 1e4, scale="log")], minimize="fg"),
        400,
    )
    first = np.log10(evaluate.batches[0][:, 0])
    assert abs(np.mean(first < 0.0) - 0.5) < 0.3  # a linear scale would put all but one in 10 000 above 1
    last = np.log(evaluate.batches[-2][:, 0])
    assert np.mean((last > -1.2) & (last < 2.2)) > 0.6  # the Pareto set is -1 <= log(k) <= 2


def test_one_objective_is_simply_minimised():
    problem = problem_from(
        lambda d, s: {"f": (d["x"] - 0.3) ** 2 + (d["y"] + 0.2) ** 2},
        [DesignVariable("x", "real", -1.0, 1.0), DesignVariable("y", "real", -1.0, 1.0)],
        minimize=["f"],
    )
    X = run(NSGA2(population=20), problem, 1000).X
    assert np.min((X[:, 0] - 0.3) ** 2 + (X[:, 1] + 0.2) ** 2) < 1e-5


# --------------------------------------------------------------------------------------------- failures and violation


def _recording(monkeypatch):
    """What searches are told: objectives and constraint, whoever keeps the population."""
    from pymoo.core.algorithm import Algorithm

    from designopt.solvers.evolution.elitist import Elitist

    recorded = []
    advance, join = Algorithm.advance, Elitist.select

    def recorded_advance(self, infills=None, **kwargs):
        recorded.append(np.column_stack([infills.get("F"), infills.get("G")]))
        return advance(self, infills=infills, **kwargs)

    def recorded_select(self):
        recorded.append(np.column_stack([self.alive.F, self.alive.violation]))
        return join(self)

    monkeypatch.setattr(Algorithm, "advance", recorded_advance)
    monkeypatch.setattr(Elitist, "select", recorded_select)
    return recorded


@pytest.mark.parametrize("solver", [NSGA2])
def test_only_finite_numbers_reach_the_search(monkeypatch, solver):
    recorded = _recording(monkeypatch)

    def function(design, scenario):
        if design["x"] < 0.2:
            raise Diverged("no answer")
        value = float("nan") if design["x"] < 0.4 else float("inf") if design["x"] < 0.6 else 1e308 * design["x"]
        return {"f": value, "g": -value}

    problem = problem_from(function, [DesignVariable("x", "real", 0.0, 1.0)], minimize="fg", relations=["x <= 0.9"])
    run(solver(population=40), problem, 200)
    values = np.concatenate(recorded)
    assert np.isfinite(values).all()
    assert set(values[values[:, 2] == 2.0][:, 0]) == {0.0}  # failed
    assert np.any((values[:, 2] >= 1.0) & (values[:, 2] < 2.0))  # breaks the relation
    assert np.any(values[:, 2] == 0.0)


def test_an_objective_that_seldom_has_a_value_leads_the_search_to_where_it_has_one():
    # f is the logarithm of a number that is negative on 90 % of the space; g has a value everywhere.
    problem = problem_from(
        lambda d, s: {"a": d["x"] - 0.9, "g": d["x"] + d["y"]},
        [DesignVariable("x", "real", 0.0, 1.0), DesignVariable("y", "real", 0.0, 1.0)],
        minimize=["0 - log(a)", "g"],
    )
    evaluate = run(NSGA2(population=20), problem, 400)
    with_value = evaluate.X[:, 0] > 0.9
    assert with_value[:20].mean() < 0.4
    assert with_value[-60:].mean() > 0.8


def test_designs_that_break_a_relation_lead_back_to_where_it_holds():
    problem = problem_from(
        lambda d, s: {"f": d["x"], "g": (d["x"] - 1) ** 2},
        [DesignVariable("x", "real", 0.0, 100.0), DesignVariable("y", "real", 0.0, 100.0)],
        minimize="fg",
        relations=["x + y <= 2"],  # holds in 0.02 % of the box
    )
    evaluate = run(NSGA2(population=30), problem, 300)
    assert (problem.space.relation_violation(evaluate.X) == 0.0).sum() == 300


# ------------------------------------------------------------------------------------------------- integers, choices


def test_integers_and_choices_are_whole_and_never_asked_for_twice():
    def function(design, scenario):
        shift = {"a": 0.0, "b": 0.5, "c": 2.0}[design["kind"]]
        return {"f": (design["n"] - 7) ** 2 + shift, "g": design["n"] ** 2 + design["m"] + shift}

    space = [
        DesignVariable("n", "int", -20, 20),
        DesignVariable("m", "int", 0, 9),
        DesignVariable("kind", "choice", values=("a", "b", "c")),
    ]
    X = run(NSGA2(population=20), problem_from(function, space, minimize="fg"), 240).X
    assert np.array_equal(X, np.rint(X))
    assert len(np.unique(X, axis=0)) == len(X) == 240
    # The front is n in 0..7, m = 0, kind a.
    assert {n for n, m, kind in X.tolist() if m == 0 and kind == 0} >= set(range(8))


def test_where_mating_finds_nothing_new_the_budget_goes_to_random_designs():
    # One value is best by far: soon the population is its neighbourhood, and all of that has been asked for.
    space = [DesignVariable("n", "int", 0, 2000)]
    problem = problem_from(lambda d, s: {"f": abs(d["n"] - 1000)}, space, minimize=["f"])
    X = run(NSGA2(population=10, mutation=Mutation(probability=0.0)), problem, 80).X
    assert len(np.unique(X)) == len(X) == 80


# ------------------------------------------------------------------------------------------------------ small numbers


@pytest.mark.parametrize("budget", [2, 3, 41, 60])
def test_any_budget_is_spent_to_the_last_design(budget):
    problem, _, _ = pymoo_problem("bnh")
    assert len(run(NSGA2(population=20 if budget > 20 else 2), problem, budget).X) == budget


# ---------------------------------------------------------------------------------------------------------- start_from


def test_known_designs_that_failed_do_not_take_a_place():
    def function(design, scenario):
        if design["x"] > 0.5:
            raise Diverged("no answer")
        return {"f": design["x"], "g": -design["x"]}

    problem = problem_from(function, [DesignVariable("x", "real", 0.0, 1.0)], minimize="fg")
    evaluate = run(NSGA2(population=10), problem, 20, start=np.array([[0.9], [0.8], [0.1]]))
    assert len(evaluate.batches[0]) == 9


# -------------------------------------------------------------------------------------------------------------- limits


def test_the_smallest_sensible_budget_is_one_population():
    problem, _, _ = pymoo_problem("bnh")
    assert NSGA2(population=37).minimum_budget(problem) == 37
    assert NSGA2.needs_budget


def test_nothing_to_search_for_is_refused():
    with pytest.raises(InvalidSetting, match="needs a free parameter"):
        NSGA2().check(
            problem_from(lambda d, s: {"f": 0.0}, [DesignVariable("x", "fixed", values=(1.0,))], minimize=["f"])
        )
    with pytest.raises(InvalidSetting, match="needs an objective"):
        NSGA2().check(problem_from(lambda d, s: {"f": 0.0}, [DesignVariable("x", "real", 0.0, 1.0)], minimize=[]))


def test_no_more_designs_are_on_their_way_than_there_are_to_breed_from():
    problem = pymoo_problem("zdt1", n_var=3)[0]
    with pytest.raises(
        InvalidSetting, match=r"100 pending designs are more than the population of 4: .*give at most 4"
    ):
        NSGA2(population=4, look_ahead=100).check(problem)
    NSGA2(population=4, look_ahead=4).check(problem)


def test_settings_come_back_from_a_store_as_they_were():
    import json

    from designopt.plugin import Use, find
    from designopt.store import archive
    from designopt.study.study import Stage, StudyDefinition

    settings = {
        "population": 20,
        "offspring": None,
        "look_ahead": None,
        "crossover": Crossover(eta=5.0),
        "mutation": Mutation(),
    }
    problem, _, _ = pymoo_problem("bnh")
    study = StudyDefinition(
        name="s",
        model=problem.model,
        space=problem.space.parameters,
        objectives=problem.objectives,
        stages=(Stage("front", Use(find("solver", "nsga2"), settings)),),
    )
    data = json.loads(json.dumps(archive.encode(study)))
    assert archive.decode(data, file=lambda digest: b"").stages == study.stages
