"""Evaluations made outside: asked for, told, recorded, resumed like those of a run."""

import numpy as np
import pytest
from run_cases import dump

import designopt
from designopt.run.runner import run_study
from designopt.store.errors import ReplayError, StoreError


def rig(design, scenario):
    return {"wear": (design["load"] - 2.0) ** 2, "noise": design["load"]}


def study(solver, budget, **fields):
    return designopt.define(
        study="rig", model=rig, space={"load": [0, 4]}, objectives=[{"minimize": "wear"}, {"minimize": "noise"}],
        solver=solver, budget={"evaluations": budget}, execution={"executor": "serial"}, **fields,
    )  # fmt: skip


def play(definition, store, count):
    """Ask and tell to the end, every time as another process would; how many were asked at a time."""
    sizes = []
    while evaluations := definition.ask(count, store=store):
        sizes.append(len(evaluations))
        definition.tell(evaluations, [rig(one.values, one.conditions) for one in evaluations], store=store)
    return sizes


@pytest.mark.parametrize("solver", [{"use": "nsga2", "population": 8}, {"use": "gp", "startup": 6}])
def test_a_study_run_by_ask_and_tell_equals_the_run_study(tmp_path, solver):
    manual = study(solver, 20)
    sizes = play(manual, tmp_path / "told", 3)
    assert sum(sizes) == 20
    assert max(sizes) == 3
    reported = manual.result(tmp_path / "told")
    ran = run_study(manual.definition, tmp_path / "ran")
    assert reported.ended == "done"
    assert dump(reported) == dump(ran)


def test_proposals_stay_the_same_until_they_are_reported(tmp_path):
    manual = study({"use": "nsga2", "population": 8}, 16)
    first = manual.ask(4, store=tmp_path / "s")
    assert [one.key for one in manual.ask(2, store=tmp_path / "s")] == [one.key for one in first[:2]]
    manual.tell(first[1], rig(first[1].values, {}), store=tmp_path / "s")
    assert [one.key for one in manual.ask(3, store=tmp_path / "s")] == [first[0].key, first[2].key, first[3].key]
    with pytest.raises(ValueError, match="already has a result"):
        manual.tell(first[1], rig(first[1].values, {}), store=tmp_path / "s")


def test_a_request_beyond_the_solvers_proposals_is_refused(tmp_path):
    manual = study({"use": "nsga2", "population": 8}, 16)
    assert len(manual.ask(100, store=tmp_path / "s")) == 8


def test_scenarios_are_asked_one_by_one_with_their_conditions(tmp_path):
    manual = study({"use": "sobol", "samples": 2}, 2, scenarios=[{"name": "dry"}, {"name": "wet", "rain": 1.0}])
    evaluations = manual.ask(9, store=tmp_path / "s")
    assert [(one.number, one.scenario, one.conditions) for one in evaluations] == [
        (0, "dry", {}), (0, "wet", {"rain": 1.0}), (1, "dry", {}), (1, "wet", {"rain": 1.0}),
    ]  # fmt: skip
    assert evaluations[0].values == evaluations[1].values


def test_an_evaluation_without_a_result_is_a_failed_one(tmp_path):
    manual = study({"use": "sobol", "samples": 2}, 2)
    first, second = manual.ask(2, store=tmp_path / "s")
    manual.tell(first, None, why="specimen broke", store=tmp_path / "s")
    manual.tell(second, {"wear": np.float64(1.0), "noise": float("nan")}, store=tmp_path / "s")
    assert manual.ask(store=tmp_path / "s") == []
    result = manual.result(tmp_path / "s")
    assert result.status.ravel().tolist() == ["diverged", "nonfinite"]
    assert result.reason.ravel().tolist() == ["specimen broke", "noise"]


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ({"wear": 1.0}, "'noise' is missing"),
        ({"wear": "soft", "noise": 1.0}, "'wear' is not a number"),
        ([], "1 evaluation but 0 results"),
    ],
)
def test_mismatched_results_are_refused_and_not_recorded(tmp_path, results, message):
    manual = study({"use": "sobol", "samples": 2}, 2)
    evaluations = manual.ask(store=tmp_path / "s")
    with pytest.raises(ValueError, match=message):
        manual.tell(evaluations, results if isinstance(results, list) else [results], store=tmp_path / "s")
    assert [one.key for one in manual.ask(store=tmp_path / "s")] == [evaluations[0].key]
    with pytest.raises(ValueError, match="at least one evaluation"):
        manual.ask(0, store=tmp_path / "s")


def test_stated_tolerances_are_asked_for_after_the_search(tmp_path):
    manual = study(
        {"use": "sobol", "samples": 4}, 4, report={"tolerances": {"of": {"load": 0.1}, "neighbours": 2, "front": 0}}
    )
    evaluations = manual.ask(9, store=tmp_path / "s")
    manual.tell(evaluations, [rig(one.values, {}) for one in evaluations], store=tmp_path / "s")
    near = manual.ask(99, store=tmp_path / "s")
    assert {one.kind for one in near} == {"neighbour"}
    manual.tell(near, [rig(one.values, {}) for one in near], store=tmp_path / "s")
    assert manual.ask(store=tmp_path / "s") == []
    assert manual.result(tmp_path / "s").tolerated().is_recorded.all()


def test_results_of_another_store_and_duplicate_results_are_refused(tmp_path):
    solver = {"use": "random", "samples": 3}
    one, second_study = (study(solver, 3, seed=seed) for seed in (1, 2))
    (first, second, _) = one.ask(3, store=tmp_path / "one")
    foreign = second_study.ask(3, store=tmp_path / "other")
    result = rig(first.values, {})
    with pytest.raises(ValueError, match="design 0 in scenario 'nominal' was not proposed"):
        one.tell(foreign[0], result, store=tmp_path / "one")
    with pytest.raises(ValueError, match="one evaluation has two results in one call"):
        one.tell([first, first], [result, result], store=tmp_path / "one")
    one.tell([first, second], [result, rig(second.values, {})], store=tmp_path / "one")
    assert len(one.ask(9, store=tmp_path / "one")) == 1


@pytest.mark.parametrize("solver", [{"use": "nsga2", "population": 4, "look_ahead": 2}, {"use": "gp", "startup": 4}])
def test_a_corrected_result_reaches_the_solver_and_designs_that_were_made_stay(tmp_path, solver):
    manual, store = study(solver, 16), tmp_path / "s"
    evaluated = []
    while len(evaluated) < 8:
        evaluations = manual.ask(2, store=store)
        manual.tell(evaluations, [rig(one.values, {}) for one in evaluations], store=store)
        evaluated += evaluations
    pending = [one.key for one in manual.ask(9, store=store)]
    X = manual.result(store).outcomes.X
    (sentence,) = manual.tell(evaluated[0], {"wear": -9.0, "noise": -9.0}, store=store, correct=True)
    assert sentence.startswith("design 0 in scenario 'nominal': wear = -9.0, noise = -9.0, formerly wear = ")
    assert manual.tell(evaluated[0], {"wear": -9.0, "noise": -9.0}, store=store, correct=True) == []
    assert [one.key for one in manual.ask(9, store=store)] == pending
    play(manual, store, 2)
    result = manual.result(store)
    assert np.array_equal(result.outcomes.X[: len(X)], X)
    assert len(result.outcomes) == 16
    uncorrected = run_study(manual.definition, tmp_path / "ran")
    assert not np.array_equal(result.outcomes.X, uncorrected.outcomes.X)  # the solver has learnt


def test_a_search_of_generations_cannot_go_on_after_a_correction_and_says_what_to_do(tmp_path):
    manual, store = study({"use": "nsga2", "population": 8}, 16), tmp_path / "s"
    first = manual.ask(8, store=store)
    manual.tell(first, [rig(one.values, {}) for one in first], store=store)
    manual.ask(8, store=store)
    manual.tell(first[0], {"wear": -9.0, "noise": -9.0}, store=store, correct=True)
    with pytest.raises(ReplayError, match=r"results were corrected.* start_from: \{store: "):
        manual.ask(8, store=store)
    assert manual.result(store).outcomes.objectives[0].tolist() == [-9.0, -9.0]


def test_a_result_that_is_not_recorded_cannot_be_corrected(tmp_path):
    manual = study({"use": "sobol", "samples": 2}, 2)
    (first,) = manual.ask(store=tmp_path / "s")
    with pytest.raises(ValueError, match="design 0 in scenario 'nominal' has no result yet"):
        manual.tell(first, rig(first.values, {}), store=tmp_path / "s", correct=True)


def test_a_run_refuses_a_store_whose_evaluations_are_made_elsewhere(tmp_path):
    manual = study({"use": "sobol", "samples": 2}, 2)
    manual.ask(store=tmp_path / "s")
    with pytest.raises(StoreError, match=r"nothing was run\. Continue with: designopt ask"):
        manual.run(tmp_path / "s", resume=True)
    assert len(manual.ask(2, store=tmp_path / "s")) == 2
