"""Named parameters, what is refused before anything is integrated (section 9 of the specification), and their page."""

import re
import typing
from pathlib import Path

import pytest
from designopt_knee.parameters import SUBSTITUTE_V1, KneeParameters, complete, quantities

from designopt.plugin import InvalidDesign

DAMPER = {"stiffness": 1.6e4, "damping_ratio": 0.05}
POSITIVE = [
    "thigh_length", "shank_length", "foot_length", "ab_length", "bc_length", "cd_length", "ad_length", "ae_length",
    "df_length", "damper_rest_length", "damper_upper_lever", "damper_lower_lever", "ground_stiffness",
    "ground_sharpness", "friction_sharpness", "stop_stiffness", "stop_sharpness", "stop_lever", "shank_mass",
    "shank_inertia", "foot_mass", "foot_inertia", "ad_mass", "ad_inertia", "bc_mass", "bc_inertia", "cd_mass",
    "cd_inertia", "stiffness",
]  # fmt: skip
NOT_NEGATIVE = [
    "ground_damping", "friction", "stop_damping", "ankle_stiffness", "ankle_damping", "damping_ratio",
]  # fmt: skip


def test_set_gives_every_parameter_but_the_derived_one_with_its_source():
    names = set(typing.get_type_hints(KneeParameters))
    assert names - set(SUBSTITUTE_V1) == {"ad_length"}
    assert set(SUBSTITUTE_V1) <= names
    assert {parameter.source for parameter in SUBSTITUTE_V1.values()} <= set("PVRS")


def test_damping_follows_from_the_ratio(base):
    assert complete(base, {}, DAMPER)["damping"] == pytest.approx(800.0)
    assert complete(base, {}, {"stiffness": 1.6e4, "damping": 800.0})["damping"] == 800.0


def test_design_overrides_the_set_and_the_offset_lengthens_the_shank(base):
    g = complete(base, {"hip_hike": 1.006}, {**DAMPER, "foot_mass": 0.8, "shank_offset": -3e-3})
    assert (g["foot_mass"], g["hip_hike"]) == (0.8, 1.006)
    assert g["shank_length"] == pytest.approx(0.472)


@pytest.mark.parametrize("name", POSITIVE)
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_nonpositive_values_are_refused_by_name(base, name, value):
    with pytest.raises(InvalidDesign, match=name):
        complete(base, {}, {**DAMPER, name: value})


@pytest.mark.parametrize("name", NOT_NEGATIVE)
def test_negative_values_are_refused_by_name(base, name):
    with pytest.raises(InvalidDesign, match=name):
        complete(base, {}, {**DAMPER, name: -0.01})


def test_every_number_but_the_offset_has_a_range():
    for name, q in quantities().items():
        assert name == "shank_offset" or q.gt is not None or q.ge is not None, name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heel_fraction": 1.2}, "heel_fraction: must be at most 1, not 1.2"),
        ({"heel_fraction": -0.1}, "heel_fraction"),
        ({"hip_hike": 1.2}, "hip_hike: must be at most 1.1, not 1.2"),
        ({"hip_hike": 0.8}, "hip_hike"),
        ({"ad_length": 0.2}, "does not close with the knee straight"),
        ({"bc_length": 0.2, "ad_length": 0.21}, "110 deg are needed"),
        ({"cd_length": 0.03, "df_length": 0.01}, "instant centre is not above the knee"),
        ({"damper_rest_length": 0.19}, "damper_rest_length: 0.19 m is outside 0.14 to 0.18 m"),
        ({"damper_lower_lever": 0.3}, "damper_rest_length"),
        ({"shank_offset": -0.5}, "shank_offset"),
        ({"damping": 800.0}, "give either damping_ratio"),
        ({"leg_lenght": 0.4}, "leg_lenght: the four-bar knee has no such parameter"),
        ({"foot_mass": "heavy"}, "foot_mass"),
    ],
)
def test_impossible_values_are_refused_by_name(base, changes, message):
    with pytest.raises(InvalidDesign, match=message):
        complete(base, {}, {**DAMPER, **changes})


def test_damper_must_be_given(base):
    with pytest.raises(InvalidDesign, match="stiffness"):
        complete(base, {}, {"damping_ratio": 0.05})
    with pytest.raises(InvalidDesign, match="damping"):
        complete(base, {}, {"stiffness": 1.6e4})


def test_a_value_given_by_design_and_scenario_is_refused(base):
    with pytest.raises(InvalidDesign, match="hip_hike: given by both the design and the scenario"):
        complete(base, {"hip_hike": 1.003}, {**DAMPER, "hip_hike": 1.006})


def test_low_instant_centre_is_computed_when_asked_for(base):
    design = {**DAMPER, "cd_length": 0.036, "bc_length": 0.06}
    with pytest.raises(InvalidDesign, match="allow_low_instant_centre"):
        complete(base, {}, design)
    assert complete(base, {}, design, allow_low_instant_centre=True)["cd_length"] == 0.036


PAGE = Path(__file__).parents[2] / "docs" / "four_bar_knee.md"


def test_the_table_of_parameters_holds_every_value_unit_and_source():
    rows = re.findall(r"^\| `(\w+)` \| .*? \| (\S+) \| (.*?) \| ([PRS]) \|", PAGE.read_text(), flags=re.MULTILINE)
    table = {name: (float(value), unit, source) for name, value, unit, source in rows}
    assert set(table) == set(SUBSTITUTE_V1)
    for name, parameter in SUBSTITUTE_V1.items():
        value, unit, source = table[name]
        assert abs(value - parameter.value) <= 5e-6 * abs(parameter.value), name
        assert (unit, source) == (quantities()[name].unit or "-", parameter.source), name
