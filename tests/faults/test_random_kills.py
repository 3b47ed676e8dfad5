"""Runs whose coordinator and workers are killed at random: nothing is lost, doubled or different, and nothing is left.

``DESIGNOPT_FAULT_HITS`` sets how many workers must have been lost with evaluations under way (200).
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from killed_run import study
from processes import children, kill, stat, wait_until, workers
from run_cases import dump

from designopt.run.runner import run_study
from designopt.store.errors import StoreError
from designopt.store.journal.writer import Journal
from designopt.store.result import Result

SCRIPT = Path(__file__).with_name("killed_run.py")
HITS = int(os.environ.get("DESIGNOPT_FAULT_HITS", "200"))
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What an uninterrupted run in one process holds; the same model without its pauses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.sleep", lambda seconds: None)
        return dump(run_study(study("serial"), tmp_path_factory.mktemp("whole") / "s"))


def begin(store):
    resume = ["resume"] if (store / "journal.db").exists() else []
    command = [sys.executable, str(SCRIPT), str(store), *resume]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def lost(store):
    """How often workers were lost with evaluations under way, as the journal tells."""
    journal = Journal.read(store, Result.open(store, study()).problem)
    try:
        return sum(event["kind"] == "worker_lost" for event in journal.records("event"))
    finally:
        journal.close()


def recorded(store):
    try:
        return Result.open(store, study()).counts["evaluations"]
    except StoreError:
        return 0


def _torment(store, rng, hits):
    """One session in which processes are killed at random until it ends; its exit code and what it said."""
    process = begin(store)
    known = recorded(store)
    wait_until(lambda: process.poll() is not None or recorded(store) > known)
    coordinator_dies = rng.random() < 0.15
    end = time.monotonic() + float(rng.uniform(1.0, 25.0)) if coordinator_dies else np.inf
    while process.poll() is None:
        due = recorded(store) + 10
        wait_until(lambda n=due: process.poll() is not None or recorded(store) > n or time.monotonic() > end)
        time.sleep(float(rng.uniform(0.0, 0.5)))
        if time.monotonic() > end:
            kill(process.pid)
            hits("coordinators killed")
            break
        if (there := workers(process.pid)) and kill(int(rng.choice(there))):
            hits("workers killed")
    _, said = process.communicate(timeout=300)
    return process.returncode, said


def test_kills_of_workers_and_coordinators_lose_double_and_change_nothing(tmp_path, expected, hits, monkeypatch):
    notes = tmp_path / "tmp"
    notes.mkdir()
    monkeypatch.setenv("TMPDIR", str(notes))
    rng = np.random.default_rng(11)
    total, runs = 0, 0
    while total < HITS:
        store = tmp_path / f"s{runs}"
        known = sessions = 0
        while True:
            code, said = _torment(store, rng, hits)
            sessions += 1
            assert "Traceback" not in said, said
            if (store / "journal.db").exists():
                assert recorded(store) >= known
                known = recorded(store)
            if code == 0:
                break
            assert code in (-9, 99), said
            assert sessions < 40
        assert dump(Result.open(store, study())) == expected
        total += lost(store)
        runs += 1
        hits("runs")
    hits("worker_lost", total)
    wait_until(lambda: not list(notes.glob("designopt-*")), what="the end of the notes")


def test_workers_killed_while_they_start_are_started_again_or_the_run_ends_with_a_sentence(tmp_path, expected, hits):
    rng = np.random.default_rng(5)
    for i in range(8):
        store = tmp_path / f"s{i}"
        process = begin(store)
        for _ in range(int(rng.integers(2, 5))):
            wait_until(lambda p=process: workers(p.pid) or p.poll() is not None)
            time.sleep(float(rng.uniform(0.0, 0.8)))
            if (there := workers(process.pid)) and kill(int(rng.choice(there))):
                hits("workers killed at their start")
        _, said = process.communicate(timeout=300)
        assert process.returncode in (0, 99), said
        assert "Traceback" not in said, said
        if process.returncode == 0:
            hits("runs that went on")
            assert dump(Result.open(store, study())) == expected
        else:
            assert "could not be started" in said or "killed before they can begin" in said


def test_nothing_outlives_a_coordinator_that_is_killed_at_any_moment(tmp_path, hits):
    rng = np.random.default_rng(3)
    before = set(Path(tempfile.gettempdir()).glob("designopt-*"))
    for i in range(10):
        process = begin(tmp_path / f"s{i}")
        time.sleep(float(rng.uniform(0.2, 6.0)))
        started = children(process.pid)
        kill(process.pid)
        process.communicate(timeout=60)
        wait_until(lambda pids=started: all(stat(p) is None or stat(p)[2] in "ZX" for p in pids), 30.0, "their end")
        hits("coordinators killed")
    mine = set(Path(tempfile.gettempdir()).glob("designopt-*")) - before
    wait_until(lambda: not [p for p in mine if p.exists()], 30.0, "the end of the notes")
