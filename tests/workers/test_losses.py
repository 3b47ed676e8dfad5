"""Evaluations whose worker died: which are to blame, and which go again."""

import dataclasses
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from run_cases import listed, make_study, table

from designopt.plugin import PluginError
from designopt.run.evaluations.losses import Losses
from designopt.run.evaluations.work import Queue, Work
from designopt.run.failures import Attempts
from designopt.run.runner import run_study
from designopt.store.journal.writer import Journal
from designopt.workers.dask import Dask
from designopt.workers.evaluation.evaluate import Evaluator
from designopt.workers.evaluation.serial import Serial
from designopt.workers.executor import Chunk, Completion, Loss, Position
from designopt.workers.supervision.death import CRASHED, LOST, TIMEOUT, Death, NoChunk


def run_on(monkeypatch, executor, path, values=(0.25, 0.5, 0.75), **options):
    """The result of a run of designs `values` on a serial `executor`."""
    monkeypatch.setattr(
        "designopt.run.runner.executor_for",
        lambda study, problem, *_, **__: lambda _: executor(lambda: Evaluator.for_problem(problem, None)),
    )
    return run_study(make_study(names=("a",), stages=(listed(values, **options),)), path)


def ended(monkeypatch, tmp_path, losses):
    """The status of a design whose chunk is lost so often; what `losses` says of each, from whether it was alone."""
    remaining = iter(losses)

    class Dying(Serial):
        def wait(self, timeout):
            chunk = self._waiting[0]
            loss = next(remaining, None) if chunk.X[0, 0] == 0.5 else None
            if loss is None:
                return super().wait(timeout)
            assert self._waiting.popleft().alone == loss[0]
            return [Completion(chunk, "w", loss[1])]

    result = run_on(monkeypatch, Dying, tmp_path / "s", batch=1)
    assert result.status[[0, 2], 0].tolist() == ["ok", "ok"]
    return result.status[1, 0]


WAITED, LATE = Loss(CRASHED, "died", started=False), Loss(TIMEOUT, "too long", suspect=0)
DIED, LATER, KILLED = Loss(CRASHED, "died"), Loss(CRASHED, "died", later=True), Loss(LOST, "killed", suspect=0)


@pytest.mark.parametrize(
    ("losses", "status"),
    [
        ([(False, DIED)], "ok"),
        ([(False, DIED), (True, DIED)], "crashed"),
        ([(False, DIED), (True, LATER)], "ok"),  # another one has ended the process
        ([(False, DIED), (True, LATER), (False, LATER)], "ok"),
        ([(False, DIED), *[(True, LATER), (False, LATER)] * 2, (True, LATER)], "lost_worker"),  # there is an end
        ([(False, WAITED)] * 9, "ok"),  # it waited behind the cause
        ([(False, LATE)], "timeout"),  # seen by the clock, it needs no second time
        ([(False, KILLED), (False, KILLED)], "ok"),
        ([(False, KILLED), (False, KILLED), (False, KILLED)], "ok"),
        ([(False, KILLED), (False, KILLED), (False, KILLED), (True, KILLED)], "crashed"),
    ],
)
def test_an_evaluation_goes_again_until_it_has_been_seen_to_end_its_worker(monkeypatch, tmp_path, losses, status):
    assert ended(monkeypatch, tmp_path, losses) == status


@pytest.mark.parametrize(
    ("chunk", "position", "later"),
    [
        (8, 0, True),
        (8, Position.PREPARING, False),
        (8, Position.ENDED, False),
        (NoChunk.IDLE, Position.PREPARING, False),
    ],
)
def test_a_worker_that_dies_in_an_evaluation_of_a_later_chunk_says_so(chunk, position, later):
    death = Death("tls://w", chunk, position, before=7, exit_code=7)
    assert death.loss(7, None).later is later


def test_the_others_of_a_lost_chunk_keep_their_results_and_the_first_death_of_the_suspect_is_an_attempt(
    monkeypatch, tmp_path
):
    class Dying(Serial):
        died = False

        def wait(self, timeout):
            chunk = self._waiting[0]
            if self.died or len(chunk) < 5:
                return super().wait(timeout)
            self.died = True
            self._waiting.popleft()
            return [Completion(chunk, "w", Loss(CRASHED, "died", suspect=2))]

    values = np.linspace(0.1, 0.5, 5)
    monkeypatch.setattr("designopt.run.evaluations.work.ChunkSize.choose", lambda self, *_: 5)
    result = run_on(monkeypatch, Dying, tmp_path / "s", values)
    assert result.status[:, 0].tolist() == ["ok"] * 5
    assert result.outcomes.figures["height"][:, 0].tolist() == pytest.approx(values**2)
    (attempt,) = table(result, "attempt")
    assert (attempt["number"], attempt["outcome"]) == (1, "crashed")


def test_a_chain_whose_worker_ends_for_an_unknown_reason_stays_together(tmp_path):
    columns = (np.arange(3), [b"a", b"b", b"c"], np.arange(3), np.zeros(3, np.int32), np.zeros((3, 1)))
    chain = Work(*columns, chain=True, seeds=(0, 0, 0), kind="program")
    journal = SimpleNamespace(add_attempt=lambda *values: None)
    losses = Losses(Attempts({"crashed": 1}, {}, None), None, journal, lambda kind, text: None)
    queue = Queue(iter(()), 3)
    assert losses.repeat_or_end(chain, DIED, "w", queue) is None
    alone = queue.draw(1)
    assert (len(alone), alone.alone) == (3, True)
    losses.repeat_or_end(alone, DIED, "w", queue)  # now its first program is the suspect, which has another attempt
    assert queue.draw(1).keys == chain.keys


@pytest.mark.parametrize(("evaluations", "parts"), [(6, [1] * 6), (20, [3] * 6 + [2])])
def test_a_chunk_whose_worker_ends_for_an_unknown_reason_is_sent_again_in_at_most_eight_parts(evaluations, parts):
    numbers = np.arange(evaluations)
    keys = [bytes([i]) for i in numbers]
    work = Work(numbers, keys, numbers, np.zeros(evaluations, np.int32), np.zeros((evaluations, 1)))
    losses = Losses(Attempts({"crashed": 1}, {}, None), None, None, lambda kind, text: None)
    queue = Queue(iter(()), evaluations)
    assert losses.repeat_or_end(work, DIED, "w", queue) is None
    assert sorted((len(queue.draw(evaluations)) for _ in parts), reverse=True) == parts


# ------------------------------------------------------------------------------------------------- their records


def commits(monkeypatch):
    """Whether each commit with records waited for the disk, with the number of records of each kind; the time since
    the last wait plays no part."""
    noted, commit = [], Journal.commit

    def note(self, *, flush=True):
        if self._rows:
            counts = Counter({statement.split()[2]: len(rows) for statement, rows in self._rows.items()})
            noted.append((flush, counts))
        commit(self, flush=flush)

    monkeypatch.setattr(Journal, "commit", note)
    return noted


def test_an_attempt_that_was_lost_is_on_the_disk_at_once(monkeypatch, tmp_path):
    noted = commits(monkeypatch)
    monkeypatch.setattr("designopt.run.stage.FLUSH_AFTER", 1e9)
    ended(monkeypatch, tmp_path, [(False, DIED)])
    assert [flush for flush, counts in noted if counts["attempt"]] == [True]


@pytest.mark.parametrize(("seconds", "waits"), [(0.06, True), (0.04, False)])
def test_results_that_arrive_together_are_at_stake_together(monkeypatch, tmp_path, seconds, waits):
    """Two results at a time; the disk is waited for from 0.1 s of results on."""

    class Pair(Serial):
        slots = 2

        def wait(self, timeout):
            completions = [c for _ in tuple(self._waiting) for c in super(Pair, self).wait(timeout)]
            wall = np.full(1, seconds)
            return [dataclasses.replace(c, outcome=dataclasses.replace(c.outcome, wall=wall)) for c in completions]

    noted = commits(monkeypatch)
    monkeypatch.setattr("designopt.run.evaluations.work.ChunkSize.choose", lambda self, *_: 1)
    monkeypatch.setattr("designopt.run.evaluations.dispatch.time", SimpleNamespace(monotonic=lambda: 1.0, time=float))
    run_on(monkeypatch, Pair, tmp_path / "s", np.linspace(0.0, 1.0, 8))
    flushed = [flush for flush, counts in noted if counts["evaluation"] == 2]
    assert len(flushed) >= 3
    assert flushed[1] is waits  # the first one has nothing before it that was waited for


# ------------------------------------------------------------------------------------------------------- deaths


def death(chunk, position, **options):
    return Death("tls://w", chunk, position, **{"before": 7, "exit_code": 7, **options})


def test_a_time_out_is_that_of_the_active_evaluation_alone():
    late = death(8, 3, verdict=TIMEOUT, why="was terminated")
    assert late.loss(8, 2.0) == Loss(TIMEOUT, "no result within 2 s", suspect=3)
    assert not late.loss(7, 2.0).started
    assert not late.loss(9, 2.0).started


def test_of_several_that_are_evaluated_together_none_is_the_suspect():
    assert death(8, Position.TOGETHER).loss(8, None).suspect is None
    assert death(8, 4).loss(8, None).suspect == 4


@pytest.mark.parametrize("position", [Position.PREPARING, 0])
def test_a_chunk_that_has_not_begun_is_no_cause(position):
    assert death(8, position).loss(9, None) == Loss(
        LOST, "the worker process ended itself with exit code 7", started=False
    )
    assert death(8, position).loss(8, None).started is (position == 0)


@pytest.mark.parametrize(
    ("code", "trace", "cause"),
    [(-9, "", LOST), (-15, "", LOST), (-11, "", CRASHED), (7, "", CRASHED), (None, "", LOST), (None, "Fatal", CRASHED)],
)
def test_a_process_is_lost_by_a_signal_from_outside_and_crashes_by_any_other_end(code, trace, cause):
    assert death(8, 0, exit_code=code, trace=trace).loss(8, None).cause == cause


@pytest.mark.parametrize(
    ("chunk", "position", "before", "unfinished"),
    [
        (8, Position.ENDED, 7, (8, 7)),
        (8, 0, 7, (7,)),
        (NoChunk.IDLE, Position.PREPARING, 7, (7,)),
        (8, Position.ENDED, NoChunk.IDLE, (8,)),
        (8, 0, NoChunk.IDLE, ()),
    ],
)
def test_results_that_were_complete_and_may_have_died_with_their_worker_are_named(chunk, position, before, unfinished):
    assert death(chunk, position, before=before).unreported_chunks == unfinished


def test_workers_that_die_at_their_start_end_the_run_if_no_result_comes_between_them():
    executor = Dask.__new__(Dask)
    executor._failed_starts = executor._kill_count = 0
    executor._path, executor._flight = Path("s"), {}
    executor._worker_count = (np.inf, 1)  # one worker, counted in the future
    at_start = death(NoChunk.IDLE, Position.PREPARING, before=NoChunk.IDLE)

    def result():
        executor._flight[1] = Chunk(1, np.zeros((1, 1)), np.zeros(1, np.int32))
        executor._collect(1, ("w", None))

    for _ in range(4):
        for _ in range(3):
            executor._count(at_start)
        result()
    executor._count(death(8, 0))  # at work
    for _ in range(3):
        executor._count(at_start)
    with pytest.raises(PluginError, match="workers die while they prepare the model: the last one ended itself"):
        executor._count(at_start)
