"""A journal of which nothing is left when its run ends."""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from designopt.problem import Problem
from designopt.store.journal.writer import Journal, fill


class JournalInMemory(Journal):
    """A journal in no file. What is added and committed is written when something is asked for."""

    def __init__(self, problem: Problem) -> None:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.deserialize(_empty(tuple(problem.stored_name(p.name) for p in problem.space.free)))
        super().__init__(Path(":memory:"), problem, connection)
        self._file, self._logged = "", False

    def commit(self, *, flush: bool = True) -> None:
        """Nothing: nobody else reads it."""

    def _refuse_other_tables(self) -> None:
        """Nothing: nobody else has written it."""

    def _select(self, query: str, *values: Any) -> Iterator[Any]:
        super().commit()
        yield from super()._select(query, *values)


@functools.lru_cache(maxsize=8)
def _empty(parameters: tuple[str, ...]) -> bytes:
    """An empty journal of designs with these parameters, as bytes."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    fill(connection, parameters, {})
    return connection.serialize()
