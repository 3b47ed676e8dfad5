"""Runs on a Dask scheduler that runs already."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from dask_processes import Cluster, running_cluster
from distributed import Client, LocalCluster
from run_cases import PLUGINS, Recorder, dump, evaluated, listed, make_study, use

from designopt.run.runner import run_study
from designopt.store.errors import WorkersError
from designopt.study.study import Stage
from designopt.workers.dask import Dask
from designopt.workers.pools.connection import SCHEDULER_OPTIONS
from designopt.workers.remote.dask_worker import RunGuard


def study(model="bowl", **execution):
    return make_study(
        model, settings=execution.pop("settings", {}), minimize=execution.pop("minimize", ("height",)), names=("a",),
        stages=execution.pop("stages", (Stage("w", use("solver", "walk")),)), execution=execution, low=-100, high=100,
    )  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    with running_cluster(folder, "--nthreads", "1", "--nworkers", "2", workers=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def bare_cluster(tmp_path_factory):
    """One worker without a nanny."""
    with running_cluster(tmp_path_factory.mktemp("bare"), "--nthreads", "1", "--no-nanny", workers=1) as cluster:
        yield cluster


def test_an_existing_scheduler_gives_the_same_journal(cluster, tmp_path):
    expected = dump(run_study(study(executor="serial"), tmp_path / "serial"))
    by_address = run_study(study(), tmp_path / "address", scheduler=cluster.address)
    by_file = run_study(study(), tmp_path / "file", scheduler=f"file: {cluster.file}")
    assert dump(by_address) == expected
    assert dump(by_file) == expected
    assert by_address.sessions[0]["executor"] == "dask"


def test_failing_designs_are_sorted_out_there_too(cluster, tmp_path):
    for kind, status in (("exit", "crashed"), ("sleep", "timeout")):
        troubled = study(
            "trouble", settings={"kind": kind}, minimize=("value",), stages=(listed(range(101)),), timeout=3.0
        )
        result = run_study(troubled, tmp_path / kind, scheduler=cluster.address)
        assert result.status[50, 0] == status
        assert (result.status == "ok").sum() == 100


def test_other_versions_are_refused_unless_allowed(cluster, tmp_path, monkeypatch):
    from designopt.workers.remote import delivery

    ours = delivery.versions
    monkeypatch.setattr(delivery, "versions", lambda plugins=(): {**ours(plugins), "numpy": "0.1"})
    with pytest.raises(WorkersError, match=r"other versions: numpy .* instead of 0\.1.*--allow-version-skew"):
        run_study(study(), tmp_path / "s", scheduler=cluster.address)
    result = run_study(study(), tmp_path / "t", scheduler=cluster.address, allow_version_skew=True)
    assert result.counts["evaluations"] == 100


def test_without_nannies_the_run_says_that_nothing_can_be_ended(bare_cluster, tmp_path):
    recorder = Recorder()
    result = run_study(study(timeout=5.0), tmp_path / "s", scheduler=bare_cluster.address, progress=recorder)
    assert result.counts["evaluations"] == 100
    assert "no_nanny" in [kind for kind, _ in recorder.events]


def test_without_nannies_an_evaluation_beyond_the_time_out_is_waited_for(bare_cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("designopt.workers.dask.PATIENCE", 0.1)
    slow = study(timeout=0.2, settings={"pause": 1.5}, stages=(listed([0.5]),))
    result = run_study(slow, tmp_path / "s", scheduler=bare_cluster.address)
    assert result.counts["ok"] == 1


def test_a_scheduler_on_another_host_must_be_encrypted(tmp_path):
    with pytest.raises(WorkersError, match=r"not encrypted.*tls://.*--insecure"):
        run_study(study(), tmp_path / "s", scheduler="tcp://192.0.2.7:8786")


def test_a_scheduler_that_does_not_answer_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("designopt.workers.pools.connection.CONNECT_WAIT", 1)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(WorkersError, match="cannot be reached"):
        run_study(study(), tmp_path / "s", scheduler=free)
    with pytest.raises(WorkersError, match="cannot be reached"):
        run_study(study(), tmp_path / "t", scheduler=f"file: {tmp_path / 'none.json'}")


def test_workers_with_several_threads_are_refused(tmp_path):
    """They are threads of this process: nothing is sent to them."""
    options = {"host": "127.0.0.1", "protocol": "tcp://", "scheduler_kwargs": SCHEDULER_OPTIONS}
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, **options) as threaded,
        pytest.raises(WorkersError, match=r"have 2 threads.*--nthreads 1 --nworkers 2"),
    ):
        run_study(study(), tmp_path / "s", scheduler=threaded.scheduler_address)


STRANGE = """\
from designopt.workers.remote import delivery
delivery.versions = lambda plugins=(), ours=delivery.versions: {**ours(plugins), "numpy": "0.1"}
"""


def test_workers_that_come_later_work_and_those_with_other_versions_or_several_threads_do_not(tmp_path):
    (tmp_path / "strange.py").write_text(STRANGE)
    growing = Cluster(tmp_path, "--nthreads", "1", "--name", "first")

    def all_have_answered(client):
        infos = client.scheduler_info(n_workers=-1)["workers"].values()
        exclusions = [
            event for topic, events in client.get_events().items() if "designopt-" in topic for _, event in events
        ]
        ready = any(worker["name"] == "late" and worker["resources"] for worker in infos)
        return ready and sum("unfit" in event for event in exclusions) == 2

    class Adding(Recorder):
        def update(self, snapshot):
            super().update(snapshot)
            if len(growing.processes) == 2:
                growing.add_worker("--nthreads", "1", "--name", "strange", "--preload", "strange.py", "--no-nanny")
                growing.add_worker("--nthreads", "2", "--name", "threaded", "--no-nanny")
                growing.add_worker("--nthreads", "1", "--name", "late")
                end = time.monotonic() + 300.0
                with Client(growing.address, set_as_default=False, timeout=60) as client:
                    while not all_have_answered(client):
                        assert time.monotonic() < end
                        time.sleep(0.1)

    try:
        growing.wait_for(1)
        slow = study(settings={"pause": 0.1}, stages=(listed(np.linspace(-1, 1, 50)),))
        result = run_study(slow, tmp_path / "s", scheduler=growing.address, progress=(recorder := Adding()))
    finally:
        growing.close()
    workers = set(evaluated(result, "worker"))
    assert workers == {"first", "late"}
    exclusions = sorted(text for kind, text in recorder.events if kind == "worker_excluded")
    assert exclusions[0].startswith("worker strange gets no work: the worker has other versions: numpy")
    assert exclusions[1].startswith("worker threaded gets no work: it has 2 threads")


STUDY = """\
study: killed
model: {use: bowl, pause: 0.05}
space: {a: {low: -1, high: 1}}
objectives: [{name: height, minimize: height}]
solver: {use: full_factorial, levels: 2000}
"""


def test_a_scheduler_is_left_as_it_was_by_a_run_that_ends_and_by_one_that_is_killed(cluster, tmp_path):
    def _traces(dask_scheduler):  # within, so that it travels by its code: the scheduler cannot import this file
        plugins = [*dask_scheduler.worker_plugins, *dask_scheduler.nanny_plugins, *dask_scheduler.plugins]
        ours = [name for name in [*plugins, *dask_scheduler.resources] if "designopt" in str(name)]
        return dask_scheduler.allowed_failures, ours

    def settled():
        deadline = time.monotonic() + 300
        while client.run_on_scheduler(_traces) != (3, []):
            assert time.monotonic() < deadline, client.run_on_scheduler(_traces)
            time.sleep(0.1)

    with Client(cluster.address, set_as_default=False) as client:
        workers = client.run(os.getpid)
        in_order = run_study(study(), tmp_path / "s", scheduler=cluster.address)
        assert in_order.counts["evaluations"] == 100
        settled()
        (tmp_path / "study.yaml").write_text(STUDY)
        command = [sys.executable, "-m", "designopt", "run", "study.yaml", "--plugin", PLUGINS]
        command += ["--scheduler", cluster.address]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            deadline = time.monotonic() + 300
            while client.run_on_scheduler(_traces)[0] != 0 or not all(client.processing().values()):
                assert run.poll() is None, "the run ended by itself"
                assert time.monotonic() < deadline, "the run did not begin"
                time.sleep(0.1)
            run.kill()
        settled()
        assert client.run(os.getpid) == workers  # also those that were at work for the killed run


def test_tasks_that_arrive_after_a_killed_run_are_removed(monkeypatch):
    present, rounds = set(), []

    async def unregister(comm, name):
        if not rounds:
            raise OSError("a worker died")
        if name not in present:
            raise ValueError
        present.remove(name)

    async def arrive(seconds):
        rounds.append(seconds)
        if len(rounds) == 2:
            present.update({"designopt-r", "designopt-supervisor-r"})
            scheduler.resources["designopt-r"] = {}

    scheduler = SimpleNamespace(
        unregister_worker_plugin=unregister, unregister_nanny_plugin=unregister, resources={"other": {}}, workers={}
    )
    monkeypatch.setattr("asyncio.sleep", arrive)
    asyncio.run(RunGuard("r", "client")._leave(scheduler))
    assert len(rounds) > 2
    assert (present, scheduler.resources) == (set(), {"other": {}})


def test_a_scheduler_that_is_gone_is_reported_as_that_whatever_dask_raises():
    def leave():
        raise AttributeError("'NoneType' object has no attribute 'unregister_worker_plugin'")

    closed = []
    executor = Dask.__new__(Dask)
    executor._run, executor._path, executor._counted = "r", Path("s"), (-float("inf"), 0)
    executor._client = SimpleNamespace(
        status="connecting", scheduler_info=lambda **_: {}, unsubscribe_topic=lambda topic: None
    )
    executor._connection = SimpleNamespace(leave=leave, close=lambda: closed.append(True))
    with pytest.raises(WorkersError, match="the connection to the scheduler is lost; continue with: designopt resume"):
        _ = executor.workers
    executor.close()
    assert closed
