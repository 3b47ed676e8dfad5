"""Wires: tight from point to point of frames and over surfaces, with one tension along them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from designopt.lazy import casadi as ca
from designopt_mechanics.loads import Load, load_at
from designopt_mechanics.state import TreeState
from designopt_mechanics.surfaces.over import SurfaceWrap, WrapContact, path_over
from designopt_mechanics.tree import Point


@dataclass(frozen=True)
class Wire:
    """A wire from the first of `points` through the others to the last; a `SurfaceWrap` between two of them is a
    surface.

    `points` are then the points alone, and `overs` the surfaces between each and the next. Raises `ValueError` for less
    than two points, for a wire on one frame only, whose length is constant, and for surfaces at its ends, or several
    between two points that are not all pulleys. `largest_tension` (N) limits what it carries.
    """

    name: str
    points: tuple[Point, ...]
    overs: tuple[tuple[SurfaceWrap, ...], ...] = ()
    largest_tension: Any = math.inf

    def __init__(
        self,
        name: str,
        points: Sequence[Point | SurfaceWrap],
        overs: Sequence[Sequence[SurfaceWrap]] = (),
        largest_tension: Any = math.inf,
    ) -> None:
        parts = tuple(points)
        path_points = [p for p in parts if isinstance(p, Point)]
        if parts and not (isinstance(parts[0], Point) and isinstance(parts[-1], Point)):
            raise ValueError(f"wire '{name}': a surface is between two points, not at an end")
        if len(path_points) < 2:
            raise ValueError(f"wire '{name}' has {len(path_points)} points, not two or more")
        between: list[list[SurfaceWrap]] = [list(items) for items in overs] or [[] for _ in path_points[1:]]
        at = -1
        for part in parts:
            if isinstance(part, SurfaceWrap):
                between[at].append(part)
            else:
                at += 1
        if len({p.frame for p in (*path_points, *(over.surface.centre for items in between for over in items))}) == 1:
            raise ValueError(f"wire '{name}': all points lie on '{path_points[0].frame}', its length is constant")
        for items in between:
            if len(items) > 1 and not all(over.turn for over in items):
                raise ValueError(f"wire '{name}': of several surfaces between two points each needs a 'turn'")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "points", tuple(path_points))
        object.__setattr__(self, "overs", tuple(tuple(items) for items in between))
        object.__setattr__(self, "largest_tension", largest_tension)


@dataclass(frozen=True, eq=False)
class WirePath:
    """A wire in a state: its `length` (m), its `nodes` with frame, place (3, 1) in the ground and pull (3, 1) of a unit
    tension, what it touches, and `gaps` (m or rad) by what they mean, positive where there is no such path."""

    length: Any
    nodes: list[tuple[str, Any, Any]]
    touches: list[WrapContact]
    gaps: dict[str, Any]


def wire_path(state: TreeState, wire: Wire) -> WirePath:
    """The path of a wire. Raises `SurfaceError` for pulleys in a row whose axes are not parallel."""
    positions = [state.position(point) for point in wire.points]
    pulls = [ca.SX.zeros(3) for _ in positions]
    length = ca.SX(0.0)
    touches: list[WrapContact] = []
    gaps: dict[str, Any] = {}
    for j, ((a, b), overs) in enumerate(zip(pairwise(positions), wire.overs, strict=True)):
        if overs:
            part = path_over(state, wire.points[j], wire.points[j + 1], overs)
            length = length + part.length
            pulls[j], pulls[j + 1] = pulls[j] + part.pulls[0], pulls[j + 1] + part.pulls[1]
            touches += part.touches
            gaps |= {f"between points {j + 1} and {j + 2}, {meaning}": gap for meaning, gap in part.gaps.items()}
            continue
        distance = ca.norm_2(b - a)
        length = length + distance
        if wire.points[j].frame != wire.points[j + 1].frame:
            along = (b - a) / distance
            pulls[j], pulls[j + 1] = pulls[j] + along, pulls[j + 1] - along
    nodes = [(point.frame, position, pull) for point, position, pull in zip(wire.points, positions, pulls, strict=True)]
    for touch in touches:
        frame = touch.over.surface.centre.frame
        nodes += [(frame, touch.first, touch.pulls[0]), (frame, touch.last, touch.pulls[1])]
    return WirePath(length, nodes, touches, gaps)


def obstacles(state: TreeState, wire: Wire) -> dict[str, Any]:
    """Gaps (m or rad) of a wire by what they mean; a positive one leaves no path over a surface."""
    return {f"wire '{wire.name}': {meaning}": gap for meaning, gap in wire_path(state, wire).gaps.items()}


def lengths(state: TreeState, wires: Sequence[Wire]) -> Any:
    """(k, 1) m."""
    return ca.vertcat(ca.SX(0, 1), *(wire_path(state, wire).length for wire in wires))


def moment_arms(state: TreeState, wires: Sequence[Wire]) -> Any:
    """R (m, k) = -(dl/dz)': the generalised force of unit tensions, m or 1."""
    variables, rows = _variables(state)
    if not wires:
        return ca.SX(state.z.numel(), 0)
    arms = ca.SX(variables.numel(), len(wires))
    for column, wire in enumerate(wires):
        for row, value in _arms(state, wire, rows):
            arms[row, column] += value
    return ca.densify(ca.jacobian(variables, state.z).T @ arms)


def pulls(state: TreeState, wires: Sequence[Wire], tensions: Any) -> list[Load]:
    """The forces of wires under `tensions` (k, 1) N on the frames of all their points and surfaces."""
    return [
        load_at(frame, position, tension * pull)
        for wire, tension in zip(wires, ca.vertsplit(ca.SX(tensions)), strict=True)
        for frame, position, pull in wire_path(state, wire).nodes
    ]


def _variables(state: TreeState) -> tuple[Any, list[int]]:
    """All shifts and angles of the steps in one column, and the row where each step begins."""
    parts, rows, at = [], [], 0
    for step in state.steps:
        rows.append(at)
        part = ca.vertcat(step.p, ca.SX(0.0) if step.angle is None else step.angle)
        parts.append(part)
        at += part.numel()
    return ca.vertcat(ca.SX(0, 1), *parts), rows


def _arms(state: TreeState, wire: Wire, rows: Sequence[int]) -> list[tuple[int, Any]]:
    """Entries of the generalised forces on shifts and angles; steps that move all points alike have none."""
    frames, positions, forces = zip(*wire_path(state, wire).nodes, strict=True)
    ways = [set(state.way(state.end(frame))) for frame in frames]
    common_steps = set.intersection(*ways)
    arm_entries = []
    for i in sorted(set.union(*ways) - common_steps):
        step = state.steps[i]
        indices = [k for k, way in enumerate(ways) if i in way]
        force = sum((forces[k] for k in indices), ca.SX.zeros(3))
        local = state.pose(step.parent)[0].T @ force
        arm_entries += [(rows[i] + n, local[n]) for n in range(3) if not step.p[n].is_constant()]
        if step.axis is not None:
            axes, origin = state.pose(i)
            moment = sum((ca.cross(positions[k] - origin, forces[k]) for k in indices), ca.SX.zeros(3))
            efforts = ca.vertsplit(step.effort(axes @ step.axis, moment))
            arm_entries += [(rows[i] + 3 + n, effort) for n, effort in enumerate(efforts)]
    return arm_entries
