"""Remarks on a valid study: the unit of what is written without one, and parts of the report that will be empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

import designopt
from designopt import Quantity as Q
from designopt.api import load
from designopt.study.remarks import assumed_units, remarks


@dataclass(frozen=True)
class Wheel:
    """A part of a model's settings."""

    radius: Annotated[float, Q("m")] = 0.3
    grip: Annotated[float, Q("")] = 0.8


class Spring(TypedDict):
    """What a study varies."""

    stiffness: Annotated[float, Q("N/m")]
    share: Annotated[float, Q("")]


class Road(TypedDict, total=False):
    """What is given."""

    speed: Annotated[float, Q("m/s")]
    slope: Annotated[float, Q("")]
    terrain: str


class Ride(TypedDict):
    """What comes out."""

    travel: Annotated[float, Q("m")]
    loss: Annotated[float, Q("", usual=(0.0, 1.0))]


@designopt.model("noted_ride", version=1)
class NotedRide:
    """A wheel on a spring."""

    mass: Annotated[float, Q("kg")] = 10.0
    counts: Annotated[int, Q("")] = 3
    masses: Annotated[list[float], Q("kg")] | None = None
    wheel: Wheel | None = None

    def evaluate(self, design: Spring, scenario: Road) -> Ride:
        """Never asked."""
        raise AssertionError


SOUND = {
    "study": "noted",
    "model": {"use": "noted_ride", "mass": "3 kg", "counts": 4},
    "space": {"stiffness": {"low": "1 kN/m", "high": "2 kN/m"}, "share": [0.1, 0.2]},
    "scenarios": [{"name": "slow", "speed": "1 m/s", "slope": 0.1, "terrain": "sand"}],
    "objectives": [{"name": "travel", "minimize": "travel"}],
    "constraints": [{"name": "room", "of": "travel", "max": "38 mm"}, {"name": "loss", "of": "loss", "max": 0.2}],
    "solver": {"use": "sobol", "samples": 8},
}


def assumed_units_of(**changes: object) -> dict[str, str]:
    return assumed_units(designopt.define(**{**SOUND, **changes}).definition)


def test_a_study_with_its_units_and_dimensionless_numbers_is_free_of_notes() -> None:
    assert assumed_units_of() == {}
    assert remarks(designopt.define(**SOUND).definition) == []


@pytest.mark.parametrize(
    ("section", "entry", "expected"),
    [
        ("model", {"use": "noted_ride", "mass": 3}, {"setting mass": "kg"}),
        ("model", {"use": "noted_ride", "masses": ["1 kg", 2]}, {"setting masses": "kg"}),
        ("model", {"use": "noted_ride", "wheel": {"radius": 0.2, "grip": 1}}, {"setting wheel.radius": "m"}),
        ("model", {"use": "noted_ride", "mass": "3"}, {"setting mass": "kg"}),
        ("scenarios", [{"name": "a", "speed": 2}, {"name": "b", "speed": "3 m/s"}], {"condition speed": "m/s"}),
        ("scenarios", {"use": "sobol", "count": 2, "vary": {"speed": [1, 2]}}, {"condition speed": "m/s"}),
        ("scenarios", {"use": "sobol", "count": 2, "vary": {"slope": [0, 1]}, "with": {"speed": 1}},
         {"condition speed": "m/s"}),
        ("scenarios", [{"name": "still", "speed": 0}], {}),  # 0 is the same in every unit
        ("constraints", [{"name": "room", "of": "travel", "max": 38}], {"limit room": "m"}),
        ("constraints", [{"name": "room", "of": "travel", "min": "1 mm", "max": 38}], {"limit room": "m"}),
        ("constraints", [{"name": "room", "of": "travel", "max": 38, "unit": "mm"}], {}),
        ("constraints", [{"of": "loss", "max": 38}], {}),
        ("space", {"stiffness": [1e3, 2e3], "share": 1}, {"stiffness": "N/m"}),
        ("space", {"stiffness": {"low": "1 kN/m", "high": "2 kN/m", "tolerance": 5}, "share": 1},
         {"tolerance of stiffness": "N/m"}),
        ("space", {"stiffness": {"low": "1 kN/m", "high": "2 kN/m", "tolerance": "5 %"}, "share": 1}, {}),
        ("space", {"stiffness": {"low": 1, "high": 2, "unit": "kN/m", "tolerance": 0.1}, "share": 1}, {}),
        ("report", {"tolerances": {"of": {"stiffness": 5}}}, {"tolerance of stiffness": "N/m"}),
        ("objectives", [{"name": "far", "minimize": "-travel * 2e-3 / 3"}], {"objective far": "m"}),
        ("objectives", [{"name": "far", "minimize": "travel * 2e-3", "unit": "mm"}], {}),
        ("objectives", [{"name": "far", "minimize": "2e-3 [kg/m] * travel"}], {}),
        ("objectives", [{"name": "far", "minimize": "travel + 2 * travel"}], {}),
        ("report", {"validate": {"scenarios": [{"name": "a", "speed": 2}]}}, {"condition speed": "m/s"}),
    ],
)  # fmt: skip
def test_each_place_of_a_forgotten_unit_is_found(section: str, entry: object, expected: dict[str, str]) -> None:
    assert assumed_units_of(**{section: entry}) == expected


@pytest.mark.parametrize(
    ("head", "cell", "expected"),
    [
        ("speed", "2", {"condition speed": "m/s"}),
        ("speed", "0", {}),
        ("speed [km/h]", "2", {}),
        ("speed", "2 km/h", {}),
        ("slope", "0.1", {}),
    ],
)
def test_columns_of_a_table_of_scenarios_without_a_unit_are_noted(
    tmp_path: Path, head: str, cell: str, expected: dict[str, str]
) -> None:
    (tmp_path / "roads.csv").write_text(f"name,{head}\nslow,{cell}\n")
    for scenarios in ({"use": "table", "file": "roads.csv"}, [{"use": "table", "file": "roads.csv"}]):
        assert assumed_units_of(base=tmp_path, scenarios=scenarios) == expected


def test_a_limit_beyond_the_usual_range_of_its_output_is_noted() -> None:
    limits = [{"name": "loss", "of": "loss", "max": 5}]
    assert remarks(designopt.define(**{**SOUND, "constraints": limits}).definition) == [
        "note: limit loss is above the usual 0 to 1 of its output (a share: write 5 % for 5 hundredths)"
    ]


def test_a_solver_for_several_parameters_is_noted_with_one() -> None:
    search = {**SOUND, "solver": {"use": "cma_es"}, "budget": {"evaluations": 60}}
    assert remarks(designopt.define(**search).definition) == []
    (note,) = remarks(designopt.define(**{**search, "space": {**SOUND["space"], "share": 0.1}}).definition)
    assert note.startswith(
        "note: solver cma_es is made for at least 2 free parameters; with stiffness alone slsqp or nelder_mead"
    )
    fixed = {**SOUND, "space": {"stiffness": "1 N/m", "share": 0.1}, "solver": {"use": "evaluate"}}
    assert remarks(designopt.define(**fixed).definition) == []


def test_the_note_is_one_line_in_the_order_of_the_file() -> None:
    study = designopt.define(
        **{**SOUND, "model": {"use": "noted_ride", "mass": 3}, "constraints": [{"of": "travel", "max": 38}]}
    )
    assert remarks(study.definition) == [
        "note: no unit given, the model's is assumed: setting mass in kg, limit travel in m"
    ]


@designopt.model("noted_any", version=1)
def noted_any(design: Mapping[str, float], scenario: Mapping[str, Any]) -> Ride:
    """A model that declares no conditions."""
    raise AssertionError


def test_a_text_among_the_numbers_of_an_undeclared_condition_is_noted() -> None:
    either = {**SOUND, "model": {"use": "noted_any"}, "space": {"side": [1, 2]}}
    mixed = [{"name": "slow", "speed": 2}, {"name": "fast", "speed": "5 quick"}, {"name": "soil", "soil": "sand"}]
    assert remarks(designopt.define(**{**either, "scenarios": mixed}).definition) == [
        "note: condition speed is the text '5 quick' in scenario fast, but a number in others"
    ]
    words = [{"name": "a", "soil": "sand"}, {"name": "b", "soil": "snow"}]
    assert remarks(designopt.define(**{**either, "scenarios": words}).definition) == []


REACH = """
study: reach
model: {use: reach_arm6}
space: {duration: [0.5, 0.8]}
objectives: [{minimize: effort}]
solver: {use: cma_es}
budget: {evaluations: 20}
execution: {arrays: [time, path, excitations, activations]}
report:
  plots: [arm_reach, spectrum, damper_families]
"""


def test_a_part_without_its_arrays_or_its_scan_is_named_with_its_position(tmp_path: Path) -> None:
    file = tmp_path / "reach.yaml"
    file.write_text(REACH.lstrip())
    notes = [note.removeprefix(str(file)) for note in remarks(load(file).definition) if "will be empty" in note]
    assert notes == [
        ":9:11: note: part 'arm_reach' will be empty: it draws the array torques; add it to 'execution: arrays'",
        ":9:22: note: part 'spectrum' will be empty: model 'reach_arm6' has no arrays spectrum_frequency, "
        "spectrum_amplitude",
        ":9:32: note: part 'damper_families' will be empty: it needs a scan of stiffness and damping_ratio, a stage of "
        "full_factorial",
    ]


@designopt.model("noted_hill", version=1)
def noted_hill(design: Spring, scenario: Any) -> Ride:
    """A model that declares no conditions and reads slope_angle."""
    return {"travel": scenario["slope_angle"], "loss": 0.0}


def test_a_condition_that_the_file_of_an_undeclared_model_does_not_contain_is_probably_misspelt() -> None:
    misspelt = "slope" + "_angel"  # in one piece the name would occur in this file
    conditions = [{"name": "up", misspelt: 0.1}, {"name": "down", "slope_angle": 0.1}]
    study = designopt.define(**{**SOUND, "model": {"use": noted_hill}, "scenarios": conditions})
    notes = [note for note in remarks(study.definition) if "occur" in note]
    assert notes == [
        f"note: model 'noted_hill' does not declare its conditions, and '{misspelt}' does not occur in its file:"
        " is it misspelt? Then it changes nothing"
    ]
