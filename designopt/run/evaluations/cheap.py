"""Cheap evaluations that a solver asks for: recorded once under their keys, points of no stage."""

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
    """Cheap evaluations of designs `X` (n, d) that are pending. What is known is not sent again, and what breaks a
    relation (`relation_violation` (n,) above 0) is not evaluated."""

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
        self._whole = Work(
            slots=np.array([ledger.slot_of[key] for key in todo], np.int64),
            keys=todo,
            designs=designs[rows],
            scenarios=np.array([places[key][1] for key in todo], np.int32),
            X=X[rows],
            kind="cheap",
        )

    def work(self) -> Iterator[Work]:
        """The evaluations that are not known yet."""
        for begin in range(0, self.waiting, LARGEST_CHUNK):
            yield self._whole.part(begin, begin + LARGEST_CHUNK)

    def outcomes(self) -> Outcomes:
        """What became of all rows, judged as full evaluations are."""
        return self._ledger.outcomes(self._X, self._slots, self._violation)
