"""The command line: arguments in, exit code out.

Exit codes: 0 done; 1 done, but no feasible design; 2 the file or the arguments are wrong; 3 stopped by the failure
policy; 4 the store does not fit (other problem or version, locked, not writable); 130 interrupted.
"""

from __future__ import annotations

import dataclasses
import functools
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from designopt import plugin

if TYPE_CHECKING:
    from designopt.api import Study
    from designopt.run.progress import Mode
    from designopt.run.result import Result
    from designopt.study.errors import Issue

DONE, NOTHING_FEASIBLE, WRONG_INPUT, FAILURE_POLICY, STORE, INTERRUPTED = 0, 1, 2, 3, 4, 130

F = Callable[..., Any]


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="designopt")
def main() -> None:
    """Design studies of mechanical and biomechanical models.

    A study file says what is asked; `designopt run FILE` answers it. Start with a bundled one: studies/.
    """


def _running(command: F) -> F:
    """Options shared by the commands that evaluate, and the way their errors become exit codes."""

    @click.option("--workers", type=click.IntRange(min=1), help="Local worker processes (default: one a core).")
    @click.option("--scheduler", metavar="ADDRESS", help="Use the Dask scheduler at ADDRESS instead of local workers.")
    @click.option("--executor", type=click.Choice(["auto", "serial", "dask"]), help="Override the study's executor.")
    @click.option("--insecure", is_flag=True, help="Allow an unencrypted scheduler on another host.")
    @click.option("--allow-version-skew", is_flag=True, help="Allow workers with other versions.")
    @click.option(
        "--progress",
        "progress_mode",
        type=click.Choice(["auto", "line", "json", "none"]),
        default="auto",
        show_default=True,
        help="Progress on stderr; json is one object a line.",
    )
    @functools.wraps(command)
    def with_exit_codes(**arguments: Any) -> None:
        from designopt.run.errors import FailurePolicyStop, Interrupted, StoreError

        if arguments["scheduler"] not in (None, "local") and arguments["workers"] is not None:
            raise click.UsageError("--workers are local ones; with --scheduler all workers of the scheduler are used")
        if arguments["executor"] == "serial" and (arguments["workers"] or arguments["scheduler"]):
            raise click.UsageError("--executor serial has neither --workers nor --scheduler")
        try:
            sys.exit(command(**arguments))
        except StoreError as error:
            _fail(str(error), STORE)
        except FailurePolicyStop as error:
            _fail(str(error), FAILURE_POLICY)
        except Interrupted as error:
            _fail(str(error), INTERRUPTED)

    return with_exit_codes


def _load(path: str, overrides: tuple[str, ...] = (), plugin_files: tuple[str, ...] = ()) -> Study:
    from designopt.api import load
    from designopt.study.errors import StudyError, render_text

    try:
        return load(path, overrides=overrides, plugin_files=plugin_files)
    except StudyError as error:
        _fail(render_text(error.issues), WRONG_INPUT)
    except plugin.PluginError as error:
        _fail(f"error: {error}", WRONG_INPUT)


_set = click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Replace a value of the file.")
_plugins = click.option(
    "--plugin",
    "plugin_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    help="Run this Python file and use the plugins that it declares.",
)


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--try", "count", type=click.IntRange(min=0), default=0, help="Also evaluate COUNT designs here.")
@_set
@_plugins
def validate(files: tuple[str, ...], form: str, count: int, **given: tuple[str, ...]) -> None:
    """Check study files: every mistake, with its place and its mend."""
    from designopt.api import load
    from designopt.study.errors import StudyError, render_json, render_text

    issues: list[Issue] = []
    for file in files:
        try:
            study = load(file, **given)
        except StudyError as error:
            issues += error.issues
        except plugin.PluginError as error:
            _fail(f"error: {error}", WRONG_INPUT)
        else:
            if form == "text":
                click.echo(f"{file}: a valid study")
            if count:
                _try(study, count, beside=form == "json")
    if form == "json":
        click.echo(render_json(tuple(issues)))
    elif issues:
        click.echo(render_text(tuple(issues)), err=True)
    sys.exit(WRONG_INPUT if issues else DONE)


def _try(study: Study, count: int, *, beside: bool) -> None:
    """Evaluate designs and say what came out, on stderr when `beside` other output."""
    from designopt.run.evaluate import trial

    try:
        lines = trial(study.definition, count)
    except plugin.PluginError as error:
        _fail(f"error: {error}", WRONG_INPUT)
    for line in lines:
        click.echo(f"  {line}", err=beside)


@main.command()
@click.argument("file", type=click.Path())
@click.option("-o", "--output", metavar="STORE", help="Folder of the results [default: results/NAME.study].")
@click.option("--dry-run", is_flag=True, help="Check, say what would run, and stop.")
@_set
@_plugins
@_running
def run(
    file: str,
    output: str | None,
    dry_run: bool,
    overrides: tuple[str, ...],
    plugin_files: tuple[str, ...],
    progress_mode: Mode,
    **options: Any,
) -> int:
    """Run the study in FILE; everything computed is durable at once and a stopped run can be resumed."""
    from designopt.run.progress import progress

    study = _load(file, overrides, plugin_files)
    store = Path(output) if output else study.default_store
    if dry_run:
        from designopt.run.plan import plan

        chosen = {k: options[k] for k in ("executor", "workers", "scheduler") if options[k] is not None}
        execution = dataclasses.replace(study.definition.execution, **chosen)
        click.echo(plan(dataclasses.replace(study.definition, execution=execution), store))
        return DONE
    return _finish(study.run(store, progress=progress(progress_mode), **options))


@main.command()
@click.argument("store", type=click.Path())
@click.option(
    "--budget", multiple=True, metavar="STAGE=N", help="A larger number of evaluations for a stage (repeatable)."
)
@_plugins
@_running
def resume(
    store: str, budget: tuple[str, ...], plugin_files: tuple[str, ...], progress_mode: Mode, **options: Any
) -> int:
    """Continue a stopped run; nothing that was recorded is computed again."""
    from designopt.api import resume as resume_store
    from designopt.run.progress import progress

    budgets = dict(_budget(item) for item in budget)
    return _finish(
        resume_store(store, progress=progress(progress_mode), budget=budgets, plugin_files=plugin_files, **options)
    )


def _budget(text: str) -> tuple[str, int]:
    stage, _, number = text.rpartition("=")
    if not stage or not number.isdigit():
        raise click.UsageError(f"--budget takes STAGE=N, a stage's name and a whole number, not '{text}'")
    return stage, int(number)


def _finish(result: Result) -> int:
    """The short table, the report and the next commands, after a run."""
    from designopt.report import summary_table
    from designopt.run.errors import resume_command

    feasible = bool(result.outcomes.feasible.any())
    if feasible:
        click.echo(f"{summary_table(result)}\n")
    click.echo(f"report       {_write_report(result)}")
    click.echo(f"look closer  designopt show {shlex.quote(str(result.path))}")
    budgeted = [stage.name for stage in result.study.stages if stage.budget.evaluations is not None]
    larger = f" --budget {budgeted[-1]}=N   (with a larger budget)" if budgeted else ""
    click.echo(f"resume       {resume_command(result.path)}{larger}")
    if not feasible:
        click.echo("\nNo feasible design was found: the report's failures and limits say why.", err=True)
        click.echo(_most_frequent_failure(result), err=True, nl=bool(result.failures()))
        return NOTHING_FEASIBLE
    return DONE


def _most_frequent_failure(result: Result) -> str:
    """Class, reason, number and what was said first, in one line; "" when every evaluation gave a result."""
    for (status, reason), number in result.failures().items():
        rows, scenarios = ((result.status == status) & (result.reason == reason)).nonzero()
        lines = result.message(int(rows[0]), int(scenarios[0])).strip().splitlines()
        said = (
            f", the first: {lines[-1 if status == 'error' else 0]}" if lines else ""
        )  # a traceback ends with its error
        share = f"{number} of {result.status.size}"
        return f"Most frequent failure: {status}{f' ({reason})' if reason else ''}, {share}{said}"
    return ""


@main.command()
@click.argument("store", type=click.Path())
@click.option("-o", "--output", metavar="FILE", help="Where to write the page [default: report.html in the store].")
@_plugins
def report(store: str, output: str | None, plugin_files: tuple[str, ...]) -> None:
    """Write the report of STORE anew, also while its run is going."""
    click.echo(_write_report(_open(store, plugin_files), Path(output) if output else None))


def _write_report(result: Result, file: Path | None = None) -> Path:
    from designopt.report import write_report

    target = file or result.path / "report.html"
    try:
        return write_report(result, target)
    except OSError as error:
        way_out = f"write it elsewhere with: designopt report {shlex.quote(str(result.path))} -o FILE"
        _fail(f"{target}: the report cannot be written ({error.strerror or error}); {way_out}", STORE)


@main.command(name="list")
@click.argument("kind", required=False, type=click.Choice([*(f"{k}s" for k in plugin.GROUPS), "stores"]))
def list_(kind: str | None) -> None:
    """List installed plugins (imports none of them), or the stores below results/."""
    if kind == "stores":
        for journal in sorted(Path("results").glob("*/journal.db")):
            click.echo(journal.parent)
        return
    for k in plugin.GROUPS:
        if kind in (None, f"{k}s"):
            click.echo(f"{k}s")
            for listed in plugin.installed(k):
                click.echo(f"  {listed.name:<22} {listed.distribution} {listed.version}")


@main.command()
@click.argument("name")
@_plugins
def show(name: str, plugin_files: tuple[str, ...]) -> None:
    """Show a plugin's settings with their units, the state of a store, or `schema` (JSON Schema of study files)."""
    if name == "schema":
        import json

        from designopt.study.schema import schema

        click.echo(json.dumps(schema(), indent=2))
    elif Path(name).is_dir():
        from designopt.report import state, summary_table

        result = _open(name, plugin_files)
        click.echo(f"{state(result)}\n\n{summary_table(result)}")
        if result.ended != "done":
            from designopt.run.errors import resume_command

            click.echo(f"\ncontinue     {resume_command(result.path)}")
    else:
        from designopt.study.settings import describe

        _declare(plugin_files)
        found = [k for k in plugin.GROUPS if name.rpartition(":")[2] in plugin.names(k)]
        if not found:
            known = ", ".join(sorted({n for k in plugin.GROUPS for n in plugin.names(k)}))
            _fail(f"error: '{name}' is neither a store nor a plugin (installed: {known})", WRONG_INPUT)
        for k in found:
            try:
                click.echo(describe(plugin.find(k, name)))
            except plugin.PluginError as error:
                _fail(f"error: {error}", WRONG_INPUT)


def _declare(plugin_files: tuple[str, ...]) -> None:
    try:
        for file in plugin_files:
            plugin.load_file(file, Path(file).read_bytes())
    except plugin.PluginError as error:
        _fail(f"error: {error}", WRONG_INPUT)


def _open(store: str, plugin_files: tuple[str, ...]) -> Result:
    from designopt.api import open_store
    from designopt.run.errors import StoreError

    _declare(plugin_files)
    try:
        result = open_store(store)
        _ = result.counts, result.sessions  # read here, where a damaged journal can be told
    except StoreError as error:
        _fail(str(error), STORE)
    except plugin.PluginError as error:  # an aggregation of a file of the user's: nothing can be judged without it
        _fail(f"{store}: {error}; give the file that declares it with --plugin FILE", STORE)
    return result


def _fail(message: str, code: int) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(code)
