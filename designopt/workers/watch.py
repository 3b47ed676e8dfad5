"""What a worker leaves behind when it dies: which evaluation it was at, and how it ended.

A worker notes in a small file, shared with the disk by the kernel, the chunk and the evaluation that it begins; a
fatal signal or a time-out writes its stack traces into a second one, the nanny the exit code into a third. The worker
that takes its place reads them and reports.
"""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import shutil
import signal
import struct
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from designopt.workers.executor import TOGETHER, Loss

_NOTE = struct.Struct("<qq")
_IDLE = -1
#: The position of a chunk whose first evaluation has not begun.
PREPARING = -1
#: The watchdog is set to this many limits ...
SLACK = 1.25
#: ... and set anew when this share of a limit has passed, so that each evaluation has one limit at least.
RENEW = SLACK - 1.0


def folder(run: str, worker: str) -> Path:
    """Where the worker with this name keeps its notes of this run."""
    safe = "".join(c if c.isalnum() else "_" for c in worker)
    return Path(tempfile.gettempdir()) / f"designopt-{run}-{safe}"


@dataclass(frozen=True)
class Death:
    """The notes of a dead worker: its address, the chunk (-1: idle) and position it was at, traces, exit code."""

    address: str
    chunk: int
    position: int
    trace: str
    exit_code: int | None

    def loss(self, chunk: int, limit: float | None) -> Loss:
        """What this death means for a chunk that was given to the worker."""
        if chunk != self.chunk or self.position == PREPARING:
            return Loss("lost_worker", self.how, started=False)
        suspect = None if self.position == TOGETHER else self.position
        if self.timed_out:
            message = f"no result within {limit:g} s" if limit is not None else "no result in time"
            return Loss("timeout", message, self.trace, suspect=suspect)
        killed = self.exit_code is None and not self.trace
        cause = "lost_worker" if killed or self.exit_code in (-signal.SIGKILL, -signal.SIGTERM) else "crashed"
        return Loss(cause, f"the worker process {self.how}", self.trace, suspect=suspect)

    @property
    def timed_out(self) -> bool:
        """Whether the watchdog ended it."""
        return self.trace.startswith("Timeout")

    @property
    def blameless(self) -> bool:
        """Whether the worker died between evaluations: idle, or while it prepared the model."""
        return self.chunk == _IDLE or self.position == PREPARING

    @property
    def how(self) -> str:
        """The end of a sentence that begins with the worker process."""
        code = self.exit_code
        if self.timed_out and self.position == PREPARING:
            return "was ended because the set-up took longer than ten time-outs and a minute"
        if code is None:
            fatal = self.trace.partition("\n")[0].removeprefix("Fatal Python error: ")
            return f"died ({fatal})" if fatal else "vanished"
        if code >= 0:
            return f"ended itself with exit code {code}"
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
        return f"was killed by signal {-code}"


class Watch:
    """Keeps the notes of this worker process, and ends it when an evaluation takes longer than `limit` seconds.

    `preparation` is that limit for the model's set-up.

    The end comes from a thread of the interpreter's own C code, which works even when an extension holds the
    interpreter's lock.
    """

    def __init__(
        self, run: str, worker: str, address: str, limit: float | None, preparation: float | None = None
    ) -> None:
        place = folder(run, worker)
        self._place = place
        self._address = address
        self._limit = limit
        self._preparation = preparation
        self._armed = -float("inf")
        self.chunk = _IDLE
        place.mkdir(mode=0o700, exist_ok=True)
        (place / "address").write_text(address)
        with (place / "note").open("wb+") as stream:
            stream.truncate(_NOTE.size)
            self._note = mmap.mmap(stream.fileno(), _NOTE.size)
        _NOTE.pack_into(self._note, 0, _IDLE, 0)
        self._trace = (place / "trace").open("w")
        faulthandler.enable(self._trace)

    @property
    def busy(self) -> bool:
        """Whether a chunk is at work."""
        return self.chunk != _IDLE

    def begin_chunk(self, chunk: int, *, preparing: bool) -> None:
        """A chunk begins; until its first evaluation does, the model may have to be prepared."""
        self.chunk = chunk
        _NOTE.pack_into(self._note, 0, chunk, PREPARING)
        if self._preparation is not None and preparing:
            faulthandler.dump_traceback_later(self._preparation, exit=True, file=self._trace)

    def begin(self, position: int) -> None:
        """The evaluation at `position` of the chunk begins."""
        _NOTE.pack_into(self._note, 0, self.chunk, position)
        if self._limit is not None:
            now = time.monotonic()
            if now - self._armed > RENEW * self._limit:
                self._armed = now
                faulthandler.dump_traceback_later(SLACK * self._limit, exit=True, file=self._trace)

    def end_chunk(self) -> None:
        """The chunk is done."""
        if self._limit is not None or self._preparation is not None:
            faulthandler.cancel_dump_traceback_later()
            self._armed = -float("inf")
        self.chunk = _IDLE
        _NOTE.pack_into(self._note, 0, _IDLE, 0)

    def leaving(self) -> Death | None:
        """The death of this process, told by itself because it is asked to end; None when it is idle."""
        chunk, position = _NOTE.unpack_from(self._note, 0)
        return None if chunk == _IDLE else Death(self._address, chunk, position, "", -signal.SIGTERM)

    def close(self) -> None:
        """The worker ends in order: nothing to report."""
        faulthandler.cancel_dump_traceback_later()
        faulthandler.disable()
        self._trace.close()
        self._note.close()
        shutil.rmtree(self._place, ignore_errors=True)


def read_death(run: str, worker: str) -> Death | None:
    """The notes of the process that had this worker's name before; None when there was none. Removes them."""
    place = folder(run, worker)
    try:
        chunk, position = _NOTE.unpack((place / "note").read_bytes())
        address = (place / "address").read_text()
        trace = (place / "trace").read_text(errors="replace")
    except (OSError, struct.error):
        return None
    code: int | None = None
    with contextlib.suppress(OSError, ValueError):
        code = int((place / "exit").read_text())
    shutil.rmtree(place, ignore_errors=True)
    return Death(address, chunk, position, trace, code)


def write_exit_code(run: str, worker: str, code: int) -> None:
    """Called where the worker's parent process lives, before a new worker is started."""
    with contextlib.suppress(OSError):
        (folder(run, worker) / "exit").write_text(str(code))


def ignore_interrupts() -> None:
    """Ctrl-C on a terminal reaches all processes; only the coordinator is to act on it."""
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
