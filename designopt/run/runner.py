"""Run of a study: its stages in sequence, on a store that makes every evaluation durable."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import logging
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import numpy as np

from designopt.arrays import Integers
from designopt.interrupts import HostHandlers
from designopt.plugin import (
    Permission,
    Plugin,
    PluginError,
    PluginFailed,
    load_file,
    path_of,
    permission_of,
    plugin_file_of,
    refuse_not_allowed,
    refuse_while_loading,
)
from designopt.plugin.calling import calling, is_own
from designopt.problem import EndIgnored, Outcomes, Problem, StageEnded
from designopt.run import start_from
from designopt.run.changed_budgets import budgets_by_stage, refuse_budgets, refuse_too_small, with_budgets
from designopt.run.evaluations.dispatch import Dispatcher
from designopt.run.evaluations.ledger import Ledger
from designopt.run.evaluations.recall import OtherStore, RecallingDispatcher
from designopt.run.evaluations.recompute import baselines_with_errors
from designopt.run.evaluations.work import Waiting
from designopt.run.finish import finish
from designopt.run.foreign_solver import ForeignSolver
from designopt.run.progress import Progress, SilentProgress, steps
from designopt.run.stage import StageRun
from designopt.run.stopping import Signals
from designopt.store import archive
from designopt.store.disk.durable import append_durably
from designopt.store.errors import (
    FailurePolicyStop,
    Interrupted,
    RunError,
    StoreError,
    WorkersError,
    WorkersNotStarted,
    explain,
    reading,
    refuse_made_elsewhere,
    resume_command,
)
from designopt.store.folder import Store, discard, read_study
from designopt.store.provenance import code_differences, other_programs, provenance
from designopt.store.result import Result
from designopt.store.views.validation import with_validation
from designopt.study.study import Stage, StudyDefinition
from designopt.workers.auto import executor_for
from designopt.workers.evaluation.programs import has_programs
from designopt.workers.executor import Executor

logger = logging.getLogger(__name__)


def run_study(
    study: StudyDefinition,
    store_path: Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    executor: Literal["auto", "serial", "dask"] | None = None,
    budget: Mapping[str, int | timedelta] | int | timedelta | None = None,
    insecure: bool = False,
    allow_version_skew: bool = False,
    allow: Sequence[str] = (),
    recall: Sequence[str | Path] = (),
    start: Callable[[int], Executor] | None = None,
) -> Result:
    """Run `study` with its store in the folder `store_path`; `resume` continues an existing one.

    `workers`, `scheduler` and `executor` override the study; `budget` overrides numbers of evaluations (or times) by
    the name of the stage; one without a name is that of the only stage with a budget. `insecure` allows an unencrypted
    scheduler on another host, `allow_version_skew` workers with other versions. `allow` names the programs and compiled
    files that the model may run, as ``NAME`` or ``NAME=PATH``. Evaluations with the same keys in the stores `recall`
    are taken over from there. `start` replaces the function that makes the executor.

    Raises `ValueError` for an invalid option, `CannotRun` for a program that is not allowed, `StoreError` (exists
    already, in use, other problem or format, not writable, workers not usable), `Interrupted` and `FailurePolicyStop`;
    those of a run contain the store's path and the command that continues.
    """
    given_path, store_path = Path(store_path), Path(store_path).absolute()  # a model may change the folder
    show = progress if progress is not None else SilentProgress()
    refuse_while_loading()
    with _with_typed_path(given_path):
        budgets = budgets_by_stage(study.stages, budget, store_path)
        study = dataclasses.replace(study, stages=with_budgets(study.stages, budgets))
        problem = Problem.from_study(study)
        refuse_too_small(study, problem, budgets, store_path)
        if resume:
            refuse_budgets(study, problem, store_path)
        _refuse_options(workers, executor)
        permission = Permission.from_options(allow)
        overrides = {"workers": workers, "scheduler": scheduler, "executor": executor}
        execution = dataclasses.replace(study.execution, **{k: v for k, v in overrides.items() if v is not None})  # type: ignore[arg-type]
        if scheduler not in (None, "local") and executor is None:
            execution = dataclasses.replace(execution, executor="dask")
        if start is None:
            is_local = execution.scheduler == "local" and execution.cluster is None
            (permission_of if is_local else refuse_not_allowed)(study.model, permission)
        array_names = tuple(name for name, keep in execution.arrays.items() if keep == "failed")
        permission = dataclasses.replace(permission, timeout=execution.timeout, keeps_failed=array_names)
        with_all_scenarios = with_validation(dataclasses.replace(study, execution=execution))
        starting = _ExecutorStart(
            start
            or executor_for(
                with_all_scenarios,
                Problem.from_study(with_all_scenarios),
                store_path,
                insecure=insecure,
                allow_version_skew=allow_version_skew,
                programs=study if has_programs(study) else None,
                permission=permission,
            )
        )
        starting_designs = {} if resume else start_from.take(study, problem, store_path)
        recall_stores = [OtherStore(Path(path).absolute()) for path in recall]
        open_store = Store.resume(store_path, study, problem) if resume else Store.create(store_path, study, problem)
        try:
            with open_store as store, Signals() as signals, HostHandlers():
                ledger = Ledger(problem)
                with reading(store_path):
                    if start is None:
                        refuse_made_elsewhere(store.journal.records("session"), store_path)
                    baseline_note = baselines_with_errors(study, store) if resume else ""
                    if store.contents is not None:
                        ledger.recall(store.contents)
                        store.contents = None
                starting_designs = start_from.settle(study, problem, store_path, starting_designs)
                parts = (store, ledger, execution, starting, signals, show)
                stores = _with_starts(recall_stores, starting_designs, show)
                dispatcher = RecallingDispatcher(*parts, stores=stores) if stores else Dispatcher(*parts)
                for text in _begin_session(store, study, permission, [store.path for store in recall_stores]):
                    dispatcher.event("code", text)
                if baseline_note:
                    dispatcher.event("baseline", baseline_note)
                recorded_count = dispatcher.evaluations
                with _ending(store, dispatcher):
                    _run_stages(study, dispatcher, starting_designs)
                    finish(study, dispatcher)
                contents = ledger.contents()
                if resume and not starting.has_started and dispatcher.evaluations == recorded_count:
                    show.event("nothing_to_do", "nothing to do: the run is complete, all its results are on record")
        except WorkersError as error:
            if not resume and (isinstance(error, WorkersNotStarted) or not starting.has_started):
                discard(store_path, folder=open_store.made_folder)
            raise
        finally:
            starting.end()
            show.close()
    path = given_path if given_path.absolute() == store_path else store_path
    return dataclasses.replace(Result.open(path, study), contents=contents)


def _refuse_options(workers: object, executor: object) -> None:
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, Integral) or workers < 1):
        raise ValueError(f"workers must be an integer of at least 1, not {workers!r}")
    if executor not in (None, "auto", "serial", "dask"):
        raise ValueError(f"executor must be 'auto', 'serial' or 'dask', not {executor!r}")


@contextlib.contextmanager
def _with_typed_path(typed_path: Path) -> Iterator[None]:
    """Use the user's name for the store in errors."""
    absolute = typed_path.absolute()
    try:
        yield
    except (RunError, PluginFailed) as error:
        error.args = tuple(str(text).replace(str(absolute), str(typed_path)) for text in error.args)
        if isinstance(error, RunError):
            error.resume = error.resume.replace(str(absolute), str(typed_path))
            if typed_path.absolute() == absolute:
                error.path = typed_path
        raise


class _ExecutorStart:
    """Starts the executor, and states whether it `has_started`.

    Objects loaded by then are exempt from garbage collection, which the records of a run trigger, until `end`.
    """

    def __init__(self, start: Callable[[int], Executor]) -> None:
        self._start = start
        self._frozen = False
        self.has_started = False

    def __call__(self, evaluations: int) -> Executor:
        executor = self._start(evaluations)
        self.has_started = True
        if not gc.get_freeze_count():
            gc.freeze()
            self._frozen = True
        return executor

    def end(self) -> None:
        """End the exemption from garbage collection."""
        if self._frozen:
            gc.unfreeze()


def _with_starts(
    recall_stores: Sequence[OtherStore], starting_designs: Mapping[str, start_from.StartingDesigns], show: Progress
) -> list[OtherStore]:
    """`recall_stores` and those from which the study starts."""
    stores = list(recall_stores)
    for path in dict.fromkeys(Path(t.store) for t in starting_designs.values()):
        try:
            stores.append(OtherStore(path))
        except StoreError as error:  # requested designs stay; remaining ones are computed
            show.event("start_from", f"its evaluations can no longer be used: {error}")
    return stores


def resume_study(
    store_path: str | Path,
    *,
    plugin_files: Sequence[tuple[str, bytes]] = (),
    data: Mapping[str, Path] | None = None,
    progress: Progress | None = None,
    ready: Callable[[], None] = lambda: None,
    **options: Any,
) -> Result:
    """Resume the run in the store `store_path`, from the copy of the study in it. `options` as for `run_study`.

    A store never brings code into a process: plugin files of the run (``--plugin``) must be given again, as (name,
    content). A changed file is used as it is now, with a warning. A store contains neither the files of data roots nor
    their place: `data` gives their folders. `ready` is called when everything is read and the run begins. Raises the
    exceptions of `run_study`.
    """
    refuse_while_loading()
    store_path = Path(store_path)
    recorded_files = {Path(name).name: content for name, content in read_study(store_path).plugin_files}
    passed_names = {Path(name).name for name, _ in plugin_files}
    if missing := [name for name in recorded_files if name not in passed_names and not plugin_file_of(name)[1]]:
        raise StoreError(
            f"{store_path}: the run used the plugin file {missing[0]}; a store runs no code, so pass the "
            f"file again: {resume_command(store_path)}",
            store_path,
        )
    for name, content in plugin_files:
        if progress is not None and recorded_files.get(Path(name).name, content) != content:
            progress.event("plugin_file", f"{path_of(name)} differs from the file at the start of the run")
        load_file(name, content)
    study = dataclasses.replace(read_study(store_path, data), plugin_files=tuple(plugin_files))
    for root in dict.fromkeys(file.root for file in archive.files(study) if not file.at_hand):
        raise StoreError(
            f"{store_path}: the run used the data root '{root}'; pass its folder again: "
            f"{resume_command(store_path)} --data {root}=FOLDER",
            store_path,
        )
    for use in (study.model, *study.figures.values(), *study.judging):
        _refuse_absent(use.plugin, store_path)
    ready()
    return run_study(study, store_path, resume=True, progress=progress, **options)


def _refuse_absent(plugin: Plugin, path: Path) -> None:
    if plugin.description.startswith("not available: "):
        reason = plugin.description.removeprefix("not available: ")
        command = resume_command(path)
        advice = "install it first"
        if "--plugin" in command and reason.startswith("no plugin named"):
            advice = f"a store runs no code, so pass the file that declares it: {command}"
        raise StoreError(f"{path}: cannot be continued here: {reason}; {advice}", path)


def _begin_session(
    store: Store, study: StudyDefinition, permission: Permission, recall_stores: Sequence[Path]
) -> list[str]:
    """Begin a session; report changed code and programs."""
    facts = provenance(study, permission.programs, recall_stores)
    try:
        changed_modules, files, warnings = code_differences(store.path, facts)
        programs = other_programs(store.path, facts)
    except OSError as error:
        raise explain(error, store.path) from error
    store.journal.begin_session(host=socket.gethostname(), executor="none", workers=0, provenance=facts)
    for text in store.repairs:
        store.journal.add_event("repaired", f"journal.db was damaged: {text}")
    for text in warnings:
        store.journal.add_event("warning", text)
    try:
        append_durably(store.path / "provenance.jsonl", json.dumps({"session": store.journal.session, **facts}))
    except OSError as error:
        raise explain(error, store.path) from error
    changes = [
        f"the program {name} is another file than before: recorded numbers count as those of both; if they differ, "
        "compute them again with designopt run FILE --replace"
        for name in programs
    ]
    changes += [
        f"the code of {name} has changed, but not its version: recorded numbers count as those of the "
        "new code; if they differ, increase the version, and everything is recomputed"
        for name in changed_modules
    ]
    changes += [
        f"the file {path_of(name)} has changed outside of the code of its plugins (a constant, a function that they "
        "call): recorded numbers count as those of the changed file; if they differ, compute them again with designopt "
        "run FILE --replace, or increase the version"
        for name in files
    ]
    return changes


@contextlib.contextmanager
def _ending(store: Store, dispatcher: Dispatcher) -> Iterator[None]:
    """Record the reason for the end of the session, and end the workers."""
    reason = "error"
    try:
        yield
        reason = "done"
    except Interrupted:
        reason = "interrupted"
        raise
    except Waiting:
        reason = "asked"
        raise
    except FailurePolicyStop:
        reason = "failure policy"
        raise
    except PluginFailed as error:
        way_out = f"All evaluations are stored; correct the plugin, then continue with: {resume_command(store.path)}"
        raise PluginFailed(f"{error}\n{way_out}") from error.__cause__
    except OSError as error:
        raise explain(error, store.path) from error
    finally:
        try:
            dispatcher.close()
        finally:
            with contextlib.suppress(RunError):  # the disk may be full: the first error is reported
                store.journal.commit()
                store.journal.end_session(reason)


def _note_end(dispatcher: Dispatcher, stage: Stage, reason: str | None) -> None:
    """Record the reason why a solver ended by itself; a replay repeats it without a record."""
    text = f"stage '{stage.name}': {reason}"
    before = ((event["kind"], event["text"]) for event in dispatcher.journal.records("event"))
    if reason and ("solver_ended", text) not in before:
        dispatcher.event("solver_ended", text)


def _run_stages(
    study: StudyDefinition, dispatcher: Dispatcher, starting_designs: Mapping[str, start_from.StartingDesigns]
) -> None:
    designs_of: dict[str, Integers] = {}
    count = len(steps(study))
    for number, stage in enumerate(study.stages, 1):
        logger.info("stage '%s' begins: %s", stage.name, stage.solver.plugin.name)
        run = StageRun(stage, number, count, dispatcher)
        # A baseline is not a search: the stages after it draw the same random numbers as without it.
        stage_index = number - (study.baseline is not None)
        rng = np.random.default_rng(np.random.SeedSequence(study.seed, spawn_key=(stage_index,)))
        try:
            if stage.name in starting_designs:
                start = _start_outcomes(run, starting_designs[stage.name])
            else:
                start = _start(dispatcher.ledger, stage, designs_of)
            with calling(stage.solver.plugin, RunError, PluginError, StageEnded, Waiting, OSError):
                reason = _solve(run, rng, start)
            _note_end(dispatcher, stage, reason)
        except StageEnded:
            dispatcher.check()
        except EndIgnored as error:
            raise PluginFailed(str(error)) from None
        dispatcher.journal.commit()
        designs_of[stage.name] = run.designs()
        run.show(0, force=True)


def _solve(run: StageRun, rng: np.random.Generator, start: Outcomes) -> str | None:
    """Run the solver of a stage; the reason why it has ended by itself."""
    solver = run.stage.solver.build()
    if is_own(run.stage.solver.plugin):
        reason: str | None = solver.solve(run.problem, run, rng, start)
        return reason
    return ForeignSolver(run).solve(lambda evaluate: solver.solve(run.problem, evaluate, rng, start))


def _start_outcomes(run: StageRun, starting: start_from.StartingDesigns) -> Outcomes:
    """Outcomes of the designs from another store, which are the first of the stage; without those that failed here."""
    text = f"stage {run.stage.name} starts from {starting.summary}"
    if not run.dispatcher.journal.has_event("start_from", text):
        run.dispatcher.event("start_from", text)
    outcomes = run(starting.X) if len(starting.X) else _outcomes(run.ledger, np.empty(0, np.int64))
    return outcomes.take(~outcomes.failed)


def _start(ledger: Ledger, stage: Stage, designs_of: Mapping[str, Integers]) -> Outcomes:
    """Outcomes of the starting designs of the stage; none without `start_from`."""
    origin = stage.start_from
    rows = designs_of[origin.stage] if origin and origin.stage else np.empty(0, np.int64)
    outcomes = _outcomes(ledger, rows)
    return start_from.select(outcomes, origin) if origin else outcomes


def _outcomes(ledger: Ledger, designs: Integers) -> Outcomes:
    """Outcomes of designs by number; unevaluated ones count as failed."""
    X = ledger.designs[designs]
    relation_violation = ledger.violation[designs]
    slots = np.array([[ledger.slot_of.get(key, -1) for key in row] for row in ledger.problem.keys(X)], np.int64)
    slots = slots.reshape(len(X), len(ledger.problem.scenarios))
    slots[relation_violation > 0.0] = -1
    return ledger.outcomes(X, slots, relation_violation)
