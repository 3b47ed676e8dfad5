"""The walk as a scenario: its period, speed and recording, beside the parameters of the leg."""

import pytest
from designopt_knee import model
from designopt_knee.gait import bundled_text, read_gait
from designopt_knee.model import FourBarKnee
from designopt_knee.periodic import strides
from designopt_knee.periodic.strides import Integrators

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
    outputs, _ = knee.evaluate(DESIGN, {"gait_period": 1.1, "gait_speed": 1.25}, set())
    assert outputs == fast.evaluate(DESIGN, {}, set())[0]
    assert outputs["rho"] != knee.evaluate(DESIGN, {}, set())[0]["rho"]


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


def test_a_walk_is_read_and_its_equations_are_made_once_for_all_designs(knee, monkeypatch):
    read, integrators = [], []
    monkeypatch.setattr(model, "read_gait", lambda *a, **k: read.append(k) or read_gait(*a, **k))
    monkeypatch.setattr(strides, "Integrators", lambda *a: integrators.append(a) or Integrators(*a))
    lines = [line.split(",") for line in bundled_text().splitlines() if line and not line.startswith("#")]
    text = "# period_s=1.232 belt_speed_m_s=1.015\n" + "\n".join(",".join(cells[:15]) for cells in lines)
    for stiffness in (17000.0, 18000.0, 19000.0):
        for scenario in (
            {"gait_file": InputFile("six.csv", text.encode())},
            {"gait_file": InputFile("six.csv", text.encode()), "gait_period": 1.3},
            {"gait_period": 1.3},
            {"gait_period": 1.3, "hip_hike": 1.003},
        ):
            knee.evaluate({**DESIGN, "stiffness": stiffness}, scenario, set())
    assert len(read) == 3
    assert len(integrators) == 1  # six harmonics; those of eight were there


def test_of_very_many_walks_the_oldest_are_dropped(knee, monkeypatch):
    monkeypatch.setattr(model, "_WALKS", 2)
    walks = [knee._walking({"gait_period": period}) for period in (1.20, 1.21, 1.22)]
    assert knee._walking({"gait_period": 1.22}) is walks[2]
    assert knee._walking({"gait_period": 1.20}) is not walks[0]
    assert len(knee._walks) == 2


@pytest.mark.parametrize(
    ("scenario", "name"),
    [
        ({"gait_period": -1.0}, "gait_period"),
        ({"gait_file": InputFile("walk.csv", b"phase,knee\n0,1\n")}, "gait_file"),
        ({"gait_speed": float("nan")}, "gait_speed"),
    ],
)
def test_a_walk_that_cannot_be_used_is_reported_by_its_condition(knee, scenario, name):
    with pytest.raises(InvalidSetting) as caught:
        knee.check_scenario(scenario)
    assert caught.value.name == name
