"""``designopt run`` and ``designopt resume``."""

from __future__ import annotations

import dataclasses
import functools
import shlex
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from designopt.cli.again import Way, again_options, rescore, start_of
from designopt.cli.completion import stores, studies
from designopt.cli.exit import DONE, FAILURE_POLICY, INTERRUPTED, NOTHING_FEASIBLE, STORE, WRONG_INPUT, echo, fail
from designopt.cli.opening import load_or_fail, study_options
from designopt.cli.report import write_exports, write_page
from designopt.cli.separate import Tell, separately
from designopt.cli.validate import LONGEST, set_option

if TYPE_CHECKING:
    from designopt.run.progress import Mode
    from designopt.store.errors import RunError
    from designopt.store.result import Result

F = Callable[..., Any]


def _running(command: F) -> F:
    """Common options of the commands that evaluate, and the conversion of their errors to exit codes."""

    @click.option(
        "--workers", type=click.IntRange(min=1), help="Number of local worker processes (default: one per core)."
    )
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
        help="Progress on stderr; json writes one object per line.",
    )
    @functools.wraps(command)
    def with_exit_codes(**arguments: Any) -> None:
        if arguments["scheduler"] not in (None, "local") and arguments["workers"] is not None:
            raise click.UsageError("--workers is for local workers; --scheduler uses all workers of the scheduler")
        if arguments["executor"] == "serial" and (arguments["workers"] or arguments["scheduler"]):
            raise click.UsageError("--executor serial does not take --workers or --scheduler")
        separately(lambda tell: _end(command, tell, arguments), LONGEST, stay=True)

    return with_exit_codes


def _end(command: F, tell: Tell, arguments: dict[str, Any]) -> None:
    """Exit with the code of `command`, or of its error."""
    from designopt.plugin import PluginError
    from designopt.store.errors import BudgetError, FailurePolicyStop, Interrupted, StoreError

    working_folder = Path.cwd()
    try:
        sys.exit(command(tell, **arguments))
    except PluginError as error:
        fail(f"error: {error}", WRONG_INPUT)
    except BudgetError as error:
        options = arguments["budget"]
        option = next((text for text in options if text.startswith(f"{error.stage}=")), options[-1])
        fail(f"error: --budget {option}: {error}", WRONG_INPUT)
    except StoreError as error:
        fail(_message(error, working_folder), STORE)
    except FailurePolicyStop as error:
        fail(_message(error, working_folder), FAILURE_POLICY)
    except Interrupted as error:
        fail(_message(error, working_folder), INTERRUPTED)


def _message(error: RunError, working_folder: Path) -> str:
    """The message of `error`, with the store relative to the folder of the command."""
    if error.path.is_absolute() and error.path.is_relative_to(working_folder):
        return str(error).replace(str(error.path), str(error.path.relative_to(working_folder)))
    return str(error)


budget_option = click.option(
    "--budget",
    multiple=True,
    metavar="[STAGE=]N",
    help="New budget for a stage, in designs or as a time: STAGE=30min (repeatable). The only stage with a budget "
    "needs no name.",
)


@click.command()
@click.argument("file", type=click.Path(), shell_complete=studies)
@click.option(
    "-o", "--output", metavar="STORE", help="Folder for the results [default: results/NAME.study, of NAME.yaml]."
)
@click.option("--dry-run", is_flag=True, help="Check the study, print the plan, and stop.")
@again_options
@budget_option
@set_option
@study_options
@_running
def run(
    tell: Tell,
    file: str,
    output: str | None,
    dry_run: bool,
    way: Way,
    budget: tuple[str, ...],
    overrides: tuple[str, ...],
    plugin_files: tuple[str, ...],
    data: dict[str, str],
    progress_mode: Mode,
    **options: Any,
) -> int:
    """Run the study in FILE.

    Each result is saved as soon as it is computed. The same command continues a stopped run. For a study that was
    edited after its run it lists the differences and the ways to go on: --rescore, --beside or --replace.
    """
    tell(file)
    from designopt.run.progress import progress
    from designopt.study.remarks import remarks

    budgets = _budgets(budget)
    study = load_or_fail(file, overrides, plugin_files, data)
    store = Path(output) if output else study.default_store
    if progress_mode in ("auto", "line"):
        for note in remarks(study.definition):
            echo(note, err=True)
    if dry_run:
        from designopt.run.changed_budgets import budgets_by_stage, refuse_too_small, with_budgets
        from designopt.run.plan import plan

        settings = {k: options[k] for k in ("executor", "workers", "scheduler") if options[k] is not None}
        execution = dataclasses.replace(study.definition.execution, **settings)
        budgets = budgets_by_stage(study.definition.stages, budgets, store)
        stages = with_budgets(study.definition.stages, budgets)
        refuse_too_small(study.definition, study.problem, budgets, store)
        echo(plan(dataclasses.replace(study.definition, execution=execution, stages=stages), store))
        return DONE
    if way == "rescore":
        return rescore(study, store)
    start = start_of(study, store, way)
    if start.resume:
        from designopt.run.changed_budgets import at_least_spent, budgets_by_stage

        changes = budgets_by_stage(study.definition.stages, budgets, start.store)
        budgets = {**at_least_spent(study.definition, start.store), **changes}
    tell.runs(start.store)
    result = study.run(progress=progress(progress_mode), budget=budgets, **vars(start), **options)
    return _finish(result)


@click.command()
@click.argument("store", type=click.Path(), shell_complete=stores)
@budget_option
@study_options
@_running
def resume(
    tell: Tell,
    store: str,
    budget: tuple[str, ...],
    plugin_files: tuple[str, ...],
    data: dict[str, str],
    progress_mode: Mode,
    **options: Any,
) -> int:
    """Continue a stopped run.

    Nothing that was recorded is computed again; a finished run needs a larger --budget.
    """
    tell(store)
    from designopt.api import resume as resume_store
    from designopt.run.progress import progress

    budgets = _budgets(budget)
    run_options: dict[str, Any] = {"budget": budgets, "plugin_files": plugin_files, "data": data}
    run_options["ready"] = lambda: tell.runs(Path(store))
    result = resume_store(store, progress=progress(progress_mode), **run_options, **options)
    return _finish(dataclasses.replace(result, path=Path(store)))


def _budgets(options: tuple[str, ...]) -> dict[str, int | timedelta]:
    """The values of ``--budget``, by the name of the stage; empty for the only stage with a budget."""
    budgets = dict(_budget(text) for text in options)
    if len(budgets) < len(options):
        raise click.UsageError("--budget names a stage twice; give either designs or a time")
    return budgets


def _budget(text: str) -> tuple[str, int | timedelta]:
    from designopt.study.language import units

    stage, equals, limit = text.rpartition("=")
    if limit.isdigit() and bool(stage) == bool(equals):
        return stage, int(limit)
    try:
        amount = units.parse_amount(limit)
        time = timedelta(seconds=units.convert(amount.value, amount.unit or "", "s"))
    except (units.UnitError, OverflowError, ValueError):
        time = timedelta(0)
    if bool(stage) != bool(equals) or time <= timedelta(0):
        raise click.UsageError(
            f"--budget takes N or STAGE=N, where N is an integer or a time such as 30min, not '{text}'"
        )
    return stage, time


def _finish(result: Result) -> int:
    """The short table, the report, the exports and the next commands."""
    from designopt.report import summary_table
    from designopt.report.no_design import most_frequent_end, without_number
    from designopt.report.terminal import broken_limits, most_frequent_failure
    from designopt.store.errors import budget_option, path_hint, resume_command
    from designopt.study.remarks import study_remarks

    feasible = bool(result.outcomes.feasible.any())
    if feasible or (not result.problem.objectives and len(result.outcomes)):
        echo(f"{summary_table(result)}\n")
    page = write_page(result)
    echo(f"report       {page}")
    lacking = write_exports(result, page, result.study.export, required=False, label="export       ")
    echo(f"look closer  designopt show {shlex.quote(str(result.path))}")
    stages = result.study.stages
    budgets = [(stage.name, "N") for stage in stages if stage.budget.evaluations is not None]
    budgets = budgets or [(stage.name, "TIME") for stage in stages if stage.budget.wall is not None]
    larger = budget_option(stages, *budgets[-1]) if budgets else ""
    words = "; ".join(filter(None, ["with a larger budget" if larger else "", path_hint(result.path)]))
    echo(f"resume       {resume_command(result.path)}{larger}{f'   ({words})' if words else ''}")
    if not feasible:
        nothing = "No feasible design was found" if result.problem.objectives else "No design has a feasible result"
        cause = result.never_finite() or "see failures and limits in the report"
        echo(f"\n{nothing}: {cause}.", err=True)
        limits = broken_limits(result.in_stated_units) if result.problem.objectives else []  # an analysis has a table
        doubts = [f"note: {text}" for text in study_remarks(result.study)]
        for line in (
            without_number(result),
            *limits,
            most_frequent_failure(result),
            most_frequent_end(result),
            *doubts,
        ):
            if line:
                echo(line, err=True)
        return NOTHING_FEASIBLE
    if lacking:
        command = resume_command(result.path)
        echo(f"\nThe results are kept. After removing the cause, write the exports with: {command}", err=True)
        return STORE
    return DONE
