"""Work in a child process, so that model code that ends or blocks its process does not affect the command.

The command's own process waits, forwards stop requests, and reports how the child ended. If it is killed, the child
ends with it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import click

from designopt.cli.exit import (
    INTERRUPTED,
    STORE,
    WRONG_INPUT,
    echo,
    fail,
    fail_usage,
    sufficient_system,
    writable_output,
)

#: Interval between checks of the child (s).
LOOK = 0.2
#: Prefixes of lines from the child: a run has begun on a store; the work has ended, with an exit code.
_RUNS, _END = "\1", "\0"
#: Forwarded stop requests.
_REQUESTS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
#: Signals by which others end a process, unlike those it causes itself.
_FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT")


class Tell:
    """Status messages of the work; without effect if the work is done in the command's own process."""

    def __init__(self, pipe: int | None = None) -> None:
        self._pipe = pipe

    def __call__(self, text: str) -> None:
        """`text` describes the current check, within the limit."""
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                os.write(self._pipe, f"{text}\n".encode(errors="replace"))

    def runs(self, store: Path) -> None:
        """The checks are complete, and a run begins on `store`: from now on there is no limit."""
        self(f"{_RUNS}{store}")

    def ends(self, code: int) -> None:
        """The work has ended, with the command's exit code."""
        self(f"{_END}{code}")


def separately(work: Callable[[Tell], None], limit: float | None, *, stay: bool = False) -> None:
    """Do `work`, which ends the command by `SystemExit` or returns, and end in the same way.

    If it ends its process in another way, or sends no status for `limit` seconds during its checks, the command ends
    with a sentence that begins with the last status. Without fork, or with a file as output, the work is done in this
    process. The child exits at once when the work is done; with `stay` like an interpreter, in order.
    """
    alone = hasattr(os, "fork") and threading.current_thread() is threading.main_thread()
    if not alone or not _has_files():
        work(Tell())
        return
    (read, write), (alive, hold) = os.pipe(), os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with _requests() as wait:
        child = os.fork()
        if child != 0:
            os.close(write)
            os.close(alive)
            status, lines = _wait(child, read, limit, wait)
    if child == 0:
        os.close(read)
        os.close(hold)
        _do(work, Tell(write), alive, stay=stay)
    os.close(read)
    os.close(hold)
    _end(status, lines, limit)


def _has_files() -> bool:
    try:
        return sys.stdout.fileno() >= 0 and sys.stderr.fileno() >= 0
    except (AttributeError, OSError, ValueError):
        return False


# -------------------------------------------------------------------------------------------------- the child


def _follow(alive: int) -> None:
    """End this process when that of the command is gone."""
    os.read(alive, 1)
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


def _do(work: Callable[[Tell], None], tell: Tell, alive: int, *, stay: bool) -> NoReturn:
    code = 1
    try:
        with writable_output(), sufficient_system():
            threading.Thread(target=_follow, args=(alive,), name="designopt-command", daemon=True).start()
            try:
                work(tell)
            except click.ClickException as error:
                fail_usage(error)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        _end_at_second_signal()
        echo("interrupted", err=True)
        code = INTERRUPTED
    except BaseException:
        echo(traceback.format_exc(), err=True)
    _end_at_second_signal()
    tell.ends(code)
    if stay:  # not by SystemExit: a Python caller of the command would continue in this process, too
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
    os._exit(code)


def _end_at_second_signal() -> None:
    """The work is over: a further stop request ends this process at once, because its exception would appear as an
    error of the remaining steps, or reach a Python caller of the command."""
    for number in _REQUESTS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


# --------------------------------------------------------------------------------------- the command's own process


@contextlib.contextmanager
def _requests() -> Iterator[Callable[[int, float], bool]]:
    """Yields a function that waits some seconds for the end of the child, and forwards stop requests to it; it returns
    whether there was one. The child starts with the original signal handlers.

    A terminal sends its signals to both processes, so only those from other processes are forwarded.
    """
    if not hasattr(signal, "sigtimedwait"):  # macOS: signals of a terminal reach the child directly
        yield _sleep
        return
    signals = {n for n in _REQUESTS if signal.getsignal(n) != signal.SIG_IGN} | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)

    def wait(child: int, seconds: float) -> bool:
        came = signal.sigtimedwait(signals, seconds)
        if came is None or came.si_signo == signal.SIGCHLD:
            return False
        if came.si_code <= 0:
            with contextlib.suppress(OSError):
                os.kill(child, came.si_signo)
        return True

    try:
        yield wait
    finally:
        while signal.sigtimedwait(signals, 0.0) is not None:  # too late for the child
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _sleep(child: int, seconds: float) -> bool:
    try:
        time.sleep(seconds)
    except KeyboardInterrupt:
        return True
    return False


def _wait(
    child: int, read: int, limit: float | None, wait: Callable[[int, float], bool]
) -> tuple[int | None, list[str]]:
    """The child's wait status, None if it had to be ended; its lines, "" last if it was asked to stop."""
    output, since, stop_requested = b"", time.monotonic(), False
    os.set_blocking(read, False)
    while True:
        process, status = os.waitpid(child, os.WNOHANG)
        with contextlib.suppress(BlockingIOError):
            while data := os.read(read, 4096):
                output, since = output + data, time.monotonic()
        lines = output.decode(errors="replace").splitlines()
        if process:
            return status, [*lines, *([""] if stop_requested and not "".join(lines[-1:]).startswith(_END) else [])]
        checking = not lines or not lines[-1].startswith((_RUNS, _END))
        if limit is not None and checking and time.monotonic() - since > limit:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None, lines
        stop_requested |= wait(child, LOOK)


def _end(status: int | None, lines: list[str], limit: float | None) -> NoReturn:
    """End as the child did, or report why not."""
    last = lines[-1] if lines else "the check"
    if status is None:
        fail(
            f"error: {last}: not checked within {limit:g} s; the set-up of the model or a plugin file may hang",
            WRONG_INPUT,
        )
    if last.startswith(_END):
        sys.exit(int(last.removeprefix(_END)))
    code = os.waitstatus_to_exitcode(status)
    if last == "":
        fail("interrupted", INTERRUPTED)
    by = "" if code >= 0 else signal.Signals(-code).name
    if not last.startswith(_RUNS):
        how = f"by {by}" if by else f"with exit code {code}"
        fail(f"error: {last}: code of the model (set-up, check or evaluation) ended the process {how}", WRONG_INPUT)
    store = Path(last.removeprefix(_RUNS))
    lines = [f"error: {store}: the process of the run {f'was ended by {by}' if by else f'ended with exit code {code}'}"]
    if by not in _FROM_OUTSIDE:
        lines[0] += ", by code of the model; with --executor dask such a design affects only itself"
    if (store / "journal.db").exists():
        from designopt.store.errors import resume_command

        lines.append(f"continue with: {resume_command(store)}")
    fail("\n".join(lines), STORE)
