"""A clock that only models move."""

import functools
import sys
import threading
import time

import pytest


@pytest.fixture
def clock(monkeypatch):
    """Time in this thread goes on with the pauses of models, and by 0.1 ms with each look at it: how busy the machine
    is plays no part in what a run does within a limit."""
    now, me = time.monotonic(), threading.get_ident()

    def look(others):
        nonlocal now
        if threading.get_ident() != me:
            return others()
        now += 1e-4
        return now

    def pause(seconds, others=time.sleep):
        nonlocal now
        if threading.get_ident() == me and sys._getframe(1).f_globals["__name__"].startswith("designopt_plugin_"):
            now += seconds
        else:
            others(seconds)

    for name in ("monotonic", "perf_counter"):
        monkeypatch.setattr(time, name, functools.partial(look, getattr(time, name)))
    monkeypatch.setattr(time, "sleep", pause)
