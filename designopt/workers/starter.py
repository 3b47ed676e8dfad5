"""Evaluations before workers are there: in a copy of this process, forked when the run begins.

The copy is no worker: if it ends or fails, its chunk goes to a worker, whose supervision finds the cause. Nothing that
an evaluation does there affects this process.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import NoReturn

from designopt import evaluation_progress
from designopt.store.errors import WorkersError, WorkersNotStarted
from designopt.workers.evaluation.evaluate import Evaluator
from designopt.workers.evaluation.threads import one_thread, one_thread_when_loaded
from designopt.workers.executor import Advance, Chunk, ChunkResult, Completion, Executor, Loss
from designopt.workers.pools.scratch import scratch_folder
from designopt.workers.remote.warning_forwarder import WarningForwarder
from designopt.workers.supervision import children
from designopt.workers.supervision.death import LOST
from designopt.workers.supervision.prints import evaluate_with_output
from designopt.workers.supervision.watch import Watch, ignore_interrupts, remaining, transmits_arrays

#: Its name in the journal.
NAME = "starter"
#: Duration of its chunks, so that workers get their share early (s); interval between looks at the workers' start (s).
TARGET, LOOK = 0.05, 0.02
#: Interval between reports of an evaluation's progress (s).
SHOWN = 0.5
#: Name of the thread of a solver, which waits for outcomes while this process is copied.
SOLVER_THREAD = "designopt-solver"
#: Linux's number for the request of a signal at the death of the parent.
_SET_PDEATHSIG = 1


def can_fork() -> bool:
    """Whether a copy of this process can be relied on: no other thread than those of designopt, which hold no locks."""
    threads = [t for t in threading.enumerate() if t is not threading.main_thread()]
    return sys.platform.startswith("linux") and all(t.name in ("designopt-command", SOLVER_THREAD) for t in threads)


class Starter:
    """A copy of this process that evaluates one chunk at a time, by the evaluator that `build` returns there.

    Raises `OSError` if there can be no further process.
    """

    def __init__(self, build: Callable[[], Evaluator]) -> None:
        self._run = uuid.uuid4().hex[:12]
        self._pid = 0
        with contextlib.ExitStack() as exits:
            exits.enter_context(scratch_folder(self._run))
            exits.callback(self._remove)
            self._connection, theirs = multiprocessing.Pipe()
            exits.enter_context(self._connection)
            alive, hold = os.pipe()
            exits.callback(os.close, alive)
            exits.callback(os.close, hold)
            with theirs, warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # about threads, see `can_fork`
                self._pid = os.fork()
                if self._pid == 0:
                    _supervise(theirs, alive, build, self._run)
            self._exits = exits.pop_all()
        self.chunk: Chunk | None = None
        self.advance: Advance | None = None
        self.warnings: list[str] = []

    def submit(self, chunk: Chunk) -> None:
        """Begin a chunk."""
        self.chunk = chunk
        with contextlib.suppress(OSError):  # `poll` notices its end
            self._connection.send(chunk)

    def poll(self, timeout: float) -> ChunkResult | None:
        """The result of the chunk, if it arrives within `timeout` (s). Raises `EOFError` if the copy has ended."""
        try:
            while self._connection.poll(timeout):
                message = self._connection.recv()
                if isinstance(message, ChunkResult):
                    self.chunk = self.advance = None
                    return message
                if isinstance(message, Advance):
                    self.advance = message
                else:
                    self.warnings.append(str(message))
        except EOFError:
            raise
        except Exception as error:  # a damaged message
            raise EOFError from error
        return None

    def end(self) -> None:
        """End the copy, with all processes and files of its evaluations."""
        self._exits.close()

    def _remove(self) -> None:
        """Wait for the end of the copy, whose parent ends it when the pipe is closed, and remove its notes."""
        if self._pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
        for notes in remaining(self._run):
            shutil.rmtree(notes, ignore_errors=True)


def _supervise(connection: Connection, alive: int, build: Callable[[], Evaluator], run: str) -> NoReturn:
    """The parent of the copy: ends it, and all that its evaluations have started, when the process of the run closes
    the other end of the pipe `alive` or is killed, and when the copy has ended or was stopped by an evaluation.

    Neither returns into the code of the run, whose files they close: a lock of a store is gone with the last process
    that has its file open.
    """
    try:
        ignore_interrupts()
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        children.lead_group()
        children.adopt_orphans()
        names = os.listdir("/proc/self/fd")
        for descriptor in {int(name) for name in names} - {0, 1, 2, connection.fileno(), alive}:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        copy = os.fork()
        if copy == 0:
            os.close(alive)
            _serve(connection, build, run)
        connection.close()
        with contextlib.suppress(ChildProcessError, InterruptedError):
            signal.signal(signal.SIGCHLD, lambda *_: _raise_if_gone(copy))
            _raise_if_gone(copy)
            os.read(alive, 1)
        children.end_descendants(os.getpid())
    finally:
        os._exit(0)


def _raise_if_gone(copy: int) -> None:
    """Raises `InterruptedError` if the process has ended or was stopped."""
    if os.waitpid(copy, os.WNOHANG | os.WUNTRACED)[0]:
        raise InterruptedError("the copy has ended or was stopped")


def _serve(connection: Connection, build: Callable[[], Evaluator], run: str) -> NoReturn:
    """The loop of the copy."""
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        children.lead_group()
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        # In place of those of a notebook, whose files are closed.
        sys.stdout, sys.stderr = (os.fdopen(standard, "w", closefd=False) for standard in (1, 2))
        watch = Watch(run, NAME, NAME)
        watch.take_over()
        watch.prints.take_over()
        forwarder = WarningForwarder(connection.send)
        evaluator: Evaluator | None = None
        with contextlib.closing(forwarder), one_thread_when_loaded():
            while True:
                chunk = connection.recv()
                if evaluator is None:
                    with one_thread():
                        evaluator = build()
                with evaluation_progress.listened_by(_reporter(connection, chunk)), one_thread():
                    result = evaluate_with_output(evaluator, chunk, watch.prints, watch.begin)
                if not watch.intact() or not transmits_arrays(pickle.dumps, pickle.loads):
                    raise RuntimeError("an evaluation has damaged this process")
                connection.send(result)
    finally:
        os._exit(0)


def _reporter(connection: Connection, chunk: Chunk) -> Callable[[float, str], None]:
    last_sent = 0.0

    def hear(share: float, words: str) -> None:
        nonlocal last_sent
        if time.monotonic() - last_sent > SHOWN:
            last_sent = time.monotonic()
            connection.send(Advance(chunk.number, 0, share, words))

    return hear


class StartingWorkers:
    """The executor that `connect` returns, a number of `workers`; until then, and for the chunk in progress then, a
    `Starter`."""

    name = "dask"

    def __init__(self, starter: Starter, connect: Callable[[], Executor], workers: int) -> None:
        self._starter: Starter | None = starter
        self._connect = connect
        self._worker_count = workers
        self._executor: Executor | None = None
        self._error: BaseException | None = None
        self._new_executor: Executor | None = None
        self._delayed_chunks: list[Chunk] = []
        self._listener: Callable[[], None] = lambda: None
        self._connecting = threading.Thread(target=self._run_connect, name="designopt-connect", daemon=True)
        try:
            self._connecting.start()
        except RuntimeError:  # no thread is available
            self._run_connect()

    def _run_connect(self) -> None:
        try:
            self._new_executor = self._connect()
        except BaseException as error:
            self._error = error

    def _look(self) -> Executor | None:
        """The workers, once they are there. Raises what their start has raised."""
        if self._executor is None and not self._connecting.is_alive():
            if self._error is not None:
                error, self._error = self._error, None
                if isinstance(error, WorkersError):
                    raise WorkersNotStarted(str(error.args[0]), error.path) from error
                raise error
            self._executor = self._new_executor
            if self._executor is not None:
                self._executor.listen(self._listener)
                for chunk in self._delayed_chunks:
                    self._executor.submit(chunk)
                self._delayed_chunks = []
        return self._executor

    @property
    def _busy(self) -> bool:
        return self._starter is not None and self._starter.chunk is not None

    @property
    def workers(self) -> int:
        """Number of workers, also while they start."""
        return self._worker_count if self._executor is None else self._executor.workers

    @property
    def slots(self) -> int:
        """Maximum number of chunks in flight."""
        return 1 if self._executor is None else self._executor.slots + self._busy

    @property
    def target(self) -> float:
        """Target duration of a chunk (s)."""
        return TARGET if self._executor is None else self._executor.target

    @property
    def shortest(self) -> float:
        """Minimum duration of a chunk that justifies its transfer (s)."""
        return 0.0 if self._executor is None else self._executor.shortest

    def submit(self, chunk: Chunk) -> None:
        """Accept a chunk."""
        executor = self._look()
        if executor is not None:
            executor.submit(chunk)
        elif self._starter is not None:
            self._starter.submit(chunk)
        else:
            self._delayed_chunks.append(chunk)

    def wait(self, timeout: float) -> Sequence[Completion]:
        """Completed chunks."""
        executor, completions = self._look(), self._of_starter(LOOK)
        if executor is not None and not completions:
            return executor.wait(LOOK if self._busy else timeout)
        if executor is None and self._starter is None:
            self._connecting.join(timeout)
        return completions

    def _of_starter(self, timeout: float) -> list[Completion]:
        """The completed chunk of the starter, which ends when there are workers."""
        starter = self._starter
        if starter is None:
            return []
        completions = []
        chunk = starter.chunk
        try:
            result = starter.poll(timeout if chunk is not None else 0.0)
            has_ended = False
        except EOFError:
            result, has_ended = None, True
        if chunk is not None and result is not None:
            completions = [Completion(chunk, NAME, result)]
        elif chunk is not None and has_ended:
            completions = [Completion(chunk, NAME, Loss(LOST, "", started=False))]
        if has_ended or (self._executor is not None and starter.chunk is None):
            self._end_starter()
        return completions

    def _end_starter(self) -> None:
        starter, self._starter = self._starter, None
        if starter is not None:
            starter.end()

    def notices(self) -> Sequence[tuple[str, str]]:
        """Messages for the user."""
        texts: list[str] = []
        if self._starter is not None:
            texts, self._starter.warnings = self._starter.warnings, []
        return [
            *(("warning", text) for text in texts),
            *(self._executor.notices() if self._executor is not None else ()),
        ]

    def advances(self) -> Sequence[Advance]:
        """The last progress reported by active evaluations."""
        advance = self._starter.advance if self._starter is not None else None
        return [*([advance] if advance else []), *(self._executor.advances() if self._executor is not None else ())]

    def listen(self, show: Callable[[], None]) -> None:
        """Call `show` when an evaluation reports progress."""
        self._listener = show

    def cancel(self) -> None:
        """Drop the chunks in flight."""
        self._end_starter()
        self._delayed_chunks = []
        if self._executor is not None:
            self._executor.cancel()

    def close(self) -> None:
        """End everything that was started."""
        self._end_starter()
        if self._connecting.is_alive():
            self._connecting.join()
        if self._new_executor is not None:
            self._new_executor.close()
