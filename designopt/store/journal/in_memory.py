"""A journal in memory only."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from designopt.problem import Problem
from designopt.store.journal.writer import Journal, fill


class JournalInMemory(Journal):
    """A journal without a file. Committed additions are written at the next read."""

    def __init__(self, problem: Problem) -> None:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        connection.deserialize(_empty(tuple(p.name for p in problem.space.free)))
        super().__init__(Path(":memory:"), problem, connection)
        self._file, self._has_log = "", False

    def commit(self, *, flush: bool = True) -> None:
        """No effect: there are no other readers."""

    def _refuse_foreign_tables(self) -> None:
        """No effect: there are no other writers."""

    def _blocks(self, query: str, *values: Any) -> Iterator[list[Any]]:
        super().commit()
        yield from super()._blocks(query, *values)


@functools.lru_cache(maxsize=8)
def _empty(parameters: tuple[str, ...]) -> bytes:
    """An empty journal of designs with these parameters, as bytes."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        fill(connection, parameters, {})
        return connection.serialize()
