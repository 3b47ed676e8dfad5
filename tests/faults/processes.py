"""Processes of runs: who they are, and how they are killed."""

import contextlib
import os
import signal
import time
from pathlib import Path


def stat(pid):
    """Parent, group and state of a process; None when it is gone."""
    try:
        state, parent, group = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:3]
    except (OSError, ValueError):
        return None
    return int(parent), int(group), state


def children(parent, word=b""):
    """Processes that `parent` has started and whose command has `word` in it."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (about := stat(entry.name)) and about[0] == parent and about[2] not in "ZX":
            with contextlib.suppress(OSError):
                if word in (entry / "cmdline").read_bytes():
                    pids.append(int(entry.name))
    return pids


def workers(coordinator):
    """Worker processes of a run on local workers."""
    return [pid for origin in children(coordinator, b"forkserver") for pid in children(origin)]


def kill(pid):
    """SIGKILL; whether there was somebody."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition, seconds=120.0, what="it"):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen in {seconds:g} s"
        time.sleep(0.02)
