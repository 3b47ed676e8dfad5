"""Runs a study: its stages one after the other, on a store that makes every evaluation durable."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import Plugin, load_file
from designopt.problem import Outcomes, Problem, StageEnded
from designopt.run.auto import executor_for
from designopt.run.delivery import loading
from designopt.run.dispatch import Dispatcher
from designopt.run.errors import FailurePolicyStop, Interrupted, RunError, StoreError, reading, resume_command
from designopt.run.journal import explain
from designopt.run.ledger import CODE, Ledger
from designopt.run.progress import Progress, Silent
from designopt.run.provenance import provenance
from designopt.run.result import Result
from designopt.run.stage import BLOCK, StageRun
from designopt.run.start_from import select
from designopt.run.stopping import Signals
from designopt.run.store import Store, append_durably, array_reference, read_arrays, read_study
from designopt.run.work import Work
from designopt.study.findings import nearest_or_all
from designopt.study.study import Stage, Study


def run_study(
    study: Study,
    store_path: Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    executor: Literal["auto", "serial", "dask"] | None = None,
    budget: Mapping[str, int] | None = None,
    insecure: bool = False,
    allow_version_skew: bool = False,
) -> Result:
    """Run `study` with its store in the folder `store_path`; with `resume` continue what is there.

    `workers`, `scheduler` and `executor` replace what the study says; `budget` replaces numbers of evaluations by the
    name of the stage. `insecure` allows an unencrypted scheduler on another host, `allow_version_skew` workers with
    other versions.

    Raises `StoreError` (exists already, in use, other problem or format, not writable, workers not usable),
    `Interrupted` and `FailurePolicyStop`; all of them carry the store's path and the command that continues.
    """
    store_path = Path(store_path)
    if loading():
        raise RuntimeError(
            "a worker runs this file to find a plugin in it; put the call that runs the study under "
            "'if __name__ == \"__main__\":'"
        )
    study = dataclasses.replace(study, stages=_with_budgets(study.stages, budget or {}, store_path, resume))
    problem = Problem.of(study)
    show = progress if progress is not None else Silent()
    given = {"workers": workers, "scheduler": scheduler, "executor": executor}
    execution = dataclasses.replace(study.execution, **{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]
    if scheduler not in (None, "local") and executor is None:
        execution = dataclasses.replace(execution, executor="dask")
    start = executor_for(
        dataclasses.replace(study, execution=execution),
        problem,
        store_path,
        insecure=insecure,
        allow_version_skew=allow_version_skew,
    )
    opened = Store.resume(store_path, study, problem) if resume else Store.create(store_path, study, problem)
    try:
        with opened as store, Signals() as signals:
            with reading(store_path):
                ledger = _known(store, problem)
            dispatcher = Dispatcher(store, ledger, execution, start, signals, show)
            _begin_session(store, study)
            with _ending(store, dispatcher):
                _run_stages(study, dispatcher)
                _keep_arrays_of_front(study, dispatcher)
    finally:
        show.close()
    return Result.open(store_path, study)


def resume_study(
    store_path: str | Path,
    *,
    plugin_files: Sequence[tuple[str, bytes]] = (),
    progress: Progress | None = None,
    **options: Any,
) -> Result:
    """Continue the run that left the store `store_path`, from what is kept in it. `options` as for `run_study`.

    A store never brings code into a process: plugin files that the run was given (``--plugin``) must be given again, as
    (name, content). One that has changed since is taken as it is now, with a warning. Raises as `run_study`.
    """
    store_path = Path(store_path)
    began_with = dict(read_study(store_path).plugin_files)
    given = dict(plugin_files)
    if missing := [name for name in began_with if name not in given]:
        raise StoreError(
            f"{store_path}: the run was given the plugin file {missing[0]}; code kept in a store is not run, so give it"
            f" again: {resume_command(store_path)}",
            store_path,
        )
    for name, content in given.items():
        if progress is not None and began_with.get(name, content) != content:
            progress.event("plugin_file", f"{name} differs from the file that the run began with")
        load_file(name, content)
    study = dataclasses.replace(read_study(store_path), plugin_files=tuple(given.items()))
    over = [o.over for o in study.objectives] + [c.over for c in study.constraints]
    for use in (study.model, *study.figures.values(), *over, *(stage.solver for stage in study.stages)):
        _refuse_absent(use.plugin, store_path)
    return run_study(study, store_path, resume=True, progress=progress, **options)


def _refuse_absent(plugin: Plugin, path: Path) -> None:
    if plugin.description.startswith("not available: "):
        reason = plugin.description.removeprefix("not available: ")
        raise StoreError(f"{path}: cannot be continued here: {reason}; install it first", path)


def _with_budgets(stages: tuple[Stage, ...], budget: Mapping[str, int], path: Path, resume: bool) -> tuple[Stage, ...]:
    present = {stage.name: stage.budget.evaluations for stage in stages}
    for name, evaluations in budget.items():
        if name not in present:
            raise StoreError(
                f"{path}: no stage named '{name}' to give a budget to{nearest_or_all(name, present)}", path
            )
        before = present[name]
        if resume and before is not None and evaluations < before:
            text = (
                f"stage '{name}' has a budget of {before} evaluations already; give it a larger one, not {evaluations}"
            )
            raise StoreError(f"{path}: {text}", path)
    return tuple(
        dataclasses.replace(stage, budget=dataclasses.replace(stage.budget, evaluations=budget[stage.name]))
        if stage.name in budget
        else stage
        for stage in stages
    )


def _known(store: Store, problem: Problem) -> Ledger:
    """What the journal holds, in memory."""
    ledger = Ledger(problem)
    designs = list(store.journal.designs())
    if not designs:
        return ledger
    X = np.array([x for _, x, _ in designs], float).reshape(len(designs), len(problem.space.free))
    ledger.add_designs(X, np.array([v for _, _, v in designs], float))
    ledger.design_of.update((row[0], i) for i, row in enumerate(problem.keys(X)))
    evaluations = store.journal.evaluations("key, status, outputs")
    while rows := list(itertools.islice(evaluations, BLOCK)):  # as objects they need much memory
        slots = np.arange(len(ledger.slot_of), len(ledger.slot_of) + len(rows))
        ledger.slot_of.update((key, int(slot)) for slot, (key, _, _) in zip(slots, rows, strict=True))
        ledger.add_slots(len(rows))
        outputs = [json.loads(text) if text else {} for _, _, text in rows]
        names = tuple(dict.fromkeys([*ledger.columns, *(name for data in outputs for name in data)]))
        values = np.array([[data.get(name) for name in names] for data in outputs], float)
        status = np.array([CODE[status] for _, status, _ in rows], np.uint8)
        ledger.record(slots, status, names, values.reshape(len(rows), len(names)))
    return ledger


def _begin_session(store: Store, study: Study) -> None:
    facts = provenance(study)
    store.journal.begin_session(host=socket.gethostname(), executor="none", workers=0, provenance=facts)
    try:
        append_durably(store.path / "provenance.jsonl", json.dumps({"session": store.journal.session, **facts}))
    except OSError as error:
        raise explain(error, store.path) from error


@contextlib.contextmanager
def _ending(store: Store, dispatcher: Dispatcher) -> Iterator[None]:
    """Note why the session ends, and end the workers."""
    reason = "error"
    try:
        yield
        reason = "done"
    except Interrupted:
        reason = "interrupted"
        raise
    except FailurePolicyStop:
        reason = "failure policy"
        raise
    except OSError as error:
        raise explain(error, store.path) from error
    finally:
        try:
            dispatcher.close()
        finally:
            with contextlib.suppress(RunError):  # the disk may be full: the first error is the one to tell
                store.journal.end_session(reason)


def _run_stages(study: Study, dispatcher: Dispatcher) -> None:
    asked: dict[str, NDArray[np.int64]] = {}
    for number, stage in enumerate(study.stages, 1):
        run = StageRun(stage, number, len(study.stages), dispatcher)
        rng = np.random.default_rng(np.random.SeedSequence(study.seed, spawn_key=(number,)))
        start = _start(dispatcher.ledger, stage, asked)
        try:
            stage.solver.build().solve(dispatcher.ledger.problem, run, rng, start)
        except StageEnded:
            dispatcher.check()
        dispatcher.journal.commit()
        asked[stage.name] = run.designs()
        run.show(0, force=True)


def _start(ledger: Ledger, stage: Stage, asked: Mapping[str, NDArray[np.int64]]) -> Outcomes:
    """Outcomes of the designs that the stage starts from; none when it starts from nothing."""
    origin = stage.start_from
    rows = asked[origin.stage] if origin and origin.stage else np.empty(0, np.int64)
    outcomes = _outcomes(ledger, rows)
    return select(outcomes, origin) if origin else outcomes


def _outcomes(ledger: Ledger, designs: NDArray[np.int64]) -> Outcomes:
    """What is known of designs by number; those that were never evaluated count as failed."""
    X = ledger.designs[designs]
    excess = ledger.violation[designs]
    slots = np.array([[ledger.slot_of.get(key, -1) for key in row] for row in ledger.problem.keys(X)], np.int64)
    slots = slots.reshape(len(X), len(ledger.problem.scenarios))
    slots[excess > 0.0] = -1
    return ledger.outcomes(X, slots, excess)


def _keep_arrays_of_front(study: Study, dispatcher: Dispatcher) -> None:
    """Evaluate the final front and the chosen designs again to keep their arrays, as far as that is not done yet."""
    names = tuple(study.execution.arrays)
    if "front" not in study.execution.arrays.values():
        return
    store, ledger = dispatcher.store, dispatcher.ledger
    always = "all" in study.execution.arrays.values()
    result = Result.open(store.path, study)
    rows = sorted({*result.front().tolist(), *result.chosen().values()})
    X = result.outcomes.X[rows]
    keys = ledger.problem.keys(X) if rows else []
    wanted = {key for row in keys for key in row}
    have = {key for key, reference in store.journal.evaluations("key, arrays") if reference}
    complete = {key for key in wanted & have if not always or _holds(store, key, names)}
    todo = [(i, s, key) for i, row in enumerate(keys) for s, key in enumerate(row) if key not in complete]
    numbers = [ledger.design_of[row[0]] for row in keys]
    work = Work(
        slots=np.array([ledger.slot_of[key] for _, _, key in todo], np.int64),
        keys=[key for _, _, key in todo],
        designs=np.array([numbers[i] for i, _, _ in todo], np.int64),
        scenarios=np.array([s for _, s, _ in todo], np.int32),
        X=X[[i for i, _, _ in todo]],
    )
    dispatcher.run(iter([work]), len(work), arrays=names)
    if not always:  # the front of an earlier session with a smaller budget
        for key in have - wanted:
            store.journal.set_arrays(key, None)
        store.journal.commit()
        for key in have - wanted:
            store.remove_arrays(array_reference(key))


def _holds(store: Store, key: bytes, names: tuple[str, ...]) -> bool:
    return set(names) <= read_arrays(store.path, array_reference(key)).keys()
