"""The journal of a study: an SQLite file with one writer, in which every evaluation is recorded once and durably."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from designopt.arrays import Floats, Integers
from designopt.problem import Problem
from designopt.store.disk.lock import NETWORK_FILE_SYSTEMS, file_system
from designopt.store.errors import StoreError, explained
from designopt.store.journal.connection import connect_to_write
from designopt.store.journal.reader import Ending, JournalReader
from designopt.store.journal.schema import COUNTED, FORMAT, digest, names, statements, with_digests

_SESSION = ", ".join(names("session"))
_SEAL_SESSION = f"UPDATE session SET digest = digest({_SESSION}) WHERE id = ?"
_SET_ARRAYS = (
    "UPDATE evaluation SET arrays = :arrays, digest = digest("
    + ", ".join(":arrays" if name == "arrays" else name for name in names("evaluation"))
    + ") WHERE key = :key"
)


def _insert(table: str, end: str = " ON CONFLICT DO NOTHING", *, width: int = 0) -> str:
    return f"INSERT INTO {table} VALUES ({','.join('?' * (width or len(names(table)) + 1))}){end}"


_EVALUATION, _ATTEMPT, _POINT = map(_insert, ("evaluation", "attempt", "point"))
_EVENT, _PRINTED = map(_insert, ("event", "printed"))
_USAGE = _insert("usage", " ON CONFLICT DO UPDATE SET wall = excluded.wall, digest = excluded.digest")
_ENDING, _REPLACED = (_insert(t, "").replace("INSERT", "INSERT OR REPLACE") for t in ("ending", "evaluation"))

#: Interval between updates of the record counts (s); they are also updated at the end of a session.
COUNTING = 1.0


class Journal(JournalReader):
    """The journal in the store folder `path`, for writing.

    The `add_...` methods collect records until `commit`, which writes all in one transaction. Raises `StoreError` if it
    cannot be written; earlier commits stay intact.
    """

    def __init__(self, path: Path, problem: Problem, connection: sqlite3.Connection) -> None:
        super().__init__(path, problem, connection)
        self._file = str(path / "journal.db")
        self.session = 0
        self._rows: dict[str, list[Sequence[Any]]] = {}
        self._design = _insert("design", width=3 + len(self._free))
        self._table_of = {_EVALUATION: "evaluation", _POINT: "point", self._design: "design"}
        self._new = dict.fromkeys(COUNTED, 0)
        self._counted_at = time.monotonic()
        self._has_log = self._is_flushed = self._waits = True
        self._events = int(connection.execute("SELECT IFNULL(MAX(id), 0) FROM event").fetchone()[0])
        connection.create_function("digest", -1, lambda *values: digest(values), deterministic=True)

    # ------------------------------------------------------------------------------------------------- opening

    @classmethod
    def create(cls, path: Path, problem: Problem, *, seed: int) -> Journal:
        """A new journal in the folder `path` (the caller holds the store's lock)."""
        with explained(path):
            new_database(path, problem, seed).close()
            (path / "journal.db.new").rename(path / "journal.db")
        return cls.open(path, problem, seed=seed)

    @classmethod
    def open(cls, path: Path, problem: Problem, *, seed: int) -> Journal:
        """The existing journal in `path`, for writing. Raises `StoreError` if it belongs to another problem or
        format."""
        with explained(path):
            db = connect_to_write(path)
            db.set_progress_handler(None, 0)  # `rebuild` has read all records, and a run may add any number
            try:
                journal = cls(path, problem, db)
            except BaseException:
                db.close()
                raise
        if journal.meta["problem"] != problem.digest or journal.meta["seed"] != str(seed):
            db.close()
            owner = "another seed" if journal.meta["problem"] == problem.digest else "another problem"
            raise StoreError(f"{path}: belongs to {owner}; choose another folder, or delete this one", path)
        with explained(path):
            mode = "DELETE" if file_system(path) in NETWORK_FILE_SYSTEMS else "WAL"
            db.execute(f"PRAGMA journal_mode={mode}")
            db.execute("PRAGMA synchronous=FULL")
            journal._has_log = mode == "WAL"
            # A log restarted every 1000 pages stops growing, which halves the time of a flush.
            db.execute("PRAGMA wal_autocheckpoint=1000")
        journal._count_anew()
        return journal

    # ------------------------------------------------------------------------------------------------- sessions

    def begin_session(self, *, host: str, executor: str, workers: int, provenance: dict[str, Any]) -> None:
        """Begin a session; subsequent evaluations belong to it."""
        dirty = provenance.get("dirty")
        row = (
            float(time.time()), None, None, host, executor, workers, json.dumps(provenance.get("versions", {})),
            provenance.get("revision"), None if dirty is None else int(dirty),
        )  # fmt: skip
        (last,) = next(self._select("SELECT IFNULL(MAX(id), 0) FROM session"))
        self.session = int(last) + 1
        self._at_once(_insert("session", ""), _with_digest((self.session, *row)))

    def describe_session(self, executor: str, workers: int) -> None:
        """Record the executor of the session."""
        self._change_session("executor = ?, workers = ?", executor, workers)

    def end_session(self, reason: str) -> None:
        """End the session with the `reason`."""
        self._change_session("ended = ?, reason = ?", float(time.time()), reason)
        self.count()

    def _change_session(self, assignments: str, *values: Any) -> None:
        self._at_once(f"UPDATE session SET {assignments} WHERE id = ?", (*values, self.session))

    def _at_once(self, statement: str, values: Sequence[Any]) -> None:
        """Write to the table of sessions in its own transaction."""
        with explained(self.path), self._transaction():
            self._db.execute(statement, values)
            self._db.execute(_SEAL_SESSION, (self.session,))

    def _transaction(self, flush: bool = True) -> _Transaction:
        """A transaction that waits for the disk; with `flush` false it waits only without a log."""
        if self._has_log and flush != self._waits:
            self._db.execute(f"PRAGMA synchronous={'FULL' if flush else 'NORMAL'}")
            self._waits = flush
        return _Transaction(self._db)

    # ------------------------------------------------------------------------------------------------- adding

    def stage(self, number: int, name: str) -> int:
        """Record the stage `name`, number `number` (from 1) of the study; returns its number."""
        recorded_number = next((n for n, recorded_name in self.stages().items() if recorded_name == name), None)
        if recorded_number is not None:
            return recorded_number
        with explained(self.path), self._transaction():
            self._db.execute(_insert("stage", ""), _with_digest((number, name)))
        self._new["stage"] += 1
        return number

    def add_points(self, stage: int, first: int, designs: Integers) -> None:
        """Record that the stage requested `designs`, from ask index `first` on."""
        begins = np.flatnonzero(np.diff(designs, prepend=designs[:1] - 2) != 1)
        counts = np.diff(begins, append=len(designs))
        runs = zip((begins + first).tolist(), designs[begins].tolist(), counts.tolist(), strict=True)
        self._add(_POINT, with_digests((stage, *run) for run in runs))

    def add_designs(self, first: int, X: Floats, violation: Floats) -> None:
        """New designs, numbered from `first`; a choice is stored as its value in JSON, which distinguishes 1 and
        true."""
        columns: list[list[Any]] = X.T.tolist()
        for j, p in enumerate(self._free):
            if p.kind != "real":
                columns[j] = [json.dumps(p.values[int(x)]) if p.kind == "choice" else int(x) for x in columns[j]]
        numbers = range(first, first + len(X))
        self._add(self._design, with_digests(zip(numbers, *columns, (violation + 0.0).tolist(), strict=True)))

    def add_evaluations(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Evaluations: rows (key, kind, design, number, status, reason, outputs JSON, message, wall, cpu, attempts,
        session, worker, finished, array reference)."""
        self._add(_EVALUATION, with_digests(rows))

    def replace_evaluations(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Evaluations as in `add_evaluations`, in place of the recorded ones with the same keys."""
        self._add(_REPLACED, with_digests(rows))

    def forget(self, keys: Sequence[bytes]) -> None:
        """Delete the evaluations `keys`: they are computed again."""
        with explained(self.path), self._transaction():
            self._db.executemany("DELETE FROM evaluation WHERE key = ?", [(key,) for key in keys])
            self._count({"evaluation": -len(keys)})

    def add_attempt(self, key: bytes, number: int, worker: str, outcome: str, detail: str) -> None:
        """An attempt without a result, or with a result already recorded."""
        row = (key, number, self.session, worker, float(time.time()), outcome, detail)
        self._add(_ATTEMPT, [_with_digest(row)])

    def add_printed(self, key: bytes, text: str) -> None:
        """The end of the output printed by the evaluation `key`."""
        self._add(_PRINTED, [_with_digest((key, text))])

    def add_event(self, kind: str, text: str) -> None:
        """A notable event."""
        self._events += 1
        self._add(_EVENT, [_with_digest((self._events, float(time.time()), self.session, kind, text))])

    def set_ending(self, stage: int, ending: Ending) -> None:
        """The stage ended at its time limit."""
        row = (stage, int(ending.tells), int(ending.asks), json.dumps(sorted(ending.missing)), float(ending.wall))
        self._add(_ENDING, [_with_digest(row)])

    def set_usage(self, stage: int, wall: float) -> None:
        """Time spent on `stage` by this session so far (s)."""
        self._add(_USAGE, [_with_digest((self.session, stage, float(wall)))])

    def set_arrays(self, key: bytes, reference: str | None) -> None:
        """The arrays of the evaluation `key` are in the file `reference`."""
        self._add(_SET_ARRAYS, [{"arrays": reference, "key": key}])

    def _add(self, statement: str, rows: list[Any]) -> None:
        if statement in self._rows:
            self._rows[statement] += rows
        else:
            self._rows[statement] = rows

    # ------------------------------------------------------------------------------------------------- durable

    def commit(self, *, flush: bool = True) -> None:
        """Write all additions in one transaction, which survives the end of this process. With `flush` it is on the
        disk on return, with all earlier ones: it survives the end of the machine. Raises `StoreError`."""
        if flush and not self._is_flushed and not self._rows:
            with explained(self.path):
                _flush(self._file + "-wal")
            self._is_flushed = True
        if not self._rows:
            return
        rows = self._rows
        if self._file and not os.path.exists(self._file):  # SQLite would continue to write to a deleted file
            raise StoreError(f"{self.path}: journal.db was removed while the run was writing; start again", self.path)
        new, time_now = dict(self._new), time.monotonic()
        counting = time_now - self._counted_at > COUNTING
        with explained(self.path), self._transaction(flush):
            if _EVALUATION in rows:  # sorted rows touch each page of the tree of keys once
                rows[_EVALUATION].sort(key=itemgetter(0))
            for statement, values in rows.items():
                row_count = self._db.executemany(statement, values).rowcount
                if table := self._table_of.get(statement):
                    new[table] += row_count
            if counting:
                self._count(new)
        self._rows, self._is_flushed = {}, flush or not self._has_log
        self._new, self._counted_at = (dict.fromkeys(COUNTED, 0), time_now) if counting else (new, self._counted_at)

    def _count_anew(self) -> None:
        """Recount the records: a killed session has not recorded the counts of its last second."""
        with explained(self.path):
            present_counts = {t: int(self._db.execute(f"SELECT COUNT(*) FROM {t}").fetchone()[0]) for t in COUNTED}
            new = {table: count - self._counts().get(table, 0) for table, count in present_counts.items()}
            if any(new.values()):
                with self._transaction():
                    self._count(new)

    def count(self) -> None:
        """Update the record counts."""
        with explained(self.path), self._transaction():
            self._count(self._new)
        self._new = dict.fromkeys(COUNTED, 0)

    def _count(self, new: dict[str, int]) -> None:
        change = "UPDATE total SET count = count + :new, digest = digest(name, count + :new) WHERE name = :table"
        self._db.executemany(change, [{"new": count, "table": table} for table, count in new.items() if count])


def _with_digest(record: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*record, digest(record))


class _Transaction:
    """All writes inside become durable together, or none."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")


def _flush(file: str) -> None:
    descriptor = os.open(file, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def new_database(path: Path, problem: Problem, seed: int) -> sqlite3.Connection:
    """An empty journal named ``journal.db.new`` in the folder `path`, which the caller closes and renames."""
    for leftover in path.glob("journal.db.new*"):
        leftover.unlink()
    db = sqlite3.connect(path / "journal.db.new", isolation_level=None, check_same_thread=False)
    meta = {"problem": problem.digest, "seed": str(seed)}
    try:
        fill(db, [p.name for p in problem.space.free], meta)
    except BaseException:
        db.close()
        raise
    return db


def fill(db: sqlite3.Connection, parameters: Sequence[str], meta: Mapping[str, str]) -> None:
    """The tables of an empty journal of designs with these parameters."""
    db.execute("BEGIN")
    for statement in statements(parameters).values():
        db.execute(statement)
    db.executemany("INSERT INTO meta VALUES (?,?)", [("format", str(FORMAT)), *meta.items()])
    db.executemany("INSERT INTO total VALUES (?,0,?)", [(name, digest((name, 0))) for name in COUNTED])
    db.execute("COMMIT")
