"""Designs to compare with: read in the study's units, every mistake at its place, evaluated first and chosen last."""

from __future__ import annotations

from typing import Annotated, TypedDict

import numpy as np
import pytest

import designopt
from designopt.plugin import Quantity, model
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text

KNEE = """\
study: compared
model: {use: four_bar_knee}
space:
  stiffness: {low: 12, high: 30, unit: kN/m}
  damping_ratio: 0.05
baseline: {stiffness: 18000 N/m}
objectives: [{name: mismatch, minimize: 1 - rho}]
solver: {use: full_factorial, levels: 2}
"""


def mistakes(text: str) -> list[str]:
    with pytest.raises(StudyError) as caught:
        study_from_text(text, "compared.yaml")
    return [f"{issue.line}: {issue.path}: {issue.message}" for issue in caught.value.issues]


def test_a_single_baseline_needs_no_name_and_is_in_the_units_of_the_space() -> None:
    study = study_from_text(KNEE, "compared.yaml")
    stage = study.baseline
    assert stage is not None
    assert stage.solver.settings["designs"] == [{"name": "baseline", "stiffness": 18.0}]
    assert [s.name for s in study.stages] == ["baseline", "full_factorial"]


def test_without_the_section_there_is_none() -> None:
    study = study_from_text(KNEE.replace("baseline: {stiffness: 18000 N/m}\n", ""), "compared.yaml")
    assert study.baseline is None
    assert [s.name for s in study.stages] == ["full_factorial"]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("18000 N/m", "40 kN/m", 6, "stiffness"),
        ("18000 N/m", "18 s", 6, "stiffness"),
        ("stiffness: 18000 N/m}", "damping: 3}", 6, "damping"),
        ("{stiffness: 18000 N/m}", "[{stiffness: 18000 N/m}]", 6, "'name' is missing"),
        ("{stiffness: 18000 N/m}", "[{name: knee, stiffness: 13}]", 6, "'knee' is the name of a chosen design"),
        ("{stiffness: 18000 N/m}", "[{name: '3', stiffness: 13}]", 6, "'3' would be read as the number of a design"),
        ("{stiffness: 18000 N/m}", "[]", 6, "at least one design is needed"),
        ("{stiffness: 18000 N/m}", "present", 6, "expected"),
        (
            "{stiffness: 18000 N/m}",
            "[{name: a, stiffness: 13}, {name: a, stiffness: 14}]",
            6,
            "another design named 'a'",
        ),
    ],
)
def test_every_mistake_is_reported_at_its_place(old: str, new: str, line: int, message: str) -> None:
    texts = mistakes(KNEE.replace(old, new))
    assert any(text.startswith(f"{line}: ") and message in text for text in texts), texts


def test_no_other_stage_has_its_name() -> None:
    staged = KNEE.replace(
        "solver: {use: full_factorial, levels: 2}",
        "stages: [{name: baseline, solver: {use: full_factorial, levels: 2}}]",
    )
    assert any("can be named 'baseline'" in text for text in mistakes(staged))


class TwoOutputs(TypedDict):
    f1: Annotated[float, Quantity("", "share")]
    f2: Annotated[float, Quantity("", "the other")]


class TwoInputs(TypedDict):
    x1: Annotated[float, Quantity("", "share", ge=0, le=1)]
    x2: Annotated[float, Quantity("", "distance from the front", ge=0, le=1)]


@model("test_baseline_line", version=1)
class Line:
    """The front is f1 + f2 = 1 at x2 = 0."""

    def evaluate(self, design: TwoInputs, scenario: dict[str, float]) -> TwoOutputs:
        return {"f1": design["x1"], "f2": 1.0 - design["x1"] + design["x2"]}


OWN = [{"name": "present", "x1": 0.5, "x2": 0.9}, {"name": "rival", "x1": 0.25, "x2": 0.2}]


def run(tmp_path, name, **more):
    study = designopt.define(
        study="compared",
        model={"use": Line},
        space={"x1": {"low": 0, "high": 1}, "x2": {"low": 0, "high": 1}},
        objectives=[{"name": "f1", "minimize": "f1"}, {"name": "f2", "minimize": "f2"}],
        solver={"use": "random", "samples": 8},
        execution={"executor": "serial"},
        **more,
    )
    return study.run(tmp_path / f"{name}.study")


def test_they_are_evaluated_first_and_chosen_and_change_no_search(tmp_path) -> None:
    with_own, without = run(tmp_path, "own", baseline=OWN), run(tmp_path, "plain")
    assert with_own.baseline == {"present": 0, "rival": 1}
    assert with_own.outcomes.X[:2].tolist() == [[0.5, 0.9], [0.25, 0.2]]
    assert np.array_equal(with_own.outcomes.X[2:], without.outcomes.X)
    assert without.baseline == {}
    assert with_own.chosen()["present"] == 0
    assert with_own.chosen()["rival"] == 1
    assert set(with_own.chosen()) - set(without.chosen()) == {"present", "rival"}


def test_the_page_shows_them_in_tables_and_on_the_front(tmp_path) -> None:
    from designopt.report.parts.answer.best import best
    from designopt.report.parts.designs.front import front

    result = run(tmp_path, "own", baseline=OWN)
    section = best(result)
    assert section is not None
    assert any("present" in column for column in section.tables[0].columns)
    assert any(text.startswith("present (baseline)") for text in section.findings)
    front_section = front(result)
    assert front_section is not None
    traces = [trace for trace in front_section.figures[0].plot["data"] if trace.get("name") == "baseline"]
    assert [trace["marker"]["symbol"] for trace in traces] == ["diamond", "diamond"]
    assert traces[0]["x"][0] == pytest.approx(0.5)
