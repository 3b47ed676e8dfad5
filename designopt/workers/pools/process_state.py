"""State that a new process inherits from this one."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

#: Lines of /proc/self/status: identity, affinity, ignored signals.
_STATUS = ("Uid", "Gid", "Groups", "Umask", "SigIgn", "Cpus_allowed_list")


def inherited() -> tuple[object, ...]:
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
