"""Runs that are killed, interrupted or started twice, and disks that are full or read-only."""

import contextlib
import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from run_cases import dump, listed, make_study
from run_script import study

from designopt.desk import folder
from designopt.run.runner import run_study
from designopt.run.stopping import Signals
from designopt.store.disk.lock import Lock, process_start
from designopt.store.errors import Interrupted, StoreError
from designopt.store.folder import Store
from designopt.store.journal import schema
from designopt.store.journal.writer import Journal
from designopt.store.result import Result

SCRIPT = Path(__file__).with_name("run_script.py")


started = []


@pytest.fixture(autouse=True)
def _no_process_left():
    yield
    while started:
        process = started.pop()
        if process.poll() is None:
            process.kill()
        process.communicate()


def start(store, executor, pause, *rest):
    command = [sys.executable, str(SCRIPT), str(store), executor, str(pause), *rest]
    started.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
    return started[-1]


def finish(process, timeout=600):
    _, errors = process.communicate(timeout=timeout)
    return process.returncode, errors


def children(pid):
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [int(c) for task in tasks for c in (task / "children").read_text().split()]
    except OSError:
        return []


def wait_until(condition, seconds=300.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def evaluations(store):
    """How many evaluations are recorded, whatever the writer does meanwhile."""
    try:
        journal = Journal.read(store, Result.open(store).problem)
    except StoreError:
        return 0
    try:
        return len(list(journal.evaluations("key")))
    except StoreError:
        return 0
    finally:
        journal.close()


@pytest.mark.parametrize(
    ("executor", "kills"),
    [
        pytest.param("serial", 2, marks=pytest.mark.slow),
        ("dask", 1),
        pytest.param("serial", 35, marks=pytest.mark.slow),
        pytest.param("dask", 15, marks=pytest.mark.slow),
    ],
)
def test_runs_killed_at_random_moments_and_resumed_equal_the_uninterrupted_one(tmp_path, executor, kills):
    expected = dump(run_study(study(0.005, "serial"), tmp_path / "whole"))
    rng = np.random.default_rng(kills)
    store = tmp_path / "killed"
    recorded = 0
    for _ in range(kills):
        process = start(store, executor, 0.005, *(["resume"] if (store / "journal.db").exists() else []))
        time.sleep(float(rng.uniform(0.3, 1.4 if executor == "serial" else 2.5)))
        process.kill()
        finish(process)
        if (store / "journal.db").exists():
            assert evaluations(store) >= recorded
            recorded = evaluations(store)
    last = start(store, executor, 0.005, *(["resume"] if (store / "journal.db").exists() else []))
    code, errors = finish(last, timeout=300)
    assert code == 0, errors
    assert dump(Result.open(store, study(0.005, "serial"))) == expected


def test_the_numbers_of_records_are_right_after_a_kill(tmp_path):
    """Numbers are shown from the records themselves; what the journal notes of them is set right when a run goes on."""
    store = tmp_path / "s"
    process = start(store, "serial", 0.005)
    wait_until(lambda: evaluations(store) > 20)
    process.kill()
    finish(process)
    with contextlib.closing(sqlite3.connect(store / "journal.db")) as db:
        counts = {t: db.execute(f"SELECT COUNT(*) FROM {t}").fetchone()[0] for t in schema.COUNTED}
        noted = dict(db.execute("SELECT name, count FROM total"))
        # The last second of a killed session is in no note; here is none of what it has noted either.
        for table in schema.COUNTED:
            db.execute("UPDATE total SET count = 0, digest = ? WHERE name = ?", (schema.digest((table, 0)), table))
        db.commit()
    assert all(noted[table] <= counts[table] for table in counts)
    result = Result.open(store, study(0.005, "serial"))
    # The last design has no result yet if the kill came between its two scenarios.
    assert counts["evaluation"] - result.counts["evaluations"] in (0, 1)
    assert folder.store_entry("s", store, *folder.stamp_of(store)).evaluations == counts["evaluation"]
    with Store.resume(store, result.study, result.problem):
        pass
    with contextlib.closing(sqlite3.connect(store / "journal.db")) as db:
        assert dict(db.execute("SELECT name, count FROM total")) == counts


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
def test_a_run_under_nohup_goes_on_when_its_terminal_goes(tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = start(tmp_path / "s", "serial", 0.005)
    finally:
        signal.signal(signal.SIGHUP, before)
    wait_until(lambda: evaluations(tmp_path / "s") > 3)
    process.send_signal(signal.SIGHUP)
    assert finish(process)[0] == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
def test_processes_and_notes_of_killed_runs_are_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = start(tmp_path / "s", "dask", 0.05)
    wait_until(lambda: evaluations(tmp_path / "s") > 3)
    assert list(tmp_path.glob("designopt-*"))
    process.kill()
    finish(process)
    wait_until(lambda: not list(tmp_path.glob("designopt-*")))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
def test_workers_do_not_outlive_a_killed_run(tmp_path):
    process = start(tmp_path / "s", "dask", 0.05)
    wait_until(lambda: evaluations(tmp_path / "s") > 3)
    workers = children(process.pid)
    assert len(workers) >= 2
    starts = {pid: process_start(pid) for pid in workers}
    process.kill()
    finish(process)
    wait_until(lambda: all(process_start(pid) != start_time for pid, start_time in starts.items()))


@pytest.mark.parametrize(
    ("number", "executor"),
    [
        (signal.SIGTERM, "serial"),
        (signal.SIGINT, "dask"),
        (signal.SIGHUP, "serial"),
        pytest.param(signal.SIGXCPU, "serial", marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, "serial", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, "dask", marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_run_records_what_had_finished_and_says_how_to_continue(tmp_path, executor, number):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("these tests were started with the signal ignored, as nohup does: runs ignore it too")
    process = start(tmp_path / "s", executor, 0.3)
    wait_until(lambda: evaluations(tmp_path / "s") > 3)
    process.send_signal(number)
    code, errors = finish(process)
    assert code == 99
    assert f"continue with: designopt resume {tmp_path / 's'}" in errors
    result = Result.open(tmp_path / "s", study(0.3, executor))
    assert result.ended == "interrupted"
    assert 0 < result.counts["evaluations"] < 200


def test_a_second_interrupt_ends_an_evaluation_that_would_go_on(tmp_path):
    process = start(tmp_path / "s", "serial", 3600.0)
    wait_until((tmp_path / "s.evaluates").exists)
    for patience in (1.0, 60.0, 60.0):  # two that come together are one; the evaluation would take an hour
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            code, errors = finish(process, patience)
            break
    assert code == 99
    assert "interrupted" in errors


def test_a_second_interrupt_that_casadi_would_lose_ends_the_evaluation_too(tmp_path):
    with pytest.raises(Interrupted):
        run_study(make_study("interrupted", names=("a",), stages=(listed([0.0, 1.0]),)), tmp_path / "s")
    assert Result.open(tmp_path / "s").counts["evaluations"] == 0


def test_interrupts_within_an_instant_are_one_and_the_third_leaves_at_once(monkeypatch):
    left = []
    monkeypatch.setattr("os._exit", left.append)
    with Signals() as signals:
        for moment, count in ((0.0, 1), (0.05, 1), (0.25, 2)):
            monkeypatch.setattr("time.monotonic", lambda: moment)  # noqa: B023
            signal.raise_signal(signal.SIGINT)
            assert (signals.count, left) == (count, [])
        monkeypatch.setattr("time.monotonic", lambda: 0.5)
        signal.raise_signal(signal.SIGINT)
        monkeypatch.undo()
    assert left == [130]


def test_a_second_run_on_a_store_in_use_is_refused_with_who_uses_it(tmp_path):
    process = start(tmp_path / "s", "serial", 0.05)
    try:
        wait_until(lambda: evaluations(tmp_path / "s") > 3)
        with pytest.raises(StoreError, match=f"in use by process {process.pid} on "):
            run_study(study(0.05, "serial"), tmp_path / "s", resume=True)
        code, errors = finish(start(tmp_path / "s", "serial", 0.05, "resume"))
        assert code == 99
        assert "in use by process" in errors
        assert Result.open(tmp_path / "s", study(0.05, "serial")).counts["evaluations"] > 0
    finally:
        process.kill()
        finish(process)


STARTS = """
import os, sys, time
from pathlib import Path
from designopt.cli import main

folder, plugins, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
sys.stdout = sys.stderr = open(os.devnull, "w")


def run(number, which, moment):
    command = ["run", str(folder / "study.yaml"), "-o", str(folder / f"store{number}"), "--plugin", plugins]
    while time.monotonic() < moment:
        pass
    try:
        main([*command, "--executor", "serial", "--progress", "none"])
    except SystemExit as end:
        return end.code


run("first", "", 0.0)  # imports what a run needs, so that the others begin at their moment
for number in range(rounds):
    moment = time.monotonic() + 0.02
    pids = []
    for which in "ab":
        pid = os.fork()
        if pid == 0:
            sys.stderr = open(folder / f"{number}{which}.err", "w")
            code = run(number, which, moment)
            sys.stderr.close()
            os._exit(code)
        pids.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    (folder / f"{number}.codes").write_text(" ".join(map(str, codes)))
"""

STUDY = """
study: race
model: {use: bowl, pause: 0.002}
space: {a: {low: -1, high: 1}, b: {low: -1, high: 1}}
objectives: [{name: height, minimize: height}]
solver: {use: full_factorial, levels: 5}
"""


@pytest.mark.parametrize("rounds", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_of_two_starts_on_one_store_at_the_same_instant_exactly_one_runs(tmp_path, rounds):
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "starts.py").write_text(STARTS)
    plugins = Path(__file__).with_name("plugins.py")
    command = [sys.executable, str(tmp_path / "starts.py"), str(tmp_path), str(plugins), str(rounds)]
    subprocess.run(command, check=True, timeout=300)
    for number in range(rounds):
        codes = (tmp_path / f"{number}.codes").read_text().split()
        assert sorted(codes) in (["0", "4"], ["0", "0"]), (tmp_path / f"{number}b.err").read_text()
        if "4" in codes:
            loser = (tmp_path / f"{number}{'ab'[codes.index('4')]}.err").read_text()
            assert re.search(
                r"in use by (process \d+ on|another process)|exists already; continue it with: designopt", loser
            )
        result = Result.open(tmp_path / f"store{number}")
        assert result.ended == "done"
        assert len(result.sessions) == codes.count("0")  # a start after the end of the first continues the store
        assert result.counts["evaluations"] == 25


def test_the_note_of_a_dead_process_does_not_lock_a_store(tmp_path, monkeypatch):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    host = os.uname().nodename
    (tmp_path / "lock").write_text(json.dumps({"host": host, "pid": dead.pid, "started": "123"}))
    monkeypatch.setattr("designopt.store.disk.lock.file_system", lambda path: "nfs4")
    Lock(tmp_path).release()
    (tmp_path / "lock").write_text(json.dumps({"host": "elsewhere", "pid": 1, "started": "123"}))
    with pytest.raises(StoreError, match=r"process 1 on elsewhere; if that process is gone, delete .*lock"):
        Lock(tmp_path)
    monkeypatch.setattr("designopt.store.disk.lock.file_system", lambda path: "ext4")
    Lock(tmp_path).release()


def test_on_a_network_file_system_the_rollback_journal_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr("designopt.store.journal.writer.file_system", lambda path: "nfs4")
    result = run_study(make_study(stages=(listed([1.0, 0.5]),), names=("a",)), tmp_path / "s")
    assert not (tmp_path / "s" / "journal.db-wal").exists()
    assert result.counts["evaluations"] == 2
    assert (tmp_path / "s" / "journal.db").read_bytes()[18] == 1  # the header's "legacy" mark: no WAL


def _mounted(folder, *options):
    folder.mkdir()
    process = subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(folder)], capture_output=True, text=True)
    if process.returncode:
        pytest.skip(f"cannot mount a small disk here: {process.stderr.strip()}")


def test_a_full_disk_ends_the_run_with_a_message_and_an_intact_store(tmp_path):
    disk = tmp_path / "disk"
    _mounted(disk, "-o", "size=1m")
    try:
        big = make_study(stages=(listed(np.linspace(0, 1, 20_000), batch=500),), names=("a",))
        with pytest.raises(StoreError, match=r"cannot be written: .*free some space.*designopt resume"):
            run_study(big, disk / "s")
        evaluations_on_disk = Result.open(disk / "s", big).counts["evaluations"]
        assert evaluations_on_disk > 0
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        assert run_study(big, disk / "s", resume=True).counts["evaluations"] == 20_000
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_file_that_may_not_grow_ends_the_run_with_a_message_and_an_intact_store(tmp_path):
    big = make_study(stages=(listed(np.linspace(0, 1, 20_000), batch=500),), names=("a",))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, before[1]))
    try:
        with pytest.raises(StoreError, match="cannot be written"):
            run_study(big, tmp_path / "s")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert 0 < Result.open(tmp_path / "s", big).counts["evaluations"] < 20_000
    assert run_study(big, tmp_path / "s", resume=True).counts["evaluations"] == 20_000


def test_a_read_only_store_can_be_read_but_not_continued(tmp_path):
    disk = tmp_path / "disk"
    small = make_study(stages=(listed([1.0, 0.5]),), names=("a",))
    _mounted(disk)
    try:
        run_study(small, disk / "s")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert Result.open(disk / "s").counts["evaluations"] == 2
        with pytest.raises(StoreError, match=r"cannot be written.*make the folder writable"):
            run_study(small, disk / "s", resume=True)
        with pytest.raises(StoreError, match=r"cannot be written.*make the folder writable"):
            run_study(small, disk / "new")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere; the read-only disk above stands for it")
def test_a_folder_without_permission_is_refused_with_a_message(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(StoreError, match=r"cannot be written.*make the folder writable"):
        run_study(make_study(stages=(listed([1.0]),), names=("a",)), tmp_path / "s")
