"""Designs and evaluations of a study during its run, in ask order, in memory, by columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats, Integers
from designopt.problem import Outcomes, Problem
from designopt.run.evaluations.work import Work
from designopt.store.journal import recorded_designs
from designopt.store.journal.recorded_designs import KIND_CODE, Contents, Evaluations, figure_names
from designopt.store.journal.schema import Kind
from designopt.workers.executor import ChunkResult

CODE, PENDING = recorded_designs.CODE, recorded_designs.PENDING


class GrowingArray:
    """An array (rows, columns) that grows at its end; `rows` is a view of the filled part."""

    def __init__(self, columns: int, dtype: Any, fill: float) -> None:
        self._data = np.full((64, columns), fill, dtype)
        self._fill = fill
        self._count = 0

    def extend(self, count: int) -> None:
        """Add `count` rows of the fill value."""
        size = self._count + count
        if size > len(self._data):
            rows = np.full((max(size, 2 * len(self._data)), self._data.shape[1]), self._fill, self._data.dtype)
            rows[: self._count] = self._data[: self._count]
            self._data = rows
        self._count = size

    def widen(self) -> None:
        """Add one column of the fill value."""
        column = np.full((len(self._data), 1), self._fill, self._data.dtype)
        self._data = np.hstack([self._data, column])

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
        #: Slots (designs, scenarios) that the journal had at the beginning; -1 for none.
        self._recorded_slots = np.empty((0, len(problem.scenarios)), np.int64)
        self._status = GrowingArray(1, np.uint8, PENDING)
        self._figures = GrowingArray(len(self.columns), np.float64, np.nan)
        #: Code of the kind, design, number, and number of the reason of each slot; and its time in s.
        self._origin = GrowingArray(4, np.int64, 0)
        self._wall = GrowingArray(1, np.float64, 0.0)
        self._reasons = {"": 0}
        #: Figures that evaluations of designs have in the journal.
        self._figures_of_designs = set(self.columns)
        self._designs = GrowingArray(len(problem.space.free), np.float64, np.nan)
        self._violation = GrowingArray(1, np.float64, 0.0)

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
        for column in (self._status, self._figures, self._origin, self._wall):
            column.extend(count)

    def register(self, keys: Iterable[bytes]) -> None:
        """Add a pending evaluation for each of the `keys` that has none."""
        new = [key for key in dict.fromkeys(keys) if key not in self.slot_of]
        self.slot_of.update(zip(new, itertools.count(len(self.slot_of))))
        self.add_slots(len(new))

    def is_pending(self, key: bytes) -> bool:
        """Whether the evaluation `key` has no result yet."""
        slot = self.slot_of.get(key)
        return slot is None or bool(self.status[slot] == PENDING)

    def work(self, X: Floats, requests: Mapping[bytes, tuple[int, int]], kind: Kind = "scenario") -> Work:
        """The evaluations `requests`, registered: by key the row of the known `X` and the number in the kind."""
        self.register(requests)
        designs = [self.design_of[keys[0]] for keys in self.problem.keys(X)]
        rows = [i for i, _ in requests.values()]
        return Work(
            slots=np.array([self.slot_of[key] for key in requests], np.int64),
            keys=list(requests),
            designs=np.array([designs[i] for i in rows], np.int64),
            numbers=np.array([number for _, number in requests.values()], np.int32),
            X=X[rows],
            kind=kind,
        )

    def record(self, work: Work, result: ChunkResult) -> None:
        """Fill the slots of `work` with the results of their evaluations."""
        slots = work.slots
        self._columns_for(result.names)
        self.status[slots] = result.status
        self._wall.rows[slots, 0] = result.wall
        origin = self._origin.rows
        origin[slots, 0], origin[slots, 1], origin[slots, 2] = KIND_CODE[work.kind], work.designs, work.numbers
        if work.kind == "scenario":
            self._figures_of_designs.update(result.names)
        for i, (reason, _, _) in result.messages.items():
            origin[slots[i], 3] = self._reasons.setdefault(reason, len(self._reasons))
        if len(result.names):
            columns = np.array([self.columns[name] for name in result.names])
            self.figures[slots[:, None], columns] = result.values

    def _columns_for(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self.columns:
                self.columns[name] = len(self.columns)
                self._figures.widen()

    def recall(self, contents: Contents) -> None:
        """Fill an empty ledger with the contents of a journal; a NaN violation marks a lost design."""
        X, relation_violation, evaluations = contents.X, contents.relation_violation, contents.evaluations
        self.add_designs(X, relation_violation)
        is_lost = np.isnan(relation_violation)
        self.lost.update(np.flatnonzero(is_lost).tolist())
        self.slot_of.update(zip(evaluations.keys, range(len(evaluations.keys)), strict=True))
        self.add_slots(len(evaluations.keys))
        self._columns_for(evaluations.names)
        self.status[:] = evaluations.status
        self._wall.rows[:, 0] = evaluations.wall
        self._origin.rows[:] = np.column_stack(
            [evaluations.kind, evaluations.design, evaluations.number, evaluations.reason]
        )
        self._reasons = {text: number for number, text in enumerate(evaluations.reasons)}
        self.figures[:, [self.columns[name] for name in evaluations.names]] = evaluations.figures
        count = len(self.problem.scenarios)
        rows = np.flatnonzero(
            (evaluations.kind == KIND_CODE["scenario"]) & (evaluations.design < len(X)) & (evaluations.number < count)
        )
        slots = np.full((len(X), count), -1, np.int64)
        slots[evaluations.design[rows], evaluations.number[rows]] = rows
        self._recorded_slots = slots[:, list(self.problem.first_occurrence)]
        # The key of a design's evaluation in the first scenario is that of the design.
        numbers = np.flatnonzero(~is_lost & (slots[:, 0] >= 0))
        first_keys = [evaluations.keys[i] for i in slots[numbers, 0].tolist()]
        self.design_of.update(zip(first_keys, numbers.tolist(), strict=True))
        new_designs = np.flatnonzero(~is_lost & (slots[:, 0] < 0))
        keys = self.problem.keys(X[new_designs])
        self.design_of.update((row[0], number) for row, number in zip(keys, new_designs.tolist(), strict=True))

    def recorded_slots(self, numbers: Integers, X: Floats, relation_violation: Floats) -> Integers | None:
        """The slots (n, scenarios) of designs `X` if the journal had them under these `numbers` at the beginning, with
        all their evaluations; -1 for a design that violates a relation. None for others."""
        if len(numbers) < len(X) or not len(X) or numbers.min() < 0 or numbers.max() >= len(self._recorded_slots):
            return None
        if not np.array_equal(X, self.designs[numbers]):
            return None
        slots = self._recorded_slots[numbers]
        slots[relation_violation > 0.0] = -1
        return slots if (slots[relation_violation <= 0.0] >= 0).all() else None

    def contents(self) -> Contents | None:
        """The contents that a reader of the journal would find; None if some are lost, or the journal may have further
        figures."""
        is_recorded = self.status != PENDING
        origin, figures = self._origin.rows[is_recorded], self.figures[is_recorded]
        is_scenario = origin[:, 0] == KIND_CODE["scenario"]
        has_value = ~np.isnan(figures[is_scenario]).all(axis=0)
        self._figures_of_designs.update(name for name, j in self.columns.items() if has_value[j])
        if self.lost or len(self._figures_of_designs) < len(self.columns):
            return None
        evaluations = Evaluations(
            origin[:, 0].astype(np.uint8),
            origin[:, 1],
            origin[:, 2],
            self.status[is_recorded],
            origin[:, 3].astype(np.int32),
            tuple(self._reasons),
            self._wall.rows[is_recorded, 0],
            tuple(self.columns),
            figures,
        )
        return Contents(self.designs.copy(), self.violation.copy(), evaluations)

    def outcomes(self, X: Floats, slots: NDArray[np.int64], relation_violation: Floats) -> Outcomes:
        """Outcomes for a solver of designs `X` with evaluations `slots` (n, scenarios); -1 without one."""
        n, s = slots.shape
        if not len(self.slot_of):
            figures = {name: np.full((n, s), np.nan) for name in self.columns}
            return self.problem.judge(X, figures, np.ones((n, s), bool), relation_violation)
        is_recorded = slots >= 0
        status = self.status[slots]
        failed = ~is_recorded | (status != CODE["ok"])
        is_refused = is_recorded & (status == CODE["invalid"])
        recorded_figures = self.figures[slots]
        if not is_recorded.all():
            recorded_figures[~is_recorded] = np.nan
        figures = {name: recorded_figures[:, :, j] for name, j in self.columns.items()}
        return self.problem.judge(X, figures, failed, relation_violation, is_refused if is_refused.any() else None)
