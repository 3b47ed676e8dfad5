"""Hypervolume after few evaluations: gp beside the other solvers, Optuna and BoTorch. Run: pytest -m bench -s.

The peers are no dependencies: name a Python that has optuna and botorch in the environment variable DESIGNOPT_PEERS;
without it the solvers here are compared with each other. DESIGNOPT_FEW="100 5" sets evaluations and seeds (60 and 3
without it), DESIGNOPT_FEW_PEERS the methods of `peers.py` that take part.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import moocore
import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from designopt.problem import StageEnded
from designopt.solvers.evolution.many_objectives import NSGA2
from designopt.solvers.evolution.single_objective import Genetic
from designopt.solvers.surrogate.solver import GaussianProcessSearch
from designopt.solvers.tpe import TPE
from designopt.study.study import Parameter
from designopt.testing import InProcess, no_outcomes, problem_from

sys.path.insert(0, str(Path(__file__).parent))
from problems import PROBLEMS, TestProblem

pytestmark = pytest.mark.bench

EVALUATIONS, SEEDS = (int(n) for n in os.environ.get("DESIGNOPT_FEW", "60 3").split())
PYTHON = os.environ.get("DESIGNOPT_PEERS")
PEERS = os.environ.get("DESIGNOPT_FEW_PEERS", "optuna_tpe optuna_gp optuna_nsga2 botorch").split() if PYTHON else []

#: Lower and upper corner of the front, and its hypervolume over these below 1.1 in each objective: the nondominated
#: designs of two runs of NSGA-II with 50 000 evaluations each (population 200). For one objective the optimum, and
#: what is worth nothing.
FRONTS = {
    "truss_re21": ((1237.846, 0.00276149), (2886.36368, 0.040001), 0.886565),
    "hatch_cover_re24": ((60.5, 0.0), (481.6124, 44.281905), 1.170683),
    "crashworthiness_re34": ((1661.70851, 6.1429479, 0.04248643), (1692.00128, 10.55791, 0.26399), 1.036567),
    "welded_beam_cre22": ((1.747211, 0.00043904), (35.64620, 0.0139855), 1.130396),
    "disc_brake_cre23": ((1.284751, 1.139072), (5.306698, 3.218204), 1.030843),
    "speed_reducer_cre24": ((2771.9755, 694.7068), (5775.7669, 1299.83432), 1.179981),
    "side_impact_cre31": ((23.678227, 3.585253, 10.610852), (42.759399, 4.0, 12.514571), 0.810368),
    "bnh": ((0.0, 4.0), (136.0, 50.0), 1.023682),
    "osy": ((-273.884239, 4.003479), (-41.9562, 76.66391), 0.969285),
    "zdt1_5": ((0.0, 0.0), (1.0, 1.0), 0.874971),
    "dtlz2_3_7": ((0.0, 0.0, 0.0), (1.01336, 1.006217, 1.001179), 0.767625),
    "branin": ((0.397887,), (10.0,), 1.1),
}


def _posed(p: TestProblem):
    names = [f"x{i}" for i in range(len(p.lower))]
    kinds = ["int" if i in p.integers else "real" for i in range(len(names))]
    space = [Parameter(*one) for one in zip(names, kinds, p.lower, p.upper, strict=True)]

    def function(design, scenario):
        F, G = p.function(np.array([design[n] for n in names], dtype=float))
        return {f"f{i}": v for i, v in enumerate(F)} | {f"g{i}": v for i, v in enumerate(G)}

    minimize, limits = [f"f{i}" for i in range(p.objectives)], {f"g{i}": 0.0 for i in range(p.limits)}
    return problem_from(function, space, minimize=minimize, limits=limits)


def _share(p: TestProblem, X: np.ndarray) -> float:
    """The hypervolume of designs, relative to that of the front."""
    low, high, best = FRONTS[p.name]
    rows = [p.function(x) for x in X]
    F = np.array([f for f, g in rows if all(v <= 0.0 for v in g)]).reshape(-1, p.objectives)
    F = (F - low) / (np.array(high) - low)
    F = F[(F < 1.1).all(axis=1)]
    return moocore.hypervolume(F, ref=np.full(p.objectives, 1.1)) / best if len(F) else 0.0


def _own(make, p: TestProblem, seed: int) -> np.ndarray:
    problem = _posed(p)
    evaluate = InProcess(problem, EVALUATIONS)
    with contextlib.suppress(StageEnded):
        make().solve(problem, evaluate, np.random.default_rng(seed), no_outcomes(problem))
    return evaluate.X


def _peer(method: str, p: TestProblem, seed: int) -> np.ndarray:
    command = [PYTHON, str(Path(__file__).with_name("peers.py")), method, p.name, str(seed), str(EVALUATIONS)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=3600, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr
    return np.array([json.loads(line) for line in done.stdout.splitlines()])


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_search_with_gaussian_processes_is_among_the_first(name, record_property):
    p = PROBLEMS[name]
    evolution = (lambda: NSGA2(population=20)) if p.objectives > 1 else (lambda: Genetic(population=20))
    shares = {"gp": [], "tpe": [], "evolution": [], **{peer: [] for peer in PEERS}}
    own_time = []
    for seed in range(SEEDS):
        began = time.process_time()
        shares["gp"].append(_share(p, _own(GaussianProcessSearch, p, seed)))
        own_time.append((time.process_time() - began) / EVALUATIONS)
        shares["tpe"].append(_share(p, _own(TPE, p, seed)))
        shares["evolution"].append(_share(p, _own(evolution, p, seed)))
        for peer in PEERS:
            shares[peer].append(_share(p, _peer(peer, p, seed)))
    medians = {method: statistics.median(values) for method, values in shares.items()}
    for method, value in medians.items():
        record_property(f"share of the hypervolume after {EVALUATIONS}: {method}", value)
    record_property("ms of processor a design: gp", 1e3 * statistics.median(own_time))
    print(name, {method: round(value, 3) for method, value in medians.items()})
    first = max(medians, key=medians.__getitem__)
    better = mannwhitneyu(shares[first], shares["gp"], alternative="greater").pvalue if first != "gp" else 1.0
    record_property("p of the first being better than gp", better)
    assert medians["gp"] >= 0.9 * medians[first]
