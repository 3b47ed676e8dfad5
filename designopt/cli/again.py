"""A run whose store exists already: continue it, or what else can be done with the edited study."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from designopt.cli.exit import DONE, NOTHING_FEASIBLE, STORE, echo, fail
from designopt.cli.reporting import write_page
from designopt.counts import plural

if TYPE_CHECKING:
    from designopt.api import Study
    from designopt.report.comparison.edited import Edited

F = Callable[..., Any]
#: What to do with an edited study whose store exists: ask, or one of the options.
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
    edited = _edited(study, store)
    _refuse_made_elsewhere(edited)
    if way == "replace":
        return RunStart(store, replace=True)
    if not edited.differences:
        _name_failures(edited)
        return RunStart(store, resume=True)
    exists = (edited.beside / "journal.db").exists()
    if way is None and not exists:
        fail(_advice(edited), STORE)
    echo(f"{'continuing' if exists else 'new store'} {edited.beside}, beside {store}", err=True)
    return RunStart(edited.beside, resume=exists, recall=edited.sources)


def _refuse_made_elsewhere(edited: Edited) -> None:
    """No way of a run continues a study of a laboratory, and `--replace` would delete its results."""
    from designopt.store.errors import refuse_made_elsewhere
    from designopt.store.result import Result

    result = Result.open(edited.store, edited.stored_study)
    command = ask_beside(edited) if result.made_elsewhere and edited.study.path and edited.differences else ""
    refuse_made_elsewhere(result.sessions, edited.store, command)


def ask_beside(edited: Edited) -> str:
    """The command that asks for evaluations of the edited study, with the results of its store."""
    from designopt.store.errors import plugin_options

    return f"designopt ask {shlex.quote(str(edited.study.path))} --beside{plugin_options(edited.store)}"


def _name_failures(edited: Edited) -> None:
    """Say that a run which its failures ended is continued with them."""
    from designopt.store.result import Result

    result = Result.open(edited.store, edited.stored_study)
    if result.ended != "failure policy":
        return
    failures = {key: n for key, n in result.failures().items() if key[0] != "invalid"}
    count = plural(sum(failures.values()), "failed evaluation")
    way = "to compute all again, give the command with --replace"
    echo(f"continuing {edited.store}, which has {count}: {way}", err=True)


def rescore(study: Study, store: Path) -> int:
    """The table and the page of the results in `store`, scored by `study`."""
    from designopt.report import summary_table
    from designopt.store.errors import StoreError

    edited = _edited(study, store)
    try:
        result = edited.rescore()
    except StoreError as error:
        fail(f"{error}\n{_advice(edited)}", STORE)
    _ = result.outcomes  # scored here, where a failing aggregation can be reported
    page = write_page(result, store / "report-set.html")
    if result.problem.objectives and not result.outcomes.feasible.any():
        echo(f"report       {page}")
        echo(f"{store}: no design satisfies the present limits", err=True)
        return NOTHING_FEASIBLE
    way = (
        f"{ask_beside(edited)} goes on with experiments"
        if result.made_elsewhere
        else "a run with --beside may find better ones"
    )
    note = f"note: no design was searched for the edited question; {way}"
    echo(f"{summary_table(result)}\n{note}\n\nreport       {page}")
    return DONE


def _edited(study: Study, store: Path) -> Edited:
    from designopt.report.comparison.edited import Edited

    return Edited(study.definition, store)


def _advice(edited: Edited) -> str:
    """The differences, line by line, and the command of each way."""
    lines = [f"{edited.store} exists, and {edited.study.path or 'the study'} differs from the study of its run:"]
    lines += [f"  {clause}" for clause in edited.differences]
    lines.append("Nothing was run. Give the command again with one of:")
    ways = edited.ways()
    width = max(len(option) for option, _ in ways)
    lines += [f"  {option:{width}}  {consequence}" for option, consequence in ways]
    return "\n".join(lines)
