"""Lengths, masses and inertias that a leg may have, and the units in which they are stated by mistake."""

from __future__ import annotations

from collections.abc import Mapping

from designopt.plugin import InvalidSetting
from designopt_knee.parameters import quantities

#: Least and greatest values (SI units) of a leg, natural or not. Masses: shares of the body's of 0.0465 and 0.0145
#: (Winter 2009, table 4.1) with 10 to 250 kg have 0.5 to 12 kg and 0.15 to 3.6 kg; a prosthesis may be lighter.
#: Inertias: those of rods of these masses and lengths.
_RANGES = {
    "thigh_length": (0.15, 0.7),
    "shank_length": (0.15, 0.8),
    "foot_length": (0.05, 0.5),
    "shank_mass": (0.2, 15.0),
    "foot_mass": (0.05, 5.0),
    "shank_inertia": (4e-4, 0.8),
    "foot_inertia": (1e-5, 0.07),
}
#: Factor beyond the greatest value from which on a number is refused: the stop was driven through with all dampers
#: tried on a shank of 40 kg, and with some on 20 kg.
_TOO_LARGE = 2.0
#: Other units of a quantity, with their sizes in the model's.
_UNITS = {
    "m": {"cm": 1e-2, "mm": 1e-3},
    "kg": {"g": 1e-3},
    "kg m^2": {"kg cm^2": 1e-4, "kg mm^2": 1e-6, "g cm^2": 1e-7},
}


def check_units(g: Mapping[str, float], prefix: str = "") -> None:
    """Raise `InvalidSetting`, its name after `prefix`, for a number of the leg `g` that is far too large, or that of a
    leg in another unit: no damper lets such a leg walk."""
    for name, (low, high) in _RANGES.items():
        unit, value = quantities()[name].unit, g[name]
        other_unit = next((u for u, size in _UNITS[unit].items() if low <= size * value <= high), "")
        if value > high and (other_unit or value > _TOO_LARGE * high):
            question = f": is it in {other_unit}? Write '{value:g} {other_unit}'" if other_unit else ""
            message = f"{value:g} {unit}, and that of a leg is {low:g} to {high:g} {unit}{question}"
            raise InvalidSetting(f"{prefix}{name}", message)


def range_remarks(g: Mapping[str, float]) -> list[str]:
    """A sentence on each number of the leg `g` that no leg has."""
    return [
        f"parameters: {name} is {g[name]:.4g} {quantities()[name].unit}, and that of a person {low:g} to {high:g}"
        f" {quantities()[name].unit}: is it in another unit?"
        for name, (low, high) in _RANGES.items()
        if not low <= g[name] <= high
    ]
