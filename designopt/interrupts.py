"""Requests to stop (Ctrl-C, SIGTERM) that CasADi would lose.

Where CasADi finds out what an argument is, it calls Python code and drops what that raises: a KeyboardInterrupt that
arrives just then vanishes, and the program goes on.
"""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from types import FrameType, TracebackType
from typing import Any

NUMBERS = (signal.SIGINT, signal.SIGTERM)
#: A request that would be lost is made again after so many seconds.
AGAIN = 0.001


class Kept(ContextDecorator):
    """While this context manager (or decorator) is active, the handlers of requests to stop are called where what they
    raise is not lost: one that arrives inside a conversion of CasADi is made again a moment later.

    Outside the main thread, where no signal arrives, it does nothing; nor does it inside another one.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}

    def _recreate_cm(self) -> Kept:
        """One for each call of a function that it decorates."""
        return Kept()

    def __enter__(self) -> Kept:
        if threading.current_thread() is threading.main_thread():
            for number in NUMBERS:
                before = signal.getsignal(number)
                if callable(before) and before is handler_of_host(number):
                    self._before[number] = before
                    signal.signal(number, _Deferring(before))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


class _Deferring:
    """Calls the handler of the host, later where CasADi would lose what it raises."""

    def __init__(self, host: Callable[[int, FrameType | None], Any]) -> None:
        self.host = host
        self._waits = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not _is_lost(frame):
            self.host(number, frame)
        elif not self._waits:
            self._waits = True
            timer = threading.Timer(AGAIN, self._again, (number,))
            timer.daemon = True
            timer.start()

    def _again(self, number: int) -> None:
        self._waits = False
        _thread.interrupt_main(signal.Signals(number))


def handler_of_host(number: int) -> Any:
    """The handler of the signal `number` without what `Kept` puts before it."""
    found = signal.getsignal(number)
    return found.host if isinstance(found, _Deferring) else found


def _is_lost(frame: FrameType | None) -> bool:
    """Whether CasADi loses what is raised in `frame`: it was called from CasADi's own code, which is not that of a
    function's evaluation: this one ends."""
    if frame is None or (_is_casadi(frame) and frame.f_code.co_name == "call"):
        return False
    above = frame.f_back
    while above is not None and not _is_casadi(above):
        above = above.f_back
    return above is not None


def _is_casadi(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "casadi"
