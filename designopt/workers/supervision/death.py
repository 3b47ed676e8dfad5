"""Consequences of the death of a worker process for its chunks."""

from __future__ import annotations

import contextlib
import signal
from dataclasses import dataclass
from enum import IntEnum

from designopt.workers.executor import Loss, Position

#: Causes of a `Loss`.
TIMEOUT, CRASHED, LOST = "timeout", "crashed", "lost_worker"

#: Signals from outside an evaluation: another process, the kernel when out of memory, or the time limit of a job.
_FROM_OUTSIDE = {
    -getattr(signal, name) for name in ("SIGKILL", "SIGTERM", "SIGHUP", "SIGXCPU") if hasattr(signal, name)
}


class NoChunk(IntEnum):
    """In place of the number of a chunk: the worker has none."""

    IDLE = -1


@dataclass(frozen=True)
class Death:
    """The end of a worker process at `address`: at which `chunk` (or `NoChunk`) and `position` (or `Position`), and the
    chunk `before` it (or `NoChunk`). `trace` contains stack traces, `prints` the end of the printed output of the
    evaluation.

    `verdict` is the cause if it was ended on purpose, by itself or its nanny, and `why` the rest of a sentence.
    """

    address: str
    chunk: int
    position: int
    before: int = NoChunk.IDLE
    trace: str = ""
    prints: str = ""
    exit_code: int | None = None
    verdict: str = ""
    why: str = ""

    def loss(self, chunk: int, limit: float | None) -> Loss:
        """The loss of a chunk of this worker.

        A chunk whose result was not handed over may also be the cause: some deaths follow with a delay.
        """
        if chunk == self.chunk and self.position == Position.ENDED:
            when = "" if self.why else " before its results had arrived"
            return Loss(self.cause, f"the worker process {self.ending_text}{when}", self.detail)
        if chunk == self.before != NoChunk.IDLE and self.verdict != TIMEOUT:
            later = self.chunk != NoChunk.IDLE and self.position not in (Position.PREPARING, Position.ENDED)
            return Loss(
                self.cause, f"the worker process {self.ending_text} before its results had arrived", later=later
            )
        if chunk != self.chunk or self.position == Position.PREPARING:
            return Loss(LOST, f"the worker process {self.ending_text}", started=False)
        suspect = None if self.position == Position.TOGETHER else self.position
        if self.verdict == TIMEOUT:
            message = f"no result within {limit:g} s" if limit is not None else "no result in time"
            return Loss(TIMEOUT, message, self.detail, suspect=suspect)
        return Loss(self.cause, f"the worker process {self.ending_text}", self.detail, suspect=suspect)

    @property
    def cause(self) -> str:
        """The failure class."""
        if self.verdict:
            return self.verdict
        is_killed = self.exit_code is None and not self.trace
        return LOST if is_killed or self.exit_code in _FROM_OUTSIDE else CRASHED

    @property
    def unreported_chunks(self) -> tuple[int, ...]:
        """Completed chunks whose results died with it, unless they were handed over before."""
        ended_chunks = (self.chunk,) if self.position == Position.ENDED else ()
        return tuple(number for number in (*ended_chunks, self.before) if number != NoChunk.IDLE)

    @property
    def before_work(self) -> bool:
        """Whether the worker died before its first evaluation: idle, or during the model's set-up."""
        return self.before == NoChunk.IDLE and (self.chunk == NoChunk.IDLE or self.position == Position.PREPARING)

    @property
    def ending_text(self) -> str:
        """The end of a sentence that begins with the worker process."""
        if self.why:
            return self.why
        code = self.exit_code
        if code is None:
            fatal = self.trace.partition("\n")[0].removeprefix("Fatal Python error: ")
            return f"died ({fatal})" if fatal else "vanished"
        if code >= 0:
            return f"ended itself with exit code {code}"
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
        return f"was killed by signal {-code}"

    @property
    def detail(self) -> str:
        """Stack traces and printed output."""
        print_text = f"its last output:\n{self.prints}" if self.prints else ""
        return "\n".join(text for text in (self.trace, print_text) if text)
