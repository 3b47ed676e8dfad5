"""Evaluations in this process: for debugging, and for studies too small for workers."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence

from designopt import evaluation_progress
from designopt.workers.evaluation.evaluate import Evaluator
from designopt.workers.evaluation.threads import one_thread, one_thread_when_loaded
from designopt.workers.executor import Advance, Chunk, Completion, UneventfulExecutor

#: Interval between displays of an evaluation's progress (s).
SHOWN = 0.5


class Serial(UneventfulExecutor):
    """The executor ``serial``: `wait` evaluates one chunk. It cannot end a hanging evaluation.

    The `context` is open from the preparation of the model to the end of the executor.
    """

    name = "serial"
    workers = 1
    slots = 1
    target = shortest = 0.3

    def __init__(
        self, build: Callable[[], Evaluator], context: contextlib.AbstractContextManager[None] | None = None
    ) -> None:
        self._show: Callable[[], None] = lambda: None
        with contextlib.ExitStack() as exits:
            exits.enter_context(one_thread_when_loaded())
            exits.enter_context(context or contextlib.nullcontext())
            with one_thread():
                self._evaluator = build()
            self._exits = exits.pop_all()
        self._waiting: deque[Chunk] = deque()
        self._advance: Advance | None = None
        self._last_shown = 0.0

    def submit(self, chunk: Chunk) -> None:
        """Accept a chunk."""
        self._waiting.append(chunk)

    def wait(self, timeout: float) -> Sequence[Completion]:
        """Evaluate the next chunk, however long it takes."""
        if not self._waiting:
            return []
        chunk = self._waiting.popleft()
        at = 0

        def begin(position: int) -> None:
            nonlocal at
            at = position

        def hear(share: float, words: str) -> None:
            self._advance = Advance(chunk.number, at, share, words)
            time_now = time.monotonic()
            if time_now - self._last_shown > SHOWN:
                self._last_shown = time_now
                self._show()

        try:
            with evaluation_progress.listened_by(hear), one_thread():
                return [Completion(chunk, "serial", self._evaluator.run(chunk, begin))]
        finally:
            self._advance = None

    def advances(self) -> Sequence[Advance]:
        """The last progress reported by the active evaluation."""
        return [] if self._advance is None else [self._advance]

    def listen(self, show: Callable[[], None]) -> None:
        """Call `show` when an evaluation reports progress, at most twice a second."""
        self._show = show

    def cancel(self) -> None:
        """Drop pending chunks."""
        self._waiting.clear()

    def close(self) -> None:
        """Leave the context."""
        self._exits.close()
