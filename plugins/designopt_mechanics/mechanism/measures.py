"""Measures of a posture: where points are, clearances between balls, angles between lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from designopt.lazy import casadi as ca
from designopt_mechanics.mechanism.mechanism import Clearance, LineAngle, Mechanism
from designopt_mechanics.state import TreeState


@dataclass(frozen=True, eq=False)
class Measure:
    """An `expression` of the coordinates and parameters, in `unit`."""

    unit: str
    expression: Any


def measures(mechanism: Mechanism, state: TreeState) -> dict[str, Measure]:
    """All measures by name: ``path_<point>_<axis>``, ``clearance_<name>``, ``angle_<name>``."""
    named = {
        f"path_{name}_{axis}": Measure("m", state.position(point)[i])
        for name, point in mechanism.points.items()
        for i, axis in enumerate("xyz")
    }
    named |= {f"clearance_{name}": Measure("m", _clearance(state, c)) for name, c in mechanism.clearances.items()}
    return named | {f"angle_{name}": Measure("rad", _angle(state, a)) for name, a in mechanism.angles.items()}


def _clearance(state: TreeState, clearance: Clearance) -> Any:
    return ca.norm_2(state.position(clearance.first) - state.position(clearance.second)) - clearance.radius


def _angle(state: TreeState, angle: LineAngle) -> Any:
    """Between two lines, 0 to pi / 2."""
    first, second = (state.axes(frame) @ ca.SX(list(along)) for frame, along in (angle.first, angle.second))
    return ca.atan2(ca.norm_2(ca.cross(first, second)), ca.fabs(ca.dot(first, second)))
