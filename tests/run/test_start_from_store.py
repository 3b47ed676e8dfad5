"""A stage may start from the designs of another store, and what is known there is not computed again."""

import dataclasses
import shutil
import sqlite3

import numpy as np
import pytest
from run_cases import Recorder, dump, listed, make_study, rewrite, use

from designopt.problem import Problem
from designopt.run.plan import plan
from designopt.run.runner import run_study
from designopt.run.start_from import settle, translate
from designopt.space import Space
from designopt.store.errors import Interrupted, StoreError
from designopt.store.result import Result
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import Budget, DesignVariable, HypervolumeGain, Stage, StartFrom, Validation

A = DesignVariable("a", "real", -2.0, 2.0)


def sweep(**fields):
    """Designs of the first store: the square of `a`, logged."""
    fields = {"values": (1.0, 0.5, -0.25, 1.5), "minimize": ("square",), **fields}
    values = fields.pop("values")
    return make_study("wave", names=("a",), stages=(listed(values),), **fields)


def starting(store, *, count=None, select="nondominated", then=("walk",), **fields):
    solver = use("solver", "walk", size=4, rounds=3) if then == ("walk",) else listed(then).solver
    stage = Stage("front", solver, Budget(), StartFrom(None, select, count, str(store)))
    return make_study("wave", **{"names": ("a",), "minimize": ("square",), "stages": (stage,), **fields})


def logged(path):
    return len(path.read_text()) if path.exists() else 0


def workers(result):
    db = sqlite3.connect(result.path / "journal.db")
    try:
        return dict(db.execute("SELECT worker, COUNT(*) FROM evaluation GROUP BY worker"))
    finally:
        db.close()


def test_a_stage_begins_with_the_best_designs_of_another_store(tmp_path):
    run_study(sweep(), tmp_path / "first")
    result = run_study(starting(tmp_path / "first", select="best", count=2), tmp_path / "second")
    assert result.outcomes.X[:2, 0].tolist() == [0.5, -0.25]  # squares of distances from 0.25: 0.0625 and 0.25
    assert result.designs_of("front")[:2].tolist() == [0, 1]
    assert abs(result.outcomes.X[2:6, 0] - 0.5).max() < 2.0  # the walk began there
    assert "starts from 2 designs of" in result.events[0]["text"]


def test_evaluations_with_the_same_key_are_taken_over_for_the_whole_run(tmp_path):
    log = tmp_path / "log"
    settings = {"settings": {"log": str(log)}}
    run_study(sweep(**settings), tmp_path / "first")
    assert logged(log) == 4
    study = starting(tmp_path / "first", count=1, then=(0.5, 1.0, 1.5, 0.75), **settings)
    result = run_study(study, tmp_path / "second")
    assert logged(log) == 5
    assert workers(result) == {"store:first": 3, "serial": 1}
    first, second = (Result.open(tmp_path / name) for name in ("first", "second"))
    stored_values = dict(zip(first.outcomes.X[:, 0], first.outcomes.figures["value"][:, 0], strict=True))
    for x, value in zip(second.outcomes.X[:, 0], second.outcomes.figures["value"][:, 0], strict=True):
        assert stored_values.get(x, value) == value


def test_the_store_is_equal_to_that_of_a_run_that_computes_everything(tmp_path):
    log = tmp_path / "log"
    run_study(sweep(settings={"log": str(log)}), tmp_path / "first")
    run_study(sweep(), tmp_path / "unlogged")  # the same designs under other keys: another setting
    reusing = run_study(starting(tmp_path / "first", settings={"log": str(log)}), tmp_path / "a")
    fresh_study = starting(tmp_path / "unlogged", settings={"log": str(log)})
    fresh = run_study(fresh_study, tmp_path / "b")
    assert any(worker.startswith("store:") for worker in workers(reusing))
    assert not any(worker.startswith("store:") for worker in workers(fresh))
    assert dump(reusing) == dump(fresh)


def test_failures_of_the_physics_are_taken_over_and_those_of_the_machine_tried_again(tmp_path):
    def study(kind, stages):
        return make_study("trouble", settings={"kind": kind}, minimize=("value",), names=("a",), low=0, high=100,
                          stages=stages)  # fmt: skip

    for kind, expected in (("diverge", {"store:diverge": 3}), ("refuse", {"store:refuse": 3}),
                           ("nan", {"store:nan": 3}), ("raise", {"store:raise": 2, "serial": 1})):  # fmt: skip
        store = tmp_path / kind
        first = run_study(study(kind, (listed([10, 50, 60]),)), store)
        stage = Stage("front", listed([10, 50, 60]).solver, Budget(), StartFrom(None, "best", 1, str(store)))
        second = run_study(study(kind, (stage,)), tmp_path / f"{kind}_again")
        assert workers(second) == expected
        assert second.status.tolist() == first.status.tolist()
        assert second.reason.tolist() == first.reason.tolist()
        assert second.message(1) == first.message(1)


@pytest.mark.parametrize("status", ["timeout", "crashed", "lost_worker"])
def test_an_evaluation_that_ended_its_worker_in_the_other_store_is_tried_again_here(tmp_path, status):
    first = run_study(sweep(values=(1.0, 0.5)), tmp_path / "first")
    rewrite(first.path, f"UPDATE evaluation SET status = '{status}', outputs = NULL WHERE design = 0")
    result = run_study(starting(tmp_path / "first", then=(1.0, 0.5)), tmp_path / "second")
    assert workers(result) == {"store:first": 1, "serial": 1}
    assert result.status[:, 0].tolist() == ["ok", "ok"]


def test_a_resume_is_a_replay_even_if_the_other_store_is_gone_or_another_one(tmp_path):
    store, log = tmp_path / "first", tmp_path / "log"
    settings = {"settings": {"log": str(log)}}
    run_study(sweep(**settings), store)
    study = starting(store, **settings)
    budget = dataclasses.replace(study.stages[0], budget=Budget(evaluations=6))
    small = dataclasses.replace(study, stages=(budget,))
    run_study(small, tmp_path / "a")
    uninterrupted = run_study(study, tmp_path / "whole")
    shutil.rmtree(store)
    recorder = Recorder()
    grown = run_study(study, tmp_path / "a", resume=True, progress=recorder)
    assert "can no longer be used" in recorder.events[0][1]
    assert dump(grown) == dump(uninterrupted)
    run_study(sweep(values=(2.0, 1.9), **settings), store)  # another run under the same name
    assert dump(run_study(study, tmp_path / "a", resume=True)) == dump(uninterrupted)


def test_a_run_stopped_at_its_first_designs_goes_on_from_the_same_ones(tmp_path):
    store = tmp_path / "first"
    run_study(sweep(), store)
    study = starting(store)

    class Stopper(Recorder):
        def event(self, kind, text):
            raise KeyboardInterrupt

    with pytest.raises((Interrupted, KeyboardInterrupt)):
        run_study(study, tmp_path / "a", progress=Stopper())
    shutil.rmtree(store)
    resumed = run_study(study, tmp_path / "a", resume=True)
    run_study(sweep(), store)
    assert dump(resumed) == dump(run_study(study, tmp_path / "b"))


def test_kept_arrays_are_taken_over_with_their_evaluations(tmp_path):
    log = tmp_path / "log"
    keep = {"settings": {"log": str(log)}, "execution": {"executor": "serial", "arrays": {"signal": "all"}}}
    run_study(sweep(**keep), tmp_path / "first")
    result = run_study(starting(tmp_path / "first", then=(0.5, 1.0), **keep), tmp_path / "second")
    assert logged(log) == 4
    assert result.arrays(1)["signal"].tolist() == Result.open(tmp_path / "first").arrays(0)["signal"].tolist()
    more = {**keep, "execution": {"executor": "serial", "arrays": {"signal": "all", "time": "all"}}}
    run_study(starting(tmp_path / "first", then=(0.5, 1.0), **more), tmp_path / "third")
    assert logged(log) == 6  # what the first store did not keep has to be computed


def test_the_validation_uses_the_other_store_too(tmp_path):
    scenarios = make_study(scenarios=({"shift": 0.5}, {"shift": 1.0})).scenarios
    first = make_study(names=("a",), stages=(listed([0.5, 1.0]),), scenarios=({}, {"shift": 0.5}, {"shift": 1.0}))
    run_study(first, tmp_path / "first")
    stage = Stage("front", listed([0.5]).solver, Budget(), StartFrom(None, "best", 1, str(tmp_path / "first")))
    second = make_study(names=("a",), stages=(stage,), validate=Validation(scenarios))
    result = run_study(second, tmp_path / "second")
    assert workers(result) == {"store:first": 3}
    assert (result.validation().statuses == "ok").all()


def test_a_problem_judges_recorded_results(tmp_path):
    first = sweep(minimize=("-1 * square",))  # the farthest is best there, under the same name
    run_study(first, tmp_path / "first")
    assert run_study(starting(tmp_path / "first"), tmp_path / "a").outcomes.X[0, 0] == 0.5


def test_a_parameter_that_the_other_designs_lack_is_named_before_anything_is_made(tmp_path):
    run_study(sweep(), tmp_path / "first")
    with pytest.raises(StoreError, match=r"its designs have no parameter 'b', 'c' \(they have a\)"):
        run_study(starting(tmp_path / "first", names=("a", "b", "c")), tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_objectives_that_another_model_cannot_compute_are_named(tmp_path):
    run_study(make_study(names=("a",), stages=(listed([0.5]),)), tmp_path / "first")
    study = starting(tmp_path / "first")
    study = dataclasses.replace(study, objectives=(dataclasses.replace(study.objectives[0], name="mine"),))
    with pytest.raises(StoreError, match="'square', which 'mine' needs, is not recorded there"):
        run_study(study, tmp_path / "second")


def test_a_folder_that_is_no_store_and_the_own_store_are_refused(tmp_path):
    (tmp_path / "nothing").mkdir()
    with pytest.raises(StoreError, match="nothing: is not a store"):
        run_study(starting(tmp_path / "nothing"), tmp_path / "second")
    with pytest.raises(StoreError, match="cannot start from its own store"):
        run_study(starting(tmp_path / "second"), tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_designs_outside_of_the_space_are_left_out_and_counted(tmp_path):
    run_study(sweep(), tmp_path / "first")
    study = starting(tmp_path / "first", select="best", count=4, low=-0.5, high=1.2)
    result = run_study(study, tmp_path / "second")
    assert result.outcomes.X[:3, 0].tolist() == [0.5, -0.25, 1.0]
    assert result.events[0]["text"].endswith("; 1 more are outside this space and were left out")


# ----------------------------------------------------------------------------------------------------- translation


def spaces(theirs, ours, relations=()):
    return Space(tuple(theirs)), Space(tuple(ours), tuple(Expression.parse(r) for r in relations))


def test_values_are_matched_by_name_and_converted_by_unit():
    stored = (
        DesignVariable("k", "real", 1, 9, unit="kN/m"),
        DesignVariable("b", "real", 0, 1),
        DesignVariable("n", "int", 1, 9),
    )
    target = (DesignVariable("n", "real", 0, 5), DesignVariable("k", "real", 1000, 9000, unit="N/m"))
    X = np.array([[2.5, 0.1, 3], [9.0, 0.2, 9], [9.0, 0.3, 2], [2.5, 0.4, 3]])
    assert translate(X, *spaces(stored, target)).tolist() == [[3.0, 2500.0], [2.0, 9000.0]]


def test_choices_are_matched_by_value_and_type():
    stored = DesignVariable("c", "choice", values=("x", 1, True, "y"))
    target = DesignVariable("c", "choice", values=(True, "y", "x", 2))
    assert translate(np.array([[0.0], [1.0], [2.0], [3.0]]), *spaces([stored], [target])).tolist() == [
        [2.0],
        [0.0],
        [1.0],
    ]


def test_a_real_value_is_an_integer_only_if_it_is_one():
    stored, target = DesignVariable("n", "real", 0, 9, unit="mm"), DesignVariable("n", "int", 0, 9000, unit="um")
    assert translate(np.array([[2.0], [2.0005], [3.001]]), *spaces([stored], [target])).tolist() == [
        [2000.0],
        [3001.0],
    ]


def test_a_fixed_parameter_selects_stored_designs_with_its_value():
    stored = (A, DesignVariable("m", "choice", values=("steel", "oak")), DesignVariable("t", "real", 0, 9, unit="mm"))
    target = (A, DesignVariable("m", "fixed", values=("oak",)), DesignVariable("t", "fixed", values=(0.002,), unit="m"),
            DesignVariable("new", "fixed", values=(1.0,)))  # fmt: skip
    X = np.array([[1.0, 0, 2.0], [1.1, 1, 2.0], [1.2, 1, 3.0]])
    assert translate(X, *spaces(stored, target)).tolist() == [[1.1]]


def test_a_parameter_fixed_in_the_other_store_has_its_value():
    stored = (A, DesignVariable("t", "fixed", values=(2.0,), unit="mm"))
    target = (DesignVariable("t", "real", 0, 1, unit="m"), A)
    assert translate(np.array([[1.0]]), *spaces(stored, target)).tolist() == [[0.002, 1.0]]


def test_broken_relations_leave_a_design_out():
    assert translate(np.array([[1.0], [0.5]]), *spaces([A], [A], ["a <= 0.7"])).tolist() == [[0.5]]


def test_a_parameter_that_was_inactive_there_cannot_be_active_here():
    kind = DesignVariable("kind", "choice", values=("p", "pd"))
    gain = DesignVariable("gain", "real", 0.0, 2.0)
    when = dataclasses.replace(gain, when={"kind": ("pd",)})
    X = np.array([[0.0, 1.0], [1.0, 0.25]])
    assert translate(X, *spaces([kind, when], [kind, gain])).tolist() == [[1.0, 0.25]]
    assert translate(X, *spaces([kind, when], [kind, when])).tolist() == [[0.0, 1.0], [1.0, 0.25]]
    assert translate(np.array([[0.0, 0.3]]), *spaces([kind, gain], [kind, when])).tolist() == [[0.0, 1.0]]
    assert translate(X[:, :1], *spaces([kind], [kind, when])).tolist() == [[0.0, 1.0]]  # unknown there


def test_a_plan_says_where_a_stage_starts_and_what_follows_the_stages(tmp_path):
    study = starting(tmp_path / "first", count=3, validate=Validation(make_study(scenarios=({}, {})).scenarios))
    text = plan(study, tmp_path / "s")
    assert f"starts from the 3 nondominated designs of {tmp_path / 'first'}" in text
    assert "validation 2 more scenarios for the chosen designs" in text
    stage = dataclasses.replace(study.stages[0], budget=Budget(hypervolume=HypervolumeGain((1.0,), 0.01, 5)))
    assert "until the hypervolume grows by less than 0.01 over 5 generations" in plan(
        dataclasses.replace(study, stages=(stage,)), tmp_path / "s"
    )


@pytest.mark.parametrize("stored_share", [0.0, 0.5, 1.0])
def test_a_solver_that_asks_ahead_hears_the_same_whatever_is_taken_over(tmp_path, stored_share):
    """The follower's designs are those of a run that computes all of them."""
    ahead = use("solver", "follower", count=20, look_ahead=4)
    seeds = {"names": ("a",), "minimize": ("square",)}
    first = make_study("wave", stages=(listed([0.5]), Stage("ahead", ahead)), **seeds)
    run_study(first, tmp_path / "first")
    designs = Result.open(tmp_path / "first").outcomes.X[1:, 0]
    part = listed([0.5, *designs[: int(stored_share * len(designs))]])
    run_study(make_study("wave", stages=(part,), **seeds), tmp_path / "part")
    start = StartFrom(None, "best", 1, str(tmp_path / "part"))
    stages = (listed([0.5], name="list"), Stage("ahead", ahead), Stage("more", listed([0.5]).solver, Budget(), start))
    result = run_study(make_study("wave", stages=stages, **seeds), tmp_path / "second")
    assert result.designs_of("ahead").tolist() == Result.open(tmp_path / "first").designs_of("ahead").tolist()
    assert result.outcomes.X[result.designs_of("ahead"), 0].tolist() == designs.tolist()
    assert workers(result).get("store:part", 0) >= stored_share * 20
    assert workers(result).get("serial", 0) == 20 - int(stored_share * 20)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e300", "-2.1"])
def test_a_recorded_start_outside_the_space_is_damage(tmp_path, value):
    run_study(sweep(), tmp_path / "first")
    study = starting(tmp_path / "first", select="best", count=1)
    run_study(study, tmp_path / "second")
    file = tmp_path / "second" / "start_from.json"
    assert file.read_text().count("[[0.5]]") == 1
    file.write_text(file.read_text().replace("[[0.5]]", f"[[{value}]]"))
    with pytest.raises(StoreError, match=r"start_from.json is damaged: .* a design of stage 'front' is outside"):
        settle(study, Problem.from_study(study), tmp_path / "second", {})
