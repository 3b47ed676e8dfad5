"""Requests of a solver besides the designs of its stage: programs and cheap evaluations, recorded once."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt.problem import STATUSES, Outcomes, Problem, SolvedPrograms
from designopt.run.evaluations.dispatch import Dispatcher
from designopt.run.evaluations.ledger import CODE, PENDING, Ledger
from designopt.run.evaluations.work import LARGEST_CHUNK, Work
from designopt.store.disk.arrays import intact_keys
from designopt.study.study import Stage

#: All their arrays are returned; the solver names them.
ARRAYS = ("programs",)


class ProgramBatch:
    """Pending programs, sent chain by chain. `number` is the stage's index (from 0) in the study.

    Known ones are not sent again; of a partly known chain the rest is sent, in its order. A chain with a lost solution
    is sent again completely.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        stage: Stage,
        number: int,
        X: Floats,
        chains: Sequence[int],
        seeds: Sequence[int],
    ) -> None:
        self._dispatcher = dispatcher
        ledger = dispatcher.ledger
        keys = ledger.problem.program_keys(stage.solver, X, chains, seeds)
        designs = _design_numbers(dispatcher, X, keys)
        ledger.register(keys)
        self._keys = keys
        self.slots = np.array([ledger.slot_of[key] for key in keys], np.int64)
        lost = self._lost()
        lost_chains = {chain for chain, is_lost in zip(chains, lost, strict=True) if is_lost}
        status = ledger.status[self.slots]
        has_outcome = (status == CODE["ok"]) | (
            status == CODE["diverged"]
        )  # others ended their worker, or may do so again
        is_open = [
            s == PENDING or (bool(k) and c in lost_chains) for s, k, c in zip(status, has_outcome, chains, strict=True)
        ]
        rows = sorted({key: i for i, key in reversed(list(enumerate(keys))) if is_open[i]}.values())
        self.waiting = len(rows)
        self._all_work = Work(
            slots=self.slots[rows],
            keys=[keys[i] for i in rows],
            designs=designs[rows],
            numbers=np.full(len(rows), number, np.int32),
            X=X[rows],
            chain=True,
            seeds=tuple(int(seeds[i]) for i in rows),
            kind="program",
        )
        self._chains = [chains[i] for i in rows]

    def _lost(self) -> Mask:
        """Known programs whose solution file is lost or damaged: their chains are solved again."""
        is_recorded = self._dispatcher.ledger.status[self.slots] != PENDING
        in_journal = np.zeros(len(is_recorded), bool)
        for i in np.flatnonzero(is_recorded).tolist():
            row = self._dispatcher.journal.evaluation(self._keys[i], "arrays")
            in_journal[i] = row is not None and row[0] is not None
        with_arrays = dict.fromkeys((self._keys[i] for i in np.flatnonzero(in_journal)), ())
        intact = intact_keys(self._dispatcher.store.path, with_arrays)
        return np.asarray(in_journal & np.array([key not in intact for key in self._keys], bool))

    def work(self) -> Iterator[Work]:
        """The chains with unsolved programs."""
        begin = 0
        for _, chain in itertools.groupby(self._chains):
            end = begin + len(list(chain))
            yield self._all_work.part(begin, end)
            begin = end

    @property
    def completed(self) -> int:
        """Number of rows with a result."""
        return int((self._dispatcher.ledger.status[self.slots] != PENDING).sum())

    def outcome(self) -> SolvedPrograms:
        """Results of all rows."""
        ledger, journal = self._dispatcher.ledger, self._dispatcher.journal
        status = ledger.status[self.slots]
        figures = {name: ledger.figures[self.slots, j] for name, j in ledger.columns.items()}
        reasons = []
        for key, code in zip(self._keys, status.tolist(), strict=True):
            record = journal.evaluation(key, "reason")
            reason = STATUSES[code] in ("ok", "diverged") and record and record[0]
            reasons.append(str(reason or STATUSES[code]))
        return SolvedPrograms(status == CODE["ok"], figures, tuple(reasons))


class CheapBatch:
    """Pending cheap evaluations of designs `X` (n, d). Known ones are not sent again, and those that violate a relation
    (`relation_violation` (n,) above 0) are not evaluated."""

    def __init__(self, dispatcher: Dispatcher, X: Floats, relation_violation: Floats) -> None:
        ledger, problem = dispatcher.ledger, dispatcher.ledger.problem
        if problem.cheap is None:
            raise ValueError("this problem has no cheap evaluations")
        self._ledger, self._X, self._violation = ledger, X, relation_violation
        keys = problem.cheap.keys(X)
        designs = _design_numbers(dispatcher, X, [row[0] for row in keys])
        valid = np.flatnonzero(relation_violation <= 0.0).tolist()
        positions = {key: (i, s) for i in reversed(valid) for s, key in reversed(list(enumerate(keys[i])))}
        ledger.register(reversed(positions))
        self._slots = np.full((len(X), len(problem.scenarios)), -1, np.int64)
        for i in valid:
            self._slots[i] = [ledger.slot_of[key] for key in keys[i]]
        pending_keys = [key for key in reversed(positions) if ledger.is_pending(key)]
        rows: Integers = np.array([positions[key][0] for key in pending_keys], np.int64)
        self.waiting = len(pending_keys)
        self._all_work = Work(
            slots=np.array([ledger.slot_of[key] for key in pending_keys], np.int64),
            keys=pending_keys,
            designs=designs[rows],
            numbers=np.array([positions[key][1] for key in pending_keys], np.int32),
            X=X[rows],
            kind="cheap",
        )

    def work(self) -> Iterator[Work]:
        """The unknown evaluations."""
        for begin in range(0, self.waiting, LARGEST_CHUNK):
            yield self._all_work.part(begin, begin + LARGEST_CHUNK)

    def outcomes(self) -> Outcomes:
        """Outcomes of all rows, scored like full evaluations."""
        return self._ledger.outcomes(self._X, self._slots, self._violation)


def _design_numbers(dispatcher: Dispatcher, X: Floats, keys: Sequence[bytes]) -> Integers:
    """Numbers of designs that are not points of a stage; new ones are recorded. `keys` (n,) are those of programs that
    start from them, or of other evaluations."""
    ledger: Ledger = dispatcher.ledger
    problem: Problem = ledger.problem
    design_count = len(ledger.designs)
    numbers: list[int] = []
    new: list[int] = []
    for i, row in enumerate(problem.keys(X)):
        if ledger.lost and row[0] not in ledger.design_of:
            _restore(dispatcher, keys[i], row[0], X[i])
        number = ledger.design_of.setdefault(row[0], design_count + len(new))
        if number == design_count + len(new):
            new.append(i)
        numbers.append(number)
    if new:
        relation_violation = problem.space.relation_violation(X[new])
        ledger.add_designs(X[new], relation_violation)
        dispatcher.journal.add_designs(design_count, X[new], relation_violation)
    return np.array(numbers, np.int64)


def _restore(dispatcher: Dispatcher, evaluation_key: bytes, key: bytes, x: Floats) -> None:
    """Record a lost design again, if the evaluation `evaluation_key` belongs to it."""
    record = dispatcher.journal.evaluation(evaluation_key, "design")
    if record and record[0] in dispatcher.ledger.lost:
        relation_violation = dispatcher.ledger.problem.space.relation_violation(x[None])
        dispatcher.ledger.restore(record[0], key, x, float(relation_violation[0]))
        dispatcher.journal.add_designs(record[0], x[None], relation_violation)


def ticking(show: Callable[[int], None], batch: ProgramBatch) -> Callable[[], None]:
    """Report the number of completed programs to `show`, twice a second."""
    last_shown = [time.monotonic()]

    def tick() -> None:
        time_now = time.monotonic()
        if time_now - last_shown[0] >= 0.5:
            last_shown[0] = time_now
            show(batch.completed)

    return tick
