"""Runs whose processes are killed at random, in every phase: nothing is lost, doubled or different, nothing is left.

``DESIGNOPT_FAULT_HITS`` sets how often workers must have been lost with evaluations under way (200) on local workers,
and a fifth of that on a cluster, where the scheduler and nannies are killed too.
"""

import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from dask_processes import Cluster
from killed_run import EVALUATIONS, study
from processes import children, kill, stat, wait_until, workers
from run_cases import dump

from designopt.run.runner import run_study
from designopt.store.errors import StoreError
from designopt.store.journal.writer import Journal
from designopt.store.result import Result

SCRIPT = Path(__file__).with_name("killed_run.py")
HITS = int(os.environ.get("DESIGNOPT_FAULT_HITS", "200"))
SEED = int(os.environ.get("DESIGNOPT_FAULT_SEED", "11"))
PLUGINS = Path(__file__).parents[1] / "run" / "plugins.py"
STUDY = """
study: bowl
model: {use: bowl, pause: 0.02}
space:
  a: {low: -2, high: 2}
objectives:
  - {name: height, minimize: height}
stages:
  - name: search
    solver: {use: random, samples: 40}
report: {plots: [best, convergence], export: [csv]}
execution: {executor: serial}
"""
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What an uninterrupted run in one process holds; the same model without its pauses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.sleep", lambda seconds: None)
        return dump(run_study(study("serial"), tmp_path_factory.mktemp("whole") / "s"))


def begin(store, *scheduler):
    """A session, which says what it has to say into a file beside its store: nobody empties a pipe meanwhile."""
    resume = ["resume"] if (store / "journal.db").exists() else []
    command = [sys.executable, str(SCRIPT), str(store), *resume, *scheduler]
    with store.with_suffix(".said").open("w") as stream:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stream)


def ended(process, store):
    """The exit code of a session, and what it said."""
    process.wait(timeout=300)
    return process.returncode, store.with_suffix(".said").read_text()


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


def under_way(process, store, more=10, end=np.inf):
    """Wait until `more` evaluations have been recorded, or all of them, or the session or its time has ended."""
    due = min(recorded(store) + more, EVALUATIONS)
    wait_until(lambda: process.poll() is not None or recorded(store) >= due or time.monotonic() > end, 300.0)


def _torment(store, rng, hits):
    """One session in which processes are killed at random until it ends; its exit code and what it said."""
    process = begin(store)
    under_way(process, store, 1)
    coordinator_dies = rng.random() < 0.15
    end = time.monotonic() + float(rng.uniform(1.0, 25.0)) if coordinator_dies else np.inf
    while process.poll() is None:
        under_way(process, store, end=end)
        time.sleep(float(rng.uniform(0.0, 0.5)))
        if time.monotonic() > end:
            kill(process.pid)
            hits("coordinators killed")
            break
        at_its_end = recorded(store) == EVALUATIONS
        if rng.random() < 0.05 and any(kill(origin) for origin in children(process.pid, b"forkserver")):
            hits("processes killed that workers come from")
        elif (pids := workers(process.pid)) and kill(int(rng.choice(pids))):
            hits("workers killed at the end" if at_its_end else "workers killed")
    return ended(process, store)


def _until_done(store, session, most):
    """Sessions on one store until one comes to its end: nothing that was recorded goes, nobody sees a traceback."""
    count = 0
    for _ in range(most):
        code, errors = session()
        assert "Traceback" not in errors, errors
        if (store / "journal.db").exists():
            assert recorded(store) >= count
            count = recorded(store)
        if code == 0:
            return
        assert code in (-9, 99), errors
    raise AssertionError(f"not done after {most} sessions")


def test_kills_of_workers_and_coordinators_lose_double_and_change_nothing(tmp_path, expected, hits, monkeypatch):
    notes = tmp_path / "tmp"
    notes.mkdir()
    monkeypatch.setenv("TMPDIR", str(notes))
    rng = np.random.default_rng(SEED)
    total = 0
    while total < HITS:
        store = tmp_path / f"s{hits('runs')}"
        _until_done(store, lambda store=store: _torment(store, rng, hits), 40)
        assert dump(Result.open(store, study())) == expected
        lost_workers = lost(store)
        total += lost_workers
        hits("worker_lost", lost_workers)
    wait_until(lambda: not list(notes.glob("designopt-*")), what="the end of the notes")


def _torn_cluster(store, rng, hits):
    """One session on a cluster of its own, of which any part is killed at random."""
    store.parent.mkdir(exist_ok=True)
    one_each = ("--nthreads", "1", "--nworkers", "1")
    cluster = Cluster(store.parent, *one_each)
    cluster.add_worker(*one_each)
    try:
        cluster.wait_for(2)
        process = begin(store, cluster.address)
        under_way(process, store, 1)
        while process.poll() is None:
            under_way(process, store)
            time.sleep(float(rng.uniform(0.0, 0.5)))
            scheduler, *nannies = cluster.processes
            who = rng.choice(["worker", "nanny", "scheduler", "coordinator"], p=[0.7, 0.2, 0.05, 0.05])
            if who == "worker":
                pids = [pid for nanny in nannies for pid in children(nanny.pid, b"spawn_main")]
                gone = pids and kill(int(rng.choice(pids)))
            elif who == "nanny":
                nanny = nannies[int(rng.integers(len(nannies)))]
                gone = kill(nanny.pid)
                nanny.wait()
                cluster.processes.remove(nanny)
                cluster.add_worker(*one_each)
            else:
                gone = kill((scheduler if who == "scheduler" else process).pid)
            if gone:
                hits(f"{who} killed")
        return ended(process, store)
    finally:
        cluster.close()


def test_kills_of_any_part_of_a_cluster_lose_double_and_change_nothing(tmp_path, expected, hits):
    rng = np.random.default_rng(SEED)
    total = 0
    while total < HITS / 5:
        store = tmp_path / f"c{hits('runs')}" / "s"
        _until_done(store, lambda store=store: _torn_cluster(store, rng, hits), 80)
        assert dump(Result.open(store, study())) == expected
        lost_workers = lost(store)
        total += lost_workers
        hits("worker_lost", lost_workers)


def _state(store):
    """How many evaluations are recorded, and whether the session has ended (what follows is the report)."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(_readable(store), uri=True)) as db:
        (count,) = db.execute("SELECT COUNT(*) FROM evaluation").fetchone()
        (finished,) = db.execute("SELECT COUNT(*) FROM session WHERE reason = 'done'").fetchone()
        return count, finished > 0
    return 0, False


def _readable(store):
    return f"{(store / 'journal.db').absolute().as_uri()}?mode=ro"


def test_a_command_killed_while_it_reports_is_taken_up_again(tmp_path, hits):
    """Run, report, exports: after a kill at any moment, `resume` ends with the report and the same journal."""
    file = tmp_path / "study.yaml"
    file.write_text(STUDY)
    command = [sys.executable, "-m", "designopt"]
    options = ["--plugin", str(PLUGINS), "--progress", "none"]
    quiet = {"capture_output": True, "text": True, "timeout": 300}

    def run(store):
        return [*command, "run", str(file), "-o", str(store), *options]

    subprocess.run(run(tmp_path / "whole"), check=True, **quiet)
    expected = dump(Result.open(tmp_path / "whole"))
    rng = np.random.default_rng(SEED)
    for i in range(16):
        store = tmp_path / f"s{i}"
        process = subprocess.Popen(run(store), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        phase, due = ("start", "run", "report", "report")[i % 4], int(rng.integers(1, 40))
        reached = {"start": lambda: True, "run": lambda s=store, n=due: _state(s)[0] >= n}
        wait_until(reached.get(phase, lambda s=store: _state(s)[1]))
        time.sleep(float(rng.uniform(0.0, 1.0 if phase != "run" else 0.1)))
        child = children(process.pid)
        died = kill(int(rng.choice([process.pid, *child]))) and process.wait(timeout=60) != 0
        hits(f"killed in phase {phase}" if died else "had ended")
        wait_until(lambda pids=child: all(stat(p) is None or stat(p)[2] in "ZX" for p in pids), 120.0, "its end")
        next_command = [*command, "resume", str(store), *options] if (store / "journal.db").exists() else run(store)
        completed = subprocess.run(next_command, **quiet)
        assert completed.returncode == 0, completed.stderr
        assert "Traceback" not in completed.stderr
        assert dump(Result.open(store)) == expected
        assert (store / "report.html").read_text().rstrip().endswith("</html>")


def test_workers_killed_while_they_start_are_started_again_or_the_run_ends_with_a_sentence(tmp_path, expected, hits):
    rng = np.random.default_rng(5)
    for i in range(8):
        store = tmp_path / f"s{i}"
        process = begin(store)
        for _ in range(int(rng.integers(2, 5))):
            wait_until(lambda p=process: workers(p.pid) or p.poll() is not None)
            time.sleep(float(rng.uniform(0.0, 0.8)))
            if (pids := workers(process.pid)) and kill(int(rng.choice(pids))):
                hits("workers killed at their start")
        code, errors = ended(process, store)
        assert code in (0, 99), errors
        assert "Traceback" not in errors, errors
        if code == 0:
            hits("runs that went on")
            assert dump(Result.open(store, study())) == expected
        else:
            assert "could not be started" in errors or "killed before they can start" in errors


def test_nothing_outlives_a_coordinator_that_is_killed_at_any_moment(tmp_path, hits):
    rng = np.random.default_rng(3)
    before = set(Path(tempfile.gettempdir()).glob("designopt-*"))
    for i in range(10):
        process = begin(tmp_path / f"s{i}")
        time.sleep(float(rng.uniform(0.2, 6.0)))
        started = children(process.pid)
        kill(process.pid)
        process.wait(timeout=60)
        wait_until(lambda pids=started: all(stat(p) is None or stat(p)[2] in "ZX" for p in pids), 120.0, "their end")
        hits("coordinators killed")
    mine = set(Path(tempfile.gettempdir()).glob("designopt-*")) - before
    wait_until(lambda: not [p for p in mine if p.exists()], 120.0, "the end of the notes")
