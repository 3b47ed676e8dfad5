"""Lengths of muscle paths as expressions of a tree's state: straight between points, or polynomials where they wrap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Point

from designopt.lazy import casadi as ca
from designopt_muscle.osim.model import OsimModel, OsimMuscle, PathPoint

Ranges = Mapping[str, tuple[float, float]]


def coordinate_value(state: TreeState, model: OsimModel, name: str) -> Any:
    """The value of any coordinate of `model`: free, driven by a coupler, or constant."""
    if name in state.named:
        return state.named[name]
    for coupler in model.couplers:
        if coupler.dependent == name:
            return coupler.function.expression(coordinate_value(state, model, coupler.independent))
    return ca.SX(next(c.default for c in model.coordinates if c.name == name))


def path_length(state: TreeState, model: OsimModel, muscle: OsimMuscle, ranges: Ranges | None = None) -> Any:
    """The length (m) of a path of straight segments; conditional points switch where their coordinate says.

    Points that are inactive, or active, for all values in the `ranges` of the coordinates have no switch. Raises
    `ValueError` for a path with an active wrap object, which `fits.polynomial_paths` represents.
    """
    if wraps(model, muscle):
        raise ValueError(f"the path of '{muscle.name}' wraps around a surface; it needs a polynomial")
    return _length(state, model, [(point, _is_active(point, ranges or {})) for point in muscle.points])


def wraps(model: OsimModel, muscle: OsimMuscle) -> bool:
    """Whether the path of a muscle touches, or may touch, a surface."""
    active = {w.name for w in model.wraps if w.active}
    return any(use.wrap in active for use in muscle.wraps)


def _is_active(point: PathPoint, ranges: Ranges) -> bool | None:
    """Whether a point belongs to the path throughout the ranges, or None where it depends."""
    if not point.condition:
        return True
    low, high = ranges.get(point.condition, (-float("inf"), float("inf")))
    if high < point.within[0] or low > point.within[1]:
        return False
    return True if point.within[0] <= low and high <= point.within[1] else None


def _length(state: TreeState, model: OsimModel, points: Sequence[tuple[PathPoint, bool | None]]) -> Any:
    for i, (point, active) in enumerate(points):
        if active is None:
            value = coordinate_value(state, model, point.condition)
            inside = ca.logic_and(value >= point.within[0], value <= point.within[1])
            lengths = (_length(state, model, [*points[:i], (point, flag), *points[i + 1 :]]) for flag in (True, False))
            return ca.if_else(inside, *lengths)
    positions = [_position(state, model, point) for point, active in points if active]
    return sum((ca.norm_2(b - a) for a, b in pairwise(positions)), ca.SX(0.0))


def _position(state: TreeState, model: OsimModel, point: PathPoint) -> Any:
    if not point.moving:
        return state.position(Point(point.body, tuple(point.location.tolist())))
    location = ca.SX.zeros(3)
    for axis in point.moving:
        value = coordinate_value(state, model, axis.coordinate)
        location = location + ca.SX(axis.axis.tolist()) * axis.function.expression(value)
    return state.position(Point(point.body, location))
