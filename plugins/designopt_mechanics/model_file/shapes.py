"""Bodies of a mechanism file from their shape and density: a longer link is heavier."""

from __future__ import annotations

import math
from typing import Any

from designopt_mechanics.body import DENSEST, Body, is_number
from designopt_mechanics.model_file.nodes import LocatedNode, tuple_or_column

#: Lengths (m) of each shape. A bar is solid, round or rectangular; a tube is round; a plate is a rectangle.
SHAPES = {
    "bar": (("length",), ("diameter", "width", "height")),
    "tube": (("length", "outer", "inner"), ()),
    "plate": (("length", "width", "thickness"), ()),
}
_AXES = ("x", "y", "z")
#: kg/m^3 of light foams, below which a number states its unit.
_LIGHTEST = 25.0


def shaped_body(shape: str, at: LocatedNode) -> Body:
    """The body in ``{bar: {length, diameter}, density}``.

    Bars and tubes lie `along` an axis of the frame, x by default, and begin at its origin; a plate has its length along
    it, its width along the next axis and its corner there. `centre` (3) m states another centre of mass.
    """
    entries = at.mapping((shape, "density"), ("along", "centre"))
    required_keys, possible = SHAPES[shape]
    parts = entries[shape].mapping(required_keys, possible)
    size = {name: _length(entry) for name, entry in parts.items()}
    density = _density(entries["density"])
    along = _AXES.index(entries["along"].word(_AXES)) if "along" in entries else 0
    length = size["length"]
    if shape == "tube":
        inner, outer = size["inner"], size["outer"]
        if is_number(inner) and is_number(outer) and not inner < outer:
            raise parts["inner"].wrong(f"{inner:g} m is not less than the outer diameter {outer:g} m")
        mass = density * math.pi * (outer**2 - inner**2) * length / 4.0
        across = ((outer**2 + inner**2) / 16.0,) * 2
    elif shape == "bar" and "diameter" in size:
        if len(size) > 2:
            raise entries[shape].wrong("a bar has a diameter, or width and height")
        mass = density * math.pi * size["diameter"] ** 2 * length / 4.0
        across = (size["diameter"] ** 2 / 16.0,) * 2
    else:
        names = ("width", "height") if shape == "bar" else ("width", "thickness")
        if any(name not in size for name in names):
            raise entries[shape].wrong("a bar has a diameter, or width and height")
        mass = density * size[names[0]] * size[names[1]] * length
        across = (size[names[0]] ** 2 / 12.0, size[names[1]] ** 2 / 12.0)
    squares: list[Any] = [0.0, 0.0, 0.0]  # mean squares of the positions along the axes
    squares[along], squares[(along + 1) % 3], squares[(along + 2) % 3] = length**2 / 12.0, *across
    inertia = tuple(mass * (sum(squares) - square) for square in squares)
    centre: list[Any] = [0.0, 0.0, 0.0]
    centre[along] = 0.5 * length
    if shape == "plate":
        centre[(along + 1) % 3] = 0.5 * size["width"]
    if "centre" in entries:
        return Body(mass, entries["centre"].quantities("m"), inertia)
    return Body(mass, tuple_or_column(centre), inertia)


def _density(at: LocatedNode) -> Any:
    density = at.quantity("kg/m^3")
    if is_number(density) and not density > 0.0:
        raise at.wrong(f"{density:g} kg/m^3 is not a density")
    if is_number(density) and density > DENSEST:
        raise at.wrong(
            f"{density:g} kg/m^3 is denser than any material (steel: 7850 kg/m^3, 7.85 g/cm^3): check its unit; "
            "a body that carries more than its shape states mass, centre and inertia"
        )
    if isinstance(at.node.scalar, float | int) and density < _LIGHTEST:
        raise at.wrong(
            f"{density:g} without a unit is in kg/m^3, less than a light foam: "
            f"write {density:g} g/cm^3, or {density:g} kg/m^3 if it is meant"
        )
    return density


def _length(at: LocatedNode) -> Any:
    length = at.quantity("m")
    if is_number(length) and not length >= 0.0:
        raise at.wrong(f"{length:g} m is not a length")
    return length
