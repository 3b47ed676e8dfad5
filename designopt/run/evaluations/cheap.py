"""Cheap evaluations for a solver: recorded once under their keys, not points of a stage."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from designopt.arrays import Integers, Matrix
from designopt.problem import Outcomes
from designopt.run.evaluations.dispatch import Dispatcher
from designopt.run.evaluations.ledger import PENDING
from designopt.run.evaluations.program_batch import numbers_of
from designopt.run.evaluations.work import LARGEST_CHUNK, Work


class CheapBatch:
    """Pending cheap evaluations of designs `X` (n, d). Known ones are not sent again, and those that violate a relation
    (`relation_violation` (n,) above 0) are not evaluated."""

    def __init__(self, dispatcher: Dispatcher, X: Matrix, relation_violation: Matrix) -> None:
        ledger, problem = dispatcher.ledger, dispatcher.ledger.problem
        if problem.cheap is None:
            raise ValueError("this problem has no cheap evaluations")
        self._ledger, self._X, self._violation = ledger, X, relation_violation
        keys = problem.cheap.keys(X)
        designs = numbers_of(dispatcher, X, [row[0] for row in keys])
        valid = np.flatnonzero(relation_violation <= 0.0).tolist()
        places = {key: (i, s) for i in reversed(valid) for s, key in reversed(list(enumerate(keys[i])))}
        new = [key for key in reversed(places) if key not in ledger.slot_of]
        ledger.slot_of.update(zip(new, itertools.count(len(ledger.slot_of))))
        ledger.add_slots(len(new))
        self._slots = np.full((len(X), len(problem.scenarios)), -1, np.int64)
        for i in valid:
            self._slots[i] = [ledger.slot_of[key] for key in keys[i]]
        todo = [key for key in reversed(places) if ledger.status[ledger.slot_of[key]] == PENDING]
        rows: Integers = np.array([places[key][0] for key in todo], np.int64)
        self.waiting = len(todo)
        self._all_work = Work(
            slots=np.array([ledger.slot_of[key] for key in todo], np.int64),
            keys=todo,
            designs=designs[rows],
            numbers=np.array([places[key][1] for key in todo], np.int32),
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
