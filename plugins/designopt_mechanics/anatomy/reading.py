"""Anatomies from their two files, bundled or given, and the branching patterns that their wires follow."""

from __future__ import annotations

import re
from importlib.resources import files

from designopt_mechanics.anatomy.companion import Anatomy, read_companion
from designopt_mechanics.anatomy.geometry import Geometry
from designopt_mechanics.anatomy.vrml import read_vrml

BUNDLED = ("teres_minor", "obturator_internus", "pectoralis", "biceps", "elbow_ligaments")


def bundled_geometry(name: str) -> Geometry:
    """The VRML file of a bundled pattern."""
    return read_vrml(_content(f"{name}.wrl"), f"{name}.wrl")


def bundled(name: str) -> Anatomy:
    """A bundled pattern, one of `BUNDLED`."""
    return read_companion(_content(f"{name}.yaml"), f"{name}.yaml", bundled_geometry(name))


def patterns(geometry: Geometry) -> list[tuple[int, tuple[str, ...]]]:
    """The groups of wires that hang together, each with the number of its pattern.

    1: one wire of two points; 2: one wire with via points; 3: several wires of one name with numbers; 4: wires that
    meet in a virtual link; 5: ligaments that do (paragraphs 20 to 27 of the source).
    """
    groups: dict[str, list[str]] = {}
    for wire in geometry.wires:
        links = sorted({p.link for p in wire.points} & set(geometry.virtual))
        base = re.sub(r"\d+$", "", wire.name)
        groups.setdefault(links[0] if links else base, []).append(wire.name)
    neighbours_of = {wire.name: wire for wire in geometry.wires}
    numbered_groups = []
    for key, names in groups.items():
        if key in geometry.virtual:
            number = 5 if all(neighbours_of[n].kind == "Lig" for n in names) else 4
        elif len(names) > 1:
            number = 3
        else:
            number = 1 if len(neighbours_of[names[0]].points) == 2 else 2
        numbered_groups.append((number, tuple(names)))
    return numbered_groups


def _content(file: str) -> bytes:
    return files("designopt_mechanics.anatomy").joinpath("patterns", file).read_bytes()
