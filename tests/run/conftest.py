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
    time_now, me = time.monotonic(), threading.get_ident()

    def look(original):
        nonlocal time_now
        if threading.get_ident() != me:
            return original()
        time_now += 1e-4
        return time_now

    def pause(seconds, original=time.sleep):
        nonlocal time_now
        if threading.get_ident() == me and sys._getframe(1).f_globals["__name__"].startswith("designopt_plugin_"):
            time_now += seconds
        else:
            original(seconds)

    for name in ("monotonic", "perf_counter"):
        monkeypatch.setattr(time, name, functools.partial(look, getattr(time, name)))
    monkeypatch.setattr(time, "sleep", pause)
