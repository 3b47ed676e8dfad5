"""Runs in this process: stages, budgets, replay, failure classes, arrays, the result."""

import contextlib
import dataclasses
import json
import os
import re
import sqlite3
from datetime import timedelta

import numpy as np
import pytest
from run_cases import Recorder, damage, dump, listed, make_study, rewrite, use
from threadpoolctl import threadpool_info, threadpool_limits

from designopt.plugin import Use, solver
from designopt.problem import STATUSES
from designopt.run.runner import resume_study, run_study
from designopt.store.errors import FailurePolicyStop, ReplayError, StoreError
from designopt.store.journal.schema import FORMAT
from designopt.store.journal.writer import Journal
from designopt.store.result import Result
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import Budget, DesignVariable, Stage, StartFrom, StudyConstraint


def trouble(kind, values=range(40, 60), **fields):
    stage = listed(values)
    return make_study(
        "trouble",
        settings={"kind": kind},
        minimize=("value",),
        names=("a",),
        low=0,
        high=100,
        stages=(stage,),
        **fields,
    )


@solver("looks", version=1)
class Looks:
    """Notes how many evaluations are on record each time 5 more are reported, three times."""

    def solve(self, problem, evaluate, rng, start):
        for i in range(3):
            evaluate(rng.uniform(-1.0, 1.0, (5, 2)))
            Looks.counts_on_record[i] = on_record()


def on_record():
    with contextlib.closing(sqlite3.connect(Looks.store / "journal.db")) as db:
        return db.execute("SELECT COUNT(*) FROM evaluation").fetchone()[0]


@pytest.mark.parametrize("pause", [0.03, 0.0])
def test_results_are_on_record_before_the_solver_hears_of_them(tmp_path, pause):
    Looks.store, Looks.counts_on_record = tmp_path / "s", {}
    stage = Stage("looks", Use(Looks.__designopt__, {}))
    run_study(make_study(stages=(stage,), settings={"pause": pause}), tmp_path / "s")
    assert Looks.counts_on_record == {0: 5, 1: 10, 2: 15}


def test_the_disk_is_waited_for_by_a_tenth_of_a_second_of_results_and_at_the_end(tmp_path, monkeypatch):
    flushed, commit = [], Journal.commit

    def noted(self, *, flush=True):
        if flush and (self._rows or not self._is_flushed):
            flushed.append(on_record())
        commit(self, flush=flush)
        assert self._is_flushed or not flush

    Looks.store, Looks.counts_on_record = tmp_path / "s", {}
    monkeypatch.setattr(Journal, "commit", noted)
    stage = Stage("looks", Use(Looks.__designopt__, {}))
    run_study(make_study(stages=(stage,), settings={"pause": 0.03}), tmp_path / "s")
    assert len(flushed) >= 3
    flushed.clear()
    Looks.store = tmp_path / "t"
    monkeypatch.setattr("designopt.run.stage.FLUSH_AFTER", 1e9)
    run_study(make_study(stages=(stage,)), tmp_path / "t")
    assert flushed[-1] == 15  # what had not been flushed is at the end of the stage
    assert len(flushed) < 5


def test_a_run_leaves_every_design_with_its_figures_in_ask_order(tmp_path):
    result = run_study(make_study(stages=(listed([1.0, -1.0, 0.5]),), names=("a",)), tmp_path / "s")
    assert result.outcomes.X[:, 0].tolist() == [1.0, -1.0, 0.5]
    assert result.outcomes.figures["height"][:, 0].tolist() == [1.0, 1.0, 0.25]
    assert result.status.tolist() == [["ok"]] * 3
    assert result.counts == {"points": 3, "designs": 3, "feasible": 3, "evaluations": 3, "ok": 3}
    assert result.front().tolist() == [2]
    assert result.ended == "done"


def test_linear_algebra_has_one_thread_in_evaluations_as_it_has_in_workers(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    study = make_study("threads", minimize=("threads",), names=("a",), stages=(listed([0.5]),))
    with threadpool_limits(2):
        result = run_study(study, tmp_path / "s")
        assert max(pool["num_threads"] for pool in threadpool_info()) == 2
    assert result.outcomes.figures["threads"].tolist() == [[1.0]]
    assert result.outcomes.figures["named"].tolist() == [[1.0]]
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def test_a_design_asked_for_again_is_evaluated_once_and_counts_as_asked(tmp_path):
    log = tmp_path / "log"
    study = make_study(
        "wave",
        settings={"log": str(log)},
        minimize=("square",),
        names=("a",),
        stages=(listed([1, 2, 1, 2, 1], batch=2),),
    )
    result = run_study(study, tmp_path / "s")
    assert log.read_text() == "xx"
    assert result.counts["points"] == 5
    assert result.counts["designs"] == 2


def test_stages_share_what_is_known_and_start_from_each_other(tmp_path):
    stages = (
        listed([0.5, 0.25, 1.0], name="sweep"),
        listed([0.25, 2.0], name="again"),
        Stage("walk", use("solver", "walk", size=4, rounds=2), Budget(), StartFrom("sweep", "best", 1)),
    )
    result = run_study(make_study(stages=stages, names=("a",)), tmp_path / "s")
    assert result.stage.tolist() == ["sweep"] * 3 + ["again"] + ["walk"] * 8
    assert abs(result.outcomes.X[4:8, 0] - 0.25).max() < 2.0


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_a_budget_ends_a_stage_after_that_many_proposals(tmp_path, batch):
    result = run_study(
        make_study(stages=(listed(np.linspace(-1, 1, 10), batch=batch, evaluations=7),), names=("a",)), tmp_path / "s"
    )
    assert result.counts["points"] == 7


def test_designs_that_break_a_relation_are_not_evaluated_and_cost_no_budget(tmp_path):
    study = make_study(
        stages=(listed([0.5, 1.5, 0.25, 1.75, 0.75, 0.1], evaluations=3),),
        names=("a",),
        relations=(Expression.parse("a <= 1"),),
    )
    result = run_study(study, tmp_path / "s")
    assert result.status[:, 0].tolist() == ["ok", "invalid", "ok", "invalid", "ok"]
    assert result.reason[1, 0] == "relation"
    assert result.outcomes.violation[1] == 0.5
    assert result.counts["evaluations"] == 3


def test_a_budget_of_time_counts_what_earlier_sessions_used(tmp_path, clock):
    stage = listed(np.linspace(0, 1, 1000), batch=1, wall=0.6)
    study = make_study(settings={"pause": 0.02}, stages=(stage,), names=("a",))
    first = run_study(study, tmp_path / "s")
    assert 2 <= first.counts["points"] < 100
    second = run_study(study, tmp_path / "s", resume=True)
    assert second.counts["evaluations"] == first.counts["evaluations"]
    longer = dataclasses.replace(study, stages=(dataclasses.replace(stage, budget=Budget(wall=3.0)),))
    third = run_study(longer, tmp_path / "s", resume=True)
    assert third.counts["evaluations"] > first.counts["evaluations"]


@pytest.mark.parametrize("relation", ["a >= 5", "a <= 5"])
def test_a_budget_of_time_ends_a_solver_whose_proposals_need_no_evaluation(tmp_path, clock, relation):
    stages = (Stage("endless", use("solver", "endless"), Budget(wall=0.3)),)
    study = make_study(stages=stages, names=("a",), relations=(Expression.parse(relation),))
    result = run_study(study, tmp_path / "s")
    assert result.ended == "done"
    assert result.counts["designs"] == 1
    points = result.counts["points"]
    assert points > 1
    assert run_study(study, tmp_path / "s", resume=True).counts["points"] == points


def test_a_finished_run_resumed_changes_nothing_and_computes_nothing(tmp_path):
    log = tmp_path / "log"
    study = make_study("wave", settings={"log": str(log)}, minimize=("square",), names=("a",))
    first = dump(run_study(study, tmp_path / "s"))
    computed = len(log.read_text())
    repeated = run_study(study, tmp_path / "s", resume=True)
    assert dump(repeated) == first
    assert len(log.read_text()) == computed
    assert repeated.sessions[-1]["executor"] == "none"


def test_a_larger_budget_continues_and_equals_the_run_that_had_it_from_the_start(tmp_path):
    def study(count):
        stages = (Stage("walk", use("solver", "walk", rounds=20), Budget(evaluations=count)),)
        return make_study(stages=stages, minimize=("height", "slope"))

    run_study(study(33), tmp_path / "a")
    grown = run_study(study(33), tmp_path / "a", resume=True, budget={"walk": 95})
    assert grown.counts["points"] == 95
    assert dump(grown) == dump(run_study(study(95), tmp_path / "b"))
    assert Result.open(tmp_path / "a").study.stages[0].budget.evaluations == 95


def test_more_time_continues_a_stage_that_time_had_ended(tmp_path, clock):
    stage = listed(np.linspace(0, 1, 100), batch=1, wall=0.3)
    study = make_study(settings={"pause": 0.01}, stages=(stage,), names=("a",), execution={"executor": "serial"})
    assert run_study(study, tmp_path).counts["points"] < 50
    grown = resume_study(tmp_path, budget={"list": timedelta(minutes=1)})
    assert grown.counts["points"] == 100
    assert Result.open(tmp_path).study.stages[0].budget == Budget(wall=60.0)


def test_a_stage_that_others_have_started_from_gets_no_other_budget(tmp_path):
    def stages(first, second):
        return (
            Stage("first", use("solver", "walk", size=5, rounds=20), Budget(evaluations=first)),
            Stage(
                "second", use("solver", "walk", rounds=20), Budget(evaluations=second), StartFrom("first", "best", 1)
            ),
        )

    before = dump(run_study(make_study(stages=stages(20, 20)), tmp_path / "s"))
    with pytest.raises(StoreError, match="'first' and has begun, so the budget of 'first' cannot change"):
        resume_study(tmp_path / "s", budget={"first": 30})
    with pytest.raises(StoreError, match="'second' starts from 'first' and has begun"):
        run_study(make_study(stages=stages(30, 20)), tmp_path / "s", resume=True)
    assert dump(resume_study(tmp_path / "s")) == before
    grown = resume_study(tmp_path / "s", budget={"second": 30})
    assert dump(grown) == dump(run_study(make_study(stages=stages(20, 30)), tmp_path / "whole"))


def test_a_budget_may_shrink_to_what_was_asked_for_and_not_below(tmp_path):
    before = dump(run_study(make_study(stages=(listed(np.linspace(-1, 1, 20)),), names=("a",)), tmp_path))
    with pytest.raises(StoreError, match="stage 'list' has already proposed 20 designs; set a budget of at least 20"):
        resume_study(tmp_path, budget={"list": 5})
    for budget in (1000, 20):  # the first one a slip of the pen
        assert dump(resume_study(tmp_path, budget={"list": budget})) == before


def test_a_solver_that_asks_for_something_else_is_stopped_at_the_first_difference(tmp_path):
    def study(bias):
        return make_study(stages=(Stage("walk", use("solver", "walk", bias=bias)),))

    run_study(study(0.0), tmp_path / "s")
    with pytest.raises(ReplayError, match=r"ask 0 of stage 'walk' differs from the journal: a = .* instead of"):
        run_study(study(0.1), tmp_path / "s", resume=True)
    rewrite(tmp_path / "s", "UPDATE session SET versions = json_set(versions, '$.numpy', '1.2.3')")
    with pytest.raises(ReplayError, match=f"; numpy {re.escape(np.__version__)}, journal written with 1.2.3\\)"):
        run_study(study(0.1), tmp_path / "s", resume=True)


def test_scenarios_choices_and_integers_come_back_from_the_journal(tmp_path):
    space = (
        DesignVariable("a", "int", -3, 3),
        DesignVariable("mode", "choice", values=("x", 1, True, 2.5)),
        DesignVariable("b", "fixed", values=(0.5,)),
    )
    study = dataclasses.replace(make_study(scenarios=({}, {"shift": 1.0})), space=space)
    result = run_study(study, tmp_path / "s")
    ours = {tuple(x) for x in result.outcomes.X.tolist()}
    assert {tuple(x) for x in Result.open(tmp_path / "s").outcomes.X.tolist()} == ours
    before = dump(result)
    assert dump(run_study(study, tmp_path / "s", resume=True)) == before
    assert result.outcomes.figures["height"].shape == (len(ours), 2)


@pytest.mark.parametrize(
    ("kind", "status", "reason", "message"),
    [
        ("diverge", "diverged", "fall", "fell over"),
        ("refuse", "invalid", "refused", "a must not be here"),
        ("nan", "nonfinite", "value", "value is nan"),
        ("raise", "error", "ZeroDivisionError", "ZeroDivisionError: no wheels"),
        ("sys_exit", "error", "SystemExit", "SystemExit: no licence"),
        ("interrupt", "error", "KeyboardInterrupt", "KeyboardInterrupt"),
        ("generator", "error", "GeneratorExit", "GeneratorExit"),
        ("speechless", "error", "Speechless", "Speechless: (its text cannot be had: RuntimeError)"),
        ("surrogate", "error", "ValueError", "ValueError: file \\udcff"),
    ],
)
def test_a_failed_evaluation_is_recorded_with_its_class_and_never_ranks(tmp_path, kind, status, reason, message):
    result = run_study(trouble(kind), tmp_path / "s")
    assert result.status[10, 0] == status
    assert result.reason[10, 0] == reason
    assert message in result.message(10)
    assert result.failures() == {(status, reason): 1}
    assert status in STATUSES
    assert np.isinf(result.outcomes.objectives[10]).all()
    assert result.outcomes.failed.sum() == 1
    assert 10 not in result.front()
    before = dump(result)
    assert dump(run_study(trouble(kind), tmp_path / "s", resume=True)) == before


def test_the_traceback_of_an_error_shows_the_models_line(tmp_path):
    result = run_study(trouble("raise"), tmp_path / "s")
    assert 'File "plugins.py"' in result.message(10)
    assert "evaluate.py" not in result.message(10)


def test_the_same_error_three_times_ends_the_run(tmp_path):
    study = trouble("raise", values=[10, 50, 50.1, 50.2, 50.3, 60])
    with pytest.raises(
        FailurePolicyStop, match=r"the same error 3 times at plugins.py:\d+: ZeroDivisionError: no whee"
    ) as stop:
        run_study(study, tmp_path / "s")
    assert f"designopt resume {tmp_path / 's'}" in str(stop.value)
    assert Result.open(stop.value.path).counts["error"] >= 3
    assert Result.open(stop.value.path).ended == "failure policy"


def test_too_large_a_share_of_failures_ends_the_run_and_says_where_they_lie(tmp_path):
    study = make_study(
        "trouble",
        settings={"kind": "diverge", "width": 30.0},
        minimize=("value",),
        names=("a",),
        low=0,
        high=100,
        stages=(listed(np.linspace(0, 100, 400)),),
        execution={"executor": "serial", "stop_if_share_above": 0.2, "after": 20},
    )
    study = dataclasses.replace(study, space=(DesignVariable("fixed", "fixed", values=(7.0,)), *study.space))
    with pytest.raises(FailurePolicyStop, match=r"failed, more than the share 0.2 .* failed within a 20"):
        run_study(study, tmp_path / "s")


def test_a_run_on_an_existing_store_asks_for_resume(tmp_path):
    study = make_study(stages=(listed([1.0]),), names=("a",))
    run_study(study, tmp_path / "s")
    with pytest.raises(StoreError, match="exists already; continue it with: designopt resume"):
        run_study(study, tmp_path / "s")


def test_a_folder_of_something_else_and_a_file_are_refused(tmp_path):
    study = make_study(stages=(listed([1.0]),), names=("a",))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    with pytest.raises(StoreError, match="folder of something else"):
        run_study(study, tmp_path / "mine")
    with pytest.raises(StoreError, match="is a file"):
        run_study(study, tmp_path / "mine" / "thesis.tex")
    with pytest.raises(StoreError, match="is not a store"):
        run_study(study, tmp_path / "mine", resume=True)
    assert sorted(p.name for p in (tmp_path / "mine").iterdir()) == ["thesis.tex"]


def test_a_store_of_another_problem_or_seed_is_refused(tmp_path):
    study = make_study(stages=(listed([1.0]),), names=("a",))
    run_study(study, tmp_path / "s")
    with pytest.raises(StoreError, match="another problem"):
        run_study(make_study(stages=(listed([1.0]),), names=("a",), high=3.0), tmp_path / "s", resume=True)
    with pytest.raises(StoreError, match="another seed"):
        run_study(dataclasses.replace(study, seed=1), tmp_path / "s", resume=True)


@pytest.mark.parametrize(("number", "age"), [(FORMAT + 1, "newer"), (0, "older")])
def test_a_store_of_another_format_is_refused_in_a_plain_sentence(tmp_path, number, age):
    study = make_study(stages=(listed([1.0]),), names=("a",))
    run_study(study, tmp_path / "s")
    damage(tmp_path / "s", f"UPDATE meta SET value = '{number}' WHERE name = 'format'")
    for use_it in (lambda: run_study(study, tmp_path / "s", resume=True), lambda: Result.open(tmp_path / "s", study)):
        with pytest.raises(StoreError, match=f"written by a {age} version of designopt"):
            use_it()


def test_a_store_is_resumed_from_what_is_kept_in_it(tmp_path):
    study = make_study(
        "wave", minimize=("square", "mean"), names=("a",), figures={"mean": use("objective", "signal_mean", gain=2.0)},
        constraints=(StudyConstraint("c", Expression.parse("mean * 2"), use("aggregation", "worst"), maximum=3.0),),
        stages=(Stage("walk", use("solver", "walk"), Budget(evaluations=20)),),
    )  # fmt: skip
    first = run_study(study, tmp_path / "s")
    assert first.counts["points"] == 20
    repeated = resume_study(tmp_path / "s", budget={"walk": 40})
    assert repeated.counts["points"] == 40
    assert repeated.problem.digest == first.problem.digest
    assert np.array_equal(repeated.outcomes.figures["mean"][:20], first.outcomes.figures["mean"])
    with pytest.raises(StoreError, match="no stage named 'wander'"):
        resume_study(tmp_path / "s", budget={"wander": 40})


def test_kept_arrays_come_back_and_orphans_are_removed_at_resume(tmp_path):
    study = make_study(
        "wave", minimize=("square",), names=("a",), stages=(listed([1.0, 2.0, 0.5]),),
        execution={"executor": "serial", "arrays": {"signal": "all"}},
    )  # fmt: skip
    result = run_study(study, tmp_path / "s")
    assert result.arrays(1)["signal"] == pytest.approx(2.0 * np.sin(np.linspace(0, 1, 11)))
    orphan = tmp_path / "s" / "arrays" / "00" / f"00{'11' * 15}.npz"
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"half")
    files = sorted((tmp_path / "s" / "arrays").glob("*/*"))
    repeated = run_study(study, tmp_path / "s", resume=True)
    assert sorted((tmp_path / "s" / "arrays").glob("*/*")) == [file for file in files if file != orphan]
    assert repeated.arrays(0)["signal"].shape == (11,)


def test_arrays_of_the_front_are_made_at_the_end_and_follow_it(tmp_path):
    def study(count):
        return make_study(
            "wave", minimize=("square", "0 - value"), names=("a",),
            stages=(listed([1.0, 0.5, 1.5, 0.0], evaluations=count),),
            execution={"executor": "serial", "arrays": {"signal": "front", "time": "front"}},
        )  # fmt: skip

    result = run_study(study(2), tmp_path / "s")
    assert sorted(result.arrays(0)) == ["signal", "time"]
    grown = run_study(study(4), tmp_path / "s", resume=True)
    on_front = set(grown.front().tolist())
    assert on_front == {0, 1, 2}
    assert [bool(grown.arrays(i)) for i in range(4)] == [i in on_front for i in range(4)]
    assert not grown.events
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "s" / "arrays").glob("*/*")}
    run_study(study(4), tmp_path / "s", resume=True)
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "s" / "arrays").glob("*/*")} == files


def test_a_model_that_answers_differently_is_noticed(tmp_path):
    wave = use("model", "wave").plugin
    drifting = dataclasses.replace(wave, target=_Drifting, methods=wave.methods - {"prepare"})
    study = make_study(
        "wave", minimize=("square",), names=("a",), stages=(listed([1.0]),),
        execution={"executor": "serial", "arrays": {"signal": "front"}},
    )  # fmt: skip
    study = dataclasses.replace(study, model=dataclasses.replace(study.model, plugin=drifting))
    recorder = Recorder()
    result = run_study(study, tmp_path / "s", progress=recorder)
    assert [kind for kind, _ in recorder.events] == ["nondeterministic_model"]
    assert result.events[0]["kind"] == "nondeterministic_model"
    assert result.outcomes.figures["square"][0, 0] == 1.0


class _Drifting:
    calls = 0

    def evaluate(self, design, scenario, arrays):
        type(self).calls += 1
        return {"value": 0.0, "square": float(self.calls)}, {name: np.zeros(2) for name in arrays}


def test_opening_a_store_needs_no_plugin(tmp_path, monkeypatch):
    study = make_study(stages=(listed([1.0, 0.5]),), names=("a",))
    run_study(study, tmp_path / "s")
    monkeypatch.setattr("designopt.plugin.discovery._declared_plugins", {})
    result = Result.open(tmp_path / "s")
    assert result.outcomes.figures["height"][:, 0].tolist() == [1.0, 0.25]
    assert "not available" in result.study.model.plugin.description
    with pytest.raises(StoreError, match="cannot be continued here: no plugin named 'bowl'"):
        resume_study(tmp_path / "s")


def test_a_clock_that_jumps_does_not_matter(tmp_path, monkeypatch):
    times = iter(np.random.default_rng(0).uniform(-1e9, 2e9, 100_000))
    study = make_study()
    expected = dump(run_study(study, tmp_path / "a"))
    monkeypatch.setattr("time.time", lambda: float(next(times)))
    assert dump(run_study(study, tmp_path / "b")) == expected


def test_provenance_has_a_line_for_each_session(tmp_path):
    study = make_study(stages=(listed([1.0]),), names=("a",), plugin_files=(("mine.py", b"x = 1\n"),))
    run_study(study, tmp_path / "s")
    run_study(study, tmp_path / "s", resume=True)
    lines = [json.loads(line) for line in (tmp_path / "s" / "provenance.jsonl").read_text().splitlines()]
    assert [line["session"] for line in lines] == [1, 2]
    assert {"numpy", "designopt", "python"} <= lines[0]["versions"].keys()
    assert lines[0]["plugins"]["model bowl"] == 1
    assert list(lines[0]["plugin_files"]) == ["mine.py"]


def test_a_result_shows_itself_as_a_table(tmp_path):
    pandas = pytest.importorskip("pandas")
    result = run_study(make_study(scenarios=({}, {"shift": 1.0}), minimize=("height", "slope")), tmp_path / "s")
    frame = result.to_pandas(result.front())
    assert isinstance(frame, pandas.DataFrame)
    assert {"a", "b", "f0", "f1", "height@s0", "height@s1", "status@s1", "feasible"} <= set(frame.columns)
    assert "compromise" in result._repr_html_()
    assert result.compromise() in result.front()


def test_the_journal_needs_less_than_300_bytes_for_an_evaluation(tmp_path):
    result = run_study(make_study(stages=(Stage("w", use("solver", "walk", size=1000, rounds=3)),)), tmp_path / "s")
    size = (tmp_path / "s" / "journal.db").stat().st_size
    assert size / result.counts["evaluations"] < 300
