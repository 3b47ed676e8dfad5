"""The executor ``dask``: chunks on worker processes of this machine, of an existing scheduler, or of batch jobs."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

from designopt.files import InputFileError
from designopt.plugin import PluginError
from designopt.store.errors import WorkersError, resume_command
from designopt.study.study import Execution
from designopt.workers.carriers.carrier import Ends, WorkerEnd
from designopt.workers.executor import Advance, Chunk, Completion, Loss, local_workers
from designopt.workers.pools.connection import LEAVING, Connection, ExistingScheduler
from designopt.workers.pools.local import STARTS, LocalWorkers
from designopt.workers.remote import dask_worker
from designopt.workers.remote.dask_worker import DeliveredProblem
from designopt.workers.remote.delivery import Delivery
from designopt.workers.supervision.death import LOST, Death
from designopt.workers.supervision.supervisor import SLACK, Supervisor

#: Time (s) for the nanny of a dead worker, or its successor, to report how it died.
REPORT_WAIT = 20.0
#: Time (s) for results of a dead worker that are in transit to arrive.
ARRIVAL = 1.5
#: Minimum number of consecutive workers that die before their first evaluation to end the run; the same for workers
#: killed from outside.
FAILED_STARTS_LIMIT, KILLED_LIMIT = 3, 12
#: Time (s) for a nanny to start another worker after ending one.
RESTART_WAIT = 30
#: Time (s) beyond all limits after which a worker that has not ended itself is ended by its nanny.
PATIENCE = 60.0
#: Time (s) without any worker after which a run on local workers ends.
WITHOUT_WORKERS = 60.0


def _not_of_dask(record: logging.LogRecord) -> bool:
    """Whether an asyncio message does not concern a Dask task interrupted by the death of a worker.

    Such tasks are reported when they are collected, possibly after the run.
    """
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or not kind.__module__.startswith("distributed")


logging.getLogger("asyncio").addFilter(_not_of_dask)


def connect(
    delivery: Delivery, execution: Execution, path: Path, *, insecure: bool, folder: Path | None = None
) -> Dask:
    """Start local workers, have a batch system start some, or connect to the scheduler in `execution`.

    `path` is the run's store; a scheduler file may be relative to `folder`. Raises `WorkersError`: unreachable, not
    encrypted, no workers, several threads, other versions, without the model.
    """
    run = uuid.uuid4().hex[:12]
    connection: Connection
    if execution.scheduler != "local":
        connection = ExistingScheduler(run, execution.scheduler, path, insecure=insecure, folder=folder)
    elif execution.cluster is not None and execution.workers is None:  # --workers requests local ones
        from designopt.workers.pools.cluster import Jobs

        connection = Jobs(run, execution.cluster, path, timeout=execution.timeout)
    else:
        return _start_local(delivery, local_workers(execution), path)
    return Dask(run, delivery, path, connection)


def _start_local(delivery: Delivery, workers: int, path: Path) -> Dask:
    """Workers of this machine. One that dies while it receives the problem breaks Dask's connections to all of them, so
    they are started again."""
    for attempt in range(1, STARTS + 1):
        run = uuid.uuid4().hex[:12]
        try:
            return Dask(run, delivery, path, LocalWorkers(run, workers, path))
        except OSError as error:
            if attempt == STARTS:
                text = f"workers died while receiving the problem, in {STARTS} attempts: {error!r}"
                raise WorkersError(text, path) from error
    raise AssertionError("unreachable")


class Dask:
    """Runs chunks on Dask workers. See `designopt.workers.executor.Executor`."""

    name = "dask"
    target = 0.3

    def __init__(self, run: str, delivery: Delivery, path: Path, connection: Connection) -> None:
        self._run = run
        self._path = path
        self._connection = connection
        self._client = connection.client
        self._limit = delivery.timeout
        self._preparation = delivery.preparation
        self._flight: dict[int, Chunk] = {}
        self._ends: Ends = queue.SimpleQueue()
        self._carrier = connection.carrier(self._ends)
        self._unaccounted_chunks: dict[int, tuple[Chunk, str, float]] = {}
        self._deaths: dict[str, Death] = {}
        self._reports: queue.SimpleQueue[Death] = queue.SimpleQueue()
        self._death_reports: list[tuple[float, Death]] = []
        self._notices: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self._warnings: set[str] = set()
        self._progress_time = time.monotonic()
        self._worker_count = (-float("inf"), 0)
        self._most_in_flight = 0
        self._has_answered = False
        self._unfit: dict[str, str] = {}
        self._worker_seen = time.monotonic()
        self._failed_starts = self._kill_count = 0
        self._advancing: queue.SimpleQueue[tuple[str, Advance]] = queue.SimpleQueue()
        self._advances: dict[str, Advance] = {}
        self._sending = threading.Lock()
        try:
            self._deliver(delivery)
        except BaseException:
            self.close()
            raise

    def _deliver(self, delivery: Delivery) -> None:
        local = self._connection.local
        self._client.register_plugin(Supervisor(self._run, delivery.timeout, delivery.preparation, local=local))
        self._files = {} if local else delivery.input_files()
        self._plugin = DeliveredProblem(self._run, delivery if local else delivery.for_other_machines(), local=local)
        self._client.subscribe_topic(self._plugin.name, self._hear)
        answers = self._client.register_plugin(self._plugin)
        for worker, answer in (answers or {}).items():
            if answer.get("status") == "error":
                raise WorkersError(f"worker {worker} cannot set up the problem: {answer.get('exception')}", self._path)
        if self._connection.local:
            return
        for worker, problem in self._client.run(dask_worker.check, self._run).items():
            if problem:
                raise WorkersError(f"worker {worker}: {problem}", self._path)
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        if self._limit is not None and any(not w.get("nanny") for w in workers):
            text = (
                "some workers have no nanny: a hanging evaluation cannot be terminated there, so the "
                "time-out has no effect"
            )
            self._notices.put(("no_nanny", text))

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        """Called on Dask's thread: a worker reports about itself or its predecessor."""
        message = event[1]
        if "death" in message:
            self._reports.put(Death(**message["death"]))
        elif "wants" in message:
            threading.Thread(target=self._send_file, args=(message["wants"], message["worker"]), daemon=True).start()
        elif "advance" in message:
            worker, *advance = message["advance"]
            self._advancing.put((worker, Advance(*advance)))
        elif "unfit" in message:
            self._unfit[message["unfit"]] = message["why"]
            text = f"worker {message['unfit']} gets no work: {message['why']}"
            self._notices.put(("worker_excluded", text))
        elif "warned" in message:
            if message["warned"] not in self._warnings:
                self._warnings.add(message["warned"])
                self._notices.put(("warning", message["warned"]))
        elif "cut" in message:
            text = f"worker {message['cut']} had to exit before its evaluation was done; another worker repeats it"
            self._notices.put(("worker_retired", text))

    def _send_file(self, digest: str, worker: str) -> None:
        """Send a requested file content to a worker; one file at a time, to limit memory."""
        file, error = self._files.get(digest), "the coordinator does not know this file"
        content: bytes | None = None
        with self._sending, contextlib.suppress(OSError, TimeoutError, KeyError, ValueError, RuntimeError):
            try:
                content = file.content if file is not None else None
            except InputFileError as failed:
                error = str(failed)
            self._client.run(dask_worker.receive, self._run, digest, content, error, workers=[worker])

    # ----------------------------------------------------------------------------------------------- interface

    @property
    def workers(self) -> int:
        """Current number of workers, updated once per second."""
        with self._convert_scheduler_errors():
            return max(1, self._count_workers())

    def _count_workers(self) -> int:
        """Workers that accept work of this run."""
        time_now = time.monotonic()
        if time_now - self._worker_count[0] > 1.0:
            workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
            fit = {str(w["name"]): str(w["status"]) for w in workers if self._plugin.name in w["resources"]}
            self._worker_count = (time_now, sum(status != LEAVING for status in fit.values()))
            if fit:
                self._worker_seen = time_now
            elif self._connection.local and workers and self._unfit.keys() >= {str(w["name"]) for w in workers}:
                why = f"no worker can set up the problem: {next(iter(self._unfit.values()))}"
                raise WorkersError(why, self._path)
            for notice in self._connection.tend(fit, self._most_in_flight):
                self._notices.put(notice)
            self._most_in_flight = len(self._flight)
        return self._worker_count[1]

    @property
    def shortest(self) -> float:
        """Minimum duration of a chunk with its carrier (s)."""
        return self._carrier.shortest

    @property
    def slots(self) -> int:
        """Two chunks for each worker: one active, one waiting."""
        return 2 * max(1, self._connection.most_workers or self.workers)  # without any the run would end too early

    def submit(self, chunk: Chunk) -> None:
        """Send a chunk."""
        if not self._flight:
            self._progress_time = time.monotonic()
        self._flight[chunk.number] = chunk
        self._most_in_flight = max(self._most_in_flight, len(self._flight))
        with self._convert_scheduler_errors():
            self._carrier.submit(chunk)

    def wait(self, timeout: float) -> Sequence[Completion]:
        """Completed chunks."""
        with self._convert_scheduler_errors():
            return self._ended_by_now(timeout)

    @contextlib.contextmanager
    def _convert_scheduler_errors(self) -> Iterator[None]:
        """Convert any error of the client after the loss of its scheduler to a `WorkersError`."""
        try:
            yield
        except (WorkersError, PluginError):
            raise
        except Exception as error:
            if self._client.status == "running":
                raise
            remedy = f"continue with: {resume_command(self._path)}"
            raise WorkersError(f"the connection to the scheduler is lost; {remedy}", self._path) from error

    def _ended_by_now(self, timeout: float) -> Sequence[Completion]:
        completions = list(self._settle())
        if completions:
            return completions
        with contextlib.suppress(queue.Empty):
            completions += self._collect(
                *self._ends.get(timeout=min(timeout, 0.05) if self._unaccounted_chunks else timeout)
            )
            while True:
                completions += self._collect(*self._ends.get_nowait())
        completions += self._settle()
        if completions:
            self._progress_time = time.monotonic()
        else:
            self._carrier.tend()
            self._update_workers()
            if self._limit is not None:
                self._end_stuck_workers(self._limit)
        return completions

    def _update_workers(self) -> None:
        """End a run whose local workers are permanently gone; others may still come."""
        if self._count_workers() or time.monotonic() - self._worker_seen < WITHOUT_WORKERS:
            return
        if self._connection.local:
            remedy = f"continue with: {resume_command(self._path)}"
            raise WorkersError(f"no worker could be started for {WITHOUT_WORKERS:.0f} s; {remedy}", self._path)
        self._worker_seen = time.monotonic()
        if isinstance(self._connection, ExistingScheduler):
            self._notices.put(("no_workers", "the scheduler has no workers; waiting"))

    def notices(self) -> Sequence[tuple[str, str]]:
        """Messages for the user, once each."""
        return [self._notices.get_nowait() for _ in range(self._notices.qsize())]

    def advances(self) -> Sequence[Advance]:
        """The last progress reported by active evaluations."""
        self._advances |= dict(self._advancing.get_nowait() for _ in range(self._advancing.qsize()))
        self._advances = {worker: a for worker, a in self._advances.items() if a.chunk in self._flight}
        return list(self._advances.values())

    def listen(self, show: Callable[[], None]) -> None:
        """No effect: `wait` does not evaluate in this process."""

    def cancel(self) -> None:
        """Drop the chunks in flight."""
        with self._convert_scheduler_errors():
            self._carrier.withdraw(self._flight)
        self._flight.clear()
        self._unaccounted_chunks.clear()

    def close(self) -> None:
        """End or release the workers."""
        with contextlib.suppress(Exception):  # any error if the scheduler is gone
            self._client.unsubscribe_topic(f"designopt-{self._run}")
            self._connection.leave()
        self._connection.close()

    # ------------------------------------------------------------------------------------------------ endings

    def _collect(self, number: int, end: Any) -> list[Completion]:
        """Process the end of a chunk: `end` is the result of its task, or the reason for its absence."""
        chunk = self._flight.pop(number, None)
        if chunk is None:
            return []
        if isinstance(end, WorkerEnd):
            self._unaccounted_chunks[number] = (chunk, end.worker, time.monotonic() + REPORT_WAIT)
            return []
        if isinstance(end, Exception):  # any exception of a worker or Dask outside the evaluations
            remedy = f"continue with: {resume_command(self._path)}"
            if self._client.status != "running":
                raise WorkersError(f"the connection to the scheduler is lost; {remedy}", self._path) from end
            if not isinstance(end, (CancelledError, OSError)):
                raise WorkersError(f"a worker failed outside of the model: {end!r}; {remedy}", self._path) from end
            return [Completion(chunk, "?", Loss("lost_worker", "the task was cancelled"))]
        self._failed_starts = self._kill_count = 0
        self._has_answered = True
        worker, result = end
        if isinstance(result, str):
            raise WorkersError(f"worker {worker}: {result}", self._path)
        return [Completion(chunk, worker, result)]

    def _settle(self) -> Iterator[Completion]:
        """Process chunks of dead workers whose cause of death is known by now."""
        with contextlib.suppress(queue.Empty):
            while True:
                report = self._reports.get_nowait()
                self._deaths[report.address] = report
                self._death_reports.append((time.monotonic() + ARRIVAL, report))
                self._count(report)
        while self._death_reports and self._death_reports[0][0] < time.monotonic():
            yield from self._lost_chunks(self._death_reports.pop(0)[1])
        for number, (chunk, address, deadline) in list(self._unaccounted_chunks.items()):
            death = self._deaths.get(address)
            if death is None and time.monotonic() < deadline:
                continue
            del self._unaccounted_chunks[number]
            loss = death.loss(number, self._limit) if death else Loss(LOST, "the worker is out of reach")
            yield Completion(chunk, address, loss)

    def _count(self, death: Death) -> None:
        """End a run whose workers die one after another before doing any work."""
        if not death.before_work:
            return
        self._failed_starts += death.cause != LOST
        self._kill_count += death.cause == LOST
        if self._failed_starts > max(FAILED_STARTS_LIMIT, 2 * self.workers):
            raise PluginError(f"workers die while they prepare the model: the last one {death.ending_text}")
        if self._kill_count > max(KILLED_LIMIT, 4 * self.workers):
            text = f"workers are killed before they can start: the last one {death.ending_text}"
            raise PluginError(f"{text}; if memory is short, use fewer (--workers)")

    def _lost_chunks(self, death: Death) -> Iterator[Completion]:
        """Chunks completed by the dead worker whose results died with it.

        Dask would silently repeat them, indefinitely if one of them ends its process each time.
        """
        for number in death.unreported_chunks:
            if number in self._flight:
                self._carrier.withdraw([number])
                chunk = self._flight.pop(number)
                yield Completion(chunk, death.address, death.loss(number, self._limit))

    def _end_stuck_workers(self, limit: float) -> None:
        """The last resort: the nanny restarts a worker that neither answers nor ends itself."""
        if not self._flight or self._unaccounted_chunks:
            return
        longest = max(len(chunk) for chunk in self._flight.values())
        patience = PATIENCE if self._has_answered else max(PATIENCE, self._preparation or 0.0)
        if time.monotonic() - self._progress_time < SLACK * limit * longest + patience:
            return
        self._progress_time = time.monotonic()
        chunks_of = self._carrier.chunks_of_workers()
        stuck = self._restartable_workers(list(chunks_of))
        deadline = time.monotonic() + RESTART_WAIT + REPORT_WAIT
        for worker in stuck:
            self._carrier.withdraw(chunks_of[worker])
            for number in chunks_of[worker]:
                if number in self._flight:
                    self._unaccounted_chunks[number] = (self._flight.pop(number), worker, deadline)
        self._restart(stuck)

    def _restartable_workers(self, workers: list[str]) -> list[str]:
        """Those of `workers` with a nanny, which alone can restart them."""
        information = self._client.scheduler_info(n_workers=-1)["workers"]
        return [worker for worker in workers if information.get(worker, {}).get("nanny")]

    def _restart(self, workers: list[str]) -> None:
        if workers:
            text = f"worker {', '.join(workers)} does not answer; it is restarted"
            self._notices.put(("worker_restarted", text))
            self._client.restart_workers(workers, timeout=RESTART_WAIT, raise_for_error=False)
