"""What commit has returned from is on the disk, and one process at a time writes to a store."""

import errno
import json
import os
import socket
import sqlite3

import numpy as np
import pytest
from run_cases import listed, make_study

from designopt.problem import Problem
from designopt.run.runner import run_study
from designopt.store.disk.arrays import array_reference, write_arrays
from designopt.store.disk.durable import append_durably, make_folder_durably, write_durably
from designopt.store.disk.lock import Lock, at_work, process_start
from designopt.store.errors import StoreError, explain
from designopt.store.journal.rebuild import rebuild
from designopt.store.journal.writer import Journal

# ------------------------------------------------------------------------------------------------------- files


@pytest.fixture
def flushed(monkeypatch):
    """The files and folders that this process flushes to the disk, by their numbers, and the names of files that take
    their places, in order."""
    events, fsync, replace = [], os.fsync, os.replace

    def noted_flush(descriptor):
        fsync(descriptor)
        events.append(os.fstat(descriptor).st_ino)

    def noted_replace(source, target, **folders):
        replace(source, target, **folders)
        events.append(os.path.basename(target))

    monkeypatch.setattr(os, "fsync", noted_flush)
    monkeypatch.setattr(os, "replace", noted_replace)
    return events


def number(path):
    return path.stat().st_ino


def test_a_file_is_flushed_before_it_takes_its_place_and_its_folder_afterwards(tmp_path, flushed):
    write_durably(tmp_path / "f", b"content")
    assert flushed == [number(tmp_path / "f"), "f", number(tmp_path)]


def test_the_parent_of_each_new_folder_is_flushed(tmp_path, flushed):
    make_folder_durably(tmp_path / "a" / "b")
    assert flushed == [number(tmp_path), number(tmp_path / "a")]


def test_an_added_line_is_flushed_and_the_folder_of_a_new_file(tmp_path, flushed):
    append_durably(tmp_path / "lines", "one")
    assert flushed == [number(tmp_path / "lines"), number(tmp_path)]
    flushed.clear()
    append_durably(tmp_path / "lines", "two")
    assert flushed == [number(tmp_path / "lines")]


def test_arrays_are_on_the_disk_with_their_folders(tmp_path, flushed):
    key = bytes(range(16))
    write_arrays(tmp_path, {key: {"signal": np.zeros(3)}})
    file = tmp_path / array_reference(key)
    above = [number(tmp_path), number(tmp_path / "arrays")]
    assert flushed == [*above, number(file), file.name, number(file.parent)]


def test_a_repaired_journal_takes_its_place_and_its_folder_is_flushed(tmp_path, flushed):
    study = make_study(names=("a",), stages=(listed([1.0, 0.5]),))
    result = run_study(study, tmp_path / "s")
    with sqlite3.connect(tmp_path / "s" / "journal.db") as db:
        db.execute("UPDATE evaluation SET wall = 1.5 WHERE design = 0")
    db.close()
    flushed.clear()
    assert rebuild(tmp_path / "s", result.problem, study) == ["1 damaged record of evaluation: computed again"]
    assert flushed == ["journal.db", number(tmp_path / "s")]


# ----------------------------------------------------------------------------------------------------- journal


@pytest.mark.parametrize(("kind", "mode"), [("ext4", "wal"), ("nfs4", "delete")])
def test_every_commit_waits_for_the_disk(tmp_path, monkeypatch, kind, mode):
    monkeypatch.setattr("designopt.store.journal.writer.file_system", lambda path: kind)
    journal = Journal.create(tmp_path, Problem.from_study(make_study()), seed=0)
    full = 2  # https://www.sqlite.org/pragma.html#pragma_synchronous; in WAL mode NORMAL (1) may lose commits
    assert journal._db.execute("PRAGMA synchronous").fetchone() == (full,)
    assert journal._db.execute("PRAGMA journal_mode").fetchone() == (mode,)
    journal.close()


def test_a_commit_that_does_not_wait_is_in_the_log_and_those_after_it_wait_again(tmp_path, monkeypatch):
    monkeypatch.setattr("designopt.store.journal.writer.file_system", lambda path: "ext4")
    journal = Journal.create(tmp_path, Problem.from_study(make_study()), seed=0)
    normal, full = 1, 2  # NORMAL: written to the log, which reaches the disk with the next commit that waits
    modes = []

    def note():
        modes.append(*journal._db.execute("PRAGMA synchronous").fetchone())

    for flush in (False, False, True):
        journal.add_event("kind", "text")
        journal.commit(flush=flush)
        note()
    assert modes == [normal, normal, full]
    journal.add_event("kind", "text")
    journal.commit(flush=False)
    journal.describe_session("serial", 1)
    note()
    assert modes[3:] == [full]
    journal.close()


def test_a_commit_without_records_flushes_those_that_did_not_wait_once(tmp_path, monkeypatch, flushed):
    monkeypatch.setattr("designopt.store.journal.writer.file_system", lambda path: "ext4")
    journal = Journal.create(tmp_path, Problem.from_study(make_study()), seed=0)
    journal.add_event("kind", "text")
    journal.commit(flush=False)
    assert flushed == []
    journal.commit()
    journal.commit()
    assert flushed == [number(tmp_path / "journal.db-wal")]
    journal.close()


def test_of_a_commit_that_fails_nothing_is_recorded(tmp_path):
    journal = Journal.create(tmp_path, Problem.from_study(make_study()), seed=0)
    journal.add_event("kind", "text")
    journal.add_evaluations([(b"too short",)])
    with pytest.raises(StoreError):
        journal.commit()
    assert journal.records("event") == []
    journal.close()


def test_the_time_of_a_stage_is_the_sum_over_its_sessions(tmp_path):
    journal = Journal.create(tmp_path, Problem.from_study(make_study()), seed=0)
    for wall in (2.0, 3.0, 0.5):
        journal.begin_session(host="here", executor="serial", workers=1, provenance={})
        journal.set_usage(1, wall / 2.0)  # so far; the last value of a session counts
        journal.set_usage(1, wall)
        journal.set_usage(2, 100.0)
        journal.commit()
    assert journal.usage(1) == 5.5
    journal.close()


# -------------------------------------------------------------------------------------------------------- lock


def note_of(pid, started):
    return json.dumps({"host": socket.gethostname(), "pid": pid, "started": started})


def test_a_note_counts_while_the_process_that_wrote_it_lives_and_not_for_another_one_of_its_number(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("designopt.store.disk.lock.file_system", lambda path: "nfs4")
    (tmp_path / "lock").write_text(note_of(os.getpid(), process_start(os.getpid())))
    assert at_work(tmp_path)
    with pytest.raises(StoreError, match=f"in use by process {os.getpid()} on .*; wait for it to end"):
        Lock(tmp_path)
    (tmp_path / "lock").write_text(note_of(os.getpid(), "123"))  # of a process before the last boot
    assert not at_work(tmp_path)
    Lock(tmp_path).release()


def test_where_the_file_system_has_no_locks_the_note_of_a_live_process_is_one(tmp_path, monkeypatch):
    def refused(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refused)
    (tmp_path / "lock").write_text(note_of(os.getpid(), process_start(os.getpid())))
    with pytest.raises(StoreError, match="in use by process"):
        Lock(tmp_path)
    (tmp_path / "lock").write_text(note_of(os.getpid(), "123"))
    Lock(tmp_path).release()


def test_a_released_lock_leaves_no_note(tmp_path):
    lock = Lock(tmp_path)
    assert at_work(tmp_path)
    lock.release()
    assert not at_work(tmp_path)
    assert (tmp_path / "lock").read_bytes() == b""


# ------------------------------------------------------------------------------------------------------ errors


def test_the_name_of_a_folder_says_nothing_of_the_cause_of_an_error(tmp_path):
    path = tmp_path / "full" / "s.study"
    error = OSError(errno.EROFS, "Read-only file system", str(path))
    message = str(explain(error, path))
    assert "make the folder writable" in message
    assert "free some space" not in message
    assert message.count("s.study") == 1
