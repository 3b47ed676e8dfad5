"""Recall of evaluations from other stores, instead of a new computation."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.counts import plural
from designopt.problem import Problem
from designopt.run.evaluations.dispatch import Dispatcher
from designopt.run.evaluations.ledger import CODE
from designopt.run.evaluations.work import Work
from designopt.run.start_from import translate
from designopt.store.disk.arrays import read_arrays
from designopt.store.errors import StoreError, reading
from designopt.store.journal import recorded_designs
from designopt.store.journal.reader import JournalReader
from designopt.store.result import Result
from designopt.study.language import units
from designopt.workers.executor import ChunkResult

#: Statuses valid in any store. Errors, time-outs and losses may depend on the machine and are retried.
REUSABLE = ("ok", "diverged", "nonfinite", "invalid", "unusable")

#: An evaluation of another store: status, outputs, reason, message, arrays.
Row = tuple[str, str | None, str | None, str | None, dict[str, NDArray[Any]]]


class OtherStore:
    """The journal of another store, open for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"store:{path.name}"
        self._journal = JournalReader.read(path, Result.open(path).problem)

    def find(self, key: bytes, arrays: Sequence[str]) -> Row | None:
        """The evaluation `key` with all of `arrays`, if this store contains it."""
        record = self._journal.evaluation(key, "status, outputs, reason, message, arrays")
        if record is None or record[0] not in REUSABLE:
            return None
        *row, reference = record
        if not arrays or row[0] != "ok":
            return (*row, {})
        try:
            recorded_arrays = read_arrays(self.path, reference) if reference else {}
        except StoreError:
            return None
        if not set(arrays) <= recorded_arrays.keys():
            return None
        return (*row, {name: recorded_arrays[name] for name in arrays})

    def close(self) -> None:
        """Close the file."""
        self._journal.close()


def evaluations_with_same_keys(store: Path, problem: Problem) -> tuple[int, int]:
    """How many evaluations of `store` a run of `problem` would take over if it asked for all their designs, and the
    number of its evaluations as its summary states it: without neighbours and programs. Raises `StoreError`."""
    result = Result.open(store)
    with reading(store), contextlib.closing(JournalReader.read(store, result.problem)) as journal:
        rows = journal.evaluations("key, status, kind")
        recorded_keys = {key for key, status, kind in rows if status in REUSABLE and kind != "program"}
    try:
        X = translate(result.outcomes.X, result.problem.space, problem.space)
    except units.UnitError:
        return 0, result.counts["evaluations"]
    reusable = recorded_keys.intersection(key for row in problem.keys(X) for key in row)
    return len(reusable), result.counts["evaluations"]


class RecallingDispatcher(Dispatcher):
    """A dispatcher that records results from `stores` by key and sends only the rest to the executor."""

    def __init__(self, *arguments: Any, stores: Sequence[OtherStore]) -> None:
        super().__init__(*arguments)
        self._stores = stores
        self._recall_counts: Counter[Path] = Counter()

    def _unknown(self, source: Iterator[Work | None], arrays: tuple[str, ...]) -> Iterator[Work | None]:
        """The work of `source` that no other store contains. Chains of programs are always solved here."""
        for work in source:
            for store in self._stores:
                work = self._recall(work, store, arrays) if work is not None and len(work) and not work.chain else work
            yield work

    def _recall(self, work: Work, store: OtherStore, arrays: tuple[str, ...]) -> Work:
        """Record the part of `work` that `store` contains, durably; returns the rest."""
        row_of = {i: row for i, key in enumerate(work.keys) if (row := store.find(key, arrays)) is not None}
        if not row_of:
            return work
        rows = list(row_of.values())
        names, values = recorded_designs.outputs([row[1] for row in rows], self.ledger.problem.output_names)
        zeros = np.zeros(len(rows))
        result = ChunkResult(
            status=np.array([CODE[row[0]] for row in rows], np.uint8),
            names=names,
            values=values,
            wall=zeros,
            cpu=zeros,
            messages={i: (row[2] or "", row[3] or "", "") for i, row in enumerate(rows) if row[0] != "ok"},
            arrays={i: row[4] for i, row in enumerate(rows) if row[4]},
        )
        self._recall_counts[store.path] += len(rows)
        self._record(work.take(list(row_of)), result, store.name)
        self.journal.commit()
        return work.take([i for i in range(len(work)) if i not in row_of])

    def close(self) -> None:
        """End the executor, close the other stores, record what they contributed."""
        for path, count in self._recall_counts.items():
            self.event("recalled", f"{plural(count, 'evaluation')} taken over from {path}")
        with contextlib.ExitStack() as exits:
            for store in self._stores:
                exits.callback(store.close)
            super().close()
