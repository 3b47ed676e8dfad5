"""What a stage may still spend: designs, time, and as long as the hypervolume of what it finds grows."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

import numpy as np

from designopt import decision
from designopt.arrays import Matrix
from designopt.problem import Outcomes, Problem
from designopt.study.study import Budget, HypervolumeGain

#: A solver that proposes so many invalid designs for each one of its budget is ended.
INVALID_LIMIT = 100
#: One that chooses each design by itself is ended after so many invalid ones in a row, and so many for each one of its
#: budget: choosing takes longer with every design that it knows.
REFUSED_LIMIT = (1000, 10)
#: Sums of costs are compared within this.
ROUNDING = 1e-9


class StageBudget:
    """The budget of a stage and what of it is spent. Designs that are invalid cost nothing.

    `used` are the seconds that earlier sessions spent. `valid` and `invalid` count designs asked for,
    `refused_in_a_row` the invalid ones that came last. `cheap` is what cheap evaluations cost, in full ones.
    """

    def __init__(self, budget: Budget, problem: Problem, used: float) -> None:
        self.limits = budget
        self.growth = Growth(budget.hypervolume, problem) if budget.hypervolume else None
        self.valid = 0
        self.invalid = 0
        self.refused_in_a_row = 0
        self.cheap = 0.0
        self._used = used
        self._began = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds that this session has spent."""
        return time.monotonic() - self._began

    @property
    def seconds_left(self) -> float:
        """Of the wall time; infinite without a limit."""
        return np.inf if self.limits.wall is None else self.limits.wall - self._used - self.elapsed

    @property
    def designs_left(self) -> float:
        """How many valid designs may still be asked for; infinite without a limit."""
        limit = self.limits.evaluations
        return np.inf if limit is None else np.floor(limit - self.valid - self.cheap + ROUNDING)

    @property
    def mostly_invalid(self) -> bool:
        """Whether a stage with a number of designs to spend proposes hardly any that is valid."""
        limit = self.limits.evaluations
        return limit is not None and self.invalid > INVALID_LIMIT * max(limit, 100)

    @property
    def refused_for_long(self) -> bool:
        """The same of a solver that chooses each design by itself: nothing valid came of its last ones."""
        least, each = REFUSED_LIMIT
        limit = self.limits.evaluations
        return limit is not None and self.refused_in_a_row > max(least, each * limit)

    @property
    def summary(self) -> str:
        """How many of the designs were valid, in words."""
        return (
            f"{self.invalid} of its {self.valid + self.invalid} designs violate a relation or were "
            "rejected by the model"
        )

    def take(self, relation_violation: Matrix) -> int:
        """Count designs by their `relation_violation` (0: valid); how many of the first rows the budget allows."""
        rows, fits = len(relation_violation), relation_violation <= 0.0
        if rows > self.designs_left:
            rows = int(np.searchsorted(np.cumsum(fits), self.designs_left + 1))
        valid = int(fits[:rows].sum())
        self.valid += valid
        self.invalid += rows - valid
        return rows

    def take_cheap(self, relation_violation: Matrix, cost: float) -> int:
        """Count cheap evaluations at a `cost` each; how many of the first rows the budget allows."""
        used = cost * np.cumsum(relation_violation <= 0.0)
        left = np.inf if self.limits.evaluations is None else self.limits.evaluations - self.valid - self.cheap
        rows = int(np.searchsorted(used, left + ROUNDING, side="right"))
        self.cheap += float(used[rows - 1]) if rows else 0.0
        return rows

    def give_back(self, designs: int) -> None:
        """The model has refused so many of the designs that were counted."""
        self.valid -= designs
        self.invalid += designs


class Growth:
    """How the hypervolume of what a stage finds grows, generation by generation."""

    def __init__(self, limit: HypervolumeGain, problem: Problem) -> None:
        self._limit = limit
        signs = np.array([objective.sign for objective in problem.objectives])
        self._reference = signs * np.array(limit.reference, float)
        self._front = np.empty((0, len(signs)))
        self._history: deque[float] = deque(maxlen=limit.over_generations + 1)

    def add(self, generation: Sequence[Outcomes]) -> None:
        """One more generation of designs, at the end of which the hypervolume is taken."""
        F = np.vstack([outcomes.objectives[outcomes.feasible] for outcomes in generation])
        known = len(self._front)
        every = np.vstack([self._front, F[np.less(F, self._reference).all(axis=1)]])
        keep = decision.nondominated(every)
        self._front = every[keep]
        if keep[known:].any():
            self._history.append(decision.hypervolume(self._front, self._reference))
        else:
            self._history.append(self._history[-1] if self._history else 0.0)

    @property
    def ended(self) -> str | None:
        """That it grows too little, in words; None while it grows, and while there is nothing to grow."""
        first, last = self._history[0], self._history[-1]
        if len(self._history) <= self._limit.over_generations or first <= 0.0:
            return None
        gain = last / first - 1.0
        if gain >= self._limit.gain_below:
            return None
        return f"hypervolume {last:.4g} grew by {gain:.2g} over the last {self._limit.over_generations} generations"
