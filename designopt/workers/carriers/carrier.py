"""How chunks reach workers, and what becomes of them reaches the executor."""

from __future__ import annotations

import queue
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from designopt.workers.executor import Chunk


@dataclass(frozen=True)
class Gone:
    """In place of a chunk's results: the worker at this address ended with the chunk."""

    worker: str


#: What has become of chunks, by number: the name of a worker with the results, or with why it is not fit for the
#: problem; `Gone`; or what was raised outside of the evaluations.
Ends = queue.SimpleQueue[tuple[int, Any]]


class Carrier(Protocol):
    """Gives each chunk to a worker that takes work of the run, one chunk that waits behind one at work at most."""

    #: How long a chunk has to take, in seconds, to be worth its way.
    shortest: float

    def submit(self, chunk: Chunk) -> None:
        """Carry a chunk; its end is put into the queue of ends."""

    def tend(self) -> None:
        """Called a few times a second while nothing comes back."""

    def held(self) -> Mapping[str, Sequence[int]]:
        """The chunks that each worker has: to compute, or done and under way."""

    def withdraw(self, numbers: Iterable[int]) -> None:
        """Nobody waits for these chunks any more."""
