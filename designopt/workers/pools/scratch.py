"""Dask's temporary files in this process and its local workers: in a folder of the run, removed with it."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from designopt.workers.supervision.children import OrphanGuard
from designopt.workers.supervision.watch import folder


@contextlib.contextmanager
def scratch_folder(run: str) -> Iterator[Path]:
    """A folder for Dask's setting ``temporary-directory`` during `run`; by default Dask leaves one behind.

    If this process is killed, a shell removes it, with the remains of the run's workers on this machine.
    """
    guard = OrphanGuard(run)
    scratch = folder(run, "dask")
    try:
        scratch.mkdir(mode=0o700)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        sys.path[:] = [entry for entry in sys.path if not entry.startswith(str(scratch))]  # added by Dask
        guard.close()
