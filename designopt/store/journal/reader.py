"""Reading of the journal in blocks of records, with a check of each digest."""

from __future__ import annotations

import itertools
import json
import sqlite3
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from designopt.arrays import Floats, Integers
from designopt.problem import Problem
from designopt.store.errors import DamagedRecord, StoreError, explained
from designopt.store.journal.connection import connect_to_read, foreign_table
from designopt.store.journal.schema import (
    FORMAT,
    READABLE,
    Kind,
    digest,
    first_damaged,
    is_definition,
    names,
    statements,
)

#: Place of each column of an evaluation in its record.
COLUMN = {name: i for i, name in enumerate(names("evaluation"))}
#: Number of rows that are objects at the same time: they need much more memory than their numbers.
BLOCK = 4096


@dataclass(frozen=True)
class Ending:
    """The end of a stage at its `wall` time.

    The solver had received the first `tells` of its `asks` designs; `missing` are the requests without a result at that
    time.
    """

    tells: int
    asks: int
    missing: frozenset[int]
    wall: float


class JournalReader:
    """The journal of `problem` in the store folder `path`. Every method raises `DamagedRecord` for a record that
    differs from its digest, `StoreError` for what SQLite cannot read."""

    def __init__(self, path: Path, problem: Problem, connection: sqlite3.Connection) -> None:
        self.path = path
        self.problem = problem
        self._db = connection
        weakref.finalize(self, connection.close).atexit = False
        self._free = problem.space.free
        self.meta = _meta(connection, path)
        self._refuse_foreign_tables()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _refuse_foreign_tables(self) -> None:
        """A view or a trigger could change reads and writes."""
        ours = statements([p.name for p in self._free])
        for kind, name, text in self._db.execute("SELECT type, name, sql FROM main.sqlite_master"):
            if kind == "index" and text is None:
                continue
            if kind != "table" or name not in ours or not is_definition(text, ours[name]):
                raise foreign_table(self.path, kind, name)

    # -------------------------------------------------------------------------------------------------- records

    def _blocks(self, query: str, *values: Any) -> Iterator[list[Any]]:
        """The rows of a query, in blocks."""
        with explained(self.path):
            cursor = self._db.execute(query, values)
            while block := cursor.fetchmany(BLOCK):
                yield block

    def _select(self, query: str, *values: Any) -> Iterator[Any]:
        return itertools.chain.from_iterable(self._blocks(query, *values))

    def checked_records(self, table: str, clauses: str = "", *values: Any) -> Iterator[tuple[tuple[Any, ...], bool]]:
        """Records of `table` with their digests, and whether these match. `clauses` of the SQL."""
        for row in self._select(f"SELECT * FROM {table} {clauses}", *values):
            yield row, digest(row[:-1]) == row[-1]

    def intact_blocks(self, table: str, clauses: str = "ORDER BY 1", *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Records of `table` with their digests, in blocks; a damaged one raises. `clauses` of the SQL."""
        for block in self._blocks(f"SELECT * FROM {table} {clauses}", *values):
            if (row := first_damaged(block)) is not None:
                raise self.damage(table, row)
            yield block

    def _intact(self, table: str, clauses: str = "ORDER BY 1", *values: Any) -> Iterator[tuple[Any, ...]]:
        """Records of a small `table`; a damaged one raises."""
        return (row[:-1] for block in self.intact_blocks(table, clauses, *values) for row in block)

    def damage(self, table: str, row: Sequence[Any]) -> DamagedRecord:
        """The error for a damaged record."""
        record, way = f"{table} {row[0]}", "cannot be recovered, but a run continues without it"
        if table == "evaluation":
            key = row[0].hex() if isinstance(row[0], bytes) else row[0]
            return DamagedRecord(self.path, f"evaluation {key} (design {row[2]}, {row[1]} {row[3]})")
        if table == "point":
            record = f"ask {row[1]} of stage {row[0]}"
        if table in ("point", "design", "stage"):
            return DamagedRecord(self.path, record)
        return DamagedRecord(self.path, record, way)

    def _counts(self) -> dict[str, int]:
        return dict(self._intact("total"))

    def _complete(self, table: str, count: int, least: dict[str, int]) -> None:
        """Raise for a table with fewer records than the count on record."""
        if count < least.get(table, 0):
            records = f"{least[table] - count} of {least[table]} {table}s, which is lost,"
            raise DamagedRecord(self.path, records)

    # -------------------------------------------------------------------------------------------------- designs

    def stages(self) -> dict[int, str]:
        """Names of the stages by number."""
        least = self._counts()
        names = dict(self._intact("stage"))
        self._complete("stage", len(names), least)
        return names

    def points(self, stage: int, *, gaps: bool = False) -> list[int]:
        """Designs requested by `stage`, in ask order; -1 for a lost record with `gaps`."""
        runs = list(self._intact("point", f"WHERE stage = {int(stage)} ORDER BY ask"))
        return self._design_numbers(stage, runs, gaps=gaps)

    def all_points(self) -> dict[str, list[int]]:
        """The designs requested by each stage, in ask order, by the stages' names."""
        least = self._counts()
        runs = list(self._intact("point", "ORDER BY stage, ask"))
        self._complete("point", len(runs), least)
        of_stage = {stage: list(stage_runs) for stage, stage_runs in itertools.groupby(runs, key=itemgetter(0))}
        names = self.stages()
        if lost := sorted(of_stage.keys() - names.keys()):
            raise self.damage("stage", (lost[0],))
        return {name: self._design_numbers(stage, of_stage.get(stage, [])) for stage, name in names.items()}

    def _design_numbers(self, stage: int, runs: Sequence[tuple[Any, ...]], *, gaps: bool = False) -> list[int]:
        numbers: list[int] = []
        for _, ask, design, count in runs:
            if ask != len(numbers) and not (gaps and ask > len(numbers)):
                raise self.damage("point", (stage, len(numbers)))
            numbers += [-1] * (ask - len(numbers))
            numbers += range(design, design + count)
        return numbers

    def designs(self, *, gaps: bool = False) -> tuple[Floats, Floats]:
        """All designs (n, d) by number, and their violation of the relations (n,); NaN for lost records with `gaps`.
        Raises `ValueError` for a value that is not a number."""
        least = self._counts()
        width = len(self._free)
        positions = {
            j: {json.dumps(value): i for i, value in enumerate(p.values)}
            for j, p in enumerate(self._free, 1)
            if p.kind == "choice"
        }
        parts = [np.empty((0, width + 3))]
        for block in self.intact_blocks("design", "ORDER BY id"):
            rows: Iterable[Sequence[Any]] = block
            if positions:
                rows = [[positions[j][v] if j in positions else v for j, v in enumerate(row)] for row in block]
            values = itertools.chain.from_iterable(rows)
            parts.append(np.fromiter(values, float, len(block) * (width + 3)).reshape(len(block), -1))
        table = np.concatenate(parts)
        if not (np.isfinite(table[:, :-2]).all() and not np.isnan(table[:, -2]).any()):
            raise ValueError("a design has no number")
        numbers = table[:, 0].astype(np.int64)
        gap_rows = np.flatnonzero(numbers != np.arange(len(numbers)))
        if gaps and (np.diff(numbers, prepend=-1) > 0).all():
            complete = np.full((self._end_of_designs(numbers), width + 3), np.nan)
            complete[numbers] = table
            table = complete
        elif len(gap_rows):
            raise self.damage("design", (int(gap_rows[0]),))
        else:
            self._complete("design", len(numbers), least)
        return table[:, 1:-2].copy(), table[:, -2].copy()

    def _end_of_designs(self, numbers: Integers) -> int:
        """The number after that of the last design in `numbers`, points and evaluations."""
        ends = "SELECT MAX(MAX(design + count), IFNULL((SELECT MAX(design) + 1 FROM evaluation), 0)) FROM point"
        return max(int(next(self._select(ends))[0] or 0), int(numbers.max(initial=-1)) + 1)

    # ---------------------------------------------------------------------------------------------- evaluations

    def evaluations(self, columns: str, kind: Kind | None = None) -> Iterator[tuple[Any, ...]]:
        """Evaluations, of one `kind` or all, by design, kind and number; `columns` are comma-separated names."""
        least = self._counts() if kind is None else {}
        condition = f"WHERE kind = '{kind}'" if kind else ""
        positions = [COLUMN[name] for name in columns.split(", ")]
        pick = itemgetter(*positions) if len(positions) > 1 else lambda row: (row[positions[0]],)
        rows: Iterable[tuple[Any, ...]] = itertools.chain.from_iterable(
            self.evaluation_blocks(f"{condition} ORDER BY design, kind, number", least)
        )
        return map(pick, rows)

    def evaluation_blocks(
        self, clauses: str = "", least: dict[str, int] | None = None
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Evaluations with their digests, in blocks. A damaged one raises, as do fewer than the counts `least`, by
        default those on record. `clauses` of the SQL."""
        least = self._counts() if least is None else least
        count = 0
        for block in self.intact_blocks("evaluation", clauses):
            count += len(block)
            yield block
        self._complete("evaluation", count, least)

    def evaluation(self, key: bytes, columns: str) -> tuple[Any, ...] | None:
        """One evaluation."""
        for row, intact in self.checked_records("evaluation", "WHERE key = ?", key):
            if not intact:
                raise self.damage("evaluation", row)
            return tuple(row[COLUMN[name]] for name in columns.split(", "))
        return None

    def printed(self, key: bytes) -> str:
        """The end of the output printed by the evaluation `key`; "" for none."""
        row = next(self._intact("printed", "WHERE key = ?", key), None)
        return str(row[1]) if row else ""

    def spent(self, stage: str) -> int:
        """Number of designs that the stage has used of its budget: all except invalid ones."""
        number = next((n for n, name in self.stages().items() if name == stage), 0)
        designs = self.points(number)  # of designs that are read afterwards
        refused_designs = [design for design, status in self.evaluations("design, status") if status == "invalid"]
        valid = self.designs()[1] <= 0.0
        valid[refused_designs] = False
        return int(valid[designs].sum())

    def count_evaluations(self) -> int:
        """Number of evaluations, except those that the model rejected and neighbours."""
        query = "SELECT COUNT(*) FROM evaluation WHERE status <> 'invalid' AND kind <> 'neighbour'"
        return int(next(self._select(query))[0])

    def failures(self) -> Iterator[tuple[int, str, str, str]]:
        """The evaluations that failed: design, status, reason, message."""
        return self._select(
            "SELECT design, status, IFNULL(reason, ''), IFNULL(message, '') FROM evaluation"
            " WHERE status NOT IN ('ok', 'invalid') AND kind <> 'neighbour' ORDER BY design, kind, number"
        )

    # ----------------------------------------------------------------------------------------------- bookkeeping

    def attempts(self) -> Iterator[tuple[bytes, str, int]]:
        """Attempts on record: key of the evaluation, outcome, and count."""
        return self._select("SELECT key, outcome, COUNT(*) FROM attempt GROUP BY key, outcome")

    def ending(self, stage: int) -> Ending | None:
        """The end of the stage at its time limit."""
        row = next(self._intact("ending", f"WHERE stage = {int(stage)}"), None)
        return Ending(row[1], row[2], frozenset(json.loads(row[3])), row[4]) if row else None

    def has_event(self, kind: str, text: str) -> bool:
        """Whether such an event exists, in any session."""
        matches = self._select("SELECT 1 FROM event WHERE kind = ? AND text = ? LIMIT 1", kind, text)
        return next(matches, None) is not None

    def usage(self, stage: int) -> float:
        """Time spent on `stage` by all sessions (s)."""
        return float(next(self._select("SELECT TOTAL(wall) FROM usage WHERE stage = ?", stage))[0])

    def records(self, table: str) -> list[dict[str, Any]]:
        """All records of the small table `table` (session, event, attempt) as mappings."""
        return [dict(zip(names(table), row, strict=True)) for row in self._intact(table)]

    def dump(self) -> str:
        """Everything that two runs of one study must have in common, as text: no times, sessions, workers, attempts."""
        lines = [f"{name}={value}" for name, value in sorted(self.meta.items())]
        lines += [f"stage {json.dumps([number, name])}" for number, name in self.stages().items()]
        for stage in self.stages():
            lines += [f"point {json.dumps([stage, ask, design])}" for ask, design in enumerate(self.points(stage))]
        lines += [f"design {json.dumps(row[:-1])}" for row in self._select("SELECT * FROM design ORDER BY id")]
        columns = "design, kind, number, key, status, reason, outputs, message, arrays"
        for row in self.evaluations(columns):
            printable = [v.hex() if isinstance(v, bytes) else v for v in row]
            lines.append(f"evaluation {json.dumps(printable, ensure_ascii=False)}")
        return "\n".join(lines) + "\n"

    # -------------------------------------------------------------------------------------------------- opening

    @classmethod
    def read(cls, path: Path, problem: Problem) -> JournalReader:
        """The journal in `path` for reading, also during its run or in a read-only folder. Raises `StoreError`."""
        with explained(path):
            journal = JournalReader(path, problem, connect_to_read(path))
        if journal.meta["problem"] != problem.digest:
            journal.close()
            raise StoreError(f"{path}: journal.db and problem.json do not belong together", path)
        return journal


def _meta(db: sqlite3.Connection, path: Path) -> dict[str, str]:
    meta = dict(db.execute("SELECT name, value FROM meta"))
    if int(meta["format"]) not in READABLE:
        db.close()
        age = "newer" if int(meta["format"]) > FORMAT else "older"
        raise StoreError(
            f"{path}: written by a {age} version of designopt (store format {meta['format']}, this one knows {FORMAT});"
            f" use that version, or run the study again in another folder",
            path,
        )
    return meta
