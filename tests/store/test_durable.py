"""What commit has returned from is on the disk."""

import errno

import pytest
from run_cases import make_study

from designopt.problem import Problem
from designopt.store.disk.explain import explain
from designopt.store.journal.writer import Journal


@pytest.mark.parametrize(("kind", "mode"), [("ext4", "wal"), ("nfs4", "delete")])
def test_every_commit_waits_for_the_disk(tmp_path, monkeypatch, kind, mode):
    monkeypatch.setattr("designopt.store.journal.writer.file_system", lambda path: kind)
    journal = Journal.create(tmp_path, Problem.of(make_study()), seed=0)
    full = 2  # https://www.sqlite.org/pragma.html#pragma_synchronous; in WAL mode NORMAL (1) may lose commits
    assert journal._db.execute("PRAGMA synchronous").fetchone() == (full,)
    assert journal._db.execute("PRAGMA journal_mode").fetchone() == (mode,)
    journal.close()


def test_a_commit_that_does_not_wait_is_in_the_log_and_those_after_it_wait_again(tmp_path, monkeypatch):
    monkeypatch.setattr("designopt.store.journal.writer.file_system", lambda path: "ext4")
    journal = Journal.create(tmp_path, Problem.of(make_study()), seed=0)
    normal, full = 1, 2  # NORMAL: written to the log, which reaches the disk with the next commit that waits
    found = []

    def note():
        found.append(*journal._db.execute("PRAGMA synchronous").fetchone())

    for flush in (False, False, True):
        journal.add_event("kind", "text")
        journal.commit(flush=flush)
        note()
    assert found == [normal, normal, full]
    journal.add_event("kind", "text")
    journal.commit(flush=False)
    journal.describe_session("serial", 1)
    note()
    assert found[3:] == [full]
    journal.close()


def test_the_name_of_a_folder_says_nothing_of_the_cause_of_an_error(tmp_path):
    path = tmp_path / "full" / "s.study"
    error = OSError(errno.EROFS, "Read-only file system", str(path))
    message = str(explain(error, path))
    assert "make the folder writable" in message
    assert "free some space" not in message
    assert message.count("s.study") == 1
