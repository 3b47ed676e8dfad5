"""Bundled models with what a design changes of them: masses of groups of segments, surfaces under the scapulae."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from designopt.plugin import InvalidDesign
from designopt_wholebody.model.library import bundled, load_model
from designopt_wholebody.model.schema import BodyModel

#: Segments by the beginning of their names, whose masses a design may scale together.
_GROUPS = {
    "trunk_mass": ("head", "thorax", "pelvis", "clavicle", "scapula"),
    "arm_mass": ("humerus", "ulna", "radius", "hand"),
    "leg_mass": ("thigh", "shank", "foot"),
}


def chosen(name: str) -> BodyModel:
    """The bundled model of this name; raises `InvalidDesign` where there is none."""
    if name not in bundled():
        raise InvalidDesign(f"there is no model '{name}'; there are {', '.join(bundled())}")
    return load_model(name)


def varied(body: BodyModel, design: Mapping[str, Any]) -> BodyModel:
    """The model with the masses of groups of segments and the radii of surfaces scaled by factors of a design.

    Tensors that are given scale with the mass.
    """
    segments = dict(body.segments)
    for group, beginnings in _GROUPS.items():
        factor = float(design.get(group, 1.0))
        for name, segment in segments.items():
            if factor != 1.0 and name.startswith(beginnings):
                i = segment.inertia
                changed = replace(
                    i,
                    mass=None if i.mass is None else factor * i.mass,
                    mass_percent=None if i.mass_percent is None else factor * i.mass_percent,
                    mass_less=factor * i.mass_less,
                    tensor=None if i.tensor is None else tuple(factor * value for value in i.tensor),  # type: ignore[arg-type]
                )
                segments[name] = replace(segment, inertia=changed)
    joints = dict(body.joints)
    factor = float(design.get("ellipsoid", 1.0))
    for name, joint in joints.items():
        if factor != 1.0 and joint.radii is not None:
            x, y, z = joint.radii
            joints[name] = replace(joint, radii=(factor * x, factor * y, factor * z))
    made = replace(body, segments=segments, joints=joints)
    object.__setattr__(made, "mirrored", body.mirrored)
    return made
