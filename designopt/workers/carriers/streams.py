"""Chunks as messages on the streams between a scheduler in this process and its workers.

One message takes a chunk to a worker, one returns its results. A Dask task needs eight, and some milliseconds of
processor time on each side, more than most chunks of a fast model.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from distributed import SchedulerPlugin, Status
from distributed.protocol.serialize import Serialized, deserialize, serialize

from designopt.workers.carriers.carrier import Ends, WorkerEnd
from designopt.workers.executor import Chunk
from designopt.workers.remote.chunks import CHUNK, FIT, RESULT, RETURN, RETURNED
from designopt.workers.remote.dask_worker import send_at_once

#: Maximum number of chunks of a worker: one active, one waiting.
DEPTH = 2
#: Time (s) after which a waiting chunk is moved to an idle worker.
WAITS = 0.1


@dataclass(frozen=True)
class Parcel:
    """A chunk in the form of a message, and the time since which the worker has it."""

    number: int
    data: Any
    since: float = 0.0


class Streams(SchedulerPlugin):
    """Chunks of `run` to the workers of a local `cluster`. Its state belongs to the thread of Dask's event loop."""

    shortest = 0.003

    def __init__(self, run: str, cluster: Any, ends: Ends) -> None:
        self.name = f"designopt-streams-{run}"
        self._scheduler = cluster.scheduler
        self._loop = cluster.loop
        self._ends = ends
        self._waiting: deque[Parcel] = deque()
        self._parcels: dict[str, list[Parcel]] = {}
        handlers = {FIT: self._fit, RESULT: self._result, RETURNED: self._returned}
        self._scheduler.stream_handlers.update(handlers)
        self._scheduler.add_plugin(self)

    # ------------------------------------------------------------------------------------- from the executor's thread

    def submit(self, chunk: Chunk) -> None:
        """Send a chunk to the worker with the fewest."""
        parcel = Parcel(chunk.number, Serialized(*serialize(chunk)))  # type: ignore[no-untyped-call]
        self._loop.add_callback(self._take, parcel)

    def tend(self) -> None:
        """Move chunks that wait behind a long one to an idle worker."""
        self._loop.add_callback(self._share)

    def chunks_of_workers(self) -> dict[str, list[int]]:
        """The chunks of each worker."""
        return {worker: [parcel.number for parcel in list(parcels)] for worker, parcels in list(self._parcels.items())}

    def withdraw(self, numbers: Iterable[int]) -> None:
        """Drop unsent chunks; results of the others are ignored."""
        self._loop.add_callback(self._withdraw, frozenset(numbers))

    # ----------------------------------------------------------------------------------- on the thread of Dask's loop

    def _take(self, parcel: Parcel) -> None:
        self._waiting.append(parcel)
        self._send()

    def _send(self) -> None:
        """Send waiting chunks to workers with room."""
        while self._waiting:
            free = [worker for worker in self._parcels if self._takes(worker) and len(self._parcels[worker]) < DEPTH]
            if not free:
                return
            worker = min(free, key=lambda address: len(self._parcels[address]))
            parcel = self._waiting.popleft()
            self._parcels[worker].append(Parcel(parcel.number, parcel.data, time.monotonic()))
            self._scheduler.worker_send(worker, {"op": CHUNK, "number": parcel.number, "chunk": parcel.data})

    def _takes(self, worker: str) -> bool:
        """Whether a worker is present and accepts work; one with too little free memory does not."""
        state = self._scheduler.workers.get(worker)
        return state is not None and state.status == Status.running

    def _fit(self, worker: str) -> None:
        """Called for a worker that is fit for the problem."""
        send_at_once(self._scheduler.stream_comms[worker])
        self._parcels.setdefault(worker, [])
        self._send()

    def _result(self, worker: str, number: int, end: Any) -> None:
        """Called for a completed chunk."""
        self._drop(worker, number)
        try:
            chunk_end = deserialize(end.header, end.frames)  # type: ignore[no-untyped-call]
        except Exception as error:
            chunk_end = error
        self._ends.put((number, chunk_end))
        self._send()

    def _returned(self, worker: str, number: int) -> None:
        """Called for a returned chunk that the worker had not begun."""
        parcel = self._drop(worker, number)
        if parcel is not None:
            self._waiting.appendleft(parcel)
        self._send()

    def _share(self) -> None:
        self._send()
        if all(self._parcels.values()):
            return
        for worker, parcels in self._parcels.items():
            if len(parcels) == DEPTH and time.monotonic() - parcels[-1].since > WAITS:
                self._scheduler.worker_send(worker, {"op": RETURN, "number": parcels[-1].number})

    def _drop(self, worker: str, number: int) -> Parcel | None:
        parcels = self._parcels.get(worker, [])
        match = next((parcel for parcel in parcels if parcel.number == number), None)
        if match is not None:
            parcels.remove(match)
        return match

    def _withdraw(self, numbers: frozenset[int]) -> None:
        self._waiting = deque(parcel for parcel in self._waiting if parcel.number not in numbers)

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        """Called for a worker that has left or died: its chunks are lost."""
        for parcel in self._parcels.pop(worker, []):
            self._ends.put((parcel.number, WorkerEnd(worker)))
