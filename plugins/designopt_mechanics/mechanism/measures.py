"""Measures of a posture: where points are, clearances between balls, angles between lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from designopt.lazy import casadi as ca
from designopt_mechanics.mechanism.mechanism import Clearance, LineAngle, Mechanism
from designopt_mechanics.state import TreeState

#: Square of a length (m) below which a bar is a point.
_NO_LENGTH = 1e-20


@dataclass(frozen=True, eq=False)
class Measure:
    """An `expression` of the coordinates and parameters, in `unit`."""

    unit: str
    expression: Any


def measures(mechanism: Mechanism, state: TreeState) -> dict[str, Measure]:
    """All measures by name: ``path_<point>_<axis>``, ``clearance_<name>``, ``angle_<name>``."""
    by_name = {
        f"path_{name}_{axis}": Measure("m", state.position(point)[i])
        for name, point in mechanism.points.items()
        for i, axis in enumerate("xyz")
    }
    by_name |= {f"clearance_{name}": Measure("m", _clearance(state, c)) for name, c in mechanism.clearances.items()}
    return by_name | {f"angle_{name}": Measure("rad", _angle(state, a)) for name, a in mechanism.angles.items()}


def _clearance(state: TreeState, clearance: Clearance) -> Any:
    first, second = state.position(clearance.first), state.position(clearance.second)
    surface = clearance.surface
    if surface is None:
        return ca.norm_2(first - second) - clearance.radius
    across = ca.SX.eye(3)
    if surface.axis is not None:
        axis = state.axes(surface.centre.frame) @ ca.SX(list(surface.axis))
        across -= axis @ axis.T
    centre = state.position(surface.centre)
    begin, way = across @ (first - centre), across @ (second - first)
    # the nearest point of the bar; a bar along the axis of a cylinder has no length across it
    share = ca.SX(0.0)
    if clearance.first is not clearance.second:
        share = ca.fmin(ca.fmax(-ca.dot(begin, way) / (ca.dot(way, way) + _NO_LENGTH), 0.0), 1.0)
    return ca.norm_2(begin + share * way) - surface.radius - clearance.radius


def _angle(state: TreeState, angle: LineAngle) -> Any:
    """Between two lines, 0 to pi / 2."""
    first, second = (state.axes(frame) @ ca.SX(list(along)) for frame, along in (angle.first, angle.second))
    return ca.atan2(ca.norm_2(ca.cross(first, second)), ca.fabs(ca.dot(first, second)))
