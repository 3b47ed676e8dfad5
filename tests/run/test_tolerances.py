"""The chosen designs and part of the front are evaluated within the tolerances of their parameters."""

import contextlib
import dataclasses
import sqlite3

import numpy as np
import pytest
from run_cases import Recorder, dump, listed, make_study, stopping, use

import designopt
from designopt.plugin import Diverged, Use, model
from designopt.problem import Problem, derivative_name
from designopt.report import summary_table
from designopt.report.parts.answer.overview import overview
from designopt.report.parts.answer.tolerances import behind_front, end_of_front, fragile, narrow_front, tolerances
from designopt.report.parts.designs.front import front
from designopt.run.runner import run_study
from designopt.store.errors import Interrupted, StoreError
from designopt.store.result import Result
from designopt.store.views.tolerances import beyond_limits
from designopt.study.language.expressions.expression import Expression
from designopt.study.load import study_from_text
from designopt.study.neighbours import shifts, with_neighbours
from designopt.study.study import Choice, DesignVariable, Scenario, Shift, Stage, StudyConstraint, Tolerance, Tolerances
from designopt.testing import InProcess, problem_from

OFF = Tolerances((Tolerance("a", 0.1),), neighbours=16, front=0)
POINTS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)
#: Where b is 0, the outputs of `bowl` are height = (a - shift)^2 and slope = |a - shift| + 1.
LIMIT = StudyConstraint("low", Expression.parse("height"), use("aggregation", "worst"), maximum=0.81)


def study(points=POINTS, **fields):
    """Every design from 0 to 0.9 is on the front; the last one is at the limit."""
    arguments = {"tolerances": OFF, "constraints": (LIMIT,), **fields}
    arguments = {"minimize": ("height", "2 - slope"), **arguments}
    return make_study(names=("a",), stages=(listed(points),), **arguments)


def on_record(result):
    with contextlib.closing(sqlite3.connect(result.path / "journal.db")) as db:
        return db.execute("SELECT design, number FROM evaluation WHERE kind = 'neighbour'").fetchall()


def test_the_chosen_designs_have_neighbours_whose_outcomes_are_those_of_the_model(tmp_path):
    recorder = Recorder()
    result = run_study(study(), tmp_path / "s", progress=recorder)
    tolerated = result.tolerated()
    assert set(tolerated.rows) == set(result.chosen().values()) == {0, 3, 5}
    assert sorted(on_record(result)) == [(row, k) for row in (0, 3, 5) for k in range(16)]
    factor_offset = [shift[0].offset for shift in shifts(OFF, 16, seed=0)]
    a = np.array(POINTS)[tolerated.rows][:, None] + np.array(factor_offset)
    assert tolerated.objectives[:, :, 0] == pytest.approx(a**2)
    assert tolerated.feasible.tolist() == (a**2 <= 0.81).tolist()
    assert tolerated.share.tolist() == (a**2 <= 0.81).mean(axis=1).tolist()
    assert tolerated.worst(np.ones(2))[:, 0] == pytest.approx((a**2).max(axis=1))
    assert tolerated.spread[:, 0] == pytest.approx((a**2).std(axis=1))
    assert recorder.events == [
        ("tolerances", "3 designs with 16 neighbours each, within the tolerances of the parameters")
    ]


def test_a_finished_run_computes_no_neighbour_again_and_solvers_do_not_hear_of_them(tmp_path):
    result = run_study(study(), tmp_path / "s")
    before = dump(result)
    repeated = run_study(study(), tmp_path / "s", resume=True)
    assert dump(repeated) == before
    assert repeated.sessions[-1]["executor"] == "none"
    without = run_study(study(tolerances=None), tmp_path / "t")
    assert without.tolerated() is None
    assert without.counts == result.counts
    assert without.outcomes.X.tolist() == result.outcomes.X.tolist()


def test_the_first_line_of_the_result_says_which_design_breaks_limits_within_its_tolerances(tmp_path):
    result = run_study(study(), tmp_path / "s")
    lost = int((~result.tolerated().feasible[result.tolerated().index_of(5)]).sum())
    assert 5 <= lost <= 11  # half of an even distribution
    (clause,) = fragile(result)
    assert (
        clause == f"best f1 violates limits in {lost} of 16 neighbours within its tolerances; "
        "a has the largest influence"
    )
    first, head, *lines = summary_table(result).splitlines()
    assert first == f"note: {clause}"
    assert head.endswith("neighbours feasible")
    assert any(line.startswith("best f1") and line.endswith(f"{16 - lost} of 16") for line in lines)
    assert any(line.startswith("best f0") and line.endswith("16 of 16") for line in lines)
    assert tolerances(result).findings == (f"{clause[0].upper()}{clause[1:]}.",)


def test_a_baseline_without_a_neighbour_within_the_limits_is_not_said_to_satisfy_them(tmp_path):
    """No design is feasible, so that the baseline is the only one with neighbours."""
    result = designopt.define(
        study="bowl",
        model={"use": "bowl"},
        space={"a": {"low": 0.0, "high": 1.0, "tolerance": 0.1}},
        objectives=[{"minimize": "height"}],
        constraints=[{"name": "low", "of": "height", "max": -1.0}],
        baseline=[{"name": "present", "a": 0.5}],
        solver={"use": "full_factorial", "levels": 3},
        execution={"executor": "serial"},
    ).run(tmp_path / "s")
    assert result.tolerated().share.tolist() == [0.0]
    assert [sentence for sentence in tolerances(result).findings if "satisfy all limits" in sentence] == []


def test_a_tenth_of_the_designs_decides_where_the_study_does_not(tmp_path):
    assumed = Tolerances((Tolerance("a", 0.01),), assumed=True)
    few = run_study(study(np.linspace(0, 0.9, 60), tolerances=assumed), tmp_path / "few")
    assert on_record(few) == []
    clause = (
        "60 designs are too few to check the robustness of the chosen ones: at least 240 are needed, or a tolerance in"
    )
    assert f"note: {clause} the space" in summary_table(few).splitlines()
    assert f"{clause} the space." in overview(few).findings
    many = run_study(study(np.linspace(0, 0.9, 300), tolerances=assumed), tmp_path / "many")
    assert len(on_record(many)) == 30  # three designs with ten neighbours each
    assert "too few" not in summary_table(many)
    stated = Tolerances((Tolerance("a", 0.01),))
    some = run_study(study(np.linspace(0, 0.9, 800), tolerances=stated), tmp_path / "some")
    assert len(on_record(some)) == 5 * 16  # the chosen ones, and two more of the front
    none = run_study(study(tolerances=Tolerances(OFF.of, neighbours=0)), tmp_path / "none")
    assert none.tolerated() is None
    assert "too few" not in summary_table(none)


def test_other_designs_of_the_front_are_evaluated_within_a_budget(tmp_path):
    off = Tolerances((Tolerance("a", 0.1),), neighbours=16, front=40)
    tolerated = run_study(study((0.11, 0.15, 0.3, 0.5, 0.6, 0.85, 0.9), tolerances=off), tmp_path / "s").tolerated()
    assert len(tolerated) == 5  # three chosen ones, and two of the four others


def test_the_rule_robust_picks_a_design_that_keeps_its_limits_behind_the_front_if_need_be(tmp_path):
    """The best design, a = 1 and b = 0, is at the limit."""

    def robust_study(choose):
        limit = StudyConstraint("low", Expression.parse("height"), use("aggregation", "worst"), maximum=1.0)
        return make_study(
            minimize=("2 - slope",), names=("a", "b"), low=0.0, high=1.0, constraints=(limit,), choose=choose,
            stages=(Stage("grid", use("solver", "full_factorial", levels=21)),),
            tolerances=Tolerances((Tolerance("a", 0.1), Tolerance("b", 0.1))),
        )  # fmt: skip

    choose = (Choice("robust"),)
    result = run_study(robust_study(choose), tmp_path / "s")
    named, tolerated = result.chosen(), result.tolerated()
    assert named["robust"] == result.most_robust()
    assert tolerated.share[tolerated.index_of(named["robust"])] == tolerated.share.max() == 1.0
    assert tolerated.share[tolerated.index_of(named["best f0"])] < 0.9
    repeated = run_study(robust_study(choose), tmp_path / "s", resume=True)
    assert repeated.sessions[-1]["executor"] == "none"
    assert repeated.chosen() == named


def test_the_table_tells_designs_of_the_front_from_those_behind_it(tmp_path):
    """The limit is a (1 - a) <= b^2: a larger margin to it costs height."""
    limit = StudyConstraint("off", Expression.parse("slope - height"), use("aggregation", "worst"), maximum=1.0)
    definition = make_study(
        minimize=("height", "2 - slope"), names=("a", "b"), low=0.0, high=1.0, constraints=(limit,),
        choose=(Choice("robust"),), stages=(Stage("grid", use("solver", "full_factorial", levels=21)),),
        tolerances=Tolerances((Tolerance("a", 0.1), Tolerance("b", 0.1)), neighbours=16, front=64),
    )  # fmt: skip
    result = run_study(definition, tmp_path / "s")
    section, front_rows, chosen_rows = tolerances(result), result.front().tolist(), set(result.chosen().values())
    ranks = {row: rank for rank, row, *_ in section.tables[0].rows if row not in chosen_rows}
    assert ranks == {row: "of the front" if row in front_rows else "behind the front" for row in ranks}
    of_front = sum(rank == "of the front" for rank in ranks.values())
    assert 0 < of_front < len(ranks)
    numbers = f"{of_front} of the front and {len(ranks) - of_front} behind the front"
    assert section.notes == (f"Further designs are listed below the chosen ones: {numbers}.",)


def test_a_more_robust_design_is_recommended_where_the_first_choice_breaks_limits_within_its_tolerances(tmp_path):
    """The study asks for the design at the limit, a = 0.9; half of its neighbours lie beyond."""
    off = Tolerances(OFF.of, neighbours=16, front=64)
    near = (Choice("nearest_to", target={"f1": 0.1}),)
    result = run_study(study((0.1, 0.5, 0.6, 0.9), tolerances=off, choose=near), tmp_path / "s")
    assert result.first_choice() == ("nearest to f1 0.1", 3)
    assert result.recommended() == ("robust", 1)
    marked = {t["name"]: t["marker"].get("symbol") for t in front(result).figures[0].plot["data"] if t["showlegend"]}
    assert (marked["selected by a rule"], marked["robust (recommended)"]) == ("star", "star-square")
    assert result.chosen() == {"best f0": 0, "best f1": 3, "nearest to f1 0.1": 3, "robust": 1}
    feasible_neighbours, _ = result.tolerated().within_limits(3)
    lead = f"robust: a 0.5 gives f0 0.25 and f1 0.5; 16 of 16 neighbours within the tolerances satisfy the limits, \
where nearest to f1 0.1 keeps them in {feasible_neighbours} of 16 \
(neighbours vary the parameters alone, not settings and data of the model, as scenarios or \
'report: {{validate: ...}}' do)"
    assert summary_table(result).splitlines()[0] == f"the recommended design is {lead}"
    assert overview(result).findings[0] == f"The recommended design is {lead}."
    command = f"designopt show '{result.path}/best f1'"
    assert f"such a design may violate limits; all digits: {command}" in summary_table(result)
    assert "\nrecommended: robust, because nearest to f1 0.1 violates limits within its tolerances\n" in str(result)
    assumed = study((0.1, 0.5, 0.6, 0.9), tolerances=dataclasses.replace(off, assumed=True), choose=near)
    lead = lead.replace("within the tolerances", "within the tolerances (±1 % assumed)")
    assert (
        summary_table(dataclasses.replace(result, study=assumed)).splitlines()[0] == f"the recommended design is {lead}"
    )


def test_a_recommended_end_of_the_front_is_said_to_be_one_with_the_way_to_a_compromise(tmp_path):
    """Neighbours of a = 0.9 and 0.88 lie beyond the limit; those of a = 0.1, the best f0, do not."""
    off = Tolerances(OFF.of, neighbours=16, front=64)
    near = Choice("nearest_to", target={"f1": 0.1})
    result = run_study(study((0.1, 0.88, 0.9), tolerances=off, choose=(near,)), tmp_path / "s")
    assert result.recommended() == ("best f0", 0)
    clause = "the recommended design is an end of the front, the best f0: "
    way = "'report: {choose: [knee, robust]}' looks for a compromise whose neighbours satisfy the limits"
    assert f"note: {clause}{way}" in summary_table(result).splitlines()
    assert f"T{clause[1:]}{way}." in overview(result).findings

    with_robust = dataclasses.replace(result, study=dataclasses.replace(result.study, choose=(near, Choice("robust"))))
    way = "more designs may have a compromise whose neighbours satisfy the limits"
    assert f"note: {clause}{way}" in summary_table(with_robust).splitlines()
    best = dataclasses.replace(result, study=dataclasses.replace(result.study, choose=(Choice("utopia", {"f1": 0.0}),)))
    assert best.recommended()[1] == 0
    assert end_of_front(best) == []  # the weights ask for the best f0

    wide = run_study(study((0.1, 0.5, 0.88, 0.9), tolerances=off, choose=(near,)), tmp_path / "t")
    assert wide.recommended() == ("robust", 1)
    assert end_of_front(wide) == []


def test_a_recommended_design_behind_the_front_is_said_to_be_there_with_its_cost(tmp_path, monkeypatch):
    """a = 0.9 and 0.88 are better in both objectives than a = 0.5, but neighbours of theirs are beyond the limit."""
    off, costs = Tolerances(OFF.of, neighbours=16, front=0), ("1 - height", "2 - slope")
    robust = study((0.5, 0.88, 0.9), tolerances=off, minimize=costs, choose=(Choice("robust"),))
    result = run_study(robust, tmp_path / "s")
    assert (result.recommended(), result.front().tolist()) == (("robust", 0), [2])
    (clause,) = behind_front(result)
    assert clause == (
        "the recommended design is behind the front, for the sake of its neighbours (16 of 16 satisfy the limits): "
        "design 1 has f0 0.2256 instead of 0.75 and f1 0.12 instead of 0.5, with 10 of 16"
    )
    assert f"note: {clause}" in summary_table(result).splitlines()
    assert f"T{clause[1:]}." in overview(result).findings
    assert not any("single answer" in text for text in narrow_front(result))

    near = result.tolerated()
    steep = near.objectives.copy()
    steep[near.index_of(1), 3, 0] = 1.5  # f0 of a neighbour of design 1, beyond all of the recommended one's
    monkeypatch.setattr(Result, "tolerated", lambda self: dataclasses.replace(near, objectives=steep))
    worst = near.worst(np.ones(2))[near.index_of(0), 0]
    assert behind_front(result) == [f"{clause}, and among its neighbours at worst f0 1.5 instead of {worst:.4g}"]
    monkeypatch.undo()

    on_front = run_study(study(tolerances=off, choose=(Choice("robust"),)), tmp_path / "t")
    assert behind_front(on_front) == []


def test_without_neighbours_the_rule_of_robustness_leaves_the_compromise(tmp_path):
    alone = run_study(study((0.1, 0.5, 0.88), tolerances=None, choose=(Choice("robust"),)), tmp_path / "s")
    assert alone.tolerated() is None
    assert alone.recommended() == ("compromise", 1)


def test_a_somewhat_more_robust_design_is_not_recommended_if_it_breaks_limits_within_its_tolerances_too(tmp_path):
    """Of the neighbours of a = 0.9 half lie beyond the limit, of those of a = 0.88 fewer, but more than a tenth."""
    off = Tolerances(OFF.of, neighbours=16, front=64)
    near = (Choice("nearest_to", target={"f1": 0.1}),)
    result = run_study(study((0.88, 0.9), tolerances=off, choose=near), tmp_path / "s")
    tolerated = result.tolerated()
    assert tolerated.share[tolerated.index_of(1)] < tolerated.share[tolerated.index_of(0)] < 0.9
    assert result.most_robust() == 0
    assert result.recommended() == result.first_choice() == ("nearest to f1 0.1", 1)


def test_the_parameter_that_matters_is_the_one_on_which_the_objectives_depend(tmp_path):
    definition = make_study(
        minimize=("height",), names=("a", "b"), low=0.5, high=2.0,
        tolerances=Tolerances((Tolerance("a", 0.001), Tolerance("b", 0.1)), neighbours=32),
    )  # fmt: skip
    result = run_study(definition, tmp_path / "s")
    tolerated = result.tolerated()
    position = tolerated.index_of(result.chosen()["best f0"])
    assert tolerated.matters(position) == "b"
    assert tolerated.effects[position][:, 0] == pytest.approx([0.0, 1.0], abs=0.05)


def test_a_run_that_is_interrupted_among_the_neighbours_goes_on_there(tmp_path):
    with pytest.raises(Interrupted):
        run_study(study(), tmp_path / "s", progress=stopping("tolerances"))
    assert len(on_record(Result.open(tmp_path / "s", study()))) < 48
    resumed = run_study(study(), tmp_path / "s", resume=True)
    assert dump(resumed) == dump(run_study(study(), tmp_path / "t"))


@model("brittle", version=1, unchecked=True)
def brittle(design, scenario):
    """Breaks beyond 0.5."""
    if design["a"] > 0.5:
        raise Diverged("broke", reason="broken")
    if design["a"] < 0.1:
        raise RuntimeError("not made for so little")
    return {"value": -design["a"], "other": design["a"]}


def test_failures_of_neighbours_are_data_and_stop_nothing(tmp_path):
    definition = make_study(
        minimize=("value",), names=("a",), low=0.1, high=1.0, stages=(listed([0.1, 0.3, 0.5]),), tolerances=OFF
    )
    definition = dataclasses.replace(definition, model=Use(brittle.__designopt__, {}))
    result = run_study(definition, tmp_path / "s")
    tolerated = result.tolerated()
    assert result.ended == "done"
    assert 0.2 < tolerated.share[0] < 0.8
    assert np.isnan(tolerated.objectives[0, ~tolerated.feasible[0]]).all()
    (lost,) = (~tolerated.feasible).sum(axis=1)
    assert f" has no result in {lost} of 16 neighbours" in summary_table(result).splitlines()[0]


def test_neighbours_that_violate_limits_and_those_without_a_result_are_counted_apart(tmp_path):
    def ran(name, points, minimum, *minimize):
        limit = StudyConstraint("stiff", Expression.parse("other"), use("aggregation", "worst"), minimum=minimum)
        definition = make_study(
            minimize=minimize, names=("a",), low=0.05, high=1.0, stages=(listed(points),), tolerances=OFF
        )
        definition = dataclasses.replace(definition, model=Use(brittle.__designopt__, {}), constraints=(limit,))
        result = run_study(definition, tmp_path / name)
        tolerated = result.tolerated()
        without = np.isnan(tolerated.objectives[:, :, 0])
        return summary_table(result).splitlines()[0], without.sum(axis=1), (~tolerated.feasible & ~without).sum(axis=1)

    first, (without,), (violated,) = ran("one", [0.45], 0.4, "value")
    assert min(without, violated) > 0
    clauses = f"violates limits in {violated} and has no result in {without} of 16 neighbours within its tolerances"
    assert f" {clauses}" in first
    first, without, violated = ran("two", [0.2, 0.45], 0.15, "value", "other")
    assert (violated[0], without[0], violated[1], without[1]) == (violated[0], 0, 0, without[1])
    assert first == (
        "note: 2 of the chosen designs violate limits or have no result in some neighbours within their tolerances: "
        f"best f0 (also compromise) has no result in {without[1]} of 16 and best f1 violates limits in {violated[0]} "
        "of 16; "
        "a has the largest influence"
    )


def test_neighbours_are_scored_anew_with_other_limits_and_tolerances_cannot_be_changed_afterwards(tmp_path):
    text = """
study: near
model: {use: bowl}
space: {a: {low: 0, high: 1, tolerance: 0.1}}
objectives: [{minimize: height}, {name: low_slope, maximize: slope}]
constraints: [{name: low, of: height, max: 0.81}]
solver: {use: full_factorial, levels: 11}
report: {tolerances: {neighbours: 16}}
execution: {executor: serial}
"""
    use("model", "bowl")
    result = run_study(study_from_text(text, "near.yaml", problem_of=Problem.from_study), tmp_path / "s")
    assert fragile(result)
    assert fragile(result.with_changes(["constraints.low.max=2"])) == []
    with pytest.raises(StoreError, match=r"'report\.tolerances' determines what is computed"):
        result.with_changes(["report.tolerances.neighbours=64"])


def test_a_study_that_no_longer_asks_for_neighbours_has_none(tmp_path):
    result = run_study(study(), tmp_path / "s")
    assert fragile(result)
    without = study(tolerances=dataclasses.replace(result.study.tolerances, neighbours=0))
    edited = run_study(without, tmp_path / "s", resume=True)
    assert edited.tolerated() is None
    assert fragile(edited) == []
    assert "neighbours" not in summary_table(edited)


def test_a_robust_search_avoids_designs_that_break_limits_within_their_tolerances(tmp_path):
    plain = study(np.linspace(0.0, 1.0, 101), tolerances=None)
    robust = dataclasses.replace(plain, scenarios=with_neighbours(plain.scenarios, shifts(OFF, 8, seed=3)))
    best = run_study(plain, tmp_path / "a").outcomes
    result = run_study(robust, tmp_path / "b")
    assert best.X[best.feasible].max() == 0.9
    offsets = [s.shift[0].offset for s in robust.scenarios[1:]]
    assert result.outcomes.X[result.outcomes.feasible].max() == pytest.approx(0.9 - max(offsets), abs=0.01)
    assert result.outcomes.figures["height"][50] == pytest.approx(np.square([0.5, *(0.5 + np.array(offsets))]))


def test_derivatives_of_a_robust_problem_are_those_by_the_design():
    definition = make_study(minimize=("height",), names=("a",))
    scenarios = (Scenario("s"), Scenario("t", {}, (Shift("a", factor=1.5, offset=0.25),)))
    problem = dataclasses.replace(
        Problem.from_study(dataclasses.replace(definition, scenarios=scenarios)), objectives=definition.objectives
    )
    mean = dataclasses.replace(definition.objectives[0], over=use("aggregation", "mean"))
    problem = dataclasses.replace(problem, objectives=(mean,))
    a = np.array([[1.0]])
    near = np.array([[1.0, 1.75]])
    figures = {"height": near**2, derivative_name("height", "a"): 2.0 * near}
    assert problem.objective_gradients(a, figures)[0, 0, 0] == pytest.approx((2.0 + 1.5 * 3.5) / 2.0)


def test_an_equality_is_beyond_its_limit_on_both_sides_and_within_it_has_no_margin():
    def line(design, scenario):
        return {"f": design["x"], "x": design["x"]}

    problem = problem_from(line, [DesignVariable("x", "real", 0.0, 2.0)], minimize=["f"])
    worst = use("aggregation", "worst")
    middle = StudyConstraint("middle", Expression.parse("x"), worst, equals=1.0)
    below = StudyConstraint("below", Expression.parse("x"), worst, maximum=1.5)
    X = np.array([[0.5], [1.0], [1.25], [2.0]])

    def beyond(*constraints):
        stated = dataclasses.replace(problem, constraints=constraints)
        return beyond_limits(stated, InProcess(stated, len(X))(X))

    alone = beyond(below)
    assert alone[[0, 1, 2]].max() < 0.0 < alone[3]
    combined = beyond(middle, below)
    assert combined[0] == pytest.approx(2.0 * combined[2])
    assert combined[1] == alone[1]
    assert combined[3] > combined[0] > 0.0


def test_round_off_in_the_spread_of_an_objective_reads_zero(tmp_path):
    result = run_study(study(minimize=("height", "0.1 + 0 * slope")), tmp_path / "s")
    assert 0.0 < result.tolerated().spread[:, 1].max() < 1e-15
    columns, rows = tolerances(result).tables[0].columns, tolerances(result).tables[0].rows
    assert columns[-1] == "spread"
    assert {row[-1] for row in rows} == {0.0}
    assert all(row[columns.index("spread")] > 0.0 for row in rows)
