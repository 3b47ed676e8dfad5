"""Evaluations in this process: for debugging, and for studies too small to start workers for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from designopt.workers.evaluate import Evaluator
from designopt.workers.executor import Chunk, Completion


class Serial:
    """The executor ``serial``: `wait` evaluates one chunk. It cannot end an evaluation that hangs."""

    name = "serial"
    workers = 1
    slots = 1
    target = 0.3

    def __init__(self, build: Callable[[], Evaluator]) -> None:
        self._evaluator = build()
        self._waiting: deque[Chunk] = deque()

    def submit(self, chunk: Chunk) -> None:
        """Take a chunk."""
        self._waiting.append(chunk)

    def wait(self, timeout: float) -> Sequence[Completion]:
        """Evaluate the next chunk, however long it takes."""
        if not self._waiting:
            return []
        chunk = self._waiting.popleft()
        return [Completion(chunk, "serial", self._evaluator.run(chunk))]

    def notices(self) -> Sequence[tuple[str, str]]:
        """Nothing ever happens to this process."""
        return []

    def cancel(self) -> None:
        """Forget what waits."""
        self._waiting.clear()

    def close(self) -> None:
        """Nothing was started."""
