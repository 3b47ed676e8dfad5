"""A received journal cannot keep its readers busy: its tables are real ones, and each query has a limit of steps."""

import contextlib
import itertools
import shutil
import sqlite3

import pytest
from run_cases import damage

from designopt.desk.folder import Folder
from designopt.run.runner import resume_study
from designopt.store.errors import StoreError
from designopt.store.journal import connection
from designopt.store.journal.connection import connect_to_read
from designopt.store.result import Result

pytestmark = pytest.mark.timeout(60)

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id"
#: What takes the place of a table, after its removal.
FOREIGN = {
    "a view in place of the first table that is read": f"CREATE VIEW meta AS {ENDLESS}, i AS name, i AS value FROM n",
    "a view in place of designs": f"CREATE VIEW design AS {ENDLESS}, 0 AS violation FROM n",
    "a view in place of evaluations": f"CREATE VIEW evaluation AS {ENDLESS}, 'scenario' AS kind FROM n",
    "a view in place of sessions": f"CREATE VIEW session AS {ENDLESS}, 'x' AS reason FROM n",
    "a virtual table": "CREATE VIRTUAL TABLE session USING fts5(id, reason)",
    "a computed column": "CREATE TABLE session (id INTEGER PRIMARY KEY, reason TEXT AS (hex(zeroblob(100000000))))",
    "another column": "CREATE TABLE session (id INTEGER PRIMARY KEY, reason TEXT, more TEXT)",
    "another table": "CREATE TABLE more (id INTEGER PRIMARY KEY)",
    "another view": "CREATE VIEW more AS SELECT 1 AS id",
    "a trigger": "CREATE TRIGGER more AFTER INSERT ON event BEGIN DELETE FROM event; END",
}


@pytest.mark.parametrize("what", FOREIGN)
def test_other_tables_views_and_triggers_are_refused_wherever_a_store_is_opened(store, what):
    kind, name = FOREIGN[what].split()[1:3]
    if kind == "VIRTUAL":
        kind, name = "table", "session"
    exists = kind != "TRIGGER" and name in ("meta", "design", "evaluation", "session")
    damage(store, *([f"DROP TABLE {name}"] if exists else []), FOREIGN[what])
    text = r"journal.db is damaged: its \w+ '\w+' is not that of a journal"
    with pytest.raises(StoreError, match=text):
        connect_to_read(store)
    with pytest.raises(StoreError, match=text):
        _ = Result.open(store).counts
    with pytest.raises(StoreError, match=text):
        resume_study(store)


def test_a_query_ends_at_a_limit_of_steps_that_grows_with_the_file(store, monkeypatch):
    with contextlib.closing(connect_to_read(store)) as db:
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            db.execute(f"SELECT MAX(id) FROM ({ENDLESS} FROM n)").fetchone()
        assert db.execute("SELECT COUNT(id) FROM design").fetchone() == (3,)  # each query has its own limit
        count = f"SELECT COUNT(*) FROM ({ENDLESS} FROM n LIMIT 1000000)"
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            db.execute(count).fetchone()
        monkeypatch.setattr(connection, "_size", lambda file: 2**20)
        assert db.execute(count).fetchone() == (1_000_000,)


def test_a_limit_of_time_ends_a_query(store):
    with contextlib.closing(connect_to_read(store)) as db:
        db.limit(store / "journal.db", -1.0)
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            db.execute(f"SELECT COUNT(*) FROM ({ENDLESS} FROM n LIMIT 100000)").fetchone()


def multiply(file, table, levels=8, branches=100):
    """Make each interior page of `table` refer to the next one many times, the last of them to one record."""
    with contextlib.closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA journal_mode=DELETE")
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    content = bytearray(file.read_bytes())
    last = len(content) // size
    pages = [root, *range(last + 1, last + levels + 1)]
    content += bytes(levels * size)
    content[28:32] = pages[-1].to_bytes(4, "big")  # number of pages
    # An interior page has pairs of a child and a row number, or a record if its table is an index by key.
    interior, leaf, separators, record = (
        (b"\x02", b"\x0a", [b"\2\2\0"] * branches, b"\2\2\0\0")
        if table == "point"
        else (b"\x05", b"\x0d", [bytes([cell]) for cell in range(branches)], b"\2\1\2\0")
    )
    for page, below in itertools.pairwise(pages):
        cells = [below.to_bytes(4, "big") + separator for separator in separators]
        start = size - len(cells[0]) * branches
        head = interior + b"\0\0" + branches.to_bytes(2, "big") + start.to_bytes(2, "big") + b"\0"
        head += below.to_bytes(4, "big")
        head += b"".join((start + len(cells[0]) * cell).to_bytes(2, "big") for cell in range(branches))
        content[(page - 1) * size : page * size] = head.ljust(start, b"\0") + b"".join(cells)
    start = (size - len(record)).to_bytes(2, "big")
    content[-size:] = (leaf + b"\0\0\0\1" + start + b"\0" + start).ljust(size - len(record), b"\0") + record
    file.write_bytes(bytes(content))


@pytest.mark.parametrize("table", ["design", "session", "evaluation", "point"])
def test_pages_that_are_one_page_many_times_are_not_read_without_end(store, table):
    multiply(store / "journal.db", table)
    with contextlib.closing(connect_to_read(store)) as db, pytest.raises(sqlite3.OperationalError, match="interrupted"):
        db.execute(f"SELECT COUNT(digest) FROM {table}").fetchone()
    with pytest.raises(StoreError, match=r"journal.db (cannot be read|is damaged)"):
        _ = Result.open(store).counts, Result.open(store).sessions
    with pytest.raises(StoreError, match=r"journal.db (cannot be read|is damaged)"):
        resume_study(store)


def test_the_list_of_the_desk_gives_the_reason_and_goes_on(intact, tmp_path, monkeypatch):
    for name in ("bomb", "sound", "view"):
        shutil.copytree(intact, tmp_path / name)
    multiply(tmp_path / "bomb" / "journal.db", "evaluation")
    damage(tmp_path / "view", "DROP TABLE design", FOREIGN["a view in place of designs"])
    folder = Folder(tmp_path)
    entries = {entry.place: entry for entry in folder.look()[0]}
    assert (entries["sound"].state, entries["sound"].evaluations) == ("done", 3)
    assert {entries["bomb"].state, entries["view"].state} == {"unreadable"}
    assert "cannot be read within the limits of steps and time" in entries["bomb"].problem
    assert "its view 'design' is not that of a journal" in entries["view"].problem
    monkeypatch.setattr("designopt.desk.folder.connect_to_read", None)  # unchanged stores are not read again at once
    assert {entry.place: entry for entry in folder.look()[0]} == entries
