"""Until workers are there, a copy of this process evaluates; what fails there goes to a worker."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from run_cases import dump, evaluated, make_study, use

from designopt.problem import Problem
from designopt.run.runner import run_study
from designopt.store.errors import WorkersError
from designopt.study.study import Stage
from designopt.workers.evaluation.evaluate import Evaluator
from designopt.workers.evaluation.serial import Serial
from designopt.workers.executor import Chunk, ChunkResult, Loss
from designopt.workers.starter import NAME, Starter, StartingWorkers

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not fork")


def study(count=40, **fields):
    stage = Stage("s", use("solver", "random", samples=count))
    return make_study(stages=(stage,), minimize=("height", "slope"), **fields)


def evaluator():
    return Evaluator.for_problem(Problem.from_study(study()))


class Misbehaving:
    """In place of an evaluator: calls a function, and returns its number."""

    def __init__(self, function):
        self.function = function

    def run(self, chunk, begin):
        begin(0)
        value = np.array([[self.function()]], float)
        return ChunkResult(np.zeros(1, np.uint8), ("value",), value, np.zeros(1), np.zeros(1))


def chunk(number=1):
    return Chunk(number, np.zeros((1, 2)), np.zeros(1, np.int32))


@contextlib.contextmanager
def starting(build, connect):
    executor = StartingWorkers(Starter(build), connect, 2)
    try:
        yield executor
    finally:
        executor.close()


def completion(executor):
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        if completions := executor.wait(0.2):
            return completions[0]
    raise AssertionError("no chunk came back")


def in_starter(function):
    """What a function that an evaluation in the starter calls returns."""
    release = threading.Event()

    def connect():
        release.wait()
        return Serial(evaluator)

    with starting(lambda: Misbehaving(function), connect) as executor:
        executor.submit(chunk())
        try:
            return completion(executor).outcome
        finally:
            release.set()


def test_the_first_results_are_there_before_the_workers_and_the_journal_is_the_same(tmp_path):
    expected = dump(run_study(study(), tmp_path / "serial"))
    results_before = []

    def connect():
        deadline = time.monotonic() + 30.0
        while not results_before and time.monotonic() < deadline:
            time.sleep(0.01)
            results_before.extend(executor_of[0].completed)
        return Serial(evaluator)

    executor_of = []

    class Counting(StartingWorkers):
        def __init__(self, *arguments):
            self.completed = []
            executor_of.append(self)
            super().__init__(*arguments)

        def wait(self, timeout):
            completions = super().wait(timeout)
            self.completed += completions
            return completions

    start = lambda expected_evaluations: Counting(Starter(evaluator), connect, 2)  # noqa: E731
    result = run_study(study(), tmp_path / "started", start=start)
    assert dump(result) == expected
    assert result.sessions[0]["executor"] == "dask"
    assert NAME in evaluated(result, "worker")


def exit_beside_a_fork():
    """The other process keeps the connection open."""
    if os.fork() == 0:
        time.sleep(1000.0)
    os._exit(3)


@pytest.mark.parametrize(
    "function",
    [
        lambda: os._exit(3),
        lambda: os.kill(os.getpid(), signal.SIGKILL),
        lambda: os.kill(os.getpid(), signal.SIGSTOP),
        exit_beside_a_fork,
        lambda: os.closerange(3, 256),
        lambda: setattr(pickle, "loads", None) or 1.0,
        lambda: setattr(np, "empty", None) or 1.0,
        lambda: 1 / 0,
    ],
    ids=["exit", "kill", "stop", "exit beside a fork", "closed files", "no pickle", "no arrays", "an error elsewhere"],
)
def test_a_chunk_that_ends_the_starter_goes_to_a_worker_without_blame(function):
    release = threading.Event()

    def connect():
        release.wait()
        return Serial(evaluator)

    with starting(lambda: Misbehaving(function), connect) as executor:
        executor.submit(chunk(1))
        lost = completion(executor)
        assert isinstance(lost.outcome, Loss)
        assert not lost.outcome.started
        executor.submit(chunk(2))  # waits for the workers
        assert executor.wait(0.01) == []
        release.set()
        repeated = completion(executor)
        assert (repeated.chunk.number, repeated.worker) == (2, "serial")


def test_the_starter_has_no_file_of_the_run_open_and_its_own_temporary_folder(tmp_path):
    with (tmp_path / "lock").open("w"):

        def open_files():
            names = [os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
            return sum(name.startswith(str(tmp_path)) for name in names)

        assert in_starter(open_files).values.tolist() == [[0.0]]
    usual = os.stat(tempfile.gettempdir()).st_ino
    outcome = in_starter(lambda: os.stat(tempfile.gettempdir()).st_ino)
    assert outcome.values[0, 0] != usual


def test_printed_output_comes_with_the_result_and_processes_of_an_evaluation_end_with_the_starter(capfd):
    def leave_a_process():
        print("hello", flush=True)
        return subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True).pid

    outcome = in_starter(leave_a_process)
    assert outcome.prints[0].strip() == "hello"
    assert "hello" not in capfd.readouterr().out
    status = Path(f"/proc/{int(outcome.values[0, 0])}/stat")
    assert not status.exists() or status.read_text().rpartition(")")[2].split()[0] in "ZX"


def test_workers_that_cannot_be_started_end_the_run_and_a_new_store_without_results_is_removed(tmp_path):
    def connect():
        raise WorkersError("no workers today", tmp_path / "s")

    start = lambda expected: StartingWorkers(Starter(lambda: Misbehaving(lambda: time.sleep(60))), connect, 2)  # noqa: E731
    with pytest.raises(WorkersError, match="no workers today"):
        run_study(study(), tmp_path / "s", start=start)
    assert not (tmp_path / "s").exists()
