"""Processes that a model starts: they end with their worker, at the latest with the run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: The beginning of a variable in the environment of what a worker starts; the run that it belongs to is the rest.
MARK = "DESIGNOPT_RUN_"

#: Waits until the coordinator is gone, then ends what is left of its workers: groups of processes, those that have left
#: their group (by the mark in their environment, where the system shows it), and the folders of notes.
_GUARD = """
read -r nothing
for pid in "$1"-*/pid; do [ -f "$pid" ] && kill -9 -- "-$(cat "$pid")"; done
for place in $(grep -ls "$2" /proc/[0-9]*/environ); do place=${place#/proc/}; kill -9 "${place%/environ}"; done
rm -rf "$1"-*
"""


def lead_group() -> None:
    """What this worker starts belongs to its own group of processes, which can be ended as a whole."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpgid(0, 0)


def mark(run: str) -> None:
    """What this process starts from now on belongs to `run`."""
    os.environ[MARK + run] = "1"


def unmark(run: str) -> None:
    """What this process starts from now on does not belong to `run`."""
    os.environ.pop(MARK + run, None)


def end_group(leader: int) -> None:
    """End the processes of the group that the dead process `leader` led."""
    with contextlib.suppress(OSError, AttributeError):
        if leader > 1 and leader != os.getpgid(0):
            os.killpg(leader, signal.SIGKILL)


def end_marked(run: str) -> None:
    """End the processes whose environment says that they belong to `run`, but for this one."""
    for pid in _marked(run):
        if pid != os.getpid():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _marked(run: str) -> Iterator[int]:
    wanted = f"{MARK}{run}=1".encode()
    with contextlib.suppress(OSError):  # a system without /proc
        for place in Path("/proc").iterdir():
            if place.name.isdigit():
                with contextlib.suppress(OSError):
                    if wanted in (place / "environ").read_bytes().split(b"\0"):
                        yield int(place.name)


class Guard:
    """Cleans up after the workers of `run` when this process is killed: a shell that waits for its end.

    It notices by a pipe whose other end this process alone has. Nothing happens where there is no shell.
    """

    def __init__(self, run: str) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        notes = str(Path(tempfile.gettempdir()) / f"designopt-{run}")
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with contextlib.suppress(OSError):
            command = ["/bin/sh", "-c", _GUARD, "designopt-guard", notes, f"{MARK}{run}=1"]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, cwd="/", start_new_session=True, close_fds=True, **quiet
            )

    def close(self) -> None:
        """The run ends in order."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._process = None
