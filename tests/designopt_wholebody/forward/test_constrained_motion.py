"""The model of formulations, integrators and steps, and its study."""

from pathlib import Path

import numpy as np
import pytest
from designopt_wholebody.model.schema import PointSpring
from designopt_wholebody.models.constrained_motion import ConstrainedMotion

from designopt.plugin import InputFile, InvalidSetting
from designopt.study.load import study_from_file
from designopt.testing import check_model

STUDY = Path(__file__).parents[3] / "studies" / "forward_formulations.yaml"
LAP = {"formulation": "LAP", "step": 0.01}


def test_it_keeps_the_rules_for_models() -> None:
    designs = [LAP, {"formulation": "LE", "integrator": "adams", "step": 0.005}]
    check_model(ConstrainedMotion, designs=designs, scenarios=[{}, {"gravity": 1.62}], settings={"duration": 0.2})


def test_cost_and_errors_rank_the_methods_as_the_thesis_does() -> None:
    model = ConstrainedMotion(duration=0.5)
    model.check()
    outputs = {}
    for name, design in {
        "rule": {"formulation": "LC", "integrator": "trapezoidal", "step": 0.002},
        "adams": {"formulation": "LC", "integrator": "adams", "step": 0.002},
        "lap": {"formulation": "LAP", "step": 0.002},
    }.items():
        outputs[name], arrays = model.evaluate(design, {}, frozenset({"time", "error", "violation"}))  # type: ignore[arg-type]
        assert len(arrays["time"]) == len(arrays["error"]) == 251
        assert arrays["error"].max() == outputs[name]["position_error"]
    assert outputs["lap"]["position_violation"] < 1e-3 * outputs["adams"]["position_violation"]
    assert outputs["adams"]["position_error"] < 1e-2 * outputs["rule"]["position_error"]
    assert outputs["rule"]["systems"] > 2 * 250


def test_steps_that_end_before_their_tolerance_are_counted() -> None:
    """Round-off of the positions of two rods, about 1e-16 m, is above a tolerance of 1e-30 m in every step."""
    design = {"formulation": "LAP", "step": 0.01}
    loose = ConstrainedMotion(duration=0.1).evaluate(design, {})[0]  # type: ignore[arg-type]
    tight = ConstrainedMotion(duration=0.1, tolerance=1e-30).evaluate(design, {})[0]  # type: ignore[arg-type]
    assert loose["unconverged_steps"] == 0.0
    assert tight["unconverged_steps"] == 10.0
    exact = ConstrainedMotion(duration=0.1).evaluate({"formulation": "LE", "integrator": "bdf", "step": 0.01}, {})[0]  # type: ignore[arg-type]
    assert "unconverged_steps" not in exact


def test_springs_and_gravity_take_part() -> None:
    spring = PointSpring(("ground", "pivot"), ("lower", "tip"), stiffness=200.0, rest=1.5)
    plain, sprung = ConstrainedMotion(duration=0.3), ConstrainedMotion(duration=0.3, springs=(spring,))
    sprung.check()
    trajectories = [
        m.evaluate(LAP, s, frozenset({"coordinates"}))[1]["coordinates"] for m, s in ((plain, {}), (sprung, {}))
    ]  # type: ignore[arg-type]
    assert np.abs(trajectories[0] - trajectories[1]).max() > 0.01
    floating = plain.evaluate(LAP, {"gravity": 0.0}, frozenset({"coordinates"}))[1]["coordinates"]  # type: ignore[arg-type]
    assert np.ptp(floating, axis=0).max() < 1e-12


@pytest.mark.parametrize(
    ("settings", "name", "message"),
    [
        ({"body": "two_rod"}, "body", "did you mean 'two_rods'"),
        (
            {"model_file": InputFile("own.yaml", b"model: x\n")},
            "model_file",
            "line 1, column 1: 'landmarks' is missing",
        ),
        ({"springs": (PointSpring(("ground", "tip"), ("uper", "tip")),)}, "springs", "no segment 'uper'"),
        ({"springs": (PointSpring(("ground", "tip"), ("upper", "tip")),)}, "springs", "no landmark 'tip'"),
    ],
)
def test_settings_that_cannot_be_used_are_reported(settings: dict[str, object], name: str, message: str) -> None:
    with pytest.raises(InvalidSetting, match=message) as raised:
        ConstrainedMotion(**settings).check()  # type: ignore[arg-type]
    assert raised.value.name == name


def test_the_study_is_valid_and_asks_for_every_combination_once() -> None:
    study = study_from_file(STUDY)
    assert study.model.plugin.name == "constrained_motion"
    from designopt.problem import Problem

    assert len(Problem.from_study(study).space.names) == 3
