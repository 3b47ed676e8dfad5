"""The shortest path around a surface of any kind, for arrays of pairs of points."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from designopt.arrays import Floats
from designopt_mechanics.surfaces.circle import around_cylinder, around_sphere
from designopt_mechanics.surfaces.ellipsoid import around_ellipsoid
from designopt_mechanics.surfaces.torus import around_torus
from designopt_mechanics.surfaces.touch import Touch


class SurfaceShape(Protocol):
    """`kind` and `sizes`: a cylinder's radius and length (about z), a sphere's radius, an ellipsoid's three half axes,
    the radius of a torus' tube and that of the circle in its middle (about z). A `quadrant` names a half ("+x")."""

    @property
    def kind(self) -> Literal["cylinder", "sphere", "ellipsoid", "torus"]: ...

    @property
    def sizes(self) -> tuple[float, ...]: ...

    @property
    def quadrant(self) -> str: ...


def around(surface: SurfaceShape, a: Floats, b: Floats) -> Touch:
    """The path from `a` to `b` (n, 3), in the frame of `surface`, around it."""
    if surface.kind == "cylinder":
        return around_cylinder(a, b, surface.sizes[0], surface.sizes[1], surface.quadrant)
    if surface.kind == "sphere":
        return around_sphere(a, b, surface.sizes[0], surface.quadrant)
    if surface.kind == "torus":
        return around_torus(a, b, surface.sizes[0], surface.sizes[1], surface.quadrant)
    return around_ellipsoid(a, b, np.array(surface.sizes), surface.quadrant)
