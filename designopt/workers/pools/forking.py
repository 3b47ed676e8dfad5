"""Where local workers come from: one process loads what all of them need, and they are forked from it.

A worker that starts from nothing spends half a second and more on its imports; one that is forked is up after a tenth
of that, also when it takes the place of a dead one, and shares their memory.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
from collections.abc import Iterator
from typing import Any

import dask

from designopt.workers.remote.origin import ORIGIN, SAFE_PATH

#: What every worker needs, ...
NEEDED = (
    "designopt.workers.remote.origin",
    "distributed.nanny",
    "distributed.worker",
    "designopt.workers.evaluation.programs",
    "designopt.workers.remote.dask_worker",
)
#: ... and what those of this problem need if this process needed it to read the study.
HEAVY = ("casadi", "scipy.sparse", "scipy.interpolate", "scipy.optimize")


@contextlib.contextmanager
def forked() -> Iterator[None]:
    """Workers that start meanwhile are forked from a process of their own, which ends with this context.

    It has the environment of now, so it serves one run. Where there is no such thing, or this process uses one for
    purposes of its own, each worker starts from nothing.
    """
    if not sys.platform.startswith("linux") or _in_use():
        yield
        return
    from multiprocessing import forkserver

    from distributed import utils

    context: Any = multiprocessing.get_context("forkserver")
    for name, value in dask.config.get("distributed.nanny.pre-spawn-environ").items():
        if value is not None:
            os.environ.setdefault(name, str(value))
    if os.environ.get("PYTHONHASHSEED") in (None, "0"):
        os.environ["PYTHONHASHSEED"] = "6640"  # as Dask's nannies do: sets have one order in all workers
    utils._forkserver_preload_set = True  # Dask's own list has all packages that it could work with
    context.set_forkserver_preload([*NEEDED, *(name for name in HEAVY if name in sys.modules)])
    with _as_origin():
        forkserver.ensure_running()
    try:
        with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
            yield
    finally:
        context.set_forkserver_preload([])
        forkserver._forkserver._stop()  # type: ignore[attr-defined]


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

    return forkserver._forkserver._forkserver_pid is not None  # type: ignore[attr-defined]
