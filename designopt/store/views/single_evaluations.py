"""What a store has of one evaluation: its message, output on the terminal, and arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from designopt.store.disk.arrays import read_arrays
from designopt.store.journal.reader import JournalReader


@dataclass(frozen=True)
class SingleEvaluations:
    """The evaluations of the first `count` designs of the store `path` in its `scenarios` (names).

    `keys_of` has the keys of a design, one per scenario, `journal` opens the journal. Each method takes the number of a
    design and the number or name of a scenario, and raises `KeyError` for an unknown scenario, `IndexError` for an
    unknown design.
    """

    path: Path
    scenarios: Sequence[str]
    count: int
    keys_of: Callable[[int], list[bytes]]
    journal: Callable[[], AbstractContextManager[JournalReader]]

    def message(self, i: int, scenario: int | str) -> str:
        """The message; "" for a success."""
        return str(self._entry(i, scenario, "message") or "")

    def printed(self, i: int, scenario: int | str) -> str:
        """The last kilobytes printed on a worker."""
        key = self._key(i, scenario)
        with self.journal() as journal:
            return journal.printed(key)

    def arrays(self, i: int, scenario: int | str) -> dict[str, NDArray[Any]]:
        """The stored arrays by name. Raises `StoreError` if they are missing or damaged."""
        reference = self._entry(i, scenario, "arrays")
        return read_arrays(self.path, reference) if reference else {}

    def _entry(self, i: int, scenario: int | str, column: str) -> Any:
        key = self._key(i, scenario)
        with self.journal() as journal:
            row = journal.evaluation(key, column)
        return row[0] if row else None

    def _key(self, i: int, scenario: int | str) -> bytes:
        if isinstance(scenario, str):
            if scenario not in self.scenarios:
                raise KeyError(f"no scenario '{scenario}' (known: {', '.join(self.scenarios)})")
            scenario = self.scenarios.index(scenario)
        if not 0 <= scenario < len(self.scenarios):
            raise KeyError(f"no scenario number {scenario}: there are {len(self.scenarios)}, from 0")
        if not 0 <= i < self.count:
            raise IndexError(f"no design number {i}: there are {self.count}, from 0")
        return self.keys_of(i)[scenario]
