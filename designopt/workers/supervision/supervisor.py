"""Supervision of a worker process from outside: limits hold whatever an evaluation does to its process.

A nanny reads the notes of its worker several times within a limit. Time counts by checks: while this process is
stopped, or the machine sleeps, no limit expires.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from distributed import NannyPlugin, Status

from designopt.workers.executor import Position
from designopt.workers.private_names import exit_of_worker_first
from designopt.workers.supervision.children import OrphanGuard, end_group, end_marked
from designopt.workers.supervision.death import CRASHED, TIMEOUT, NoChunk
from designopt.workers.supervision.prints import Prints
from designopt.workers.supervision.watch import (
    TRACE_SIGNAL,
    Note,
    folder,
    judge,
    read_death,
    read_note,
    write_exit_code,
)

#: Multiple of its limit after which an evaluation is ended.
SLACK = 1.25
#: Maximum interval between checks (s), and minimum number of checks within a limit.
LOOK, LOOKS = 0.5, 8
#: Time for a sign of life from a worker that is not evaluating, and for a stopped one to continue (s); less if
#: evaluations have a limit, with this minimum.
SILENCE, MIN_SILENCE = 30.0, 5.0
#: Time for a worker to write its stack traces, and interval between checks for them (s).
TRACING, TRACED = 2.0, 0.05


class Supervisor(NannyPlugin):
    """Supervises the worker of a nanny for a run; `limit` and `preparation` are in seconds, None for no limit. `local`
    nannies are in the process of the run, which removes what remains of their workers.

    Reports the death of a worker at once, with its exit code. Where Dask does not allow that
    (`designopt.workers.private_names`), the replacement worker reports it, without the code.
    """

    def __init__(self, run: str, limit: float | None, preparation: float | None, *, local: bool) -> None:
        self.name = f"designopt-supervisor-{run}"
        self.run = run
        self.limit = limit
        self.preparation = preparation
        self.local = local

    def setup(self, nanny: Any) -> None:
        """Start the checks."""
        self._guard = None if self.local else OrphanGuard(self.run, nanny.address)
        self._notes = folder(self.run, nanny.address)
        self._last: Note | None = None
        self._still_time = self._silent = self._advance_time = 0.0
        self._reported_advance = 0
        self._looking = asyncio.create_task(self._look(nanny))
        self._exits = contextlib.ExitStack()
        self._exits.enter_context(exit_of_worker_first(nanny, lambda code: self._record_exit(nanny, code)))

    async def _record_exit(self, nanny: Any, code: int) -> None:
        """Note how the worker has ended, and end what it leaves."""
        pid = _pid(self._notes)
        if pid is not None:
            with contextlib.suppress(OSError):
                os.kill(pid, 0)  # it is alive: the process from which it was forked has died, and it is ended for that
                code = -getattr(signal, "SIGKILL", signal.SIGTERM)
            end_group(pid)
        write_exit_code(self._notes, code)
        end_marked(self.run, nanny.address)
        self._report(nanny)

    def _report(self, nanny: Any) -> None:
        """Report the death of the worker now: its replacement may start late, or never."""
        death = read_death(self._notes)
        if death is not None:
            nanny.log_event(f"designopt-{self.run}", {"death": dataclasses.asdict(death)})

    def teardown(self, nanny: Any) -> None:
        """Stop the checks, and remove what remains of a worker that stays.

        A nanny that ends closes its worker after this call; the guard then removes it.
        """
        if self._guard is not None and nanny.status not in (Status.closing, Status.closed):
            self._guard.close()
            shutil.rmtree(self._notes, ignore_errors=True)
        self._looking.cancel()
        self._exits.close()

    async def _look(self, nanny: Any) -> None:
        period = LOOK if self.limit is None else max(0.01, min(LOOK, self.limit / LOOKS))
        before = time.monotonic()
        while True:
            await asyncio.sleep(period)
            time_now = time.monotonic()
            elapsed_time, before = min(time_now - before, 2.0 * period), time_now
            with contextlib.suppress(OSError):
                await self._judge(nanny, elapsed_time)

    async def _judge(self, nanny: Any, elapsed_time: float) -> None:
        """Read the notes, `elapsed_time` seconds after the last check, and end the worker if it is time."""
        note = read_note(self._notes)
        pid = _pid(self._notes)
        if note is None or pid is None or pid != nanny.pid:  # it is starting, or dead
            self._last = None
            return
        last, self._last = self._last, note
        has_moved = last is None or note.beat != last.beat
        self._still_time = 0.0 if has_moved else self._still_time + elapsed_time
        self._silent = 0.0 if has_moved or (last and note.pulse != last.pulse) else self._silent + elapsed_time
        self._advance_time += elapsed_time
        if last is not None and note.advance != self._reported_advance and self._advance_time > LOOK:
            self._advance_time, self._reported_advance = 0.0, note.advance
            advance = [nanny.worker_address, note.chunk, note.position, note.share, note.words]
            nanny.log_event(f"designopt-{self.run}", {"advance": advance})
        Prints.bound(self._notes / "prints")
        if late := self._reason_to_end(note, pid):
            await self._end(pid, note, *late)

    def _reason_to_end(self, note: Note, pid: int) -> tuple[str, str] | None:
        """The cause and the words for which the worker must be ended; None otherwise."""
        patience = SILENCE if self.limit is None else min(SILENCE, max(MIN_SILENCE, SLACK * self.limit))
        if note.position == Position.ENDED and self._still_time > patience:
            return CRASHED, f"was terminated because it had not delivered its results for {patience:.3g} s"
        if note.chunk == NoChunk.IDLE and self._silent > patience:
            return CRASHED, f"was terminated because it had not answered for {patience:.3g} s"
        if note.chunk != NoChunk.IDLE and note.position == Position.PREPARING:
            if self.preparation is not None and self._still_time > self.preparation:
                return TIMEOUT, "was terminated because the set-up took longer than ten time-outs and a minute"
        elif (
            note.position not in (Position.PREPARING, Position.ENDED)
            and self.limit is not None
            and self._still_time > SLACK * self.limit
        ):
            if _is_stopped(pid):  # not at once: it may have continued with other evaluations
                return CRASHED, f"was terminated because it had been stopped for {self._still_time:.3g} s"
            return TIMEOUT, f"was terminated after {self._still_time:.3g} s without a result"
        if self._silent > patience and _is_stopped(pid):
            return CRASHED, f"was terminated because it had been stopped for {self._silent:.3g} s"
        return None

    async def _end(self, pid: int, note: Note, cause: str, why: str) -> None:
        """End the worker, unless it continues meanwhile."""
        trace = self._notes / "trace"
        if TRACE_SIGNAL is not None and not _is_stopped(pid):
            os.kill(pid, TRACE_SIGNAL)
            for _ in range(round(TRACING / TRACED)):
                await asyncio.sleep(TRACED)
                if trace.stat().st_size:
                    break
        os.kill(pid, getattr(signal, "SIGSTOP", signal.SIGTERM))
        latest = read_note(self._notes)
        if latest is not None and latest.beat != note.beat:
            os.truncate(trace, 0)
            os.kill(pid, getattr(signal, "SIGCONT", signal.SIGTERM))
            return
        judge(self._notes, cause, why)
        self._last = None
        self._still_time = self._silent = 0.0
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def _pid(notes: Path) -> int | None:
    try:
        return int((notes / "pid").read_text())
    except (OSError, ValueError):
        return None


def _is_stopped(pid: int) -> bool:
    """Whether a signal has stopped the process (if the system shows it)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    except (OSError, IndexError):
        return False
