"""The journal of a study: an SQLite file with one writer, in which every evaluation is recorded once and durably."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from designopt.problem import Problem
from designopt.store import own
from designopt.store.errors import StoreError, refuse_foreign, resume_command
from designopt.store.lock import NETWORK_FILE_SYSTEMS, file_system

FORMAT = 1

#: Scenario numbers from here on are no scenarios: programs of the solver of stage 0, 1, ... of the study.
PROGRAMS = 1_000_000

SCHEMA = """
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
"""

#: Tables that came later: a store that has none of them holds nothing that they would tell.
LATER = """
CREATE TABLE IF NOT EXISTS ending (stage INTEGER PRIMARY KEY, told INTEGER, asked INTEGER, missing TEXT, wall REAL);
CREATE TABLE IF NOT EXISTS tell (stage INTEGER, number INTEGER, ask INTEGER, PRIMARY KEY (stage, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS printed (key BLOB PRIMARY KEY, text TEXT) WITHOUT ROWID;
"""

_EVALUATION = f"INSERT INTO evaluation VALUES ({','.join('?' * 14)}) ON CONFLICT(key) DO NOTHING"
_ATTEMPT = "INSERT INTO attempt VALUES (?,?,?,?,?,?,?) ON CONFLICT DO NOTHING"
_USAGE = "INSERT INTO usage VALUES (?,?,?) ON CONFLICT(session, stage) DO UPDATE SET wall = excluded.wall"
_POINT = "INSERT INTO point VALUES (?,?,?) ON CONFLICT DO NOTHING"


@dataclass(frozen=True)
class Ending:
    """Where a stage ended because the seconds of its `wall` were used up.

    The solver had been told of the first `told` of its `asked` designs; `missing` are the asks without a result then.
    """

    told: int
    asked: int
    missing: frozenset[int]
    wall: float


class Journal:
    """The journal in the store folder `path`.

    What is given to the `add_...` methods is kept until `commit`, which writes everything in one transaction and
    returns when it is on the disk. `StoreError` where it cannot be written; what was committed before stays intact.
    """

    def __init__(self, path: Path, problem: Problem, connection: sqlite3.Connection, *, session: int = 0) -> None:
        self.path = path
        self.problem = problem
        self.session = session
        self._db = connection
        self._rows: dict[str, list[Sequence[Any]]] = {}
        self._free = problem.space.free
        self._design = f"INSERT INTO design VALUES ({','.join('?' * (2 + len(self._free)))}) ON CONFLICT DO NOTHING"

    # ------------------------------------------------------------------------------------------------- opening

    @classmethod
    def create(cls, path: Path, problem: Problem, *, seed: int) -> Journal:
        """A new journal in the folder `path` (the caller holds the store's lock)."""
        columns = "".join(f', "x_{p.name}"' for p in problem.space.free)
        meta = {"format": str(FORMAT), "problem": problem.digest, "seed": str(seed)}
        partial = path / "journal.db.new"
        with _explained(path):
            for leftover in path.glob("journal.db.new*"):
                leftover.unlink()
            db = sqlite3.connect(partial, isolation_level=None, check_same_thread=False)
            db.executescript(
                f"BEGIN; {SCHEMA} CREATE TABLE design (id INTEGER PRIMARY KEY{columns}, violation REAL); COMMIT;"
            )
            db.execute("BEGIN")
            db.executemany("INSERT INTO meta VALUES (?,?)", meta.items())
            db.execute("COMMIT")
            db.close()
            partial.rename(path / "journal.db")
        return cls.open(path, problem, seed=seed)

    @classmethod
    def open(cls, path: Path, problem: Problem, *, seed: int) -> Journal:
        """The existing journal in `path`, for writing; `StoreError` when it belongs to another problem or format."""
        with _explained(path):
            db = sqlite3.connect(path / "journal.db", isolation_level=None, check_same_thread=False)
            meta = _meta(db, path)
        if meta["problem"] != problem.digest or meta["seed"] != str(seed):
            db.close()
            what = "another seed" if meta["problem"] == problem.digest else "another problem"
            raise StoreError(f"{path}: belongs to {what}; give another folder, or delete this one", path)
        with _explained(path):
            mode = "DELETE" if file_system(path) in NETWORK_FILE_SYSTEMS else "WAL"
            db.execute(f"PRAGMA journal_mode={mode}")
            db.execute("PRAGMA synchronous=FULL")
            # A log that is begun anew every 1000 pages grows no more, which halves the time of a flush.
            db.execute("PRAGMA wal_autocheckpoint=1000")
            db.executescript(LATER)
        return cls(path, problem, db)

    @classmethod
    def read(cls, path: Path, problem: Problem) -> Journal:
        """The journal in `path` for reading, also while its run is going or when the folder is read-only."""
        with _explained(path):
            db = connect_to_read(path)
            meta = _meta(db, path)
        if meta["problem"] != problem.digest:
            raise StoreError(f"{path}: journal.db and problem.json do not belong together", path)
        return cls(path, problem, db)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    # ------------------------------------------------------------------------------------------------- writing

    def begin_session(self, *, host: str, executor: str, workers: int, provenance: dict[str, Any]) -> None:
        """A new session begins; evaluations recorded from now on belong to it."""
        with _explained(self.path):
            cursor = self._db.execute(
                "INSERT INTO session (started, host, executor, workers, versions, revision, dirty)"
                " VALUES (?,?,?,?,?,?,?)",
                (
                    time.time(),
                    host,
                    executor,
                    workers,
                    json.dumps(provenance.get("versions", {})),
                    provenance.get("revision"),
                    provenance.get("dirty"),
                ),
            )
        self.session = int(cursor.lastrowid or 0)

    def describe_session(self, executor: str, workers: int) -> None:
        """Which executor the session came to use."""
        with _explained(self.path):
            self._db.execute(
                "UPDATE session SET executor = ?, workers = ? WHERE id = ?", (executor, workers, self.session)
            )

    def end_session(self, reason: str) -> None:
        """The session ends because of `reason`."""
        with _explained(self.path):
            self._db.execute(
                "UPDATE session SET ended = ?, reason = ? WHERE id = ?", (time.time(), reason, self.session)
            )

    def stage(self, name: str) -> int:
        """The number of the stage `name`."""
        with _explained(self.path):
            self._db.execute("INSERT INTO stage (name) VALUES (?) ON CONFLICT DO NOTHING", (name,))
            return int(self._db.execute("SELECT id FROM stage WHERE name = ?", (name,)).fetchone()[0])

    def add_points(self, stage: int, first: int, designs: Iterable[int]) -> None:
        """The stage asked for `designs`, from ask index `first` on."""
        self._add(_POINT, [(stage, ask, design) for ask, design in enumerate(designs, first)])

    def add_designs(self, first: int, X: list[list[Any]], violation: list[float]) -> None:
        """New designs, numbered from `first`; a choice is kept as its value in JSON, which tells 1 from true."""
        special = [(j, p) for j, p in enumerate(self._free) if p.kind != "real"]
        for x in X if special else ():
            for j, p in special:
                x[j] = json.dumps(p.values[int(x[j])]) if p.kind == "choice" else int(x[j])
        self._add(
            self._design, [(i, *x, excess) for i, (x, excess) in enumerate(zip(X, violation, strict=True), first)]
        )

    def add_evaluations(self, rows: Iterable[Sequence[Any]]) -> None:
        """Evaluations: rows (key, design, scenario, status, reason, outputs JSON, message, wall, cpu, attempts, worker,
        finished, array reference)."""
        s = self.session
        self._add(_EVALUATION, [(*row[:10], s, *row[10:]) for row in rows])

    def add_attempt(self, key: bytes, number: int, worker: str, outcome: str, detail: str) -> None:
        """An attempt that gave nothing, or a result that had been recorded already."""
        self._add(_ATTEMPT, [(key, number, self.session, worker, time.time(), outcome, detail)])

    def add_printed(self, key: bytes, text: str) -> None:
        """The end of what the evaluation `key` printed."""
        self._add("INSERT INTO printed VALUES (?,?) ON CONFLICT DO NOTHING", [(key, text)])

    def add_event(self, kind: str, text: str) -> None:
        """Something worth telling."""
        row = (time.time(), self.session, kind, text)
        self._add("INSERT INTO event (time, session, kind, text) VALUES (?,?,?,?)", [row])

    def set_ending(self, stage: int, ending: Ending) -> None:
        """The stage ended because its time was used up."""
        missing = json.dumps(sorted(ending.missing))
        row = (stage, ending.told, ending.asked, missing, ending.wall)
        self._add("INSERT OR REPLACE INTO ending VALUES (?,?,?,?,?)", [row])

    def add_tell(self, stage: int, number: int, ask: int) -> None:
        """The solver was told of `ask` as the result of this number, before an earlier ask."""
        self._add("INSERT INTO tell VALUES (?,?,?) ON CONFLICT DO NOTHING", [(stage, number, ask)])

    def set_usage(self, stage: int, wall: float) -> None:
        """Seconds that this session has spent on `stage` so far."""
        self._add(_USAGE, [(self.session, stage, wall)])

    def set_arrays(self, key: bytes, reference: str | None) -> None:
        """The arrays of the evaluation `key` are in the file `reference`."""
        self._add("UPDATE evaluation SET arrays = ? WHERE key = ?", [(reference, key)])

    def _add(self, statement: str, rows: list[Any]) -> None:
        if statement in self._rows:
            self._rows[statement] += rows
        else:
            self._rows[statement] = rows

    def commit(self) -> None:
        """Write all that was added, in one durable transaction."""
        if not self._rows:
            return
        rows, self._rows = self._rows, {}
        if not (self.path / "journal.db").exists():  # SQLite would go on writing to a file without a name
            raise StoreError(f"{self.path}: journal.db was removed while the run was writing; start anew", self.path)
        with _explained(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                for statement, values in rows.items():
                    self._db.executemany(statement, values)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    # ------------------------------------------------------------------------------------------------- reading

    def stages(self) -> dict[int, str]:
        """Names of the stages by number."""
        return dict(self._select("SELECT id, name FROM stage ORDER BY id"))

    def points(self, stage: int) -> list[int]:
        """Designs that `stage` asked for, in ask order."""
        return [row[0] for row in self._select("SELECT design FROM point WHERE stage = ? ORDER BY ask", stage)]

    def spent(self, stage: str) -> int:
        """How many designs of its budget the stage of that name has asked for: those that are not invalid."""
        query = (
            "SELECT COUNT(*) FROM point JOIN stage ON stage.id = point.stage JOIN design ON design.id = point.design"
            " WHERE stage.name = ? AND violation <= 0.0"
            " AND design NOT IN (SELECT design FROM evaluation WHERE status = 'invalid')"
        )
        return int(next(self._select(query, stage))[0])

    def first_stages(self) -> dict[int, int]:
        """For each design, the number of the stage that asked for it first."""
        return dict(self._select("SELECT design, MIN(stage) FROM point GROUP BY design"))

    def designs(self) -> Iterator[tuple[int, list[float], float]]:
        """All designs: number, row of ``X``, violation of the relations."""
        choices = [p.values if p.kind == "choice" else () for p in self._free]
        position = [{json.dumps(value): i for i, value in enumerate(values)} for values in choices]
        for number, *values, violation in self._select("SELECT * FROM design ORDER BY id"):
            x = [float(at[v] if at else v) for v, at in zip(values, position, strict=True)]
            yield number, x, violation

    def evaluations(self, columns: str, least: int = 0) -> Iterator[tuple[Any, ...]]:
        """All evaluations from the scenario `least` on, by design and scenario; `columns` as SQL names them."""
        where = "WHERE scenario >= ? " if least else ""
        query = f"SELECT {columns} FROM evaluation {where}ORDER BY design, scenario"
        return self._select(query, *([least] if least else []))

    def evaluation(self, key: bytes, columns: str) -> tuple[Any, ...] | None:
        """One evaluation."""
        return next(self._select(f"SELECT {columns} FROM evaluation WHERE key = ?", key), None)

    def printed(self, key: bytes) -> str:
        """The end of what the evaluation `key` printed; "" for nothing, and in stores that keep none."""
        if next(self._select("SELECT 1 FROM sqlite_master WHERE name = 'printed'"), None) is None:
            return ""
        row = next(self._select("SELECT text FROM printed WHERE key = ?", key), None)
        return str(row[0]) if row else ""

    def count_evaluations(self) -> int:
        """How many evaluations there are, those aside that the model refused."""
        return int(next(self._select("SELECT COUNT(*) FROM evaluation WHERE status <> 'invalid'"))[0])

    def failed(self) -> Iterator[tuple[int, str, str, str]]:
        """The evaluations that failed: design, status, reason, message."""
        return self._select(
            "SELECT design, status, IFNULL(reason, ''), IFNULL(message, '') FROM evaluation"
            " WHERE status NOT IN ('ok', 'invalid') ORDER BY design, scenario"
        )

    def attempts(self) -> Iterator[tuple[bytes, str, int]]:
        """Attempts on record: key of the evaluation, how they ended, and how often."""
        return self._select("SELECT key, outcome, COUNT(*) FROM attempt GROUP BY key, outcome")

    def ending(self, stage: int) -> Ending | None:
        """Where the stage ended because its time was used up."""
        row = next(self._select("SELECT told, asked, missing, wall FROM ending WHERE stage = ?", stage), None)
        return Ending(row[0], row[1], frozenset(json.loads(row[2])), row[3]) if row else None

    def tells(self, stage: int) -> dict[int, int]:
        """Asks that the solver was told of out of order, by the number of the result."""
        return dict(self._select("SELECT number, ask FROM tell WHERE stage = ?", stage))

    def has_event(self, kind: str, text: str) -> bool:
        """Whether this was told before, in any session."""
        found = self._select("SELECT 1 FROM event WHERE kind = ? AND text = ? LIMIT 1", kind, text)
        return next(found, None) is not None

    def usage(self, stage: int) -> float:
        """Seconds spent on `stage` by all sessions."""
        return float(next(self._select("SELECT TOTAL(wall) FROM usage WHERE stage = ?", stage))[0])

    def records(self, table: str) -> list[dict[str, Any]]:
        """All rows of the small table `table` (session, event, attempt) as mappings."""
        cursor = self._db.execute(f"SELECT * FROM {table} ORDER BY 1")
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def dump(self) -> str:
        """Everything that two runs of one study must have in common, as text: no times, sessions, workers, attempts."""
        lines = [f"{name}={value}" for name, value in self._select("SELECT * FROM meta ORDER BY name")]
        tables = {
            "stage": "SELECT * FROM stage ORDER BY id",
            "point": "SELECT * FROM point ORDER BY stage, ask",
            "design": "SELECT * FROM design ORDER BY id",
            "evaluation": "SELECT design, scenario, hex(key), status, reason, outputs, message, arrays FROM evaluation"
            " ORDER BY design, scenario, key",
        }
        for name, query in tables.items():
            lines += [f"{name} {json.dumps(row, ensure_ascii=False)}" for row in self._select(query)]
        return "\n".join(lines) + "\n"

    def _select(self, query: str, *values: Any) -> Iterator[Any]:
        with _explained(self.path):
            yield from self._db.execute(query, values)


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A read-only connection to the journal in `path`.

    SQLite cannot read a WAL file in a folder that it may not write to, unless it is told that nobody else writes.
    """
    refuse_foreign(path)
    file = path / "journal.db"
    address = f"{file.absolute().as_uri()}?mode=ro"
    db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    try:
        db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        db.close()
        if (path / "journal.db-wal").exists():
            raise
        db = sqlite3.connect(f"{address}&immutable=1", uri=True, isolation_level=None, check_same_thread=False)
    return db


def _meta(db: sqlite3.Connection, path: Path) -> dict[str, str]:
    meta = dict(db.execute("SELECT name, value FROM meta"))
    if int(meta["format"]) != FORMAT:
        db.close()
        age = "newer" if int(meta["format"]) > FORMAT else "older"
        raise StoreError(
            f"{path}: written by a {age} version of designopt (store format {meta['format']}, this one knows {FORMAT});"
            f" use that version, or run the study anew in another folder",
            path,
        )
    return meta


class _explained:
    """Turns errors of the disk and of SQLite into `StoreError` with the way out."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (sqlite3.Error, OSError)):
            raise explain(error, self._path) from error


def explain(error: Exception, path: Path) -> StoreError:
    """`error` of the disk or of SQLite as a message for the user."""
    if isinstance(error, own.NotOwn):
        return StoreError(f"{error.filename}: {error.strerror}", path)
    text = str(error)
    recorded = (path / "journal.db").exists()
    again = f"what was recorded is intact; continue with: {resume_command(path)}" if recorded else "then run again"
    full = "full" in text or "No space" in text or "too large" in text
    if full or "disk I/O" in text:
        return StoreError(f"{path}: cannot be written: {text}; free some space, {again}", path)
    if "readonly" in text or "read-only" in text.lower() or "denied" in text or "unable to open" in text:
        return StoreError(f"{path}: cannot be written: {text}; make the folder writable, {again}", path)
    damaged = ("no such table", "no such column", "Could not decode")
    if isinstance(error, sqlite3.DatabaseError) and (
        not isinstance(error, sqlite3.OperationalError) or any(words in text for words in damaged)
    ):
        return StoreError(f"{path}: journal.db cannot be read: {text}; it is damaged or not a journal", path)
    return StoreError(f"{path}: {text}; {again}", path)
