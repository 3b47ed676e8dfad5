"""Rods of an operator with an exoskeleton, from published tables.

Masses, centres of mass and radii of gyration: Dempster (1955) in Winter, Biomechanics and Motor Control of Human
Movement, table 4.1. Lengths by stature: Drillis and Contini (1966), in Winter, figure 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from designopt_mechanics.rods.tree import Rod, RodTree

Size = Literal[5, 11]

GRAVITY = (0.0, -9.81, 0.0)
#: The exoskeleton adds this share of the mass of each segment of the legs, placed like it.
ADDED = 0.15


@dataclass(frozen=True)
class SegmentShares:
    """Share of the body's mass; length by stature; centre from the upper end and radius of gyration, by length."""

    mass: float
    length: float
    centre: float
    gyration: float


THIGH = SegmentShares(0.100, 0.245, 0.433, 0.323)
SHANK = SegmentShares(0.0465, 0.246, 0.433, 0.302)
#: Shank with foot, as table 4.1 has them together.
LOWER_LEG = SegmentShares(0.061, 0.246, 0.606, 0.416)
#: Ankle to toe joint; the length is two thirds of the foot's 0.152.
FOOT = SegmentShares(0.0145, 0.101, 0.500, 0.475)
#: Head, arms and trunk, and head and trunk; from hip to shoulder, centre from the hip.
UPPER_BODY = SegmentShares(0.678, 0.288, 0.626, 0.496)
TRUNK = SegmentShares(0.578, 0.288, 0.660, 0.503)
UPPER_ARM = SegmentShares(0.028, 0.186, 0.436, 0.322)
FOREARM = SegmentShares(0.022, 0.146, 0.682, 0.468)


@dataclass(frozen=True)
class Build:
    """Rods and how their joints hang together.

    `joints` are the rods' predecessors in the chain of joints (-1: ground): swing thigh on trunk, for instance, though
    both begin at the hip. `driven` are the numbers of rods whose joint has a drive; the other joints have springs.
    """

    tree: RodTree
    joints: tuple[int, ...]
    driven: tuple[int, ...]

    @property
    def legs(self) -> tuple[int, ...]:
        """Numbers of the rods that are links of the exoskeleton: those of the legs."""
        return tuple(i for i, rod in enumerate(self.tree.rods) if "stance" in rod.name or "swing" in rod.name)


def build(size: Size, mass: Any, height: Any, stiffness: Any, link_damping: Any) -> Build:
    """An operator of `mass` (kg) and `height` (m) on links of `stiffness` (N/m) and `link_damping` (ratio).

    The damping of a length is 2 times ratio, root of stiffness times mass that moves with it.
    """

    def rod(
        name: str, parent: str, segment: SegmentShares, added_share: float = 0.0, *, upward: bool = False, sign: int = 1
    ) -> Rod:
        """A rod of constant moment of inertia by its length: its mass stretches. `upward`: from the lower end."""
        com = 1.0 - segment.centre if upward else segment.centre
        spread = com**2 + segment.gyration**2
        rod_mass, length = mass * segment.mass * (1.0 + added_share), height * segment.length
        return Rod(name, parent, rod_mass, com, spread, rest_length=length, sign=sign)

    trunk = UPPER_BODY if size == 5 else TRUNK
    upwards = [
        *([("stance_foot", FOOT, ADDED)] if size == 11 else []),
        ("stance_shank", SHANK, ADDED),
        ("stance_thigh", THIGH, ADDED),
    ]
    rods: list[Rod] = []
    for name, segment, added_share in upwards:
        rods.append(rod(name, rods[-1].name if rods else "ground", segment, added_share, upward=True))
    hip = rods[-1].name
    upper = SegmentShares(trunk.mass, trunk.length, 1.0 - trunk.centre, trunk.gyration)
    rods.append(rod("trunk", hip, upper, upward=True))
    if size == 11:
        for side in ("left", "right"):
            rods.append(rod(f"{side}_upper_arm", "trunk", UPPER_ARM))
            rods.append(rod(f"{side}_forearm", f"{side}_upper_arm", FOREARM))
    rods.append(rod("swing_thigh", hip, THIGH, ADDED, sign=-1))
    rods.append(rod("swing_shank", "swing_thigh", LOWER_LEG if size == 5 else SHANK, ADDED, sign=-1))
    if size == 11:
        rods.append(rod("swing_foot", "swing_shank", FOOT, ADDED, sign=-1))
    masses = RodTree(tuple(rods), GRAVITY).mu
    elastic_rods = [_elastic(rod, stiffness, link_damping, masses[i, i]) for i, rod in enumerate(rods)]
    names = [rod.name for rod in elastic_rods]
    before = {rod.name: rod.parent for rod in elastic_rods} | {"swing_thigh": "trunk"}
    joints = tuple(-1 if before[n] == "ground" else names.index(before[n]) for n in names)
    passive = {"stance_foot"} | {n for n in names if "arm" in n}
    driven = tuple(i for i, n in enumerate(names) if n not in passive)
    return Build(RodTree(tuple(elastic_rods), GRAVITY), joints, driven)


def _elastic(rod: Rod, stiffness: Any, ratio: Any, mass: Any) -> Rod:
    damping = 2.0 * ratio * (stiffness * mass) ** 0.5
    return replace(rod, stiffness=stiffness, damping=damping)
