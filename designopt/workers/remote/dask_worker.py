"""What runs on Dask's workers, their nannies and the scheduler: the problem is delivered once, then chunks come."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from distributed import SchedulerPlugin, Status, WorkerPlugin
from distributed.protocol.core import dumps, loads
from distributed.protocol.serialize import Serialized, serialize

from designopt import advance
from designopt.files import InputFileError, provide
from designopt.plugin import PluginError
from designopt.workers.evaluation.evaluate import Evaluator, name_of, text_of
from designopt.workers.executor import Chunk, ChunkResult
from designopt.workers.remote.chunks import GivenChunks
from designopt.workers.remote.delivery import Delivery
from designopt.workers.remote.heap import keep_freed_memory
from designopt.workers.remote.inbox import Inbox
from designopt.workers.remote.warned import Warned
from designopt.workers.supervision import children
from designopt.workers.supervision.death import PREPARING
from designopt.workers.supervision.watch import Watch, folder, ignore_interrupts, read_death

#: In the environment of batch jobs: when workers take no more work, and when they must be gone (seconds since 1970).
RETIREMENT = "DESIGNOPT_RETIREMENT"

#: Seconds between two signs of life.
PULSE = 1.0
#: Seconds that a worker waits before and after the evaluation of a suspect: a process that dies a little after what was
#: the cause dies within them.
LINGER = 0.3
#: Seconds between two looks whether a chunk of a run that has gone is there; states of tasks that need no resource.
LOOK, DONE = 0.1, frozenset({"memory", "error", "released", "forgotten"})
#: Seconds for which a scheduler is kept free of a run that has gone.
LEAVING = 60

#: Seconds within which a stream of messages sends no second one; Dask waits 2 to 10 ms, on a chunk's way four times.
PAUSE = 0.0002

_problems: dict[str, DeliveredProblem] = {}
#: What a sound process can send and read.
_PROBE = np.ones(1)


class DeliveredProblem(WorkerPlugin):
    """Gives a worker the problem of one run; set up in every worker, also in those that come later.

    A worker that is fit for the problem offers a resource with the name of this plugin, and only those get work. One
    that takes the place of a dead worker reports how that ended, if its nanny has not done so. `local` workers belong
    to this run alone.
    """

    def __init__(self, run: str, delivery: Delivery, *, local: bool) -> None:
        self.name = f"designopt-{run}"
        self.run = run
        self.delivery = delivery
        self.local = local
        #: Local workers keep their notes where their nannies, which live in this process, look for them.
        self.notes = Path(tempfile.gettempdir()) if local else None

    async def setup(self, worker: Any) -> None:
        """Start the notes of this process; the model is built when the first chunk comes."""
        identity = self.identity = worker.nanny or worker.address
        self.worker_name = str(worker.name)
        self.supervised = worker.nanny is not None
        self.evaluator: Evaluator | None = None
        self.retiring: asyncio.Task[None] | None = None
        self.digests = frozenset(self.delivery.input_files())
        provide(_fetched)
        if self.local:
            send_at_once(worker.batched_stream)
            self.chunks = GivenChunks(worker, self.packed, lambda number: self.watch.hand_over(number))
            ignore_interrupts()
            children.lead_group()
            children.keep_files()
            keep_freed_memory()
        place = folder(self.run, identity, self.notes)
        death = read_death(place)
        self.watch = Watch(self.run, identity, worker.address, self.notes)
        self.inbox = Inbox(
            place / "inbox", lambda digest: worker.log_event(self.name, {"wants": digest, "worker": worker.address})
        )
        self.warned = Warned(lambda text: worker.log_event(self.name, {"warned": text}))
        if self.local:
            self.watch.own()
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
        worker.status = Status.paused  # the scheduler looks at tasks that no worker could take when one goes on again
        worker.status = Status.running
        if times := os.environ.get(RETIREMENT):
            begin, end = (float(text) for text in times.split())
            self.retiring = asyncio.create_task(self.retire(worker, begin, end))

    async def _pulse(self) -> None:
        """Show that the event loop comes round."""
        while True:
            self.watch.pulse()
            await asyncio.sleep(PULSE)

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """Dask has taken the result of a chunk."""
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
        """From time `begin` on take no more work, end what is at work, and close the worker and its nanny.

        What is not done by `end` is restarted by another worker; no design is blamed for that.
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
        """The run has ended, or the worker is asked to end; a chunk that it is at is lost then."""
        _problems.pop(self.run, None)
        self._forget(worker)
        leaving = self.watch.leaving() if worker.status == Status.closing else None
        if leaving is not None:
            worker.log_event(self.name, {"death": dataclasses.asdict(leaving)})
        self.pulsing.cancel()
        self.warned.close()
        self.watch.close(busy=leaving is not None)
        self.inbox.close()
        if not self.local:  # of local workers the coordinator does it, once
            children.end_marked(self.run, self.identity)

    def _forget(self, worker: Any) -> None:
        """Offer no resource any more, once chunks that are still at work have given it back and the others are gone."""
        ours = [task for task in worker.state.tasks.values() if self.name in (task.resource_restrictions or ())]
        if any(task.state not in DONE for task in ours):
            asyncio.get_running_loop().call_later(LOOK, self._forget, worker)
            return
        worker.state.total_resources.pop(self.name, None)
        worker.state.available_resources.pop(self.name, None)

    def answer(self, chunk: Chunk) -> tuple[str, ChunkResult | str]:
        """The worker's name, and the results of a chunk or why this worker is not fit for the problem."""
        try:
            return self.worker_name, self.run_chunk(chunk)
        except PluginError as error:
            return self.worker_name, str(error)

    def packed(self, chunk: Chunk) -> Serialized:
        """The `answer` to a chunk as it is sent; a process that cannot send it is ended."""
        answer = self.answer(chunk)
        try:
            return Serialized(*serialize(answer))  # type: ignore[no-untyped-call]
        except BaseException as error:
            self._give_up(error)
            raise

    def _give_up(self, error: BaseException) -> None:
        if self.supervised and not self.watch.closed:  # closed: the run has gone, others may have work for this process
            self.watch.give_up(f"was terminated because it could not continue: {name_of(error)}: {text_of(error)}")

    def run_chunk(self, chunk: Chunk) -> ChunkResult:
        """Evaluate a chunk; raises `PluginError` when the model cannot be built here.

        Whatever else goes wrong comes from what an evaluation has done to this process, which is ended.
        """
        watch = self.watch
        watch.begin_chunk(chunk.number)
        try:
            owning = contextlib.nullcontext() if self.local else watch.owning()
            with owning, watch.prints.capture(), advance.listened_by(watch.advance):
                if chunk.alone:
                    time.sleep(0.0 if watch.fresh else LINGER)
                if self.evaluator is None:
                    self.evaluator = self.delivery.build()
                result = self._evaluate(self.evaluator, chunk)
                if chunk.alone:
                    time.sleep(LINGER)
            watch.end()
            if not watch.intact():
                raise OSError("an evaluation closed the files of its process")
            if not _sound():
                raise RuntimeError("an evaluation corrupted its messages")
        except PluginError:
            watch.end()
            raise
        except BaseException as error:
            self._give_up(error)
            raise
        return result

    def _evaluate(self, evaluator: Evaluator, chunk: Chunk) -> ChunkResult:
        """The chunk's results, with what its evaluations have printed."""
        prints: dict[int, str] = {}
        at = PREPARING

        def take() -> None:
            if text := self.watch.prints.take():
                prints[at] = text

        def begin(position: int) -> None:
            nonlocal at
            take()
            at = position
            self.watch.begin(position)

        result = evaluator.run(chunk, begin)
        take()
        kept = {position: text for position, text in prints.items() if position >= 0}
        return dataclasses.replace(result, prints=kept) if kept else result


class RunGuard(SchedulerPlugin):
    """Makes somebody else's scheduler report a lost worker at once, and leaves it as it was when the run goes.

    With ``allowed_failures`` 0 it is the runner who decides what is sent again. The scheduler sees the run's `client`
    go however it ends, so a killed run leaves nothing behind.
    """

    def __init__(self, run: str, client: str) -> None:
        self.name = f"designopt-guard-{run}"
        self.run = run
        self.client = client
        self.before = 0

    def _others(self, scheduler: Any) -> list[RunGuard]:
        return [p for p in scheduler.plugins.values() if isinstance(p, RunGuard) and p.run != self.run]

    async def start(self, scheduler: Any) -> None:
        """Remember how it was; other runs may be there already."""
        others = self._others(scheduler)
        self.before = others[0].before if others else int(scheduler.allowed_failures)
        scheduler.allowed_failures = 0

    def remove_client(self, scheduler: Any, client: str) -> None:
        """The run has ended or was killed."""
        if client != self.client:
            return
        scheduler.plugins.pop(self.name, None)
        if not self._others(scheduler):
            scheduler.allowed_failures = self.before
        self._leaving = asyncio.ensure_future(self._leave(scheduler))

    async def _leave(self, scheduler: Any) -> None:
        """Take everything of the run away; again for a while, a killed run may have sent more, and a worker that dies
        meanwhile breaks the way to all of them in Dask."""
        resource = f"designopt-{self.run}"
        for _ in range(LEAVING):
            with contextlib.suppress(Exception):  # gone already when the run has ended in order
                await scheduler.unregister_worker_plugin(None, resource)
            with contextlib.suppress(Exception):
                await scheduler.unregister_nanny_plugin(None, f"designopt-supervisor-{self.run}")
            scheduler.resources.pop(resource, None)
            for worker in scheduler.workers.values():
                worker.resources.pop(resource, None)
                worker.used_resources.pop(resource, None)
            await asyncio.sleep(1.0)


def send_at_once(*streams: Any) -> None:
    """Let `streams` of Dask's messages (`BatchedSend`) hardly wait for more messages to send together."""
    for stream in streams:
        stream.interval = PAUSE


def _sound() -> bool:
    """Whether this process can still send and read what a result is made of."""
    came: Any = loads(dumps(_PROBE))  # type: ignore[no-untyped-call]
    return bool(np.array_equal(came, _PROBE)) and np.empty(1).shape == (1,)


def run_chunk(run: str, chunk: Chunk) -> tuple[str, ChunkResult | str]:
    """The task that a worker receives: its name, and the results or why it is not fit for the problem."""
    return _problems[run].answer(chunk)


def _fetched(digest: str) -> Path:
    """A file of one of the runs that this worker works for."""
    for problem in list(_problems.values()):
        if digest in problem.digests:
            return problem.inbox.fetch(digest)
    raise InputFileError("a file is not known to this worker")


def receive(run: str, digest: str, content: bytes | None, error: str) -> None:
    """The coordinator sends a file that was asked for, or why it cannot."""
    _problems[run].inbox.receive(digest, content, error)


def check(run: str) -> str:
    """Why this worker is not fit for the problem; "" when it is."""
    return _problems[run].unfit


async def retire(run: str, grace: float, dask_worker: Any) -> None:
    """Ask this worker to end what is at work, for `grace` seconds at most, and to leave."""
    problem = _problems[run]
    if problem.retiring is not None:
        problem.retiring.cancel()
    problem.retiring = asyncio.create_task(problem.retire(dask_worker, 0.0, time.time() + grace))
