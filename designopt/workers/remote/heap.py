"""Heap of a worker: freed memory is kept for the next evaluation instead of returned to the system.

The C library of Linux returns arrays of some megabytes to the system when they are freed, and the system zeroes every
page of the next ones. Evaluations that repeatedly allocate such arrays spend up to half of their time on this, and more
with several workers at once.
"""

from __future__ import annotations

import ctypes
import sys

#: Parameters of `mallopt` (mallopt(3)): size from which a block is mapped separately, and free memory kept at the end
#: of the heap.
MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1
#: Bytes of both: the largest value accepted by every version, and the memory a worker may keep unused.
BLOCK, KEPT = 32 * 2**20, 256 * 2**20


def keep_freed_memory() -> bool:
    """Keep blocks up to 32 MiB, and 256 MiB at most, in this process; False if the C library has no such setting."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        setting = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(setting(MMAP_THRESHOLD, BLOCK) and setting(TRIM_THRESHOLD, KEPT))
