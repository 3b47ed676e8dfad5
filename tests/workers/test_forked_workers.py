"""The process that local workers are forked from: killed, shared by runs, and gone with the last of them."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing import forkserver

import numpy as np
import pytest
from run_cases import Recorder, listed, make_study

from designopt.run.runner import run_study
from designopt.workers.pools.forking import forked
from designopt.workers.pools.shared_changes import SharedChanges

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers are forked on Linux alone")


def study(count, pause=0.0):
    return make_study(
        "bowl", settings={"pause": pause}, minimize=("value",), names=("a",), low=0.0, high=100.0,
        stages=(listed(np.linspace(0.0, 100.0, count)),), execution={"executor": "dask", "workers": 2},
    )  # fmt: skip


def _tell(answers):
    """What a worker is born with."""
    answers.put((sys.flags.safe_path, "DESIGNOPT_ORIGIN" in os.environ, "PYTHONSAFEPATH" in os.environ))
    answers.put((os.environ["PYTHONHASHSEED"], os.getpgid(os.getppid()) == os.getppid(), np.random.random()))


def _born():
    context = multiprocessing.get_context("forkserver")
    answers = context.SimpleQueue()
    worker = context.Process(target=_tell, args=(answers,))
    worker.start()
    told = answers.get(), answers.get()
    worker.join()
    return told


def test_a_process_that_takes_the_place_of_a_killed_one_is_as_the_first(monkeypatch):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    monkeypatch.setattr(forkserver._forkserver, "_preload_modules", ["json"])
    with forked():
        origin = forkserver._forkserver._forkserver_pid
        first, second = _born(), _born()
        os.kill(origin, signal.SIGKILL)
        os.waitid(os.P_PID, origin, os.WEXITED | os.WNOWAIT)
        third = _born()
        assert forkserver._forkserver._forkserver_pid != origin
    assert first[0] == third[0] == (True, False, False)
    assert first[1][:2] == third[1][:2] == ("6640", True)
    assert len({first[1][2], second[1][2], third[1][2]}) == 3  # each draws numbers of its own
    assert forkserver._forkserver._forkserver_pid is None
    assert forkserver._forkserver._preload_modules == ["json"]
    assert "ensure_running" not in vars(forkserver._forkserver)


def test_a_temporary_folder_whose_path_is_too_long_for_a_socket_is_passed_over(tmp_path, monkeypatch):
    long = tmp_path / ("long" * 25)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    monkeypatch.setitem(multiprocessing.current_process()._config, "tempdir", None)
    with forked():
        assert _born()[0] == (True, False, False)
        assert os.path.dirname(os.path.dirname(forkserver._forkserver._forkserver_address)) == "/tmp"
    assert list(long.iterdir()) == []


class _Killing(Recorder):
    """Kills the process that workers come from when some designs are recorded."""

    killed = 0

    def update(self, snapshot):
        if snapshot.evaluations >= 5 and not self.killed:
            self.killed = forkserver._forkserver._forkserver_pid
            os.kill(self.killed, signal.SIGKILL)


def test_a_run_whose_workers_lose_the_process_that_they_come_from_goes_on(tmp_path):
    killing = _Killing()
    result = run_study(study(150, pause=0.02), tmp_path / "s", progress=killing)
    assert killing.killed
    assert not [text for kind, text in killing.events if "exit code" in text]  # as if somebody had killed the workers
    assert set(result.status[:, 0].tolist()) == {"ok"}
    assert len(result.status) == 150
    assert forkserver._forkserver._forkserver_pid is None


def test_two_runs_at_the_same_time_in_one_process_leave_each_other_their_workers(tmp_path):
    environment, results = dict(os.environ), {}
    begun, may_end = threading.Event(), threading.Event()

    class Waiting(Recorder):
        """Goes on when the other run has ended."""

        def update(self, snapshot):
            begun.set()
            assert may_end.wait(300.0)

    def run(name, count, pause, progress):
        results[name] = run_study(study(count, pause), tmp_path / name, progress=progress), progress.events

    long = threading.Thread(target=run, args=("long", 100, 0.05, Waiting()))
    long.start()
    assert begun.wait(300.0)
    run("short", 10, 0.0, Recorder())
    may_end.set()
    long.join()
    for name, count in (("short", 10), ("long", 100)):
        result, events = results[name]
        assert result.status[:, 0].tolist() == ["ok"] * count
        assert not [kind for kind, _ in events if kind == "worker_lost"]
    assert dict(os.environ) == environment
    assert forkserver._forkserver._forkserver_pid is None


@contextlib.contextmanager
def change(said):
    said.append("made")
    try:
        yield
    finally:
        said.append("taken back")


def test_what_runs_share_is_made_by_the_first_and_taken_back_by_the_last():
    said = []
    together = SharedChanges(lambda: change(said))
    with together:
        together.at_end(said.append, "called")
        with together:
            pass
        assert said == ["made"]
    assert said == ["made", "called", "taken back"]
    with together:
        pass
    assert said[3:] == ["made", "taken back"]


def test_a_change_that_cannot_be_made_takes_back_those_before_it():
    said = []

    def fails():
        raise OSError("no")

    together = SharedChanges(lambda: change(said), fails)
    for _ in range(2):
        with pytest.raises(OSError, match="no"):
            together.__enter__()
    assert said == ["made", "taken back"] * 2
