"""The text of an MJCF file: default classes, units of angles, and orientations in their five forms."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from designopt.arrays import Floats
from designopt_mechanics.robot_files.parts import LocalPose, rotation_from, rotation_from_quaternion
from designopt_mechanics.robot_files.xml import Element

#: Attributes that state an orientation; an element has one of them.
_ORIENTATIONS = ("quat", "axisangle", "euler", "xyaxes", "zaxis")
_ZEROS = (0.0, 0.0, 0.0)
_MAIN = "main"


@dataclass
class MjcfText:
    """Settings of <compiler>, and the attributes of the default classes by class and tag."""

    to_rad: float = math.pi / 180.0
    eulerseq: str = "xyz"
    autolimits: bool = True
    inertia_from_geom: str = "auto"
    total_mass: float = 0.0
    defaults: dict[str, dict[str, dict[str, str]]] = field(default_factory=lambda: {_MAIN: {}})

    def read_compiler(self, compiler: Element) -> None:
        """Raises `ModelError` for settings whose meaning is not known here."""
        attributes = compiler.attributes
        if attributes.get("coordinate", "local") != "local":
            raise compiler.error("coordinate must be local; convert the file with a version of MuJoCo before 3.0")
        for key in ("boundmass", "boundinertia", "inertiagrouprange"):
            if key in attributes:
                raise compiler.error(f"{key} is not read; write masses and inertias as <inertial> of the bodies")
        if "angle" in attributes:
            self.to_rad = 1.0 if attributes["angle"] == "radian" else math.pi / 180.0
        self.eulerseq = attributes.get("eulerseq", self.eulerseq)
        if not re.fullmatch("[xyz]{3}|[XYZ]{3}", self.eulerseq):
            raise compiler.error(f"eulerseq '{self.eulerseq}' is not three of x, y, z, or three of X, Y, Z")
        self.autolimits = attributes.get("autolimits", "true") == "true"
        self.inertia_from_geom = attributes.get("inertiafromgeom", self.inertia_from_geom)
        (self.total_mass,) = compiler.attribute("settotalmass", (1,), (self.total_mass,))

    def read_defaults(self, element: Element, above: str = "") -> None:
        """A <default> and those within it; a class inherits from the one above."""
        name = element.attributes.get("class", "" if above else _MAIN)
        if not name:
            raise element.error("a default within a default has no class")
        parent_defaults = self.defaults.get(name, {}) if not above else self.defaults[above]
        entries = {tag: dict(attributes) for tag, attributes in parent_defaults.items()}
        for child in element.children:
            if child.tag != "default":
                entries.setdefault(child.tag, {}).update(child.attributes)
        self.defaults[name] = entries
        for child in element.children:
            if child.tag == "default":
                self.read_defaults(child, name)

    def with_defaults(self, element: Element, child_class: str) -> Element:
        """The element with the attributes of its class, or of `child_class`, that it does not state."""
        name = element.attributes.get("class", child_class or _MAIN)
        if name not in self.defaults:
            raise element.error(f"there is no default class '{name}'")
        defaults: Mapping[str, str] = self.defaults[name].get(element.tag, {})
        if any(key in element.attributes for key in _ORIENTATIONS):
            defaults = {key: value for key, value in defaults.items() if key not in _ORIENTATIONS}
        return replace(element, attributes={**defaults, **element.attributes})

    def pose(self, element: Element) -> LocalPose:
        """`pos` and orientation of an element, or those of its `fromto`."""
        if "fromto" in element.attributes:
            ends = np.array(element.attribute("fromto", (6,))).reshape(2, 3)
            return LocalPose(ends.mean(axis=0), _turn_z_to(element, ends[1] - ends[0]))
        return LocalPose(np.array(element.attribute("pos", (3,), _ZEROS)), self._turn(element))

    def _turn(self, element: Element) -> Floats:
        keys = [key for key in _ORIENTATIONS if key in element.attributes]
        if len(keys) > 1:
            raise element.error(f"has two orientations: {', '.join(keys)}")
        match keys:
            case ["quat"]:
                quaternion = np.array(element.attribute("quat", (4,)))
                if not np.linalg.norm(quaternion) > 1e-9:
                    raise element.error("quat has the length 0")
                return rotation_from_quaternion(quaternion)
            case ["axisangle"]:
                values = np.array(element.attribute("axisangle", (4,)))
                axis = values[:3] / (np.linalg.norm(values[:3]) or 1.0)
                half = 0.5 * self.to_rad * values[3]
                return rotation_from_quaternion(np.r_[np.cos(half), np.sin(half) * axis])
            case ["euler"]:
                return rotation_from(self.eulerseq, self.to_rad * np.array(element.attribute("euler", (3,))))
            case ["xyaxes"]:
                x, y = np.array(element.attribute("xyaxes", (6,))).reshape(2, 3)
                x = x / np.linalg.norm(x)
                y = y - (x @ y) * x
                y = y / np.linalg.norm(y)
                return np.column_stack([x, y, np.cross(x, y)])
            case ["zaxis"]:
                return _turn_z_to(element, np.array(element.attribute("zaxis", (3,))))
        return np.eye(3)


def _turn_z_to(element: Element, direction: Floats) -> Floats:
    """The smallest turn of the z axis to a direction."""
    length = float(np.linalg.norm(direction))
    if not length > 1e-12:
        raise element.error("has an axis of length 0")
    x, y, z = (float(v) for v in direction / length)
    if z < -1.0 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    # half-way quaternion of the z axis and the direction
    return rotation_from_quaternion(np.array([1.0 + z, -y, x, 0.0]))
