"""Code on Dask's workers, their nannies and the scheduler: the problem is delivered once, then chunks."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distributed import SchedulerPlugin, Status, WorkerPlugin
from distributed.protocol.core import dumps, loads
from distributed.protocol.serialize import Serialized, serialize

from designopt import evaluation_progress
from designopt.files import InputFileError, provide
from designopt.plugin import PluginError
from designopt.workers.evaluation.evaluate import Evaluator, name_of, text_of
from designopt.workers.executor import Chunk, ChunkResult
from designopt.workers.remote.chunks import ChunkQueue
from designopt.workers.remote.delivery import Delivery
from designopt.workers.remote.heap import keep_freed_memory
from designopt.workers.remote.warning_forwarder import WarningForwarder
from designopt.workers.supervision import children
from designopt.workers.supervision.prints import evaluate_with_output
from designopt.workers.supervision.watch import Watch, folder, ignore_interrupts, read_death, transmits_arrays

#: Environment variables of batch jobs: when workers stop accepting work, and when they must have ended (seconds since
#: 1970).
RETIREMENT = "DESIGNOPT_RETIREMENT"

#: Interval between signs of life (s).
PULSE = 1.0
#: Pause of a worker before and after the evaluation of a suspect (s): a process that dies shortly after the cause dies
#: within it.
LINGER = 0.3
#: Interval between checks for remaining chunks of an ended run (s); states of tasks that need no resource.
LOOK, DONE = 0.1, frozenset({"memory", "error", "released", "forgotten"})
#: Time for which a scheduler is cleared of an ended run (s).
LEAVING = 60

#: Minimum interval between messages of a stream (s); Dask waits 2 to 10 ms, four times per chunk.
PAUSE = 0.0002

_problems: dict[str, DeliveredProblem] = {}


class DeliveredProblem(WorkerPlugin):
    """Delivers the problem of one run to a worker; set up in every worker, including later ones.

    A worker that is fit for the problem offers a resource with the name of this plugin, and only such workers get work.
    A replacement of a dead worker reports how that one ended, unless its nanny has done so. `local` workers belong to
    this run alone.
    """

    def __init__(self, run: str, delivery: Delivery, *, local: bool) -> None:
        self.name = f"designopt-{run}"
        self.run = run
        self.delivery = delivery
        self.local = local
        #: Local workers keep their notes in the folder where their nannies, in this process, read them.
        self.notes = Path(tempfile.gettempdir()) if local else None

    async def setup(self, worker: Any) -> None:
        """Start the notes of this process; the model is built for the first chunk."""
        identity = self.identity = worker.nanny or worker.address
        self.worker_name = str(worker.name)
        self.has_nanny = worker.nanny is not None
        self.evaluator: Evaluator | None = None
        self.retiring: asyncio.Task[None] | None = None
        self.digests = frozenset(self.delivery.input_files())
        provide(_file_of_run)
        if self.local:
            send_at_once(worker.batched_stream)
            self.chunks = ChunkQueue(worker, self.pack_answer, lambda number: self.watch.hand_over(number))
            ignore_interrupts()
            children.lead_group()
            children.keep_files()
            keep_freed_memory()
        notes_folder = folder(self.run, identity, self.notes)
        death = read_death(notes_folder)
        self.watch = Watch(self.run, identity, worker.address, self.notes)
        self.inbox = Inbox(
            notes_folder / "inbox",
            lambda digest: worker.log_event(self.name, {"wants": digest, "worker": worker.address}),
        )
        self.warning_forwarder = WarningForwarder(lambda text: worker.log_event(self.name, {"warned": text}))
        if self.local:
            self.watch.take_over()
            self.watch.prints.take_over()
        self.pulsing = asyncio.create_task(self._pulse())
        _problems[self.run] = self
        if death is not None:
            worker.log_event(self.name, {"death": dataclasses.asdict(death)})
        self.unfit = self._unfit(worker)
        if self.unfit:
            worker.log_event(self.name, {"unfit": self.worker_name, "why": self.unfit})
            return
        await worker.set_resources(**{self.name: 1})
        if self.local:
            self.chunks.open()
            return
        worker.status = Status.paused  # the scheduler checks tasks that no worker could accept when one resumes
        worker.status = Status.running
        if times := os.environ.get(RETIREMENT):
            begin, end = (float(text) for text in times.split())
            self.retiring = asyncio.create_task(self.retire(worker, begin, end))

    async def _pulse(self) -> None:
        """Signal that the event loop is alive."""
        while True:
            self.watch.pulse()
            await asyncio.sleep(PULSE)

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """Called when Dask has received the result of a chunk."""
        text = str(key)
        if text.startswith(f"{self.name}-"):
            self.watch.hand_over(int(text.rpartition("-")[2]))

    def _unfit(self, worker: Any) -> str:
        if worker.state.nthreads != 1:
            return (
                f"it has {worker.state.nthreads} threads, models need workers with one thread; start it with "
                "--nthreads 1"
            )
        try:
            self.delivery.plugins()
        except PluginError as error:
            return str(error)
        except Exception as error:
            return f"the problem cannot be set up there: {error!r}"
        return ""

    async def retire(self, worker: Any, begin: float, end: float) -> None:
        """From time `begin` on accept no work, finish active chunks, and close the worker and its nanny.

        Another worker repeats what is incomplete at `end`; no design counts as the cause.
        """
        await asyncio.sleep(max(0.0, begin - time.time()))
        worker.status = Status.closing_gracefully
        while (self.watch.busy or worker.data) and time.time() < end:
            await asyncio.sleep(0.05)
        if self.watch.busy:
            worker.log_event(self.name, {"cut": self.worker_name})
        await worker.scheduler.retire_workers(workers=[worker.address], close_workers=False, remove=True)
        await worker.close(nanny=True, executor_wait=False, reason="designopt-retirement")

    def teardown(self, worker: Any) -> None:
        """The run has ended, or the worker must end; an active chunk is then lost."""
        _problems.pop(self.run, None)
        self._forget(worker)
        leaving = self.watch.leaving() if worker.status == Status.closing else None
        if leaving is not None:
            worker.log_event(self.name, {"death": dataclasses.asdict(leaving)})
        self.pulsing.cancel()
        self.warning_forwarder.close()
        self.watch.close(busy=leaving is not None)
        self.inbox.close()
        if not self.local:  # for local workers the coordinator does it, once
            children.end_marked(self.run, self.identity)

    def _forget(self, worker: Any) -> None:
        """Withdraw the resource, once active chunks have released it and the others are gone."""
        ours = [task for task in worker.state.tasks.values() if self.name in (task.resource_restrictions or ())]
        if any(task.state not in DONE for task in ours):
            asyncio.get_running_loop().call_later(LOOK, self._forget, worker)
            return
        worker.state.total_resources.pop(self.name, None)
        worker.state.available_resources.pop(self.name, None)

    def answer(self, chunk: Chunk) -> tuple[str, ChunkResult | str]:
        """The worker's name, and the results of a chunk or the reason why this worker is unfit for the problem."""
        try:
            return self.worker_name, self.run_chunk(chunk)
        except PluginError as error:
            return self.worker_name, str(error)

    def pack_answer(self, chunk: Chunk) -> Serialized:
        """The `answer` to a chunk in sendable form; a process that cannot send it is ended."""
        answer = self.answer(chunk)
        try:
            return Serialized(*serialize(answer))  # type: ignore[no-untyped-call]
        except BaseException as error:
            self._give_up(error)
            raise

    def _give_up(self, error: BaseException) -> None:
        if self.has_nanny and not self.watch.closed:  # closed: the run is gone, others may have work for this process
            self.watch.give_up(f"was terminated because it could not continue: {name_of(error)}: {text_of(error)}")

    def run_chunk(self, chunk: Chunk) -> ChunkResult:
        """Evaluate a chunk. Raises `PluginError` if the model cannot be built here.

        Any other error means that an evaluation has damaged this process, which is ended.
        """
        watch = self.watch
        watch.begin_chunk(chunk.number)
        try:
            owning = contextlib.nullcontext() if self.local else watch.owning()
            with owning, watch.prints.capture(), evaluation_progress.listened_by(watch.advance):
                if chunk.alone:
                    time.sleep(0.0 if watch.fresh else LINGER)
                if self.evaluator is None:
                    self.evaluator = self.delivery.build()
                result = evaluate_with_output(self.evaluator, chunk, watch.prints, watch.begin)
                if chunk.alone:
                    time.sleep(LINGER)
            watch.end()
            if not watch.intact():
                raise OSError("an evaluation closed the files of its process")
            if not transmits_arrays(dumps, loads):
                raise RuntimeError("an evaluation corrupted its messages")
        except PluginError:
            watch.end()
            raise
        except BaseException as error:
            self._give_up(error)
            raise
        return result


class RunGuard(SchedulerPlugin):
    """Makes a shared scheduler report a lost worker at once, and restores its state when the run ends.

    With ``allowed_failures`` 0 the runner decides about retries. The scheduler detects any end of the run's `client`,
    so a killed run leaves nothing behind.
    """

    def __init__(self, run: str, client: str) -> None:
        self.name = f"designopt-guard-{run}"
        self.run = run
        self.client = client
        self.before = 0

    def _foreign_guards(self, scheduler: Any) -> list[RunGuard]:
        return [p for p in scheduler.plugins.values() if isinstance(p, RunGuard) and p.run != self.run]

    async def start(self, scheduler: Any) -> None:
        """Remember the state; other runs may exist."""
        guards = self._foreign_guards(scheduler)
        self.before = guards[0].before if guards else int(scheduler.allowed_failures)
        scheduler.allowed_failures = 0

    def remove_client(self, scheduler: Any, client: str) -> None:
        """The run has ended or was killed."""
        if client != self.client:
            return
        scheduler.plugins.pop(self.name, None)
        if not self._foreign_guards(scheduler):
            scheduler.allowed_failures = self.before
        self._leaving = asyncio.ensure_future(self._leave(scheduler))

    async def _leave(self, scheduler: Any) -> None:
        """Remove everything of the run; repeatedly for a while, because a killed run may have sent more, and a worker
        that dies meanwhile breaks Dask's connections to all of them."""
        resource = f"designopt-{self.run}"
        for _ in range(LEAVING):
            with contextlib.suppress(Exception):  # already gone after an orderly end
                await scheduler.unregister_worker_plugin(None, resource)
            with contextlib.suppress(Exception):
                await scheduler.unregister_nanny_plugin(None, f"designopt-supervisor-{self.run}")
            scheduler.resources.pop(resource, None)
            for worker in scheduler.workers.values():
                worker.resources.pop(resource, None)
                worker.used_resources.pop(resource, None)
            await asyncio.sleep(1.0)


def send_at_once(*streams: Any) -> None:
    """Shorten the time for which Dask's `streams` (``BatchedSend``) wait for further messages."""
    for stream in streams:
        stream.interval = PAUSE


def run_chunk(run: str, chunk: Chunk) -> tuple[str, ChunkResult | str]:
    """The task for a worker: its name, and the results or the reason why it is unfit for the problem."""
    return _problems[run].answer(chunk)


def _file_of_run(digest: str) -> Path:
    """A file of one of the runs of this worker."""
    for problem in list(_problems.values()):
        if digest in problem.digests:
            return problem.inbox.fetch(digest)
    raise InputFileError("a file is not known to this worker")


def receive(run: str, digest: str, content: bytes | None, error: str) -> None:
    """The coordinator sends a requested file, or the reason why it cannot."""
    _problems[run].inbox.receive(digest, content, error)


def check(run: str) -> str:
    """Why this worker is unfit for the problem; "" if it is fit."""
    return _problems[run].unfit


async def retire(run: str, grace: float, dask_worker: Any) -> None:
    """Make this worker finish active chunks, within `grace` (s), and leave."""
    problem = _problems[run]
    if problem.retiring is not None:
        problem.retiring.cancel()
    problem.retiring = asyncio.create_task(problem.retire(dask_worker, 0.0, time.time() + grace))


#: Time-out for a file (s).
ARRIVAL = 600.0


class Inbox:
    """The files of one run received by this worker, in `folder` (among its notes, with which it is removed).

    `ask` requests a digest from the coordinator.
    """

    def __init__(self, folder: Path, ask: Callable[[str], None]) -> None:
        self._ask = ask
        self._folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        self._came: dict[str, threading.Event] = {}
        self._errors: dict[str, str] = {}
        self._lock = threading.Lock()

    def fetch(self, digest: str) -> Path:
        """The file with this content; waits until it has arrived. Raises `InputFileError`."""
        with self._lock:
            event = self._came.get(digest)
            if event is None:
                event = self._came[digest] = threading.Event()
                self._ask(digest)
        if not event.wait(ARRIVAL):
            raise InputFileError(f"a file did not come from the coordinator within {ARRIVAL:.0f} s")
        if digest in self._errors:
            raise InputFileError(self._errors[digest])
        return self._folder / digest

    def receive(self, digest: str, content: bytes | None, error: str) -> None:
        """Called with a file, or the reason for its absence."""
        if content is None:
            self._errors[digest] = error
        else:
            (self._folder / digest).write_bytes(content)
        self._came.setdefault(digest, threading.Event()).set()

    def close(self) -> None:
        """Remove the received files."""
        shutil.rmtree(self._folder, ignore_errors=True)
