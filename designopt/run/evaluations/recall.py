"""Recall of evaluations from other stores, instead of a new computation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.run.evaluations.dispatch import Dispatcher
from designopt.run.evaluations.ledger import CODE
from designopt.run.evaluations.work import Work
from designopt.store.disk.arrays import read_arrays
from designopt.store.errors import StoreError
from designopt.store.journal import recorded
from designopt.store.journal.reader import JournalReader
from designopt.store.result import Result
from designopt.workers.executor import ChunkResult

#: Statuses valid in any store. Errors, time-outs and losses may depend on the machine and are retried.
TAKEN = ("ok", "diverged", "nonfinite", "invalid")

#: An evaluation of another store: status, outputs, reason, message, arrays.
Row = tuple[str, str | None, str | None, str | None, dict[str, NDArray[Any]]]


class Other:
    """The journal of another store, open for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"store:{path.name}"
        self._journal = JournalReader.read(path, Result.open(path).problem)

    def find(self, key: bytes, arrays: Sequence[str]) -> Row | None:
        """The evaluation `key` with all of `arrays`, if this store contains it."""
        found = self._journal.evaluation(key, "status, outputs, reason, message, arrays")
        if found is None or found[0] not in TAKEN:
            return None
        *row, reference = found
        if not arrays or row[0] != "ok":
            return (*row, {})
        try:
            kept = read_arrays(self.path, reference) if reference else {}
        except StoreError:
            return None
        if not set(arrays) <= kept.keys():
            return None
        return (*row, {name: kept[name] for name in arrays})

    def close(self) -> None:
        """Close the file."""
        self._journal.close()


class Recalling(Dispatcher):
    """A dispatcher that records results from `others` by key and sends only the rest to the executor."""

    def __init__(self, *arguments: Any, others: Sequence[Other]) -> None:
        super().__init__(*arguments)
        self._others = others

    def _unknown(self, source: Iterator[Work | None], arrays: tuple[str, ...]) -> Iterator[Work | None]:
        """The work of `source` that no other store contains. Chains of programs are always solved here."""
        for work in source:
            for other in self._others:
                work = self._recall(work, other, arrays) if work is not None and len(work) and not work.chain else work
            yield work

    def _recall(self, work: Work, other: Other, arrays: tuple[str, ...]) -> Work:
        """Record the part of `work` that `other` contains, durably; returns the rest."""
        found = {i: row for i, key in enumerate(work.keys) if (row := other.find(key, arrays)) is not None}
        if not found:
            return work
        rows = list(found.values())
        names, values = recorded.outputs(
            [row[1] for row in rows], self.ledger.problem.output_names, self.ledger.problem
        )
        nothing = np.zeros(len(rows))
        result = ChunkResult(
            status=np.array([CODE[row[0]] for row in rows], np.uint8),
            names=names,
            values=values,
            wall=nothing,
            cpu=nothing,
            messages={i: (row[2] or "", row[3] or "", "") for i, row in enumerate(rows) if row[0] != "ok"},
            arrays={i: row[4] for i, row in enumerate(rows) if row[4]},
        )
        self._record(work.take(list(found)), result, other.name)
        self.journal.commit()
        return work.take([i for i in range(len(work)) if i not in found])

    def close(self) -> None:
        """End the executor, close the other stores."""
        with contextlib.ExitStack() as exits:
            for other in self._others:
                exits.callback(other.close)
            super().close()
