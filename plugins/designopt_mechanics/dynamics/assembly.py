"""Forward dynamics by assembly and disassembly: free bodies are joined one joint after the other, then cut again.

Yamane and Nakamura; paragraphs 45 to 58 of JP 2002-154853; equivalent in form to Featherstone's divide-and-conquer
algorithm (1999). Joining gives the response of the rest to wrenches on what still awaits a joint, cutting gives the
wrench in every joint: the contact force when wires act as wrenches on bodies. All is in spatial coordinates of the
ground's origin. Pairs may be joined in any order; a balanced one needs few rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.lazy import casadi as ca
from designopt_mechanics.body import is_number, tensor
from designopt_mechanics.dynamics.recursion import NO_GRAVITY
from designopt_mechanics.state import TreeState, coordinates_by_frame
from designopt_mechanics.tree import GROUND, Tree, TreeError


@dataclass(frozen=True, eq=False)
class Assembled:
    """What forward dynamics finds.

    `accelerations` (m) of the coordinates; in `joints` of each body the force and moment (6) from the body before it,
    about the ground's origin and in its axes; `rounds` in which disjoint pairs were joined.
    """

    accelerations: Floats
    joints: Mapping[str, Floats]
    rounds: int


@dataclass(frozen=True, eq=False)
class _Joint:
    child: str
    parent: str
    rows: tuple[int, ...]


@dataclass(eq=False)
class _Part:
    """A subsystem: its bodies that await a joint, their free accelerations and responses to wrenches on them."""

    free: dict[str, Floats]
    response: dict[tuple[str, str], Floats]


@dataclass(frozen=True, eq=False)
class _Join:
    joint: _Joint
    start: Floats
    gain: dict[str, Floats]


class Assembly:
    """A `tree` whose bodies are joined so. Frames without a body belong to the joint of the next body.

    Raises `TreeError` for bodies without mass or inertia about all axes, for bodies that branch from a frame without
    one, and for a coordinate that moves several joints: those need the recursion.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._bodies = [f.name for f in tree.frames if f.body is not None]
        self._joints = self._joints_of_bodies()

    def accelerations(
        self,
        z: ArrayLike,
        dz: ArrayLike,
        forces: ArrayLike,
        gravity: ArrayLike = NO_GRAVITY,
        loads: Mapping[str, ArrayLike] | None = None,
        order: Literal["serial", "balanced"] = "serial",
    ) -> Assembled:
        """Accelerations at coordinates `z` and rates `dz` (m) under generalised `forces` (m), `gravity` (3) and
        `loads`.

        `loads` are forces and moments (6) about the ground's origin, by body. Raises `ValueError` for arrays that do
        not fit.
        """
        m = len(self.tree.names)
        at = [np.asarray(v, dtype=np.float64) for v in (z, dz, forces)]
        if any(v.shape != (m,) or not np.isfinite(v).all() for v in at):
            raise ValueError(f"coordinates, rates and forces must be {m} finite numbers each")
        spatial = self._spatial(np.asarray(gravity, dtype=np.float64), loads or {}, *at[:2])
        inverse, free, J, drift = spatial
        parts = {b: _Part({b: free[b]}, {(b, b): inverse[b]}) for b in self._bodies}
        part_of = {b: b for b in self._bodies}
        joins: list[_Join] = []
        rounds = 0
        for group in self._order(order):
            rounds += 1
            for joint in group:
                motion = self._motion(joint, J)
                effort = motion @ np.linalg.solve(motion.T @ motion, at[2][list(joint.rows)])
                bias = drift[joint.child] - drift.get(joint.parent, np.zeros(6))
                joins.append(self._join(joint, parts, part_of, motion, effort, bias))
        wrenches, joints = self._cut(joins)
        moved = {b: free[b] + inverse[b] @ wrenches[b] for b in self._bodies} | {GROUND: np.zeros(6)}
        accelerations = np.zeros(m)
        for joint in self._joints:
            motion = self._motion(joint, J)
            bias = drift[joint.child] - drift.get(joint.parent, np.zeros(6))
            change = moved[joint.child] - moved[joint.parent] - bias
            accelerations[list(joint.rows)] = np.linalg.lstsq(motion, change, rcond=None)[0]
        swapped = {name: np.concatenate([w[3:], w[:3]]) for name, w in joints.items()}
        return Assembled(accelerations, swapped, rounds)

    # ------------------------------------------------------------------------------------------------------ joints

    def _joints_of_bodies(self) -> list[_Joint]:
        """The joint before every body, with the coordinates that move it."""
        joints = []
        mover_of: dict[int, str] = {}
        used: dict[str, str] = {}
        rows = coordinates_by_frame(self.tree)
        for frame in self.tree.frames:
            if frame.body is None:
                continue
            if not is_number(frame.body.inertia) or np.linalg.eigvalsh(tensor(frame.body.inertia))[0] <= 0.0:
                raise TreeError(frame.name, "body", "has no inertia about some axis; assembly needs one about all")
            coordinates: set[int] = set()
            ancestor = frame
            while True:
                coordinates |= rows[ancestor.name]
                if used.setdefault(ancestor.name, frame.name) != frame.name:
                    raise TreeError(ancestor.name, "body", "has none and carries several bodies")
                if ancestor.parent == GROUND or self.tree.frame(ancestor.parent).body is not None:
                    break
                ancestor = self.tree.frame(ancestor.parent)
            for row in coordinates:
                if mover_of.setdefault(row, frame.name) != frame.name:
                    raise TreeError(frame.name, "motions", f"'{self.tree.names[row]}' moves another joint as well")
            joints.append(_Joint(frame.name, ancestor.parent, tuple(sorted(coordinates))))
        return joints

    def _order(self, order: str) -> list[list[_Joint]]:
        """Groups of joints of disjoint pairs."""
        if order == "serial":
            return [[joint] for joint in self._joints]
        waiting, groups = list(self._joints), []
        group_of = {b: b for b in [*self._bodies, GROUND]}
        while waiting:
            busy: set[str] = set()
            chosen = []
            for joint in waiting:
                pair = {group_of[joint.child], group_of[joint.parent]}
                if not pair & busy:
                    chosen.append(joint)
                    busy |= pair
            for joint in chosen:
                old, new = group_of[joint.child], group_of[joint.parent]
                group_of = {b: new if g == old else g for b, g in group_of.items()}
            groups.append(chosen)
            waiting = [joint for joint in waiting if joint not in chosen]
        return groups

    # --------------------------------------------------------------------------------------------------- mechanics

    @staticmethod
    def _motion(joint: _Joint, J: Mapping[str, Floats]) -> Floats:
        columns = J[joint.child][:, list(joint.rows)]
        moved: Floats = columns - (J[joint.parent][:, list(joint.rows)] if joint.parent in J else 0.0)
        return moved

    def _join(
        self,
        joint: _Joint,
        parts: dict[str, _Part],
        part_of: dict[str, str],
        motion: Floats,
        effort: Floats,
        bias: Floats,
    ) -> _Join:
        """Join two parts; the bodies of further joints remain."""
        c, p = joint.child, joint.parent
        child = parts[part_of[c]]
        parent = parts[part_of[p]] if p != GROUND else _Part({}, {})
        complement = np.linalg.svd(motion)[0][:, motion.shape[1] :] if motion.size else np.eye(6)
        compliance = child.response[c, c] + (parent.response[p, p] if p != GROUND else 0.0)
        G = complement @ np.linalg.solve(complement.T @ compliance @ complement, complement.T)
        apart = child.free[c] - (parent.free[p] if p != GROUND else 0.0) + compliance @ effort - bias
        start = effort - G @ apart
        toward = {h: child.response[h, c] for h in child.free} | {h: -parent.response[h, p] for h in parent.free}
        gain = {h: -G @ part.T for h, part in toward.items()}
        free = {h: a + toward[h] @ start for h, a in {**child.free, **parent.free}.items()}
        response = {**child.response, **parent.response}
        responses = {}
        for i in free:
            for j in free:
                responses[i, j] = response.get((i, j), np.zeros((6, 6))) + toward[i] @ gain[j]
        one = _Part(free, responses)
        names = [b for b, key in part_of.items() if key == part_of[c] or (p != GROUND and key == part_of[p])]
        for b in names:
            part_of[b] = c
        parts[c] = one
        return _Join(joint, start, gain)

    def _cut(self, joins: Sequence[_Join]) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Wrenches on all bodies, and in all joints, from the last joint to the first."""
        total = {b: np.zeros(6) for b in self._bodies}
        wrenches = {}
        for join in reversed(joins):
            wrench = join.start + sum((gain @ total[h] for h, gain in join.gain.items()), np.zeros(6))
            wrenches[join.joint.child] = wrench
            total[join.joint.child] = total[join.joint.child] + wrench
            if join.joint.parent != GROUND:
                total[join.joint.parent] = total[join.joint.parent] - wrench
        return total, wrenches

    def _spatial(
        self, gravity: Floats, loads: Mapping[str, ArrayLike], z: Floats, dz: Floats
    ) -> tuple[dict[str, Floats], dict[str, Floats], dict[str, Floats], dict[str, Floats]]:
        """Of each body its inverse inertia, free acceleration, Jacobian and acceleration without accelerations."""
        inverse: dict[str, Floats] = {}
        free: dict[str, Floats] = {}
        J: dict[str, Floats] = {}
        drift: dict[str, Floats] = {}
        for name, parts in zip(
            self._bodies, np.split(np.asarray(self._expressions(z, dz)), len(self._bodies)), strict=True
        ):
            body = self.tree.frame(name).body
            assert body is not None
            V, A, jacobian, turn, origin = parts[:, 0], parts[:, 1], parts[:, 2:-4], parts[:3, -4:-1], parts[:3, -1]
            centre = origin + turn @ np.asarray(body.centre, dtype=np.float64)
            cross = _skew(centre)
            inertia = np.zeros((6, 6))
            inertia[:3, :3] = turn @ tensor(body.inertia) @ turn.T + body.mass * cross @ cross.T
            inertia[:3, 3:], inertia[3:, :3] = body.mass * cross, body.mass * cross.T
            inertia[3:, 3:] = body.mass * np.eye(3)
            momentum = inertia @ V
            w, v, n, f = V[:3], V[3:], momentum[:3], momentum[3:]
            gyroscopic = np.concatenate([np.cross(w, n) + np.cross(v, f), np.cross(w, f)])
            outer = np.asarray(loads.get(name, np.zeros(6)), dtype=np.float64)
            weight = np.concatenate([np.cross(centre, body.mass * gravity), body.mass * gravity])
            acting = weight + np.concatenate([outer[3:], outer[:3]]) - gyroscopic
            inverse[name] = np.asarray(np.linalg.inv(inertia), dtype=np.float64)
            free[name], J[name], drift[name] = inverse[name] @ acting, jacobian, A
        return inverse, free, J, drift

    @cached_property
    def _expressions(self) -> Any:
        """(z, dz) -> of each body six rows: velocity, its rate at constant rates, Jacobian, axes and origin."""
        s = TreeState.symbols(self.tree)
        blocks = []
        for name in self._bodies:
            axes, origin = s.pose(s.end(name))
            w = s.angular_velocity(name)
            v = s.rate(origin) + ca.cross(origin, w)
            velocity = ca.vertcat(w, v)
            pose = ca.vertcat(ca.horzcat(axes, origin), ca.SX.zeros(3, 4))
            jacobian = ca.densify(ca.jacobian(velocity, s.dz))
            blocks.append(ca.horzcat(velocity, ca.jtimes(velocity, s.z, s.dz), jacobian, pose))
        return ca.Function("spatial", [s.z, s.dz], [ca.densify(ca.vertcat(*blocks))])


def _skew(v: Floats) -> Floats:
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
