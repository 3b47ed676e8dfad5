"""Solvers that ask for one design at a time, with several of them pending."""

import concurrent.futures
import dataclasses
import os
import signal
import threading
import time

import numpy as np
import pytest
from run_cases import Recorder, dump, make_study, rewrite, use

from designopt.plugin import PluginFailed
from designopt.run.evaluations.look_ahead import LookAheadLoop
from designopt.run.runner import run_study
from designopt.store.errors import Interrupted
from designopt.store.result import Result
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import Budget, HypervolumeGain, Stage
from designopt.workers.evaluation.evaluate import Evaluator
from designopt.workers.executor import Completion


class Threads:
    """An executor of threads: results come in another order than that of the chunks, without the cost of processes."""

    name = "threads"
    target, shortest = 0.3, 0.03

    def __init__(self, problem, workers):
        self.workers = workers
        self.slots = 2 * workers
        self._evaluator = Evaluator.for_problem(problem)
        self._pool = concurrent.futures.ThreadPoolExecutor(workers)
        self._flight = {}

    def submit(self, chunk):
        self._flight[self._pool.submit(self._evaluator.run, chunk)] = chunk

    def wait(self, timeout):
        finished, _ = concurrent.futures.wait(self._flight, timeout, concurrent.futures.FIRST_COMPLETED)
        return [Completion(self._flight.pop(future), "thread", future.result()) for future in finished]

    def notices(self):
        return []

    def advances(self):
        return []

    def listen(self, show):
        pass

    def cancel(self):
        self._flight.clear()

    def close(self):
        self._pool.shutdown()


@pytest.fixture
def threads(monkeypatch):
    """Two threads in place of whatever the study asks for."""

    def executor_for(study, problem, path, **options):
        return lambda expected: Threads(problem, 2)

    monkeypatch.setattr("designopt.run.runner.executor_for", executor_for)


def follower(executor="serial", model="bowl", *, budget=None, workers=2, settings=None, **fields):
    names = {k: fields.pop(k) for k in ("count", "look_ahead", "log") if k in fields}
    stage = Stage("follow", use("solver", "follower", **names), budget or Budget())
    return make_study(
        model, settings=settings or {}, stages=(stage,),
        execution={"executor": executor, "workers": workers, "grace": 5.0}, **fields,
    )  # fmt: skip


def expected_talk(count, look_ahead):
    """Ask i after the tell of i - look_ahead, before the next one."""
    lines = []
    for index in range(count):
        lines += [f"ask {i}" for i in range(len([t for t in lines if "ask" in t]), min(count, index + look_ahead))]
        lines.append(f"tell {index}")
    return lines


@pytest.mark.parametrize("look_ahead", [1, 3, 50])
def test_the_order_of_asks_and_tells_is_fixed_by_the_look_ahead(tmp_path, look_ahead):
    run_study(follower(count=9, look_ahead=look_ahead, log=str(tmp_path / "log")), tmp_path / "s")
    assert (tmp_path / "log").read_text().splitlines() == expected_talk(9, look_ahead)


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_the_sequence_of_designs_does_not_depend_on_the_workers(tmp_path, workers):
    def study(executor, log):
        return follower(executor, "uneven", count=30, workers=workers, log=str(tmp_path / log))

    serial = run_study(study("serial", "one"), tmp_path / "serial")
    parallel = run_study(study("dask", "two"), tmp_path / "dask")
    assert dump(parallel) == dump(serial)
    assert (tmp_path / "one").read_text().splitlines() == expected_talk(30, 4)
    assert (tmp_path / "two").read_text() == (tmp_path / "one").read_text()


def test_nsga2_without_generations_leaves_the_same_journal_through_any_number_of_workers(tmp_path):
    """The next designs are bred while the last ones are at work, `look_ahead` asks behind."""
    stage = Stage("front", use("solver", "nsga2", population=8, look_ahead=3), Budget(evaluations=40))

    def run(name, **execution):
        study = make_study("uneven", minimize=("height", "slope"), stages=(stage,), execution=execution)
        return dump(run_study(study, tmp_path / name))

    assert run("two", executor="dask", workers=2) == run("none", executor="serial")


@pytest.mark.parametrize("executor", ["serial", "threads", pytest.param("dask", marks=pytest.mark.slow)])
def test_a_stopped_and_resumed_run_equals_the_uninterrupted_one(tmp_path, executor, request):
    uninterrupted = run_study(follower(count=40, scenarios=({}, {"shift": 0.5})), tmp_path / "whole")
    if executor == "threads":
        request.getfixturevalue("threads")
        executor = "dask"

    class Stopping(Recorder):
        stop_requested = False

        def update(self, snapshot):
            if (
                snapshot.evaluations > 10 and not self.stop_requested
            ):  # a third request would end the process of the tests
                self.stop_requested = True
                signal.raise_signal(signal.SIGINT)

    study = follower(executor, count=40, scenarios=({}, {"shift": 0.5}), settings={"pause": 0.03})
    with pytest.raises(Interrupted):
        run_study(study, tmp_path / "s", progress=Stopping())
    assert 0 < Result.open(tmp_path / "s", study).counts["evaluations"] < 80
    resumed = run_study(study, tmp_path / "s", resume=True)
    assert resumed.outcomes.X.tolist() == uninterrupted.outcomes.X.tolist()
    assert resumed.status.tolist() == uninterrupted.status.tolist()
    before = dump(resumed)
    assert dump(run_study(study, tmp_path / "s", resume=True)) == before


def test_a_solver_that_is_slow_with_designs_on_record_shows_how_far_it_is(tmp_path, monkeypatch):
    study = follower(count=12, budget=Budget(evaluations=12))
    run_study(study, tmp_path / "s")
    ask, recorder = LookAheadLoop._ask, Recorder()
    monkeypatch.setattr(LookAheadLoop, "_ask", lambda loop: (time.sleep(0.2), ask(loop)))
    run_study(study, tmp_path / "s", resume=True, progress=recorder)
    assert any(0 < snapshot.completed < 12 for snapshot in recorder.snapshots)


@pytest.mark.parametrize("budget", [1, 3, 17, 40, 100])
def test_a_budget_of_designs_holds_for_them_too(tmp_path, budget):
    result = run_study(follower(count=40, budget=Budget(evaluations=budget)), tmp_path / "s")
    assert result.counts["points"] == min(budget, 40)
    assert result.ended == "done"


def test_a_larger_budget_continues_and_equals_the_run_that_had_it_from_the_start(tmp_path):
    run_study(follower(budget=Budget(evaluations=10)), tmp_path / "a")
    grown = run_study(follower(budget=Budget(evaluations=10)), tmp_path / "a", resume=True, budget={"follow": 25})
    assert grown.counts["points"] == 25
    assert dump(grown) == dump(run_study(follower(budget=Budget(evaluations=25)), tmp_path / "b"))


@pytest.mark.parametrize("budget", range(1, 9))
def test_designs_refused_at_the_end_of_a_budget_are_replaced_and_keep_their_positions(budget, tmp_path):
    study = follower("serial", "picky", budget=Budget(evaluations=budget), count=200)
    small = run_study(study, tmp_path / "a")
    assert int((~small.outcomes.failed).sum()) == budget
    grown = run_study(study, tmp_path / "a", resume=True, budget={"follow": 12})
    uninterrupted = run_study(follower("serial", "picky", budget=Budget(evaluations=12), count=200), tmp_path / "b")
    assert (uninterrupted.status == "invalid").any()
    assert dump(grown) == dump(uninterrupted)


def test_invalid_designs_cost_no_budget_and_take_their_turn(tmp_path, monkeypatch):
    relations = (Expression.parse("a <= 1"),)
    study = follower("serial", "picky", budget=Budget(evaluations=20), count=200, relations=relations)
    result = run_study(study, tmp_path / "s")
    invalid = int(result.outcomes.invalid.sum())
    assert {"relation", "refused"} <= set(result.reason[:, 0].tolist())
    assert result.counts["points"] == 20 + invalid
    assert int((~result.outcomes.failed).sum()) == 20
    before = dump(result)
    assert dump(run_study(study, tmp_path / "s", resume=True)) == before
    monkeypatch.setattr(
        "designopt.run.runner.executor_for", lambda study, problem, *_, **__: lambda _: Threads(problem, 3)
    )
    assert dump(run_study(study, tmp_path / "t")) == dump(result)


def test_the_end_of_its_time_is_repeated_by_a_resume_and_lifted_by_more_time(tmp_path, clock):
    study = follower(settings={"pause": 0.02}, count=400, look_ahead=6, budget=Budget(wall=0.4))
    first = run_study(study, tmp_path / "s")
    assert 3 < first.counts["points"] < 100
    repeated = run_study(study, tmp_path / "s", resume=True)
    assert dump(repeated) == dump(first)
    longer = dataclasses.replace(study, stages=(dataclasses.replace(study.stages[0], budget=Budget(wall=1.2)),))
    grown = run_study(longer, tmp_path / "s", resume=True)
    assert grown.counts["points"] > first.counts["points"]
    assert grown.outcomes.X[: len(first.outcomes)].tolist() == first.outcomes.X.tolist()


def test_an_end_of_time_with_pending_designs_is_repeated_too(tmp_path):
    study = follower(count=30, look_ahead=6, budget=Budget(wall=60.0))
    run_study(study, tmp_path / "s")
    rewrite(  # as if the time had ended when 3 of 9 were ready
        tmp_path / "s",
        "DELETE FROM evaluation WHERE design >= 3",
        "DELETE FROM point WHERE ask >= 9",
        "DELETE FROM design WHERE id >= 9",
        "INSERT INTO ending VALUES (1, 3, 9, '[3, 4, 5, 6, 7, 8]', 60.0, 0)",
    )
    resumed = run_study(study, tmp_path / "s", resume=True)
    assert (resumed.counts["points"], resumed.counts["evaluations"]) == (9, 3)


def test_growth_of_the_hypervolume_is_looked_at_once_for_each_look_ahead(tmp_path):
    limit = HypervolumeGain((10.0,), 1e-3, 3)
    study = follower(count=1000, look_ahead=5, budget=Budget(hypervolume=limit))
    result = run_study(study, tmp_path / "s")
    assert result.counts["points"] < 1000
    assert [e["kind"] for e in result.events] == ["stage_ended"]
    before = dump(result)
    assert dump(run_study(study, tmp_path / "s", resume=True)) == before
    assert len(Result.open(tmp_path / "s", study).events) == 1


def test_a_request_to_stop_ends_a_solver_whose_proposals_need_no_evaluation(tmp_path):
    study = follower(names=("a",), count=10**9, relations=(Expression.parse("a >= 5"),))
    before = signal.getsignal(signal.SIGTERM)

    def stop_when_the_run_listens():
        while signal.getsignal(signal.SIGTERM) == before:
            time.sleep(0.01)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    stop = threading.Thread(target=stop_when_the_run_listens, daemon=True)
    stop.start()
    with pytest.raises(Interrupted):
        run_study(study, tmp_path / "s")
    stop.join()


@pytest.mark.parametrize(("ask", "message"), [(2, "one design at a time"), (0, None)])
def test_the_requests_a_solver_may_make(tmp_path, ask, message):
    class Odd:
        def solve(self, problem, evaluate, rng, start):
            evaluate.ahead(lambda: np.zeros((ask, 2)), lambda outcomes: None, 3)

    solver = use("solver", "follower")
    odd = dataclasses.replace(solver, plugin=dataclasses.replace(solver.plugin, target=Odd, settings={}))
    study = make_study(stages=(Stage("odd", odd),))
    if message is None:
        assert run_study(study, tmp_path / "s").counts["points"] == 0
        return
    with pytest.raises(PluginFailed, match=message):
        run_study(study, tmp_path / "s")


def test_a_solver_that_finds_nothing_valid_for_long_is_ended_and_the_store_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr("designopt.run.budget.REFUSED_LIMIT", (30, 1))
    stage = Stage("walk", use("solver", "follower", count=10_000), Budget(evaluations=10))
    study = make_study(stages=(stage,), relations=(Expression.parse("a >= 10"),))
    result = run_study(study, tmp_path / "s")
    assert result.counts["points"] == 34  # three more were pending
    ended = [event["text"] for event in result.events if event["kind"] == "stage_ended"]
    assert ended == ["stage walk ended: 34 of its 34 designs violate a relation or were rejected by the model"]
    assert dump(run_study(study, tmp_path / "s", resume=True)) == dump(result)
