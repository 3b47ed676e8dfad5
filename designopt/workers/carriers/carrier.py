"""Transport of chunks to workers, and of their results to the executor."""

from __future__ import annotations

import queue
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from designopt.workers.executor import Chunk


@dataclass(frozen=True)
class WorkerEnd:
    """In place of results: the worker at this address ended with the chunk."""

    worker: str


#: The ends of chunks, by number: the name of a worker with the results, or with the reason why it is unfit for the
#: problem; `WorkerEnd`; or an exception from outside the evaluations.
Ends = queue.SimpleQueue[tuple[int, Any]]


class Carrier(Protocol):
    """Gives each chunk to a worker of the run, with at most one chunk waiting behind an active one."""

    #: Minimum duration of a chunk that justifies its transfer (s).
    shortest: float

    def submit(self, chunk: Chunk) -> None:
        """Send a chunk; its end is put into the queue of ends."""

    def tend(self) -> None:
        """Called a few times per second while nothing returns."""

    def chunks_of_workers(self) -> Mapping[str, Sequence[int]]:
        """The chunks of each worker: pending, or complete and in transit."""

    def withdraw(self, numbers: Iterable[int]) -> None:
        """Drop these chunks: their results are no longer needed."""
