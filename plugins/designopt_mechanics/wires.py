"""Wires: straight and tight from point to point of frames, with one tension along them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from designopt.lazy import casadi as ca
from designopt_mechanics.loads import Load, force_on
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Point


@dataclass(frozen=True)
class Wire:
    """From the first of `points` through the others to the last.

    Raises `ValueError` for less than two points and for a wire whose points all lie on one frame: its length is
    constant.
    """

    name: str
    points: tuple[Point, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", tuple(self.points))
        if len(self.points) < 2:
            raise ValueError(f"wire '{self.name}' has {len(self.points)} points, not two or more")
        if len({p.frame for p in self.points}) == 1:
            raise ValueError(f"wire '{self.name}': all points lie on '{self.points[0].frame}', its length is constant")


def lengths(state: TreeState, wires: Sequence[Wire]) -> Any:
    """(k, 1) m."""
    return ca.vertcat(ca.SX(0, 1), *(_length(state, wire) for wire in wires))


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
    """The forces of wires under `tensions` (k, 1) N on the frames of all their points."""
    loads = []
    for wire, tension in zip(wires, ca.vertsplit(ca.SX(tensions)), strict=True):
        for point, direction in zip(wire.points, _directions(state, wire), strict=True):
            loads.append(force_on(state, point, tension * direction))
    return loads


def _places(state: TreeState, wire: Wire) -> list[Any]:
    return [state.position(point) for point in wire.points]


def _length(state: TreeState, wire: Wire) -> Any:
    places = _places(state, wire)
    return sum((ca.norm_2(b - a) for a, b in pairwise(places)), ca.SX(0.0))


def _directions(state: TreeState, wire: Wire) -> list[Any]:
    """At each point the force (3, 1) of a unit tension: minus the gradient of the length."""
    places = _places(state, wire)
    forces = [ca.SX.zeros(3) for _ in places]
    for j, (a, b) in enumerate(pairwise(places)):
        if wire.points[j].frame == wire.points[j + 1].frame:
            continue
        along = (b - a) / ca.norm_2(b - a)
        forces[j], forces[j + 1] = forces[j] + along, forces[j + 1] - along
    return forces


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
    ways = [set(state.way(state.end(point.frame))) for point in wire.points]
    shared = set.intersection(*ways)
    places, forces = _places(state, wire), _directions(state, wire)
    arm_entries = []
    for i in sorted(set.union(*ways) - shared):
        step = state.steps[i]
        moved = [k for k, way in enumerate(ways) if i in way]
        force = sum((forces[k] for k in moved), ca.SX.zeros(3))
        local = state.pose(step.parent)[0].T @ force
        arm_entries += [(rows[i] + n, local[n]) for n in range(3) if not step.p[n].is_constant()]
        if step.axis is not None:
            axes, origin = state.pose(i)
            moment = sum((ca.cross(places[k] - origin, forces[k]) for k in moved), ca.SX.zeros(3))
            turned = ca.vertsplit(step.effort(axes @ step.axis, moment))
            arm_entries += [(rows[i] + 3 + n, effort) for n, effort in enumerate(turned)]
    return arm_entries
