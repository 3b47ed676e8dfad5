"""Errors of unusable recordings: the file, the position in it, the fault, the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class RecordingError(ValueError):
    """A recording cannot be used.

    `file` is the file as the user named it (empty for data from no file), `position` is a line of a text file ("line
    7") or a section of a binary one ("parameter POINT:RATE"), `message` states what is wrong and the way out.
    """

    def __init__(self, message: str, *, file: str = "", position: str = "") -> None:
        self.message, self.file, self.position = message, file, position
        location = ", ".join(part for part in (file, position) if part)
        super().__init__(f"{location}: {message}" if location else message)


@contextmanager
def errors_about(file: str, position: str = "") -> Iterator[None]:
    """Errors raised inside without a file get `file` and, unless they have one, `position`."""
    try:
        yield
    except RecordingError as problem:
        if problem.file:
            raise
        raise RecordingError(problem.message, file=file, position=problem.position or position) from None
