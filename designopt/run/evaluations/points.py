"""Points of a stage, their designs, and the slots of their evaluations in the ledger."""

from __future__ import annotations

import itertools
import json

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt.run.evaluations.ledger import PENDING, Ledger
from designopt.run.evaluations.work import Work
from designopt.store.errors import ReplayError
from designopt.store.folder import Store
from designopt.study.study import Stage

#: Kind of the event that keeps a former result after its correction (`designopt.run.ask_tell`).
CORRECTED = "corrected"


class StagePoints:
    """The points of `stage`, the study's stage of that `number` (from 1), in ask order. `recorded` are the designs
    requested by earlier sessions."""

    def __init__(self, stage: Stage, number: int, store: Store, ledger: Ledger) -> None:
        self._stage = stage
        self._store = store
        self._journal = store.journal
        self._ledger = ledger
        self._problem = ledger.problem
        self.number = self._journal.stage(number, stage.name)
        #: -1 for a lost record.
        self.record_numbers = np.array(self._journal.points(self.number, gaps=True), np.int64)
        #: Asks without a complete result when the stage ended.
        self.missing: frozenset[int] = frozenset()
        #: Number of points of the stage so far.
        self.count = 0
        self._designs: list[Integers] = []
        self._sent_slots: set[int] = set()
        self._has_corrections = any(event["kind"] == CORRECTED for event in self._journal.records("event"))

    def proposed(self, X: Floats, ask: int) -> Floats:
        """The design `X` (1, d) of an ask; once results were corrected the recorded one, since a solver that has other
        results now would have chosen another."""
        number = int(self.record_numbers[ask]) if self._has_corrections and ask < len(self.record_numbers) else -1
        return X if number < 0 or number in self._ledger.lost else np.array(self._ledger.designs[[number]])

    def register(self, X: Floats, relation_violation: Floats, first: int, slots: Integers, old: int) -> Work:
        """Register points, designs and slots for rows `X`; `first` is the ask index of the first.

        Fills `slots` and returns the new work. Slots below `old` existed before: an earlier stage has abandoned those
        without a result. Raises `ReplayError` if the journal contains other points.
        """
        ledger = self._ledger
        before = self.record_numbers[first : first + len(X)]
        recorded_slots = ledger.recorded_slots(before, X, relation_violation)
        if recorded_slots is not None:
            slots[:] = recorded_slots
            self._designs.append(before)
            self.count += len(before)
            return Work.nothing(X.shape[1])
        keys = self._problem.keys(X)
        for i, row in enumerate(keys if ledger.lost else ()):
            self._restore(first + i, row[0], X[i], float(relation_violation[i]))
        count, number_of = len(ledger.designs), ledger.design_of
        offset = count - len(number_of)  # lost designs have no key
        ids = np.array([number_of.setdefault(row[0], offset + len(number_of)) for row in keys], np.int64)
        new = _first_rows(ids, ids >= count)
        if len(before):
            self._compare(X, ids, first)
            for i in np.flatnonzero(before < 0).tolist():
                self._journal.add_points(self.number, first + i, ids[i : i + 1])
        if len(new):
            ledger.add_designs(X[new], relation_violation[new])
            self._journal.add_designs(count, X[new], relation_violation[new])
        if len(before) < len(ids):
            self._journal.add_points(self.number, first + len(before), ids[len(before) :])
        self._designs.append(ids)
        self.count += len(ids)
        valid = np.flatnonzero(relation_violation <= 0.0)
        return self._slots_for(X, valid, keys, ids, slots, old)

    def _restore(self, ask: int, key: bytes, x: Floats, relation_violation: float) -> None:
        """Record a lost design again when the stage requests it."""
        number = int(self.record_numbers[ask]) if ask < len(self.record_numbers) else -1
        if number in self._ledger.lost and key not in self._ledger.design_of:
            self._ledger.restore(number, key, x, relation_violation)
            self._journal.add_designs(number, x[None], np.array([relation_violation]))

    def _slots_for(
        self, X: Floats, valid: Integers, keys: list[list[bytes]], ids: Integers, slots: Integers, old: int
    ) -> Work:
        ledger, slot_of = self._ledger, self._ledger.slot_of
        begin, width = len(slot_of), slots.shape[1]
        flat = list(itertools.chain.from_iterable(keys if len(valid) == len(keys) else [keys[i] for i in valid]))
        numbers = np.array([slot_of.setdefault(key, len(slot_of)) for key in flat], np.int64)
        ledger.add_slots(len(slot_of) - begin)
        slots[valid] = numbers.reshape(len(valid), width)
        is_abandoned = (numbers < old) & (ledger.status[numbers] == PENDING)
        if is_abandoned.any():
            resent = np.fromiter(self._sent_slots, np.int64, len(self._sent_slots))
            is_abandoned &= ~np.isin(numbers, resent)
            self._sent_slots.update(numbers[is_abandoned].tolist())
        rows_to_send = _first_rows(numbers, is_abandoned | (numbers >= begin))
        rows = valid[rows_to_send // width]
        return Work(
            slots=numbers[rows_to_send],
            keys=[flat[i] for i in rows_to_send.tolist()],
            designs=ids[rows],
            numbers=(rows_to_send % width).astype(np.int32),
            X=X[rows],
        )

    def _compare(self, X: Floats, ids: Integers, first: int) -> None:
        """Check that the replay requests the designs of the journal."""
        record = self.record_numbers[first : first + len(ids)]
        different = np.flatnonzero((record != ids[: len(record)]) & (record >= 0))
        if not len(different):
            return
        i = int(different[0])
        space = self._problem.space
        was = space.values(self._ledger.designs[record[i]].tolist())
        request = space.values(X[i].tolist())
        names = [name for name in {**request, **was} if request.get(name) != was.get(name)]
        detail = ", ".join(f"{name} = {request.get(name)!r} instead of {was.get(name)!r}" for name in names)
        solver = self._stage.solver.plugin
        origin = self._stage.start_from
        source = f"stage '{origin.stage}'" if origin and origin.stage else "another store"
        hint = f"; it starts from {source}, whose results may have changed" if origin else ""
        path = self._store.path
        if self._has_corrections:
            raise ReplayError(
                f"{path}: results were corrected, and with these solver {solver.name} would have chosen other designs "
                f"since ({detail}), so it cannot go on; all results stay: begin a study that starts from them, with "
                f"start_from: {{store: {path}}} in its stage",
                path,
            )
        raise ReplayError(
            f"{path}: ask {first + i} of stage '{self._stage.name}' differs from the journal: {detail} (solver "
            f"{solver.name}, version {solver.version}; {self._version_differences()}){hint}; resume with "
            "the versions of the journal, or run the study again in another folder",
            path,
        )

    def _version_differences(self) -> str:
        """Packages whose versions have changed since the journal was written, in words."""
        *before, present = (json.loads(session["versions"] or "{}") for session in self._journal.records("session"))
        former_versions = {n: old for versions in before for n, old in versions.items() if present.get(n) != old}
        changes = [
            f"{name} {present.get(name, 'is absent')}, journal written with {old}"
            for name, old in former_versions.items()
        ]
        return "; ".join(changes) or "the packages have the versions of the journal"

    def take_recorded(self, first: int, end: int) -> Integers:
        """Take the points from `first` to `end` from the journal; returns their designs. Raises `ReplayError`."""
        designs = self.record_numbers[first:end]
        if len(designs) < end - first or (designs < 0).any():
            raise ReplayError(
                f"{self._store.path}: the designs that stage '{self._stage.name}' had proposed when its time "
                "ended are lost (journal.db was damaged); the rest can be read; start a new study with "
                "start_from",
                self._store.path,
            )
        self._designs.append(designs)
        self.count += len(designs)
        return designs

    def designs(self) -> Integers:
        """Numbers of the distinct designs requested by the stage, in ask order, without missing ones."""
        if not self._designs:
            return np.empty(0, np.int64)
        designs = np.concatenate(self._designs)
        if self.missing:
            designs = designs[[i not in self.missing for i in range(len(designs))]]
        _, first = np.unique(designs, return_index=True)
        return np.asarray(designs[np.sort(first)])


def _first_rows(numbers: Integers, selection: Mask) -> Integers:
    """Rows, in their order, at which each of some `numbers` (n,) occurs first."""
    rows = np.flatnonzero(selection)
    _, first = np.unique(numbers[rows], return_index=True)
    return np.asarray(rows[np.sort(first)])
