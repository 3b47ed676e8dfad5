"""A run reads its journal once: what it knows at its end is what a reader of its store finds."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Annotated, NotRequired, TypedDict

import numpy as np
import pytest
from run_cases import listed, make_study, use

import designopt
from designopt.problem import Problem
from designopt.report import summary_table
from designopt.report.parts.answer.overview import overview
from designopt.run.runner import run_study
from designopt.store.journal import reader, schema
from designopt.store.result import Result
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import Budget, Scenario, Stage, Tolerance, Tolerances, Validation

VALUES = np.linspace(-1.9, 1.9, 40).tolist()
ONE = {"names": ("a",), "stages": (listed(VALUES[:30], batch=7, name="first"), listed(VALUES[20:], name="second"))}
STUDIES = {
    "refused designs, two scenarios, a validation": make_study(
        "picky", minimize=("height", "slope"), scenarios=({}, {"shift": 1.0}),
        validate=Validation((Scenario("v0", {"shift": 0.3}),)), **ONE,
    ),
    "two scenarios with the same conditions": make_study(scenarios=({}, {"shift": 1.0}, {}), **ONE),
    "errors": make_study(
        "trouble", settings={"kind": "raise"}, minimize=("value",), names=("a",), low=0, high=100,
        stages=(listed([40, 50, 60]),),
    ),
    "values that are not finite": make_study(
        "trouble", settings={"kind": "nan"}, minimize=("value",), names=("a",), low=0, high=100,
        stages=(listed([40, 50, 60]),),
    ),
    "cheap evaluations": make_study(
        "rough_bowl", settings={"digits": 9},
        stages=(Stage("search", use("solver", "gp", look_ahead=2), Budget(evaluations=6)),),
    ),
    "neighbours": make_study(tolerances=Tolerances((Tolerance("a", 0.1),), neighbours=4, front=0), **ONE),
    "relations": make_study(relations=(Expression.parse("a <= 0.5"),), **ONE),
}  # fmt: skip


def columns(result):
    """All that a result has of its designs."""
    recorded, outcomes = result._record, result.outcomes
    records = {
        f.name: getattr(recorded, f.name) for f in dataclasses.fields(recorded) if f.name not in ("outcomes", "points")
    }
    scores = {f.name: getattr(outcomes, f.name) for f in dataclasses.fields(outcomes) if f.name != "figures"}
    return {
        **records,
        **scores,
        **outcomes.figures,
        **{f"points {name}": rows for name, rows in recorded.points.items()},
    }


def assert_same(result, expected):
    ours, theirs = columns(result), columns(expected)
    assert list(ours) == list(theirs)
    for name, values in ours.items():
        assert values.dtype == theirs[name].dtype, name
        np.testing.assert_array_equal(values, theirs[name], err_msg=name)


@pytest.mark.parametrize("name", STUDIES)
def test_the_result_of_a_run_is_that_of_its_store(tmp_path, name):
    study = STUDIES[name]
    result = run_study(study, tmp_path / "s")
    assert result.contents is not None
    assert_same(result, Result.open(tmp_path / "s", study))
    resumed = run_study(study, tmp_path / "s", resume=True)
    assert resumed.contents is not None
    assert_same(resumed, result)


def test_a_resume_verifies_each_evaluation_once_and_computes_no_key(tmp_path, monkeypatch):
    study = make_study(stages=(Stage("s", use("solver", "random", samples=100)),))
    run_study(study, tmp_path / "s")
    verified, keys = [], []

    def counted(rows):
        verified.extend(row for row in rows if isinstance(row[0], bytes))
        return schema.first_damaged(rows)

    monkeypatch.setattr(reader, "first_damaged", counted)
    monkeypatch.setattr(Problem, "keys", lambda problem, X: keys.extend(X) or [])
    result = run_study(study, tmp_path / "s", resume=True)
    assert result.counts["evaluations"] == 100
    assert len(verified) == 100
    assert not keys


class Life(TypedDict):
    """A figure that may be infinite."""

    life: NotRequired[Annotated[float, designopt.Quantity("s")]]


@designopt.model("endless_life", version=1)
class EndlessLife:
    """Lives for ever beyond 0.5."""

    def evaluate(self, design: Mapping[str, float], scenario: Mapping[str, float]) -> Life:
        """Life of a design."""
        return {"life": math.inf if design["x"] > 0.5 else design["x"]}


def test_an_infinite_figure_is_infinite_in_the_store_and_limited_in_an_expression(tmp_path):
    study = designopt.define(
        study="life",
        model={"use": "endless_life"},
        space={"x": [0.0, 1.0]},
        objectives=[{"name": "life", "maximize": "min(life, 10)"}],
        solver={"use": "full_factorial", "levels": 3},
        execution={"executor": "serial"},
    )
    live = study.run(tmp_path / "s")
    for result in (live, designopt.open_store(tmp_path / "s")):
        assert result.outcomes.figures["life"].ravel().tolist() == [0.0, 0.5, math.inf]
        assert result.outcomes.objectives.ravel().tolist() == [0.0, -0.5, -10.0]


def test_a_baseline_whose_limited_figure_is_infinite_is_named_with_a_way_out(tmp_path):
    study = designopt.define(
        study="life",
        model={"use": "endless_life"},
        space={"x": [0.0, 1.0]},
        objectives=[{"name": "x", "minimize": "min(life, 1)"}],
        constraints=[{"name": "short", "of": "life", "max": 0.4}],
        baseline=[{"name": "present", "x": 0.9}],
        solver={"use": "full_factorial", "levels": 3},
        execution={"executor": "serial"},
    )
    result = study.run(tmp_path / "s")
    text = summary_table(result)
    assert "note: present, of the baseline, has no result: 'short' is not a finite number" in text
    assert "note: 'short' is not a finite number for 2 of 4 designs" in text
    assert "'min(life, NUMBER)' gives them one" in text
    assert "present, of the baseline, has no result: 'short' is not a finite number." in overview(result).findings
