"""The chunks that a worker of this machine is given in messages: one at work, others waiting."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any

from distributed.comm.core import CommClosedError
from distributed.protocol.serialize import Serialized

from designopt.workers.executor import Chunk

#: The messages to a worker: a chunk, or that one is asked back.
CHUNK, RETURN = "designopt-chunk", "designopt-return"
#: The messages from it: that it is fit for the problem, results of a chunk, or that one goes back that had not begun.
FIT, RESULT, RETURNED = "designopt-fit", "designopt-result", "designopt-returned"

#: Seconds between two looks whether results have left.
FLUSHED = 0.0001


class GivenChunks:
    """Takes the chunks of the run for which `worker`, of Dask, works.

    `evaluate` gives what becomes of a chunk, ready to be sent, and ends this process when it cannot; it runs where
    tasks of Dask do. `handed_over` gets the chunk whose results are on their way.

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
        """Ask for chunks."""
        self._tell({"op": FIT})

    def _take(self, number: int, chunk: Chunk) -> None:
        self._waiting.append((number, chunk))
        self._next()

    def _next(self) -> None:
        """Begin a chunk, once the results of the one before it have left this process, which may end in this one."""
        if self._busy or not self._waiting:
            return
        if self._worker.batched_stream.buffer:
            self._worker.loop.call_later(FLUSHED, self._next)
            return
        self._busy = True
        self._worker.executor.submit(self._work, *self._waiting.popleft())

    def _work(self, number: int, chunk: Chunk) -> None:
        """In the thread of evaluations."""
        end = self._evaluate(chunk)
        with contextlib.suppress(RuntimeError):  # the worker has ended meanwhile
            self._worker.loop.add_callback(self._done, number, end)

    def _done(self, number: int, end: Serialized) -> None:
        self._tell({"op": RESULT, "number": number, "end": end})
        self._handed_over(number)
        self._busy = False
        self._next()

    def _give_back(self, number: int) -> None:
        before = len(self._waiting)
        self._waiting = deque(given for given in self._waiting if given[0] != number)
        if len(self._waiting) < before:
            self._tell({"op": RETURNED, "number": number})

    def _tell(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(CommClosedError):  # the coordinator has gone; the nanny sees to this process
            self._worker.batched_stream.send(message)
