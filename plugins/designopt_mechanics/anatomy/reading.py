"""Anatomies from their two files, bundled or given, and the branching patterns that their wires follow."""

from __future__ import annotations

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


def _content(file: str) -> bytes:
    return files("designopt_mechanics.anatomy").joinpath("patterns", file).read_bytes()
