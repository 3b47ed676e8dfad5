"""``designopt ask`` and ``designopt tell``: evaluations made in a laboratory, exchanged as CSV."""

from __future__ import annotations

import contextlib
import math
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from designopt.cli.ask_tell_table import Identity, ResultColumns, ResultRow, ResultTable, identity
from designopt.cli.completion import stores, studies
from designopt.cli.exit import STORE, WRONG_INPUT, echo, fail
from designopt.cli.opening import data_option, load_or_fail, open_result, plugin_option, without_plugin
from designopt.counts import of_number, plural
from designopt.plugin import PluginError

if TYPE_CHECKING:
    from designopt.api import Study
    from designopt.run.ask_tell import PendingEvaluation
    from designopt.study.study import StudyDefinition


@click.command()
@click.argument("study", type=click.Path(), shell_complete=studies)
@click.option(
    "-o", "--output", metavar="STORE", help="Store of the study in a file [default: results/NAME.study, of NAME.yaml]."
)
@click.option("-n", "--count", type=click.IntRange(min=1), default=1, show_default=True, help="Number of evaluations.")
@click.option(
    "--beside",
    is_flag=True,
    help="For an edited study: go on in NAME.2.study beside its store, with the results there.",
)
@plugin_option
@data_option
def ask(
    study: str, output: str | None, count: int, beside: bool, plugin_files: tuple[str, ...], data: dict[str, str]
) -> None:
    """Print evaluations to make elsewhere as CSV.

    STUDY is a study file or the store of one. The columns of the outputs are empty: fill them in and give the file to
    `designopt tell`. The same evaluations are printed until they have results; nothing is printed when the study is
    complete.
    """
    if beside and Path(study).is_dir():
        raise click.UsageError("--beside is for the file of an edited study, not for a store")
    definition, store = _study(study, output, plugin_files, data)
    with _sentences(store):
        store, recall = _store_to_continue(definition, study, store, beside)
        evaluations = definition.ask(count, store=store, recall=recall)
    if not evaluations:
        echo(f"{store}: the study is complete", err=True)
        return
    echo(ResultColumns.of_study(definition).table(evaluations).removesuffix("\n"))
    if len(evaluations) < count:
        echo(f"{len(evaluations)} of {count}: {_why_no_more(definition.definition, store)}", err=True)


@click.command()
@click.argument("store", type=click.Path(), shell_complete=stores)
@click.argument("results", type=click.Path(exists=True, dir_okay=False))
@click.option("--correct", is_flag=True, help="Replace recorded results; the journal keeps the former ones.")
@plugin_option
@data_option
def tell(store: str, results: str, correct: bool, plugin_files: tuple[str, ...], data: dict[str, str]) -> None:
    """Record the results of evaluations that `designopt ask` printed.

    RESULTS is the CSV of `ask` with the outputs filled in, in the units of its head. Rows without outputs stay pending;
    a text in the column `failed` is the reason why an evaluation has no result. Parameters in the file must be those
    that were asked for.
    """
    from designopt.run.ask_tell import tell as record

    definition, path = _study(store, None, plugin_files, data)
    table = ResultTable(Path(results), ResultColumns.of_study(definition))
    rows = table.rows()
    with _sentences(path):
        path, _ = _store_to_continue(definition, store, path, beside=False)
        by_identity = _evaluations(definition, path, table, rows, correct)
        pending = _pending_identities(definition, path) if correct else set(by_identity)
        reports = []
        for row in rows:
            table.check_settings(row, by_identity[row.identity])
            reports.append((by_identity[row.identity], row.values, row.why))
        changes: dict[bytes, str] = {}
        successes = [(evaluation, values) for evaluation, values, _ in reports if values is not None]
        if successes:
            evaluations, outputs = (list(column) for column in zip(*successes, strict=True))
            changes |= record(definition.definition, path, evaluations, outputs, "", correct=correct)
        for evaluation, values, why in reports:
            if values is None:
                changes |= record(definition.definition, path, [evaluation], [None], why, correct=correct)
        for sentence in changes.values():
            echo(sentence)
        if correct:
            lines = [row.line for row in rows if by_identity[row.identity].key not in changes]
            echo(f"{plural(len(changes), 'result')} corrected in {path}, {len(lines)} unchanged{_lines(lines)}")
            if table.empty_lines:
                echo(
                    f"{plural(len(table.empty_lines), 'row')} without outputs{_lines(table.empty_lines)}: the recorded "
                    "result stays; to withdraw it, say why in the column 'failed'"
                )
        proposed_identities = _pending_identities(definition, path)
        state = _state(path, len(proposed_identities & pending), len(proposed_identities - pending))
    echo(state if correct else f"{plural(len(reports), 'result')} recorded in {path}; {state}")


def _pending_identities(study: Study, store: Path) -> set[Identity]:
    """All evaluations that the store asks for now."""
    return {identity(evaluation) for evaluation in study.ask(2**31, store=store)}


def _state(store: Path, pending: int, further: int) -> str:
    """The state after results: evaluations that still have none, and those that are asked for next."""
    from designopt.store.errors import plugin_options

    clauses = [f"{pending} pending"] if pending else []
    if further:
        command = f"designopt ask {shlex.quote(str(store))} -n {further}{plugin_options(store)}"
        clauses.append(f"{further} more to make: {command}")
    return "; ".join(clauses) or "the study is complete"


def _why_no_more(study: StudyDefinition, store: Path) -> str:
    """Why a store asks for no further evaluations now: they are the last, or the solver waits for results."""
    from designopt.api import open_store

    last = study.stages[-1]
    designs, budget = len(open_store(store).designs_of(last.name)), last.budget.evaluations
    if designs and (designs >= (budget or math.inf) or not last.solver.plugin.needs_objectives):
        if study.validate is None and (study.tolerances is None or study.tolerances.assumed):
            return "these are the last of the study"
        return "these are the last of the search; further ones, about its chosen designs, need their results"
    looks_ahead = any("look_ahead" in stage.solver.plugin.settings for stage in study.stages)
    setting = "; its setting 'look_ahead' raises that number" if looks_ahead else ""
    return f"there are no more before the solver has results of these{setting}"


def _lines(lines: Sequence[int]) -> str:
    """`` (lines 2, 5 and 7)``; "" without any."""
    from designopt.report.labels import listed

    return f" ({of_number(len(lines), 'line')} {listed([str(line) for line in lines])})" if lines else ""


def _evaluations(
    study: Study, path: Path, table: ResultTable, rows: Sequence[ResultRow], correct: bool
) -> dict[Identity, PendingEvaluation]:
    """The evaluations that the rows may be results of: those that have one to `correct`, else the pending ones. Ends
    the command for a row of another one."""
    from designopt.run.ask_tell import recorded_evaluations
    from designopt.store.errors import plugin_options

    records = {
        identity(evaluation): (evaluation, end_time)
        for evaluation, end_time in recorded_evaluations(study.definition, path)
    }
    if correct:
        by_identity = {key: evaluation for key, (evaluation, _) in records.items()}
    else:
        by_identity = {identity(evaluation): evaluation for evaluation in study.ask(2**31, store=path)}
    for row in rows:
        if row.identity in by_identity:
            continue
        number, scenario, _ = row.identity
        subject = f"error: {table.file}:{row.line}: design {number} in scenario '{scenario}'"
        if row.identity in records:
            day = time.strftime("%Y-%m-%d %H:%M", time.localtime(records[row.identity][1]))
            command = f"designopt tell {shlex.quote(str(path))} FILE --correct{plugin_options(path)}"
            way = f"to correct it, or for the mean with another measurement: {command}, with these rows in FILE"
            fail(f"{subject} is not pending: its result was recorded on {day}; {way}", WRONG_INPUT)
        if correct:
            fail(f"{subject} has no result to correct; tell it without --correct", WRONG_INPUT)
        command = f"designopt ask {shlex.quote(str(path))} -n 100{plugin_options(path)}"
        fail(f"{subject} was never asked for; {command} prints what is pending", WRONG_INPUT)
    return by_identity


def _store_to_continue(study: Study, path_text: str, store: Path, beside: bool) -> tuple[Path, Sequence[Path]]:
    """The store in which the study goes on, and those whose results it takes over. Ends the command for a study file
    that was edited, unless it goes on `beside` its store."""
    from designopt.report.comparison.study_edit import StudyEdit
    from designopt.run.evaluations.recall import evaluations_with_same_keys
    from designopt.store.errors import plugin_options

    if Path(path_text).is_dir():
        return store, []
    if not (store / "journal.db").exists():
        _name_results(study, path_text, store, beside)
        return store, []
    edit = StudyEdit(study.definition, store)
    if not edit.differences:
        return store, []
    if beside:
        way = f"continuing {edit.beside}, beside {store}"
        if not (edit.beside / "journal.db").exists():
            reusable, total = evaluations_with_same_keys(store, study.problem)
            reuse = f"takes over up to {reusable} of its {plural(total, 'result')}"
            way = f"new store {edit.beside}, beside {store}: {reuse}"
        echo(way, err=True)
        return edit.beside, edit.sources
    beside_it = f"go on in {edit.beside}, with results of the same designs from {store}"
    file, files = shlex.quote(path_text), plugin_options(store)
    ways = [(f"designopt ask {file} --beside{files}", beside_it)]
    ways += [(f"designopt run {file} --rescore{files}", text) for option, text in edit.ways() if option == "--rescore"]
    ways.append((f"designopt ask {shlex.quote(str(store))}{files}", "go on with the study as it was"))
    width = max(len(command) for command, _ in ways)
    lines = [f"{store} has another study than {path_text}:", *(f"  {clause}" for clause in edit.differences)]
    lines += ["Nothing was changed; the results in it stay. Go on with one of:"]
    return fail("\n".join([*lines, *(f"  {command:{width}}  {text}" for command, text in ways)]), STORE)


def _name_results(study: Study, path_text: str, store: Path, beside: bool) -> None:
    """Name, before the new `store` begins, the store in its folder that has most results of the study's evaluations;
    ends the command if it was to go on `beside` a store."""
    from designopt.run.evaluations.recall import evaluations_with_same_keys
    from designopt.store.errors import StoreError, plugin_options
    from designopt.store.nearest_store import stores_in

    counts: dict[Path, int] = {}
    for candidate in stores_in(store.parent):
        with contextlib.suppress(StoreError, PluginError):
            counts[candidate] = evaluations_with_same_keys(candidate, study.problem)[0]
    best = max(counts, key=lambda candidate: counts[candidate], default=store)
    if counts.get(best):
        command = f"designopt ask {shlex.quote(path_text)} -o {shlex.quote(str(best))} --beside{plugin_options(best)}"
        has = f"{best} has {plural(counts[best], 'result')} of the same evaluations; to take over: {command}"
        if beside:
            fail(f"there is no store {store} to go beside, and nothing was asked; {has}", STORE)
        echo(f"note: {store} is new; {has}", err=True)
    elif beside:
        echo(f"there is no store {store} to go beside: it is new", err=True)


def _study(path: str, output: str | None, plugin_files: tuple[str, ...], data: Mapping[str, str]) -> tuple[Study, Path]:
    """The study in a file or store, and its store; ends the command with its mistakes."""
    from designopt.api import Study

    if not Path(path).is_dir():
        study = load_or_fail(path, (), plugin_files, data)
        return study, Path(output) if output else study.default_store
    if output:
        raise click.UsageError(f"{path} is a store; -o is for a study file")
    definition = open_result(path, plugin_files, data).study
    if definition.model.plugin.description.startswith("not available: "):
        fail(without_plugin(path, definition.model.plugin.description.removeprefix("not available: ")), STORE)
    return Study(definition), Path(path)


@contextlib.contextmanager
def _sentences(store: Path) -> Iterator[None]:
    """End the command with the sentence of an error of the store, the plugin or the results."""
    from designopt.store.errors import RunError

    try:
        yield
    except RunError as error:
        fail(str(error), STORE)
    except (PluginError, ValueError) as error:
        fail(f"error: {store}: {error}", WRONG_INPUT)
