"""Where local workers come from: one process loads what all of them need, and they are forked from it.

A worker that starts from nothing spends half a second and more on its imports; one that is forked is up after a tenth
of that, also when it takes the place of a dead one, and shares their memory. The next run in this process uses the same
one, unless it would now be started otherwise.
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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import dask

from designopt.workers.pools.inherited import inherited
from designopt.workers.remote.fork_server import ORIGIN, SAFE_PATH
from designopt.workers.supervision import children

#: What every worker needs, ...
NEEDED = (
    "designopt.workers.remote.fork_server",
    "distributed.nanny",
    "distributed.worker",
    "designopt.workers.evaluation.programs",
    "designopt.workers.remote.dask_worker",
)
#: ... and what those of this problem need if this process needed it to read the study.
HEAVY = ("casadi", "scipy.sparse", "scipy.interpolate", "scipy.optimize")
#: Bytes that the path of a socket may have, and those of its name there.
SOCKET, NAME = 107, len("/listener-12345678")


#: One such process is started at a time.
_starting = threading.Lock()


@dataclass(frozen=True)
class _Origin:
    """Such a process: how multiprocessing reaches it, what it loads, and what it has inherited from this one."""

    pid: int
    address: str
    alive: int
    loads: tuple[str, ...]
    inherited: tuple[object, ...]

    def end(self) -> None:
        """End it and all that has come from it. It would wait for all that have its files open: for what a model has
        forked, or somebody else here."""
        if _state(self.pid) != "reaped":
            children.end_descendants(self.pid)
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.alive)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.address)


#: The one that waits for the next run.
_kept: _Origin | None = None


@contextlib.contextmanager
def forked() -> Iterator[None]:
    """Workers that start meanwhile are forked from a process of their own; all that come from it end with this context.

    It has the environment, folder and limits of now: one that is kept from an earlier run is used again where these are
    the same and it has loaded as much. When it is killed, another one is started for the next worker. Where there is no
    such thing, or this process uses one for purposes of its own, each worker starts from nothing.
    """
    if not sys.platform.startswith("linux") or _in_use():
        yield
        return
    from multiprocessing import forkserver

    from distributed import utils

    server: Any = forkserver._forkserver
    for name, value in dask.config.get("distributed.nanny.pre-spawn-environ").items():
        if value is not None:
            os.environ.setdefault(name, str(value))
    if os.environ.get("PYTHONHASHSEED") in (None, "0"):
        os.environ["PYTHONHASHSEED"] = "6640"  # as Dask's nannies do: sets have one order in all workers
    before = server._preload_modules, utils._forkserver_preload_set
    utils._forkserver_preload_set = True  # Dask's own list has all packages that it could work with
    server._preload_modules = [*NEEDED, *(name for name in HEAVY if name in sys.modules)]
    start = server.ensure_running
    took_over = _take(server)

    def ensure_running() -> None:
        nonlocal took_over
        with _starting:
            _within_reach()
            present, pid = inherited(), server._forkserver_pid
            with _as_origin():
                start()
            if server._forkserver_pid != pid:
                took_over = present

    server.ensure_running = ensure_running
    try:
        server.ensure_running()
        with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
            yield
    finally:
        del server.ensure_running
        _keep(server, took_over)
        server._preload_modules, utils._forkserver_preload_set = before


def _take(server: Any) -> tuple[object, ...]:
    """Use the process that waits if it is what would be started now, and end it if not; returns what it inherited."""
    global _kept
    kept, _kept = _kept, None
    if kept is None:
        return ()
    fits = kept.inherited == inherited() and set(kept.loads).issuperset(server._preload_modules)
    if not fits or not os.path.exists(kept.address) or _state(kept.pid) != "runs":
        kept.end()
        return ()
    server._forkserver_pid, server._forkserver_address, server._forkserver_alive_fd = kept.pid, kept.address, kept.alive
    server._preload_modules = list(kept.loads)
    return kept.inherited


def _keep(server: Any, took_over: tuple[object, ...]) -> None:
    """End all that has come from the process of `server`, which itself waits for the next run, out of the way of others
    here who use one of their own."""
    global _kept
    pid, address, alive = server._forkserver_pid, server._forkserver_address, server._forkserver_alive_fd
    server._forkserver_pid = server._forkserver_address = server._forkserver_alive_fd = None
    if pid is not None:
        children.end_descendants(pid)
        _kept = _Origin(pid, address, alive, tuple(server._preload_modules), took_over)


def end_kept() -> None:
    """End the process that waits for the next run."""
    global _kept
    kept, _kept = _kept, None
    if kept is not None:
        kept.end()


def _forget_kept() -> None:
    """It is the parent's of this process."""
    global _kept
    kept, _kept = _kept, None
    if kept is not None:
        os.close(kept.alive)


atexit.register(end_kept)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_kept)


def _state(pid: int) -> str:
    """Of the child `pid`: runs, dead, or reaped where somebody else here has waited for it."""
    try:
        return "runs" if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None else "dead"
    except ChildProcessError:
        return "reaped"


def _within_reach() -> None:
    """Have multiprocessing put its sockets below /tmp where TMPDIR is too long for the path of a socket."""
    from multiprocessing import current_process, util

    config: dict[str, Any] = current_process()._config  # type: ignore[attr-defined]
    folder = config.get("tempdir") or os.path.join(tempfile.gettempdir(), "pymp-12345678")
    if len(os.fsencode(folder)) + NAME > SOCKET:
        config["tempdir"] = tempfile.mkdtemp(prefix="pymp-", dir="/tmp")
        util.Finalize(None, shutil.rmtree, args=(config["tempdir"], True), exitpriority=-100)


@contextlib.contextmanager
def _as_origin() -> Iterator[None]:
    """A process that starts meanwhile knows what it is for, and finds no module in the folder where the run was
    started: the study may be somebody else's."""
    added = [ORIGIN] if SAFE_PATH in os.environ else [ORIGIN, SAFE_PATH]
    os.environ.update({name: " ".join(added) for name in added})
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _in_use() -> bool:
    """Whether this process has such a process already."""
    from multiprocessing import forkserver

    server: Any = forkserver._forkserver
    return server._forkserver_pid is not None
