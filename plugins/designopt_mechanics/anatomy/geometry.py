"""Geometry from a VRML file: reference placements of bones and virtual links, and wires as points on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.arrays import Floats

#: Section of the file by kind of wire.
SECTIONS: Mapping[str, str] = {"Mus": "muscles", "Ten": "tendons", "Lig": "ligamenta"}


@dataclass(frozen=True)
class FixedPoint:
    """A point of a wire: the link that it is fixed to, and its place (3) m in the reference posture, in world axes."""

    link: str
    position: tuple[float, float, float]


@dataclass(frozen=True)
class Strand:
    """A wire ``<side>_<kind>_<id>`` with points from origin to end."""

    name: str
    points: tuple[FixedPoint, ...]

    @property
    def kind(self) -> str:
        """Mus, Ten or Lig."""
        return self.name.split("_")[1]


@dataclass(frozen=True, eq=False)
class Geometry:
    """Placements (4, 4) of bones and virtual links in the reference posture by name, and wires in file order."""

    bones: Mapping[str, Floats]
    virtual: Mapping[str, Floats]
    wires: tuple[Strand, ...]


def placement(fields: Mapping[str, Any]) -> Floats:
    """The transform of VRML fields: p' = T C R S C^-1 p."""
    transform = np.eye(4)
    transform[:3, 3] = fields.get("translation", (0.0, 0.0, 0.0))
    centre = np.array(fields.get("center", (0.0, 0.0, 0.0)), dtype=np.float64)
    x, y, z, angle = fields.get("rotation", (0.0, 0.0, 1.0, 0.0))
    linear = turn((x, y, z), angle) @ np.diag(fields.get("scale", (1.0, 1.0, 1.0)))
    transform[:3, :3] = linear
    transform[:3, 3] += centre - linear @ centre
    return transform


def turn(axis: Any, angle: float) -> Floats:
    """(3, 3) by the angle (rad) about an axis of any length; a zero axis makes no turn."""
    direction = np.asarray(axis, dtype=np.float64)
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        return np.eye(3)
    x, y, z = direction / length
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    rotation: Floats = np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K
    return rotation
