"""The heap of a worker: what an evaluation frees stays for the next one, instead of going back to the system.

The C library of Linux gives arrays of some megabytes back when they are freed, and the system zeroes every page of the
next ones. Evaluations that make such arrays over and over wait for that up to half of their time, and longer where
several workers do so at once.
"""

from __future__ import annotations

import ctypes
import sys

#: Parameters of `mallopt` (mallopt(3)): from which size a block is the system's own, and how much free memory at the
#: end of the heap is kept.
MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1
#: Bytes of both: the largest that every version takes, and what a worker may keep for nothing.
BLOCK, KEPT = 32 * 2**20, 256 * 2**20


def keep_freed_memory() -> bool:
    """Keep blocks up to 32 MiB, and 256 MiB at most, in this process; False where the C library has no such setting."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        setting = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(setting(MMAP_THRESHOLD, BLOCK) and setting(TRIM_THRESHOLD, KEPT))
