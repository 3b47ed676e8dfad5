"""Lengths of muscle paths as expressions of a tree's state: straight between points, or polynomials where they wrap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from designopt_mechanics.state import TreeState

from designopt.lazy import casadi as ca
from designopt_muscle.osim.functions import limit_to_range
from designopt_muscle.osim.model import OsimModel, OsimMuscle, PathPoint

Ranges = Mapping[str, tuple[float, float]]
#: Margin (rad or m) of the ranges of coordinates; surfaces that are reached only beyond it are left out.
_MARGIN = 0.1


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

    Points that are inactive, or active, for all values in the `ranges` of the coordinates have no switch, and functions
    that move points are those of the ranges, 0.1 rad or m further on each side. Raises `ValueError` for a path with an
    active wrap object, which `fits.polynomial_paths` represents.
    """
    if wraps(model, muscle):
        raise ValueError(f"the path of '{muscle.name}' wraps around a surface; it needs a polynomial")
    wide = {name: (low - _MARGIN, high + _MARGIN) for name, (low, high) in (ranges or {}).items()}
    return _length(state, model, [(_within_ranges(point, wide), _is_active(point, wide)) for point in muscle.points])


def wraps(model: OsimModel, muscle: OsimMuscle) -> bool:
    """Whether the path of a muscle touches, or may touch, a surface."""
    active = {w.name for w in model.wraps if w.active}
    return any(use.wrap in active for use in muscle.wraps)


def _within_ranges(point: PathPoint, ranges: Ranges) -> PathPoint:
    axes = (
        replace(a, function=limit_to_range(a.function, *ranges[a.coordinate])) if a.coordinate in ranges else a
        for a in point.moving
    )
    return replace(point, moving=tuple(axes))


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
    path = [point for point, active in points if active]
    ways = [state.way(state.end(point.body)) for point in path]
    common_count = next(
        (n for n, steps in enumerate(zip(*ways, strict=False)) if len(set(steps)) > 1), min(map(len, ways))
    )
    positions = [_position(state, model, point, way[common_count:]) for point, way in zip(path, ways, strict=True)]
    return sum((ca.norm_2(b - a) for a, b in pairwise(positions)), ca.SX(0.0))


def _position(state: TreeState, model: OsimModel, point: PathPoint, way: Sequence[int]) -> Any:
    """(3, 1) m of a point, in the axes before the steps of its `way`: only coordinates that a path crosses count."""
    location = ca.SX(point.location.tolist())
    if point.moving:
        location = ca.SX.zeros(3)
        for axis in point.moving:
            value = coordinate_value(state, model, axis.coordinate)
            location = location + ca.SX(axis.axis.tolist()) * axis.function.expression(value)
    for i in reversed(way):
        step = state.steps[i]
        location = step.p + step.turn @ location
    return location
