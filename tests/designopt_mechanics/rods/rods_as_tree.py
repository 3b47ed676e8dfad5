"""Rods as data of the general core: polar motions, point masses and rotors."""

import math

from designopt_mechanics.body import Body
from designopt_mechanics.motions import Polar, Rotate
from designopt_mechanics.rods.tree import Rod, RodTree
from designopt_mechanics.tree import GROUND, Coordinate, Frame, Tree


def as_tree(tree: RodTree) -> Tree:
    """The same mechanics as a tree with the coordinates of the rods; the frame ``<rod>`` is at the rod's far end.

    Mass spread along a rod is two equal point masses with the same centre and second moment.
    """
    frames: list[Frame] = []
    for rod in tree.rods:
        names = (f"phi_{rod.name}", f"psi_{rod.name}", f"l_{rod.name}")
        apart = math.sqrt(max(0.0, rod.second - rod.com**2))
        parts = [rod.com] if apart == 0.0 else [rod.com - apart, rod.com + apart]
        for k, part in enumerate(parts):
            body = Body(rod.mass / len(parts))
            frames.append(Frame(f"{rod.name}_mass_{k}", rod.parent, (Polar(*names, scale=rod.sign * part),), body))
        frames.append(Frame(rod.name, rod.parent, (Polar(*names, scale=float(rod.sign)),)))
        frames.append(_turning(rod, names[0], names[1]))
    coordinates = [Coordinate(name, "m" if name.startswith("l_") else "rad") for name in tree.names]
    at_rest = [1.0 if c.unit == "m" else 0.0 for c in coordinates]
    return Tree(
        tuple(Coordinate(c.name, c.unit, reference=r) for c, r in zip(coordinates, at_rest, strict=True)), tuple(frames)
    )


def _turning(rod: Rod, phi: str, psi: str) -> Frame:
    """A massless frame that turns with the rod's direction, with the inertia of the rod."""
    motions = (Rotate((0.0, 0.0, 1.0), phi, inertia=rod.Ix), Rotate((0.0, -1.0, 0.0), psi, inertia=rod.Iy))
    return Frame(f"{rod.name}_turns", GROUND, motions)
