"""pymoo's test problems as problems of ours, and what pymoo itself asks for on them."""

import moocore
import numpy as np
from pymoo.core.problem import ElementwiseProblem
from pymoo.optimize import minimize
from pymoo.problems import get_problem

from designopt.problem import Problem, StageEnded
from designopt.study.study import DesignVariable
from designopt.testing import InProcess, no_outcomes, problem_from

#: Unconstrained fronts that are convex, concave, in pieces and of three objectives, and two with limits.
FRONTS = [("zdt1", {}), ("zdt2", {}), ("zdt3", {}), ("dtlz2", {"n_var": 12, "n_obj": 3}), ("bnh", {}), ("osy", {})]


def solved(solver, problem: Problem, budget: int, seed: int = 1, start: np.ndarray | None = None) -> InProcess:
    """What `solver` asked for until its budget was spent, or until it ended by itself."""
    evaluate = InProcess(problem, budget)
    start_outcomes = no_outcomes(problem) if start is None else evaluate.outcomes(start)
    try:
        evaluate.tells = solver.solve(problem, evaluate, np.random.default_rng(seed), start_outcomes)
    except StageEnded:
        evaluate.tells = None
    return evaluate


def run(solver, problem: Problem, budget: int, seed: int = 1, start: np.ndarray | None = None) -> InProcess:
    """The same for a budget that must be spent."""
    evaluate = solved(solver, problem, budget, seed, start)
    assert evaluate.has_ended
    return evaluate


def pymoo_problem(name: str, **options: int):
    """pymoo's test problem `name` twice: as a designopt problem, and for pymoo with a list of the points it asks for.

    Both evaluate one row at a time with the same code, so that not even the order of a summation differs.
    """
    original = get_problem(name, **options)
    n, m, k = original.n_var, original.n_obj, original.n_ieq_constr
    points: list[np.ndarray] = []

    def row(x):
        out = original.evaluate(np.array([x]), return_as_dictionary=True)
        return out["F"][0], out["G"][0] if k else []

    def function(design, scenario):
        F, G = row([design[f"x{i}"] for i in range(n)])
        return {f"f{j}": F[j] for j in range(m)} | {f"g{j}": G[j] for j in range(k)}

    class Reference(ElementwiseProblem):
        def __init__(self):
            super().__init__(n_var=n, n_obj=m, n_ieq_constr=k, xl=original.xl, xu=original.xu)

        def _evaluate(self, x, out, *args, **kwargs):
            points.append(x.copy())
            out["F"], out["G"] = row(x)

    space = [DesignVariable(f"x{i}", "real", float(original.xl[i]), float(original.xu[i])) for i in range(n)]
    limits = {f"g{j}": 0.0 for j in range(k)}
    return problem_from(function, space, minimize=[f"f{j}" for j in range(m)], limits=limits), Reference(), points


def asks_of_pymoo(case: tuple[str, dict], algorithm, evaluations: int, seed: int) -> tuple[Problem, np.ndarray]:
    """The problem, and the first `evaluations` designs that pymoo's own loop evaluates on it."""
    problem, reference, points = pymoo_problem(case[0], **case[1])
    minimize(reference, algorithm, ("n_eval", evaluations), seed=seed)
    return problem, np.array(points)[:evaluations]


def hypervolume(F: np.ndarray, reference: np.ndarray) -> float:
    """Of the feasible objectives `F` (n, m); 0 of none."""
    inside = F[np.less(F, reference).all(axis=1)]
    return float(moocore.hypervolume(inside, ref=reference)) if len(inside) else 0.0
