"""Solvers that propose one design at a time and learn from each, with several pending.

Up to L (the solver's `look_ahead`) designs are pending. Ask i follows tell i - L and precedes the next one, so that the
sequence of designs is fixed; a design that is ready early waits for its turn.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from designopt.arrays import Floats, Integers
from designopt.problem import Outcomes, Problem
from designopt.run.budget import StageBudget
from designopt.run.evaluations.dispatch import Dispatcher
from designopt.run.evaluations.ledger import PENDING, Ledger
from designopt.run.evaluations.points import StagePoints
from designopt.run.evaluations.work import Work

#: Number of designs without evaluation, and time (s), after which the run checks its journal, clock and signals again,
#: and shows its progress: a solver may take seconds for each design that is on record.
IDLE_ROUNDS, IDLE_SECONDS = 256, 0.5


class LookAheadStage(Protocol):
    """The part of a stage that this loop uses: its state and its rules for an end."""

    problem: Problem
    ledger: Ledger
    points: StagePoints
    budget: StageBudget
    dispatcher: Dispatcher
    asks: int
    tells: int

    def admitted(self, X: Floats) -> Floats:
        """Designs in the form of the space."""

    def out_of_time(self) -> bool:
        """Whether no new design may be requested."""

    def mostly_invalid(self, *, one_by_one: bool = False) -> bool:
        """Whether the stage ends because too many designs in a row needed no evaluation."""

    def ended_before(self, asks: int) -> bool:
        """Whether the stage ended, in an earlier session, before this number of requests."""

    def grows_too_little(self, generation: Sequence[Outcomes]) -> bool:
        """Whether the hypervolume budget ends the stage."""

    def record(self, outcomes: Outcomes, relation_violation: Floats) -> None:
        """Count results that the solver receives."""


class LookAheadLoop:
    """The ask-and-tell loop with one solver. `has_ended` is set if the loop ends before the solver."""

    def __init__(
        self, run: LookAheadStage, ask: Callable[[], Floats], tell: Callable[[Outcomes], None], look_ahead: int
    ) -> None:
        self._run = run
        self._ask_solver = ask
        self._tell_solver = tell
        self._look_ahead = look_ahead
        self._ledger = run.ledger
        self._earlier_slots = len(run.ledger.slot_of)
        #: Requested but not sent, as the budget is used up: rejected pending designs return some of it.
        self._delayed_designs: deque[Floats] = deque()
        self._pending: dict[int, tuple[Floats, Floats, Integers]] = {}
        self._generation: list[Outcomes] = []
        self._asks_ended = False
        self.has_ended = False

    def work(self) -> Iterator[Work | None]:
        """The unknown evaluations; None if there are none before a result arrives."""
        idle_rounds, checked_at = 0, time.monotonic()
        while True:
            if self._may_send():
                work = self._send()
                idle_rounds = 0 if len(work) else idle_rounds + 1
                is_due = idle_rounds % IDLE_ROUNDS == 0 or time.monotonic() - checked_at > IDLE_SECONDS
                if len(work) or is_due:
                    yield work if len(work) else None
                    checked_at = time.monotonic()
            elif self._may_ask():
                self._ask()
            elif (index := self._next()) is not None:
                self._tell(index)
            elif self._asks_ended and self.missing() <= self._run.points.missing:
                return
            else:
                yield None

    def missing(self) -> frozenset[int]:
        """Asks without a complete result."""
        return frozenset(index for index in self._pending if self._waits(index))

    # ------------------------------------------------------------------------------------------------------ ask

    def _may_ask(self) -> bool:
        """Whether it is the solver's turn, also beyond the budget: a larger budget must find the asks on record."""
        return not self._asks_ended and len(self._pending) + len(self._delayed_designs) < self._look_ahead

    def _ask(self) -> None:
        X = self._run.admitted(self._ask_solver())
        if len(X) > 1:
            raise ValueError(f"a solver with look-ahead must return one design at a time, not {len(X)}")
        if len(X):
            self._delayed_designs.append(X)
        else:
            self._asks_ended = True

    def _may_send(self) -> bool:
        run, left = self._run, self._run.budget.designs_left
        if not self.has_ended:
            is_final = bool(self._delayed_designs) and (run.out_of_time() if left > 0 else not self._pending)
            if is_final or run.mostly_invalid(one_by_one=True) or run.ended_before(run.asks + 1):
                self._asks_ended = self.has_ended = True
        return bool(self._delayed_designs) and left > 0 and not self.has_ended

    def _send(self) -> Work:
        run = self._run
        index = run.asks
        X = run.points.proposed(self._delayed_designs.popleft(), index)
        relation_violation = run.problem.space.relation_violation(X)
        slots = np.full((1, len(run.problem.scenarios)), -1, np.int64)
        work = run.points.register(X, relation_violation, index, slots, self._earlier_slots)
        run.asks += 1
        run.budget.take(relation_violation)
        self._pending[index] = (X, relation_violation, slots)
        return Work.nothing(X.shape[1]) if index in run.points.missing else work

    # ----------------------------------------------------------------------------------------------------- tell

    def _waits(self, index: int) -> bool:
        slots = self._pending[index][2]
        return bool((self._ledger.status[slots[slots >= 0]] == PENDING).any())

    def _next(self) -> int | None:
        """The ask whose result the solver receives next; None if it has to wait."""
        if not self._pending:
            return None
        first = next(iter(self._pending))
        return None if self._waits(first) else first

    def _tell(self, index: int) -> None:
        run = self._run
        X, relation_violation, slots = self._pending.pop(index)
        outcomes = self._ledger.outcomes(X, slots, relation_violation)
        run.tells += 1
        run.record(outcomes, relation_violation)
        self._generation.append(outcomes)
        if len(self._generation) == self._look_ahead:
            if not self._asks_ended and run.grows_too_little(self._generation):
                self._asks_ended = self.has_ended = True
            self._generation = []
        self._tell_solver(outcomes)
