"""Solvers of others that catch what ends them, or hang: their thread is lost, the process and the results are not."""

import os
import signal
import threading

import numpy as np
import pytest
from run_cases import Recorder, dump, make_study, stopping, use

from designopt.plugin import PluginFailed
from designopt.run import foreign_solver
from designopt.run.runner import run_study
from designopt.store.errors import Interrupted
from designopt.store.result import Result
from designopt.study.study import Budget, Stage


def study(kind, budget=Budget(evaluations=5), **settings):  # noqa: B008
    return make_study(stages=(Stage("search", use("solver", "stubborn", kind=kind, **settings), budget),))


@pytest.mark.parametrize("request_", ["batch", "ahead"])
@pytest.mark.parametrize("kind", ["catches exceptions", "catches all"])
def test_a_solver_that_goes_on_after_the_end_is_an_error_and_this_process_goes_on(tmp_path, kind, request_):
    with pytest.raises(PluginFailed, match="'stubborn' goes on after StageEnded: it must not catch") as caught:
        run_study(study(kind, request=request_, before=10**9), tmp_path / "s")
    assert "All evaluations are stored" in str(caught.value)
    assert len(Result.open(tmp_path / "s").outcomes) == 5
    assert threading.current_thread() is threading.main_thread()


def test_a_solver_that_does_not_return_after_the_end_of_its_stage_costs_a_pause_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign_solver, "PATIENCE", 1.0)
    earlier = set(threading.enumerate())
    recorder = Recorder()
    result = run_study(study("hangs"), tmp_path / "s", progress=recorder)
    assert len(result.outcomes) == 5
    text = "stage search: the solver 'stubborn' did not return after its end within 1 s"
    assert ("stage_ended", text) in recorder.events
    for thread in set(threading.enumerate()) - earlier:  # its code is interrupted
        thread.join(60.0)
        assert not thread.is_alive()


def test_a_solver_that_computes_beyond_the_time_of_its_stage_ends_it_and_the_run_can_be_continued(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(foreign_solver, "PATIENCE", 1.0)
    stubborn = study("computes", Budget(evaluations=100, wall=1.0), before=7)
    recorder = Recorder()
    result = run_study(stubborn, tmp_path / "s", progress=recorder)
    assert len(result.outcomes) == 7
    text = "stage search: the solver 'stubborn' did not request a design after its time within 1 s"
    assert ("stage_ended", text) in recorder.events
    resumed = run_study(stubborn, tmp_path / "s", resume=True)
    assert dump(resumed) == dump(result)


def test_an_ask_that_returns_after_the_time_of_the_stage_is_no_return_of_the_solver(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign_solver, "PATIENCE", 1.0)
    recorder = Recorder()
    slow = study("computes", Budget(evaluations=100, wall=1.0), request="slow ask")
    result = run_study(slow, tmp_path / "s", progress=recorder)
    assert len(result.outcomes) == 0
    text = "stage search: the solver 'stubborn' did not request a design after its time within 1 s"
    assert ("stage_ended", text) in recorder.events
    assert not [text for _, text in recorder.events if "did not return" in text]


def test_a_stop_request_ends_a_run_while_its_solver_computes_and_the_solver_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign_solver, "SILENCE", 1.0)
    recorder = stopping("solver")
    with pytest.raises(Interrupted):
        run_study(study("computes", before=3), tmp_path / "s", progress=recorder)
    text = "stage search: its solver has requested nothing for 1 s; Ctrl-C ends the run"
    assert ("solver", text) in recorder.events
    assert len(Result.open(tmp_path / "s").outcomes) == 3


def test_a_stop_request_that_the_solver_catches_ends_the_run_as_such(tmp_path):
    progress = Recorder(at_update=lambda snapshot: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Interrupted):
        run_study(study("catches all", before=10**9), tmp_path / "s", progress=progress)


def test_code_of_the_solver_is_executed_by_its_thread_alone(tmp_path, monkeypatch):
    names = set()
    plugin = use("solver", "stubborn", kind="").plugin
    monkeypatch.setattr(
        plugin.target,
        "solve",
        lambda self, problem, evaluate, rng, start: evaluate.ahead(
            lambda: [names.add(threading.current_thread().name), np.zeros((int(len(names) < 1), 2))][1],
            lambda outcomes: names.add(threading.current_thread().name),
            1,
        ),
    )
    run_study(study("any"), tmp_path / "s")
    assert names == {"designopt-solver"}
