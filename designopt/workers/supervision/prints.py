"""Printed output of evaluations: its end is kept with them, and nothing reaches the user's terminal."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from designopt.workers.evaluation.evaluate import Evaluator
from designopt.workers.executor import Chunk, ChunkResult, Position

#: Bytes kept of the printed output of one evaluation.
KEPT = 4096
#: Size beyond which the file is emptied during an evaluation (bytes).
LARGEST = 16 * 2**20


class Prints:
    """A file that receives the standard output and error of this process and its children during a chunk.

    A file, not a pipe: without a reader, code that prints while it holds the interpreter's lock never waits.
    """

    def __init__(self, file: Path) -> None:
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)

    @contextlib.contextmanager
    def capture(self) -> Iterator[None]:
        """Redirect standard output and error to the file inside this context."""
        descriptors = []
        try:
            _flush()
            for standard in (1, 2):
                descriptors.append((os.dup(standard), standard))
                os.dup2(self._descriptor, standard)
        except OSError:  # a process without one of them, or without free descriptors
            pass
        try:
            yield
        finally:
            _flush()
            for copy, standard in descriptors:
                with contextlib.suppress(OSError):
                    os.dup2(copy, standard)
                    os.close(copy)

    def take_over(self) -> None:
        """From now on no output of this process reaches the user's terminal."""
        _flush()
        with contextlib.suppress(OSError):
            for standard in (1, 2):
                os.dup2(self._descriptor, standard)

    def take(self) -> str:
        """The end of the output since the last call. Called after every evaluation: about a microsecond."""
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
        """Stop capturing."""
        descriptor, self._descriptor = self._descriptor, -1  # a chunk may still be active
        with contextlib.suppress(OSError):
            os.close(descriptor)

    @staticmethod
    def left(file: Path) -> str:
        """The end of the output of a dead process in its last evaluation."""
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
        """Empty the file of a process that keeps printing."""
        with contextlib.suppress(OSError):
            if file.stat().st_size > LARGEST:
                os.truncate(file, 0)


def evaluate_with_output(
    evaluator: Evaluator, chunk: Chunk, output: Prints, begin: Callable[[int], None]
) -> ChunkResult:
    """The chunk's results with the printed `output` of its evaluations; `begin` is called with the position of each."""
    prints: dict[int, str] = {}
    at: int = Position.PREPARING

    def take() -> None:
        if text := output.take():
            prints[at] = text

    def begin_next(position: int) -> None:
        nonlocal at
        take()
        at = position
        begin(position)

    result = evaluator.run(chunk, begin_next)
    take()
    evaluation_prints = {position: text for position, text in prints.items() if position >= 0}
    return dataclasses.replace(result, prints=evaluation_prints) if evaluation_prints else result


def _end(descriptor: int, size: int) -> str:
    begin = max(0, size - KEPT)
    text = os.pread(descriptor, KEPT, begin).decode(errors="replace").replace("\0", "")
    return f"...{text}" if begin else text


def _flush() -> None:
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:  # a process without them, or with replacements by a model
        return
