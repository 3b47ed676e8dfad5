"""`designopt benchmark` with the evaluations on a Dask scheduler: the same scores, also after a kill and a Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from dask_processes import running_cluster

import designopt
from designopt.benchmarking.result import BenchmarkResult
from designopt.store.errors import WorkersError

PLUGIN = """\
import time


def slow(design):
    time.sleep(0.02)
    return {"f": design["x"] ** 2, "g": (design["x"] - 1) ** 2}
"""
STUDY = """\
study: slow
model: {use: slow}
space: {x: [-2, 2]}
objectives: [{minimize: f}, {minimize: g}]
solver: {use: random, samples: 1}
"""
BENCHMARK = """\
benchmark: b
problems: {slow: slow.yaml}
solvers: {nsga2: {use: nsga2, population: 10}, sobol: {use: sobol}}
seeds: 2
evaluations: 30
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    with running_cluster(folder, "--nthreads", "1", "--nworkers", "2", workers=2) as cluster:
        yield cluster


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"slow.py": PLUGIN, "slow.yaml": STUDY, "b.yaml": BENCHMARK}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def scores(result: BenchmarkResult) -> list[tuple[object, ...]]:
    return [(r.problem, r.solver, r.seed, r.evaluations, r.score) for r in result.scores.records]


def serial(folder: Path) -> list[tuple[object, ...]]:
    return scores(designopt.benchmark(folder / "b.yaml", folder / "serial", plugin_files=[folder / "slow.py"]))


def test_a_benchmark_on_a_scheduler_has_the_scores_of_a_serial_one(cluster, folder):
    scheduled = designopt.benchmark(
        folder / "b.yaml", folder / "there", plugin_files=[folder / "slow.py"], scheduler=cluster.address
    )
    assert scores(scheduled) == serial(folder)
    assert {s["executor"] for s in designopt.open_store(folder / "there/slow/sobol/1.study").sessions} == {"dask"}


def test_a_scheduler_that_is_not_there_ends_the_benchmark_at_its_first_run(folder, monkeypatch):
    monkeypatch.setattr("designopt.workers.pools.connection.CONNECT_WAIT", 1)
    with pytest.raises(WorkersError, match=r"cannot be reached: .*; the same command continues .*there"):
        designopt.benchmark(
            folder / "b.yaml", folder / "there", plugin_files=[folder / "slow.py"], scheduler="tcp://127.0.0.1:9"
        )
    assert len(list((folder / "there").rglob("journal.db"))) <= 1


@pytest.mark.faults
def test_a_killed_worker_and_a_ctrl_c_cost_nothing(cluster, folder):
    command = [
        *(sys.executable, "-m", "designopt", "benchmark", "b.yaml", "--plugin", "slow.py", "--progress", "none"),
        *("--scheduler", cluster.address),
    ]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    results = folder / "results" / "b.benchmark"
    while not list(results.rglob("journal.db")) and process.poll() is None:
        time.sleep(0.02)
    nanny = psutil.Process(cluster.processes[1].pid)
    worker = next(child for child in nanny.children(recursive=True) if "spawn_main" in " ".join(child.cmdline()))
    os.kill(worker.pid, signal.SIGKILL)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=120)
    assert process.returncode == 130, text
    assert "the same command continues results/b.benchmark" in text
    assert "designopt resume" not in text
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    resumed = designopt.benchmark(folder / "b.yaml", results, plugin_files=[folder / "slow.py"])
    assert scores(resumed) == serial(folder)
