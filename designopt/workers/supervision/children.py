"""Child processes of models: they end with their worker, at the latest with the run.

They are found in three ways. A child is in the process group of its worker, unless it leaves it. A process that
executes another program has the name of the worker's notes in its environment, unless that is cleared. A forked process
has the environment with which its ancestor started, but shares the worker's note in memory. Orphans of local workers
become children of the process from which these are forked.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from designopt.workers.supervision.temporary import use_folder, use_usual_folder, usual_folder

#: Prefix of an environment variable of a worker's children, followed by the run; its value is the name of the folder of
#: the worker's notes.
MARK = "DESIGNOPT_RUN_"
#: Linux's number for the request that orphaned descendants of a process become its children.
_SET_CHILD_SUBREAPER = 36
#: Number of searches for remaining processes: a killed process may just have started another one.
_ROUNDS = 50

#: Waits until a process is gone, then ends the remains of its workers: process groups, processes that have left their
#: group (by their environment and shared memory, if the system shows these), and folders of notes and temporary files.
_GUARD = """
read -r nothing
for pid in "$1"*/pid; do [ -f "$pid" ] && kill -9 -- "-$(cat "$pid")"; done
for place in $(grep -ls "$2" /proc/[0-9]*/environ /proc/[0-9]*/maps); do
  place=${place#/proc/}; kill -9 "${place%/*}"
done
rm -rf "$1"*
"""


def notes(run: str, worker: str = "") -> str:
    """The name of the folder in which the worker with this name keeps its notes of `run`; without a worker, the common
    prefix of these names. No name is a prefix of another one."""
    return f"designopt-{run}-" + "".join(c if c.isalnum() else "_" for c in worker) + "-" * bool(worker)


def lead_group() -> None:
    """Put this worker and its children into a process group of their own, which can be ended as a whole."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpgid(0, 0)


def keep_files() -> None:
    """Programs executed by this worker inherit none of its files, by which others detect that it is alive."""
    with contextlib.suppress(OSError):  # a system without /proc
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if int(name) > 2:
                    os.set_inheritable(int(name), False)


def adopt_orphans() -> None:
    """Make orphaned descendants of this process its children (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def mark(run: str, worker: str) -> None:
    """Children started from now on belong to `worker` of `run`."""
    os.environ[MARK + run] = notes(run, worker)


def unmark(run: str) -> None:
    """Children started from now on do not belong to `run`."""
    os.environ.pop(MARK + run, None)


def end_group(leader: int) -> None:
    """End the processes of the group led by the dead process `leader`."""
    with contextlib.suppress(OSError, AttributeError):
        if leader > 1 and leader != os.getpgid(0):
            os.killpg(leader, signal.SIGKILL)


def end_marked(run: str, worker: str = "") -> None:
    """End the processes of `worker` of `run`, or of all its workers, except this one."""
    for pid in _processes_with_notes(notes(run, worker)):
        if pid != os.getpid():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _processes_with_notes(name: str) -> Iterator[int]:
    """Processes with notes whose names have this prefix."""
    text = name.encode()
    python = _program("self")
    for pid in _processes():
        with contextlib.suppress(OSError):
            process = Path(f"/proc/{pid}")
            in_environment = text in (process / "environ").read_bytes()
            if in_environment or (_program(pid) == python and text in (process / "maps").read_bytes()):
                yield pid


def _program(pid: int | str) -> str:
    """The program of a process, "" if not available; a fork executes that of its parent."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe")
    return ""


def end_descendants(ancestor: int) -> None:
    """End the descendants of the process `ancestor`, including adopted orphans."""
    for _ in range(_ROUNDS):
        descendants = _descendants(ancestor)
        for pid in descendants:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not descendants:
            return
        time.sleep(0.01)


def _descendants(ancestor: int) -> set[int]:
    """Live descendants. A process whose first thread has ended looks dead, and keeps its children, until its last one
    ends."""
    children_of: dict[int, list[int]] = {}
    for pid in _processes():
        with contextlib.suppress(OSError, ValueError):
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            state, parent, threads = fields[0], fields[1], int(fields[17])
            if state not in "ZX" or threads > 1:
                children_of.setdefault(int(parent), []).append(pid)
    descendants: set[int] = set()
    waiting = [ancestor]
    while waiting:
        new = set(children_of.get(waiting.pop(), ())) - descendants
        descendants |= new
        waiting += new
    return descendants


def _processes() -> Iterator[int]:
    with contextlib.suppress(OSError):  # a system without /proc
        yield from [int(name) for name in os.listdir("/proc") if name.isdigit()]


class OrphanGuard:
    """Cleans up after `worker` of `run`, or after all its workers on this machine, if this process is killed: a shell
    that waits for its end.

    It detects the end by a pipe whose other end only this process has. No effect without a shell.
    """

    def __init__(self, run: str, worker: str = "") -> None:
        self._process: subprocess.Popen[bytes] | None = None
        name = notes(run, worker)
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with contextlib.suppress(OSError):
            command = ["/bin/sh", "-c", _GUARD, "designopt-guard", str(usual_folder() / name), name]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, cwd="/", start_new_session=True, close_fds=True, **quiet
            )

    def close(self) -> None:
        """Called at an orderly end of the run or of the worker's part in it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._process = None


@contextlib.contextmanager
def ending_with_this_process() -> Iterator[None]:
    """Context manager for evaluations in this process: what they start and their temporary files end with it, at the
    latest with this process, however it ends."""
    run = uuid.uuid4().hex[:12]
    folder = usual_folder() / notes(run)
    guard = OrphanGuard(run)
    mark(run, "")
    use_folder(folder)
    try:
        yield
    finally:
        use_usual_folder(folder)
        unmark(run)
        end_marked(run)
        shutil.rmtree(folder, ignore_errors=True)
        guard.close()
