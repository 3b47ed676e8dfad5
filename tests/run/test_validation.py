"""After the last stage the chosen designs are evaluated in scenarios that no solver has seen."""

import dataclasses
import sqlite3

import numpy as np
import pytest
from run_cases import dump, listed, make_study, stopping, use

from designopt.plugin import Diverged, Use, model
from designopt.report.parts.answer.overview import overview
from designopt.report.parts.answer.validation import ONE_BY_ONE, recommended_by_scenario
from designopt.run.runner import run_study
from designopt.store.errors import Interrupted
from designopt.store.result import Result
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import Choice, Scenario, StudyConstraint, Validation

SHIFTS = (0.25, -0.5, 0.75)


def scenarios(*values):
    return tuple(Scenario(f"v{i}", v) for i, v in enumerate(values))


def study(**fields):
    validation = Validation(scenarios(*({"shift": shift} for shift in SHIFTS)), (0.0, 0.5, 1.0))
    return make_study(
        minimize=("height", "slope"),
        names=("a", "b"),
        scenarios=({}, {"shift": 0.5}),
        **{"validate": validation, **fields},
    )


def evaluations(result):
    db = sqlite3.connect(result.path / "journal.db")
    try:
        return db.execute("SELECT design, kind, hex(key), status, outputs FROM evaluation").fetchall()
    finally:
        db.close()


def test_the_chosen_designs_are_evaluated_in_every_further_scenario_once(tmp_path):
    result = run_study(study(), tmp_path / "s")
    chosen = set(result.chosen().values())
    further = [row for row in evaluations(result) if row[1] == "validation"]
    assert {row[0] for row in further} == chosen  # every design is complete, so rows are numbers
    assert len(further) == len(chosen) * len(SHIFTS)
    assert [e["text"] for e in result.events] == [f"{len(chosen)} chosen designs in 3 further scenarios"]
    before = dump(result)
    repeated = run_study(study(), tmp_path / "s", resume=True)
    assert dump(repeated) == before
    assert repeated.sessions[-1]["executor"] == "none"


def test_validation_changes_neither_the_solvers_input_nor_the_table(tmp_path):
    with_it = run_study(study(), tmp_path / "a")
    without = run_study(study(validate=None), tmp_path / "b")
    assert with_it.outcomes.X.tolist() == without.outcomes.X.tolist()
    assert with_it.status.shape == without.status.shape
    assert with_it.counts == without.counts
    assert without.validation() is None


def test_objectives_quantiles_and_limits_are_those_of_each_scenario_by_itself(tmp_path):
    limit = StudyConstraint("low", Expression.parse("height"), use("aggregation", "worst"), maximum=0.5)
    s = study(stages=(listed([0.25, 0.5, 1.5]),), constraints=(limit,))
    s = dataclasses.replace(s, space=s.space[:1])
    result = run_study(s, tmp_path / "s")
    validated = result.validation()
    assert validated.labels == tuple(
        ", ".join(n for n, r in result.chosen().items() if r == row) for row in validated.rows
    )
    a = result.outcomes.X[validated.rows, 0]
    height = (a[:, None] - np.array(SHIFTS)) ** 2
    assert validated.figures["height"] == pytest.approx(height, rel=1e-12)
    assert validated.objectives[:, 0] == pytest.approx(height, rel=1e-12)
    assert validated.objectives.shape == (len(validated), 2, 3)
    expected = np.quantile(validated.objectives, (0.0, 0.5, 1.0), axis=2).transpose(1, 2, 0)
    assert validated.quantiles == pytest.approx(expected, rel=1e-12)
    assert validated.feasible_share.tolist() == pytest.approx((height <= 0.5).mean(axis=1).tolist())
    assert 0.0 < validated.feasible_share.min() < 1.0
    assert (validated.statuses == "ok").all()


def test_few_scenarios_stand_one_by_one_with_the_recommended_design(tmp_path):
    result = run_study(study(), tmp_path / "s")
    row, validated = result.recommended()[1], result.validation()
    i = validated.rows.tolist().index(row)
    (table,) = recommended_by_scenario(result)
    assert table.columns == ("", "in the study", "v0", "v1", "v2")
    assert [line[0] for line in table.rows] == ["f0 (minimize)", "f1 (minimize)"]
    assert [line[1] for line in table.rows] == result.outcomes.objectives[row].tolist()
    assert [list(line[2:]) for line in table.rows] == validated.objectives[i].tolist()
    assert table in overview(result).tables
    many = Validation(scenarios(*({"shift": 0.1 * k} for k in range(ONE_BY_ONE + 1))), (0.5,))
    assert recommended_by_scenario(run_study(study(validate=many), tmp_path / "many")) == ()
    assert recommended_by_scenario(run_study(study(validate=None), tmp_path / "none")) == ()


def test_maximised_objectives_are_shown_in_their_own_direction(tmp_path):
    s = study(stages=(listed([0.5, 1.0]),))
    first, second = s.objectives
    s = dataclasses.replace(s, space=s.space[:1], objectives=(first, dataclasses.replace(second, direction="maximize")))
    validated = run_study(s, tmp_path / "s").validation()
    assert (validated.objectives[:, 1] > 0.0).all()


def test_a_scenario_that_is_known_already_is_not_computed_again(tmp_path):
    s = study(validate=Validation(scenarios({"shift": 0.5}, {"shift": 0.5})))
    result = run_study(s, tmp_path / "s")
    assert {kind for _, kind, *_ in evaluations(result)} == {"scenario"}
    assert (result.validation().statuses == "ok").all()
    worst = result.outcomes.figures["height"][result.validation().rows, 1]
    assert result.validation().figures["height"][:, 0].tolist() == worst.tolist()


@model("moody", version=1, unchecked=True)
def moody(design, scenario):
    """Falls over in a storm."""
    if scenario.get("storm"):
        raise Diverged("fell over", reason="storm")
    return {"value": design["a"]}


def test_failures_there_are_data(tmp_path):
    s = make_study(minimize=("value",), names=("a",), stages=(listed([1.0, 0.5]),))
    validation = Validation(scenarios({"storm": True}, {"storm": False}))
    s = dataclasses.replace(s, model=Use(moody.__designopt__, {}), validate=validation)
    result = run_study(s, tmp_path / "s")
    validated = result.validation()
    assert result.ended == "done"
    assert validated.statuses.tolist() == [["diverged", "ok"]]
    assert np.isnan(validated.objectives[0, 0, 0])
    assert validated.quantiles.tolist() == [[[0.5] * 3]]
    assert validated.feasible_share.tolist() == [0.5]
    assert "diverged" not in result.counts


def test_a_larger_budget_validates_what_is_chosen_then(tmp_path):
    s = study(stages=(listed([1.5, 0.5, 0.25], evaluations=1),))
    s = dataclasses.replace(s, space=s.space[:1], objectives=s.objectives[:1])
    first = run_study(s, tmp_path / "s")
    assert first.validation().rows.tolist() == [0]
    grown = run_study(s, tmp_path / "s", resume=True, budget={"list": 3})
    assert grown.validation().rows.tolist() == [2]
    assert (grown.validation().statuses == "ok").all()
    assert {row[0] for row in evaluations(grown) if row[1] == "validation"} == {0, 2}


def test_a_run_stopped_during_validation_goes_on_with_it(tmp_path):
    s = study(settings={"pause": 0.02}, stages=(listed(np.linspace(0, 1, 5)),))
    s = dataclasses.replace(
        s,
        space=s.space[:1],
        objectives=s.objectives[:1],
        validate=Validation(scenarios(*({"shift": i / 100} for i in range(40)))),
    )

    with pytest.raises(Interrupted):
        run_study(s, tmp_path / "s", progress=stopping("validation"))
    stopped = Result.open(tmp_path / "s")
    validated = stopped.validation()
    assert validated is None or (validated.statuses == "").any()
    uninterrupted = run_study(s, tmp_path / "s", resume=True)
    assert (uninterrupted.validation().statuses == "ok").all()
    assert dump(uninterrupted) == dump(run_study(s, tmp_path / "t"))


def test_designs_chosen_by_the_study_are_validated_under_the_names_of_their_rules(tmp_path):
    result = run_study(study(choose=(Choice("topsis"), Choice("utopia", norm="l1"))), tmp_path / "s")
    named = {name for label in result.validation().labels for name in label.split(", ")}
    assert named == {"best f0", "best f1", "topsis vector", "utopia l1"}


def test_workers_know_the_further_scenarios(tmp_path):
    s = study(execution={"executor": "dask", "workers": 2}, stages=(listed(np.linspace(0, 1, 9)),))
    s = dataclasses.replace(s, space=s.space[:1])
    parallel = run_study(s, tmp_path / "a")
    serial = run_study(s, tmp_path / "b", executor="serial")
    assert dump(parallel) == dump(serial)
    assert parallel.validation().objectives.tolist() == serial.validation().objectives.tolist()
