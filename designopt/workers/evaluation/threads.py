"""Threads of linear algebra in this process while it evaluates."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from designopt.lazy import threadpoolctl

#: What libraries read when they are loaded; nannies set them for workers.
_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread, as workers have it: the last digits of a product depend on the number of threads.

    Holds for the libraries that are loaded, and by the environment for those that an evaluation loads.
    """
    before = {name: os.environ.get(name) for name in _VARIABLES}
    os.environ.update(dict.fromkeys(_VARIABLES, "1"))
    try:
        with threadpoolctl.threadpool_limits(limits=1):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
