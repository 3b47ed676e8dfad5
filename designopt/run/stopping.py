"""Ctrl-C and SIGTERM: the first ends the run in order, the second cancels what is in flight, the third leaves."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any


class Break(KeyboardInterrupt):
    """The second request to stop: unlike a KeyboardInterrupt of a model, it is no result of an evaluation."""


class Signals:
    """Counts the user's requests to stop while it is used as a context manager (in the main thread only)."""

    def __init__(self) -> None:
        self.count = 0
        self.since = 0.0
        self.breakable = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.count == 1:
            self.since = time.monotonic()
        elif self.count == 2 and self.breakable:
            raise Break
        elif self.count >= 3:
            sys.stderr.flush()
            os._exit(130)
