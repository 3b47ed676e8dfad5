"""A run that leaves nothing on disk: its journal is in memory, and everything is computed in this process."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Sequence

from designopt.problem import Problem
from designopt.run.evaluations.dispatch import Dispatcher
from designopt.run.evaluations.ledger import Ledger
from designopt.run.progress import Silent
from designopt.run.stopping import Signals
from designopt.store.folder import Store
from designopt.study.study import Execution
from designopt.workers.executor import Chunk, ChunkResult, Completion, Uneventful

#: Returns the results of a chunk.
Compute = Callable[[Chunk], ChunkResult]


def in_memory(problem: Problem, compute: Compute) -> Dispatcher:
    """The dispatcher of such a run. `compute` returns the results of evaluations and programs; arrays are not
    stored."""
    start = lambda expected: _InProcess(compute)  # noqa: E731
    return Dispatcher(Store.in_memory(problem), Ledger(problem), Execution(), start, Signals(), Silent())


class _InProcess(Uneventful):
    """The executor of a run in memory."""

    name = "here"
    workers = 1
    slots = 1
    target = shortest = 1e9  # s: a batch is one chunk of any duration

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self._waiting: deque[Chunk] = deque()

    def submit(self, chunk: Chunk) -> None:
        """Accept a chunk."""
        self._waiting.append(chunk)

    def wait(self, timeout: float) -> Sequence[Completion]:
        """Compute the next chunk, however long it takes."""
        chunk = self._waiting.popleft()
        result = self._compute(chunk)
        return [Completion(chunk, self.name, dataclasses.replace(result, arrays={}) if result.arrays else result)]

    def cancel(self) -> None:
        """Drop pending chunks."""
        self._waiting.clear()
