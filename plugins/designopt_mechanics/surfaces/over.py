"""Wires over surfaces on frames, as expressions: cylinders, pulleys and spheres without friction.

Between two points a wire touches one surface, or runs over pulleys with parallel axes. In the plane across the axes it
consists of common tangents and arcs; along the axes it rises in proportion to its way, so that unrolled it is straight.
Around a sphere it stays in the plane of its ends and the centre. The length is the shortest, so that only the straight
parts pull: its derivatives follow from the tangent points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from designopt.lazy import casadi as ca
from designopt_mechanics.body import PartError, is_number
from designopt_mechanics.motions import unit
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Point

#: Part of the radius within which a point lies on the surface itself: its tangent has no length.
_RIM = 1e-7
#: An arc below this (rad) has lifted off, of a pulley; up to 3/2 pi it is wound.
_LIFTED = -0.5 * math.pi
#: Accuracy to which axes must be parallel.
_PARALLEL = 1e-9


class SurfaceError(PartError):
    """An impossible surface, or use of one."""


@dataclass(frozen=True, eq=False)
class Surface:
    """A cylinder of `radius` (m) about `axis` (3) through the point `centre`, endless along it; a sphere without axis.

    Raises `SurfaceError` for a radius that is not positive and an axis without length.
    """

    name: str
    centre: Point
    radius: Any
    axis: tuple[float, float, float] | None = None

    def __post_init__(self) -> None:
        if is_number(self.radius) and not 0.0 < float(self.radius) < math.inf:
            raise SurfaceError("radius", f"{float(self.radius):g} m is not a radius")
        if self.axis is not None:
            try:
                object.__setattr__(self, "axis", unit(self.axis))
            except ValueError:
                raise SurfaceError("axis", "has the length 0") from None


@dataclass(frozen=True, eq=False)
class SurfaceWrap:
    """The way of a wire over a `surface` between two of its points.

    A pulley has a `turn`: 1 runs about its axis counter-clockwise, -1 clockwise, by up to 270 degrees; a wire that ends
    on the frame of the pulley, a drum, does so in the reference posture, and is wound from there. With `turn` 0
    the wire touches the surface only where it is in the way, on the `side` (3, a direction in the surface's frame) if
    it is named, else on the shorter way. Raises `SurfaceError` for a sphere with a turn, and a turn with a side.
    """

    surface: Surface
    turn: Literal[-1, 0, 1] = 0
    side: tuple[float, float, float] | None = None

    def __post_init__(self) -> None:
        if self.turn and self.surface.axis is None:
            raise SurfaceError("turn", f"'{self.surface.name}' is a sphere: a wire turns about an axis, of a cylinder")
        if self.turn and self.side is not None:
            raise SurfaceError("side", "goes with a surface in the way; 'turn' says where a pulley is touched")


@dataclass(frozen=True, eq=False)
class WrapContact:
    """Where a wire touches the surface of `over`, in the ground: `first` and `last` places (3, 1) with the pulls (3, 1)
    of a unit tension there, the `angle` (rad) between them, 0 where it does not, and places of the arc by its share."""

    over: SurfaceWrap
    first: Any
    last: Any
    pulls: tuple[Any, Any]
    angle: Any
    arc: Callable[[float], Any]


@dataclass(frozen=True, eq=False)
class OverPath:
    """The part of a wire between two points: `length` (m), the `pulls` (3, 1) of a unit tension on them, what it
    touches, and `gaps` (m or rad) by what they mean, positive where there is no such path."""

    length: Any
    pulls: tuple[Any, Any]
    touches: tuple[WrapContact, ...]
    gaps: dict[str, Any]


def path_over(state: TreeState, start: Point, end: Point, overs: Sequence[SurfaceWrap]) -> OverPath:
    """The path from point to point over surfaces.

    Raises `SurfaceError` for several surfaces that are not pulleys with parallel axes.
    """
    a, b = state.position(start), state.position(end)
    plane = _sphere_plane(state, a, b, overs[0]) if overs[0].surface.axis is None else _plane(state, a, b, overs)
    radii = [over.surface.radius for over in overs]
    if overs[0].turn:
        way = _PlanePath.along(
            plane.positions, [over.turn * s for over, s in zip(overs, plane.signs, strict=True)], radii
        )
        way = _on_drums(state, start, end, overs, way)
        is_engaged = way.angles[0] >= 0.0 if len(overs) == 1 else ca.SX(1.0)
        slack = {} if len(overs) == 1 else _slack(overs, way)
    else:
        way, is_engaged = _in_the_way(plane, radii[0])
        slack = {}
    names = [over.surface.name for over in overs]
    meanings = [f"the first is inside of '{names[0]}'", *(f"'{a}' and '{b}' overlap" for a, b in pairwise(names)),
                f"the second is inside of '{names[-1]}'"]  # fmt: skip
    gaps = {meaning: step - d for meaning, step, d in zip(meanings, way.steps, way.distances, strict=True)}
    return _in_space(overs, plane, way, (a, b, is_engaged), gaps | slack)


def _slack(overs: Sequence[SurfaceWrap], way: _PlanePath) -> dict[str, Any]:
    return {f"it leaves '{o.surface.name}' (rad)": -angle for o, angle in zip(overs, way.angles, strict=True)}


@dataclass(frozen=True, eq=False)
class _Plane:
    """The plane across the axes: `origin` (3, 1), axes as columns (3, 3) with that of the surface last, `positions` (2,
    1) of the ends and centres in it, `rise` (m) from end to end and of the start, the axes' `signs`, the named `side`.
    """

    origin: Any
    axes: Any
    positions: list[Any]
    start: Any
    rise: Any
    signs: list[Any]
    side: Any = None


def _plane(state: TreeState, a: Any, b: Any, overs: Sequence[SurfaceWrap]) -> _Plane:
    surfaces = [over.surface for over in overs]
    origin = state.position(surfaces[0].centre)
    axis = surfaces[0].axis or (0.0, 0.0, 1.0)
    across = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    across /= np.linalg.norm(across)
    local = ca.SX(np.column_stack([across, np.cross(axis, across), axis]))
    axes = state.axes(surfaces[0].centre.frame) @ local
    signs = [ca.SX(1.0)]
    for surface in surfaces[1:]:
        if surface.axis is None:
            raise SurfaceError("over", f"the sphere '{surface.name}' needs points before and after it")
        direction = state.axes(surface.centre.frame) @ ca.SX(surface.axis)
        if not _is_zero(ca.cross(axes[:, 2], direction)):
            names = f"'{surfaces[0].name}' and '{surface.name}'"
            raise SurfaceError(
                "over", f"the axes of {names} are not parallel; a point of the wire must be between them"
            )
        signs.append(ca.sign(ca.dot(axes[:, 2], direction)))
    centres = [state.position(surface.centre) for surface in surfaces]
    ends = [axes.T @ (position - origin) for position in (a, *centres, b)]
    side = None if overs[0].side is None else local[:, :2].T @ ca.SX(overs[0].side)
    return _Plane(origin, axes, [e[:2] for e in ends], ends[0][2], ends[-1][2] - ends[0][2], signs, side)


def _sphere_plane(state: TreeState, a: Any, b: Any, over: SurfaceWrap) -> _Plane:
    """The plane of the ends and the centre."""
    origin = state.position(over.surface.centre)
    a, b = a - origin, b - origin
    u = a / ca.norm_2(a)
    across = b - ca.dot(b, u) * u
    size = ca.norm_2(across)
    level = size > 1e-12 * ca.norm_2(b)
    spare = ca.cross(u, ca.if_else(ca.fabs(u[0]) < 0.9, ca.SX([1, 0, 0]), ca.SX([0, 1, 0])))
    v = ca.if_else(level, across / ca.if_else(level, size, 1.0), spare / ca.norm_2(spare))
    axes = ca.horzcat(u, v, ca.cross(u, v))
    side = None if over.side is None else axes[:, :2].T @ state.axes(over.surface.centre.frame) @ ca.SX(over.side)
    zero = ca.SX(0.0)
    positions = [axes[:, :2].T @ a, ca.SX.zeros(2), axes[:, :2].T @ b]
    return _Plane(origin, axes, positions, zero, zero, [ca.SX(1.0)], side)


@dataclass(frozen=True, eq=False)
class _PlanePath:
    """A path in the plane. Each straight part has a direction (2, 1), a length, the step of the signed radii along it
    and the `distances` of the centres; each arc has a sign, a radius, an angle and a centre."""

    directions: list[Any]
    straights: list[Any]
    steps: list[Any]
    distances: list[Any]
    signs: list[Any]
    radii: list[Any]
    angles: list[Any]
    centres: list[Any]

    @classmethod
    def along(
        cls, positions: Sequence[Any], signs: Sequence[Any], radii: Sequence[Any], least: float = _LIFTED
    ) -> _PlanePath:
        """Past circles on the left (sign 1) or right (-1) hand; angles are from `least` to `least` + 2 pi."""
        signed_radii = [ca.SX(0.0), *(s * r for s, r in zip(signs, radii, strict=True)), ca.SX(0.0)]
        directions, straights, steps, distances = [], [], [], []
        for (c, r), (d, q) in pairwise(zip(positions, signed_radii, strict=True)):
            step, across = q - r, d - c
            square = ca.sumsqr(across) - step**2
            leaves = square > _RIM**2 * step**2
            straight = ca.if_else(leaves, ca.sqrt(ca.if_else(leaves, square, 1.0)), 0.0)
            normal = ca.vertcat(-across[1], across[0])
            directions.append((straight * across - step * normal) / (straight**2 + step**2))
            straights.append(straight)
            steps.append(ca.fabs(step))
            distances.append(ca.norm_2(across))
        angles = []
        for sign, (u, v) in zip(signs, pairwise(directions), strict=True):
            angle = ca.atan2(sign * (u[0] * v[1] - u[1] * v[0]), ca.dot(u, v))
            angles.append(ca.if_else(angle < least, angle + 2.0 * math.pi, angle))
        return cls(directions, straights, steps, distances, list(signs), list(radii), angles, list(positions[1:-1]))

    @property
    def length(self) -> Any:
        arcs = (r * angle for r, angle in zip(self.radii, self.angles, strict=True))
        return sum(arcs, sum(self.straights, ca.SX(0.0)))

    def radial(self, i: int, angle: Any) -> Any:
        """(2, 1) the direction from the centre of circle `i` to the point at `angle` after the first touched one."""
        u, sign = self.directions[i], self.signs[i]
        start = sign * ca.vertcat(u[1], -u[0])
        c, s = ca.cos(angle), sign * ca.sin(angle)
        return ca.vertcat(c * start[0] - s * start[1], s * start[0] + c * start[1])


def _on_drums(state: TreeState, start: Point, end: Point, overs: Sequence[SurfaceWrap], way: _PlanePath) -> _PlanePath:
    """The way with angles of any number of turns where an end of the wire turns with its pulley."""
    angles = list(way.angles)
    for i, on_drum, beyond, sense in ((0, start, end, -1), (len(overs) - 1, end, start, 1)):
        surface = overs[i].surface
        if surface.centre.frame != on_drum.frame:
            continue
        wound = sense * overs[i].turn * _rotation(state, surface, beyond.frame)
        expected_angle = wound + ca.substitute(angles[i] - wound, state.z, ca.SX(state.tree.reference))
        angles[i] = angles[i] + 2.0 * math.pi * ca.floor((expected_angle - angles[i]) / (2.0 * math.pi) + 0.5)
    return replace(way, angles=angles)


def _rotation(state: TreeState, surface: Surface, frame: str) -> Any:
    """(rad) by which a surface turns about its axis against `frame`: the rotations about parallel axes between them."""
    ways = [state.way(state.end(name)) for name in (surface.centre.frame, frame)]
    axis = state.axes(surface.centre.frame) @ ca.SX(surface.axis or (0.0, 0.0, 1.0))
    total = ca.SX(0.0)
    for sign, steps, other_steps in ((1.0, ways[0], ways[1]), (-1.0, ways[1], ways[0])):
        for i in (j for j in steps if j not in other_steps):
            step = state.steps[i]
            if step.axis is None or step.axis.shape[1] != 1:
                continue
            about = state.pose(i)[0] @ step.axis
            if _is_zero(ca.cross(about, axis)):
                total += sign * ca.sign(ca.dot(about, axis)) * step.angle
    return total


def _in_the_way(plane: _Plane, radius: Any) -> tuple[_PlanePath, Any]:
    """The way round one circle on the named or the shorter side, and whether the circle is in the way."""
    ways = [_PlanePath.along(plane.positions, [ca.SX(sign)], [radius], -1e-9) for sign in (1.0, -1.0)]
    a, _, b = plane.positions
    share = -ca.dot(a, b - a) / ca.fmax(ca.sumsqr(b - a), 1e-300)
    nearest = a + ca.fmin(ca.fmax(share, 0.0), 1.0) * (b - a)
    wraps = ca.logic_and(ca.sumsqr(nearest) < radius**2, ca.logic_and(share > 0.0, share < 1.0))
    angles = [way.angles[0] for way in ways]
    left = angles[0] <= angles[1]
    if plane.side is not None:
        heights = [ca.dot(plane.side, way.radial(0, 0.5 * angle)) for way, angle in zip(ways, angles, strict=True)]
        on_both_ways = ca.logic_and(heights[0] > 0.0, heights[1] > 0.0)
        left = ca.if_else(on_both_ways, left, heights[0] >= heights[1])
        wraps = ca.logic_or(wraps, ca.dot(plane.side, nearest) < 0.0)

    def select(name: str) -> list[Any]:
        parts = zip(*(getattr(way, name) for way in ways), strict=True)
        return [ca.if_else(left, first, second) for first, second in parts]

    return _PlanePath(*(select(f.name) for f in fields(_PlanePath))), wraps


def _in_space(
    overs: Sequence[SurfaceWrap], plane: _Plane, way: _PlanePath, ends: tuple[Any, Any, Any], gaps: dict[str, Any]
) -> OverPath:
    """The path of a way in the plane; the way is straight from `ends` to end where it is not engaged."""
    a, b, is_engaged = ends
    span = b - a
    direct = ca.norm_2(span)
    wound = way.length
    length = ca.sqrt(wound**2 + plane.rise**2) if overs[0].surface.axis is not None else wound
    slope = plane.rise / wound

    def pull(i: int) -> Any:
        return plane.axes @ ca.vertcat(way.directions[i], slope) * (wound / length)

    touches, length_before = [], ca.SX(0.0)
    for i, over in enumerate(overs):
        length_before = length_before + way.straights[i]

        def arc(share: float, i: int = i, length_before: Any = length_before) -> Any:
            angle = share * way.angles[i]
            at = way.centres[i] + way.radii[i] * way.radial(i, angle)
            height = plane.start + slope * (length_before + way.radii[i] * angle)
            return ca.if_else(is_engaged, plane.origin + plane.axes @ ca.vertcat(at, height), a + share * span)

        pulls = tuple(ca.if_else(is_engaged, force, ca.SX.zeros(3)) for force in (-pull(i), pull(i + 1)))
        angle = ca.if_else(is_engaged, way.angles[i], 0.0)
        touches.append(WrapContact(over, arc(0.0), arc(1.0), (pulls[0], pulls[1]), angle, arc))
        length_before = length_before + way.radii[i] * way.angles[i]
    first, last = (ca.if_else(is_engaged, p, s * span / direct) for p, s in ((pull(0), 1.0), (-pull(len(overs)), -1.0)))
    return OverPath(ca.if_else(is_engaged, length, direct), (first, last), tuple(touches), gaps)


def _is_zero(expression: Any) -> bool:
    """Whether an expression is zero at a few values of its symbols."""
    symbols = ca.symvar(expression)
    function = ca.Function("zero", [ca.vertcat(ca.SX(0, 1), *symbols)], [expression])
    rng = np.random.default_rng(0)
    values = [float(np.abs(np.asarray(function(rng.uniform(-1.0, 1.0, len(symbols))))).max()) for _ in range(8)]
    finite = [value for value in values if np.isfinite(value)]  # dyads do not reach everywhere
    return bool(finite) and max(finite) < _PARALLEL
