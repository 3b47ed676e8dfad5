"""Stores of format 1 read as they did, and are written in the present format when their run goes on."""

import sqlite3

import pytest
from run_cases import dump, listed, make_study

from designopt.run.runner import resume_study, run_study
from designopt.store.result import Result
from designopt.study.study import Scenario, Validation

#: The tables of format 1, as they were.
TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE session (id INTEGER PRIMARY KEY, started REAL, ended REAL, reason TEXT, host TEXT, executor TEXT,
    workers INTEGER, versions TEXT, revision TEXT, dirty INTEGER);
CREATE TABLE stage (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL);
CREATE TABLE usage (session INTEGER, stage INTEGER, wall REAL, PRIMARY KEY (session, stage)) WITHOUT ROWID;
CREATE TABLE point (stage INTEGER, ask INTEGER, design INTEGER NOT NULL, PRIMARY KEY (stage, ask)) WITHOUT ROWID;
CREATE TABLE evaluation (key BLOB PRIMARY KEY, design INTEGER NOT NULL, scenario INTEGER NOT NULL,
    status TEXT NOT NULL, reason TEXT, outputs TEXT, message TEXT, wall REAL, cpu REAL, attempts INTEGER,
    session INTEGER, worker TEXT, finished REAL, arrays TEXT) WITHOUT ROWID;
CREATE TABLE attempt (key BLOB, number INTEGER, session INTEGER, worker TEXT, ended REAL, outcome TEXT, detail TEXT,
    PRIMARY KEY (key, number)) WITHOUT ROWID;
CREATE TABLE event (id INTEGER PRIMARY KEY, time REAL, session INTEGER, kind TEXT, text TEXT);
CREATE TABLE design (id INTEGER PRIMARY KEY, "x_a", violation REAL);
"""


def downgrade(path):
    """Write the journal of `path`, whose study has two scenarios, in format 1."""
    new = sqlite3.connect(path / "journal.db")
    old = sqlite3.connect(path / "old.db")
    old.executescript(TABLES)
    for table in ("meta", "session", "stage", "usage", "attempt", "event", "design"):
        for row in new.execute(f"SELECT * FROM {table}"):
            row = row if table == "meta" else row[:-1]
            old.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", row)
    old.execute("UPDATE meta SET value = '1' WHERE name = 'format'")
    for stage, ask, design, count, _ in new.execute("SELECT * FROM point"):
        old.executemany("INSERT INTO point VALUES (?,?,?)", [(stage, ask + i, design + i) for i in range(count)])
    first = {"scenario": 0, "validation": 2, "program": 1_000_000}
    for key, kind, design, number, *rest, _ in new.execute("SELECT * FROM evaluation"):
        row = (key, design, first[kind] + number, *rest)
        old.execute(f"INSERT INTO evaluation VALUES ({','.join('?' * 14)})", row)
    old.commit()
    old.close()
    new.close()
    (path / "old.db").rename(path / "journal.db")


@pytest.fixture
def study():
    return make_study(
        "picky", minimize=("height", "slope"), names=("a",), scenarios=({}, {"shift": 1.0}),
        stages=(listed([-1.0, 0.5, 0.25, 1.5, 0.5, 1.0], batch=4),),
        validate=Validation((Scenario("v0", {"shift": 0.3}), Scenario("v1", {"shift": 0.6}))),
    )  # fmt: skip


def test_what_it_holds_of_scenarios_and_validation_is_read_and_kept_when_the_run_goes_on(study, tmp_path):
    before = run_study(study, tmp_path / "s")
    expected, validated = dump(before), before.validation()
    downgrade(tmp_path / "s")
    old = Result.open(tmp_path / "s")
    assert dump(old) == expected.replace("format=2", "format=1")
    assert old.validation().objectives.tolist() == validated.objectives.tolist()
    assert old.counts == before.counts
    assert [e["text"] for e in old.events] == [e["text"] for e in before.events]
    resumed = resume_study(tmp_path / "s")
    assert dump(resumed) == expected
    assert resumed.sessions[0] == before.sessions[0]
    assert resumed.sessions[-1]["executor"] == "none"  # nothing was computed


def test_what_it_holds_of_programs_is_read(study, tmp_path):
    run_study(study, tmp_path / "s")
    downgrade(tmp_path / "s")
    db = sqlite3.connect(tmp_path / "s" / "journal.db")
    row = (b"\1" * 16, 2, 1_000_000, "ok", "solved", '{"height":3.0}', None, 0.5, 0.5, 1, 1, "serial", 1.0, None)
    db.execute(f"INSERT INTO evaluation VALUES ({','.join('?' * 14)})", row)
    db.commit()
    db.close()
    for result in (Result.open(tmp_path / "s"), resume_study(tmp_path / "s")):
        (record,) = result.programs()
        assert (record.stage, record.status, record.start, record.figures) == (
            "list",
            "solved",
            {"a": 0.25},
            {"height": 3.0},
        )
        assert result.counts["evaluations"] == 10


def test_a_reader_while_it_is_written_anew_ends_the_resume_with_a_sentence(study, tmp_path):
    run_study(study, tmp_path / "s")
    downgrade(tmp_path / "s")
    db = sqlite3.connect(tmp_path / "s" / "journal.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("INSERT INTO event VALUES (100, 1.0, 1, 'x', 'y')")
    db.execute("BEGIN")
    assert db.execute("SELECT COUNT(*) FROM event").fetchone()[0] > 0
    with pytest.raises(Exception, match=r"is in use by another process|database is locked"):
        resume_study(tmp_path / "s")
    db.execute("COMMIT")
    db.close()
    assert [e["text"] for e in resume_study(tmp_path / "s").events if e["kind"] == "x"] == ["y"]
