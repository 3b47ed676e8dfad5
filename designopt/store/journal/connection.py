"""Connections to journals: only those whose tables are real tables of a journal, and with a limit for each query.

A received journal may contain a view or a virtual table without end, or pages that refer to each other in circles.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from pathlib import Path
from typing import Any

from designopt.store.errors import StoreError, refuse_foreign
from designopt.store.journal.schema import COLUMNS, is_definition, statements

#: Steps of SQLite's virtual machine between two checks of the limits.
INTERVAL = 100_000
#: Maximum number of steps of a query: a constant, and for each byte of the file (measured: at most 0.2).
STEPS, STEPS_PER_BYTE = 2_000_000, 20

#: A table with columns and a primary key, but without expressions (defaults, checks, computed columns).
_PLAIN_TABLE = re.compile(r'CREATE TABLE \w+ \((?:[^()"]|"[^"]*")*(?:\([\w, ]+\))?\)(?: WITHOUT ROWID)?')


class LimitedConnection(sqlite3.Connection):
    """A connection whose queries end with `sqlite3.OperationalError` ("interrupted") at a limit of steps, and the
    whole connection at a limit of time."""

    def limit(self, file: Path, seconds: float | None = None) -> None:
        """Limit the steps of each query by the size of the journal `file`, and with `seconds` the time from now."""
        self._checks = 0
        deadline = float("inf") if seconds is None else time.monotonic() + seconds

        def exhausted() -> bool:
            self._checks += 1
            size = sum(_size(name) for name in (file, file.with_name(f"{file.name}-wal")))
            return self._checks * INTERVAL > STEPS + STEPS_PER_BYTE * size or time.monotonic() > deadline

        self.set_progress_handler(exhausted, INTERVAL)

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        """`sqlite3.Connection.execute`, with a new count of steps."""
        self._checks = 0
        return super().execute(*arguments)


def _size(file: Path) -> int:
    try:
        return os.lstat(file).st_size
    except OSError:
        return 0


def connect_to_read(path: Path, seconds: float | None = None) -> sqlite3.Connection:
    """A read-only connection to the journal in `path`, which can be used for `seconds` (None: without a limit of time).

    SQLite cannot read a WAL file in a read-only folder unless it may assume that there is no writer. Raises
    `StoreError`, `sqlite3.Error`.
    """
    refuse_foreign(path)
    file = path / "journal.db"
    address = f"{file.absolute().as_uri()}?mode=ro"
    try:
        return _connect(address, path, seconds)
    except sqlite3.OperationalError:
        if (path / "journal.db-wal").exists():
            raise
        return _connect(f"{address}&immutable=1", path, seconds)


def connect_to_write(path: Path) -> sqlite3.Connection:
    """A connection to the journal in `path`, whose lock the caller holds. Raises `StoreError`, `sqlite3.Error`."""
    refuse_foreign(path)
    return _connect((path / "journal.db").absolute().as_uri(), path)


def _connect(address: str, path: Path, seconds: float | None = None) -> LimitedConnection:
    db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, factory=LimitedConnection)
    try:
        db.limit(path / "journal.db", seconds)
        _refuse_foreign_tables(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _refuse_foreign_tables(db: sqlite3.Connection, path: Path) -> None:
    """Raise `StoreError` for a view, a trigger, or another table than those of a journal; the names of the parameters
    are not known here."""
    entries = [
        tuple(str(value, errors="replace") if isinstance(value, bytes) else value for value in row)
        for row in db.execute("SELECT type, CAST(name AS BLOB), CAST(sql AS BLOB) FROM main.sqlite_master")
    ]
    definitions = statements(())
    for kind, name, text in entries:
        if kind == "index" and text is None:
            continue
        plain = kind == "table" and name in (*COLUMNS, "design") and _PLAIN_TABLE.fullmatch(str(text))
        if not plain or (name in definitions and name != "design" and not is_definition(str(text), definitions[name])):
            raise foreign_table(path, kind, name)


def foreign_table(path: Path, kind: str, name: str) -> StoreError:
    """The error for a table, view or trigger that is not part of a journal."""
    return StoreError(f"{path}: journal.db is damaged: its {kind} '{name}' is not that of a journal", path)
