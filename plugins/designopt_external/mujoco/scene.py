"""Outlines of the geoms of a MuJoCo model, for the report part ``scene``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: Number of points of a circle.
CIRCLE = 16
_GAP = np.full((1, 3), np.nan)


class Outlines:
    """Lines of all geoms but planes, with NaN between them."""

    def __init__(self, model: Any) -> None:
        parts = [(geom, _outline(model, geom)) for geom in range(model.ngeom)]
        self._parts = [(geom, lines) for geom, lines in parts if len(lines)]

    def at(self, data: Any) -> Floats:
        """The vertices (v, 3) in m at the current positions."""
        lines = [points @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom] for geom, points in self._parts]
        return np.concatenate(lines) if lines else np.zeros((0, 3))


def _outline(model: Any, geom: int) -> Floats:
    """The lines of a geom in its own frame."""
    import mujoco

    types = mujoco.mjtGeom
    kind, size = int(model.geom_type[geom]), np.asarray(model.geom_size[geom], np.float64)
    if kind in (types.mjGEOM_SPHERE, types.mjGEOM_ELLIPSOID):
        radii = np.full(3, size[0]) if kind == types.mjGEOM_SPHERE else size
        return np.concatenate([part for axis in range(3) for part in (_circle(axis) * radii, _GAP)])
    if kind in (types.mjGEOM_CAPSULE, types.mjGEOM_CYLINDER):
        radius, half = size[0], size[1]
        ring = _circle(2) * radius
        sides = [np.array([[x, y, -half], [x, y, half]]) for x, y in ((radius, 0.0), (-radius, 0.0))]
        end = np.array([0.0, 0.0, half])
        rings = [ring + end, ring - end]
        return np.concatenate([part for line in [*rings, *sides] for part in (line, _GAP)])
    if kind == types.mjGEOM_BOX:
        return _box(-size, size)
    if kind == types.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        vertices = np.asarray(model.mesh_vert[first : first + count], np.float64)
        return _box(vertices.min(axis=0), vertices.max(axis=0))
    return np.zeros((0, 3))


def _circle(axis: int) -> Floats:
    """The points (c, 3) of a unit circle around an axis."""
    angle = np.linspace(0.0, 2.0 * np.pi, CIRCLE + 1)
    points = np.zeros((len(angle), 3))
    points[:, (axis + 1) % 3], points[:, (axis + 2) % 3] = np.cos(angle), np.sin(angle)
    return points


def _box(low: Floats, high: Floats) -> Floats:
    """The edges of a box."""
    corners = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)]
    ends = np.stack([low, high])

    def point(*sides: int) -> list[float]:
        return [float(ends[side, axis]) for axis, side in enumerate(sides)]

    faces = [np.array([point(x, y, z) for x, y in corners]) for z in (0, 1)]
    pillars = [np.array([point(x, y, 0), point(x, y, 1)]) for x, y in corners[:-1]]
    return np.concatenate([part for line in [*faces, *pillars] for part in (line, _GAP)])
