"""A request to stop (Ctrl-C, SIGTERM) while the solver works: it ends after its iteration and keeps what it has.

Left to themselves, CasADi and IPOPT swallow the exception that a signal raises and give back the guess.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from designopt.interrupts import NUMBERS, handler_of_host
from designopt.lazy import casadi as ca


class Stopping:
    """Receives requests to stop while it is used as a context manager; `requested` says whether one came.

    The handlers of the host are called too. What they raise is kept as `raised` and left to the caller, except for the
    KeyboardInterrupt of Python's own handler, which is answered by the status of the solution. Outside the main thread
    no signal arrives, and nothing is done; so it is with a SIGTERM that nobody handles.
    """

    def __init__(self) -> None:
        self.requested = False
        self.raised: BaseException | None = None
        self._before: dict[int, Any] = {}

    @staticmethod
    def possible() -> bool:
        """Whether signals arrive in this thread."""
        return threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Stopping:
        if self.possible():
            for number in NUMBERS:
                before = signal.getsignal(number)
                if callable(before):
                    self._before[number] = before, handler_of_host(number)
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
    """A callback for the solver of a program with (variables, rows, parameters), called after every iteration.

    Give it a `Stopping` as its attribute `stopping` while the solver runs.
    """
    n, m, p = sizes
    counts = {"f": 1, "x": n, "lam_x": n, "g": m, "lam_g": m, "lam_p": p}

    class Watcher(ca.Callback):
        stopping: Stopping | None = None

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

        def eval_buffer(self, given: Any, results: Any) -> int:
            stop = self.stopping is not None and self.stopping.requested
            memoryview(results[0]).cast("d")[0] = float(stop)
            return 0

    return Watcher()
