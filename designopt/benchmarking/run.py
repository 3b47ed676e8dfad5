"""Runs the cells of a benchmark: each an ordinary run with a store of its own, several side by side."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from designopt.benchmarking.cells import Benchmark, BenchmarkCell, CellState, refuse_different, states
from designopt.benchmarking.processes import CellProcess, RunOptions, next_messages, run_cell
from designopt.run.progress import Progress, SilentProgress, Snapshot, duration
from designopt.store.errors import Interrupted

#: Interval of the display (s).
SHOW = 0.5
#: Time (s) without a new design after which it is shown.
SILENT = 60.0


def run_benchmark(
    benchmark: Benchmark, folder: Path, options: RunOptions, progress: Progress | None = None
) -> dict[tuple[str, str, int], str]:
    """Run all cells that `folder` does not hold completely; return the messages of those that failed, by cell.

    A cell is complete as soon as its run has ended; a later call continues the others where they were. Raises
    `StoreError` for stores of another question and for a scheduler that cannot be used, `Interrupted`.
    """
    by_state = states(benchmark.cells_to_compute, folder)
    if not options.replace:
        refuse_different(by_state[CellState.DIFFERENT], folder)
    waiting = [*by_state[CellState.BEGUN], *by_state[CellState.ABSENT], *by_state[CellState.DIFFERENT]]
    waiting.sort(key=benchmark.cells_to_compute.index)
    count = _Count(benchmark, len(by_state[CellState.COMPLETE]), progress or SilentProgress())
    try:
        if options.workers > 1 and options.scheduler is None and len(waiting) > 1:
            return _side_by_side(waiting, folder, options, count)
        return _in_turn(waiting, folder, options, count)
    finally:
        count.progress.close()


class _Count:
    """Counts designs of all cells for the display."""

    def __init__(self, benchmark: Benchmark, complete: int, progress: Progress) -> None:
        self.progress = progress
        self._cells = len(benchmark.cells_to_compute)
        self._each = max((c.study.stages[-1].budget.evaluations or 0 for c in benchmark.cells_to_compute), default=0)
        self._complete, self._missing = complete, 0
        self._running: dict[tuple[str, str, int], int] = {}
        self._label_of: dict[tuple[str, str, int], str] = {}
        self._advances: dict[tuple[str, str, int], float] = {}
        self._first: int | None = None
        self._began = time.monotonic()
        self._last_update = -SHOW

    def advance(self, cell: BenchmarkCell, designs: int) -> None:
        new = cell.key not in self._running
        if new or designs != self._running[cell.key]:
            self._advances[cell.key] = time.monotonic()
        self._running[cell.key], self._label_of[cell.key] = designs, cell.label
        self.show(force=new)

    def end(self, cell: BenchmarkCell, message: str) -> None:
        designs = self._running.pop(cell.key, 0)
        self._advances.pop(cell.key, None)
        self._complete += 1
        self._missing += self._each - designs if message else 0
        if message:
            self.progress.event("failed", f"{cell.label}: {message}")
        self.show(force=True)

    def _current_cell(self) -> str:
        """The running cell that has waited longest for a design, which a solver that hangs shows."""
        if not self._advances:
            return ""
        key = min(self._advances, key=lambda running: self._advances[running])
        silent = time.monotonic() - self._advances[key]
        return self._label_of[key] + (f" without a new design for {duration(silent)}" if silent >= SILENT else "")

    def show(self, *, force: bool = False) -> None:
        """Update the display, at most twice a second."""
        time_now = time.monotonic()
        if not force and time_now - self._last_update < SHOW:
            return
        self._last_update = time_now
        complete_runs = self._complete * self._each - self._missing + sum(self._running.values())
        total, seconds = self._cells * self._each - self._missing, time_now - self._began
        if self._first is None:
            self._first = complete_runs
        new = complete_runs - self._first
        rate = new / seconds if seconds > 0.0 else 0.0
        left = (total - complete_runs) / rate if new > 0 else None
        numbers = (min(self._complete + 1, self._cells), self._cells, complete_runs, total, new, 0)
        self.progress.update(Snapshot("run", *numbers, rate, seconds, left, note=self._current_cell()))


def _in_turn(
    cells: Sequence[BenchmarkCell], folder: Path, options: RunOptions, count: _Count
) -> dict[tuple[str, str, int], str]:
    failures = {}
    for cell in cells:
        count.advance(cell, 0)
        try:
            message = run_cell(cell, folder, options, lambda designs, cell=cell: count.advance(cell, designs))  # type: ignore[misc]
        except Interrupted:
            raise _interruption(folder) from None
        count.end(cell, message)
        if message:
            failures[cell.key] = message
    return failures


def _side_by_side(
    cells: Sequence[BenchmarkCell], folder: Path, options: RunOptions, count: _Count
) -> dict[tuple[str, str, int], str]:
    """The cells on processes; one that dies is a failure of its cell, and another one continues."""
    waiting, failures = deque(cells), {}
    processes = [CellProcess(folder, options) for _ in range(min(options.workers, len(cells)))]
    try:
        for process in processes:
            process.run(waiting.popleft())
        while busy := [process for process in processes if process.cell is not None]:
            count.show()
            for process, message in next_messages(busy, SHOW):
                cell = process.cell
                assert cell is not None
                if isinstance(message, int):
                    count.advance(cell, message)
                    continue
                count.end(cell, message)
                if message:
                    failures[cell.key] = message
                process.cell = None
                if waiting:
                    process.run(waiting.popleft())
        return failures
    except KeyboardInterrupt:
        raise _interruption(folder) from None
    finally:
        for process in processes:
            process.end()


def _interruption(folder: Path) -> Interrupted:
    return Interrupted(f"interrupted; finished evaluations are recorded, the same command continues {folder}", folder)
