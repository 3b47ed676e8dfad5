"""Points of a stage, their designs, and the slots of their evaluations in the ledger."""

from __future__ import annotations

import json

import numpy as np

from designopt.arrays import Floats, Integers
from designopt.run.evaluations.ledger import PENDING, Ledger
from designopt.run.evaluations.work import Work
from designopt.store.errors import ReplayError
from designopt.store.folder import Store
from designopt.study.study import Stage


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
        self.recorded = np.array(self._journal.points(self.number, gaps=True), np.int64)
        #: Asks without a complete result when the stage ended.
        self.missing: frozenset[int] = frozenset()
        #: Number of points of the stage so far.
        self.count = 0
        self._designs: list[Integers] = []
        self._sent_slots: set[int] = set()

    def register(self, X: Floats, relation_violation: Floats, first: int, slots: Integers, old: int) -> Work:
        """Register points, designs and slots for rows `X`; `first` is the ask index of the first.

        Fills `slots` and returns the new work. Slots below `old` existed before: an earlier stage has abandoned those
        without a result. Raises `ReplayError` if the journal contains other points.
        """
        ledger = self._ledger
        keys = self._problem.keys(X)
        design_count = len(ledger.designs)
        ids: list[int] = []
        new: list[int] = []
        for i, row in enumerate(keys):
            if ledger.lost:
                self._restore(first + i, row[0], X[i], float(relation_violation[i]))
            number = ledger.design_of.setdefault(row[0], design_count + len(new))
            if number == design_count + len(new):
                new.append(i)
            ids.append(number)
        before = self.recorded[first : first + len(ids)]
        if len(before):
            self._compare(X, ids, first)
            for i in np.flatnonzero(before < 0).tolist():
                self._journal.add_points(self.number, first + i, [ids[i]])
        if new:
            ledger.add_designs(X[new], relation_violation[new])
            self._journal.add_designs(design_count, X[new].tolist(), relation_violation[new].tolist())
        if len(before) < len(ids):
            self._journal.add_points(self.number, first + len(before), ids[len(before) :])
        self._designs.append(np.array(ids, np.int64))
        self.count += len(ids)
        return self._slots_for(X, relation_violation, keys, ids, slots, old)

    def _restore(self, ask: int, key: bytes, x: Floats, relation_violation: float) -> None:
        """Record a lost design again when the stage requests it."""
        number = int(self.recorded[ask]) if ask < len(self.recorded) else -1
        if number in self._ledger.lost and key not in self._ledger.design_of:
            self._ledger.restore(number, key, x, relation_violation)
            self._journal.add_designs(number, [x.tolist()], [relation_violation])

    def _slots_for(
        self,
        X: Floats,
        relation_violation: Floats,
        keys: list[list[bytes]],
        ids: list[int],
        slots: Integers,
        old: int,
    ) -> Work:
        ledger = self._ledger
        begin = len(ledger.slot_of)
        new_keys: list[bytes] = []
        needed: dict[int, tuple[int, int, bytes]] = {}
        status = ledger.status
        for i, broken in enumerate(relation_violation.tolist()):
            for s, key in enumerate(keys[i] if broken <= 0.0 else ()):
                slot = ledger.slot_of.get(key)
                if slot is None:
                    slot = begin + len(new_keys)
                    ledger.slot_of[key] = slot
                    new_keys.append(key)
                    needed[slot] = (i, s, key)
                elif slot < old and status[slot] == PENDING and slot not in self._sent_slots:
                    self._sent_slots.add(slot)
                    needed[slot] = (i, s, key)
                slots[i, s] = slot
        if new_keys:
            ledger.add_slots(len(new_keys))
        rows = [i for i, _, _ in needed.values()]
        return Work(
            slots=np.array(list(needed), np.int64),
            keys=[key for _, _, key in needed.values()],
            designs=np.array([ids[i] for i in rows], np.int64),
            numbers=np.array([s for _, s, _ in needed.values()], np.int32),
            X=X[rows],
        )

    def _compare(self, X: Floats, ids: list[int], first: int) -> None:
        """Check that the replay requests the designs of the journal."""
        recorded = self.recorded[first : first + len(ids)]
        different = np.flatnonzero((recorded != ids[: len(recorded)]) & (recorded >= 0))
        if not len(different):
            return
        i = int(different[0])
        space = self._problem.space
        was = space.values(self._ledger.designs[recorded[i]].tolist())
        requested = space.values(X[i].tolist())
        names = [name for name in {**requested, **was} if requested.get(name) != was.get(name)]
        detail = ", ".join(f"{name} = {requested.get(name)!r} instead of {was.get(name)!r}" for name in names)
        solver = self._stage.solver.plugin
        origin = self._stage.start_from
        source = f"stage '{origin.stage}'" if origin and origin.stage else "another store"
        hint = f"; it starts from {source}, whose results may have changed" if origin else ""
        path = self._store.path
        raise ReplayError(
            f"{path}: ask {first + i} of stage '{self._stage.name}' differs from the journal: {detail} (solver "
            f"{solver.name}, version {solver.version}; {self._version_differences()}){hint}; resume with "
            "the versions of the journal, or run the study again in another folder",
            path,
        )

    def _version_differences(self) -> str:
        """Packages whose versions have changed since the journal was written, in words."""
        *before, present = (json.loads(session["versions"] or "{}") for session in self._journal.records("session"))
        changed = {n: old for versions in before for n, old in versions.items() if present.get(n) != old}
        changes = [
            f"{name} {present.get(name, 'is absent')}, journal written with {old}" for name, old in changed.items()
        ]
        return "; ".join(changes) or "the packages have the versions of the journal"

    def take_recorded(self, first: int, end: int) -> Integers:
        """Take the points from `first` to `end` from the journal; returns their designs. Raises `ReplayError`."""
        designs = self.recorded[first:end]
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
        requested = np.concatenate(self._designs)
        if self.missing:
            requested = requested[[i not in self.missing for i in range(len(requested))]]
        _, first = np.unique(requested, return_index=True)
        return np.asarray(requested[np.sort(first)])
