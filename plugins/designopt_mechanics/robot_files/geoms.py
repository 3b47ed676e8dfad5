"""Mass and inertia of bodies from the geoms of MJCF: solid spheres, capsules, cylinders, boxes and ellipsoids."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt_mechanics.robot_files.parts import LocalPose
from designopt_mechanics.robot_files.xml import Element

#: kg/m^3 of a geom that states neither mass nor density.
_WATER = 1000.0
#: Numbers in the size of each kind; with `fromto` the last one, half the length, is left out.
_SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
#: Kinds without volume.
NO_VOLUME = ("plane", "hfield", "sdf")


@dataclass(frozen=True, eq=False)
class MassPart:
    """`mass` (kg), `centre` (3) m and `inertia` (3, 3) about it, in the axes of the body."""

    mass: float
    centre: Floats
    inertia: Floats


def geom_mass(geom: Element, pose: LocalPose) -> MassPart:
    """The mass of one geom, with the attributes of its class, at `pose` in its body. Raises `ModelError` for other
    kinds."""
    attributes = geom.attributes
    kind = attributes.get("type", "sphere")
    if kind not in _SIZES:
        raise geom.error(f"the inertia of a {kind} is not known here; give the body an <inertial>")
    if attributes.get("shellinertia", "false") == "true":
        raise geom.error("the inertia of a shell is not known here; give the body an <inertial>")
    size = np.array(geom.attribute("size", (1, 2, 3)))
    if "fromto" in attributes:
        ends = np.array(geom.attribute("fromto", (6,))).reshape(2, 3)
        half = 0.5 * float(np.linalg.norm(ends[1] - ends[0]))
        size = np.r_[size[:1], size[:1], half] if _SIZES[kind] == 3 else np.r_[size[:1], half]
    if len(size) < _SIZES[kind] or not (size[: _SIZES[kind]] > 0.0).all():
        raise geom.error(f"size needs {_SIZES[kind]} positive numbers for a {kind}")
    try:
        volume, moments = _SOLIDS[kind](size)
    except (OverflowError, ZeroDivisionError):
        raise geom.error(f"size {size.tolist()} is beyond what numbers can hold") from None
    mass = geom.attribute("density", (1,), (_WATER,))[0] * volume
    if "mass" in attributes:
        (mass,) = geom.attribute("mass", (1,))
    if mass < 0.0:
        raise geom.error("has a negative mass")
    return MassPart(mass, pose.position, pose.turn @ np.diag(mass * np.array(moments)) @ pose.turn.T)


def combined_mass(parts: list[MassPart]) -> MassPart:
    """The mass, common centre and inertia about it of several parts."""
    mass = sum(part.mass for part in parts)
    if mass == 0.0:
        return MassPart(0.0, np.zeros(3), np.zeros((3, 3)))
    centre = np.asarray(sum(part.mass * part.centre for part in parts) / mass)
    inertia = np.zeros((3, 3))
    for part in parts:
        d = part.centre - centre
        inertia += part.inertia + part.mass * (d @ d * np.eye(3) - np.outer(d, d))
    return MassPart(mass, centre, inertia)


def _ellipsoid(size: Floats) -> tuple[float, tuple[float, float, float]]:
    a, b, c = (float(v) ** 2 for v in size[:3])
    return 4.0 / 3.0 * math.pi * math.sqrt(a * b * c), ((b + c) / 5.0, (a + c) / 5.0, (a + b) / 5.0)


def _box(size: Floats) -> tuple[float, tuple[float, float, float]]:
    a, b, c = (float(v) ** 2 for v in size[:3])
    return 8.0 * math.sqrt(a * b * c), ((b + c) / 3.0, (a + c) / 3.0, (a + b) / 3.0)


def _cylinder(size: Floats) -> tuple[float, tuple[float, float, float]]:
    r, h = float(size[0]), 2.0 * float(size[1])
    across = (3.0 * r**2 + h**2) / 12.0
    return math.pi * r**2 * h, (across, across, r**2 / 2.0)


def _capsule(size: Floats) -> tuple[float, tuple[float, float, float]]:
    """A cylinder with two half spheres, whose centres are 3 r / 8 beyond its ends."""
    r, h = float(size[0]), 2.0 * float(size[1])
    ball, tube = 4.0 / 3.0 * math.pi * r**3, math.pi * r**2 * h
    volume = ball + tube
    across = tube * (3.0 * r**2 + h**2) / 12.0 + ball * (2.0 * r**2 / 5.0 + h**2 / 4.0 + 3.0 * r * h / 8.0)
    along = tube * r**2 / 2.0 + ball * 2.0 * r**2 / 5.0
    return volume, (across / volume, across / volume, along / volume)


#: Volume and principal moments per mass of each kind, from its size.
_SOLIDS = {
    "sphere": lambda size: _ellipsoid(np.repeat(size[:1], 3)),
    "ellipsoid": _ellipsoid,
    "box": _box,
    "cylinder": _cylinder,
    "capsule": _capsule,
}
