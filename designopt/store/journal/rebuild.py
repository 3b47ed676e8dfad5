"""Rewriting of a journal without damaged records. The resumed run computes or requests missing records again."""

from __future__ import annotations

import collections
import contextlib
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from designopt.counts import plural
from designopt.problem import Problem
from designopt.store.disk.durable import flush_folder
from designopt.store.errors import DamagedRecord, StoreError, explained
from designopt.store.journal import recorded_designs
from designopt.store.journal.connection import connect_to_write
from designopt.store.journal.reader import JournalReader
from designopt.store.journal.recorded_designs import Contents
from designopt.store.journal.schema import COUNTED, DIGESTED, digest
from designopt.store.journal.writer import new_database
from designopt.study.study import StudyDefinition

#: Tables without which a replay would not be the same run.
_NEEDED = {"ending": "how a stage ended"}
_AGAIN = {
    "evaluation": "computed again",
    "design": "asked for again",
    "point": "asked for again",
    "stage": "named again",
}


def read_intact(path: Path, problem: Problem) -> Contents | None:
    """The contents of the journal in `path`, all its records verified; None for damaged or lost ones, or the journal of
    another problem. The caller holds the lock. Raises `StoreError` if SQLite cannot read it."""
    with explained(path), contextlib.closing(connect_to_write(path)) as db:
        journal = JournalReader(path, problem, db)
        if journal.meta["problem"] != problem.digest:
            return None
        _check_structure(db)
        try:
            contents = recorded_designs.read_all(journal)
            journal.all_points()
            for table in DIGESTED:
                if table not in ("design", "evaluation"):
                    collections.deque(journal.intact_blocks(table, ""), 0)
        except StoreError:
            return None
        return contents


def rebuild(path: Path, problem: Problem, study: StudyDefinition) -> list[str]:
    """Rewrite the journal in `path` if necessary; returns a description of the damage. The caller holds the lock.

    Raises `StoreError` if SQLite cannot read it, or if lost records cannot be recovered.
    """
    with explained(path):
        db = connect_to_write(path)
        db.text_factory = lambda text: text.decode(
            "utf-8", "surrogateescape"
        )  # text that is not UTF-8 does not match its digest
        try:
            journal = JournalReader(path, problem, db)
            if journal.meta["problem"] != problem.digest:
                return []  # `Journal.open` reports it
            _check_structure(db)
            damage_counts = _count_damage(journal)
            if not damage_counts:
                return []
            _copy(journal, study)
            (busy, *_) = db.execute("PRAGMA main.wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise StoreError(f"{path}: is in use by another process; wait for it to end", path)
        finally:
            db.close()
        for name in ("journal.db-wal", "journal.db-shm"):  # empty by now; they do not belong to the new file
            (path / name).unlink(missing_ok=True)
        os.replace(path / "journal.db.new", path / "journal.db")
        flush_folder(path)
    return [
        f"{plural(count, 'damaged record')} of {table}: {_AGAIN.get(table, 'left out')}"
        for table, count in damage_counts.items()
    ]


def _check_structure(db: sqlite3.Connection) -> None:
    for (fault,) in db.execute("PRAGMA main.quick_check(1)"):
        if fault != "ok":
            raise sqlite3.DatabaseError(fault)


def _records(journal: JournalReader) -> Iterator[tuple[str, tuple[Any, ...], bool]]:
    """All records with their tables, and whether they match their digests."""
    for table in DIGESTED:
        for row, intact in journal.checked_records(table):
            yield table, row, intact


def _count_damage(journal: JournalReader) -> Counter[str]:
    """Number of damaged or lost records of each table."""
    damage_counts: Counter[str] = Counter()
    read_rows: Counter[str] = Counter()
    for table, row, intact in _records(journal):
        read_rows[table] += 1
        if not intact and table in _NEEDED:
            record = f"{table} {row[0]} ({_NEEDED[table]})"
            way = "is lost and cannot be recovered; start a new study with start_from. The rest can be read, not"
            raise DamagedRecord(journal.path, record, f"{way} continued with")
        damage_counts[table] += not intact
    for (table, least, _), intact in journal.checked_records("total"):
        damage_counts[table] += max(0, least - read_rows[table]) if intact else 0
    numbers = [row[0] for row, intact in journal.checked_records("design") if intact]
    damage_counts["design"] = max(damage_counts["design"], max(numbers, default=-1) + 1 - len(numbers))
    return +damage_counts


def _copy(journal: JournalReader, study: StudyDefinition) -> None:
    """Write all intact records to a new database."""
    new = new_database(journal.path, journal.problem, int(journal.meta["seed"]))
    try:
        new.execute("BEGIN")
        names = dict(enumerate((stage.name for stage in study.stages), 1))
        for table, row, intact in _records(journal):
            record = row[:-1]
            if table == "stage" and not intact and row[0] in names:
                record, intact = (row[0], names[row[0]]), True
            if intact and table != "total":
                _insert(new, table, record)
        for table in COUNTED:
            (count,) = new.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
            new.execute("UPDATE total SET count = ?, digest = ? WHERE name = ?", (count, digest((table, count)), table))
        new.execute("COMMIT")
    finally:
        new.close()


def _insert(db: sqlite3.Connection, table: str, record: tuple[Any, ...]) -> None:
    db.execute(f"INSERT OR IGNORE INTO {table} VALUES ({','.join('?' * len(record))},?)", (*record, digest(record)))
