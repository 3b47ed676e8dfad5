"""The genetic algorithm and CMA-ES: pymoo's sequences, known optima, restarts, ranks."""

import subprocess
import sys

import numpy as np
import pytest
from pymoo.algorithms.soo.nonconvex.ga import GA as PymooGA
from pymoo.core.problem import Problem as SearchProblem
from pymoo.operators.crossover.sbx import SBX
from pymoo_cases import asks_of_pymoo, run, solved

from designopt.plugin import Diverged, InvalidDesign, InvalidSetting
from designopt.solvers.evolution.labels import label_columns
from designopt.solvers.evolution.many_objectives import NSGA2
from designopt.solvers.evolution.pymoo_search import Crossover, Mutation, variation
from designopt.solvers.evolution.single_objective import CMAES, Genetic
from designopt.study.study import DesignVariable
from designopt.testing import problem_from

PLANE = (DesignVariable("x", "real", 0.0, 1.0), DesignVariable("y", "real", 0.0, 1.0))
SOLVERS = [Genetic(population=12), CMAES(population=12)]
PROBLEMS = [("rosenbrock", {"n_var": 4}), ("g1", {})]  # g1 has nine limits


def by_name(value):
    return type(value).__name__ if not isinstance(value, tuple) else value[0]


def minimised(function, space, **options):
    return problem_from(lambda d, s: {"f": float(function(**d))}, space, minimize=["f"], **options)


def cube(n: int, low: float, high: float) -> list[DesignVariable]:
    return [DesignVariable(f"x{i}", "real", low, high) for i in range(n)]


# ------------------------------------------------------------------------------------------------------- as in pymoo


@pytest.mark.parametrize("case", PROBLEMS, ids=by_name)
def test_genetic_asks_for_exactly_the_designs_that_pymoo_evaluates(case):
    problem, expected = asks_of_pymoo(case, PymooGA(pop_size=20), 300, seed=1)
    assert np.array_equal(run(Genetic(population=20), problem, 300).X, expected)


# -------------------------------------------------------------------------------------------------------- known optima


def test_cma_es_follows_a_bent_valley_to_its_end():
    # Rosenbrock's function in four dimensions has its only optimum at 1.
    def rosenbrock(**design):
        x = np.array(list(design.values()))
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    X = run(CMAES(), minimised(rosenbrock, cube(4, -1.0, 3.0)), 2500).X
    assert np.abs(X - 1.0).max(axis=1).min() < 1e-5


def test_cma_es_does_not_mind_the_scale_of_objectives_only_their_order():
    def bowl(x, y):
        return (x - 0.3) ** 2 + 10.0 * (y - 0.6) ** 2

    plain = run(CMAES(tolerance=0.0), minimised(bowl, PLANE), 300).X
    bent = run(CMAES(tolerance=0.0), minimised(lambda x, y: np.log(bowl(x, y) + 1e-300) * 1e6, PLANE), 300).X
    assert np.array_equal(plain, bent)


@pytest.mark.parametrize("solver", [Genetic(population=30), CMAES()], ids=by_name)
def test_limits_are_kept_at_the_optimum(solver):
    # The nearest point of the plane to (1, 1) with x + y <= 1 is (0.5, 0.5).
    problem = problem_from(
        lambda d, s: {"f": (d["x"] - 1.0) ** 2 + (d["y"] - 1.0) ** 2, "h": d["x"] + d["y"]},
        PLANE,
        minimize=["f"],
        limits={"h": 1.0},
    )
    evaluate = run(solver, problem, 900)
    outcomes = evaluate.outcomes(evaluate.X)
    best = outcomes.objectives[outcomes.feasible].min()
    assert 0.5 <= best < 0.51


@pytest.mark.parametrize("solver", [Genetic(population=30), CMAES()], ids=by_name)
def test_an_optimum_on_a_bound_is_found_exactly_on_it_or_beside_it(solver):
    X = run(solver, minimised(lambda x, y: x - 2.0 * y, PLANE), 900).X
    assert np.min(X[:, 0] + 1.0 - X[:, 1]) < 1e-3


def test_cma_es_searches_one_parameter_too():
    X = run(CMAES(), minimised(lambda x: (x - 0.123) ** 2, PLANE[:1]), 150).X
    assert np.abs(X - 0.123).min() < 1e-4


def test_cma_es_moves_whole_numbers_and_choices():
    space = [
        DesignVariable("n", "int", -50, 50),
        DesignVariable("m", "int", 0, 30),
        DesignVariable("kind", "choice", values=("a", "b")),
    ]
    problem = minimised(lambda n, m, kind: (n - 17) ** 2 + (m - 4) ** 2 + (kind == "a"), space)
    X = run(CMAES(), problem, 500).X
    assert len(np.unique(X, axis=0)) == len(X)
    assert [17.0, 4.0, 1.0] in X.tolist()


def test_cma_es_begins_anew_with_a_larger_population_and_leaves_a_local_optimum():
    # Two valleys: one in the middle, where the first run begins, and a deeper one at (0.9, 0.9).
    def valleys(x, y):
        return min((x - 0.5) ** 2 + (y - 0.5) ** 2, (x - 0.9) ** 2 + (y - 0.9) ** 2 - 0.1)

    evaluate = run(CMAES(step=0.02), minimised(valleys, PLANE), 2500)
    sizes = [len(batch) for batch in evaluate.batches]
    assert set(sizes[:-1]) >= {6, 12, 24}
    first = np.concatenate(evaluate.batches[: sizes.index(12)])
    assert np.abs(first - 0.5).max(axis=1).min() < 1e-5
    assert np.abs(first - 0.9).max(axis=1).min() > 0.1
    assert np.abs(evaluate.X - 0.9).max(axis=1).min() < 1e-5


def test_cma_es_ends_by_itself_after_its_restarts():
    problem = minimised(lambda x, y: (x - 0.3) ** 2 + (y - 0.3) ** 2, PLANE)
    alone, thrice = (solved(CMAES(restarts=restarts), problem, 100_000) for restarts in (0, 2))
    assert alone.tells == "the search has converged"
    assert thrice.tells == "all 3 searches have converged"
    assert np.array_equal(thrice.X[: len(alone.X)], alone.X)
    assert np.abs(alone.X - 0.3).min() < 1e-5


def test_a_place_where_all_designs_fail_is_left_for_another_one():
    def function(design, scenario):
        if design["x"] < 0.9:
            raise Diverged("no answer")
        return {"f": (design["x"] - 0.95) ** 2 + design["y"] ** 2}

    X = run(CMAES(step=0.02), problem_from(function, PLANE, minimize=["f"]), 600).X
    assert np.all(X[:6, 0] < 0.9)
    assert np.hypot(X[:, 0] - 0.95, X[:, 1]).min() < 1e-2


# ---------------------------------------------------------------------------------------------------------- start_from


def test_cma_es_begins_at_the_best_known_design():
    problem = minimised(
        lambda k, y: (np.log10(k) - 1.0) ** 2 + y, [DesignVariable("k", "real", 0.01, 100.0, scale="log"), PLANE[1]]
    )
    start = np.array([[0.02, 0.5], [9.0, 0.2], [90.0, 0.9]])
    X = run(CMAES(step=0.01), problem, 12, start=start).X
    assert np.all(np.abs(np.log10(X[:, 0] / 9.0)) < 0.3)
    assert np.all(np.abs(X[:, 1] - 0.2) < 0.1)


@pytest.mark.parametrize("solver", SOLVERS[:1], ids=by_name)
def test_known_designs_enter_the_first_population_the_best_when_there_are_too_many(solver):
    problem = minimised(lambda x, y: x + y, PLANE)
    good = np.random.default_rng(0).random((12, 2)) * 0.01
    few = run(solver, problem, 30, start=good[:5])
    assert len(few.batches[0]) == 7
    poor = np.random.default_rng(1).random((30, 2)) * 0.5 + 0.5
    many = run(solver, problem, 12, start=np.concatenate([poor, good]))
    assert np.mean(many.batches[0].max(axis=1) < 0.1) > 0.7


# ------------------------------------------------------------------------------------------------------------- rules


@pytest.mark.parametrize("solver", SOLVERS, ids=by_name)
def test_no_design_is_proposed_twice_and_a_small_space_is_exhausted(solver):
    space = [
        DesignVariable("n", "int", 0, 5),
        DesignVariable("kind", "choice", values=("a", "b", "c")),
        DesignVariable("m", "int", 4, 4),
    ]
    evaluate = solved(solver, minimised(lambda n, kind, m: n + len(kind), space), 1000)
    assert len(np.unique(evaluate.X, axis=0)) == len(evaluate.X) == 18
    assert evaluate.tells == "every design of the space has been evaluated"


@pytest.mark.parametrize("solver", SOLVERS, ids=by_name)
def test_several_objectives_are_refused_with_the_way_out(solver):
    problem = problem_from(lambda d, s: {"f": 0.0, "g": 0.0}, PLANE, minimize="fg")
    with pytest.raises(
        InvalidSetting, match="minimises one objective, not 2; use nsga2 for a front, or make limits of"
    ):
        solver.check(problem)


@pytest.mark.parametrize("solver", SOLVERS, ids=by_name)
def test_objectives_of_any_size_and_all_alike_are_survived(solver):
    for function in (lambda x, y: 1.7e308 * (x - 0.5), lambda x, y: 7.0, lambda x, y: -1e-320 * x):
        assert len(run(solver, minimised(function, PLANE), 150).X) == 150


@pytest.mark.parametrize("solver", SOLVERS, ids=by_name)
def test_refused_designs_cost_no_budget(solver):
    def function(design, scenario):
        if design["x"] > 0.4:
            raise InvalidDesign("too large")
        return {"f": -design["x"]}

    evaluate = run(solver, problem_from(function, PLANE, minimize=["f"]), 100)
    assert np.sum(evaluate.X[:, 0] <= 0.4) == 100
    assert evaluate.X[evaluate.X[:, 0] <= 0.4, 0].max() > 0.36


def test_cma_es_neither_prints_nor_writes_nor_reads_options_of_the_working_folder(tmp_path):
    (tmp_path / "cma_signals.in").write_text("{'timeout': 0}")  # cma would stop for it
    code = (
        "import numpy as np\n"
        "from designopt.problem import StageEnded\n"
        "from designopt.solvers.evolution.single_objective import CMAES\n"
        "from designopt.study.study import DesignVariable\n"
        "from designopt.testing import InProcess, no_outcomes, problem_from\n"
        "space = [DesignVariable('x', 'real', 0.0, 1.0), DesignVariable('y', 'real', 0.0, 1.0)]\n"
        "problem = problem_from(lambda d, s: {'f': d['x'] ** 2 + d['y']}, space, minimize=['f'])\n"
        "evaluate = InProcess(problem, 60)\n"
        "try:\n"
        "    CMAES().solve(problem, evaluate, np.random.default_rng(1), no_outcomes(problem))\n"
        "except StageEnded:\n"
        "    assert len(evaluate.X) == 60\n"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert (process.stdout, process.stderr) == ("", "")
    assert [path.name for path in tmp_path.iterdir()] == ["cma_signals.in"]


# ------------------------------------------------------------------------------------------------------------ labels

LABELS = DesignVariable("label", "choice", values=("a", "b", "c", "d", "e", "f"))


@pytest.mark.parametrize("solver", [Genetic(population=12), NSGA2(population=12)], ids=by_name)
def test_a_label_that_no_known_design_has_and_whose_neighbours_are_bad_is_found(solver):
    """As numbers, the first label would have to become the last in one step."""
    cost = {"a": 1.0, "b": 2.0, "c": 2.0, "d": 2.0, "e": 2.0, "f": 0.0}
    problem = minimised(lambda label, x: cost[label] + x**2, (LABELS, PLANE[0]))
    start = np.column_stack([np.zeros(12), np.linspace(0.1, 1.0, 12)])
    for seed in range(5):
        assert (run(solver, problem, 200, seed=seed, start=start).X[:, 0] == 5.0).sum() > 20


def test_labels_are_exchanged_and_redrawn_while_numbers_vary_as_in_pymoo():
    problem = minimised(lambda label, x, y: x, (LABELS, *PLANE))
    box = SearchProblem(n_var=3, xl=problem.space.lower, xu=problem.space.upper)
    operators = variation(Crossover(), Mutation(), problem.space)
    rng = np.random.default_rng(1)
    parents = np.stack([np.zeros((4000, 3)), np.full((4000, 3), 5.0)])
    parents[:, :, 1:] = rng.random((2, 4000, 2))
    children = operators["crossover"]._do(box, parents, random_state=np.random.default_rng(2))
    assert (np.sort(children[:, :, 0], axis=0) == [[0.0], [5.0]]).all()
    assert np.mean(children[0, :, 0] == 5.0) == pytest.approx(0.5, abs=0.05)
    numbers = SBX(prob=0.9, eta=15.0)._do(box, parents, random_state=np.random.default_rng(2))
    assert np.array_equal(children[:, :, 1:], numbers[:, :, 1:])
    mutants = operators["mutation"]._do(box, parents[0].copy(), random_state=rng)[:, 0]
    shares = np.bincount(mutants.astype(int), minlength=6) / len(mutants)
    assert shares == pytest.approx([5 / 6, *[1 / 30] * 5], abs=0.02)  # half of one in three parameters


def test_a_choice_among_numbers_keeps_their_order():
    numbered = DesignVariable("size", "choice", values=(4, 6, 8))
    assert label_columns(minimised(lambda size, x: x, (numbered, PLANE[0])).space) == {}
    assert label_columns(minimised(lambda label, x: x, (PLANE[0], LABELS)).space) == {1: 6}
