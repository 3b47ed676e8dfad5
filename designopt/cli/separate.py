"""Work in a child process, so that code of a model that ends or hangs its process does not take the command with it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import NoReturn

from designopt.cli.ending import INTERRUPTED, WRONG_INPUT, fail, told_output

#: Seconds between two looks whether the child is still there.
LOOK = 0.2
_END = "\0"

#: What the work is given: it tells by this what it is at.
Tell = Callable[[str], None]


def separately(work: Callable[[Tell], None], limit: float | None) -> None:
    """Do `work`, which ends the command by `SystemExit` or returns, and end as it does.

    Where it ends its process in another way, or says nothing new for `limit` seconds, the command ends with a sentence
    that begins with what the work told last. Done in this process where none can be forked, or where the output is no
    file.
    """
    if not hasattr(os, "fork") or not _has_files():
        work(lambda text: None)
        return
    read, write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(read)
        _do(work, write)
    os.close(write)
    status, told = _wait(child, read, limit)
    os.close(read)
    if status is None:
        fail(f"error: {told}: not checked within {limit:g} s; does the model hang in its set-up?", WRONG_INPUT)
    code = os.waitstatus_to_exitcode(status)
    if told == _END:
        sys.exit(code)
    how = f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
    fail(f"error: {told}: code of the model (set-up, check or evaluation) ended the process {how}", WRONG_INPUT)


def _has_files() -> bool:
    try:
        return sys.stdout.fileno() >= 0 and sys.stderr.fileno() >= 0
    except (AttributeError, OSError, ValueError):
        return False


def _do(work: Callable[[Tell], None], write: int) -> NoReturn:
    """The child's side; tells that it has come to its end."""

    def tell(text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(write, f"{text}\n".encode())

    code = 1
    try:
        with told_output():
            work(tell)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException:
        traceback.print_exc()
    tell(_END)
    os._exit(code)


def _wait(child: int, read: int, limit: float | None) -> tuple[int | None, str]:
    """The child's wait status, None when it had to be ended, and what it told last."""
    told, since = b"", time.monotonic()
    while True:
        with contextlib.suppress(KeyboardInterrupt):  # the child has got it too
            ended, status = os.waitpid(child, os.WNOHANG)
            while select.select([read], [], [], 0.0 if ended else LOOK)[0]:
                data = os.read(read, 4096)
                if not data:
                    break
                told, since = told + data, time.monotonic()
            lines = told.decode(errors="replace").splitlines()
            last = lines[-1] if lines else "the check"
            if ended:
                return status, last
            if limit is not None and time.monotonic() - since > limit:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return None, last
