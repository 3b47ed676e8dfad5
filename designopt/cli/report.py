"""``designopt report``: pages and tables from stores."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from designopt import plugin
from designopt.cli.completion import stores as stores_here
from designopt.cli.exit import NOTHING_FEASIBLE, STORE, WRONG_INPUT, echo, fail
from designopt.cli.figure_files import figure_size_option, write_figures
from designopt.cli.opening import open_result, plugin_option
from designopt.plugin import ExportPlugin, Use

if TYPE_CHECKING:
    from designopt.store.result import Result

#: A format that writes more files has one line, for the first; it names at most so many others.
LISTED, NAMED = 4, 12


@click.command()
@click.argument("stores", nargs=-1, required=True, metavar="STORE...", type=click.Path(), shell_complete=stores_here)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Where to write the page [default: report.html in the store; with --compare comparison.html].",
)
@click.option("--compare", is_flag=True, help="Compare the stores on one page.")
@click.option(
    "--export",
    "formats",
    multiple=True,
    metavar="FORMAT",
    help="Also write all designs as a table (parquet, csv), the kept arrays (netcdf) or another "
    "format of `designopt list exports`, beside the page (repeatable, or separated by commas).",
)
@click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="FILE",
    help="Write a figure instead of the page: PART.svg or PART.pdf, as in front.pdf; convergence-2.pdf is the second "
    "one of a part (repeatable).",
)
@figure_size_option
@click.option(
    "--designs",
    metavar="POINT[,POINT]",
    help="--figure: draw these designs, not the chosen ones: numbers or names as in `designopt show STORE/POINT`.",
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Re-score from stored outputs without a simulation, as in objectives.0.over=mean (repeatable).",
)
@plugin_option
def report(
    stores: tuple[str, ...],
    output: str | None,
    compare: bool,
    formats: tuple[str, ...],
    figures: tuple[str, ...],
    size: tuple[float, float] | None,
    designs: str | None,
    changes: tuple[str, ...],
    plugin_files: tuple[str, ...],
) -> None:
    """Rewrite the report of each STORE, or compare stores.

    This also works while a run is going on; --compare puts all stores on one page.

    With --set results are re-scored from stored outputs and go to report-set.html: the store and its own report stay as
    they are.
    """
    from designopt.report import summary_table

    if compare and len(stores) < 2:
        raise click.UsageError("--compare needs at least two stores")
    if output and len(stores) > 1 and not compare:
        raise click.UsageError("-o names one page; use --compare for one page about all stores, or omit -o")
    if figures and (compare or formats or output or len(stores) > 1):
        raise click.UsageError("--figure writes figures of one store; omit --compare, --export and -o")
    if designs and not figures:
        raise click.UsageError("--designs is for figures: --figure FILE")
    if compare and formats:
        raise click.UsageError("--export writes the tables of each store; omit --compare")
    results = [_with_changes(open_result(store, plugin_files), changes, plugin_files) for store in stores]
    if compare:
        echo(_write_comparison(results, Path(output or "comparison.html")))
        return
    if figures:
        from designopt.cli.design import row_of
        from designopt.report.figure_file import write_figure

        rows = tuple(row_of(results[0], point.strip()) for point in (designs or "").split(",") if point.strip())
        write_figures(figures, lambda file: write_figure(replace(results[0], rows_in_figures=rows), file, size))
        return
    nothing, default_page = [], "report-set.html" if changes else "report.html"
    for result in results:
        page = write_page(result, Path(output) if output else result.path / default_page)
        echo(page)
        if formats:
            write_exports(
                result, page, list(dict.fromkeys(form for text in formats for form in text.split(",") if form))
            )
        if changes and result.problem.objectives and not result.outcomes.feasible.any():
            nothing.append(result)
            echo(f"{result.path}: no design satisfies the present limits", err=True)
        elif changes:
            echo(summary_table(result))
    if nothing and len(nothing) == len(results):
        sys.exit(NOTHING_FEASIBLE)


def _with_changes(result: Result, changes: Sequence[str], plugin_files: Sequence[str]) -> Result:
    """`result` re-scored from stored outputs; ends the command if that fails."""
    from designopt.store.errors import StoreError, plugin_options
    from designopt.study.language.errors import StudyError, render_text

    if not changes:
        return result
    try:
        new_result = result.with_changes(changes)
        _ = new_result.outcomes  # scored here, where a failing aggregation can be reported
        return new_result
    except StudyError as error:
        options = plugin_options(result.path, {Path(file).name for file in plugin_files})
        hint = f"{result.path}: the run used{options}, which is needed here too\n" if options else ""
        fail(hint + render_text(error.issues), WRONG_INPUT)
    except plugin.PluginError as error:
        fail(f"error: {error}", WRONG_INPUT)
    except StoreError as error:
        fail(str(error), STORE)


def _write_comparison(results: list[Result], page: Path) -> Path:
    from designopt.report.comparison.page import write_comparison

    try:
        return write_comparison(results, page)
    except OSError as error:
        fail(
            f"{page}: the comparison cannot be written ({error.strerror or error}); choose another place with -o", STORE
        )
    except ValueError as error:
        fail(f"error: {error}", WRONG_INPUT)


def write_page(result: Result, file: Path | None = None, refresh: float | None = None) -> Path:
    """The page of `result`, reloaded after `refresh` seconds; ends the command if it cannot be written."""
    from designopt.report import write_report

    target = file or result.path / "report.html"
    try:
        return write_report(result, target, refresh)
    except OSError as error:
        way_out = f"choose another place with: designopt report {shlex.quote(str(result.path))} -o FILE"
        fail(f"{target}: the report cannot be written ({error.strerror or error}); {way_out}", STORE)


def write_exports(
    result: Result, page: Path, formats: Sequence[str | Use[ExportPlugin]], *, required: bool = True, label: str = ""
) -> int:
    """Tables and arrays beside `page`, under its name unless it is the store's own report; prints their names.

    Ends the command if they cannot be written, unless they are not `required`: then the reasons are reported, and the
    number of formats without files is returned.
    """
    from designopt.exports import ExportError, export
    from designopt.store.errors import StoreError

    prefix = "" if page.stem == "report" else f"{page.stem}."
    lacking = 0
    for form in formats:
        name = form if isinstance(form, str) else form.plugin.name
        try:
            files = export(result, page.parent, [form], prefix=prefix)
        except (ExportError, plugin.PluginFailed, StoreError, OSError) as error:
            text, code = str(error), STORE
            if isinstance(error, (ExportError, plugin.PluginFailed)):
                text, code = f"error: {error}", WRONG_INPUT
            elif isinstance(error, OSError):
                text = f"{page.parent}: the {name} export cannot be written ({error.strerror or error})"
            if required:
                fail(text, code)
            echo(f"not exported: {text.removeprefix('error: ')}", err=True)
            lacking += 1
            continue
        printed_files = files if len(files) <= LISTED else files[:1]
        for file in printed_files:
            echo(f"{label}{file}")
        if len(printed_files) < len(files):
            file_names = ": " + ", ".join(file.name for file in files[1:]) if len(files) - 1 <= NAMED else ""
            echo(f"{label}{files[-1].parent}: {len(files) - 1} more files of the format {name}{file_names}")
    return lacking
