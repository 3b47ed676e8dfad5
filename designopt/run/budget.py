"""Budget of a stage: designs, time, and growth of the hypervolume."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

import numpy as np

from designopt import decision
from designopt.arrays import Floats
from designopt.problem import Outcomes, Problem
from designopt.study.study import Budget, HypervolumeGain

#: Number of invalid designs, per design of its budget, at which a solver is ended.
INVALID_LIMIT = 100
#: The same for a solver that chooses each design separately, which takes longer with every design: invalid ones in a
#: row, and per design of its budget.
REFUSED_LIMIT = (1000, 10)
#: Tolerance of sums of costs.
ROUNDING = 1e-9


class StageBudget:
    """The budget of a stage and its use. Invalid designs cost nothing.

    `used` is the time of earlier sessions (s). `valid` and `invalid` count requested designs, `refused_in_a_row` the
    last consecutive invalid ones. `cheap` is the cost of cheap evaluations, in full ones.
    """

    def __init__(self, budget: Budget, problem: Problem, elapsed_before: float) -> None:
        self.limits = budget
        self.growth = Growth(budget.hypervolume, problem) if budget.hypervolume else None
        self.valid = 0
        self.invalid = 0
        self.refused_in_a_row = 0
        self.cheap = 0.0
        self._elapsed_before = elapsed_before
        self._began = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Time spent by this session (s)."""
        return time.monotonic() - self._began

    @property
    def seconds_left(self) -> float:
        """Remaining wall time (s); infinite without a limit."""
        return np.inf if self.limits.wall is None else self.limits.wall - self._elapsed_before - self.elapsed

    @property
    def designs_left(self) -> float:
        """Remaining number of valid designs; infinite without a limit."""
        limit = self.limits.evaluations
        return np.inf if limit is None else np.floor(limit - self.valid - self.cheap + ROUNDING)

    @property
    def mostly_invalid(self) -> bool:
        """Whether hardly any proposed design of a stage with a budget of designs is valid."""
        limit = self.limits.evaluations
        return limit is not None and self.invalid > INVALID_LIMIT * max(limit, 100)

    @property
    def refused_for_long(self) -> bool:
        """Whether the last designs of a solver that chooses each design separately were all invalid."""
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

    def take(self, relation_violation: Floats) -> int:
        """Count designs by their `relation_violation` (0: valid); returns how many of the first rows are within the
        budget."""
        rows, fits = len(relation_violation), relation_violation <= 0.0
        if rows > self.designs_left:
            rows = int(np.searchsorted(np.cumsum(fits), self.designs_left + 1))
        valid = int(fits[:rows].sum())
        self.valid += valid
        self.invalid += rows - valid
        return rows

    def take_cheap(self, relation_violation: Floats, cost: float) -> int:
        """Count cheap evaluations at a `cost` each; returns how many of the first rows are within the budget."""
        total_cost = cost * np.cumsum(relation_violation <= 0.0)
        left = np.inf if self.limits.evaluations is None else self.limits.evaluations - self.valid - self.cheap
        rows = int(np.searchsorted(total_cost, left + ROUNDING, side="right"))
        self.cheap += float(total_cost[rows - 1]) if rows else 0.0
        return rows

    def give_back(self, designs: int) -> None:
        """The model has rejected this number of counted designs."""
        self.valid -= designs
        self.invalid += designs


class Growth:
    """Growth of the hypervolume of a stage, by generation."""

    def __init__(self, gain: HypervolumeGain, problem: Problem) -> None:
        self._limit = gain
        signs = np.array([objective.sign for objective in problem.objectives])
        self._reference = signs * np.array(gain.reference, float)
        self._front = np.empty((0, len(signs)))
        self._history: deque[float] = deque(maxlen=gain.over_generations + 1)

    def add(self, generation: Sequence[Outcomes]) -> None:
        """Add a generation of designs, and compute the hypervolume."""
        F = np.vstack([outcomes.objectives[outcomes.feasible] for outcomes in generation])
        front_size = len(self._front)
        candidates = np.vstack([self._front, F[np.less(F, self._reference).all(axis=1)]])
        is_on_front = decision.nondominated(candidates)
        self._front = candidates[is_on_front]
        if is_on_front[front_size:].any():
            self._history.append(decision.hypervolume(self._front, self._reference))
        else:
            self._history.append(self._history[-1] if self._history else 0.0)

    @property
    def ended(self) -> str | None:
        """A sentence if the hypervolume grows too little; None while it grows, and while there is none."""
        first, last = self._history[0], self._history[-1]
        if len(self._history) <= self._limit.over_generations or first <= 0.0:
            return None
        gain = last / first - 1.0
        if gain >= self._limit.gain_below:
            return None
        return f"hypervolume {last:.4g} grew by {gain:.2g} over the last {self._limit.over_generations} generations"
