"""What acts along a coordinate of a model file: damping, friction, a spring, stops at its range, gear and limits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from designopt_mechanics.coordinate_laws import CoordinateLaw, CoordinateLawError
from designopt_mechanics.model_file.nodes import LocatedNode

#: Units of the numbers of a coordinate in rad and in m.
_UNITS = {
    "damping": {"rad": "N m s/rad", "m": "N s/m"},
    "friction": {"rad": "N m", "m": "N"},
    "friction_speed": {"rad": "rad/s", "m": "m/s"},
    "stiffness": {"rad": "N m/rad", "m": "N/m"},
    "rest": {"rad": "rad", "m": "m"},
    "largest_effort": {"rad": "N m", "m": "N"},
    "largest_speed": {"rad": "rad/s", "m": "m/s"},
}
_STOP_UNITS = {
    "stiffness": {"rad": "N m/rad", "m": "N/m"},
    "dissipation": {"rad": "s/rad", "m": "s/m"},
    "softness": {"rad": "rad", "m": "m"},
}
#: Numbers that no parameter of the file may stand for: they shape the solution, or bound it.
_FIXED = ("friction_speed", "softness", "largest_effort", "largest_speed")
#: Entries of a coordinate that state a law.
LAW_KEYS = (*_UNITS, "stops", "gear")


def law(entries: Mapping[str, LocatedNode], unit: str) -> CoordinateLaw | None:
    """The law in the `entries` of a coordinate in `unit`, None when they state none."""
    keys = [key for key in LAW_KEYS if key in entries]
    if not keys:
        return None
    values = {key: _number(key, entries[key], _UNITS[key][unit]) for key in keys if key in _UNITS}
    if "stops" in entries:
        for key, entry in entries["stops"].mapping(("stiffness",), ("dissipation", "softness")).items():
            values[f"stop_{key}"] = _number(key, entry, _STOP_UNITS[key][unit])
        if "range" not in entries:
            raise entries["stops"].wrong("stops act at the ends of the range; give range: [low, high]")
        values["stops"] = tuple(item.number(unit) for item in entries["range"].items(2))
    if "gear" in entries:
        gear = _gear(entries["gear"])
        values["ratio"] = _number("ratio", gear["ratio"], "")
    try:
        return CoordinateLaw(**values)
    except CoordinateLawError as error:
        raise entries.get(error.field, entries[keys[0]]).wrong(f"{error.field}: {error.message}") from None


def gear_inertia(entries: Mapping[str, LocatedNode], unit: str) -> Any:
    """The inertia (kg m^2 or kg) of the rotor at the coordinate, behind its gear: ratio^2 times that of the rotor."""
    if "gear" not in entries:
        return 0.0
    gear = _gear(entries["gear"])
    if "rotor" not in gear:
        return 0.0
    inertia = _number("rotor", gear["rotor"], "kg m^2" if unit == "rad" else "kg")
    if isinstance(inertia, float) and not 0.0 <= inertia < math.inf:
        raise gear["rotor"].wrong(f"{inertia:g} is negative")
    return _number("ratio", gear["ratio"], "") ** 2 * inertia


def _gear(at: LocatedNode) -> dict[str, LocatedNode]:
    return at.mapping(("ratio",), ("rotor",))


def _number(key: str, at: LocatedNode, unit: str) -> Any:
    return at.number(unit) if key in _FIXED else at.quantity(unit)
