"""Wires that carry a motion share it with the least squares of tensions, and joints carry what they pull."""

from __future__ import annotations

import numpy as np
import pytest
from designopt_mechanics import Mechanism, solve
from designopt_mechanics.model_file.reading import read

from designopt.plugin import Diverged

TEXT = """
gravity: [0, -9.81, 0]
coordinates: {elbow: {unit: rad, reference: 0}}
frames:
  forearm: {motions: [rotate: {axis: [0, 0, 1], by: elbow}], body: {mass: 1.5, centre: [0.2, 0, 0], inertia: 0.01}}
wires:
  near: {points: [{on: ground, at: [0.03, 1, 0]}, {on: forearm, at: [0.03, 0, 0]}]}
  far: {points: [{on: ground, at: [0.06, 1, 0]}, {on: forearm, at: [0.06, 0, 0]}]}
  triceps: {points: [{on: ground, at: [-0.02, 1, 0]}, {on: forearm, at: [-0.02, 0, 0]}]}
"""
MOMENT = 1.5 * 9.81 * 0.2


@pytest.fixture(scope="module")
def arm() -> Mechanism:
    return read(TEXT.encode(), "arm.yaml")


def still(arm: Mechanism, wires: list[str], motion: str = "0*time") -> dict[str, float]:
    result = solve(arm, "inverse_dynamics", motion={"elbow": motion}, carried_by=wires, samples=2)
    return {name: float(column[0]) for name, column in result.arrays.items() if name != "scene"}


def test_two_wires_share_a_moment_in_proportion_to_their_arms(arm: Mechanism) -> None:
    values = still(arm, ["near", "far", "triceps"])
    square = 0.03**2 + 0.06**2
    assert values["tension_near"] == pytest.approx(MOMENT * 0.03 / square, rel=1e-8)
    assert values["tension_far"] == pytest.approx(MOMENT * 0.06 / square, rel=1e-8)
    assert values["tension_triceps"] == pytest.approx(0.0, abs=1e-9)
    assert values["effort_elbow"] == pytest.approx(0.0, abs=1e-8)
    pulled = values["tension_near"] + values["tension_far"]
    assert values["force_forearm"] == pytest.approx(pulled - 1.5 * 9.81, rel=1e-8)


def test_one_wire_carries_all_and_the_joint_is_pressed_more(arm: Mechanism) -> None:
    values = still(arm, ["near"])
    assert values["tension_near"] == pytest.approx(MOMENT / 0.03, rel=1e-8)
    assert values["force_forearm"] == pytest.approx(MOMENT / 0.03 - 1.5 * 9.81, rel=1e-8)


def test_wires_that_would_have_to_push_give_a_status_with_the_deficit(arm: Mechanism) -> None:
    with pytest.raises(
        Diverged, match=r"triceps do not carry the motion: at 0 s 2\.94 N m .* missing at 'elbow'"
    ) as raised:
        still(arm, ["triceps"])
    assert raised.value.reason == "not_carried"
    with pytest.raises(ValueError, match="no wire 'nar'; did you mean 'near'"):
        still(arm, ["nar"])


def test_a_faster_motion_needs_more_tension(arm: Mechanism) -> None:
    assert still(arm, ["near"], "5*time**2")["tension_near"] == pytest.approx((MOMENT + 10 * 0.07) / 0.03, rel=1e-8)
    assert np.isfinite(list(still(arm, ["near", "far"], "5*time**2").values())).all()
