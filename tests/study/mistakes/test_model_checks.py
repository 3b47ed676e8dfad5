"""What a model says about the space and scenarios of a study by `check_space` and `check_scenario`, at its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, NotRequired, TypedDict

import pytest

from designopt.plugin import InvalidSetting, Quantity, model, solver
from designopt.problem import Problem
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text
from designopt.study.study import DesignVariable


class Design(TypedDict, total=False):
    gain: Annotated[float, Quantity("", "gain", gt=0.0)]
    lead: Annotated[float, Quantity("s", "lead")]
    lag: Annotated[float, Quantity("s", "lag")]


class Conditions(TypedDict):
    load: Annotated[float, Quantity("N", "load", sampled=(0.0, 4.0))]
    slope: NotRequired[Annotated[float, Quantity("", "slope")]]


class Outputs(TypedDict):
    error: Annotated[float, Quantity("m", "error")]


class Plant(TypedDict, total=False):
    pace: Annotated[float, Quantity("s", "pace")]


@model("test_asked", version=1)
class Asked:
    """A model with rules about what a study gives it; it is never run."""

    limit: Annotated[float, Quantity("N", "largest load")] = 3.0
    plant: Plant | None = None

    def check(self) -> None:
        if self.plant is not None and self.plant.get("pace", 1.0) < 0.0:
            raise InvalidSetting("plant.pace", "runs backwards")

    def check_space(self, parameters: Mapping[str, DesignVariable]) -> Iterator[InvalidSetting]:
        if "gain" not in parameters:
            yield InvalidSetting("gain", "is missing")
        for name, p in parameters.items():
            if name != "gain" and not p.when:
                yield InvalidSetting(name, "is too much")

    def check_scenario(self, scenario: Mapping[str, Any]) -> Iterator[InvalidSetting]:
        if scenario["load"] > self.limit:
            yield InvalidSetting("load", f"{scenario['load'] - self.limit:g} N too much")
        if scenario["load"] < 0.0:
            yield InvalidSetting("slope", "is needed for a load that lifts")
        if scenario.get("slope", 0.0) < 0.0:
            raise InvalidSetting("slope", "is raised, not told")
        if scenario.get("slope", 0.0) > 1.0:
            raise ArithmeticError("too steep for the check")

    def evaluate(self, design: Design, scenario: Conditions) -> Outputs:
        raise AssertionError("declared to be checked, never to be run")


@model("test_grown", version=1)
class Grown:
    """A model that had `mass` alone at first."""

    later_settings: ClassVar[tuple[str, ...]] = ("air", "kind")

    mass: float = 3.0
    kind: str | None = None
    air: float = 0.0

    def evaluate(self, design: Design, scenario: Plant) -> Outputs:
        raise AssertionError("declared to be checked, never to be run")


@solver("test_asked_sampler", version=1)
class Diagonal:
    """Points on the diagonal."""

    samples: int

    def unit_sample(self, dimension: int, rng: Any) -> Any:
        return [[(k + 0.5) / self.samples] * dimension for k in range(self.samples)]

    def solve(self, problem: Any, evaluate: Any, rng: Any, start: Any) -> None:
        raise AssertionError("declared to be checked, never to be run")


STUDY = """\
study: asked
model: {use: test_asked, limit: 3 N}
space:
  gain: {values: [1, 2]}
  lag: {low: 1, high: 2, when: {gain: 1}}
scenarios:
  - {name: light, load: 1}
  - {use: test_asked_sampler, count: 4, vary: {load: [0, 2]}, name: wind}
objectives:
  - {name: error, minimize: error}
solver: {use: test_asked_sampler, samples: 3}
report:
  validate:
    scenarios: {use: test_asked_sampler, count: 2, vary: {load: [0, 2]}}
"""


def issues(find: str = "", replacement: str = "", *more: tuple[str, str]) -> list[tuple[int | None, str, str]]:
    """Line, path and message of each mistake in the study with one piece replaced."""
    text = STUDY
    for before, after in ((find, replacement), *more):
        assert before in text
        text = text.replace(before, after, 1)
    try:
        study_from_text(text, "asked.yaml")
    except StudyError as error:
        return [(issue.line, issue.path, issue.message) for issue in error.issues]
    return []


def test_a_study_that_the_model_has_nothing_against_is_valid() -> None:
    assert issues() == []


@pytest.mark.parametrize(
    ("find", "replacement", "expected"),
    [
        (", when: {gain: 1}", "", (5, "space.lag", "is too much")),
        ("load: 1}", "load: 4}", (7, "scenarios.0.load", "in scenario 'light': 1 N too much")),
        ("load: 1}", "load: -1}", (7, "scenarios.0", "in scenario 'light': slope: is needed for a load that lifts")),
        ("load: 1}", "load: 1, slope: -1}", (7, "scenarios.0.slope", "in scenario 'light': is raised, not told")),
        ("[0, 2]}, name", "[0, 8]}, name", (8, "scenarios.1", "in scenario 'wind_0003': load: 2 N too much")),
        ("[0, 2]}}", "[2, 6]}}", (14, "report.validate.scenarios", "in scenario 'sampled_0002': load: 2 N too much")),
        ("limit: 3 N", "plant: {pace: -1 s}", (2, "model.plant.pace", "runs backwards")),
    ],
)
def test_entries_refused_by_the_model_are_reported_with_their_place(find: str, replacement: str, expected: Any) -> None:
    assert issues(find, replacement) == [expected]


@pytest.mark.parametrize(
    ("more", "settings"),
    [
        ("", {"mass": 3.0}),
        (", air: 0", {"mass": 3.0}),
        (", mass: 3, kind: PI", {"mass": 3.0, "kind": "PI"}),
        (", air: 1", {"mass": 3.0, "air": 1.0}),
    ],
)
def test_a_setting_that_was_added_counts_only_where_it_is_used(more: str, settings: dict[str, Any]) -> None:
    """So the keys of a study that does not use it are those that it had before."""
    text = STUDY.replace("test_asked, limit: 3 N", f"test_grown{more}").replace("load: 1", "pace: 1")
    study = study_from_text(re.sub(r"  - \{use.*\n", "", text).split("report:")[0], "grown.yaml")
    assert Problem.from_study(study).canonical()["model"]["settings"] == settings
    built = study.model.build()
    assert (built.mass, built.kind, built.air) == tuple({"mass": 3.0, "kind": None, "air": 0.0, **settings}.values())


def test_every_mistake_is_reported_at_once() -> None:
    findings = issues("gain: {values: [1, 2]}", "lead: 3", ("load: 1}", "load: 4}"), (", when: {gain: 1}", ""))
    assert [path for _, path, _ in findings] == ["space", "space.lead", "space.lag", "scenarios.0.load"]
    assert findings[0][2] == "gain: is missing"


def test_the_model_is_not_asked_about_what_is_wrong_by_itself() -> None:
    """An unknown name may have been meant for what seems to be missing; a wrong load is no load."""
    findings = issues("gain: {values", "gian: {values", (", when: {gain: 1}", ""), ("load: 1}", "load: heavy}"))
    assert {path for _, path, _ in findings} == {"space.gian", "scenarios.0.load"}


def test_a_check_that_fails_is_one_line_at_the_model() -> None:
    ((line, path, message),) = issues("load: 1}", "load: 1, slope: 2}")
    assert (line, path) == (2, "model")
    assert re.fullmatch(r"test_asked: \S*\.py:\d+: ArithmeticError: too steep for the check", message)


@pytest.mark.parametrize("entries", ["name: {light: 1}, load: 1", "use: [1], load: 1", "name: [light], load: 9"])
def test_sections_whose_names_are_no_texts_are_reported_and_nothing_else_happens(entries: str) -> None:
    findings = issues("{name: light, load: 1}", f"{{{entries}}}")
    assert {line for line, _, _ in findings} == {7}
    assert issues("{name: light, load: 1}", "light") != []
