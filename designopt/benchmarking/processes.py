"""The run of a cell: in this process, or in others that run one at a time each."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path

from designopt.benchmarking.cells import BenchmarkCell, CellState, state
from designopt.plugin import PluginError
from designopt.run.progress import SilentProgress, Snapshot
from designopt.run.runner import run_study
from designopt.store.errors import Interrupted, RunError, WorkersError
from designopt.store.folder import replacing
from designopt.study.load import PluginFile, study_from_text

#: Time (s) for a process to end in order before it is killed.
GRACE = 10.0


@dataclass(frozen=True)
class RunOptions:
    """How cells are run: `workers` of them side by side, each in its own process, or (1) one after the other in this
    process; with the address of a Dask `scheduler` one after the other with their evaluations there. `allow` names the
    programs that models and solvers may run, `data` the folders of data roots; with `replace` runs of another question
    are made again."""

    workers: int = 1
    scheduler: str | None = None
    allow: tuple[str, ...] = ()
    data: Mapping[str, Path] | None = None
    replace: bool = False


class _OfCell(SilentProgress):
    """Passes the number of designs of a cell's run on; the cell's store has the events."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance = advance

    def update(self, snapshot: Snapshot) -> None:
        self._advance(snapshot.completed)


def run_cell(
    cell: BenchmarkCell, folder: Path, options: RunOptions, advance: Callable[[int], None] = lambda designs: None
) -> str:
    """Run or continue a cell; return "" or the reason why it did not end. Raises `Interrupted`, and `WorkersError` for
    a scheduler that no cell can use."""
    store, before = cell.store(folder), state(cell, folder)[0]
    in_process = options.scheduler is None and cell.study.execution.timeout is None  # a time limit needs a worker
    replacement = replacing(store) if before is CellState.DIFFERENT else contextlib.nullcontext()
    try:
        with replacement:
            run_study(
                cell.study,
                store,
                resume=before is CellState.BEGUN,
                progress=_OfCell(advance),
                executor="serial" if in_process else "dask",
                workers=None if in_process or options.scheduler is not None else 1,
                scheduler=options.scheduler,
                allow=options.allow,
            )
    except Interrupted:
        raise
    except (RunError, PluginError) as error:
        if options.scheduler is not None and isinstance(error, WorkersError):
            raise WorkersError(f"{str(error).splitlines()[0]}; the same command continues {folder}", folder) from error
        return str(error).splitlines()[0]
    return ""


@dataclass(frozen=True)
class _Task:
    """A cell as plain data: its study as text, with the plugin files."""

    problem: str
    solver: str
    seed: int
    text: str
    folder: Path
    plugin_files: tuple[PluginFile, ...]


class CellProcess:
    """A process that runs the cells it is sent; `cell` is the present one."""

    def __init__(self, folder: Path, options: RunOptions) -> None:
        self._folder, self._options = folder, options
        self.cell: BenchmarkCell | None = None
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other_end = context.Pipe()
        self._process = context.Process(target=_work, args=(other_end, self._folder, self._options))
        self._process.start()
        other_end.close()

    def run(self, cell: BenchmarkCell) -> None:
        """Send a cell; a process that has died is replaced."""
        if not self._process.is_alive():
            self.connection.close()
            self._start()
        self.cell = cell
        study = cell.study
        self.connection.send(_Task(*cell.key, study.text, cell.folder, study.plugin_files))

    def message(self) -> int | str:
        """The number of designs, or at the end "" or the reason of a failure. Call it when the connection is ready."""
        try:
            message: int | str = self.connection.recv()
            return message
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode or 0
            how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
            return f"its process ended {how}; the same command runs it again"

    def end(self) -> None:
        """End the process: at once without a cell, else in order, as a stop request does."""
        with contextlib.suppress(OSError):
            self.connection.close()
        if self.cell is not None:
            self._process.terminate()
        self._process.join(GRACE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def next_messages(processes: Sequence[CellProcess], timeout: float) -> Iterator[tuple[CellProcess, int | str]]:
    """Messages of the processes that have one within `timeout` (s)."""
    by_connection = {process.connection: process for process in processes}
    for connection in wait(list(by_connection), timeout):
        assert isinstance(connection, Connection)
        yield by_connection[connection], by_connection[connection].message()


def _work(connection: Connection, folder: Path, options: RunOptions) -> None:
    """Run cells until the other side is closed. A terminal's interrupt is for the other side."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def advance(designs: int) -> None:
        try:
            connection.send(designs)
        except OSError:  # the benchmark was killed: every result is recorded
            os._exit(1)

    while True:
        try:
            task: _Task = connection.recv()
        except (EOFError, OSError):
            return
        study = study_from_text(task.text, task.problem, task.folder, plugin_files=task.plugin_files, data=options.data)
        cell = BenchmarkCell(task.problem, task.solver, task.seed, replace(study, text=task.text), task.folder)
        try:
            message = run_cell(cell, folder, options, advance)
        except Interrupted:
            return
        with contextlib.suppress(OSError):
            connection.send(message)
