"""Forces and moments from outside, on any frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from designopt.lazy import casadi as ca
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Point


@dataclass(frozen=True, eq=False)
class Load:
    """A `force` (3) N on `frame` and its `moment` (3) N m about the origin of the ground, in the axes of the ground.

    A force F at the place p (in the ground's axes) has the moment p x F.
    """

    frame: str
    force: Any
    moment: Any


def load_at(frame: str, position: Any, force: Any, moment: Any = (0.0, 0.0, 0.0)) -> Load:
    """`force` (3) at `position` (3) and a free `moment` (3) on `frame`, in the ground's axes."""
    f, at, free = (ca.SX(_column(v)) for v in (force, position, moment))
    return Load(frame, f, ca.cross(at, f) + free)


def force_on(state: TreeState, point: Point, force: Any) -> Load:
    """`force` (3), in the axes of the ground, on a point of a frame."""
    return load_at(point.frame, state.position(point), force)


def weight(state: TreeState, gravity: Any) -> list[Load]:
    """The weight of every body in `gravity` (3) m/s^2."""
    g = ca.SX(_column(gravity))
    return [
        force_on(state, Point(frame.name, frame.body.centre), frame.body.mass * g)
        for frame in state.tree.frames
        if frame.body is not None
    ]


def generalised_force(state: TreeState, loads: Sequence[Load]) -> Any:
    """(m, 1) what `loads` do to the coordinates, by virtual work: the sum of J' w of the frames' Jacobians J."""
    forces: dict[int, Any] = {}
    moments: dict[int, Any] = {}
    for load in loads:
        end = state.end(load.frame)
        if end >= 0:
            forces[end] = forces.get(end, 0.0) + ca.SX(_column(load.force))
            moments[end] = moments.get(end, 0.0) + ca.SX(_column(load.moment))
    variables, efforts = [], []
    for i in reversed(range(len(state.steps))):
        if i not in forces:
            continue
        step, f, m = state.steps[i], forces[i], moments[i]
        axes, origin = state.pose(i)
        before = state.pose(step.parent)[0]
        if step.axis is not None:
            variables.append(step.angle)
            efforts.append(step.effort(axes @ step.axis, m - ca.cross(origin, f)))
        variables.append(step.p)
        efforts.append(before.T @ f)
        if step.parent >= 0:
            forces[step.parent] = forces.get(step.parent, 0.0) + f
            moments[step.parent] = moments.get(step.parent, 0.0) + m
    if not variables:
        return ca.SX.zeros(len(state.tree.coordinates), 1)
    return ca.jtimes(ca.vertcat(*variables), state.z, ca.vertcat(*efforts), True)


def _column(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
