"""The forces of every joint and cut of a mechanism with closed loops, from the equations of all bodies.

A joint transmits nothing along its free direction but the effort of its drive and its laws. Over all joint variables of
the lifted tree, with the efforts e that the motion needs and the Jacobian J of the cuts, these are linear equations
J' lambda = e of the cut forces lambda; the wrenches of all joints then follow along the tree. Where the equations
determine fewer forces than there are (a redundant loop), they are refused, or solved by the smallest cut forces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from designopt.arrays import Floats
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt_mechanics.dynamics.recursion import efforts, inverse_dynamics
from designopt_mechanics.loads import Load, force_on
from designopt_mechanics.mechanism.loops import LoopSolver
from designopt_mechanics.motions import Ball
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import TreeError

Redundant = Literal["refuse", "least_squares"]
#: The equations do not determine a force whose singular value is below this share of the largest.
_UNDETERMINED = 1e-9
#: A residual of the symbolic solution up to this share of the forces is round-off.
_ROUND_OFF = 1e-9
#: Maximum residual of the equations of the passive joints, as a share of the efforts.
_UNBALANCED = 1e-5


class RedundantLoop(ValueError):
    """A loop whose joints share forces in a way that the equations of rigid bodies do not determine."""


@dataclass(frozen=True, eq=False)
class MotionRows:
    """A motion: `time` (n,), coordinates `z`, rates `dz` and accelerations `ddz` (n, m) that close the loops."""

    time: Floats
    z: Floats
    dz: Floats
    ddz: Floats


@dataclass(frozen=True, eq=False)
class SolvedForces:
    """`efforts` (n, f) of the driven coordinates, and `cuts` (n, k): forces on the first points of the cuts along their
    axes."""

    efforts: Floats
    cuts: Floats


class LoopForces:
    """The forces of a mechanism whose `driven` coordinates (by default the independent ones) have unknown drives.

    The file's drives of all other coordinates act; `driven` is empty where a motion follows from them. Raises
    `TreeError` for driven coordinates that do not determine the motion, and for joint functions that couple frames
    without a meeting point that explains it (see `Mechanism.couplers`).
    """

    def __init__(self, loops: LoopSolver, driven: Sequence[str] | None = None, redundant: Redundant = "refuse") -> None:
        self.loops, self.redundant = loops, redundant
        mechanism, names = loops.mechanism, loops.mechanism.tree.names
        self.driven = tuple(names[i] for i in loops.independent) if driven is None else tuple(driven)
        self._driven = [names.index(name) for name in self.driven]
        if self.driven and len(self._driven) != len(loops.independent):
            raise TreeError(
                ", ".join(self.driven),
                "drives",
                f"{len(self.driven)} driven coordinates do not determine {len(loops.independent)} degrees of freedom",
            )
        self.state, self.time, self.p = loops.state, mechanism.time, loops.p
        self._loads = mechanism.forces_on(self.state)
        self.cut_forces = ca.SX.sym("cut", sum(cut.axes.shape[1] for cut in loops.lifted_tree.cuts))
        self.labels = [cut.meet.name for cut in loops.lifted_tree.cuts for _ in range(cut.axes.shape[1])]

    # --------------------------------------------------------------------------------------------------- expressions

    @cached_property
    def generalised_forces(self) -> Any:
        """(m, 1) the generalised forces that the motion needs beside laws, loads and the drives of the file."""
        mechanism = self.loops.mechanism
        acting = mechanism.passive(self.state) + self._drives
        return inverse_dynamics(self.state, mechanism.gravity, self._loads) - acting

    @cached_property
    def _drives(self) -> Any:
        """(m, 1) the file's drives of coordinates that are not driven."""
        drives = self.loops.mechanism.driven(self.state)
        return ca.vertcat(ca.SX(0, 1), *(0.0 if i in self._driven else drives[i] for i in range(drives.numel())))

    @cached_property
    def wrenches(self) -> Mapping[str, tuple[Any, Any]]:
        """Force and moment (3, 1) on each frame from the frame before it, about its origin, in the axes of the ground,
        under `cut_forces`."""
        loads = [*self._loads, *self._cut_loads()]
        return efforts(self.state, self.loops.mechanism.gravity, loads, couplers=True).joints

    @cached_property
    def cut_vectors(self) -> Mapping[str, Any]:
        """The force (3, 1) on the first point of each meeting, in the axes of the ground."""
        vectors, at = {}, 0
        for cut in self.loops.lifted_tree.cuts:
            k = cut.axes.shape[1]
            vectors[cut.meet.name] = ca.SX(cut.axes) @ self.cut_forces[at : at + k]
            at += k
        return vectors

    @cached_property
    def balance(self) -> tuple[Any, Any]:
        """A (rows, k) and b (rows, 1) of the equations A lambda = b along the free directions of passive joints."""
        lifted_tree, mechanism = self.loops.lifted_tree, self.loops.mechanism
        if not lifted_tree.cuts:
            return ca.SX(0, 0), ca.SX(0, 1)
        free = TreeState.symbols(lifted_tree.tree)
        generalised_forces = inverse_dynamics(free, mechanism.gravity, self._loads)
        J = ca.jacobian(lifted_tree.gap(free), free.z)
        f = ca.Function(
            "free", [free.z, free.dz, free.ddz, self.state.z, self.state.dz, self.time, self.p], [generalised_forces, J]
        )
        variables = lifted_tree.variables(self.state.named)
        c, dc, ddc = variables, self.state.rate(variables), self.state.acceleration(variables)
        generalised_forces, J = f(c, dc, ddc, self.state.z, self.state.dz, self.time, self.p)
        acting = mechanism.passive(self.state) + self._drives
        for name in mechanism.tree.names:
            i = mechanism.tree.names.index(name)
            if name in lifted_tree.tree.names:
                generalised_forces[lifted_tree.tree.names.index(name)] -= acting[i]
        slopes = ca.jacobian(variables, self.state.z)
        rows, right = [], []
        for columns, matrix in self._directions(slopes):
            rows.append(matrix.T @ J[:, columns].T)
            right.append(matrix.T @ generalised_forces[columns])
        return ca.densify(ca.vertcat(ca.SX(0, J.shape[0]), *rows)), ca.densify(ca.vertcat(ca.SX(0, 1), *right))

    def _cut_loads(self) -> list[Load]:
        loads = []
        for cut in self.loops.lifted_tree.cuts:
            force = self.cut_vectors[cut.meet.name]
            loads += [force_on(self.state, cut.meet.first, force), force_on(self.state, cut.meet.second, -force)]
        return loads

    def _directions(self, slopes: Any) -> list[tuple[list[int], Any]]:
        """Per passive joint the indices of its variables and the directions (v, r) in which it is free."""
        lifted_tree, names = self.loops.lifted_tree, self.loops.lifted_tree.tree.names
        structure = self._structure
        directions = []
        for frame, columns in structure.by_frame.items():
            driven = [c for c in columns if names[c] in self.driven]
            if structure.along_path and len(structure.moving[frame]) < len(columns):
                moving = self.loops.mechanism.tree.names
                driving = {names[c] for c in driven}
                passive = [i for i in structure.moving[frame] if moving[i] not in driving]
                if passive:
                    directions.append((columns, slopes[columns, passive]))
                continue
            free = [
                c for c in columns if c not in driven and not (structure.couplers and names[c] in lifted_tree.functions)
            ]
            if free:
                directions.append((free, ca.SX.eye(len(free))))
        return directions

    @cached_property
    def _structure(self) -> _Structure:
        """How the loops' joints are free: judged at the reference posture."""
        loops, lifted_tree = self.loops, self.loops.lifted_tree
        p = np.array(loops.mechanism.column())
        z = loops.start(p)[None]
        coordinates = self.state.named
        variables = lifted_tree.variables(coordinates)
        slopes_of = ca.Function(
            "slopes", [self.state.z, self.p], [variables, ca.densify(ca.jacobian(variables, self.state.z))]
        )
        c, slopes = (np.asarray(r, dtype=np.float64) for r in slopes_of(z[0], p))
        free = TreeState.symbols(lifted_tree.tree)
        gap = lifted_tree.gap(free)
        J = np.asarray(
            ca.Function("J", [free.z, self.p], [ca.densify(ca.jacobian(gap, free.z))])(c, p), dtype=np.float64
        )
        loop_frames = {
            lifted_tree.frame_of[n]
            for i, n in enumerate(lifted_tree.tree.names)
            if np.abs(J[:, i]).max(initial=0.0) > 1e-12
        }
        in_loops = [i for i, n in enumerate(lifted_tree.tree.names) if lifted_tree.frame_of[n] in loop_frames]
        tangent = self.tangent(z, p)[0]
        by_frame: dict[str, list[int]] = {}
        for i in in_loops:
            by_frame.setdefault(lifted_tree.frame_of[lifted_tree.tree.names[i]], []).append(i)
        moving = {
            frame: [k for k in range(slopes.shape[1]) if np.abs(slopes[columns, k]).max() > 1e-12]
            for frame, columns in by_frame.items()
        }
        freedom = _rank((slopes @ tangent)[in_loops])
        held_lengths = self._lengths(c, slopes @ tangent, in_loops)
        closing_rank = _rank(np.vstack([J, held_lengths]))
        functions = [i for i in in_loops if lifted_tree.tree.names[i] in lifted_tree.functions]
        extra = len(in_loops) - closing_rank - freedom
        path = [np.eye(len(lifted_tree.tree.names))[:, c] if len(moving[f]) >= len(c)
                else _path_columns(slopes, c, moving[f]) for f, c in by_frame.items()]  # fmt: skip
        S = np.hstack(path) if path else np.zeros((len(lifted_tree.tree.names), 0))
        along_path = extra > 0 and S.shape[1] - _rank(J @ S) == freedom
        couplers = extra > 0 and not along_path
        if couplers and (extra != len(functions) or not loops.mechanism.couplers):
            raise TreeError(
                ", ".join(lifted_tree.frame_of[lifted_tree.tree.names[i]] for i in functions) or ", ".join(by_frame),
                "joint forces",
                "joint functions couple these frames beyond what the points that meet explain: state the points that "
                "meet of every loop, or couplers: true if what couples the joints acts within them",
            )
        if not loops.mechanism.couplers:
            self._check_outside(slopes, set(by_frame))
        return _Structure(by_frame, moving, along_path, couplers)

    def _lengths(self, c: Floats, moving: Floats, in_loops: Sequence[int]) -> Floats:
        """(k, n) slopes of the lengths of quaternions that a relation keeps: they transmit nothing."""
        names, rows = self.loops.lifted_tree.tree.names, []
        for frame in self.loops.lifted_tree.tree.frames:
            for motion in frame.motions:
                if isinstance(motion, Ball) and all(name in names for name in motion.quaternion):
                    row, columns = np.zeros(len(names)), [names.index(str(name)) for name in motion.quaternion]
                    row[columns] = c.ravel()[columns]
                    if set(columns) <= set(in_loops) and np.abs(row @ moving).max(initial=0.0) < 1e-9:
                        rows.append(row)
        return np.array(rows).reshape(len(rows), len(names))

    def _check_outside(self, slopes: Floats, in_loops: set[str]) -> None:
        """Raises `TreeError` for frames outside of the stated loops that joint functions couple."""
        lifted_tree = self.loops.lifted_tree
        by_frame: dict[str, list[int]] = {}
        for i, name in enumerate(lifted_tree.tree.names):
            if lifted_tree.frame_of[name] not in in_loops and np.abs(slopes[i]).max(initial=0.0) > 0.0:
                by_frame.setdefault(lifted_tree.frame_of[name], []).append(i)
        rows = [i for columns in by_frame.values() for i in columns]
        if _rank(slopes[rows]) < sum(_rank(slopes[columns]) for columns in by_frame.values()):
            raise TreeError(
                ", ".join(by_frame),
                "joint forces",
                "joint functions couple these frames: if they close a loop of bodies, state the points that meet "
                "(meet); if what couples the joints acts within them, state couplers: true",
            )

    # ----------------------------------------------------------------------------------------------------------- rows

    def solve(self, motion: MotionRows, p: Sequence[float]) -> SolvedForces:
        """Efforts and cut forces of a motion. Raises `RedundantLoop` where they are not determined."""
        joint_forces = self._joint_forces(motion, p)
        if self.redundant == "refuse" and self._planar_meetings[1].numel():
            self._refuse_across(motion, joint_forces, p)
        return joint_forces

    def _joint_forces(self, motion: MotionRows, p: Sequence[float]) -> SolvedForces:
        if self._cuts_are_multipliers:
            solution, left, size = self._multipliers(motion.z, motion.dz, motion.ddz, motion.time, p)
            if (left <= _ROUND_OFF * np.maximum(size, 1e-9)).all():  # not where a system is singular, or not finite
                f = len(self.driven)
                unknowns = solution.reshape(len(motion.z), -1)
                return SolvedForces(unknowns[:, :f], unknowns[:, f:])
        u = self.efforts(motion, p)
        _ = self._structure
        if not self.labels:
            return SolvedForces(u, np.zeros((len(u), 0)))
        A, b = self._balance_rows(motion.z, motion.dz, motion.ddz, motion.time, p)
        A, b = A.reshape(len(u), -1, len(self.labels)), b.reshape(len(u), -1)
        usable = np.isfinite(A).all(axis=(1, 2)) & np.isfinite(b).all(axis=1)
        cuts = np.full((len(u), len(self.labels)), np.nan)
        if usable.any():
            U, sizes, V = np.linalg.svd(A[usable], full_matrices=False)
            small = sizes < _UNDETERMINED * sizes[:, :1]
            if self.redundant == "refuse":
                self._refuse(small, V, A.shape[1])
            inverse = np.where(small, 0.0, 1.0 / np.where(small, 1.0, sizes))
            cuts[usable] = np.einsum("nik,ni->nk", V, inverse * np.einsum("nji,nj->ni", U, b[usable]))
            left = np.abs(np.einsum("nik,nk->ni", A[usable], cuts[usable]) - b[usable]).max()
            if left > _UNBALANCED * max(1e-6, float(np.abs(b[usable]).max())):
                raise TreeError(
                    ", ".join(self.driven) or ", ".join(self.loops.mechanism.drives),
                    "drives",
                    f"joints without a drive would have to carry efforts (up to {left:.3g} N or N m): each drive must "
                    "be on a coordinate that moves one joint directly, and the loops must be closed",
                )
        return SolvedForces(u, cuts)

    @property
    def _cuts_are_multipliers(self) -> bool:
        """Whether the multipliers of the loops' equations are the cut forces: no joint functions, nothing redundant."""
        loops = self.loops
        is_plain = not loops.lifted_tree.functions and not loops.mechanism.relations and bool(self.driven)
        return is_plain and self.labels == loops.labels

    @cached_property
    def _multipliers(self) -> Rows:
        """(z, dz, ddz, time, p) -> efforts and multipliers, the largest residual of their equations and their size."""
        drives = ca.SX.eye(self.state.z.numel())[:, self._driven]
        J = self.loops.jacobian if self.labels else ca.SX(0, self.state.z.numel())
        matrix = ca.horzcat(drives, J.T)
        generalised_forces = ca.densify(self.generalised_forces)
        solution = ca.solve(matrix, generalised_forces)
        left = ca.norm_inf(matrix @ solution - generalised_forces)
        return self._rows(
            "multipliers", ca.cse([solution, left, ca.norm_inf(generalised_forces) + ca.norm_inf(solution)])
        )

    def efforts(self, motion: MotionRows, p: Sequence[float]) -> Floats:
        """(n, f) of the driven coordinates, by virtual work along the free directions of the mechanism."""
        if not self.driven:
            return np.zeros((len(motion.z), 0))
        (generalised_forces,) = self._generalised_force_rows(motion.z, motion.dz, motion.ddz, motion.time, p)
        tangent = self.tangent(motion.z, np.asarray(p, dtype=np.float64))
        right = np.einsum("nmf,nm->nf", tangent, generalised_forces.reshape(len(motion.z), -1))
        drives = np.swapaxes(tangent[:, self._driven, :], 1, 2)
        return np.asarray(np.linalg.solve(drives, right[..., None])[..., 0], dtype=np.float64)

    @property
    def is_redundant(self) -> bool:
        """Whether the reference posture leaves forces undetermined."""
        if self._planar_meetings[1].numel():
            return True
        z = self.loops.start(self.loops.mechanism.column())[None]
        zero = np.zeros_like(z)
        A, _ = self._balance_rows(z, zero, zero, np.zeros(1), self.loops.mechanism.column())
        return bool(self.labels) and _rank(A.reshape(-1, len(self.labels))) < len(self.labels)

    def refuse_redundant(self) -> None:
        """Raises `RedundantLoop` where forces at rest in the reference posture are not determined, if they are to be.

        For checks before a run: nothing is compiled.
        """
        if self.redundant != "refuse" or not self.labels:
            return
        p = self.loops.mechanism.column()
        z = self.loops.start(p)[None]
        motion = MotionRows(np.zeros(1), z, np.zeros_like(z), np.zeros_like(z))
        arguments = [self.state.z, self.state.dz, self.state.ddz, self.time, self.p]
        balance = ca.Function("balance", arguments, [ca.densify(part) for part in self.balance])
        A, b = (np.asarray(part, dtype=np.float64) for part in balance(z[0], motion.dz[0], motion.ddz[0], 0.0, p))
        if not (np.isfinite(A).all() and np.isfinite(b).all()):  # a task names it as the status of its postures
            return
        _, sizes, V = np.linalg.svd(A, full_matrices=False)
        self._refuse((sizes < _UNDETERMINED * sizes[:1])[None], V[None], len(A))
        if self._planar_meetings[1].numel():
            cuts: Floats = np.linalg.lstsq(A, b.ravel(), rcond=None)[0].astype(np.float64)
            self._refuse_across(motion, SolvedForces(np.zeros((1, 0)), cuts[None]), p)

    @cached_property
    def _planar_meetings(self) -> tuple[list[str], Any]:
        """Meetings in a plane, and the forces (k, 1) in joints of their loops across it that may differ from zero."""
        names, forces = [], []
        for cut in self.loops.lifted_tree.cuts:
            for frame in self.loops.lifted_tree.frames_between(cut.meet) if cut.fixed_axes.size else ():
                force = ca.simplify(ca.SX(cut.fixed_axes.T) @ self.wrenches[frame][0])
                for part in ca.vertsplit(force):
                    if not part.is_zero():
                        names.append(cut.meet.name)
                        forces.append(part)
        return names, ca.vertcat(ca.SX(0, 1), *forces)

    @cached_property
    def _across_rows(self) -> Rows:
        arguments = [self.state.z, self.state.dz, self.state.ddz, self.time, self.p, self.cut_forces]
        return Rows(ca.Function("across", arguments, [ca.densify(self._planar_meetings[1])]), compiled=False)

    def _refuse_across(self, motion: MotionRows, joint_forces: SolvedForces, p: Sequence[float]) -> None:
        """Raises `RedundantLoop` where joints of a planar loop carry loads across its plane."""
        names, _ = self._planar_meetings
        (forces,) = self._across_rows(motion.z, motion.dz, motion.ddz, motion.time, p, joint_forces.cuts)
        largest = np.abs(forces.reshape(len(motion.z), -1)).max(axis=0)
        size = max(
            1e-6,
            float(np.abs(joint_forces.cuts).max(initial=0.0)),
            float(np.abs(joint_forces.efforts).max(initial=0.0)),
        )
        if largest.max() > _UNBALANCED * size:
            raise RedundantLoop(
                f"the loop closed by {names[int(largest.argmax())]} is planar, and its joints carry up to "
                f"{largest.max():.3g} N across its plane: how they share it is not determined by the equations of "
                "rigid bodies. Leave this load out, or ask for redundant: least_squares, which leaves it to the joints "
                "of the tree"
            )

    def _refuse(self, small: Any, V: Floats, rows: int) -> None:
        k = len(self.labels)
        if not small.any() and rows >= k:
            return
        row = int(np.argmax(small.any(axis=1)))
        null = np.eye(k) - V[row][~small[row]].T @ V[row][~small[row]]
        meets = {self.labels[i] for i in range(k) if np.abs(null[i]).max() > 1e-6}
        lifted_tree = self.loops.lifted_tree
        frames = dict.fromkeys(
            n for cut in lifted_tree.cuts if cut.meet.name in meets for n in lifted_tree.frames_between(cut.meet)
        )
        raise RedundantLoop(
            f"the loops closed by {', '.join(sorted(meets))} are redundant: the forces in the joints of "
            f"{', '.join(frames)} are not determined by the equations of rigid bodies. Leave a constraint out, or ask "
            "for redundant: least_squares, which gives the smallest forces in the cuts"
        )

    @cached_property
    def _generalised_force_rows(self) -> Rows:
        return self._rows("needed", [ca.cse(self.generalised_forces)])

    @cached_property
    def _balance_rows(self) -> Rows:
        A, b = self.balance
        return self._rows("balance", ca.cse([A, b]))

    def _rows(self, name: str, results: Sequence[Any]) -> Rows:
        arguments = [self.state.z, self.state.dz, self.state.ddz, self.time, self.p]
        return Rows(ca.Function(name, arguments, [ca.densify(r) for r in results]))

    def tangent(self, z: Floats, p: Any) -> Floats:
        """(n, m, f) rates of all coordinates at unit rates of the independent ones."""
        free = self.loops.independent
        unit = np.eye(len(free))
        columns = [self.loops.rates(z, np.tile(row, (len(z), 1)), p) for row in unit]
        return np.stack(columns, axis=2) if columns else np.zeros((*z.shape, 0))


@dataclass(frozen=True, eq=False)
class _Structure:
    """Variables of the loops' joints by frame, the coordinates that move each frame's joint, and how functions count:
    as a path of the joint (`along_path`), as couplers (`coupled`), or as the solution of the loops."""

    by_frame: Mapping[str, list[int]]
    moving: Mapping[str, list[int]]
    along_path: bool
    couplers: bool


def _path_columns(slopes: Floats, rows: list[int], columns: list[int]) -> Floats:
    path_slopes = np.zeros((len(slopes), len(columns)))
    path_slopes[rows] = slopes[np.ix_(rows, columns)]
    return path_slopes


def _rank(matrix: Floats) -> int:
    return int(np.linalg.matrix_rank(matrix, 1e-9 * np.linalg.norm(matrix, 2))) if matrix.size else 0
