"""The state of a tree as CasADi expressions: where its frames and points are and how they move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from designopt.lazy import casadi as ca
from designopt_mechanics.body import is_not_zero
from designopt_mechanics.motions import Ball, Rotate
from designopt_mechanics.tree import GROUND, Frame, Point, Tree, TreeError, values_of


@dataclass(frozen=True, eq=False)
class JointStep:
    """One shift by p in the axes before it and one turn C by `angle` about `axis` after it, p and angle functions of z.

    For a turn by a quaternion `angle` are its components (4, 1), and `axis` (3, 4) times their rates is the angular
    velocity. `parent` is the step before it (-1: ground); `frame` is the frame that ends with it, if any.
    """

    parent: int
    p: Any
    turn: Any
    axis: Any
    angle: Any
    frame: Frame | None

    def effort(self, axes: Any, moment: Any) -> Any:
        """The generalised force of `moment` (3, 1) at `angle`; `axes` (3, k) are its `axis` in the axes of the
        moment."""
        return ca.dot(axes, moment) if axes.shape[1] == 1 else axes.T @ moment


@dataclass(frozen=True, eq=False)
class Rotor:
    """An inertia of one joint variable alone."""

    variable: Any
    inertia: Any


class TreeState:
    """A `tree` with coordinates `z`, and optionally their rates `dz` and accelerations `ddz`: CasADi SX columns (m, 1).

    `z` are symbols; rates and accelerations may be expressions. All results are expressions of them. Positions,
    velocities and forces are in the axes of the ground.
    """

    def __init__(self, tree: Tree, z: Any, dz: Any = None, ddz: Any = None) -> None:
        self.tree = tree
        self.z = _column(tree, "z", ca.SX(z))
        if not self.z.is_valid_input():
            raise ValueError("z are symbols, not expressions")
        self.dz: Any = None if dz is None else _column(tree, "dz", ca.SX(dz))
        self.ddz: Any = None if ddz is None else _column(tree, "ddz", ca.SX(ddz))
        self.steps, self.rotors, self._ends = _flatten(tree, ca.vertsplit(self.z) if tree.coordinates else [])

    @classmethod
    def symbols(cls, tree: Tree) -> TreeState:
        """A state of new symbols."""
        return cls(tree, *(ca.SX.sym(name, len(tree.coordinates)) for name in ("z", "dz", "ddz")))

    def end(self, frame: str) -> int:
        """The step that ends in `frame`, -1 for the ground; raises `TreeError` for an unknown frame."""
        if frame not in self._ends:
            self.tree.frame(frame)
        return self._ends[frame]

    # ------------------------------------------------------------------------------------------------------ places

    @cached_property
    def _poses(self) -> list[tuple[Any, Any]]:
        poses: list[tuple[Any, Any]] = []
        for step in self.steps:
            turn, origin = (ca.SX.eye(3), ca.SX.zeros(3)) if step.parent < 0 else poses[step.parent]
            poses.append((turn @ step.turn, origin + turn @ step.p))
        return poses

    def pose(self, step: int) -> tuple[Any, Any]:
        """Axes (3, 3) and origin (3, 1) after a step; -1 is the ground."""
        return (ca.SX.eye(3), ca.SX.zeros(3)) if step < 0 else self._poses[step]

    def axes(self, frame: str) -> Any:
        """(3, 3) the axes of a frame as columns."""
        return self.pose(self.end(frame))[0]

    def position(self, point: Point) -> Any:
        """(3, 1) m where a point is."""
        turn, origin = self.pose(self.end(point.frame))
        return origin + turn @ ca.SX(_as_list(point.position))

    # ------------------------------------------------------------------------------------------------------- rates

    def rate(self, expression: Any) -> Any:
        """The rate of an expression of `z`. Raises `ValueError` for a state without rates."""
        if self.dz is None:
            raise ValueError("the state has no rates dz")
        return ca.jtimes(expression, self.z, self.dz)

    def acceleration(self, expression: Any) -> Any:
        """The second rate of an expression of `z`. Raises `ValueError` for a state without accelerations."""
        if self.ddz is None:
            raise ValueError("the state has no accelerations ddz")
        if self.dz is None:
            raise ValueError("the state has no rates dz")
        along = ca.SX.sym("along", self.z.numel())
        curvature = ca.jtimes(ca.jtimes(expression, self.z, along), self.z, along)
        return ca.jtimes(expression, self.z, self.ddz) + ca.substitute(curvature, along, self.dz)

    def velocity(self, point: Point) -> Any:
        """(3, 1) m/s of a point."""
        return self.rate(self.position(point))

    def angular_velocity(self, frame: str) -> Any:
        """(3, 1) rad/s of a frame."""
        total = ca.SX.zeros(3)
        for i in self.way(self.end(frame)):
            step = self.steps[i]
            if step.axis is not None:
                total += self.pose(i)[0] @ step.axis @ self.rate(step.angle)
        return total

    def way(self, step: int) -> list[int]:
        """The steps from the ground to `step`, itself included."""
        steps = []
        while step >= 0:
            steps.append(step)
            step = self.steps[step].parent
        return steps[::-1]

    @property
    def named(self) -> Mapping[str, Any]:
        """The coordinates by name."""
        return _by_name(self.tree, self.z)


def joint_slopes(tree: Tree) -> dict[str, Any]:
    """The derivatives (v, m) of the v joint variables of each frame by the coordinates, as functions of these."""
    z = ca.SX.sym("z", len(tree.names))
    coordinates = _by_name(tree, z)
    slopes = {}
    for frame in tree.frames:
        variables = ca.vertcat(ca.SX(0, 1), *(_value(value, coordinates, frame) for value in values_of(frame)))
        slopes[frame.name] = ca.Function("slopes", [z], [ca.jacobian(variables, z)])
    return slopes


def coordinates_by_frame(tree: Tree) -> dict[str, set[int]]:
    """The indices of the coordinates that the own motions of each frame follow."""
    return {name: set(slopes.sparsity_out(0).get_col()) for name, slopes in joint_slopes(tree).items()}


def _by_name(tree: Tree, z: Any) -> dict[str, Any]:
    return {name: z[i] for i, name in enumerate(tree.names)}


def _column(tree: Tree, name: str, column: Any) -> Any:
    if column.shape != (len(tree.coordinates), 1):
        raise ValueError(f"{name} has shape {column.shape}, not ({len(tree.coordinates)}, 1)")
    return column


def _as_list(vector: Any) -> Any:
    return vector.tolist() if isinstance(vector, np.ndarray) else list(vector) if isinstance(vector, tuple) else vector


def _flatten(tree: Tree, z: Sequence[Any]) -> tuple[list[JointStep], list[Rotor], dict[str, int]]:
    """Steps of all frames, rotors of their motions, and the step where each frame ends."""
    coordinates = dict(zip(tree.names, z, strict=True))
    steps: list[JointStep] = []
    rotors = [Rotor(coordinates[c.name], c.inertia) for c in tree.coordinates if is_not_zero(c.inertia)]
    ends = {GROUND: -1}
    for frame in tree.frames:
        parent = ends[frame.parent]
        p, turn = ca.SX(_as_list(frame.position)), ca.SX.eye(3)
        if frame.turn is not None:
            turn = ca.SX(np.where(np.abs(frame.turn) < 1e-16, 0.0, np.asarray(frame.turn, float)))
        for motion in frame.motions:
            if isinstance(motion, Rotate):
                angle = _value(motion.angle, coordinates, frame)
                axis = ca.SX(motion.axis)
                steps.append(JointStep(parent, p, turn @ rotation(motion.axis, angle), axis, angle, None))
                parent, p, turn = len(steps) - 1, ca.SX.zeros(3), ca.SX.eye(3)
                variable = angle
            elif isinstance(motion, Ball):
                quaternion = ca.vertcat(*(_value(v, coordinates, frame) for v in motion.quaternion))
                matrix, axes = quaternion_turn(quaternion)
                steps.append(JointStep(parent, p, turn @ matrix, axes, quaternion, None))
                parent, p, turn = len(steps) - 1, ca.SX.zeros(3), ca.SX.eye(3)
                variable = ca.norm_2(quaternion)
            else:
                variable = _value(motion.distance, coordinates, frame)
                p = p + turn @ (ca.SX(motion.axis) * variable)
            inertia = 1.0 if isinstance(motion, Ball) else motion.inertia
            if is_not_zero(inertia):
                rotors.append(Rotor(variable, inertia))
        at_rest = not frame.motions or not isinstance(frame.motions[-1], Rotate | Ball)
        if at_rest:
            steps.append(JointStep(parent, p, turn, None, None, frame))
        else:
            steps[-1] = JointStep(steps[-1].parent, steps[-1].p, steps[-1].turn, steps[-1].axis, steps[-1].angle, frame)
        ends[frame.name] = len(steps) - 1
    return steps, rotors, ends


def _value(value: Any, coordinates: Mapping[str, Any], frame: Frame) -> Any:
    if isinstance(value, str):
        return coordinates[value]
    result = ca.SX(value(coordinates) if callable(value) else value)
    if result.shape != (1, 1):
        raise TreeError(frame.name, "motions", f"a joint function gives {result.shape[0]} values, not one")
    return result


def quaternion_turn(quaternion: Any) -> tuple[Any, Any]:
    """(3, 3) turn by a quaternion (w, x, y, z) of any length, and (3, 4) its angular velocity per rate, in the axes
    after it.
    """
    w, x, y, z = ca.vertsplit(quaternion)
    square = ca.sumsqr(quaternion)
    rows = [
        [w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
    rates = [[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]]
    turn, axes = (ca.vertcat(*(ca.horzcat(*row) for row in matrix)) for matrix in (rows, rates))
    return turn / square, 2.0 * axes / square


def rotation(axis: Sequence[float], angle: Any) -> Any:
    """(3, 3) turn by `angle` about a unit vector (Rodrigues); exact zeros and ones stay numbers."""
    x, y, z = axis
    c, s = ca.cos(angle), ca.sin(angle)
    v = 1.0 - c
    rows = [
        [x * x + (1.0 - x * x) * c, x * y * v - z * s, x * z * v + y * s],
        [x * y * v + z * s, y * y + (1.0 - y * y) * c, y * z * v - x * s],
        [x * z * v - y * s, y * z * v + x * s, z * z + (1.0 - z * z) * c],
    ]
    return ca.vertcat(*(ca.horzcat(*(ca.SX(e) for e in row)) for row in rows))
