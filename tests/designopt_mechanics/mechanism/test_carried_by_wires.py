"""Wires that carry a motion share it with the least squares of tensions or by other criteria; joints carry their
pull."""

from typing import Any

import numpy as np
import pytest
from designopt_mechanics import Mechanism, solve
from designopt_mechanics.mechanism.loops import LoopSolver
from designopt_mechanics.model_file.reading import read
from designopt_mechanics.tasks.inverse_dynamics import InverseDynamicsTask
from designopt_mechanics.tasks.task import TaskSettings
from scipy.optimize import minimize_scalar

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


LIMITED = TEXT.replace("near: {", "near: {largest_tension: 200 N, ").replace("far: {", "far: {largest_tension: most, ")
LIMITED = LIMITED.replace("triceps: {", "triceps: {largest_tension: 300 N, ")
LIMITED = LIMITED.replace("coordinates:", "parameters: {most: {value: 400 N}}\ncoordinates:")
SHARES = [
    {"criterion": "power", "exponent": 3.0},
    {"criterion": "power", "exponent": 1.5},
    {"criterion": "quadratic_linear", "linear": 0.5},
    {"criterion": "soft_saturation"},
]


def limited(
    sharing: dict[str, object], motion: str = "4*time", duration: float = 0.2, **parameters: float
) -> dict[str, Any]:
    mechanism = read(LIMITED.encode(), "limited.yaml")
    settings = {"motion": {"elbow": motion}, "carried_by": ["near", "far", "triceps"], "samples": 3}
    return dict(solve(mechanism, "inverse_dynamics", parameters, **settings, sharing=sharing, duration=duration).arrays)


@pytest.mark.parametrize("sharing", SHARES)
def test_wires_share_by_the_criteria_of_muscles_relative_to_their_largest_tensions(sharing: dict[str, Any]) -> None:
    """The optimum on the line of tensions that balance: two wires of one moment, the third slack."""
    values = limited(sharing)
    for angle, near, far in zip(values["elbow"], values["tension_near"], values["tension_far"], strict=True):
        arms = [_arm(0.03, angle), _arm(0.06, angle)]
        moment = MOMENT * np.cos(angle)

        def cost(near: float, arms: list[float] = arms, moment: float = moment) -> float:
            a, b = near / 200.0, (moment - arms[0] * near) / arms[1] / 400.0
            match sharing["criterion"]:
                case "power":
                    return abs(a) ** sharing["exponent"] + abs(b) ** sharing["exponent"]
                case "quadratic_linear":
                    return a**2 + b**2 + 0.5 * (a + b)
            return -np.sqrt(1.0 - a * a) - np.sqrt(1.0 - b * b)

        best = minimize_scalar(
            cost, bounds=(0.0, min(199.0, moment / arms[0])), method="bounded", options={"xatol": 1e-9}
        )
        assert near == pytest.approx(best.x, rel=1e-3, abs=1e-3)
        assert arms[0] * near + arms[1] * far == pytest.approx(moment, rel=1e-6)
    np.testing.assert_allclose(values["tension_triceps"], 0.0, atol=1e-6)


def _arm(at: float, angle: float) -> float:
    """Of the wire from a point 1 m above to one on the forearm, both at the distance `at`: the cross product."""
    end, way = (
        at * np.array([np.cos(angle), np.sin(angle)]),
        np.array([at, 1.0]) - at * np.array([np.cos(angle), np.sin(angle)]),
    )
    return float((end[0] * way[1] - end[1] * way[0]) / np.linalg.norm(way))


@pytest.mark.parametrize("criterion", ["minmax", "strict_minmax"])
def test_the_largest_share_of_the_limits_is_least(criterion: str) -> None:
    values = limited({"criterion": criterion, "tie_break": 1e-6}, "0*time")
    share = MOMENT / (0.03 * 200.0 + 0.06 * 400.0)
    assert values["tension_near"][0] == pytest.approx(200.0 * share, rel=1e-3)
    assert values["tension_far"][0] == pytest.approx(400.0 * share, rel=1e-3)


def test_the_power_of_tensions_without_limits_is_that_of_the_closed_form(arm: Mechanism) -> None:
    sharing = {"criterion": "power", "exponent": 3.0}
    result = solve(
        arm, "inverse_dynamics", motion={"elbow": "0*time"}, carried_by=["near", "far"], sharing=sharing, samples=2
    )
    # t_i ~ sqrt(r_i) by stationarity
    weight = MOMENT / (0.03**1.5 + 0.06**1.5)
    assert result.arrays["tension_near"][0] == pytest.approx(weight * 0.03**0.5, rel=1e-6)
    assert result.arrays["tension_far"][0] == pytest.approx(weight * 0.06**0.5, rel=1e-6)


@pytest.mark.parametrize("sharing", [{}, *SHARES])
def test_derivatives_of_shared_tensions_by_a_limit_are_those_of_differences(sharing: dict[str, Any]) -> None:
    mechanism = read(LIMITED.encode(), "limited.yaml")
    settings = TaskSettings(
        mechanism, LoopSolver(mechanism), motion={"elbow": "4*time"}, carried_by=["near", "far", "triceps"],
        sharing=sharing, samples=3, duration=0.2,
    )  # fmt: skip
    task = InverseDynamicsTask(settings)
    slopes = task.gradient({"most": 400.0}, {}, ["most"])
    above, below = (task.evaluate({"most": 400.0 + step}, {}, set())[0] for step in (0.5, -0.5))
    for name in ("tension_near_mean", "tension_far_max", "force_forearm_rms"):
        assert slopes[name]["most"] == pytest.approx(above[name] - below[name], rel=1e-3, abs=1e-7)


def test_wires_that_are_too_weak_give_a_status_with_the_factor_that_would_do() -> None:
    needed, most = MOMENT + 0.07 * 260.0, 0.03 * 200.0 + 0.06 * 40.0
    with pytest.raises(Diverged, match=rf"largest tensions: at 0 s .* 'elbow'; {needed / most:.4g} times") as raised:
        limited({}, "130*time**2", duration=1e-3, most=40.0)
    assert raised.value.reason == "not_carried"


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        (TEXT, {"sharing": {"criterion": "soft_saturation"}}, "'soft_saturation' needs the largest_tension of each"),
        (TEXT, {"sharing": {"criterion": "pwoer"}}, "no criterion 'pwoer'"),
        (TEXT, {"sharing": {"exponnet": 3}}, "no setting 'exponnet'; did you mean 'exponent'"),
        (TEXT, {"sharing": {"exponent": 0.5}}, "exponent p is 0.5; it must be finite and at least 1"),
        (TEXT, {"sharing": {"exponent": 3}, "carried_by": []}, "about wires that carry the motion"),
        (LIMITED.replace("largest_tension: 300 N, ", ""), {}, "triceps: no largest_tension, which others have"),
    ],
)
def test_a_mistake_in_the_sharing_is_named(text: str, settings: dict[str, Any], message: str) -> None:
    stated = {"carried_by": ["near", "triceps"], "motion": {"elbow": "0*time"}, **settings}
    with pytest.raises(ValueError, match=message):
        solve(read(text.encode(), "arm.yaml"), "inverse_dynamics", **stated)
