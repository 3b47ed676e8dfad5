"""Requests to stop (Ctrl-C, SIGTERM) during a solve: the solver ends after its iteration and keeps its iterate.

Otherwise CasADi and IPOPT swallow the exception of the signal and return the guess.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from designopt.evaluation_progress import progress
from designopt.interrupts import NUMBERS, handler_of_host
from designopt.lazy import casadi as ca


class Stopping:
    """Receives stop requests while used as a context manager; `requested` states whether one has arrived.

    The host's handlers are also called. Their exception is kept as `raised` for the caller, except for the
    KeyboardInterrupt of Python's own handler, for which the status of the solution stands. It has no effect outside the
    main thread, which receives no signals, or for a SIGTERM without a handler.
    """

    def __init__(self) -> None:
        self.requested = False
        self.raised: BaseException | None = None
        self._before: dict[int, Any] = {}

    @staticmethod
    def possible() -> bool:
        """Whether this thread receives signals."""
        return threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Stopping:
        if self.possible():
            for number in NUMBERS:
                before = signal.getsignal(number)
                if callable(before):
                    self._before[number] = before, handler_of_host(before)
                    signal.signal(number, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, (handler, _) in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        _, host = self._before[number]
        if host is signal.default_int_handler:
            self.requested = True
            return
        try:
            host(number, frame)
        except BaseException as error:  # it must not pass through the solver, which would swallow it
            self.requested, self.raised = True, error


def watcher(sizes: tuple[int, int, int]) -> Any:
    """A callback for the solver of a program with (variables, rows, parameters), called after every iteration, which it
    reports as progress.

    Set its attributes `stopping` to a `Stopping` and `iterations` to their number so far while the solver runs.
    """
    n, m, p = sizes
    counts = {"f": 1, "x": n, "lam_x": n, "g": m, "lam_g": m, "lam_p": p}

    class Watcher(ca.Callback):
        stopping: Stopping | None = None
        iterations = 0

        def __init__(self) -> None:
            ca.Callback.__init__(self)
            self.construct("watcher", {})

        def get_n_in(self) -> int:
            return int(ca.nlpsol_n_out())

        def get_n_out(self) -> int:
            return 1

        def get_name_in(self, i: int) -> str:
            return str(ca.nlpsol_out(i))

        def get_name_out(self, i: int) -> str:
            return "stop"

        def get_sparsity_in(self, i: int) -> Any:
            return ca.Sparsity.dense(counts[ca.nlpsol_out(i)], 1)

        def has_eval_buffer(self) -> bool:
            return True

        def eval_buffer(self, arguments: Any, results: Any) -> int:
            progress(None, f"iteration {self.iterations}")
            self.iterations += 1
            stop = self.stopping is not None and self.stopping.requested
            memoryview(results[0]).cast("d")[0] = float(stop)
            return 0

    return Watcher()
