"""The executor ``outside``: what is to be evaluated is handed to whoever asked for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from designopt.workers.executor import Advance, Chunk, Completion


class Outside:
    """Takes every chunk and evaluates none: the dispatcher hands them out instead of waiting."""

    name = "outside"
    workers = 0
    slots = 1_000_000
    target = 0.0

    def submit(self, chunk: Chunk) -> None:
        """Nothing: the dispatcher knows what is in flight."""

    def wait(self, timeout: float) -> Sequence[Completion]:
        """Nothing ever ends here."""
        return []

    def notices(self) -> Sequence[tuple[str, str]]:
        """Nothing."""
        return []

    def advances(self) -> Sequence[Advance]:
        """Nothing."""
        return []

    def listen(self, show: Callable[[], None]) -> None:
        """Nothing."""

    def cancel(self) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""
