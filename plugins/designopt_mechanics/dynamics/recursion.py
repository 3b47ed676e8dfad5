"""Inverse dynamics by recursion: out along the tree with the motion, back with the forces (Newton and Euler).

Luh, Walker and Paul (1980); Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 5. Joint functions enter only
through the joint variables c(z), their rates and accelerations, and through the projection dc/dz (form S of the
project's specification of skeletal systems, after Ehsani, Rostami and Parnianpour 2016).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.lazy import casadi as ca
from designopt_mechanics.body import inertia_tensor
from designopt_mechanics.loads import Load
from designopt_mechanics.state import TreeState, coordinates_by_frame, joint_slopes
from designopt_mechanics.tree import Tree, TreeError

#: Without weight.
NO_GRAVITY = (0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Efforts:
    """Forces that a motion needs: generalised `forces` (m, 1); in `joints` of each frame a force and a moment, (3, 1)
    each.

    The force and moment are exerted by the previous frame on the frame, about its origin and in the axes of the ground.
    They include all that acts between frames and is not among the loads.
    """

    forces: Any
    joints: Mapping[str, tuple[Any, Any]]


def inverse_dynamics(state: TreeState, gravity: Any = NO_GRAVITY, loads: Sequence[Load] = ()) -> Any:
    """(m, 1) generalised forces that the motion of `state` needs beside `gravity` (3) m/s^2 and `loads`.

    With M the mass matrix, N the Coriolis and centrifugal terms, G the weight and J' w the loads this is
    M ddz + N dz - G - J' w.
    """
    return _recursion(state, gravity, loads)[0]


def efforts(state: TreeState, gravity: Any = NO_GRAVITY, loads: Sequence[Load] = (), couplers: bool = False) -> Efforts:
    """`inverse_dynamics` with the forces and moments in the joints of all frames.

    They follow from the balance of the bodies beyond a joint. Joint functions that couple several frames may close a
    loop of bodies, and where the loop was cut there is a force that is not part of the tree. `couplers` states that
    none do: what couples the joints acts within them, as a coupler of OpenSim does.

    Raises `TreeError` for frames with fewer freedoms than joint variables, unless `couplers` couple them.
    """
    if not couplers:
        _check_open(state.tree)
    forces, joint_loads = _recursion(state, gravity, loads)
    joints = {}
    for frame in state.tree.frames:
        i = state.end(frame.name)
        axes = state.pose(i)[0]
        force, moment = joint_loads[i]
        joints[frame.name] = (axes @ force, axes @ moment)
    return Efforts(forces, joints)


def _check_open(tree: Tree) -> None:
    """Raises `TreeError` where joint functions leave the variables of several frames fewer freedoms than variables."""
    slopes = joint_slopes(tree)
    groups: list[tuple[set[int], list[str]]] = []  # coordinates, and the frames that they move together
    for name, rows in coordinates_by_frame(tree).items():
        overlaps = [group for group in groups if group[0] & rows]
        groups = [group for group in groups if group not in overlaps]
        groups.append((rows.union(*(g[0] for g in overlaps)), [*(n for g in overlaps for n in g[1]), name]))
    for coordinates, frames in groups:
        if len(frames) == 1:
            continue
        slope = np.vstack([np.asarray(slopes[name](tree.reference), dtype=np.float64) for name in frames])
        if np.linalg.matrix_rank(slope) < np.any(slope != 0.0, axis=1).sum():
            raise TreeError(
                ", ".join(tree.names[i] for i in sorted(coordinates)),
                "joint forces",
                f"joint functions couple the frames {', '.join(frames)}: if they close a loop of bodies, the forces in "
                "its joints do not follow from the tree. inverse_dynamics (generalised forces) is available; joint "
                "forces are without the functions, each joint with its own coordinates, or with couplers=True if what "
                "couples the joints acts within them",
            )


def _recursion(state: TreeState, gravity: Any, loads: Sequence[Load]) -> tuple[Any, list[tuple[Any, Any]]]:
    """The generalised forces, and for each step the force and moment on the frames that it carries, in the axes
    after it.
    """
    if state.dz is None or state.ddz is None:
        raise ValueError("inverse dynamics needs a state with rates dz and accelerations ddz")
    variables = ca.vertcat(*(ca.vertcat(s.p, *([] if s.axis is None else [s.angle])) for s in state.steps))
    rates = state.rate(variables) if state.steps else variables
    second = state.acceleration(variables) if state.steps else variables
    own_loads = _on_frames(state, loads)
    free = -ca.SX(list(gravity) if isinstance(gravity, tuple) else gravity)
    ground_motion = (ca.SX.zeros(3), ca.SX.zeros(3), free)
    motion: list[tuple[Any, Any, Any]] = []
    joint_loads: list[Any] = []
    at = 0
    for i, step in enumerate(state.steps):
        w, alpha, a = ground_motion if step.parent < 0 else motion[step.parent]
        p, dp, ddp = step.p, rates[at : at + 3], second[at : at + 3]
        at += 3
        a = a + ca.cross(alpha, p) + ca.cross(w, ca.cross(w, p)) + 2.0 * ca.cross(w, dp) + ddp
        w, alpha, a = step.turn.T @ w, step.turn.T @ alpha, step.turn.T @ a
        if step.axis is not None:
            angle_rows = slice(at, at + step.axis.shape[1])
            spin = step.axis @ rates[angle_rows]
            alpha = alpha + step.axis @ second[angle_rows] + ca.cross(w, spin)
            if not step.axis.is_constant():
                alpha = alpha + state.rate(step.axis) @ rates[angle_rows]
            w = w + spin
            at = angle_rows.stop
        motion.append((w, alpha, a))
        body = None if step.frame is None else step.frame.body
        force, moment = (ca.SX.zeros(3), ca.SX.zeros(3)) if body is None else _inertial(body, w, alpha, a)
        if i in own_loads:
            outer, about = own_loads[i]
            force, moment = force - outer, moment - about
        joint_loads.append((force, moment))
    back: list[Any] = []
    for i in reversed(range(len(state.steps))):
        step, (force, moment) = state.steps[i], joint_loads[i]
        before = step.turn @ force
        back.append(ca.vertcat(before, *([] if step.axis is None else [step.effort(step.axis, moment)])))
        if step.parent >= 0:
            sum_force, sum_moment = joint_loads[step.parent]
            joint_loads[step.parent] = (
                sum_force + before,
                sum_moment + step.turn @ moment + ca.cross(step.p, before),
            )
    forces = ca.SX.zeros(state.z.shape)
    if state.steps:
        forces = forces + ca.jtimes(variables, state.z, ca.vertcat(*reversed(back)), True)
    for rotor in state.rotors:
        effort = rotor.inertia * state.acceleration(rotor.variable)
        forces = forces + ca.jtimes(rotor.variable, state.z, effort, True)
    return forces, joint_loads


def _inertial(body: Any, w: Any, alpha: Any, a: Any) -> tuple[Any, Any]:
    """Force and moment about the frame's origin that a body needs to move so."""
    centre = ca.SX(list(body.centre) if isinstance(body.centre, tuple) else body.centre)
    inertia = inertia_tensor(body)
    at_centre = a + ca.cross(alpha, centre) + ca.cross(w, ca.cross(w, centre))
    force = body.mass * at_centre
    moment = inertia @ alpha + ca.cross(w, inertia @ w) + ca.cross(centre, force)
    return force, moment


def _on_frames(state: TreeState, loads: Sequence[Load]) -> dict[int, tuple[Any, Any]]:
    """Force and moment about the frame's origin, in its axes, of the loads on each step."""
    total: dict[int, tuple[Any, Any]] = {}
    for load in loads:
        i = state.end(load.frame)
        if i < 0:
            continue
        axes, origin = state.pose(i)
        force, moment = (ca.SX(list(v) if isinstance(v, tuple) else v) for v in (load.force, load.moment))
        f, m = axes.T @ force, axes.T @ (moment - ca.cross(origin, force))
        before = total.get(i)
        total[i] = (f, m) if before is None else (before[0] + f, before[1] + m)
    return total
