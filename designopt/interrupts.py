"""Requests to stop (Ctrl-C, SIGTERM) that CasADi would lose, and those that end a solver after its iteration.

When CasADi determines the type of an argument, it calls Python code and discards its exceptions: a KeyboardInterrupt
that arrives at that moment is lost, and the program continues.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import signal
import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from types import FrameType, TracebackType
from typing import Any

#: `signal` makes an enumeration of each handler that it passes on, which takes 4 % of a small solve.
get_handler, set_handler = _signal.getsignal, _signal.signal
NUMBERS = (signal.SIGINT, signal.SIGTERM)
#: Delay after which a request that would be lost is repeated (s).
AGAIN = 0.001


class HostHandlers(ContextDecorator):
    """Context manager (and decorator) that calls the handlers of stop requests only when their exception is not lost. A
    request that arrives inside a conversion of CasADi is repeated a moment later.

    It has no effect outside the main thread, which receives no signals, or inside another `HostHandlers`.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}

    def _recreate_cm(self) -> HostHandlers:
        """A new context for each call of the decorated function."""
        return HostHandlers()

    def __enter__(self) -> HostHandlers:
        if threading.current_thread() is threading.main_thread():
            for number in NUMBERS:
                before = get_handler(number)
                if callable(before) and not isinstance(before, _DeferredHandler):
                    self._before[number] = before
                    set_handler(number, _DeferredHandler(before))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            set_handler(number, handler)


Handler = Callable[[int, FrameType | None], Any]


class _DeferredHandler:
    """Calls the host's handler, later if CasADi would lose its exception; or the `receiver` of a solver that runs."""

    def __init__(self, host: Handler) -> None:
        self.host = host
        self.receiver: Handler | None = None
        self._waits = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.receiver is not None:
            self.receiver(number, frame)
        elif not _is_lost(frame):
            self.host(number, frame)
        elif not self._waits:
            self._waits = True
            timer = threading.Timer(AGAIN, self._try_later, (number,))
            timer.daemon = True
            timer.start()

    def _try_later(self, number: int) -> None:
        self._waits = False
        _thread.interrupt_main(signal.Signals(number))


def handler_of_host(handler: Any) -> Any:
    """The handler of a signal that was installed before `HostHandlers`, or by a solver that runs, from the present
    one."""
    return handler.receiver or handler.host if isinstance(handler, _DeferredHandler) else handler


class StopRequests:
    """Receives stop requests while used as a context manager; `is_requested` states whether one has arrived.

    A solver ends after its iteration and keeps its iterate; otherwise CasADi and IPOPT swallow the exception of the
    signal and return the guess.

    It also calls the host's handlers, and raises their exception when the context ends, except the KeyboardInterrupt of
    Python's own handler, which the status of the solution reports. It has no effect outside the main thread, which
    receives no signals, or for a SIGTERM without a handler.
    """

    def __init__(self) -> None:
        self.is_requested = False
        self._host_error: BaseException | None = None
        self._before: dict[int, Any] = {}

    @staticmethod
    def possible() -> bool:
        """Whether this thread receives signals."""
        return threading.current_thread() is threading.main_thread()

    def __enter__(self) -> StopRequests:
        if self.possible():
            for number in NUMBERS:
                before = get_handler(number)
                if callable(before):
                    self._before[number] = before, handler_of_host(before)
                if isinstance(before, _DeferredHandler):
                    before.receiver = self._receive
                elif callable(before):
                    set_handler(number, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, (handler, host) in self._before.items():
            if isinstance(handler, _DeferredHandler):
                handler.receiver = None if host is handler.host else host
            else:
                set_handler(number, handler)
        if error is None and self._host_error is not None:
            raise self._host_error

    def _receive(self, number: int, frame: FrameType | None) -> None:
        _, host = self._before[number]
        if host is signal.default_int_handler:
            self.is_requested = True
            return
        try:
            host(number, frame)
        except BaseException as error:  # it must not pass through the solver, which would swallow it
            self.is_requested, self._host_error = True, error


def _is_lost(frame: FrameType | None) -> bool:
    """Whether CasADi loses an exception raised in `frame`: CasADi's own code has called it, outside the evaluation of a
    function (which does end)."""
    if frame is None or (_is_casadi(frame) and frame.f_code.co_name == "call"):
        return False
    above = frame.f_back
    while above is not None and not _is_casadi(above):
        above = above.f_back
    return above is not None


def _is_casadi(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "casadi"
