"""Start of local workers: one process loads their common modules, and they are forked from it.

A worker started from scratch spends half a second and more on imports; a forked one starts in a tenth of that, also as
replacement of a dead one, and they share memory. The next run in this process reuses the origin, unless it would now be
started differently.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import dask

from designopt.workers.private_names import (
    ForkServer,
    ForkServerProcess,
    socket_folder_settings,
    without_preload_of_dask,
)
from designopt.workers.remote.fork_server import ORIGIN, SAFE_PATH, SOCKETS
from designopt.workers.supervision import children

#: Modules that every worker needs, ...
NEEDED = (
    "designopt.workers.remote.fork_server",
    "distributed.nanny",
    "distributed.worker",
    "designopt.workers.evaluation.programs",
    "designopt.workers.remote.dask_worker",
)
#: ... and those that workers need if this process needed them to read the study.
HEAVY = ("casadi", "scipy.sparse", "scipy.interpolate", "scipy.optimize")
#: Maximum bytes of the path of a socket, and length of its name.
SOCKET, NAME = 107, len("/listener-12345678")


#: One origin is started at a time.
_starting = threading.Lock()


@dataclass(frozen=True)
class _Origin:
    """An origin: its process, its loaded modules, and its inherited state."""

    process: ForkServerProcess
    modules: tuple[str, ...]
    environment: tuple[object, ...]

    def end(self) -> None:
        """End it and all its descendants. It would wait for processes that have its files open, such as children of a
        model."""
        pid = self.process.pid
        if _state(pid) != "reaped":
            children.end_descendants(pid)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(self.process.alive)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.process.address)


#: The origin kept for the next run.
_idle_origin: _Origin | None = None


@contextlib.contextmanager
def fork_workers() -> Iterator[None]:
    """Workers started inside this context are forked from a process of their own; all its descendants end with the
    context.

    It has the present environment, folder and limits: a kept one is reused if these are equal and it has loaded the
    same modules. If it is killed, another one is started for the next worker. Without fork servers, or if this process
    already uses one, each worker starts from scratch.
    """
    if not sys.platform.startswith("linux") or (server := ForkServer()).process is not None:
        yield
        return
    for name, value in dask.config.get("distributed.nanny.pre-spawn-environ").items():
        if value is not None:
            os.environ.setdefault(name, str(value))
    if os.environ.get("PYTHONHASHSEED") in (None, "0"):
        os.environ["PYTHONHASHSEED"] = "6640"  # as in Dask's nannies: sets have one order in all workers
    modules_before = server.modules
    server.modules = (*NEEDED, *(name for name in HEAVY if name in sys.modules))
    took_over = _take(server)

    def start(original: Callable[[], None]) -> None:
        nonlocal took_over
        with _starting:
            _within_reach()
            present, process = inherited_state(), server.process
            with _as_origin(), _without_remarks():
                original()
            if server.process != process:
                took_over = present

    try:
        with (
            server.started_by(start),
            without_preload_of_dask(),
            dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}),
        ):
            server.ensure_running()
            yield
    finally:
        _keep(server, took_over)
        server.modules = modules_before


def _take(server: ForkServer) -> tuple[object, ...]:
    """Reuse the kept process if it matches, else end it; returns the inherited state."""
    global _idle_origin
    origin, _idle_origin = _idle_origin, None
    if origin is None:
        return ()
    fits = origin.environment == inherited_state() and set(origin.modules).issuperset(server.modules)
    if not fits or not os.path.exists(origin.process.address) or _state(origin.process.pid) != "runs":
        origin.end()
        return ()
    server.process = origin.process
    server.modules = origin.modules
    return origin.environment


def _keep(server: ForkServer, took_over: tuple[object, ...]) -> None:
    """End all descendants of the process of `server`, which is kept for the next run, without interfering with other
    fork servers here."""
    global _idle_origin
    process, server.process = server.process, None
    if process is not None:
        children.end_descendants(process.pid)
        _idle_origin = _Origin(process, server.modules, took_over)


def end_ready_child() -> None:
    """End the kept process."""
    global _idle_origin
    origin, _idle_origin = _idle_origin, None
    if origin is not None:
        origin.end()


def _forget_ready_child() -> None:
    """The kept process belongs to the parent of this process."""
    global _idle_origin
    origin, _idle_origin = _idle_origin, None
    if origin is not None:
        os.close(origin.process.alive)


atexit.register(end_ready_child)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_ready_child)


def _state(pid: int) -> str:
    """State of the child `pid`: running, dead, or reaped by other code here."""
    try:
        return "runs" if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None else "dead"
    except ChildProcessError:
        return "reaped"


def _within_reach() -> None:
    """Make multiprocessing put its sockets below /tmp if TMPDIR is too long for the path of a socket."""
    from multiprocessing import util

    settings = socket_folder_settings()
    folder = settings.get("tempdir") or os.path.join(tempfile.gettempdir(), "pymp-12345678")
    if len(os.fsencode(folder)) + NAME > SOCKET:
        settings["tempdir"] = tempfile.mkdtemp(prefix="pymp-", dir="/tmp")
        util.Finalize(None, shutil.rmtree, args=(settings["tempdir"], True), exitpriority=-100)


@contextlib.contextmanager
def _as_origin() -> Iterator[None]:
    """A process started inside knows its purpose, and does not import modules from the current folder: the study may be
    from someone else."""
    from multiprocessing import util

    paths = [ORIGIN, SOCKETS] if SAFE_PATH in os.environ else [ORIGIN, SOCKETS, SAFE_PATH]
    os.environ.update({name: " ".join(paths) for name in paths} | {SOCKETS: util.get_temp_dir()})
    try:
        yield
    finally:
        for name in paths:
            del os.environ[name]


@contextlib.contextmanager
def _without_remarks() -> Iterator[None]:
    """The process with which multiprocessing removes semaphores of a killed program, if it is started inside, does not
    report them on the terminal."""
    remarks = sys.warnoptions
    sys.warnoptions = [*remarks, "ignore::UserWarning:multiprocessing.resource_tracker"]
    try:
        yield
    finally:
        sys.warnoptions = remarks


#: Lines of /proc/self/status: identity, affinity, ignored signals.
_STATUS = ("Uid", "Gid", "Groups", "Umask", "SigIgn", "Cpus_allowed_list")


def inherited_state() -> tuple[object, ...]:
    """Environment, folders, search path of modules, standard files, limits and rights: equal if two successive
    processes would inherit the same."""
    return (
        dict(os.environ),
        _folder(),
        tempfile.gettempdir(),
        tuple(sys.path),
        tuple(_file(standard) for standard in (0, 1, 2)),
        tuple(line for line in _text("status").splitlines() if line.partition(":")[0] in _STATUS),
        _text("limits"),
        os.getpriority(os.PRIO_PROCESS, 0),
    )


def _folder() -> str:
    with contextlib.suppress(OSError):  # it has been removed
        return os.getcwd()
    return ""


def _file(descriptor: int) -> tuple[int, int]:
    with contextlib.suppress(OSError):  # it is closed
        about = os.fstat(descriptor)
        return about.st_dev, about.st_ino
    return -1, -1


def _text(name: str) -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/self", name).read_text()
    return ""
