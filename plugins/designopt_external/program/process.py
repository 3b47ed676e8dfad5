"""One run of a program: by a list of arguments, with limits of time and of stored output, and no process left."""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from designopt.workers.supervision.children import MARK

#: The printed text of a program, as files of its folder.
STDOUT, STDERR = "stdout.txt", "stderr.txt"
#: Bytes stored of the beginning and of the end of each printed text.
HALF = 8 * 2**20
#: Size of a read (bytes).
READ_SIZE = 2**20
#: Time (s) for a program to end after SIGTERM; then it is killed.
GRACE = 0.5
#: Maximum of that time relative to the limit: the worker's supervisor waits for a quarter of it.
GRACE_SHARE = 0.1
#: Interval between checks of the process on systems without process descriptors (s).
CHECK_INTERVAL = 0.01


@dataclass(frozen=True)
class ProcessEnd:
    """The end of a program: its exit code (negative: the signal that ended it), and whether its time was up."""

    code: int
    timed_out: bool = False

    @property
    def signal(self) -> str:
        """The name of the signal that ended it, "" without one."""
        try:
            return signal.Signals(-self.code).name if self.code < 0 else ""
        except ValueError:
            return f"signal {-self.code}"


class _BoundedText:
    """The beginning and the end of a text of any length."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._in_tail = self._omitted_bytes = 0

    def add(self, data: bytes) -> None:
        room = HALF - len(self._head)
        self._head += data[:room]
        tail = data[room:]
        if not tail:
            return
        self._tail.append(tail)
        self._in_tail += len(tail)
        while self._in_tail - len(self._tail[0]) >= HALF:
            self._in_tail -= len(self._tail[0])
            self._omitted_bytes += len(self._tail.popleft())

    def write(self, file: Path) -> None:
        with file.open("wb") as stream:
            stream.write(self._head)
            if self._omitted_bytes:
                stream.write(f"\n... {self._omitted_bytes} bytes are left out ...\n".encode())
            for data in self._tail:
                stream.write(data)


def environment(folder: Path, entries: Sequence[str]) -> dict[str, str]:
    """The environment of a program in `folder`: PATH, a home and a folder for temporary files, one thread, decimal
    points, and the variables of `entries` (``NAME`` from the user's environment, or ``NAME=value``).

    The marks by which a run finds its processes are added.
    """
    defaults = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LC_ALL": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
    }
    marks = {name: value for name, value in os.environ.items() if name.startswith(MARK)}
    return defaults | listed_variables(entries, os.environ) | marks


def listed_variables(entries: Sequence[str], users: Mapping[str, str]) -> dict[str, str]:
    """The variables of `entries`; one that the user's environment does not have is left out."""
    variables = {}
    for text in entries:
        name, equals, value = text.partition("=")
        if equals:
            variables[name] = value
        elif name in users:
            variables[name] = users[name]
    return variables


def run(
    command: Sequence[str],
    folder: Path,
    variables: Mapping[str, str],
    *,
    limit: float | None = None,
    stdin: Path | None = None,
) -> ProcessEnd:
    """Run `command` in `folder` and write what it prints to `STDOUT` and `STDERR` there.

    After `limit` seconds, after the end of the program, and at any exception its whole process group is ended. Raises
    `OSError` if it cannot be started.
    """
    with contextlib.ExitStack() as exits:
        source = exits.enter_context(stdin.open("rb")) if stdin is not None else subprocess.DEVNULL
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(variables),
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
        exits.callback(_close, process)
        assert process.stdout is not None
        assert process.stderr is not None
        streams = {process.stdout.fileno(): _BoundedText(), process.stderr.fileno(): _BoundedText()}
        try:
            in_time = _read(process, streams, None if limit is None else time.monotonic() + limit)
            if not in_time:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGTERM)
                _read(process, streams, time.monotonic() + min(GRACE, GRACE_SHARE * (limit or 0.0)))
        finally:
            _end_group(process)
        _drain(streams)
        for output, name in zip(streams.values(), (STDOUT, STDERR), strict=True):
            output.write(folder / name)
    return ProcessEnd(process.returncode, not in_time)


def _read(process: subprocess.Popen[bytes], streams: Mapping[int, _BoundedText], deadline: float | None) -> bool:
    """Read what the process prints until it ends (True), or until the `deadline` (False)."""
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as exits:
        for descriptor in streams:
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ)
        process_end = None
        if hasattr(os, "pidfd_open"):  # Linux
            with contextlib.suppress(OSError):
                process_end = os.pidfd_open(process.pid)
                exits.callback(os.close, process_end)
                selector.register(process_end, selectors.EVENT_READ)
        while True:
            seconds_left = math.inf if deadline is None else deadline - time.monotonic()
            if seconds_left <= 0.0:
                return False
            wait = seconds_left if process_end is not None else min(CHECK_INTERVAL, seconds_left)
            for key, _ in selector.select(None if math.isinf(wait) else wait):
                if key.fd == process_end:
                    return True
                if data := _available(key.fd):
                    streams[key.fd].add(data)
                elif data == b"":
                    selector.unregister(key.fd)
            if process_end is None and _has_ended(process):
                return True


def _drain(streams: Mapping[int, _BoundedText]) -> None:
    """Read what ended processes have left in their pipes."""
    for descriptor, output in streams.items():
        while data := _available(descriptor):
            output.add(data)


def _available(descriptor: int) -> bytes | None:
    """The available output; empty at its end, None if there is none yet."""
    try:
        return os.read(descriptor, READ_SIZE)
    except BlockingIOError:
        return None


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the program and all processes of its group. The program is not reaped before, so that its number, which is
    that of the group, cannot belong to another one."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the program has ended; it is reaped only by systems that cannot tell otherwise."""
    if not hasattr(os, "waitid"):  # macOS
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
