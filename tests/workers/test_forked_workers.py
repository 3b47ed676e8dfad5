"""The process that local workers are forked from: shared by runs, kept for the next one, killed and replaced."""

import contextlib
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import forkserver

import dask
import numpy as np
import pytest
from command import alive
from run_cases import Recorder, listed, make_study

from designopt.run.runner import run_study
from designopt.workers.pools import forking, local
from designopt.workers.pools.forking import fork_workers
from designopt.workers.pools.local import SharedChanges

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
    parents = answers.get(), answers.get()
    worker.join()
    return parents


def test_a_process_that_takes_the_place_of_a_killed_one_is_as_the_first(monkeypatch):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    monkeypatch.setattr(forkserver._forkserver, "_preload_modules", ["json"])
    with fork_workers():
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
    with fork_workers():
        assert _born()[0] == (True, False, False)
        assert os.path.dirname(os.path.dirname(forkserver._forkserver._forkserver_address)) == "/tmp"
    assert list(long.iterdir()) == []


@pytest.fixture
def idle_origin(monkeypatch):
    """The process that waits for the next run, started by one before; it loads less than others, to be there sooner."""
    monkeypatch.setattr(forking, "NEEDED", forking.NEEDED[:1])
    monkeypatch.setattr(forking, "HEAVY", ())
    forking.end_ready_child()
    with local._together:
        pass
    assert alive(forking._idle_origin.process.pid)
    return forking._idle_origin


def _used():
    """The process that the next run uses."""
    with local._together:
        return forkserver._forkserver._forkserver_pid


def _load(answers):
    """Another study's worker: it loads a plugin and changes the environment."""
    answers.put((os.getppid(), "of_the_first" in sys.modules, "OF_THE_FIRST" in os.environ))
    sys.modules["of_the_first"] = os
    os.environ["OF_THE_FIRST"] = "yes"


def _worker_findings():
    """What such a worker finds there, and the process that it comes from."""
    context = multiprocessing.get_context("forkserver")
    answers = context.SimpleQueue()
    worker = context.Process(target=_load, args=(answers,))
    worker.start()
    findings = answers.get()
    worker.join()
    return findings


def test_the_next_run_uses_the_process_of_the_last_one_and_sees_nothing_of_its_plugins(idle_origin):
    for _ in range(2):
        with local._together:
            assert _worker_findings() == (idle_origin.process.pid, False, False)


def test_the_second_run_uses_the_process_of_the_first_and_both_leave_the_environment_as_it_was(tmp_path, monkeypatch):
    monkeypatch.delenv("__DASK_PARENT_PID", raising=False)
    before = dict(os.environ)
    run_study(study(4), tmp_path / "first")
    first = forking._idle_origin.process.pid
    assert dict(os.environ) == before
    run_study(study(4), tmp_path / "second")
    assert forking._idle_origin.process.pid == first
    assert dict(os.environ) == before


def _set(patch, tmp_path):
    patch.setenv("DESIGNOPT_TEST", "changed")


def _remove(patch, tmp_path):
    patch.delenv("PATH")


def _move(patch, tmp_path):
    patch.chdir(tmp_path)


def _search_elsewhere(patch, tmp_path):
    patch.syspath_prepend(str(tmp_path))


def _write_elsewhere(patch, tmp_path):
    patch.setattr("tempfile.tempdir", str(tmp_path))


def _load_more(patch, tmp_path):
    patch.setattr(forking, "HEAVY", ("json",))


@pytest.mark.parametrize(
    "change",
    [
        _set,
        _load_more,
        *(pytest.param(c, marks=pytest.mark.slow) for c in (_remove, _move, _search_elsewhere, _write_elsewhere)),
    ],
)
def test_a_process_that_would_be_started_otherwise_now_is_replaced(idle_origin, tmp_path, change):
    with pytest.MonkeyPatch.context() as patch:
        change(patch, tmp_path)
        used = _used()
        assert used != idle_origin.process.pid
        assert not alive(idle_origin.process.pid)
        assert not os.path.exists(idle_origin.process.address)
        assert _used() == used


def test_a_run_has_the_limits_and_the_standard_output_of_its_beginning(idle_origin, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (soft - 1 if soft > 0 else 0, hard - 1))
    lowered = _used()
    output = os.dup(1)
    with open(tmp_path / "output", "w") as stream:
        os.dup2(stream.fileno(), 1)
        try:
            moved = _used()
        finally:
            os.dup2(output, 1)
            os.close(output)
    assert len({idle_origin.process.pid, lowered, moved}) == 3


def test_a_process_that_was_killed_between_two_runs_is_replaced(idle_origin):
    os.kill(idle_origin.process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, idle_origin.process.pid, os.WEXITED | os.WNOWAIT)
    assert _used() != idle_origin.process.pid
    replacement = forking._idle_origin
    os.kill(replacement.process.pid, signal.SIGKILL)
    os.waitpid(replacement.process.pid, 0)  # somebody else in this process did so
    assert _used() != replacement.process.pid


def test_a_process_whose_socket_was_removed_is_replaced(idle_origin):
    os.unlink(idle_origin.process.address)
    assert _used() != idle_origin.process.pid
    assert not alive(idle_origin.process.pid)


def test_others_in_this_process_get_one_of_their_own(idle_origin):
    own_server = forkserver._forkserver
    context = multiprocessing.get_context("forkserver")
    worker = context.Process(target=os.getpid)
    worker.start()
    worker.join()
    try:
        assert own_server._forkserver_pid not in (None, idle_origin.process.pid)
        with local._together:
            assert dask.config.get("distributed.worker.multiprocessing-method") == "spawn"
        assert alive(own_server._forkserver_pid)
    finally:
        own_server._stop()
    assert _used() == idle_origin.process.pid


ENDS = """
from designopt.workers.pools import forking, local
forking.NEEDED = forking.NEEDED[:1]
with local._together:
    pass
print(forking._idle_origin.process.pid, flush=True)
{end}
"""


@pytest.mark.parametrize(
    "end", [pytest.param("", marks=pytest.mark.slow), "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
)
def test_it_ends_with_this_process(end):
    ran = subprocess.run([sys.executable, "-c", ENDS.format(end=end)], capture_output=True, text=True, timeout=300)
    assert ran.stderr == ""
    until = time.monotonic() + 120.0
    while alive(int(ran.stdout)):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_process_that_is_forked_from_this_one_leaves_it_alone(idle_origin):
    child = os.fork()
    if child == 0:
        alone = forking._idle_origin is None
        forking.end_ready_child()
        os._exit(0 if alone else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert _used() == idle_origin.process.pid


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
    running, may_end = threading.Event(), threading.Event()

    class Waiting(Recorder):
        """Goes on when the other run has ended."""

        def update(self, snapshot):
            running.set()
            assert may_end.wait(300.0)

    def run(name, count, pause, progress):
        results[name] = run_study(study(count, pause), tmp_path / name, progress=progress), progress.events

    long = threading.Thread(target=run, args=("long", 100, 0.05, Waiting()))
    long.start()
    assert running.wait(300.0)
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
def change(calls):
    calls.append("made")
    try:
        yield
    finally:
        calls.append("taken back")


def test_shared_state_of_runs_is_set_by_the_first_and_restored_by_the_last():
    calls = []
    together = SharedChanges(lambda: change(calls))
    with together:
        together.at_end(calls.append, "called")
        with together:
            pass
        assert calls == ["made"]
    assert calls == ["made", "called", "taken back"]
    with together:
        pass
    assert calls[3:] == ["made", "taken back"]


def test_a_change_that_cannot_be_made_takes_back_those_before_it():
    calls = []

    def fails():
        raise OSError("no")

    together = SharedChanges(lambda: change(calls), fails)
    for _ in range(2):
        with pytest.raises(OSError, match="no"):
            together.__enter__()
    assert calls == ["made", "taken back"] * 2
