"""Which path goes around which surface."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Vector
from designopt_muscle.geometry.circle import around_cylinder, around_sphere
from designopt_muscle.geometry.ellipsoid import around_ellipsoid
from designopt_muscle.geometry.torus import around_torus
from designopt_muscle.geometry.touch import Touch
from designopt_muscle.osim.model import WrapObject


def touch(surface: WrapObject, a: Vector, b: Vector) -> Touch:
    """The path from `a` to `b` (n, 3), in the frame of `surface`, around it."""
    if surface.kind == "cylinder":
        return around_cylinder(a, b, surface.sizes[0], surface.sizes[1], surface.quadrant)
    if surface.kind == "sphere":
        return around_sphere(a, b, surface.sizes[0], surface.quadrant)
    if surface.kind == "torus":
        return around_torus(a, b, surface.sizes[0], surface.sizes[1], surface.quadrant)
    return around_ellipsoid(a, b, np.array(surface.sizes), surface.quadrant)
