"""How a command ends: its exit code, and the words that go with one that is not 0."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import NoReturn, TextIO

import click

DONE, NOTHING_FEASIBLE, WRONG_INPUT, FAILURE_POLICY, STORE, INTERRUPTED = 0, 1, 2, 3, 4, 130
#: The reader of the output went away, as `head` does: what a process ended by SIGPIPE gives.
CLOSED_PIPE = 141
#: Nothing is wrong, but a design evaluated again gave other numbers.
DIFFERENT = NOTHING_FEASIBLE
#: The study is valid, but trial evaluations failed.
TRIAL_FAILED = FAILURE_POLICY


def fail(message: str, code: int) -> NoReturn:
    """End the command with `message` on stderr."""
    click.echo(message, err=True)
    sys.exit(code)


@contextlib.contextmanager
def writable_output() -> Iterator[None]:
    """Output that cannot be written ends the command with a sentence: a full disk, a reader that went away."""
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
            click.echo(f"error: the output cannot be written: {error.strerror}", err=True)
        sys.exit(STORE)


def _abandon(stream: TextIO) -> None:
    """What is still in the buffer goes nowhere: the interpreter would try it again at its end, and complain."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
