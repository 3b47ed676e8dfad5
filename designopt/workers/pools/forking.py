"""Where local workers come from: one process loads what all of them need, and they are forked from it.

A worker that starts from nothing spends half a second and more on its imports; one that is forked is up after a tenth
of that, also when it takes the place of a dead one, and shares their memory.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

import dask

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


@contextlib.contextmanager
def forked() -> Iterator[None]:
    """Workers that start meanwhile are forked from a process of their own, which ends with this context, as do all that
    come from it.

    It has the environment of now. When it is killed, another one is started for the next worker. Where there is no such
    thing, or this process uses one for purposes of its own, each worker starts from nothing.
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

    def ensure_running() -> None:
        with _as_origin():
            _within_reach()
            start()

    server.ensure_running = ensure_running
    try:
        server.ensure_running()
        with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
            yield
    finally:
        del server.ensure_running
        server._preload_modules, utils._forkserver_preload_set = before
        _end(server)


def _within_reach() -> None:
    """Have multiprocessing put its sockets below /tmp where TMPDIR is too long for the path of a socket."""
    from multiprocessing import current_process, util

    config: dict[str, Any] = current_process()._config  # type: ignore[attr-defined]
    folder = config.get("tempdir") or os.path.join(tempfile.gettempdir(), "pymp-12345678")
    if len(os.fsencode(folder)) + NAME > SOCKET:
        config["tempdir"] = tempfile.mkdtemp(prefix="pymp-", dir="/tmp")
        util.Finalize(None, shutil.rmtree, args=(config["tempdir"], True), exitpriority=-100)


def _end(server: Any) -> None:
    """It would wait for all that have its files open: for what a model has forked, or somebody else here."""
    if (pid := server._forkserver_pid) is not None:
        children.end_descendants(pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        server._stop()


@contextlib.contextmanager
def _as_origin() -> Iterator[None]:
    """A process that starts meanwhile knows what it is for, and finds no module in the folder where the run was
    started: the study may be somebody else's."""
    with _starting:
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
