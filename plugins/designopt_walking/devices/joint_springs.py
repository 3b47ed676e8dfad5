"""Springs and dampers about one joint: single-axis knee, elastic ankle, exoskeleton springs at hip and ankle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from designopt.dynamics import Variable
from designopt.lazy import casadi as ca
from designopt_walking.devices.device import Device, positive_part

#: Extension stop of a prosthetic knee, N m/rad, and damping of an elastic ankle, N m s/rad.
STOP, ANKLE_DAMPING = 1500.0, 1.0


def single_axis_knee(side: str) -> Device:
    """Spring and damper about the knee of a `side` ("r" or "l"), relaxed when straight, with an extension stop.

    Parameters: `knee_stiffness` (N m/rad), `knee_damping` (N m s/rad).
    """
    knee = f"knee_angle_{side}"

    def torques(q: Mapping[str, Any], dq: Mapping[str, Any], p: Mapping[str, Any]) -> dict[str, Any]:
        return {knee: -p["knee_stiffness"] * q[knee] - p["knee_damping"] * dq[knee] + stop_torque(q[knee])}

    parameters = (
        Variable("knee_stiffness", "N m/rad", 0.0, 60.0, "spring of the prosthetic knee"),
        Variable("knee_damping", "N m s/rad", 0.0, 20.0, "damper of the prosthetic knee"),
    )
    return Device("knee", (knee,), torques, parameters)


def stop_torque(angle: Any) -> Any:
    """N m of the extension stop at a knee `angle` (rad, flexion negative), flexing."""
    return -STOP * positive_part(angle, ca)


def elastic_ankle(side: str) -> Device:
    """Spring about the ankle of a `side`, relaxed in the neutral position, with little damping.

    Parameter: `ankle_stiffness` (N m/rad).
    """
    ankle = f"ankle_angle_{side}"

    def torques(q: Mapping[str, Any], dq: Mapping[str, Any], p: Mapping[str, Any]) -> dict[str, Any]:
        return {ankle: -p["ankle_stiffness"] * q[ankle] - ANKLE_DAMPING * dq[ankle]}

    stiffness = Variable("ankle_stiffness", "N m/rad", 50.0, 1000.0, "spring of the prosthetic ankle")
    return Device("ankle", (ankle,), torques, (stiffness,))


def hip_springs() -> Device:
    """Equal springs at both hips; parameters `spring_stiffness` (N m/rad) and `spring_rest` (rad)."""
    coordinates = ("hip_flexion_r", "hip_flexion_l")

    def torques(q: Mapping[str, Any], dq: Mapping[str, Any], p: Mapping[str, Any]) -> dict[str, Any]:
        return {name: -p["spring_stiffness"] * (q[name] - p["spring_rest"]) for name in coordinates}

    return Device("spring", coordinates, torques, _spring_parameters("hip"))


def ankle_springs() -> Device:
    """Equal springs at both ankles that act beyond the rest angle in dorsiflexion alone.

    Parameters `spring_stiffness` (N m/rad) and `spring_rest` (rad).
    """
    coordinates = ("ankle_angle_r", "ankle_angle_l")

    def torques(q: Mapping[str, Any], dq: Mapping[str, Any], p: Mapping[str, Any]) -> dict[str, Any]:
        return {n: -p["spring_stiffness"] * positive_part(q[n] - p["spring_rest"], ca) for n in coordinates}

    return Device("spring", coordinates, torques, _spring_parameters("ankle"))


def _spring_parameters(joint: str) -> tuple[Variable, ...]:
    return (
        Variable("spring_stiffness", "N m/rad", 0.0, 300.0, f"spring at each {joint}"),
        Variable("spring_rest", "rad", -0.3, 0.6, f"{joint} angle at which the spring is relaxed"),
    )
