"""The walk as a scenario: its period, speed and recording, beside the parameters of the leg."""

from __future__ import annotations

import pytest
from designopt_knee.gait import bundled_text
from designopt_knee.model import FourBarKnee

from designopt.plugin import InputFile, InvalidSetting

DESIGN = {"stiffness": 18000.0, "damping_ratio": 0.05}


@pytest.fixture(scope="module")
def knee():
    model = FourBarKnee(parameter_set="substitute_v2")
    model.prepare()
    return model


def test_period_and_speed_of_a_scenario_are_those_of_the_settings(knee):
    fast = FourBarKnee(parameter_set="substitute_v2", period=1.1, belt_speed=1.25)
    fast.prepare()
    here, _ = knee.evaluate(DESIGN, {"gait_period": 1.1, "gait_speed": 1.25}, set())
    assert here == fast.evaluate(DESIGN, {}, set())[0]
    assert here["rho"] != knee.evaluate(DESIGN, {}, set())[0]["rho"]


def test_a_scenario_leaves_no_trace_in_the_next_one(knee):
    before = knee.evaluate(DESIGN, {}, set())
    knee.evaluate(DESIGN, {"gait_period": 1.4, "hip_hike": 1.003}, set())
    assert knee.evaluate(DESIGN, {}, set()) == before


def test_parameters_of_the_leg_stand_beside_the_walk(knee):
    raised, _ = knee.evaluate(DESIGN, {"gait_period": 1.232, "hip_hike": 1.003}, set())
    assert raised == knee.evaluate(DESIGN, {"hip_hike": 1.003}, set())[0]


def test_a_recording_of_its_own_replaces_the_models(knee):
    text = bundled_text().replace("period_s=1.232", "period_s=1.4")
    file = InputFile("slow.csv", text.encode())
    assert "period_s=1.4" in text
    slow, _ = knee.evaluate(DESIGN, {"gait_file": file}, set())
    assert slow == knee.evaluate(DESIGN, {"gait_period": 1.4}, set())[0]


def test_a_recording_with_other_harmonics_has_its_own_equations(knee):
    lines = [line.split(",") for line in bundled_text().splitlines() if line and not line.startswith("#")]
    short = "# period_s=1.232 belt_speed_m_s=1.015\n" + "\n".join(",".join(cells[:13]) for cells in lines)
    rough, _ = knee.evaluate(DESIGN, {"gait_file": InputFile("rough.csv", short.encode())}, set())
    settings = FourBarKnee(parameter_set="substitute_v2", harmonics=5)
    settings.prepare()
    assert rough == settings.evaluate(DESIGN, {}, set())[0]


@pytest.mark.parametrize(
    ("scenario", "name"),
    [
        ({"gait_period": -1.0}, "gait_period"),
        ({"gait_file": InputFile("walk.csv", b"phase,knee\n0,1\n")}, "gait_file"),
        ({"gait_speed": float("nan")}, "gait_speed"),
    ],
)
def test_a_walk_that_cannot_be_used_is_told_by_its_condition(knee, scenario, name):
    with pytest.raises(InvalidSetting) as caught:
        knee.check_scenario(scenario)
    assert caught.value.name == name
