"""Pending evaluations, by columns."""

from __future__ import annotations

import dataclasses
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.counts import plural
from designopt.store.journal.schema import Kind

#: Maximum evaluations per chunk: one transaction, one message.
LARGEST_CHUNK = 4096
#: Maximum wait for work that is to be repeated later (s).
PAUSE = 0.2


@dataclass(frozen=True)
class Work:
    """Evaluations: their slots in the ledger, keys, design numbers, numbers within their `kind`, and rows of ``X``.

    `numbers` are those of the journal's records (`designopt.store.journal.schema`). `indivisible` keeps them
    together in one chunk. One that is `alone` is a suspect: it is sent alone, and its process does no other work
    shortly before and after it. A `chain` of programs, with their `seeds`, stays together in its order.
    """

    slots: NDArray[np.int64]
    keys: list[bytes]
    designs: NDArray[np.int64]
    numbers: NDArray[np.int32]
    X: Floats = field(repr=False)
    indivisible: bool = False
    chain: bool = False
    seeds: tuple[int, ...] = ()
    alone: bool = False
    kind: Kind = "scenario"

    @classmethod
    def nothing(cls, parameters: int) -> Work:
        """No evaluations of designs with so many free parameters."""
        none = np.empty(0, np.int64)
        return cls(none, [], none, none.astype(np.int32), np.empty((0, parameters)))

    def __len__(self) -> int:
        return len(self.keys)

    def part(self, begin: int, end: int, *, indivisible: bool = False) -> Work:
        """The evaluations from `begin` to `end`."""
        s = slice(begin, end)
        rows = (self.slots[s], self.keys[s], self.designs[s], self.numbers[s], self.X[s])
        return Work(*rows, indivisible, self.chain, self.seeds[s], kind=self.kind)

    def take(self, positions: Sequence[int]) -> Work:
        """Some of the evaluations."""
        indices = np.array(positions, np.int64)
        keys = [self.keys[i] for i in positions]
        seeds = tuple(self.seeds[i] for i in positions) if self.seeds else ()
        rows = (self.slots[indices], keys, self.designs[indices], self.numbers[indices], self.X[indices])
        return Work(*rows, chain=self.chain, seeds=seeds, kind=self.kind)

    def suspect(self, position: int) -> Work:
        """The evaluation at `position`, to be tested alone."""
        return dataclasses.replace(self.part(position, position + 1, indivisible=True), alone=True)


class Waiting(BaseException):
    """The run waits for the evaluations `works`, which are carried out elsewhere."""

    def __init__(self, works: tuple[Work, ...]) -> None:
        super().__init__(f"waiting for {plural(sum(map(len, works)), 'evaluation')}")
        self.works = works


class Queue:
    """Pending work: returned work first, then that of the source.

    A source returns None for "nothing now, call again after a result".
    """

    def __init__(self, source: Iterator[Work | None], evaluations: int) -> None:
        self._has_ended = False
        self._source = source
        self._ready: deque[Work] = deque()
        self._later: list[tuple[float, Work]] = []
        self._evaluations = evaluations
        self._taken_from_source = 0

    @property
    def exhausted(self) -> bool:
        """Whether the source has ended, and no work waits for its time."""
        return self._has_ended and not self._later

    def requeue(self, work: Work, after: float = 0.0) -> None:
        """Put work back at the front, or later `after` a time (s)."""
        if after > 0.0:
            self._later.append((time.monotonic() + after, work))
        elif len(work):
            self._ready.appendleft(work)

    def pause(self) -> float:
        """Time (s) for which there is nothing to draw, as far as known, at most `PAUSE`."""
        if self._ready or not self._later:
            return 0.0
        return max(0.0, min(PAUSE, min(due for due, _ in self._later) - time.monotonic()))

    def left(self) -> int:
        """Approximate number of pending evaluations."""
        return sum(len(w) for w in (*self._ready, *(w for _, w in self._later))) + max(
            0, self._evaluations - self._taken_from_source
        )

    def total(self) -> int:
        """Approximate total number of evaluations."""
        return max(self._taken_from_source, self._evaluations)

    def draw(self, size: int) -> Work | None:
        """Up to `size` evaluations for one chunk; None if nothing is pending."""
        if self._later:
            time_now = time.monotonic()
            self._ready.extendleft(work for due, work in self._later if due <= time_now)
            self._later = [(due, work) for due, work in self._later if due > time_now]
        while not self._ready:
            try:
                work = next(self._source)
            except StopIteration:
                self._has_ended = True
                self._taken_from_source = self._evaluations
                return None
            if work is None:
                return None
            self._taken_from_source += len(work)
            if len(work):
                self._ready.append(work)
        first = self._ready.popleft()
        if first.indivisible or first.chain or len(first) <= size:
            return first
        self._ready.appendleft(first.part(size, len(first)))
        return first.part(0, size)


#: Evaluations of one call of a model are recorded together: a crash costs at most about this time (s).
LONGEST_CALL = 10.0


class ChunkSize:
    """Number of evaluations per chunk for the executor's target duration, learned from completed chunks.

    `batch_size` is the model's preferred number per call: chunks are at least as large, except the first, which measure
    the duration, and the last ones, and as long as a call takes no longer than `LONGEST_CALL` and a quarter of the time
    `limit` of an evaluation (s), which holds for all of a call.
    """

    def __init__(self, batch_size: int = 1, limit: float | None = None) -> None:
        self._batch_size = batch_size
        self._longest = min(LONGEST_CALL, math.inf if limit is None else 0.25 * limit)
        self._seconds: float | None = None

    def learn(self, seconds: float, evaluations: int) -> None:
        """Learn that a chunk took `seconds` on a worker."""
        evaluation_seconds = max(seconds / max(evaluations, 1), 1e-7)
        if self._seconds is None:
            self._seconds = evaluation_seconds
        else:
            self._seconds += min(1.0, 0.3 + evaluations / LARGEST_CHUNK) * (evaluation_seconds - self._seconds)

    def choose(self, target: float, shortest: float, left: int, slots: int, total: int) -> int:
        """The size of the next chunk: the target, but near the end small enough that all workers end together, and at
        least the `shortest` chunk that justifies its overhead.

        `left` evaluations are pending, of `total` in all.
        """
        if self._seconds is None:
            return 1
        target_size = max(1, min(LARGEST_CHUNK, int(target / self._seconds)))
        batch_size = min(self._batch_size, int(self._longest / self._seconds))
        if batch_size > 1:
            return self._shared(max(batch_size, target_size - target_size % batch_size), total, slots)
        if slots == 1:
            return target_size
        smallest = max(1, min(target_size, int(shortest / self._seconds)))
        return max(smallest, min(target_size, -(-left // (2 * slots))))

    @staticmethod
    def _shared(size: int, total: int, slots: int) -> int:
        """At most `size`, so that all workers (with two slots each) get equally many equal chunks of `total`."""
        workers = max(1, slots // 2)
        rounds = max(1, -(-total // (workers * min(size, LARGEST_CHUNK))))
        return max(1, min(LARGEST_CHUNK, -(-total // (workers * rounds))))
