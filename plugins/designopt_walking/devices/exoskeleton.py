"""Exoskeleton springs on both legs by the names that a study uses, and the mass that they add."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from designopt_muscle.osim.model import OsimModel

from designopt.dynamics import Variable
from designopt_walking.devices.joint_springs import device_forces, positive_part
from designopt_walking.walker import Device, DeviceForces, Walker


def hip_springs(walker: Walker) -> DeviceForces:
    """Equal springs at both hips; parameters `spring_stiffness` (N m/rad) and `spring_rest` (rad)."""
    return _both_sides(walker, "hip_flexion", lambda stretch: stretch)


def ankle_springs(walker: Walker) -> DeviceForces:
    """Equal springs at both ankles that act in dorsiflexion alone, from the rest angle on.

    Parameters `spring_stiffness` (N m/rad) and `spring_rest` (rad).
    """
    return _both_sides(walker, "ankle_angle", positive_part)


#: Devices of symmetric walkers by name, and the body of each side whose mass centre carries a device's mass.
DEVICES: Mapping[str, Device] = {"hip_springs": hip_springs, "ankle_springs": ankle_springs}
CARRIERS: Mapping[str, str] = {"hip_springs": "femur", "ankle_springs": "tibia"}


def with_device_mass(model: OsimModel, device: str, mass: float) -> OsimModel:
    """The model with `mass` (kg) on each leg, at the mass centre of the thigh or the shank that carries the device.

    Raises `ValueError` for an unknown device, a negative mass, or a model without that body.
    """
    if device not in CARRIERS:
        raise ValueError(f"no device '{device}' (known: {', '.join(CARRIERS)})")
    if not 0.0 <= mass < float("inf"):
        raise ValueError(f"mass: {mass:g} kg is not finite and at least 0")
    carriers = {f"{CARRIERS[device]}_{side}" for side in "rl"}
    if lacking := sorted(carriers - {b.name for b in model.bodies}):
        raise ValueError(f"the model has no body '{lacking[0]}' to carry the device")
    bodies = tuple(replace(b, mass=b.mass + mass) if b.name in carriers else b for b in model.bodies)
    return replace(model, bodies=bodies)


def _both_sides(walker: Walker, joint: str, acting: Callable[[Any], Any]) -> DeviceForces:
    angles = {name: walker.state.named[name] for name in (f"{joint}_r", f"{joint}_l")}
    k = Variable("spring_stiffness", "N m/rad", 0.0, 300.0, "spring on each side")
    rest_angle = Variable("spring_rest", "rad", -0.3, 0.6, "angle at which the springs are relaxed")
    return device_forces((k, rest_angle), lambda k, rest: {name: -k * acting(q - rest) for name, q in angles.items()})
