"""One bad trial does not lose a design: scenarios without a result are left out as far as the study allows."""

from pathlib import Path
from typing import Any

import command
import numpy as np
import pytest
from command import Done

from designopt import aggregations, load, open_store
from designopt.plugin import Use, model
from designopt.problem import Problem
from designopt.space import Space
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import DesignVariable, Objective, Scenario, StudyConstraint


@model("missing_test", version=1, unchecked=True)
def empty_model(design: Any, scenario: Any) -> Any:
    raise AssertionError("declared to be judged, never to be run")


def problem(over: Any = aggregations.mean, share: float = 0.25, **settings: Any) -> Problem:
    """One objective `y` and a limit ``y <= 3`` over four scenarios."""
    use = Use(over.__designopt__, settings)
    y = Expression.parse("y")
    return Problem(
        model=Use(empty_model.__designopt__, {}),  # type: ignore[attr-defined]
        space=Space((DesignVariable("a", "real", 0.0, 1.0),)),
        scenarios=tuple(Scenario(str(i)) for i in range(4)),
        objectives=(Objective("y", y, "minimize", use),),
        constraints=(StudyConstraint("limit", y, Use(aggregations.worst.__designopt__, {}), maximum=3.0),),  # type: ignore[attr-defined]
        missing=share,
    )


#: Values in four scenarios; NaN is a failed evaluation.
Y = np.array([[1.0, 2.0, 3.0, 6.0], [1.0, 2.0, 3.0, np.nan], [1.0, 2.0, np.nan, np.nan], [np.nan, 2.0, 3.0, 1.0]])


def judged(statement: Problem) -> Any:
    return statement.judge(np.zeros((4, 1)), {"y": Y}, np.isnan(Y))


def test_aggregations_are_over_the_scenarios_that_have_a_result() -> None:
    outcomes = judged(problem())
    np.testing.assert_array_equal(outcomes.objectives[:, 0], [3.0, 2.0, np.inf, 2.0])
    np.testing.assert_array_equal(outcomes.failed, [False, False, True, False])
    np.testing.assert_array_equal(outcomes.violation, [1.0, 0.0, np.inf, 0.0])  # 6 passes 3 by its whole size


def test_without_the_section_one_scenario_without_a_result_fails_the_design() -> None:
    np.testing.assert_array_equal(judged(problem(share=0.0)).failed, [False, True, True, True])


def test_the_first_scenario_is_needed_where_it_alone_counts() -> None:
    outcomes = judged(problem(aggregations.nominal))
    np.testing.assert_array_equal(outcomes.failed, [False, False, True, True])


def test_a_share_counts_as_many_scenarios_as_it_says() -> None:
    np.testing.assert_array_equal(judged(problem(share=0.5)).failed, [False] * 4)
    np.testing.assert_array_equal(judged(problem(share=0.24)).failed, [False, True, True, True])


def test_an_expression_without_a_value_still_fails_a_design_that_has_a_result() -> None:
    statement = problem()
    outcomes = statement.judge(np.zeros((4, 1)), {"y": Y}, np.zeros((4, 4), bool))
    np.testing.assert_array_equal(outcomes.failed, [False, True, True, True])


def test_limits_are_reported_as_they_are_judged() -> None:
    statement = problem()
    low, high = statement.limited(statement.constraints[0], {"y": Y}, 4)
    np.testing.assert_array_equal(high[[0, 1, 3]], [6.0, 3.0, 3.0])
    np.testing.assert_array_equal(low[[0, 1, 3]], [1.0, 1.0, 1.0])


def test_keys_of_evaluations_do_not_depend_on_it_but_the_store_does() -> None:
    strict, some = problem(share=0.0), problem(share=0.1)
    assert strict.keys(np.zeros((1, 1))) == some.keys(np.zeros((1, 1)))
    assert strict.digest != some.digest


# ------------------------------------------------------------------------------------------------- command line

MODEL = '''
from typing import Annotated, TypedDict
import numpy as np
from designopt import Array, Diverged, Quantity as Q, model

class Out(TypedDict):
    y: Annotated[float, Q("", "distance")]

@model("trials", version=1, arrays={"steps": Array(("step",), "", "how far it came")})
def trials(design, scenario, arrays) -> tuple[Out, dict]:
    """Falls in trial 3."""
    if scenario["trial"] == 3:
        raise Diverged("it fell", reason="fell", arrays={"steps": np.arange(4.0), "other": np.zeros(2)})
    return {"y": (design["a"] - scenario["trial"]) ** 2}, {"steps": np.arange(10.0)}
'''

STUDY = """\
study: trials
model: {use: trials}
missing: {at_most: 10 %}
space: {a: [0, 10]}
scenarios:
""" + "".join(f"  - {{name: t{i}, trial: {i}}}\n" for i in range(10)) + """\
objectives: [{name: y, minimize: y, over: mean}]
solver: {use: full_factorial, levels: 3}
execution: {executor: serial, arrays: {steps: all}}
"""  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "trials.py").write_text(MODEL)
    (tmp_path / "trials.yaml").write_text(STUDY)
    return tmp_path


def designopt(folder: Path, *arguments: str) -> Done:
    return command.designopt(folder, *arguments, "--plugin", "trials.py")


def test_a_run_goes_on_without_the_bad_trial_and_says_so(folder: Path) -> None:
    process = designopt(folder, "run", "trials.yaml", "-o", "s.study")
    assert process.returncode == 0, process.stderr
    assert "note: best y has no result in 1 of 10 scenarios" in process.stdout
    result = open_store(folder / "s.study")
    # The mean of (5 - i)^2 over i = 0 ... 9 without 3 is (85 - 4) / 9.
    assert result.outcomes.objectives[1, 0] == pytest.approx(81.0 / 9.0, rel=1e-15)
    assert result.missing.tolist() == [1, 1, 1]
    page = (folder / "s.study/report.html").read_text()
    assert "scored without all scenarios" in page
    assert "scenarios without a result" in page
    # What the model gave on its way to the failure is kept, as far as the study keeps it.
    assert result.arrays(1, "t3").keys() == {"steps"}
    np.testing.assert_array_equal(result.arrays(1, "t3")["steps"], np.arange(4.0))


def test_an_augmented_statement_can_be_changed_afterwards(folder: Path) -> None:
    assert designopt(folder, "run", "trials.yaml", "-o", "s.study").returncode == 0
    load(folder / "trials.yaml", plugin_files=[folder / "trials.py"])
    strict = open_store(folder / "s.study").with_changes(["missing={at_most: 0}"])
    assert strict.outcomes.failed.all()


MISTAKES = [
    ("at_most: 10 %", "at_most: «10»", "missing.at_most", "must be below 1, not 10"),
    ("at_most: 10 %", "«at_mos»: 0.1", "missing", "unknown key 'at_mos'; did you mean 'at_most'?"),
    ("{at_most: 10 %}", "«10 %»", "missing", "expected a mapping"),
    ("use: full_factorial, levels: 3", "use: «least_squares»", "solver", "least_squares needs every residual"),
]


@pytest.mark.parametrize(("find", "replacement", "path", "message"), MISTAKES)
def test_a_mistake_is_answered_at_its_place(folder: Path, find: str, replacement: str, path: str, message: str) -> None:
    text = STUDY.replace(find, replacement)
    before = text.partition("«")[0]
    (folder / "trials.yaml").write_text(text.replace("«", "").replace("»", ""))
    process = designopt(folder, "validate", "trials.yaml")
    assert process.returncode == 2
    assert (
        f"trials.yaml:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}: error: {path}"
        in process.stderr
    )
    assert message in process.stderr


def test_a_single_scenario_cannot_be_missing(folder: Path) -> None:
    process = designopt(folder, "validate", "trials.yaml", "--set", "scenarios=[{name: one, trial: 1}]")
    assert "a design without its result has none" in process.stderr


def test_a_dry_run_tells_what_becomes_of_several_scenarios_by_default(folder: Path) -> None:
    process = designopt(folder, "run", "trials.yaml", "--dry-run", "--set", "objectives=[{name: y, minimize: y}]")
    assert "objectives minimize y (worst of 10 scenarios)" in process.stdout
