"""Hypervolume after few evaluations: gp beside Optuna, BoTorch, pymoo, SMAC. Run: pytest -m bench -n 0 -s.

The peers are no dependencies: name a Python that has optuna, botorch and smac in the environment variable
DESIGNOPT_PEERS; without it pymoo and nsga2 are what gp is compared with. DESIGNOPT_FEW="100 3" sets evaluations
and seeds (60 and 3 without it), DESIGNOPT_FEW_PEERS the peers, DESIGNOPT_FEW_FOLDER the folder of known runs.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from scipy.stats import mannwhitneyu

sys.path.insert(0, str(Path(__file__).parent))
from measure import PEERS, measure
from problems import TWELVE
from table import rows

pytestmark = pytest.mark.bench

EVALUATIONS, SEEDS = (int(n) for n in os.environ.get("DESIGNOPT_FEW", "60 3").split())
KNOWN = " ".join(PEERS) if "DESIGNOPT_PEERS" in os.environ else "pymoo"
SEARCHES = ["gp", "nsga2", *os.environ.get("DESIGNOPT_FEW_PEERS", KNOWN).split()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    given = os.environ.get("DESIGNOPT_FEW_FOLDER")
    return Path(given) if given else tmp_path_factory.mktemp("runs")


@pytest.mark.parametrize("name", TWELVE)
def test_the_search_with_gaussian_processes_is_among_the_first(name, folder, record_property):
    for search in SEARCHES:
        for seed in range(SEEDS):
            measure(folder, name, search, seed, EVALUATIONS, 3600.0)
    shares = defaultdict(list)
    for problem, search, seed, _, value, _ in rows(folder, (EVALUATIONS,)):
        if problem == name and search in SEARCHES and seed < SEEDS:
            shares[search].append(value)
    medians = {search: statistics.median(values) for search, values in shares.items()}
    for search, value in medians.items():
        record_property(f"share of the hypervolume after {EVALUATIONS}: {search}", value)
    first = max(medians, key=medians.__getitem__)
    better = mannwhitneyu(shares[first], shares["gp"], alternative="greater").pvalue if first != "gp" else 1.0
    record_property("p of the first being better than gp", better)
    print(name, {search: round(value, 3) for search, value in medians.items()}, f"p {better:.3f}")
    assert medians["gp"] >= 0.9 * medians[first]
