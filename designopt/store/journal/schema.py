"""Tables of the journal. Every record has a digest of its values, which detects changes."""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Literal

#: Format of new journals, and those that can be read and continued. In format 2, the evaluations are a tree by their
#: keys, in which each transaction changes almost all pages.
FORMAT = 3
READABLE = (2, FORMAT)

#: Kinds of evaluations: a design in a scenario of the study, one of its validation, a program of a stage's solver, a
#: neighbour of the design within the tolerances, or a cheap evaluation of it (`designopt.plugin.Fidelity`).
Kind = Literal["scenario", "validation", "program", "neighbour", "cheap"]

#: Columns of the tables, except the digest. In `point` a row is a run of consecutive asks for consecutive designs. In
#: `evaluation`, `number` is by `kind` that of the scenario, of the validation's scenario, of the program's stage (from
#: 0), or of the neighbour, times the number of scenarios, plus that of its scenario. `total` contains the recent
#: numbers of rows of other tables. `tell` is empty in new stores.
COLUMNS = {
    "meta": "name TEXT PRIMARY KEY, value TEXT NOT NULL",
    "total": "name TEXT PRIMARY KEY, count INTEGER NOT NULL",
    "session": "id INTEGER PRIMARY KEY, started REAL, ended REAL, reason TEXT, host TEXT, executor TEXT,"
    " workers INTEGER, versions TEXT, revision TEXT, dirty INTEGER",
    "stage": "id INTEGER PRIMARY KEY, name TEXT NOT NULL",
    "usage": "session INTEGER, stage INTEGER, wall REAL",
    "point": "stage INTEGER, ask INTEGER, design INTEGER NOT NULL, count INTEGER NOT NULL",
    "evaluation": "key BLOB PRIMARY KEY, kind TEXT NOT NULL, design INTEGER NOT NULL, number INTEGER NOT NULL,"
    " status TEXT NOT NULL, reason TEXT, outputs TEXT, message TEXT, wall REAL, cpu REAL, attempts INTEGER,"
    " session INTEGER, worker TEXT, finished REAL, arrays TEXT",
    "attempt": "key BLOB, number INTEGER, session INTEGER, worker TEXT, ended REAL, outcome TEXT, detail TEXT",
    "event": "id INTEGER PRIMARY KEY, time REAL, session INTEGER, kind TEXT, text TEXT",
    "ending": "stage INTEGER PRIMARY KEY, told INTEGER, asked INTEGER, missing TEXT, wall REAL",
    "tell": "stage INTEGER, number INTEGER, ask INTEGER",
    "printed": "key BLOB PRIMARY KEY, text TEXT",
}
_KEYS = {
    "usage": "session, stage",
    "point": "stage, ask",
    "attempt": "key, number",
    "tell": "stage, number",
}
#: Tables whose rows are counted, because a lost row would change a result unnoticed.
COUNTED = ("stage", "point", "design", "evaluation")
_PLAIN = ("meta",)
_CLUSTERED = ("meta", "total", "printed", *_KEYS)


def statements(parameters: Sequence[str]) -> dict[str, str]:
    """The ``CREATE TABLE`` of each table, for free parameters of these names."""
    values = "".join(f', "x_{name}"' for name in parameters)
    columns = {**COLUMNS, "design": f"id INTEGER PRIMARY KEY{values}, violation REAL"}
    return {
        name: f"CREATE TABLE {name} ({text}"
        + ("" if name in _PLAIN else ", digest INTEGER NOT NULL")
        + (f", PRIMARY KEY ({_KEYS[name]})" if name in _KEYS else "")
        + (") WITHOUT ROWID" if name in _CLUSTERED else ")")
        for name, text in columns.items()
    }


def is_definition(text: str, statement: str) -> bool:
    """Whether `text` defines the table of `statement`, in any readable format."""
    return text in (statement, f"{statement} WITHOUT ROWID")


def names(table: str) -> tuple[str, ...]:
    """Columns of `table`, without the digest."""
    return tuple(column.split()[0] for column in COLUMNS[table].split(", "))


#: Tables whose records have digests.
DIGESTED = ("design", *(name for name in COLUMNS if name not in _PLAIN))


def digest(record: tuple[Any, ...]) -> int:
    """The digest of a record: CRC-32 of its values (NULL, numbers, text, bytes) as SQLite returns them.

    `marshal` version 2, of fixed width and without references, serialises them; a test fixes the format.
    """
    return zlib.crc32(marshal.dumps(record, 2))


def first_damaged(rows: Sequence[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    """The first of the `rows`, records with their digests, that differs from its digest; None if all match."""
    dumps, crc32 = marshal.dumps, zlib.crc32
    if [crc32(dumps(row[:-1], 2)) for row in rows] == [row[-1] for row in rows]:
        return None
    return next(row for row in rows if digest(row[:-1]) != row[-1])


def with_digests(records: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Records with their digests."""
    dumps, crc32 = marshal.dumps, zlib.crc32
    return [(*record, crc32(dumps(record, 2))) for record in records]
