"""Workers that do not start at once, or go for good: they are started again, with a bound and a sentence at its end."""

import errno
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import dask
import numpy as np
import pytest
from distributed.comm.core import CommClosedError
from run_cases import PLUGINS, listed, make_study

from designopt.run.runner import run_study
from designopt.store.errors import StoreError, WorkersError
from designopt.workers.dask import Dask
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

    def cluster(workers, scratch):
        tries.append(workers)
        if len(tries) <= times:
            raise error
        return start(workers, scratch)

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
    message = r"about 64 open files are needed for 1 worker, .* \(ulimit -n shows the limit\)"
    with pytest.raises(WorkersError, match=message):
        run_study(study(), tmp_path / "s")
    assert len(tries) == 1


def _limited(hard):
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def test_a_low_limit_of_open_files_ends_the_run_with_a_sentence(tmp_path):
    command = [sys.executable, str(SCRIPT), str(tmp_path / "s"), "dask", "0.0"]
    process = subprocess.run(command, preexec_fn=lambda: _limited(40), capture_output=True, text=True, timeout=600)
    assert process.returncode == 99
    assert "about 80 open files are needed for 2 workers" in process.stderr
    assert "Traceback" not in process.stderr
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
    workers = local.LocalWorkers("test", 1, Path("s"))
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


def test_workers_that_break_while_they_receive_the_problem_are_started_again_though_a_nanny_refuses_to_end(
    tmp_path, monkeypatch
):
    """The nanny of a worker that is starting refuses by an assertion."""
    deliver, attempts = Dask._deliver, []

    def broken_once(self, delivery):
        attempts.append(self)
        if len(attempts) > 1:
            return deliver(self, delivery)
        cluster, close = self._connection.cluster, self._connection.cluster.close

        def refusing(*arguments, **more):
            close(*arguments, **more)
            raise AssertionError("Status.starting")

        monkeypatch.setattr(cluster, "close", refusing)
        raise CommClosedError("the worker is gone")

    monkeypatch.setattr(Dask, "_deliver", broken_once)
    assert run_study(study(), tmp_path / "s").counts["ok"] == 2
    assert len(attempts) == 2


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


NO_THREADS = """\
import sys, threading
remaining = int(sys.argv.pop(1))
def limited(start):
    def limited_start(*arguments, **options):
        global remaining
        remaining -= 1
        if remaining < 0:
            raise RuntimeError("can't start new thread")
        return start(*arguments, **options)
    return limited_start
for name in ("_start_new_thread", "_start_joinable_thread"):  # the second since Python 3.13
    if hasattr(threading, name):
        setattr(threading, name, limited(getattr(threading, name)))
from designopt.cli import main
sys.argv[0] = "designopt"
main()
"""


@pytest.mark.parametrize("threads", [0, 3])
def test_a_system_without_a_thread_for_the_run_is_named_with_exit_code_4(tmp_path, threads):
    (tmp_path / "study.yaml").write_text(
        "study: none\nmodel: {use: bowl}\nspace: {a: {low: -1, high: 1}}\n"
        "objectives: [{name: height, minimize: height}]\nsolver: {use: full_factorial, levels: 3}\n"
        "execution: {executor: dask, workers: 2}\n"
    )
    command = [sys.executable, "-c", NO_THREADS, str(threads), "run", "study.yaml", "--plugin", PLUGINS, "-o", "s"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert process.returncode == 4, process.stderr
    assert "the system allows no more threads or processes (ulimit -u shows the limit" in process.stderr
    assert "Traceback" not in process.stderr
    assert not (tmp_path / "s").exists()


def test_without_shared_memory_a_run_on_workers_says_so_and_leaves_no_store(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("_multiprocessing.SemLock", refuse)
    with pytest.raises(WorkersError, match=r"need shared memory, .* \(No space left on device\): /dev/shm is full"):
        run_study(make_study(execution={"executor": "dask", "workers": 1}), tmp_path / "s")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (f"{'n' * 250}.study", "File name too long: a name of 256 bytes; give a shorter one, of at most 255"),
        ("/".join(["d" * 200] * 3), r"the path has \d+ bytes, SQLite takes 488 for a store; give a shorter one"),
    ],
    ids=["name", "path"],
)
def test_a_store_with_a_name_that_is_too_long_is_refused_before_an_evaluation(tmp_path, name, message):
    with pytest.raises(StoreError, match=message):
        run_study(make_study("trouble", settings={"kind": "exit", "at": 0.0}), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
