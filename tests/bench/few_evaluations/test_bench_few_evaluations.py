"""Hypervolume after few evaluations: gp beside Optuna, BoTorch, pymoo, SMAC. Run: pytest -m bench -n 0 -s.

The benchmark is `few_evaluations.yaml`. The peers are no dependencies: name a Python that has optuna, botorch and smac
in the environment variable DESIGNOPT_PEERS; without it pymoo and nsga2 are what gp is compared with.
DESIGNOPT_FEW="100 3" sets evaluations and seeds (60 and 3 without it), DESIGNOPT_FEW_PEERS the peers,
DESIGNOPT_FEW_FOLDER the folder of earlier runs.
"""

import os
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import mannwhitneyu

import designopt

pytestmark = pytest.mark.bench

HERE = Path(__file__).parent
SECTIONS = yaml.safe_load((HERE / "few_evaluations.yaml").read_text(encoding="utf-8"))
EVALUATIONS, SEEDS = (int(n) for n in os.environ.get("DESIGNOPT_FEW", "60 3").split())
AVAILABLE = [name for name, entry in SECTIONS["solvers"].items() if entry["use"] == "peer"]
PEERS = os.environ.get("DESIGNOPT_FEW_PEERS", " ".join(AVAILABLE) if "DESIGNOPT_PEERS" in os.environ else "pymoo")


@pytest.fixture(scope="module")
def scores(tmp_path_factory, monkeypatch_module):
    monkeypatch_module.chdir(HERE)
    folder = os.environ.get("DESIGNOPT_FEW_FOLDER") or tmp_path_factory.mktemp("runs")
    solvers = {name: SECTIONS["solvers"][name] for name in ("gp", "nsga2", *PEERS.split())}
    sections = {key: SECTIONS[key] for key in ("benchmark", "problems")}
    sections |= {"solvers": solvers, "seeds": SEEDS, "evaluations": EVALUATIONS, "budgets": [EVALUATIONS]}
    return designopt.benchmark(sections, Path(folder), plugin_files=["problems.py", "peer.py"]).scores


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.mark.parametrize("name", list(SECTIONS["problems"]))
def test_the_search_with_gaussian_processes_is_among_the_first(name, scores, record_property):
    shares = {solver: scores.values(name, solver, EVALUATIONS) for solver in scores.solvers}
    medians = {solver: float(np.median(values)) for solver, values in shares.items()}
    for solver, value in medians.items():
        record_property(f"share of the hypervolume after {EVALUATIONS}: {solver}", value)
    first = max(medians, key=medians.__getitem__)
    better = mannwhitneyu(shares[first], shares["gp"], alternative="greater").pvalue if first != "gp" else 1.0
    record_property("p of the first being better than gp", better)
    print(name, {solver: round(value, 3) for solver, value in medians.items()}, f"p {better:.3f}")
    assert medians["gp"] >= 0.9 * medians[first]
