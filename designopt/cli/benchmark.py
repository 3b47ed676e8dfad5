"""``designopt benchmark``."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from designopt import plugin
from designopt.cli.completion import studies
from designopt.cli.exit import DONE, FAILURE_POLICY, INTERRUPTED, STORE, WRONG_INPUT, echo, fail
from designopt.cli.figure_files import figure_size_option, write_figures
from designopt.cli.opening import plugin_hint, refuse_python, study_options
from designopt.cli.separate import Tell, separately
from designopt.cli.validate import LONGEST
from designopt.counts import plural

if TYPE_CHECKING:
    from designopt.benchmarking.cells import Benchmark
    from designopt.benchmarking.scores import BenchmarkScores
    from designopt.run.progress import Mode


@click.command()
@click.argument("file", type=click.Path(), shell_complete=studies)
@click.option("-o", "--output", metavar="FOLDER", help="Folder for the results [default: results/NAME.benchmark].")
@click.option(
    "--workers", type=click.IntRange(min=1), help="Runs side by side, each in a process [default: one per core]."
)
@click.option("--scheduler", metavar="ADDRESS", help="Run by run, with the evaluations on this Dask scheduler.")
@click.option("--replace", is_flag=True, help="Make runs again that were made with another question or solver.")
@click.option("--dry-run", is_flag=True, help="Check the file, count the runs, and stop.")
@click.option(
    "--progress", "mode", type=click.Choice(["auto", "line", "json", "none"]), default="auto", show_default=True,
    help="Progress on stderr; json writes one object per line.",
)  # fmt: skip
@click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="FILE",
    help="Also write a figure of the page: ranks.pdf, convergence.svg or attainment.pdf; convergence-2.pdf is that of "
    "the second problem (repeatable).",
)
@figure_size_option
@study_options
def benchmark(
    file: str,
    output: str | None,
    dry_run: bool,
    mode: Mode,
    plugin_files: tuple[str, ...],
    data: dict[str, str],
    **options: Any,
) -> None:
    """Compare solvers: every solver of FILE on every problem with every seed.

    Each run is a store. The same command continues a stopped benchmark, and writes its page and tables again.
    """
    refuse_python(file)

    def work(tell: Tell) -> None:
        tell(file)
        figures, size = options.pop("figures"), options.pop("size")
        _check_figures(figures)
        statement = _read_or_fail(file, plugin_files, data)
        folder = Path(output) if output else statement.default_store
        if dry_run:
            _plan(statement, folder)
            return
        tell.runs(folder)

        def draw(scores: BenchmarkScores) -> None:
            write_figures(figures, lambda path: _write_figure(scores, path, size))

        sys.exit(_run(statement, folder, mode, draw, {**options, "data": data}))

    separately(work, LONGEST, stay=True)


def _read_or_fail(file: str, plugin_files: tuple[str, ...], data: dict[str, str]) -> Benchmark:
    """The benchmark in a file; ends the command with all its mistakes."""
    from designopt.benchmarking.file import Reading, read_benchmark
    from designopt.study.language.errors import StudyError, render_text

    try:
        contents = tuple(e for name in plugin_files for e in plugin.with_modules(name, Path(name).read_bytes()))
        return read_benchmark(Path(file), Reading(contents, {name: Path(root) for name, root in data.items()}))
    except StudyError as error:
        fail(render_text(error.issues) + plugin_hint(error.issues, plugin_files), WRONG_INPUT)
    except plugin.PluginError as error:
        fail(f"error: {error}", WRONG_INPUT)


def _plan(benchmark: Benchmark, folder: Path) -> None:
    from designopt.benchmarking.cells import CellState, state, states

    by_state = states(benchmark.cells_to_compute, folder)
    echo(f"{benchmark.name}: {plural(len(benchmark.cells), 'run')} in {folder}")
    if record_count := len(benchmark.cells) - len(benchmark.cells_to_compute):
        echo(f"  {record_count} in its records")
    for each in CellState:
        if by_state[each]:
            echo(f"  {len(by_state[each])} {each.value}")
    for cell in by_state[CellState.DIFFERENT][:1]:
        echo(f"    {cell.label}: {'; '.join(state(cell, folder)[1])}")


def _check_figures(files: Sequence[str]) -> None:
    """End the command if a file is not named after a part of the page with figures."""
    from designopt.benchmarking.page import FIGURES_OF_PARTS
    from designopt.report.figure_file import FigureError, part_and_number

    for file in files:
        try:
            part, _ = part_and_number(Path(file))
        except FigureError as error:
            fail(f"error: {error}", WRONG_INPUT)
        if part not in FIGURES_OF_PARTS:
            parts = ", ".join(FIGURES_OF_PARTS)
            fail(f"error: {file}: the page of a benchmark has no figure '{part}'; it has {parts}", WRONG_INPUT)


def _write_figure(scores: BenchmarkScores, file: Path, size: tuple[float, float] | None) -> str:
    """Write the figure that `file` names. Raises `FigureError` and `OSError`."""
    from designopt.benchmarking.page import FIGURES_OF_PARTS
    from designopt.report.figure_file import FigureError, part_and_number, write_one_of

    part, _ = part_and_number(file)
    figures = FIGURES_OF_PARTS[part](scores)
    if not figures:
        raise FigureError(f"{file}: this benchmark has no figure of the part '{part}'")
    return write_one_of(figures, file, size)


def _run(
    benchmark: Benchmark, folder: Path, mode: Mode, draw: Callable[[BenchmarkScores], None], options: dict[str, Any]
) -> int:
    """Run what is missing, write page and tables of what there is, and `draw` figures."""
    from designopt.benchmarking.processes import RunOptions
    from designopt.benchmarking.result import read_result
    from designopt.benchmarking.run import run_benchmark
    from designopt.benchmarking.table import failed_runs
    from designopt.run.progress import progress
    from designopt.store.errors import Interrupted, StoreError

    options = {**options, "workers": options["workers"] or os.cpu_count() or 1}
    failures: dict[tuple[str, str, int], str] = {}
    code = DONE
    try:
        try:
            failures = run_benchmark(benchmark, folder, RunOptions(**options), progress(mode))
        except Interrupted as error:
            echo(str(error), err=True)
            code = INTERRUPTED
        result = read_result(benchmark, folder, failures)
        files = result.write(shlex.join(["designopt", *(word for word in sys.argv[1:] if word != "--replace")]))
    except StoreError as error:
        fail(str(error), STORE)
    except OSError as error:
        reason = error.strerror or error
        way = "make the folder writable, or give another one with -o"
        fail(f"{folder}: the page and tables cannot be written ({reason}); {way}", STORE)
    echo(f"{result}" if result.scores.records else "no run has an end yet")
    for caution in result.scores.cautions:
        echo(f"note: {caution}")
    echo(f"report       {files[0]}")
    for path in files[1:]:
        echo(f"table        {path}")
    draw(result.scores)
    if failures:
        echo(f"\n{failed_runs(failures)}", err=True)
    return code or (FAILURE_POLICY if failures else DONE)
