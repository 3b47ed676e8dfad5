"""What runs on Dask workers and their nannies: the problem is delivered once, then chunks come."""

from __future__ import annotations

import dataclasses
from typing import Any

from distributed import NannyPlugin, WorkerPlugin

from designopt.plugin import PluginError
from designopt.run.delivery import Delivery
from designopt.run.evaluate import Evaluator
from designopt.run.executor import Chunk, ChunkResult
from designopt.run.watch import Watch, ignore_interrupts, read_death, write_exit_code

_problems: dict[str, DeliveredProblem] = {}


class DeliveredProblem(WorkerPlugin):
    """Gives a worker the problem of one run; set up in every worker, also in those that come later.

    `local` workers belong to this run alone. A worker that takes the place of a dead one reports how that ended.
    """

    def __init__(self, run: str, delivery: Delivery, *, local: bool) -> None:
        self.name = f"designopt-{run}"
        self.run = run
        self.delivery = delivery
        self.local = local

    def setup(self, worker: Any) -> None:
        """Start the notes of this process; the model is built when the first chunk comes."""
        identity = worker.nanny or worker.address
        self.worker_name = str(worker.name)
        self.evaluator: Evaluator | None = None
        if self.local:
            ignore_interrupts()
        death = read_death(self.run, identity)
        limit = self.delivery.timeout if worker.nanny else None
        self.watch = Watch(self.run, identity, worker.address, limit)
        _problems[self.run] = self
        if death is not None:
            worker.log_event(self.name, dataclasses.asdict(death))

    def teardown(self, worker: Any) -> None:
        """The run has ended, or the worker ends in order."""
        _problems.pop(self.run, None)
        self.watch.close()

    def run_chunk(self, chunk: Chunk) -> ChunkResult:
        """Evaluate a chunk; raises `PluginError` when the model cannot be built here."""
        self.watch.begin_chunk(chunk.number)
        try:
            if self.evaluator is None:
                self.evaluator = self.delivery.build()
            return self.evaluator.run(chunk, self.watch.begin)
        finally:
            self.watch.end_chunk()


class ExitCodes(NannyPlugin):
    """Keeps the exit code of a worker process for the one that takes its place.

    Dask does not tell exit codes, so the nanny's own handler of the event is wrapped; where a version of Dask has no
    such handler, deaths are classified without the code.
    """

    def __init__(self, run: str) -> None:
        self.name = f"designopt-exit-codes-{run}"
        self.run = run

    def setup(self, nanny: Any) -> None:
        """Wrap the handler."""
        handler = getattr(nanny, "_on_worker_exit", None)
        if handler is None:
            return

        async def note_and_go_on(code: int) -> Any:
            write_exit_code(self.run, nanny.address, code)
            return await handler(code)

        nanny._on_worker_exit = note_and_go_on

    def teardown(self, nanny: Any) -> None:
        """Unwrap it."""
        nanny.__dict__.pop("_on_worker_exit", None)


def run_chunk(run: str, chunk: Chunk) -> tuple[str, ChunkResult | str]:
    """The task that a worker receives: its name, and the results or why it is not fit for the problem."""
    problem = _problems[run]
    try:
        return problem.worker_name, problem.run_chunk(chunk)
    except PluginError as error:
        return problem.worker_name, str(error)


def check(run: str) -> str:
    """Why this worker is not fit for the problem; "" when it is."""
    try:
        _problems[run].evaluator = _problems[run].delivery.build()
    except PluginError as error:
        return str(error)
    return ""
