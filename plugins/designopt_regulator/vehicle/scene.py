"""A scenario's vehicle on its ground as numbers, and whether it can hold its speeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.plugin import InvalidDesign
from designopt_regulator.vehicle import soil
from designopt_regulator.vehicle.equations import GRAVITY, Vehicle, VehicleNumbers, missing_force
from designopt_regulator.vehicle.refinements import refined_numbers
from designopt_regulator.vehicle.soil import SoftGround
from designopt_regulator.vehicle.terrains import TERRAINS

_COEFFICIENTS = ("rolling", "turning", "adhesion")


def numbers_in(scenario: Mapping[str, Any], v: Vehicle, soft_ground: SoftGround | None) -> dict[str, float]:
    """The values of `equations.plant` for the vehicle `v` in a scenario; raises `InvalidDesign` for impossible ones."""
    mass = scenario.get("mass_factor", 1.0)
    numbers = {
        "mass": v.mass * mass,
        "rotating_mass_factor": scenario.get("rotating_mass_factor", v.rotating_mass_factor),
        "yaw_inertia": v.yaw_inertia * mass * scenario.get("yaw_inertia_factor", 1.0),
        "track_distance": v.track_distance,
        "contact_length": v.contact_length,
        "max_force": v.max_force * scenario.get("force_factor", 1.0),
        "power": v.power * scenario.get("power_factor", 1.0),
        "lag": scenario.get("lag", v.lag),
        "air_drag": v.air_drag,
    }
    terrain = TERRAINS[scenario["terrain"]]
    for name in _COEFFICIENTS:
        numbers[name] = getattr(terrain, name)
        if name in scenario and f"{name}_at" in scenario:
            raise InvalidDesign(f"{name}: give it or {name}_at, not both")
        if f"{name}_at" in scenario:
            low, high = getattr(terrain, f"{name}_range")
            numbers[name] = low + scenario[f"{name}_at"] * (high - low)
        numbers[name] = scenario.get(name, numbers[name])
    if soft_ground is not None:
        if names := [name for name in ("adhesion", "adhesion_at") if name in scenario]:
            raise InvalidDesign(f"{names[0]}: the adhesion is the soil's with 'soft_ground'")
        ground, tracks = soil.SOILS[soft_ground.soil], on_tracks(v, numbers["mass"])
        numbers["rolling"] += soil.compaction(ground, *tracks)
        numbers["adhesion"] = soil.traction(ground, *tracks, slip=soft_ground.slip)
        if "shear_modulus" in scenario:
            raise InvalidDesign(
                "shear_modulus: soft_ground takes the traction at a fixed slip; remove one of them "
                "(a scenario has rolling and adhesion of its own)"
            )
    for name, value in numbers.items():
        if not (np.isfinite(value) and (value > 0.0 or (value == 0.0 and name in ("air_drag", "rolling")))):
            raise InvalidDesign(f"{name}: {value:g} must be above 0")
    return numbers | refined_numbers(numbers, scenario)


def on_tracks(v: Vehicle, mass: float) -> tuple[float, float, float]:
    """Weight (N) of a `mass` (kg) on the tracks, their width and their length (m)."""
    return mass * GRAVITY, v.track_width, v.contact_length


def check_speeds(p: VehicleNumbers, before: tuple[float, float], after: tuple[float, float], terrain: str) -> None:
    """Raise `InvalidDesign` for pairs of speed (m/s) and grade that a vehicle cannot hold."""
    for speed, grade in (before, after):
        if not speed > 0.0:
            raise InvalidDesign(f"speed: {speed:g} m/s must be above 0, before and after the step")
        missing = float(missing_force(p, np.array([speed]), np.array([grade]))[0])
        if missing > 0.0:
            raise InvalidDesign(
                f"speed: {speed:g} m/s cannot be held on {terrain} with grade {grade:g}: "
                f"{missing / 1e3:.3g} kN of traction are missing"
            )
