"""Choice of the executor of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from designopt.plugin import Permission, PluginError
from designopt.problem import Problem
from designopt.store.errors import WorkersError
from designopt.study.study import Execution, StudyDefinition
from designopt.workers.evaluation.evaluate import NO_PERMISSION, Evaluator
from designopt.workers.evaluation.programs import ProgramWorker
from designopt.workers.evaluation.serial import Serial
from designopt.workers.executor import Advance, Chunk, ChunkResult, Completion, Executor, local_workers
from designopt.workers.pools.shortage import allows_files
from designopt.workers.remote.delivery import Delivery
from designopt.workers.starter import Starter, StartingWorkers, can_fork
from designopt.workers.supervision.children import ending_with_this_process

#: ``auto`` starts in this process if the first batch is at most this large, ...
FEW = 64
#: ... and switches to workers after this time of evaluation (s).
PATIENCE = 1.0
#: Designs that wait one by one go to workers only if one takes longer than this (s): the transfer costs about 10 ms.
WORTHWHILE = 0.02
#: Minimum size of the first batch of a run on workers that begins before these are there (`designopt.workers.starter`).
LEAST = 8


def executor_for(
    study: StudyDefinition,
    problem: Problem,
    path: Path,
    *,
    insecure: bool,
    allow_version_skew: bool,
    programs: StudyDefinition | None = None,
    permission: Permission = NO_PERMISSION,
) -> Callable[[int], Executor]:
    """A function that starts the executor for `study.execution`, given the number of pending evaluations. Raises
    `WorkersError`.

    `study` and `problem` include the validation scenarios; `programs` is the study without them, if one of its solvers
    has programs. `permission` states what the model may run outside Python; a model that runs something is evaluated by
    workers, whose end is the end of its programs, unless the study requests ``serial``.
    """
    execution = study.execution
    if execution.executor == "serial" and execution.timeout is not None:
        raise WorkersError(
            "executor 'serial' cannot terminate a hanging evaluation; remove execution.timeout or use 'dask'", path
        )

    def evaluator() -> Evaluator:
        return Evaluator.for_problem(problem, ProgramWorker.for_study(programs) if programs else None, permission)

    def workers(evaluations: int) -> Executor:
        delivery = Delivery.for_problem(
            study, allow_version_skew=allow_version_skew, programs=programs, permission=permission
        )
        folder = study.path.parent if study.path else None

        def connected() -> Executor:
            from designopt.workers.dask import connect

            return connect(delivery, execution, path, insecure=insecure, folder=folder)

        # The end of a worker is the end of a hanging evaluation and of the programs of the model.
        needs_workers = execution.timeout is not None or study.model.plugin.has("runs")
        count = local_workers(execution)
        safe = _is_local(execution) and can_fork() and allows_files(count)
        if needs_workers or not safe or evaluations < LEAST:
            return connected()
        try:
            starter = Starter(evaluator)
        except OSError:  # the start of workers gives the reason
            return connected()
        return StartingWorkers(starter, connected, count)

    def serial() -> Serial:
        return Serial(evaluator, ending_with_this_process() if study.model.plugin.has("runs") else None)

    def start(evaluations: int) -> Executor:
        needs_dask = execution.executor != "auto" or execution.timeout is not None or study.model.plugin.has("runs")
        if execution.executor == "serial":
            return serial()
        if needs_dask or execution.scheduler != "local" or execution.cluster is not None:
            return workers(evaluations)
        try:
            Delivery.for_problem(study, programs=programs)
        except PluginError:  # an interactively typed model exists in this process only
            return serial()
        return SerialThenWorkers(serial(), lambda: workers(0)) if evaluations <= FEW else workers(evaluations)

    return start


def _is_local(execution: Execution) -> bool:
    """Whether the workers are those of this machine: --workers asks for them, also in place of a cluster."""
    return execution.scheduler == "local" and (execution.cluster is None or execution.workers is not None)


class SerialThenWorkers:
    """Starts in this process and switches to workers if the evaluations are worth it."""

    _executor: Executor

    def __init__(self, serial: Serial, workers: Callable[[], Executor]) -> None:
        self._executor = serial
        self._workers = workers
        self._spent = 0.0
        self._result_count = 0

    @property
    def name(self) -> str:
        """The executor in use."""
        return self._executor.name

    @property
    def workers(self) -> int:
        """Number of workers."""
        return self._executor.workers

    @property
    def slots(self) -> int:
        """Maximum number of chunks in flight."""
        return self._executor.slots

    @property
    def target(self) -> float:
        """Target duration of a chunk (s)."""
        return self._executor.target

    @property
    def shortest(self) -> float:
        """Minimum duration of a chunk that justifies its transfer (s)."""
        return self._executor.shortest

    def submit(self, chunk: Chunk) -> None:
        """Accept a chunk; workers are started after `PATIENCE` for the first one with work for several."""
        together = len(chunk) > 1 and not chunk.programs  # a chain of programs is solved one after another
        worthwhile = together or (chunk.pending > 0 and self._spent > WORTHWHILE * self._result_count)
        if isinstance(self._executor, Serial) and self._spent > PATIENCE and worthwhile:
            self._executor.close()
            self._executor = self._workers()
        self._executor.submit(chunk)

    def wait(self, timeout: float) -> Sequence[Completion]:
        """Completed chunks."""
        completions = self._executor.wait(timeout)
        if isinstance(self._executor, Serial):
            self._spent += sum(float(c.outcome.wall.sum()) for c in completions if isinstance(c.outcome, ChunkResult))
            self._result_count += sum(len(c.chunk) for c in completions)
        return completions

    def notices(self) -> Sequence[tuple[str, str]]:
        """Messages for the user."""
        return self._executor.notices()

    def advances(self) -> Sequence[Advance]:
        """The last progress reported by active evaluations."""
        return self._executor.advances()

    def listen(self, show: Callable[[], None]) -> None:
        """Call `show` while evaluations in this process report progress."""
        self._executor.listen(show)

    def cancel(self) -> None:
        """Drop the chunks in flight."""
        self._executor.cancel()

    def close(self) -> None:
        """End everything that was started."""
        self._executor.close()
