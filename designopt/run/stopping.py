"""Stop requests (Ctrl-C, SIGTERM and similar): the first ends the run in order, the second cancels pending work, the
third exits. A closed terminal (SIGHUP) and used-up processor time (SIGXCPU) count as requests.

In a job of a batch system the end of the allotted time is available, and the run stops by itself before it.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from designopt.store.disk.lock import process_start
from designopt.workers.executor import Break

#: Signals that request a stop, as far as the system has them.
STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGXCPU") if hasattr(signal, name))


#: Interval (s) within which signals of one kind are one request: timeout(1) and batch systems signal a process and its
#: group.
SAME_REQUEST = 0.1
#: Time for a run to end before the request is acknowledged (s).
ACKNOWLEDGED = 0.3


class Signals:
    """Counts the user's stop requests while used as a context manager (in the main thread only).

    If the first one does not end the run at once, `acknowledge` is called in another thread; `patience` (s) after it,
    `Break` ends an evaluation in the main thread.
    """

    def __init__(self) -> None:
        self.count = 0
        self.since = 0.0
        self.breakable = False
        self.patience = math.inf
        self.acknowledge: Callable[[], None] = lambda: None
        self._has_ended = threading.Event()
        self._out_of_patience = False
        self._before: dict[int, Any] = {}
        self._last = 0, -SAME_REQUEST

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING:
                if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:  # such as under nohup
                    self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._has_ended.set()
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        time_now = time.monotonic()
        if self._out_of_patience:
            self._out_of_patience = False
            if self.breakable:
                raise Break
            return
        if number == self._last[0] and time_now - self._last[1] < SAME_REQUEST:
            return
        self._last = number, time_now
        self.count += 1
        if self.count == 1:
            self.since = time_now
            if hasattr(signal, "pthread_kill"):
                arguments = number, threading.get_ident()
                threading.Thread(target=self._limit_evaluation, args=arguments, daemon=True).start()
        elif self.count == 2 and self.breakable:
            raise Break
        elif self.count >= 3:
            sys.stderr.flush()
            os._exit(130)

    def _limit_evaluation(self, number: int, main_thread: int) -> None:
        """Acknowledge the request, and repeat its signal after `patience`: it also interrupts a wait for a program."""
        if not self._has_ended.wait(min(ACKNOWLEDGED, self.patience)):
            self.acknowledge()
        left = min(max(0.0, self.since + self.patience - time.monotonic()), threading.TIMEOUT_MAX)
        if not self._has_ended.wait(left):
            self._out_of_patience = True
            signal.pthread_kill(main_thread, number)


def seconds_allotted(environment: Mapping[str, str] | None = None) -> float | None:
    """Seconds until the batch system ends the job of this process; None outside a job, or if not available.

    SLURM gives the end of the job (SLURM_JOB_END_TIME), PBS its duration (PBS_WALLTIME), counted from the start of the
    process session. An end in the past is ignored, because the job still runs.
    """
    variables = os.environ if environment is None else environment
    left = None
    if "SLURM_JOB_ID" in variables:
        end = _number(variables.get("SLURM_JOB_END_TIME"))
        left = None if end is None else end - time.time()
    elif "PBS_JOBID" in variables:
        wall_time = _number(variables.get("PBS_WALLTIME"))
        left = None if wall_time is None else wall_time - _age(os.getsid(0))
    return left if left is not None and left > 0.0 else None


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _age(pid: int) -> float:
    """Seconds since process `pid` started; 0 if not available."""
    start = process_start(pid)
    try:
        up = float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0
    return max(0.0, up - float(start) / os.sysconf("SC_CLK_TCK")) if start else 0.0
