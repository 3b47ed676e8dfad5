"""Dispatch of work to an executor and recording of its results, in chunks. `losses` decides on lost work."""

from __future__ import annotations

import json
import logging
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.plugin import PluginError
from designopt.problem import STATUSES, StageEnded, evaluation_seed
from designopt.run.evaluations.ledger import PENDING, Ledger
from designopt.run.evaluations.losses import Losses
from designopt.run.evaluations.work import ChunkSize, Queue, Waiting, Work
from designopt.run.failures import FIX, Attempts, FailurePolicy
from designopt.run.progress import STOPPED, Progress
from designopt.run.stopping import Signals, seconds_allotted
from designopt.store.disk.arrays import write_arrays
from designopt.store.errors import FailurePolicyStop, Interrupted, WorkersError, reading
from designopt.store.folder import Store
from designopt.store.progress_note import ProgressNote, Reported
from designopt.store.result import Result
from designopt.study.study import Execution, StudyDefinition
from designopt.workers.ask_tell import AskTellExecutor
from designopt.workers.executor import Break, Chunk, ChunkResult, Completion, Executor, Loss

logger = logging.getLogger(__name__)

#: Maximum characters of printed output recorded per session.
LONGEST_OUTPUT = 64 * 2**20


class Dispatcher:
    """All evaluations pass through the dispatcher. `start` makes the executor when there is something to compute."""

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        execution: Execution,
        start: Callable[[int], Executor],
        signals: Signals,
        progress: Progress,
    ) -> None:
        self.store = store
        self.journal = store.journal
        self.ledger = ledger
        self.execution = execution
        self.signals = signals
        self.progress = progress
        self._printed_length = 0
        self.best = np.full(len(ledger.problem.objectives), np.inf)
        self._start = start
        self._executor: Executor | None = None
        self._session_description = ("", 0)
        self._chunks = 0
        self._size = ChunkSize(ledger.problem.model.plugin.batch_size, execution.timeout)
        #: Each chunk in flight runs the program of the model at most once at a time.
        self._at_most = min(execution.at_most.values(), default=sys.maxsize)
        self._flight: dict[int, Work] = {}
        self._failures = FailurePolicy(execution, ledger.problem.space)
        with reading(store.path):
            attempts = Attempts(execution.retries, self.journal.attempts(), execution.retry)
            #: Evaluations of all sessions, and those without a result.
            self.evaluations, recorded_failures = self.journal.count_evaluations(), list(self.journal.failures())
            self.failures = len(recorded_failures)
            self._failures.recall(self.evaluations, ledger.designs, recorded_failures)
        self._losses = Losses(attempts, ledger, self.journal, self.event)
        self._policy: str | None = None
        self._patience = signals.patience = execution.grace
        grace = f"evaluations in progress have {execution.grace:g} s to end; a second request drops them"
        signals.acknowledge = lambda: progress.event("stopping", grace)
        time_limit = seconds_allotted()
        self._leave_at = np.inf if time_limit is None else time.monotonic() + time_limit - execution.grace
        self._job_ends = False
        self._tick: Callable[[], None] = lambda: None
        self._unflushed_seconds, self._flush_time = 0.0, -np.inf
        self._running = ProgressNote(store.path)
        self._frozen = False

    # ---------------------------------------------------------------------------------------------------- loop

    def run(
        self,
        source: Iterator[Work | None],
        evaluations: int,
        *,
        arrays: tuple[str, ...] = (),
        time_left: Callable[[], float] | None = None,
        tick: Callable[[], None] = lambda: None,
        flush_after: float = 0.0,
    ) -> None:
        """Evaluate and record all work of `source` (about `evaluations` evaluations).

        Returns when all is recorded: it survives the end of this process, and, except for results that took less than
        `flush_after` seconds and arrived within that time, the end of the machine. A source that returns None is called
        again after results. Raises `StageEnded` when `time_left` runs out with work left, `Interrupted`,
        `FailurePolicyStop`, or `StoreError`; completed results are recorded. `tick` is called in between.
        """
        queue = Queue(self._unknown(source, arrays), evaluations)
        self._tick = tick
        out_of_time = False
        while True:
            stopping = self._stop_requested()
            if not stopping and not out_of_time:
                out_of_time = not self._fill(queue, arrays, time_left)
            if not self._flight:
                if stopping:
                    self._raise_stop()
                self._commit(flush_after if queue.exhausted and not out_of_time else 0.0)
                if out_of_time:
                    raise StageEnded
                if queue.exhausted:
                    return
                tick()
                time.sleep(queue.pause())
                continue
            if stopping and self._give_up():
                self._drop()
                continue
            for completion in self._wait():
                self._receive(completion, queue)
            self._tell_notices()
            self._commit(flush_after)
            tick()

    def _commit(self, flush_after: float) -> None:
        """Record everything, and wait for the disk if results took `flush_after` seconds, or that time has passed since
        the last wait."""
        time_now = time.monotonic()
        flush = max(self._unflushed_seconds, time_now - self._flush_time) >= flush_after
        self.journal.commit(flush=flush)
        if flush:
            self._unflushed_seconds, self._flush_time = 0.0, time_now

    def _unknown(self, source: Iterator[Work | None], arrays: tuple[str, ...]) -> Iterator[Work | None]:
        """The work of `source` to be computed, with `arrays`."""
        return source

    def check(self) -> None:
        """Raise if the run has been asked to stop."""
        if self._stop_requested():
            self._raise_stop()

    def running(self) -> tuple[Reported, ...]:
        """Evaluations that report progress. Also written to the store."""
        advances = []
        for advance in self._executor.advances() if self._executor is not None else ():
            work = self._flight.get(advance.chunk)
            if work is not None and 0 <= advance.position < len(work):
                share = None if math.isnan(advance.share) else advance.share
                advances.append((int(work.designs[advance.position]), share, advance.words))
        self._running.note(advances)
        return tuple(advances)

    def result(self, study: StudyDefinition) -> Result:
        """The result of the run so far, of `study`, without reading what this process has recorded."""
        return replace(Result.open(self.store.path, study), contents=self.ledger.contents())

    def close(self) -> None:
        """End the executor."""
        self._running.note([])
        if self._executor is not None:
            self._executor.close()
            self._executor = None

    def _fill(self, queue: Queue, arrays: tuple[str, ...], time_left: Callable[[], float] | None) -> bool:
        """Send chunks while there is room; False if there is work but no time left for it."""
        while self._executor is None or len(self._flight) < min(self._executor.slots, self._at_most):
            executor = self._executor
            slots, target, shortest = (
                (min(executor.slots, self._at_most), executor.target, executor.shortest) if executor else (1, 0.0, 0.0)
            )
            work = queue.draw(self._size.choose(target, shortest, queue.left(), slots, queue.total()))
            if work is None:
                return True
            if time_left is not None and time_left() <= 0.0:
                return False
            if self._executor is None:
                self._executor = self._start_executor(queue.left() + len(work))
            self._chunks += 1
            self._flight[self._chunks] = work
            programs = work.kind == "program"
            seeds = self._seeds(work)
            cheap, left = work.kind == "cheap", queue.left()
            chunk = Chunk(self._chunks, work.X, self._scenarios(work), arrays, seeds, work.alone, programs, cheap, left)
            self._executor.submit(chunk)
            self._describe()
        return True

    def _scenarios(self, work: Work) -> NDArray[np.int32]:
        """The scenarios by the numbers of the workers: those of the validation follow the study's own."""
        problem = self.ledger.problem
        if work.kind == "neighbour":
            return np.asarray(work.numbers % len(problem.without_shifts.scenarios), np.int32)
        return work.numbers + len(problem.scenarios) if work.kind == "validation" else work.numbers

    def _seeds(self, work: Work) -> tuple[int, ...]:
        if work.chain:
            return work.seeds
        if not self.ledger.problem.model.plugin.takes_rng:
            return ()
        return tuple(evaluation_seed(key, self.ledger.problem.seed or 0) for key in work.keys)

    def _start_executor(self, evaluations: int) -> Executor:
        try:
            executor = self._start(evaluations)
        except PluginError as error:
            raise WorkersError(str(error), self.store.path) from error
        executor.listen(lambda: self._tick())
        return executor

    def _describe(self) -> None:
        """Record the executor at work (it may change during the run)."""
        assert self._executor is not None
        description = (self._executor.name, self._executor.workers)
        if description != self._session_description:
            if description[0] != self._session_description[0]:
                self.progress.event(
                    "run", _workplace(self.store.path, *description, is_change=bool(self._session_description[0]))
                )
            self._session_description = description
            self.journal.describe_session(*description)

    def _wait(self) -> list[Completion]:
        assert self._executor is not None
        if isinstance(self._executor, AskTellExecutor):
            self.journal.commit()
            raise Waiting(tuple(self._flight.values()))
        self.signals.breakable = True
        try:
            if self.signals.count >= 2:
                return []
            return list(self._executor.wait(0.2))
        except Break:
            return []
        except PluginError as error:
            raise WorkersError(str(error), self.store.path) from error
        finally:
            self.signals.breakable = False

    def _tell_notices(self) -> None:
        assert self._executor is not None
        for kind, text in self._executor.notices():
            self.event(kind, text)

    def event(self, kind: str, text: str) -> None:
        """Record and show an event."""
        self.journal.add_event(kind, text)
        logger.info("%s: %s", kind, text)
        self.progress.event(kind, text)

    # ---------------------------------------------------------------------------------------------------- ends

    def _stop_requested(self) -> bool:
        if time.monotonic() >= self._leave_at and not self.signals.count:
            self._leave_at = np.inf
            self._job_ends = True
            self._patience = self.execution.grace / 2.0  # the other half is for the end of the workers
            self.signals.count, self.signals.since = 1, time.monotonic()
            self.event("job_ends", f"the batch job has {self.execution.grace:g} s left: the run stops")
        return self.signals.count > 0 or self._policy is not None

    def _give_up(self) -> bool:
        """Whether the grace period of pending work after a stop request is over."""
        if self._policy is not None and not self.signals.count:
            self.signals.since = self.signals.since or time.monotonic()
        return self.signals.count >= 2 or time.monotonic() - self.signals.since > self._patience

    def _drop(self) -> None:
        assert self._executor is not None
        self._executor.cancel()
        self._flight.clear()

    def _raise_stop(self) -> None:
        self.journal.commit()
        path = self.store.path
        if self._policy is not None and not self.signals.count:
            error = FailurePolicyStop("", path)
            advice = "continue anyway with" if FIX in self._policy else "continue with"
            error.args = (f"{self._policy}\n{advice}: {error.resume}",)
            raise error
        stop = Interrupted("", path)
        why = "the batch job ends" if self._job_ends else "interrupted"
        stop.args = (f"{why}; finished evaluations are recorded\ncontinue with: {stop.resume}",)
        raise stop

    # ------------------------------------------------------------------------------------------------- returns

    def _receive(self, completion: Completion, queue: Queue) -> None:
        work = self._flight.pop(completion.chunk.number, None)
        if work is None:
            return
        if isinstance(completion.outcome, Loss):
            self._unflushed_seconds = np.inf
            final = self._losses.repeat_or_end(work, completion.outcome, completion.worker, queue)
            if final is not None:
                self._record(*final, completion.worker)
        else:
            seconds = float(completion.outcome.wall.sum())
            self._unflushed_seconds += seconds
            if not work.chain:
                self._size.learn(seconds, len(work))
            work, result = self._losses.final(work, completion.outcome, completion.worker, queue)
            self._record(work, result, completion.worker)

    def _record(self, work: Work, result: ChunkResult, worker: str) -> None:
        """Record the results of a chunk in ledger and journal."""
        self._keep_prints(work, result)
        arrays_by_key = {work.keys[i]: a for i, a in result.arrays.items()}
        arrays = write_arrays(self.store.path, arrays_by_key) if arrays_by_key else {}
        is_new = self.ledger.status[work.slots] == PENDING
        if not is_new.all():
            self._compare(work, result, worker, ~is_new)
            new = np.flatnonzero(is_new).tolist()
            work, result = work.take(new), result.take(new)
        n, texts = len(work), _json(result.names, result.values)
        end_time, kind, session = time.time(), work.kind, self.journal.session
        reasons = [result.messages.get(i, ("", "", "")) for i in range(len(work))] if result.messages else None
        names = [STATUSES[status] for status in result.status.tolist()]
        columns = zip(
            work.keys,
            repeat(kind, n),
            work.designs.tolist(),
            work.numbers.tolist(),
            names,
            [reason or None for reason, _, _ in reasons] if reasons else repeat(None, n),
            texts,
            [message or None for _, message, _ in reasons] if reasons else repeat(None, n),
            result.wall.tolist(),
            result.cpu.tolist(),
            map(self._losses.attempt_number, work.keys, names) if self._losses.attempts else repeat(1, n),
            repeat(session, n),
            repeat(worker, n),
            repeat(end_time, n),
            [arrays.get(key) for key in work.keys] if arrays else repeat(None, n),
            strict=True,
        )
        self.journal.add_evaluations(columns)
        for key, reference in arrays.items() if n < len(is_new) else ():
            self.journal.set_arrays(key, reference)
        self.ledger.record(work, result)
        self.evaluations += n
        self.failures += n - names.count("ok") - names.count("invalid")
        if kind == "neighbour":  # its failures concern tolerances, and do not end the run
            return
        ending = self._failures.note(work.X, result.status, result.messages)
        if ending:
            self._stop_because(ending)

    def _keep_prints(self, work: Work, result: ChunkResult) -> None:
        for i, text in result.prints.items():
            if self._printed_length < LONGEST_OUTPUT:
                self._printed_length += len(text)
                self.journal.add_printed(work.keys[i], text)
                if self._printed_length >= LONGEST_OUTPUT:
                    size = f"{LONGEST_OUTPUT >> 20} MB"
                    self.event("prints", f"output of evaluations is no longer kept: it has reached {size}")

    def _compare(self, work: Work, result: ChunkResult, worker: str, is_repeated: NDArray[np.bool_]) -> None:
        """A second result for a known key must equal the first."""
        for i in np.flatnonzero(is_repeated).tolist():
            slot = work.slots[i]
            columns = self.ledger.columns
            recorded_figures = [
                self.ledger.figures[slot, columns[name]] if name in columns else np.nan for name in result.names
            ]
            is_equal = np.array_equal(recorded_figures, result.values[i], equal_nan=True)
            if not is_equal or result.status[i] != self.ledger.status[slot]:
                first = self.journal.evaluation(work.keys[i], "worker")
                self.event(
                    "nondeterministic_model",
                    f"design {work.designs[i]} has other results on worker {worker} than on worker "
                    f"{first[0] if first else '?'}; the model's results depend on more than design and scenario",
                )
                number, _ = self._losses.attempts.add(work.keys[i], "different")
                detail = json.dumps(result.values[i].tolist())
                self.journal.add_attempt(work.keys[i], number + 1, worker, "different", detail)

    def _stop_because(self, text: str) -> None:
        if self._policy is None:
            self._policy = text
            self.event(STOPPED, text)


def _workplace(store: Path, executor: str, workers: int, *, is_change: bool) -> str:
    """Executor and store of the results; `is_change` if the executor changes during the run."""
    workers_words = "in this process" if executor == "serial" else f"{workers} worker{'s' if workers != 1 else ''}"
    return f"{'continuing with' if is_change else f'store {store},'} executor {executor}, {workers_words}"


def _json(names: tuple[str, ...], values: Floats) -> list[str | None]:
    """Figures of each evaluation as JSON text; null for NaN, ``Infinity`` as Python writes it; None without
    figures."""
    if not names:
        return [None] * len(values)
    form = "{" + ",".join(json.dumps(name).replace("%", "%%") + ":%r" for name in names) + "}"
    rows = values.tolist()
    if np.isfinite(values).all():
        return [form % tuple(row) for row in rows]
    return [_json_with_gaps(names, row) for row in rows]


def _json_with_gaps(names: tuple[str, ...], row: list[float]) -> str | None:
    data: Mapping[str, float | None] = {
        name: None if np.isnan(value) else value for name, value in zip(names, row, strict=True)
    }
    return json.dumps(data, separators=(",", ":")) if any(v is not None for v in data.values()) else None
