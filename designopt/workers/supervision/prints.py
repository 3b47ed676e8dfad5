"""What evaluations print: the last of it is kept with them, and nothing reaches the user's terminal."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

#: Bytes that are kept of what one evaluation prints.
KEPT = 4096
#: Beyond so many bytes the file is emptied while the evaluation goes on.
LARGEST = 16 * 2**20


class Prints:
    """A file that takes what this process and its children write to standard output and error during a chunk.

    A file, not a pipe: nobody has to read it, so code that prints while it holds the interpreter's lock never waits.
    """

    def __init__(self, file: Path) -> None:
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)

    @contextlib.contextmanager
    def capture(self) -> Iterator[None]:
        """Standard output and error go to the file meanwhile."""
        saved = []
        try:
            _flush()
            for standard in (1, 2):
                saved.append((os.dup(standard), standard))
                os.dup2(self._descriptor, standard)
        except OSError:  # a process without one of them, or without any descriptor left
            pass
        try:
            yield
        finally:
            _flush()
            for copy, standard in saved:
                with contextlib.suppress(OSError):
                    os.dup2(copy, standard)
                    os.close(copy)

    def take_over(self) -> None:
        """From now on nothing that this process writes reaches the user's terminal."""
        _flush()
        with contextlib.suppress(OSError):
            for standard in (1, 2):
                os.dup2(self._descriptor, standard)

    def take(self) -> str:
        """The end of what was printed since the last call. Asked for after every evaluation: about a microsecond."""
        _flush()
        try:
            size = os.lseek(self._descriptor, 0, os.SEEK_END)
            if not size:
                return ""
            text = _end(self._descriptor, size)
            os.ftruncate(self._descriptor, 0)
        except OSError:
            return ""
        return text

    def close(self) -> None:
        """No more of it."""
        descriptor, self._descriptor = self._descriptor, -1  # a chunk may still be at work
        with contextlib.suppress(OSError):
            os.close(descriptor)

    @staticmethod
    def left(file: Path) -> str:
        """The end of what a process that is dead has printed in its last evaluation."""
        try:
            descriptor = os.open(file, os.O_RDONLY)
        except OSError:
            return ""
        try:
            return _end(descriptor, os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)

    @staticmethod
    def bound(file: Path) -> None:
        """Empty the file of a process that goes on printing."""
        with contextlib.suppress(OSError):
            if file.stat().st_size > LARGEST:
                os.truncate(file, 0)


def _end(descriptor: int, size: int) -> str:
    begin = max(0, size - KEPT)
    text = os.pread(descriptor, KEPT, begin).decode(errors="replace").replace("\0", "")
    return f"...{text}" if begin else text


def _flush() -> None:
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:  # a process without them, or with anything that a model has put in their place
        return
