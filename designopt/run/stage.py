"""One stage of a run: the evaluator of its solver, with budget, replay and progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt.problem import Outcomes, Problem, SolvedPrograms, StageEnded
from designopt.run.budget import StageBudget
from designopt.run.evaluations.batches import ARRAYS, CheapBatch, ProgramBatch, ticking
from designopt.run.evaluations.dispatch import Dispatcher
from designopt.run.evaluations.ledger import PENDING, Ledger
from designopt.run.evaluations.look_ahead import LookAheadLoop
from designopt.run.evaluations.points import StagePoints
from designopt.run.evaluations.work import Work
from designopt.run.progress import Snapshot, duration
from designopt.store.errors import reading
from designopt.store.journal.reader import Ending
from designopt.study.study import Stage

#: Rows of a batch whose keys are computed in advance, and rows of the journal per read.
BLOCK = 4096
#: Records of results that took less than this time in all (s) are flushed to the disk together.
FLUSH_AFTER = 0.1
#: Distance of a value beyond its bound, relative to the bound or the range, that counts as rounding.
ROUNDING = 1e-9
#: Time (s) and evaluations before the remaining time is shown: the first ones include the start of workers.
SETTLED = (3.0, 5)


class StageRun:
    """The `Evaluate` for the solver of `stage`. `number` is the stage's place (from 1) among the `steps` of the run.

    `asks` counts the designs requested by the solver, `tells` those whose outcomes it has received.
    """

    def __init__(self, stage: Stage, number: int, steps: int, dispatcher: Dispatcher) -> None:
        self.stage = stage
        self.number = number
        self.steps = steps
        self.dispatcher = dispatcher
        self.ledger: Ledger = dispatcher.ledger
        self.problem: Problem = dispatcher.ledger.problem
        self.points = StagePoints(stage, number, dispatcher.store, dispatcher.ledger)
        self.budget = StageBudget(stage.budget, self.problem, dispatcher.journal.usage(self.points.number))
        self.asks = 0
        self.tells = 0
        self._valid = 0
        self._ending = self._ending_in_force()
        if self._ending is not None:
            self.points.missing = self._ending.missing
        self._computed_before = dispatcher.evaluations
        self._last_shown = 0.0

    def _ending_in_force(self) -> Ending | None:
        """The end of the stage at its time limit in an earlier session, unless it has a larger limit now."""
        with reading(self.dispatcher.store.path):
            ending = self.dispatcher.journal.ending(self.points.number)
        wall = self.stage.budget.wall
        return ending if ending is not None and wall is not None and wall <= ending.wall else None

    # ------------------------------------------------------------------------------------------------ evaluate

    def __call__(self, X: Floats) -> Outcomes:
        """Outcomes of designs `X` (n, d), all durably recorded. Raises `StageEnded`."""
        X = self.admitted(X)
        relation_violation = self.problem.space.relation_violation(X)
        slots = np.full((len(X), len(self.problem.scenarios)), -1, np.int64)
        parts = []
        begin = 0
        while True:  # rejected designs return budget for rows that had none before
            self.dispatcher.check()
            if self.budget.designs_left <= 0 or self.mostly_invalid():
                raise StageEnded
            rows = slice(begin, begin + self.budget.take(relation_violation[begin:]))
            parts.append(self._evaluate(X[rows], relation_violation[rows], slots[rows]))
            begin = rows.stop
            self.show(0, force=begin < len(X))
            if begin == len(X):
                break
        outcomes = parts[0] if len(parts) == 1 else self.ledger.outcomes(X, slots, relation_violation)
        if self.grows_too_little([outcomes]):
            raise StageEnded
        return outcomes

    def ahead(self, ask: Callable[[], Floats], tell: Callable[[Outcomes], None], look_ahead: int) -> None:
        """Evaluate designs one by one with up to `look_ahead` of them pending (see `Evaluate`). Raises `StageEnded`,
        and `ValueError` for an invalid `look_ahead`."""
        if look_ahead < 1:
            raise ValueError(f"look_ahead must be at least 1, not {look_ahead}")
        self.dispatcher.check()
        loop = LookAheadLoop(self, ask, tell, look_ahead)
        self._dispatch(loop.work(), look_ahead, lambda: self.show(0), loop.missing)
        if loop.has_ended:
            if not loop.missing() and self.out_of_time():
                self._end(frozenset())
            raise StageEnded

    def programs(self, X: Floats, chains: Sequence[int], seeds: Sequence[int]) -> SolvedPrograms:
        """Solve programs of the stage's solver, all durably recorded (see `Evaluate`). They use time of the stage's
        budget, but no evaluations. Raises `StageEnded`."""
        self.dispatcher.check()
        batch = ProgramBatch(self.dispatcher, self.stage, self.number - 1, self.admitted(X), chains, seeds)
        self._complete(batch, ticking(lambda solved_count: self.show(solved_count, batch=len(X)), batch), arrays=ARRAYS)
        return batch.outcome()

    def cheap(self, X: Floats) -> Outcomes:
        """Outcomes of designs by cheap evaluations, all durably recorded (see `Evaluate`). They are not points of the
        stage and cost their share of its budget. Raises `StageEnded`."""
        self.dispatcher.check()
        X = self.admitted(X)
        relation_violation = self.problem.space.relation_violation(X)
        rows = self.budget.take_cheap(relation_violation, self.problem.fidelity.cost if self.problem.fidelity else 1.0)
        batch = CheapBatch(self.dispatcher, X[:rows], relation_violation[:rows])
        self._complete(batch, lambda: self.show(0))
        if rows < len(X):
            raise StageEnded
        return batch.outcomes()

    def _complete(
        self, batch: ProgramBatch | CheapBatch, tick: Callable[[], None], arrays: tuple[str, ...] = ()
    ) -> None:
        """Evaluate the unrecorded part of a batch, within the time of the stage. Raises `StageEnded`."""
        if not batch.waiting:
            return
        if self._ending is not None or self.out_of_time():
            self._end(frozenset())
            raise StageEnded
        try:
            self.dispatcher.run(batch.work(), batch.waiting, arrays=arrays, time_left=self._time_left, tick=tick)
        except StageEnded:
            self._end(frozenset())
            raise

    def note(self, kind: str, text: str) -> None:
        """Record and show a note, once over all sessions."""
        self._event_once(kind, f"stage {self.stage.name}: {text}")

    def admitted(self, X: Floats) -> Floats:
        """Designs (n, d) in the form of the space; values beyond a bound by rounding are moved to it.

        Raises `ValueError` for another shape and for a value outside its range, which would compete with those inside.
        """
        X, space = np.asarray(X, dtype=float) + 0.0, self.problem.space
        if X.ndim != 2 or X.shape[1] != len(space.free):
            raise ValueError(f"designs are an array (n, {len(space.free)}), not one of shape {X.shape}")
        X = space.impute(X)
        low, high = space.bounds
        if ((low <= X) & (high >= X)).all():
            return X
        margin = ROUNDING * np.maximum(high - low, np.maximum(np.abs(low), np.abs(high)))
        outside = ~((low - margin <= X) & (high + margin >= X))  # NaN is outside, too
        if outside.any():
            row, j = (int(i) for i in np.argwhere(outside)[0])
            p = space.free[j]
            value = f"{X[row, j]:.10g} {p.unit}".rstrip()
            raise ValueError(
                f"solver '{self.stage.solver.plugin.name}' proposes {p.name} = {value}, which is outside its range, "
                f"{low[j]:.10g} to {high[j]:.10g}"
            )
        return np.clip(X, low, high)

    def _evaluate(self, X: Floats, relation_violation: Floats, slots: Integers) -> Outcomes:
        """Outcomes of a batch within the budget; fills `slots`."""
        if self._ending is not None and self.asks + len(X) > self._ending.tells:
            self.tells = self._ending.tells
            designs = self.points.take_recorded(self.asks, self._ending.asks)
            self.asks = self._ending.asks
            self._valid += int((self.ledger.violation[designs] <= 0.0).sum())
            raise StageEnded
        if self.out_of_time():
            self._end(frozenset())
            raise StageEnded
        batch = _Batch(self, X, relation_violation, slots)
        self._dispatch(batch.work(), int((relation_violation <= 0.0).sum()), batch.tick, batch.missing)
        self.asks += len(X)
        self.tells += len(X)
        outcomes = self.ledger.outcomes(X, slots, relation_violation)
        self.record(outcomes, relation_violation)
        return outcomes

    def _dispatch(
        self,
        work: Iterator[Work | None],
        designs: int,
        tick: Callable[[], None],
        missing: Callable[[], frozenset[int]],
    ) -> None:
        arrays = tuple(name for name, keep in self.dispatcher.execution.arrays.items() if keep == "all")
        evaluations = designs * len(self.problem.scenarios)
        try:
            self.dispatcher.run(
                work, evaluations, arrays=arrays, time_left=self._time_left, tick=tick, flush_after=FLUSH_AFTER
            )
        except StageEnded:
            self._end(missing())
            raise

    # ----------------------------------------------------------------------------------------------------- ends

    def _time_left(self) -> float:
        if self.stage.budget.wall is not None:
            self.dispatcher.journal.set_usage(self.points.number, self.budget.elapsed)
        return self.budget.seconds_left

    def out_of_time(self) -> bool:
        """Whether no new design may be requested. Known and invalid designs also take time; those of a replay were in
        time."""
        return self.asks >= len(self.points.record_numbers) and self._time_left() <= 0.0

    def ended_before(self, asks: int) -> bool:
        """Whether the stage reached its time limit, in an earlier session, before this number of requests."""
        return self._ending is not None and asks > self._ending.asks

    def _end(self, missing: frozenset[int]) -> None:
        """Record the end at the time limit: a replay ends there, whatever is on record by then."""
        wall = self.stage.budget.wall
        if self._ending is not None or wall is None:
            return
        self.points.missing = missing
        asks = max(self.asks, self.points.count)
        self.dispatcher.journal.set_ending(self.points.number, Ending(self.tells, asks, missing, wall))
        self._event_once("stage_ended", f"stage {self.stage.name} ended: its time of {duration(wall)} is used up")

    def end_without_solver(self, patience: str, *, has_ended: bool) -> None:
        """End the stage, unless it `has_ended`, without its solver, which goes on for longer than `patience`."""
        if not has_ended:
            self._end(frozenset())
        action = "return after its end" if has_ended else "request a design after its time"
        name = self.stage.solver.plugin.name
        self._event_once(
            "stage_ended", f"stage {self.stage.name}: the solver '{name}' did not {action} within {patience}"
        )

    def mostly_invalid(self, *, one_by_one: bool = False) -> bool:
        """Whether hardly any design is valid (`StageBudget.mostly_invalid`, `StageBudget.refused_for_long`)."""
        ends = self.budget.mostly_invalid or (one_by_one and self.budget.refused_for_long)
        if ends:
            self._event_once("stage_ended", f"stage {self.stage.name} ended: {self.budget.summary}")
        return ends

    def grows_too_little(self, generation: Sequence[Outcomes]) -> bool:
        """Whether the hypervolume of the stage's designs, these included, has grown less than its budget demands."""
        growth = self.budget.growth
        if growth is None:
            return False
        growth.add(generation)
        if growth.ended is None:
            return False
        self._event_once("stage_ended", f"stage {self.stage.name} ended: {growth.ended}")
        return True

    def _event_once(self, kind: str, text: str) -> None:
        if not self.dispatcher.journal.has_event(kind, text):
            self.dispatcher.event(kind, text)

    # ----------------------------------------------------------------------------------------------- progress

    def designs(self) -> Integers:
        """Numbers of the distinct designs requested by the stage, in ask order."""
        return self.points.designs()

    def record(self, outcomes: Outcomes, relation_violation: Floats) -> None:
        """Called with complete outcomes: rejected designs return budget, and the best values are updated."""
        invalid = int(outcomes.invalid.sum())
        refusals = invalid - int((relation_violation > 0.0).sum())
        self.budget.give_back(refusals)
        self.budget.refused_in_a_row = self.budget.refused_in_a_row + invalid if invalid == len(outcomes) else 0
        self._valid += len(outcomes) - invalid
        self.note_best(outcomes)

    def note_best(self, outcomes: Outcomes) -> None:
        """Update the best values for the display."""
        F = outcomes.objectives[outcomes.feasible]
        if len(F):
            self.dispatcher.best = np.minimum(self.dispatcher.best, F.min(axis=0))

    def show(self, ready: int, *, invalid: int = 0, batch: int = 0, force: bool = False) -> None:
        """Update the progress display, at most twice a second.

        `ready` of the `batch` valid rows of the running batch are done, after `invalid` ones were skipped.
        """
        time_now = time.monotonic()
        if time_now - self._last_shown < 0.5 and not force:
            return
        self._last_shown = time_now
        seconds = self.budget.elapsed
        computed_count = self.dispatcher.evaluations - self._computed_before
        total = self.stage.budget.evaluations
        count = self._valid + ready + int(self.budget.cheap)
        if total is None and batch:
            total = self._valid + batch
        rate = computed_count / seconds if seconds > 0.0 else 0.0
        left = None
        if (
            total is not None
            and (count >= total or (seconds >= SETTLED[0] and computed_count >= SETTLED[1]))
            and rate > 0.0
        ):
            left = max(0, total - count) * len(self.problem.scenarios) / rate
        best = {
            o.name: o.sign * float(value)
            for o, value in zip(self.problem.objectives, self.dispatcher.best, strict=True)
            if np.isfinite(value)
        }
        failures = self.dispatcher.failures
        snapshot = Snapshot(
            self.stage.name, self.number, self.steps, count, total, self.dispatcher.evaluations, failures, rate,
            seconds, left, best, self.tells - self._valid + invalid, self.dispatcher.running(),
        )  # fmt: skip
        self.dispatcher.progress.update(snapshot)


class _Batch:
    """A pending batch: registers its rows block by block, and counts completed ones."""

    def __init__(self, run: StageRun, X: Floats, relation_violation: Floats, slots: Integers) -> None:
        self._run = run
        self._X, self._violation, self._slots = X, relation_violation, slots
        self._registered_count = 0
        self._ready = 0
        self._judge_time = time.monotonic()

    def work(self) -> Iterator[Work]:
        """The unknown evaluations of the batch."""
        old = len(self._run.ledger.slot_of)
        for begin in range(0, len(self._X), BLOCK):
            rows = slice(begin, begin + BLOCK)
            first = self._run.asks + begin
            work = self._run.points.register(self._X[rows], self._violation[rows], first, self._slots[rows], old)
            self._registered_count = min(begin + BLOCK, len(self._X))
            yield work

    def _complete(self) -> Mask:
        """Which of the registered pending rows are complete."""
        slots = self._slots[self._ready : self._registered_count]
        status = self._run.ledger.status
        waits = (slots >= 0) & (status[np.maximum(slots, 0)] == PENDING) if len(status) else np.zeros(slots.shape, bool)
        return np.asarray(~waits.any(axis=1))

    def missing(self) -> frozenset[int]:
        """Asks of the batch without a complete result."""
        return frozenset((self._run.asks + self._ready + np.flatnonzero(~self._complete())).tolist())

    def tick(self) -> None:
        """Between transactions: score the complete rows, once a second, and show the state."""
        time_now = time.monotonic()
        if time_now - self._judge_time < 1.0:
            return
        self._judge_time = time_now
        complete = self._complete()
        count = len(complete) if complete.all() else int(np.argmin(complete))
        if count:
            rows = slice(self._ready, self._ready + count)
            self._run.note_best(self._run.ledger.outcomes(self._X[rows], self._slots[rows], self._violation[rows]))
            self._ready += count
        valid = self._violation <= 0.0
        ready = int(valid[: self._ready].sum())
        self._run.show(ready, invalid=self._ready - ready, batch=int(valid.sum()))
