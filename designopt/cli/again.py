"""A run whose store exists already: continue it, or what else can be done with the edited study."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from designopt.cli.exit import DONE, NOTHING_FEASIBLE, STORE, echo, fail
from designopt.cli.report import write_page
from designopt.counts import plural

if TYPE_CHECKING:
    from designopt.api import Study
    from designopt.report.comparison.study_edit import StudyEdit

F = Callable[..., Any]
#: The way with an edited study whose store exists: to ask, or one of the options.
Way = Literal["rescore", "beside", "replace"] | None

_HELP = {
    "rescore": "If the store exists: score its evaluations by the edited objectives and limits, and compute nothing.",
    "beside": "If the store exists: run in NAME.2.study beside it, and take over evaluations with the same keys.",
    "replace": "If the store exists: delete its results, and run anew in its place.",
}


def again_options(command: F) -> F:
    """The options of ``designopt run`` for an existing store, as its argument `way`."""
    for name, text in reversed(_HELP.items()):
        command = click.option(f"--{name}", "way", flag_value=name, help=text)(command)
    return command


@dataclass(frozen=True)
class RunStart:
    """Arguments of `Study.run`: where the run is recorded and how it begins."""

    store: Path
    resume: bool = False
    replace: bool = False
    recall: Sequence[Path] = field(default_factory=list)


def start_of(study: Study, store: Path, way: Way) -> RunStart:
    """How a run of `study` begins. Ends the command if `store` has another search and no `way` was chosen."""
    if not (store / "journal.db").exists():
        return RunStart(store)
    edit = _edit(study, store)
    _refuse_made_elsewhere(edit)
    if way == "replace":
        return RunStart(store, replace=True)
    if not edit.differences:
        _name_failures(edit)
        return RunStart(store, resume=True)
    exists = (edit.beside / "journal.db").exists()
    if way is None and not exists:
        fail(_advice(edit), STORE)
    echo(f"{'continuing' if exists else 'new store'} {edit.beside}, beside {store}", err=True)
    if not exists and edit.start_hint:
        echo(f"note: {edit.start_hint}", err=True)
    return RunStart(edit.beside, resume=exists, recall=edit.sources)


def _refuse_made_elsewhere(edit: StudyEdit) -> None:
    """No way of a run continues a study of a laboratory, and `--replace` would delete its results."""
    from designopt.store.errors import refuse_made_elsewhere
    from designopt.store.result import Result

    result = Result.open(edit.store, edit.stored_study)
    command = ask_beside(edit) if result.made_elsewhere and edit.study.path and edit.differences else ""
    refuse_made_elsewhere(result.sessions, edit.store, command)


def ask_beside(edit: StudyEdit) -> str:
    """The command that asks for evaluations of the edited study, with the results of its store."""
    from designopt.store.errors import plugin_options

    return f"designopt ask {shlex.quote(str(edit.study.path))} --beside{plugin_options(edit.store)}"


def _name_failures(edit: StudyEdit) -> None:
    """Say that a run which its failures ended is continued with them."""
    from designopt.store.result import Result

    result = Result.open(edit.store, edit.stored_study)
    if result.ended != "failure policy":
        return
    failures = {key: n for key, n in result.failures().items() if key[0] != "invalid"}
    count = plural(sum(failures.values()), "failed evaluation")
    way = "to compute all again, give the command with --replace"
    echo(f"continuing {edit.store}, which has {count}: {way}", err=True)


def rescore(study: Study, store: Path) -> int:
    """The table and the page of the results in `store`, scored by `study`."""
    from designopt.report import summary_table
    from designopt.store.errors import StoreError

    edit = _edit(study, store)
    try:
        result = edit.rescore()
    except StoreError as error:
        fail(f"{error}\n{_advice(edit)}", STORE)
    _ = result.outcomes  # scored here, where a failing aggregation can be reported
    page = write_page(result, store / "report-set.html")
    if result.problem.objectives and not result.outcomes.feasible.any():
        echo(f"report       {page}")
        echo(f"{store}: no design satisfies the present limits", err=True)
        return NOTHING_FEASIBLE
    way = (
        f"{ask_beside(edit)} goes on with experiments"
        if result.made_elsewhere
        else "a run with --beside may find better ones"
    )
    note = f"note: no design was searched for the edited question; {way}"
    echo(f"{summary_table(result)}\n{note}\n\nreport       {page}")
    return DONE


def _edit(study: Study, store: Path) -> StudyEdit:
    from designopt.report.comparison.study_edit import StudyEdit

    return StudyEdit(study.definition, store)


def _advice(edit: StudyEdit) -> str:
    """The differences, line by line, and the command of each way."""
    lines = [f"{edit.store} exists, and {edit.study.path or 'the study'} differs from the study of its run:"]
    lines += [f"  {clause}" for clause in edit.differences]
    lines.append("Nothing was run. Give the command again with one of:")
    ways = edit.ways()
    width = max(len(option) for option, _ in ways)
    lines += [f"  {option:{width}}  {consequence}" for option, consequence in ways]
    return "\n".join(lines)
