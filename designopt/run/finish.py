"""After the last stage: validation of the chosen designs, and arrays of the front."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from designopt.counts import plural
from designopt.run.evaluations.dispatch import Dispatcher
from designopt.run.evaluations.ledger import CODE
from designopt.run.evaluations.work import LARGEST_CHUNK, Work
from designopt.run.progress import TOLERANCES, VALIDATION, Snapshot, steps
from designopt.run.tolerance_analysis import pending_neighbours
from designopt.store.disk.arrays import intact_keys, remove_arrays
from designopt.store.result import Result
from designopt.store.views.validation import validation_keys
from designopt.study.study import StudyDefinition


def finish(study: StudyDefinition, dispatcher: Dispatcher) -> None:
    """Evaluate the requests of the study beyond its stages that are not recorded yet."""
    if study.tolerances is not None:
        work = pending_neighbours(study, dispatcher, study.tolerances)
        if work is not None:
            dispatcher.run(pieces(work), len(work), tick=progress_tick(TOLERANCES, study, dispatcher, len(work)))
    if study.validate is None and not study.execution.arrays:
        return
    result = dispatcher.result(study)
    validate_chosen(study, dispatcher, result)
    if {"front", "chosen"} & set(study.execution.arrays.values()):
        keep_arrays_of_best(study, dispatcher, result)
    if "all" in study.execution.arrays.values():
        restore_arrays(study, dispatcher)


# ------------------------------------------------------------------------------------------------------ validation


def validate_chosen(study: StudyDefinition, dispatcher: Dispatcher, result: Result) -> None:
    """Evaluate the chosen designs in the validation scenarios, which follow the study's own in the journal."""
    rows = list(dict.fromkeys(result.chosen().values()))
    if study.validate is None or not rows:
        return
    ledger = dispatcher.ledger
    X = result.outcomes.X[rows]
    requests: dict[bytes, tuple[int, int]] = {}
    for i, keys in enumerate(validation_keys(ledger.problem, study.validate, X)):
        for s, key in enumerate(keys):
            if ledger.is_pending(key):
                requests.setdefault(key, (i, s))
    if not requests:
        return
    work = ledger.work(X, requests, "validation")
    designs, scenarios = plural(len(rows), "chosen design"), study.validate.scenarios
    dispatcher.event("validation", f"{designs} in {plural(len(scenarios), 'further scenario')}")
    dispatcher.run(pieces(work), len(work), tick=progress_tick(VALIDATION, study, dispatcher, len(work)))


def progress_tick(step: str, study: StudyDefinition, dispatcher: Dispatcher, total: int) -> Callable[[], None]:
    """Reports the progress of `step`, with `total` evaluations, to the display, twice a second."""
    began, before = time.monotonic(), dispatcher.evaluations
    last = [began]
    names = steps(study)
    names = names if step in names else (*names, step)
    number = names.index(step) + 1

    def tick() -> None:
        time_now = time.monotonic()
        if time_now - last[0] < 0.5:
            return
        last[0] = time_now
        count = dispatcher.evaluations - before
        rate = count / (time_now - began)
        left = (total - count) / rate if rate else None
        state = (count, total, dispatcher.evaluations, dispatcher.failures, rate, time_now - began, left)
        dispatcher.progress.update(Snapshot(step, number, len(names), *state))

    return tick


# ---------------------------------------------------------------------------------------------------------- arrays


def keep_arrays_of_best(study: StudyDefinition, dispatcher: Dispatcher, result: Result) -> None:
    """Repeat evaluations of the chosen designs and the final front to store their arrays, as far as necessary.

    Without a feasible design the one with the smallest violation is among the chosen. For the chosen designs all arrays
    are stored, for the rest of the front those that are not restricted to the chosen designs.
    """
    arrays = study.execution.arrays
    store, ledger = dispatcher.store, dispatcher.ledger
    least_violating = result.least_violating()
    chosen_rows = {*result.chosen().values(), *([] if least_violating is None else [least_violating])}
    front = set(result.front().tolist()) if "front" in arrays.values() else set()
    names = {
        **dict.fromkeys(front, tuple(name for name, keep in arrays.items() if keep in ("all", "front"))),
        **dict.fromkeys(chosen_rows, tuple(name for name, keep in arrays.items() if keep != "failed")),
    }
    recorded_keys = {key for key, file in store.journal.evaluations("key, arrays", "scenario") if file}
    keys_to_keep: set[bytes] = set()
    for array_names in dict.fromkeys(names.values()):
        rows = sorted(row for row, row_names in names.items() if row_names == array_names)
        X = result.outcomes.X[rows]
        keys = ledger.problem.keys(X)
        row_of = {key: (i, s) for i, row in enumerate(keys) for s, key in enumerate(row)}
        complete = intact_keys(
            store.path, {key: _returned_arrays(dispatcher, key, array_names) for key in row_of if key in recorded_keys}
        )
        work = ledger.work(X, {key: at for key, at in row_of.items() if key not in complete})
        dispatcher.run(pieces(work), len(work), arrays=array_names)
        keys_to_keep |= row_of.keys()
    if not {"all", "failed"} & set(arrays.values()):  # the front of an earlier session with a smaller budget
        for key in recorded_keys - keys_to_keep:
            store.journal.set_arrays(key, None)
        store.journal.commit()
        for key in recorded_keys - keys_to_keep:
            remove_arrays(store.path, key)


def restore_arrays(study: StudyDefinition, dispatcher: Dispatcher) -> None:
    """Repeat evaluations whose array file is lost or damaged."""
    names = tuple(name for name, keep in study.execution.arrays.items() if keep == "all")
    store, ledger = dispatcher.store, dispatcher.ledger
    rows = [row for row in store.journal.evaluations("key, design, number, arrays", "scenario") if row[3]]
    intact = intact_keys(store.path, {row[0]: _returned_arrays(dispatcher, row[0], names) for row in rows})
    lost = [row for row in rows if row[0] not in intact]
    designs = np.array([row[1] for row in lost], np.int64)
    work = Work(
        slots=np.array([ledger.slot_of[row[0]] for row in lost], np.int64),
        keys=[row[0] for row in lost],
        designs=designs,
        numbers=np.array([row[2] for row in lost], np.int32),
        X=ledger.designs[designs],
    )
    dispatcher.run(pieces(work), len(work), arrays=names)


def _returned_arrays(dispatcher: Dispatcher, key: bytes, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the arrays `names` that an evaluation certainly returns; a failed one may return none."""
    return names if dispatcher.ledger.status[dispatcher.ledger.slot_of[key]] == CODE["ok"] else ()


def pieces(work: Work) -> Iterator[Work]:
    """`work` in parts that are fast to split further."""
    for begin in range(0, len(work), LARGEST_CHUNK):
        yield work.part(begin, begin + LARGEST_CHUNK)
