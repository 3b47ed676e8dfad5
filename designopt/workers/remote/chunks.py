"""Chunks sent to a worker of this machine by messages: one active, others waiting."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any

from distributed.comm.core import CommClosedError
from distributed.protocol.serialize import Serialized

from designopt.workers.executor import Chunk

#: Messages to a worker: a chunk, or a request to return one.
CHUNK, RETURN = "designopt-chunk", "designopt-return"
#: Messages from it: it is fit for the problem, results of a chunk, or the return of an unstarted one.
FIT, RESULT, RETURNED = "designopt-fit", "designopt-result", "designopt-returned"

#: Interval between checks whether results have been sent (s).
FLUSHED = 0.0001


class ChunkQueue:
    """Receives the chunks of the run for `worker`, of Dask.

    `evaluate` returns the end of a chunk in sendable form, or ends this process; it runs where Dask's tasks run.
    `handed_over` is called with the chunk whose results are in transit.

    Its state belongs to the thread of the event loop.
    """

    def __init__(
        self,
        worker: Any,
        evaluate: Callable[[Chunk], Serialized],
        handed_over: Callable[[int], None],
    ) -> None:
        self._worker = worker
        self._evaluate = evaluate
        self._handed_over = handed_over
        self._waiting: deque[tuple[int, Chunk]] = deque()
        self._busy = False
        worker.stream_handlers.update({CHUNK: self._take, RETURN: self._give_back})

    def open(self) -> None:
        """Request chunks."""
        self._tell({"op": FIT})

    def _take(self, number: int, chunk: Chunk) -> None:
        self._waiting.append((number, chunk))
        self._next()

    def _next(self) -> None:
        """Begin a chunk, after the results of the previous one have left this process, which may end in this one."""
        if self._busy or not self._waiting:
            return
        if self._worker.batched_stream.buffer:
            self._worker.loop.call_later(FLUSHED, self._next)
            return
        self._busy = True
        self._worker.executor.submit(self._work, *self._waiting.popleft())

    def _work(self, number: int, chunk: Chunk) -> None:
        """Runs in the thread of evaluations."""
        end = self._evaluate(chunk)
        with contextlib.suppress(RuntimeError):  # the worker has ended meanwhile
            self._worker.loop.add_callback(self._report_end, number, end)

    def _report_end(self, number: int, end: Serialized) -> None:
        self._tell({"op": RESULT, "number": number, "end": end})
        self._handed_over(number)
        self._busy = False
        self._next()

    def _give_back(self, number: int) -> None:
        before = len(self._waiting)
        self._waiting = deque(waiting for waiting in self._waiting if waiting[0] != number)
        if len(self._waiting) < before:
            self._tell({"op": RETURNED, "number": number})

    def _tell(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(CommClosedError):  # the coordinator is gone; the nanny ends this process
            self._worker.batched_stream.send(message)
