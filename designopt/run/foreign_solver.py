"""Solvers from outside designopt run in a thread of their own: if one catches everything or hangs, only it is lost.

Its requests are executed by the thread of the run, which owns the store and receives the signals; the solver's own code
is executed by its thread alone.
"""

from __future__ import annotations

import contextvars
import ctypes
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from designopt.arrays import Floats
from designopt.problem import AFTER_END, EndIgnored, Evaluate, Outcomes, SolvedPrograms, StageEnded
from designopt.run.progress import duration
from designopt.run.stage import StageRun
from designopt.store.errors import RunError
from designopt.workers.starter import SOLVER_THREAD

#: Interval between checks for a stop request and the end of the stage's time, while the solver computes (s).
CHECK_INTERVAL = 0.2
#: Time for a solver to return after the end of its stage, or to request after the stage's time (s).
PATIENCE = 60.0
#: Time without a request after which a note names the solver (s).
SILENCE = 600.0


@dataclass(frozen=True)
class _TaskEnd:
    """The end of a task of the other thread: its value, or the exception that it has raised."""

    value: Any = None
    error: BaseException | None = None

    def result(self) -> Any:
        """The value. Raises the exception."""
        if self.error is not None:
            raise self.error
        return self.value


_Task = Callable[[], Any]
_Messages = queue.SimpleQueue["_Task | _TaskEnd"]


def _return_message(task: _Task) -> _TaskEnd:
    try:
        return _TaskEnd(task())
    except BaseException as error:
        return _TaskEnd(error=error)


class ForeignSolver:
    """Runs the solver of a stage in its thread, on behalf of the thread that calls `solve`."""

    def __init__(self, run: StageRun) -> None:
        self._run = run
        self._to_run: _Messages = queue.SimpleQueue()
        self._to_solver: _Messages = queue.SimpleQueue()
        self._end: BaseException | None = None
        self._requests_after_end = 0
        self._is_abandoned = False
        self._left_in_call = False

    def solve(self, solve: Callable[[Evaluate], str | None]) -> str | None:
        """The reason that `solve` returns. Raises what it raises; `EndIgnored` for a solver that goes on after the end
        of its stage, `StageEnded` for one that hangs beyond its time, and `Interrupted` on a stop request."""
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=lambda: self._to_run.put(_return_message(lambda: context.run(solve, _Requests(self)))),
            name=SOLVER_THREAD,
            daemon=True,
        )
        self._thread.start()
        try:
            answer = self._execute_until_returned()
        except BaseException:
            self._abandon()
            raise
        self._thread.join()
        reason: str | None = answer.result()
        return reason

    # ----------------------------------------------------------------------------------------- in the thread of the run

    def _execute_until_returned(self) -> _TaskEnd:
        """Execute requests of the solver until the task in its thread has returned."""
        while True:
            message = self._next_message()
            if isinstance(message, _TaskEnd):
                return message
            self._to_solver.put(self._answer(message))

    def _answer(self, task: _Task) -> _TaskEnd:
        """The result of a request, or the exception for the solver."""
        if self._requests_after_end > AFTER_END:
            text = (
                f"the solver '{self._run.stage.solver.plugin.name}' goes on after StageEnded: it must not catch what "
                "evaluate raises"
            )
            error = EndIgnored(text) if isinstance(self._end, StageEnded) else self._end
            assert error is not None
            if self._requests_after_end > 2 * AFTER_END:
                raise error
            self._requests_after_end += 1
            return _TaskEnd(error=error)
        answer = _return_message(task)
        if self._left_in_call and answer.error is not None:
            raise answer.error
        if isinstance(answer.error, (StageEnded, RunError, OSError)) or not isinstance(answer.error, Exception | None):
            self._end = answer.error
            self._requests_after_end += 1
        return answer

    def _next_message(self) -> _Task | _TaskEnd:
        """The next message of the solver; waits while it computes."""
        began = time.monotonic()
        deadline, is_named = None, False
        while True:
            try:
                return self._to_run.get(timeout=CHECK_INTERVAL)
            except queue.Empty:
                pass
            self._run.dispatcher.check()
            time_now = time.monotonic()
            if not is_named and time_now - began > SILENCE:
                is_named = True
                text = f"its solver has requested nothing for {duration(SILENCE)}; Ctrl-C ends the run"
                self._run.note("solver", text)
            if deadline is None and (self._end is not None or self._run.out_of_time()):
                deadline = time_now + PATIENCE
            if deadline is not None and time_now > deadline:
                self._run.end_without_solver(duration(PATIENCE), has_ended=self._end is not None)
                raise StageEnded

    def call(self, task: _Task) -> Any:
        """The result of a function of the solver, such as the `ask` of `Evaluate.ahead`, in its thread."""
        self._to_solver.put(task)
        try:
            answer = self._execute_until_returned()
        except BaseException:
            self._left_in_call = True  # the solver computes there and waits for no answer
            raise
        return answer.result()

    def _abandon(self) -> None:
        """Leave the thread: it ends with an exception, or waits for ever if it catches all of them."""
        self._is_abandoned = True
        self._thread.name = f"{SOLVER_THREAD}-lost"  # it may hold locks
        self._to_solver.put(_TaskEnd(error=EndIgnored("the run has ended")))
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(self._thread.ident or 0), ctypes.py_object(EndIgnored)
        )

    # -------------------------------------------------------------------------------------- in the thread of the solver

    def request(self, task: _Task) -> Any:
        """The result of `task`, executed by the thread of the run."""
        if self._is_abandoned:
            self._refuse()
        self._to_run.put(task)
        while True:
            message = self._to_solver.get()
            if isinstance(message, _TaskEnd):
                return message.result()
            self._to_run.put(_return_message(message))

    def _refuse(self) -> NoReturn:
        """The answer to a request after the end of the run. Does not return to a solver that catches all."""
        self._requests_after_end += 1
        if self._requests_after_end > 3 * AFTER_END:
            threading.Event().wait()
        raise EndIgnored("the run has ended")


class _Requests:
    """The `Evaluate` of the solver."""

    def __init__(self, thread: ForeignSolver) -> None:
        self._thread = thread
        self._run = thread._run

    def __call__(self, X: Floats) -> Outcomes:
        outcomes: Outcomes = self._thread.request(lambda: self._run(X))
        return outcomes

    def ahead(self, ask: Callable[[], Floats], tell: Callable[[Outcomes], None], look_ahead: int) -> None:
        """See `Evaluate`."""
        call = self._thread.call
        self._thread.request(
            lambda: self._run.ahead(lambda: call(ask), lambda outcomes: call(lambda: tell(outcomes)), look_ahead)
        )

    def programs(self, X: Floats, chains: Sequence[int], seeds: Sequence[int]) -> SolvedPrograms:
        """See `Evaluate`."""
        programs: SolvedPrograms = self._thread.request(lambda: self._run.programs(X, chains, seeds))
        return programs

    def cheap(self, X: Floats) -> Outcomes:
        """See `Evaluate`."""
        outcomes: Outcomes = self._thread.request(lambda: self._run.cheap(X))
        return outcomes

    def note(self, kind: str, text: str) -> None:
        """See `Evaluate`."""
        self._thread.request(lambda: self._run.note(kind, text))
