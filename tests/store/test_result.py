"""What a result says of a run: what each stage asked, what is good and how good, what bounds and limits do."""

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
from run_cases import Recorder, dump, listed, make_study, rewrite, use

import designopt
from designopt import decision
from designopt.plugin import PluginError, Use, aggregation, find, model
from designopt.run.runner import resume_study, run_study
from designopt.store.errors import StoreError, WorkersError
from designopt.store.result import Result
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import Budget, Choice, DesignVariable, HypervolumeGain, Stage, StartFrom, StudyConstraint


def constraint(name, expression, **limits):
    return StudyConstraint(name, Expression.parse(expression), use("aggregation", "worst"), **limits)


def run(tmp_path, values, **fields):
    """Designs `a` of the bowl: height a^2, slope |a| + 1."""
    fields = {"minimize": ("height", "slope"), "stages": (listed(values),), **fields}
    return run_study(make_study(names=("a",), **fields), tmp_path / "s")


# ----------------------------------------------------------------------------------------------------------- asked


def test_proposals_of_each_stage_are_reported_in_order(tmp_path):
    stages = (listed([1.0, 0.5, 1.0], batch=1, name="one"), listed([0.25, 0.5], name="two"))
    result = run(tmp_path, (), stages=stages)
    assert result.designs_of("one").tolist() == [0, 1, 0]
    assert result.designs_of("two").tolist() == [2, 1]
    with pytest.raises(KeyError, match=r"no stage named 'three' \(known: one, two\)"):
        result.designs_of("three")


def test_a_design_that_is_not_complete_has_no_row(tmp_path):
    result = run(tmp_path, [1.0, 0.5, 0.25], scenarios=({}, {"shift": 1.0}))
    rewrite(result.path, "DELETE FROM evaluation WHERE design = 1 AND number = 1")
    partial = Result.open(result.path)
    assert partial.designs_of("list").tolist() == [0, -1, 1]
    assert partial.outcomes.X[:, 0].tolist() == [1.0, 0.25]


def test_scenarios_with_the_same_conditions_share_their_evaluations(tmp_path):
    # as a sample of few values gives them
    scenarios = ({"shift": 1.0}, {"shift": 2.0}, {"shift": 1.0})
    result = run(tmp_path, [0.5, 0.0], scenarios=scenarios)
    np.testing.assert_array_equal(result.outcomes.figures["height"], [[0.25, 2.25, 0.25], [1.0, 4.0, 1.0]])
    assert result.status.tolist() == [["ok"] * 3] * 2
    assert result.counts["evaluations"] == result.counts["ok"] == 4  # of two designs in two scenarios
    assert dump(run_study(result.study, result.path, resume=True)) == dump(result)


def test_a_stage_that_has_not_begun_asked_nothing(tmp_path):
    result = run(tmp_path, [1.0])
    stages = (*result.study.stages, Stage("later", use("solver", "walk")))
    later = dataclasses.replace(result, study=dataclasses.replace(result.study, stages=stages))
    assert later.designs_of("later").tolist() == []


# ------------------------------------------------------------------------------------------------------ hypervolume


def test_the_reference_is_the_study_s_then_that_of_a_budget_then_derived_from_the_front(tmp_path):
    # height a^2 and minus slope, which is to be made large: slope = |a| + 1
    result = run(tmp_path, [0.0, 1.0, 0.5, 0.25])
    first, second = result.study.objectives
    objectives = (first, dataclasses.replace(second, direction="maximize"))
    problem = dataclasses.replace(result.problem, objectives=objectives)

    def judged(**changes):
        study = dataclasses.replace(result.study, objectives=objectives, **changes)
        return dataclasses.replace(result, study=study, problem=problem, original=result)

    # heights 0 to 1, minus slopes -2 to -1: a tenth of each range beyond the worst
    assert judged().reference() == pytest.approx([1.1, -0.9], rel=1e-12)
    gain = HypervolumeGain((3.0, 0.25), 0.01, 5)
    stages = (Stage("s", result.study.stages[0].solver, Budget(hypervolume=gain)),)
    assert judged(stages=stages).reference().tolist() == [3.0, -0.25]
    assert judged(stages=stages, reference={"f0": 2.0, "f1": 0.5}).reference().tolist() == [2.0, -0.5]
    assert judged(reference={"f1": 0.5}).reference() == pytest.approx([1.1, -0.5], rel=1e-12)


def test_the_hypervolume_is_that_of_the_front_and_its_history_ends_there(tmp_path):
    values = np.linspace(-1.0, 1.0, 101)
    result = run(tmp_path, values, scenarios=({"shift": 0.5},), reference={"f0": 2.0, "f1": 3.0})
    front = result.outcomes.objectives[result.front()]
    assert result.hypervolume() == decision.hypervolume(front, np.array([2.0, 3.0]))
    assert result.hypervolume(result.front()[:1]) == np.prod(np.array([2.0, 3.0]) - front[0])
    asks, volumes = result.hypervolume_history()
    assert (asks[0], asks[-1]) == (1, 101)
    assert volumes[-1] == pytest.approx(result.hypervolume(), rel=1e-12)
    assert (np.diff(volumes) >= 0.0).all()
    middle = len(asks) // 2
    objectives = result.outcomes.objectives[: asks[middle]]
    assert volumes[middle] == pytest.approx(decision.hypervolume(objectives, np.array([2.0, 3.0])), rel=1e-12)


def test_without_a_front_there_is_no_hypervolume(tmp_path):
    result = run(tmp_path, [1.0], constraints=(constraint("never", "height", maximum=-1.0),))
    assert result.reference() is None
    assert result.hypervolume() is None
    assert [len(part) for part in result.hypervolume_history()] == [0, 0]


# --------------------------------------------------------------------------------------------------------- choices


@model("given_pair", version=1, unchecked=True)
def given_pair(design, scenario):
    """The front of the decision rules by hand, by its place (specification of the regulator tuning, section 9.5)."""
    x, y = [(1, 10), (2, 6), (3, 4), (4, 3), (6, 2), (9, 1.2), (10, 1)][int(design["a"])]
    return {"iae": x, "tv": y}


def by_hand(tmp_path, *choices):
    study = make_study(minimize=("iae", "tv"), names=("a",), low=0, high=6, stages=(listed(range(7)),), choose=choices)
    study = dataclasses.replace(study, model=Use(given_pair.__designopt__, {}))
    return run_study(study, tmp_path / "s")


def test_the_rules_of_the_study_choose_beside_the_best_of_each_objective(tmp_path):
    rules = (
        Choice("knee"),
        Choice("topsis"),
        Choice("topsis", norm="minmax"),
        Choice("utopia", {"f0": 0.7, "f1": 0.3}, "l2"),
        Choice("nearest_to", target={"f0": 9.1, "f1": 1.2}),
    )
    assert by_hand(tmp_path, *rules).chosen() == {
        "best f0": 0,
        "best f1": 6,
        "knee of the front": 2,
        "topsis vector": 3,
        "topsis minmax": 2,
        "utopia l2 weighted f0 0.7, f1 0.3": 1,
        "nearest to f0 9.1, f1 1.2": 5,
    }


def test_without_rules_the_compromise_is_chosen(tmp_path):
    result = by_hand(tmp_path)
    assert result.chosen() == {"best f0": 0, "best f1": 6, "compromise": 2}
    assert result.compromise() == 2


def test_a_rule_that_finds_nothing_is_left_out(tmp_path):
    result = run(tmp_path, [0.0, 0.5], choose=(Choice("knee"), Choice("utopia")))  # one design is best in everything
    assert result.chosen() == {"best f0": 0, "best f1": 0, "utopia l2": 0}


# ----------------------------------------------------------------------------------------------- bounds and limits


def test_attained_bounds_are_shares_of_designs_within_a_hundredth_of_the_range(tmp_path):
    result = run(tmp_path, [-2.0, -1.97, -1.95, 0.0, 1.97], minimize=("height",))
    assert result.attained_bounds(range(5)) == [("a", "low", 0.4), ("a", "high", 0.2)]
    assert result.attained_bounds() == []
    space = dataclasses.replace(
        result.problem.space,
        parameters=(
            DesignVariable("n", "int", 1, 5),
            DesignVariable("k", "real", 1.0, 1e4, scale="log"),
            DesignVariable("c", "choice", values=("x", "y")),
            DesignVariable("g", "real", 0.0, 1.0, when={"c": ("y",)}),
        ),
    )
    from designopt.store.views.activity import attained_bounds

    X = np.array([[1, 1.05, 0, 0.5], [5, 5.0, 0, 0.5], [3, 100.0, 1, 1.0], [1, 9e3, 1, 0.2]])
    assert attained_bounds(space, X) == [
        ("n", "low", 0.5), ("n", "high", 0.25), ("k", "low", 0.25), ("g", "high", 0.5),
    ]  # fmt: skip


def test_the_activity_of_limits_is_reported_with_the_smallest_margin(tmp_path):
    limits = (
        constraint("tight", "height", maximum=1.0),
        constraint("loose", "height", maximum=100.0),
        constraint("both", "slope", minimum=1.2, maximum=50.0),
        constraint("exact", "slope", equals=1.5),
    )
    result = run(tmp_path, [0.25, 0.5, 1.0, 1.25], minimize=("height",), constraints=limits)
    activities = result.constraint_activity(range(4))
    assert [(name, active, violated) for name, active, violated, _ in activities] == [
        ("tight", 0.25, 0.25), ("loose", 0.0, 0.0), ("both", 0.0, 0.0), ("exact", 0.25, 0.75),
    ]  # fmt: skip
    assert [a.margin for a in activities] == pytest.approx([-0.5625, 98.4375, 0.05, -0.75], rel=1e-12)


def test_of_designs_without_a_result_no_activity_is_reported(tmp_path):
    study = make_study(
        "trouble", settings={"kind": "diverge"}, minimize=("value",), names=("a",), low=0, high=100,
        stages=(listed([50.0]),), constraints=(constraint("c", "value", maximum=1.0),),
    )  # fmt: skip
    (activity,) = run_study(study, tmp_path / "s").constraint_activity([0])
    assert activity[:3] == ("c", 0.0, 0.0)
    assert np.isnan(activity.margin)


# ------------------------------------------------------------------------------------------------------- exit paths


@aggregation("spread", version=1)
def spread(values):
    """Largest minus smallest."""
    return values.max(axis=1) - values.min(axis=1)


def test_a_store_whose_aggregation_is_not_here_says_so(tmp_path, monkeypatch):
    study = make_study(names=("a",), stages=(listed([0.5]),), scenarios=({}, {"shift": 1.0}))
    objective = dataclasses.replace(study.objectives[0], over=Use(spread.__designopt__, {}))
    run_study(dataclasses.replace(study, objectives=(objective,)), tmp_path / "s")

    def without(kind, name):
        if name == "spread":
            raise PluginError("no plugin named 'spread'")
        return find(kind, name)

    monkeypatch.setattr("designopt.store.archive.find", without)
    result = Result.open(tmp_path / "s")
    assert result.ended == "done"
    with pytest.raises(StoreError, match="cannot be scored here: no plugin named 'spread'; install it, or declare it"):
        result.front()


def test_the_scenario_of_arrays_is_a_number_or_a_name(tmp_path):
    study = make_study(
        "wave", minimize=("square",), names=("a",), stages=(listed([1.0]),),
        execution={"executor": "serial", "arrays": {"signal": "all"}},
    )  # fmt: skip
    result = run_study(study, tmp_path)
    (name,) = [s.name for s in study.scenarios]
    assert result.arrays(0, name)["signal"].tolist() == result.arrays(0)["signal"].tolist()
    with pytest.raises(KeyError, match=f"no scenario 'signal' \\(known: {name}\\)"):
        result.arrays(0, "signal")
    with pytest.raises(KeyError, match="no scenario number 7"):
        result.arrays(0, 7)
    with pytest.raises(IndexError, match="no design number -1"):
        result.arrays(-1)


def test_arrays_that_were_lost_are_named_and_resume_makes_them_anew(tmp_path):
    for keep in ("all", "front"):
        study = make_study(
            "wave", minimize=("square",), names=("a",), stages=(listed([1.0, 0.25]),),
            execution={"executor": "serial", "arrays": {"signal": keep}},
        )  # fmt: skip
        path = tmp_path / keep
        before = run_study(study, path).arrays(1)["signal"]
        for file in (path / "arrays").glob("*/*"):
            file.unlink()
        with pytest.raises(StoreError, match=r"arrays/.*npz is missing; .*designopt resume"):
            Result.open(path).arrays(1)
        resumed = resume_study(path)
        assert resumed.arrays(1)["signal"].tolist() == before.tolist()
        assert sorted(resumed.arrays(0)) == (["signal"] if keep == "all" else [])


@model("wanderer", version=1, unchecked=True)
def wanderer(design, scenario, *, to: str):
    """Leaves the folder it was started in."""
    os.chdir(to)
    return {"value": design["a"]}


def test_a_model_that_changes_the_folder_does_not_lose_its_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    study = make_study(minimize=("value",), names=("a",), stages=(listed([0.5, 0.25], batch=1),))
    study = dataclasses.replace(study, model=Use(wanderer.__designopt__, {"to": str(tmp_path / "elsewhere")}))
    result = run_study(study, Path("here"))
    assert result.outcomes.X[:, 0].tolist() == [0.5, 0.25]
    assert result.path == tmp_path / "here"
    assert not (tmp_path / "elsewhere" / "here").exists()


def test_a_relative_store_keeps_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_study(make_study(stages=(listed([0.5]),), names=("a",)), Path("here")).path == Path("here")


@pytest.mark.parametrize("made_before", [False, True])
def test_a_store_that_was_never_used_is_not_left_behind(tmp_path, made_before):
    path = tmp_path / "s"
    if made_before:
        path.mkdir()
    study = make_study(names=("a",), stages=(listed([0.5]),))
    with pytest.raises(WorkersError, match="cannot be reached"):
        run_study(study, path, scheduler=f"file:{tmp_path / 'none.json'}")
    assert path.exists() == made_before
    assert run_study(study, path).ended == "done"


def test_a_store_with_results_is_kept_when_the_scheduler_cannot_be_reached(tmp_path):
    path = tmp_path / "s"
    study = make_study(names=("a",), stages=(listed([0.5, 0.25], evaluations=1),))
    before = dump(run_study(study, path))
    with pytest.raises(WorkersError):
        run_study(study, path, resume=True, budget={"list": 2}, scheduler=f"file:{tmp_path / 'none.json'}")
    assert set(before.splitlines()) <= set(dump(Result.open(path)).splitlines())
    stages = (*study.stages, Stage("more", listed([0.75]).solver, Budget(), StartFrom(None, "best", 1, str(path))))
    with pytest.raises(WorkersError):
        run_study(
            dataclasses.replace(study, stages=stages[1:]), tmp_path / "t", scheduler=f"file:{tmp_path / 'none.json'}"
        )
    assert (tmp_path / "t").exists()  # it holds what was taken over from the first store


def test_errors_call_a_store_what_the_user_called_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    run_study(make_study(stages=(listed([0.5]),), names=("a",)), Path("here"))
    with pytest.raises(StoreError) as caught:
        run_study(make_study(stages=(listed([0.5]),), names=("a",)), Path("here"))
    assert str(caught.value).startswith("here: exists already; continue it with: designopt resume here ")
    assert caught.value.path == Path("here")
    assert caught.value.resume.startswith("designopt resume here --plugin ")
    study = make_study(minimize=("value",), names=("a",), stages=(listed([0.5, 0.25], batch=1),))
    study = dataclasses.replace(study, model=Use(wanderer.__designopt__, {"to": str(tmp_path / "elsewhere")}))

    class Interrupter(Recorder):
        def update(self, snapshot):
            raise StoreError(f"{tmp_path / 'there'}: something", tmp_path / "there")

    with pytest.raises(StoreError, match=r"^there: something") as caught:
        run_study(study, Path("there"), progress=Interrupter())
    assert Result.open(caught.value.path).counts["points"] == 1  # it can still be found from another folder


def test_a_result_prints_as_one_line(tmp_path):
    result = run_study(make_study(names=("a",), stages=(listed([0.5]),)), tmp_path / "s")
    assert repr(result) == f"<Result of test in {tmp_path / 's'}: 1 design>"


def test_an_error_leads_to_what_the_store_holds(tmp_path):
    study = make_study(stages=(listed([0.5]),), names=("a",))
    run_study(study, tmp_path / "s")
    with pytest.raises(StoreError) as caught:
        run_study(study, tmp_path / "s")
    assert designopt.open_store(caught.value.path).counts["designs"] == 1
    with pytest.warns(DeprecationWarning, match=r"use designopt\.open_store\(error\.path\)"):
        old = caught.value.result()
    assert old.counts["designs"] == 1
