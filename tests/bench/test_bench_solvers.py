"""Overhead of the adapter of pymoo's algorithms, and gain by the archive. Run with: pytest -m bench -s."""

import time

import moocore
import numpy as np
import pytest
from pymoo.algorithms.moo.nsga2 import NSGA2 as PymooNSGA2
from pymoo.core.problem import Problem as PymooProblem
from pymoo.optimize import minimize
from pymoo.problems import get_problem

from designopt.problem import Outcomes, Problem, StageEnded
from designopt.solvers.evolution.many_objectives import NSGA2
from designopt.study.study import DesignVariable
from designopt.testing import no_outcomes, problem_from

pytestmark = pytest.mark.bench

EVALUATIONS = 10_000
PROBLEMS = [("zdt1", {}), ("zdt2", {}), ("zdt3", {}), ("dtlz2", {"n_var": 12, "n_obj": 3}), ("bnh", {}), ("osy", {})]


class Batches:
    """An `evaluate` around pymoo's own vectorised problem: its cost is the same for both sides."""

    def __init__(self, original: PymooProblem) -> None:
        self.original = original
        self.left = EVALUATIONS
        self.batches: list[Outcomes] = []

    def __call__(self, X: np.ndarray) -> Outcomes:
        if self.left <= 0:
            raise StageEnded
        X = X[: self.left]
        self.left -= len(X)
        out = self.original.evaluate(X, return_as_dictionary=True)
        G = out["G"] if self.original.n_ieq_constr else np.zeros((len(X), 1))
        none = np.zeros(len(X), dtype=bool)
        self.batches.append(Outcomes(X, out["F"], np.maximum(G, 0.0).sum(axis=1), none, none, {}))
        return self.batches[-1]


def as_problem(original: PymooProblem) -> Problem:
    space = [
        DesignVariable(f"x{i}", "real", float(low), float(high))
        for i, (low, high) in enumerate(zip(original.xl, original.xu, strict=True))
    ]
    names = [f"f{j}" for j in range(original.n_obj)]
    return problem_from(lambda design, scenario: {}, space, minimize=names)  # evaluated by `Batches` instead


def through_designopt(name: str, options: dict, seed: int) -> tuple[float, Batches]:
    original = get_problem(name, **options)
    problem, evaluate = as_problem(original), Batches(original)
    began = time.perf_counter()
    with pytest.raises(StageEnded):
        NSGA2().solve(problem, evaluate, np.random.default_rng(seed), no_outcomes(problem))
    return time.perf_counter() - began, evaluate


def through_pymoo(name: str, options: dict, seed: int):
    original = get_problem(name, **options)
    began = time.perf_counter()
    result = minimize(original, PymooNSGA2(pop_size=100), ("n_eval", EVALUATIONS), seed=seed)
    return time.perf_counter() - began, result


def test_the_adapter_costs_little_beside_pymoos_own_loop():
    """NSGA-II with 10 000 evaluations of ZDT1, in turns; the adapter's share is its bookkeeping of designs."""
    ours, theirs = [], []
    for seed in range(5):
        seconds, evaluate = through_designopt("zdt1", {}, seed)
        ours.append(seconds)
        seconds, result = through_pymoo("zdt1", {}, seed)
        theirs.append(seconds)
        last = np.concatenate([outcomes.X for outcomes in evaluate.batches])[-100:]
        evaluated = {x.tobytes() for outcomes in evaluate.batches for x in outcomes.X}
        assert len(last) == 100
        assert {x.tobytes() for x in result.pop.get("X")} <= evaluated  # the same search
    ratio = float(np.median(ours) / np.median(theirs))
    print(
        f"\nZDT1, {EVALUATIONS} evaluations: pymoo {np.median(theirs):.2f} s, through designopt "
        f"{np.median(ours):.2f} s, ratio {ratio:.2f}"
    )
    assert ratio < 1.5


def test_the_archive_is_worth_more_than_the_last_population():
    """Hypervolume of all evaluated designs and of pymoo's final population, for the same seed."""
    print(f"\n{'problem':8} {'archive':>12} {'population':>12} {'lost':>8} {'in archive':>11}")
    for name, options in PROBLEMS:
        _, evaluate = through_designopt(name, options, seed=1)
        _, result = through_pymoo(name, options, seed=1)
        population = result.pop.get("F")[result.pop.get("FEAS")[:, 0]]
        F = np.concatenate([outcomes.objectives[outcomes.feasible] for outcomes in evaluate.batches])
        front = moocore.filter_dominated(F)
        reference = front.max(axis=0) + 0.1 * np.ptp(front, axis=0)
        archive, last = (float(moocore.hypervolume(points, ref=reference)) for points in (front, population))
        print(f"{name:8} {archive:12.6g} {last:12.6g} {100.0 * (archive - last) / archive:7.2f}% {len(front):11d}")
        assert archive >= last * (1.0 - 1e-12)
