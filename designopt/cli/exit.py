"""End of a command: exit codes and messages."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from typing import NoReturn, TextIO

import click

from designopt.printable import printable
from designopt.workers.pools.shortage import NO_THREADS, without_threads

DONE, NOTHING_FEASIBLE, WRONG_INPUT, FAILURE_POLICY, STORE, INTERRUPTED = 0, 1, 2, 3, 4, 130
#: The reader of the output has closed it, like `head`: the code of a process ended by SIGPIPE.
CLOSED_PIPE = 141
#: Valid, but a repeated evaluation gave other numbers.
DIFFERENT = NOTHING_FEASIBLE
#: The study is valid, but trial evaluations failed.
TRIAL_FAILED = FAILURE_POLICY


def echo(text: object = "", *, err: bool = False) -> None:
    """Print a line on stdout, or on stderr with `err`; stored and foreign text in it cannot control the terminal."""
    click.echo(printable(str(text)), err=err)


def fail(message: str, code: int) -> NoReturn:
    """End the command with `message` on stderr."""
    echo(message, err=True)
    sys.exit(code)


def fail_usage(error: click.ClickException) -> NoReturn:
    """End the command with the message and exit code of wrong arguments."""
    text = io.StringIO()
    error.show(text)
    fail(text.getvalue().removesuffix("\n"), error.exit_code)


@contextlib.contextmanager
def writable_output() -> Iterator[None]:
    """End the command with a sentence if its output cannot be written: a full disk, a closed pipe."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as error:
        if error.errno == errno.EPIPE:
            _abandon(sys.stdout)
            sys.exit(CLOSED_PIPE)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
            raise
        _abandon(sys.stdout)
        with contextlib.suppress(OSError):
            echo(f"error: the output cannot be written: {error.strerror}", err=True)
        sys.exit(STORE)


@contextlib.contextmanager
def sufficient_system() -> Iterator[None]:
    """End the command with a sentence if the system refuses a thread, a process or a file name."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        if without_threads(error):
            fail(f"error: {NO_THREADS}", STORE)
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            fail(f"error: {error.filename}: {error.strerror}; a name has at most 255 bytes", STORE)
        raise


def _abandon(stream: TextIO) -> None:
    """Discard the buffer: the interpreter would try to write it at its end, and report an error."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
