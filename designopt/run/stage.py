"""One stage of a run: what its solver calls `evaluate`, with budget, replay and bookkeeping of points."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from designopt.problem import Outcomes, Problem, StageEnded
from designopt.run.dispatch import Dispatcher
from designopt.run.errors import ReplayError
from designopt.run.ledger import PENDING, Ledger
from designopt.run.progress import Snapshot
from designopt.run.work import Work
from designopt.space import Matrix
from designopt.study.study import Stage

#: Rows of a batch whose keys are computed ahead of their evaluation, and of the journal that are read at once.
BLOCK = 4096
#: A solver that proposes so many invalid designs for each one of its budget is ended.
INVALID_LIMIT = 100
#: The time left is told after so many seconds and evaluations: the first ones carry the start of workers and models.
SETTLED = (3.0, 5)


class StageRun:
    """The `Evaluate` that the solver of `stage` is given. `number` is the stage's place (from 1) of `stages`."""

    def __init__(self, stage: Stage, number: int, stages: int, dispatcher: Dispatcher) -> None:
        self.stage = stage
        self.number = number
        self.stages = stages
        self.dispatcher = dispatcher
        self.ledger: Ledger = dispatcher.ledger
        self.problem: Problem = dispatcher.ledger.problem
        journal = dispatcher.journal
        self._id = journal.stage(stage.name)
        self._recorded = np.array(journal.points(self._id), np.int64)
        self._used_before = journal.usage(self._id)
        self._began = time.monotonic()
        self._asked = 0
        self._valid = 0
        self._invalid = 0
        self._best = np.full(len(self.problem.objectives), np.inf)
        self._computed_before = dispatcher.evaluations
        self._shown = 0.0
        self._designs: list[NDArray[np.int64]] = []

    # ------------------------------------------------------------------------------------------------ evaluate

    def __call__(self, X: Matrix) -> Outcomes:
        """Outcomes of designs `X` (n, d), all durably recorded. Raises `StageEnded`."""
        X = np.array(X, dtype=float, ndmin=2) + 0.0
        if X.shape[1] != len(self.problem.space.free):
            raise ValueError(f"designs have {len(self.problem.space.free)} values, not {X.shape[1]}")
        self.dispatcher.check()
        # Proposals that need no evaluation (known, invalid) cost time too; those of a replay had been in time.
        if self._asked >= len(self._recorded) and self._time_left() <= 0.0:
            raise StageEnded
        excess = self.problem.space.excess(X)
        X, excess, truncated = self._within_budget(X, excess)
        slots = np.full((len(X), len(self.problem.scenarios)), -1, np.int64)
        batch = _Batch(self, X, excess, slots)
        self.dispatcher.run(
            batch.work(),
            int((excess <= 0.0).sum()) * slots.shape[1],
            arrays=self._arrays(),
            time_left=self._time_left,
            tick=batch.tick,
        )
        self._asked += len(X)
        self._invalid += int((excess > 0.0).sum())
        outcomes = self.ledger.outcomes(X, slots, excess)
        self._note_best(outcomes)
        self.show(0, force=truncated)
        if truncated:
            raise StageEnded
        return outcomes

    def _arrays(self) -> tuple[str, ...]:
        return tuple(name for name, keep in self.dispatcher.execution.arrays.items() if keep == "all")

    def _within_budget(self, X: Matrix, excess: Matrix) -> tuple[Matrix, Matrix, bool]:
        """The rows that the stage's budget still allows; designs that break a relation cost nothing."""
        budget = self.stage.budget.evaluations
        if budget is None:
            return X, excess, False
        left = budget - self._valid
        invalid_asked = self._asked - self._valid
        if left <= 0 or invalid_asked > INVALID_LIMIT * max(budget, 100):
            raise StageEnded
        used = np.cumsum(excess <= 0.0)
        rows = int(np.searchsorted(used, left + 1))
        self._valid += int(used[rows - 1]) if rows else 0
        return X[:rows], excess[:rows], rows < len(X)

    def _time_left(self) -> float:
        wall = self.stage.budget.wall
        if wall is None:
            return np.inf
        spent = time.monotonic() - self._began
        self.dispatcher.journal.set_usage(self._id, spent)
        return wall - self._used_before - spent

    # ---------------------------------------------------------------------------------------------- registering

    def register(self, X: Matrix, excess: Matrix, first: int, slots: NDArray[np.int64], old: int) -> Work:
        """Points, designs and slots for rows `X` of a batch, `first` being the ask index of the first of them.

        Fills `slots` and returns the work that is new. Slots below `old` were there before the batch: those of them
        without a result were given up by an earlier stage. Raises `ReplayError` where the journal holds other points.
        """
        ledger = self.ledger
        keys = self.problem.keys(X)
        known = len(ledger.designs)
        ids: list[int] = []
        new: list[int] = []
        for i, row in enumerate(keys):
            number = ledger.design_of.setdefault(row[0], known + len(new))
            if number == known + len(new):
                new.append(i)
            ids.append(number)
        self._compare(X, ids, first)
        journal = self.dispatcher.journal
        if new:
            ledger.add_designs(X[new], excess[new])
            journal.add_designs(known, X[new].tolist(), excess[new].tolist())
        unrecorded = max(0, len(self._recorded) - first)
        if unrecorded < len(ids):
            journal.add_points(self._id, first + unrecorded, ids[unrecorded:])
        self._designs.append(np.array(ids, np.int64))
        return self._slots_for(X, excess, keys, ids, slots, old)

    def _slots_for(
        self, X: Matrix, excess: Matrix, keys: list[list[bytes]], ids: list[int], slots: NDArray[np.int64], old: int
    ) -> Work:
        ledger = self.ledger
        begin = len(ledger.slot_of)
        new_keys: list[bytes] = []
        wanted: dict[int, tuple[int, int, bytes]] = {}
        status = ledger.status
        for i in np.flatnonzero(excess <= 0.0).tolist():
            for s, key in enumerate(keys[i]):
                slot = ledger.slot_of.get(key)
                if slot is None:
                    slot = begin + len(new_keys)
                    ledger.slot_of[key] = slot
                    new_keys.append(key)
                    wanted[slot] = (i, s, key)
                elif slot < old and status[slot] == PENDING:
                    wanted[slot] = (i, s, key)
                slots[i, s] = slot
        if new_keys:
            ledger.add_slots(len(new_keys))
        rows = [i for i, _, _ in wanted.values()]
        return Work(
            slots=np.array(list(wanted), np.int64),
            keys=[key for _, _, key in wanted.values()],
            designs=np.array([ids[i] for i in rows], np.int64),
            scenarios=np.array([s for _, s, _ in wanted.values()], np.int32),
            X=X[rows],
        )

    def _compare(self, X: Matrix, ids: list[int], first: int) -> None:
        """The replay must ask for what the journal holds."""
        recorded = self._recorded[first : first + len(ids)]
        different = np.flatnonzero(recorded != ids[: len(recorded)])
        if not len(different):
            return
        i = int(different[0])
        space = self.problem.space
        was = space.values(self.ledger.designs[recorded[i]].tolist())
        now = space.values(X[i].tolist())
        detail = ", ".join(f"{name} = {now[name]!r} instead of {was[name]!r}" for name in now if now[name] != was[name])
        solver = self.stage.solver.plugin
        origin = self.stage.start_from
        hint = f"; it starts from stage '{origin.stage}', whose results may have changed" if origin else ""
        raise ReplayError(
            f"{self.dispatcher.store.path}: ask {first + i} of stage '{self.stage.name}' differs from the journal: "
            f"{detail} (solver {solver.name}, version {solver.version}; compare provenance.jsonl for other versions)"
            f"{hint}; resume with the versions of the journal, or run the study anew in another folder",
            self.dispatcher.store.path,
        )

    # ----------------------------------------------------------------------------------------------- progress

    def designs(self) -> NDArray[np.int64]:
        """Numbers of the distinct designs that the stage asked for, in ask order."""
        if not self._designs:
            return np.empty(0, np.int64)
        asked = np.concatenate(self._designs)
        _, first = np.unique(asked, return_index=True)
        return np.asarray(asked[np.sort(first)])

    def _note_best(self, outcomes: Outcomes) -> None:
        F = outcomes.objectives[outcomes.feasible]
        if len(F):
            self._best = np.minimum(self._best, F.min(axis=0))

    def show(self, ready: int, *, invalid: int = 0, batch: int = 0, force: bool = False) -> None:
        """Tell the progress display, twice a second at most.

        `ready` of the `batch` valid rows of the running batch are done, and `invalid` ones were passed on the way.
        """
        now = time.monotonic()
        if now - self._shown < 0.5 and not force:
            return
        self._shown = now
        elapsed = now - self._began
        computed = self.dispatcher.evaluations - self._computed_before
        total = self.stage.budget.evaluations
        before = self._asked - self._invalid
        done = before + ready
        if total is None and batch:
            total = before + batch
        rate = computed / elapsed if elapsed > 0.0 else 0.0
        left = None
        if total is not None and (done >= total or (elapsed >= SETTLED[0] and computed >= SETTLED[1])) and rate > 0.0:
            left = max(0, total - done) * len(self.problem.scenarios) / rate
        best = {
            o.name: o.sign * float(value)
            for o, value in zip(self.problem.objectives, self._best, strict=True)
            if np.isfinite(value)
        }
        failures = self.dispatcher.failures
        snapshot = Snapshot(
            self.stage.name, self.number, self.stages, done, total, self.dispatcher.evaluations, failures, rate,
            elapsed, left, best, self._invalid + invalid,
        )  # fmt: skip
        self.dispatcher.progress.update(snapshot)


class _Batch:
    """A batch on its way: registers its rows block by block, and follows how many of them are done."""

    def __init__(self, run: StageRun, X: Matrix, excess: Matrix, slots: NDArray[np.int64]) -> None:
        self._run = run
        self._X, self._excess, self._slots = X, excess, slots
        self._registered = 0
        self._ready = 0
        self._judged = time.monotonic()

    def work(self) -> Iterator[Work]:
        """The evaluations of the batch that are not known yet."""
        old = len(self._run.ledger.slot_of)
        for begin in range(0, len(self._X), BLOCK):
            rows = slice(begin, begin + BLOCK)
            first = self._run._asked + begin
            work = self._run.register(self._X[rows], self._excess[rows], first, self._slots[rows], old)
            self._registered = min(begin + BLOCK, len(self._X))
            yield work

    def tick(self) -> None:
        """Between transactions: judge what is complete by now, once a second, and show it."""
        now = time.monotonic()
        if now - self._judged < 1.0:
            return
        self._judged = now
        ledger = self._run.ledger
        slots = self._slots[self._ready : self._registered]
        done = ((slots < 0) | (ledger.status[np.maximum(slots, 0)] != PENDING)).all(axis=1)
        count = len(done) if done.all() else int(np.argmin(done))
        if count:
            rows = slice(self._ready, self._ready + count)
            self._run._note_best(ledger.outcomes(self._X[rows], self._slots[rows], self._excess[rows]))
            self._ready += count
        valid = self._excess <= 0.0
        ready = int(valid[: self._ready].sum())
        self._run.show(ready, invalid=self._ready - ready, batch=int(valid.sum()))
