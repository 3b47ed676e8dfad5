"""The executor ``outside``: evaluations are carried out elsewhere (`designopt.run.ask_tell`)."""

from __future__ import annotations

from collections.abc import Sequence

from designopt.workers.executor import Chunk, Completion, UneventfulExecutor


class AskTellExecutor(UneventfulExecutor):
    """Accepts every chunk and evaluates none: the dispatcher returns them instead of waiting."""

    name = "outside"
    workers = 0
    slots = 1_000_000
    target = shortest = 0.0

    def submit(self, chunk: Chunk) -> None:
        """No effect: the dispatcher tracks the chunks in flight."""

    def wait(self, timeout: float) -> Sequence[Completion]:
        """No chunk ever completes."""
        return []

    def cancel(self) -> None:
        """No effect."""
