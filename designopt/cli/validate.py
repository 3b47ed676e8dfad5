"""``designopt validate``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from designopt import plugin
from designopt.cli.completion import studies
from designopt.cli.exit import DONE, TRIAL_FAILED, WRONG_INPUT, echo, fail
from designopt.cli.opening import plugin_hint, refuse_python, study_options
from designopt.cli.separate import Tell, separately

if TYPE_CHECKING:
    from designopt.api import Study
    from designopt.study.language.errors import Issue

#: Time limit for checking a file, including the set-up of its model (s).
LONGEST = 300.0

set_option = click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Replace a value of the file.")


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(), shell_complete=studies)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--try", "count", type=click.IntRange(min=0), default=0, help="Also evaluate COUNT designs here.")
@set_option
@study_options
def validate(files: tuple[str, ...], form: str, count: int, allow: tuple[str, ...], **options: Any) -> None:
    """Check study files.

    Every mistake is shown with its place and a suggested fix. If trial evaluations of a valid study fail, the exit
    code is 3.
    """
    from designopt.api import load
    from designopt.study.language.errors import StudyError, render_json, render_text
    from designopt.study.remarks import inputs_at_defaults, remarks

    def check(tell: Tell) -> None:
        issues: list[Issue] = []
        failure_count = 0
        for file in files:
            _refuse_no_file(file)
            tell(file)
            try:
                study = load(file, **options)
            except StudyError as error:
                issues += error.issues
            except plugin.PluginError as error:
                fail(f"error: {error}", WRONG_INPUT)
            else:
                unwritable = _unwritable_exports(study, file)
                issues += unwritable
                if form == "text" and not unwritable:
                    echo(f"{file}: a valid study")
                    for note in remarks(study.definition):
                        echo(f"  {note}")
                    if defaults := inputs_at_defaults(study.definition):
                        echo(f"  {defaults}; all inputs with units and ranges: designopt show {file}")
                    _show_choices(study)
                    _show_programs(study, file)
                if count:
                    failure_count += _try(study, count, allow, beside=form == "json")
        if form == "json":
            echo(render_json(tuple(issues)))
        elif issues:
            echo(render_text(tuple(issues)) + plugin_hint(issues, options["plugin_files"]), err=True)
        if failure_count:
            echo(f"{failure_count} of the trial evaluations failed", err=True)
        sys.exit(WRONG_INPUT if issues else TRIAL_FAILED if failure_count else DONE)

    separately(check, None if count else LONGEST)


def _unwritable_exports(study: Study, file: str) -> list[Issue]:
    """Exports that a run without ``--output`` could not write."""
    from designopt.study.language.errors import Issue

    formats = [use.plugin.name for use in study.definition.export]
    folder = study.default_store.absolute()
    existing = next(candidate for candidate in (folder, *folder.parents) if candidate.exists())
    if not formats or (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        return []
    why = "is no folder" if not existing.is_dir() else "is not writable"
    text = f"{', '.join(formats)} cannot be written to {study.default_store}: {existing} {why}"
    return [Issue(file, None, None, None, "report.export", f"{text}; choose another folder: -o STORE")]


def _show_choices(study: Study) -> None:
    """The choice of stages with the solver `auto`, with the reason."""
    from designopt.solvers.auto import Auto

    for stage in study.definition.stages:
        if isinstance(solver := stage.solver.build(), Auto):
            echo(f"  stage {stage.name} takes {solver.choice(study.problem)}")


def _show_programs(study: Study, file: str) -> None:
    """The options that a study needs to run programs."""
    if items := plugin.foreign_code(study.definition.model):
        names = ", ".join(item.name for item in items)
        echo(f"  runs {names}; allow it with: designopt run {file}{plugin.allow_options(items)}")


def _refuse_no_file(file: str) -> None:
    """A folder, or a pattern without a matching file, has a message of its own."""
    refuse_python(file)
    path = Path(file)
    if path.is_dir():
        if (path / "problem.json").exists():
            fail(f"error: {file} is a store; its study was checked when it ran: designopt show {file}", WRONG_INPUT)
        fail(f"error: {file} is a folder; give its study files: designopt validate {path}/*.yaml", WRONG_INPUT)
    if any(c in file for c in "*?[") and not path.exists():
        fail(f"error: no file matches {file}", WRONG_INPUT)


def _try(study: Study, count: int, allow: tuple[str, ...], *, beside: bool) -> int:
    """Evaluate designs and print the results, on stderr if `beside` other output; returns the number of failures."""
    from designopt.workers.evaluation.single_designs import trial
    from designopt.workers.supervision.children import ending_with_this_process

    try:
        with ending_with_this_process():
            _, failure_count = trial(
                study.definition,
                count,
                plugin.Permission.from_options(allow),
                lambda line: echo(f"  {line}", err=beside),
            )
    except plugin.PluginError as error:
        fail(f"error: {error}", WRONG_INPUT)
    return failure_count
