"""NSGA-III and SMS-EMOA: pymoo's own sequences, reference directions; of NSGA-II too, what the framework adds."""

import warnings

import numpy as np
import pytest
from pymoo.algorithms.moo.nsga2 import NSGA2 as PymooNSGA2
from pymoo.algorithms.moo.nsga3 import NSGA3 as PymooNSGA3
from pymoo.algorithms.moo.sms import SMSEMOA as PymooSMSEMOA
from pymoo.algorithms.moo.sms import LeastHypervolumeContributionSurvival
from pymoo.operators.crossover.sbx import SBX
from pymoo.operators.mutation.pm import PM
from pymoo.util.ref_dirs import get_reference_directions
from pymoo_cases import FRONTS, asks_of_pymoo, pymoo_problem, run, solved

from designopt.plugin import Diverged, InvalidSetting
from designopt.solvers.evolution.many_objectives import NSGA2, NSGA3, PARTITIONS, SMSEMOA, Crossover, Mutation
from designopt.study.study import DesignVariable
from designopt.testing import problem_from

PLANE = (DesignVariable("x", "real", 0.0, 1.0), DesignVariable("y", "real", 0.0, 1.0))
SOLVERS = [NSGA2(population=20), NSGA3(partitions=11, population=20), SMSEMOA(population=20)]


def by_name(value):
    return type(value).__name__ if not isinstance(value, (tuple, str)) else value[0]


# ------------------------------------------------------------------------------------------------------- as in pymoo


@pytest.mark.parametrize("case", FRONTS, ids=by_name)
def test_nsga3_asks_for_exactly_the_designs_that_pymoo_evaluates(case):
    partitions = 5 if case[0] == "dtlz2" else 20
    directions = get_reference_directions("das-dennis", 3 if case[0] == "dtlz2" else 2, n_partitions=partitions)
    problem, expected = asks_of_pymoo(case, PymooNSGA3(directions), 420, seed=1)
    assert np.array_equal(run(NSGA3(partitions=partitions), problem, 420).X, expected)


@pytest.mark.parametrize("case", FRONTS, ids=by_name)
def test_sms_emoa_asks_for_exactly_the_designs_that_pymoo_evaluates(case):
    problem, expected = asks_of_pymoo(case, PymooSMSEMOA(pop_size=20), 400, seed=2)
    assert np.array_equal(run(SMSEMOA(population=20), problem, 400, seed=2).X, expected)


def test_settings_mean_what_they_mean_in_pymoo():
    changed = {"crossover": Crossover(probability=0.7, eta=5), "mutation": Mutation(probability=0.4, eta=9)}
    theirs = {"crossover": SBX(prob=0.7, eta=5), "mutation": PM(prob=0.4, eta=9)}
    case = ("zdt3", {})
    problem, expected = asks_of_pymoo(case, PymooNSGA2(pop_size=15, n_offsprings=4, **theirs), 90, seed=3)
    assert np.array_equal(run(NSGA2(population=15, offspring=4, **changed), problem, 90, seed=3).X, expected)
    problem, expected = asks_of_pymoo(
        case,
        PymooSMSEMOA(pop_size=15, n_offsprings=4, survival=LeastHypervolumeContributionSurvival(eps=0.1), **theirs),
        90,
        seed=3,
    )
    assert np.array_equal(
        run(SMSEMOA(population=15, offspring=4, reference=0.1, **changed), problem, 90, seed=3).X, expected
    )
    directions = get_reference_directions("energy", 2, 9, seed=1)
    problem, expected = asks_of_pymoo(case, PymooNSGA3(directions, pop_size=14, n_offsprings=5, **theirs), 90, seed=3)
    solver = NSGA3(directions=9, population=14, offspring=5, **changed)
    assert np.array_equal(run(solver, problem, 90, seed=3).X, expected)


# ---------------------------------------------------------------------------------------------- reference directions


@pytest.mark.parametrize(
    ("objectives", "count"),
    # Deb & Jain (2014), table I, for 3, 8, 10 and 15 objectives; for 2, 4 and 5 there are about a hundred.
    [(2, 100), (3, 91), (4, 120), (5, 126), (8, 156), (10, 275), (15, 135)],
)
def test_the_number_of_directions_follows_from_the_objectives(objectives, count):
    directions = NSGA3().reference_directions(objectives)
    assert directions.shape == (count, objectives)
    np.testing.assert_allclose(directions.sum(axis=1), 1.0, rtol=1e-12)
    assert np.all(directions >= 0.0)
    assert len(np.unique(directions.round(9), axis=0)) == count
    names = [f"f{i}" for i in range(objectives)]
    problem = problem_from(lambda d, s: dict.fromkeys(names, 0.0), PLANE, minimize=names)
    assert NSGA3().minimum_budget(problem) == count


def test_directions_by_energy_are_as_many_as_asked_for_and_apart():
    from scipy.spatial.distance import pdist

    directions = NSGA3(directions=10).reference_directions(3)
    assert directions.shape == (10, 3)
    np.testing.assert_allclose(directions.sum(axis=1), 1.0, rtol=1e-9)
    grid = NSGA3(partitions=3).reference_directions(3)  # 10 too
    assert pdist(directions).min() > 0.7 * pdist(grid).min()


def test_the_table_of_partitions_has_two_layers_from_six_objectives_on():
    assert [len(PARTITIONS[m]) for m in sorted(PARTITIONS)] == [1, 1, 1, 1, 2, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("settings", "minimize", "message"),
    [
        ({}, "f", "nsga3 spreads designs along a front and needs two objectives; for one use genetic or cma_es"),
        ({"partitions": 5, "directions": 9}, "fg", "directions: give 'partitions' or 'directions', not both"),
        ({"directions": 2}, ["f", "g", "f + g"], "directions: 3 objectives need at least 3 directions, not 2"),
        ({"partitions": 200}, ["f", "g", "f + g"], "partitions: 20301 directions for 3 objectives; at most 10000"),
        ({"population": 50}, "fg", "population: there are 100 directions and only 50 designs to serve them"),
    ],
)
def test_directions_that_do_not_fit_are_refused_with_the_reason(settings, minimize, message):
    problem = problem_from(lambda d, s: {"f": 0.0, "g": 0.0}, PLANE, minimize=minimize)
    with pytest.raises(InvalidSetting, match=message):
        NSGA3(**settings).check(problem)


@pytest.mark.parametrize("solver", [SMSEMOA()], ids=by_name)
def test_one_objective_is_refused_with_the_way_out(solver):
    problem = problem_from(lambda d, s: {"f": 0.0}, PLANE, minimize="f")
    with pytest.raises(InvalidSetting, match="needs two objectives; for one use genetic or cma_es"):
        solver.check(problem)


# -------------------------------------------------------------------------------------------- what the framework adds


@pytest.mark.parametrize("solver", SOLVERS, ids=by_name)
def test_failed_designs_are_left_for_infeasible_and_these_for_feasible_ones(solver):
    def function(design, scenario):
        if design["x"] > 0.7:
            raise Diverged("no answer")
        return {"f": -design["x"], "g": design["y"], "h": design["x"] - 0.3}

    evaluate = run(solver, problem_from(function, PLANE, minimize="fg", limits={"h": 0.0}), 600)
    first, last = evaluate.X[:20, 0], evaluate.X[-100:, 0]
    assert np.mean(first > 0.7) > 0.1
    assert np.mean(last > 0.7) < 0.1
    assert np.mean(last <= 0.3) > 0.5


@pytest.mark.parametrize("solver", SOLVERS, ids=by_name)
def test_known_designs_enter_the_first_population_the_best_when_there_are_too_many(solver):
    problem, _, _ = pymoo_problem("zdt1")
    front = np.zeros((20, 30))
    front[:, 0] = np.linspace(0.0, 1.0, 20)
    few = run(solver, problem, 40, start=front[::2])
    assert len(few.batches[0]) == 10  # random ones fill the population up
    poor = np.random.default_rng(0).random((50, 30))
    many = run(solver, problem, 20, start=np.concatenate([poor, front]))
    assert np.mean(many.batches[0][:, 1:] == 0.0) > 0.7  # children of designs on the front alone
    assert not {x.tobytes() for x in front} & {x.tobytes() for x in np.concatenate([few.X, many.X])}


@pytest.mark.parametrize("solver", SOLVERS, ids=by_name)
def test_no_design_is_proposed_twice_and_a_small_space_is_exhausted(solver):
    space = [DesignVariable("n", "int", 0, 5), DesignVariable("kind", "choice", values=("a", "b", "c"))]
    problem = problem_from(lambda d, s: {"f": d["n"], "g": -d["n"] * len(d["kind"])}, space, minimize="fg")
    evaluate = solved(solver, problem, 1000)
    assert len(np.unique(evaluate.X, axis=0)) == len(evaluate.X) == 18
    assert evaluate.tells == "every design of the space has been evaluated"


@pytest.mark.parametrize("solver", SOLVERS, ids=by_name)
def test_objectives_of_any_size_are_survived_and_filters_of_warnings_stay(solver):
    def function(design, scenario):
        return {"f": 1e308 * (design["x"] - 0.5), "g": -1.7e308 * design["x"] + 1e300 * design["y"], "h": 7.0}

    before = list(warnings.filters)
    for minimize in (["f", "g"], ["h", "h"]):
        assert len(run(solver, problem_from(function, PLANE, minimize=minimize), 130).X) == 130
    assert warnings.filters == before


@pytest.mark.parametrize("solver", [NSGA2(population=2), NSGA3(partitions=1), SMSEMOA(population=2)], ids=by_name)
def test_the_smallest_population_works(solver):
    problem, _, _ = pymoo_problem("bnh")
    assert solver.minimum_budget(problem) == 2
    assert len(run(solver, problem, 31).X) == 31
