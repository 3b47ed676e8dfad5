"""Designs and evaluations of a study during its run, in ask order, in memory, by columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.problem import STATUSES, Outcomes, Problem
from designopt.store.journal.recorded_designs import figure_names

PENDING = 255
CODE = {status: code for code, status in enumerate(STATUSES)}


class Growing:
    """An array (rows, columns) that grows at its end; `rows` is a view of the filled part."""

    def __init__(self, columns: int, dtype: Any, fill: float) -> None:
        self._data = np.full((64, columns), fill, dtype)
        self._fill = fill
        self._count = 0

    def extend(self, count: int) -> None:
        """Add `count` rows of the fill value."""
        need = self._count + count
        if need > len(self._data):
            more = np.full((max(need, 2 * len(self._data)), self._data.shape[1]), self._fill, self._data.dtype)
            more[: self._count] = self._data[: self._count]
            self._data = more
        self._count = need

    def widen(self) -> None:
        """Add one column of the fill value."""
        more = np.full((len(self._data), 1), self._fill, self._data.dtype)
        self._data = np.hstack([self._data, more])

    @property
    def rows(self) -> NDArray[Any]:
        """The filled rows."""
        return self._data[: self._count]


class Ledger:
    """Designs and evaluations by number, in ask order.

    `slot_of` maps an evaluation's key to its number (slot), `design_of` the key of a design's first scenario to the
    design's number. A slot exists from its first request; its status is `PENDING` until the journal has its result.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.columns = {name: j for j, name in enumerate(figure_names(problem))}
        self.slot_of: dict[bytes, int] = {}
        self.design_of: dict[bytes, int] = {}
        #: Designs whose record is lost, until they are requested again.
        self.lost: set[int] = set()
        self._status = Growing(1, np.uint8, PENDING)
        self._figures = Growing(len(self.columns), np.float64, np.nan)
        self._designs = Growing(len(problem.space.free), np.float64, np.nan)
        self._violation = Growing(1, np.float64, 0.0)

    @property
    def status(self) -> NDArray[np.uint8]:
        """Status code of each slot."""
        return self._status.rows[:, 0]

    @property
    def figures(self) -> Floats:
        """Figures (slots, columns), NaN without a value."""
        return self._figures.rows

    @property
    def designs(self) -> Floats:
        """All requested designs, by number."""
        return self._designs.rows

    @property
    def violation(self) -> Floats:
        """Violation of the relations by each design (`Space.relation_violation`)."""
        return self._violation.rows[:, 0]

    def add_designs(self, X: Floats, violation: Floats) -> int:
        """Add designs; returns the number of the first."""
        first = len(self.designs)
        self._designs.extend(len(X))
        self._violation.extend(len(X))
        self.designs[first:] = X
        self.violation[first:] = violation
        return first

    def restore(self, number: int, key: bytes, x: Floats, violation: float) -> None:
        """Restore a lost design."""
        self.designs[number], self.violation[number] = x, violation
        self.design_of[key] = number
        self.lost.discard(number)

    def add_slots(self, count: int) -> None:
        """Add `count` pending evaluations, the newest of `slot_of`."""
        self._status.extend(count)
        self._figures.extend(count)

    def record(self, slots: NDArray[Any], status: NDArray[np.uint8], names: Sequence[str], values: Floats) -> None:
        """Fill `slots` with the results of their evaluations; `values` (slots, names)."""
        for name in names:
            if name not in self.columns:
                self.columns[name] = len(self.columns)
                self._figures.widen()
        self.status[slots] = status
        if len(names):
            columns = np.array([self.columns[name] for name in names])
            self.figures[slots[:, None], columns] = values

    def outcomes(self, X: Floats, slots: NDArray[np.int64], relation_violation: Floats) -> Outcomes:
        """Outcomes for a solver of designs `X` with evaluations `slots` (n, scenarios); -1 without one."""
        n, s = slots.shape
        if not len(self.slot_of):
            figures = {name: np.full((n, s), np.nan) for name in self.columns}
            return self.problem.judge(X, figures, np.ones((n, s), bool), relation_violation)
        is_recorded = slots >= 0
        status = self.status[slots]
        failed = ~is_recorded | (status != CODE["ok"])
        refused = is_recorded & (status == CODE["invalid"])
        recorded_figures = self.figures[slots]
        if not is_recorded.all():
            recorded_figures[~is_recorded] = np.nan
        figures = {name: recorded_figures[:, :, j] for name, j in self.columns.items()}
        return self.problem.judge(X, figures, failed, relation_violation, refused if refused.any() else None)
