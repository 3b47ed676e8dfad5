"""Threads of linear algebra in this process during evaluations: one, as on workers.

The last digits of a product depend on the number of threads.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from designopt.lazy import threadpoolctl

#: Variables that libraries read when they are loaded; nannies set them for workers.
_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for loaded libraries."""
    several = [(library, before) for library in _libraries(len(sys.modules)) if (before := library.num_threads) != 1]
    for library, _ in several:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, number in several:
            library.set_num_threads(number)


@contextmanager
def one_thread_when_loaded() -> Iterator[None]:
    """One thread for libraries loaded inside this context, through the environment."""
    before = {name: os.environ.get(name) for name in _VARIABLES}
    os.environ.update(dict.fromkeys(_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@functools.lru_cache(maxsize=1)
def _libraries(modules: int) -> list[Any]:
    """The loaded libraries. The search takes a millisecond and runs only after new modules were loaded."""
    return list(threadpoolctl.ThreadpoolController().lib_controllers)
