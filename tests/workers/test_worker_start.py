"""Workers that do not start at once, or go for good: they are started again, with a bound and a sentence at its end."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import dask
import numpy as np
import pytest
from run_cases import listed, make_study

from designopt.run.runner import run_study
from designopt.store.errors import WorkersError
from designopt.workers.pools import local

SCRIPT = Path(__file__).parents[1] / "run/run_script.py"


def study(**execution):
    return make_study(
        stages=(listed([0.1, 0.2]),), names=("a",), execution={"executor": "dask", "workers": 1} | execution
    )


def failing(monkeypatch, times, error):
    """The first `times` starts fail; returns how many there were."""
    tries = []
    start = local._cluster

    def cluster(workers):
        tries.append(workers)
        if len(tries) <= times:
            raise error
        return start(workers)

    monkeypatch.setattr(local, "_cluster", cluster)
    return tries


def test_a_worker_that_is_killed_while_it_starts_is_started_again(tmp_path, monkeypatch):
    tries = failing(monkeypatch, 3, RuntimeError("Nanny failed to start."))
    result = run_study(study(), tmp_path / "s")
    assert result.counts["ok"] == 2
    assert len(tries) == 4


def test_workers_that_never_start_end_the_run_with_a_sentence_and_leave_no_store(tmp_path, monkeypatch):
    failing(monkeypatch, 100, RuntimeError("Nanny failed to start."))
    environment = dict(os.environ)
    with pytest.raises(WorkersError, match=r"1 worker could not be started in 5 attempts .* use fewer \(--workers\)"):
        run_study(study(), tmp_path / "s")
    assert not (tmp_path / "s").exists()
    assert dict(os.environ) == environment


def test_a_limit_of_open_files_that_is_met_on_the_way_is_reported_at_once(tmp_path, monkeypatch):
    tries = failing(monkeypatch, 100, OSError(24, "Too many open files"))
    said = r"about 64 open files are needed for 1 worker, .* \(ulimit -n shows the limit\)"
    with pytest.raises(WorkersError, match=said):
        run_study(study(), tmp_path / "s")
    assert len(tries) == 1


def _limited(hard):
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def test_a_low_limit_of_open_files_ends_the_run_with_a_sentence(tmp_path):
    command = [sys.executable, str(SCRIPT), str(tmp_path / "s"), "dask", "0.0"]
    done = subprocess.run(command, preexec_fn=lambda: _limited(40), capture_output=True, text=True, timeout=600)
    assert done.returncode == 99
    assert "about 80 open files are needed for 2 workers" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "s").exists()


def test_a_soft_limit_is_raised_for_the_run_and_put_back(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = [(tmp_path / str(k)).open("w") for k in range(40)]  # as in a process that does other things, too
    low = len(os.listdir("/proc/self/fd")) + 10 if Path("/proc/self/fd").exists() else 60
    resource.setrlimit(resource.RLIMIT_NOFILE, (low, before[1]))
    try:
        assert run_study(study(), tmp_path / "s").counts["ok"] == 2
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == low
    finally:
        for file in files:
            file.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_worker_that_has_left_with_its_nanny_is_replaced():
    workers = local.Local("test", 1, Path("s"))
    try:
        (first,) = workers.cluster.workers.values()
        workers.cluster.sync(first.close)
        end = time.monotonic() + 300.0
        while not workers.client.scheduler_info(n_workers=-1)["workers"] or not workers.cluster.workers:
            assert time.monotonic() < end
            workers.tend({}, 0)
            time.sleep(0.1)
        assert next(iter(workers.cluster.workers.values())) is not first
    finally:
        workers.close()


@pytest.mark.faults
def test_how_a_worker_died_is_reported_before_another_one_takes_its_place(tmp_path, monkeypatch):
    """On a loaded machine that takes longer than anybody should wait; innocent designs would be blamed."""
    slow = tmp_path / "slow.py"
    slow.write_text("import time\n\n\ndef dask_setup(worker):\n    time.sleep(15.0)\n")
    monkeypatch.setattr("designopt.workers.dask.REPORT_WAIT", 10.0)
    stages = (listed(np.arange(0.0, 101.0, 10.0)),)
    execution = {"executor": "dask", "workers": 1, "retries": {"crashed": 0}}
    slow_start = make_study(
        "trouble", settings={"kind": "exit"}, minimize=("value",), names=("a",), low=0, high=100, stages=stages,
        execution=execution,
    )  # fmt: skip
    with dask.config.set({"distributed.worker.preload": [str(slow)]}):
        result = run_study(slow_start, tmp_path / "s")
    assert result.status[:, 0].tolist() == ["ok"] * 5 + ["crashed"] + ["ok"] * 5
    assert "ended itself with exit code 7" in result.message(5)
