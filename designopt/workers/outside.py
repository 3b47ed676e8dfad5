"""The executor ``outside``: what is to be evaluated is handed to whoever asked for it."""

from __future__ import annotations

from collections.abc import Sequence

from designopt.workers.executor import Chunk, Completion, Uneventful


class Outside(Uneventful):
    """Takes every chunk and evaluates none: the dispatcher hands them out instead of waiting."""

    name = "outside"
    workers = 0
    slots = 1_000_000
    target = shortest = 0.0

    def submit(self, chunk: Chunk) -> None:
        """Nothing: the dispatcher knows what is in flight."""

    def wait(self, timeout: float) -> Sequence[Completion]:
        """Nothing ever ends here."""
        return []

    def cancel(self) -> None:
        """Nothing."""
