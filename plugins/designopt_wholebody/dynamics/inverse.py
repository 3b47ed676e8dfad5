"""Inverse dynamics: joint forces and torques of a known motion under known loads, by the three methods of the thesis.

    M q̈ + Jᵀ λ = Q + Gᵀ f                                                       (Nunes 2017, 2.96, 5.26-5.39)

Only the rigidity of the segments and the coincidence of joint centres are constraints here, so that all three torque
components of every joint are seen. With rows C_parent q - C_child q the multiplier of a joint is its force on
the child.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.consistency.rates import Motion
from designopt_wholebody.dynamics.loads import GRAVITY, JointLoads, Loads, generalised_forces
from designopt_wholebody.dynamics.rotation import angular_matrix
from designopt_wholebody.kinematics.tree import Link, tree
from designopt_wholebody.model.schema import GROUND
from designopt_wholebody.subject import Subject

InverseMethod = Literal["newton", "lagrange", "velocity_transformation"]

_CHUNK = 16


def inverse_dynamics(
    subject: Subject,
    motion: Motion,
    loads: Loads | None = None,
    *,
    method: InverseMethod = "newton",
    gravity: Floats = GRAVITY,
) -> JointLoads:
    """Joint loads of `motion` under `loads`; NaN in frames whose motion or loads are not known.

    `newton`: the forces of actuators at the joints are unknowns beside the multipliers. `lagrange`: each joint is
    driven by constraints whose multipliers are its torques. `velocity_transformation`: the equations are projected on
    the motions that the joints allow. They agree for consistent motions.

    Raises `ValueError` for rods, which have no rotation about their line, and for numbers of frames that differ.
    """
    inverse = _Inverse.of_subject(subject)
    return inverse.solved(motion, Loads.zero(len(motion.q)) if loads is None else loads, method, gravity)


@dataclass(frozen=True, eq=False)
class _Inverse:
    subject: Subject
    links: tuple[Link, ...]

    @staticmethod
    def of_subject(subject: Subject) -> _Inverse:
        if rods := [body.name for body in subject.bodies.values() if body.rod]:
            raise ValueError(f"inverse dynamics needs segments with a frame; {', '.join(rods)} are rods (layout 2p)")
        return _Inverse(subject, tree(subject))

    @property
    def jointed(self) -> list[Link]:
        return [link for link in self.links if link.joint is not None]

    def solved(self, motion: Motion, loads: Loads, method: InverseMethod, gravity: Floats) -> JointLoads:
        methods: dict[str, Callable[[Floats, Floats], Floats]] = {
            "newton": self._newton,
            "lagrange": self._lagrange,
            "velocity_transformation": self._transformed,
        }
        if method not in methods:
            raise ValueError(f"there is no method '{method}'; known: {', '.join(methods)}")
        frames = len(motion.q)
        if len(loads.force) != frames:
            raise ValueError(f"the motion has {frames} frames, the loads have {len(loads.force)}")
        # one row per link in the order of the tree: force and torque on the child
        wrenches = np.full((frames, len(self.links), 6), np.nan)
        ready = np.flatnonzero(motion.complete_frames & loads.complete_frames)
        M = self.subject.mass_blocks()
        for start in range(0, len(ready), _CHUNK):
            chunk = ready[start : start + _CHUNK]
            q = motion.q[chunk]
            missing = -generalised_forces(self.subject, q, loads.at_frames(chunk), gravity)
            for body, block in zip(self.subject.bodies.values(), M, strict=True):
                missing[:, body.columns] += motion.qddot[chunk][:, body.columns] @ block
            wrenches[chunk] = methods[method](q, missing)
        has_joint = np.array([link.joint is not None for link in self.links])
        free = wrenches[:, ~has_joint].sum(axis=1)
        return JointLoads(
            joints=tuple(str(link.joint) for link in self.jointed),
            bodies=tuple(link.body for link in self.jointed),
            force=wrenches[:, has_joint, :3],
            torque=wrenches[:, has_joint, 3:],
            residual_force=free[:, :3],
            residual_torque=free[:, 3:],
        )

    # ---------------------------------------------------------------------------------- what the matrices share

    def _rigid(self, q: Floats) -> tuple[Floats, int]:
        """A matrix (f, n, n) whose first columns are the transposed rows of rigidity, and how many they are."""
        constraints = self.subject.constraints
        rigid = [k for k, name in enumerate(constraints.names) if name.kind == "rigid"]
        of_rigid = constraints.row_of < len(rigid)  # they come first
        entries = constraints.entries(q)
        A = np.zeros((len(q), self.subject.n, self.subject.n))
        A[:, constraints.column_of[of_rigid], constraints.row_of[of_rigid]] = entries[:, of_rigid]
        return A, len(rigid)

    def _set_point(self, A: Floats, column: int, segment: str, landmark: str, sign: float) -> None:
        """Add ± Cᵀ of a landmark to three columns."""
        if segment == GROUND:
            return
        body = self.subject.bodies[segment]
        for t, c in enumerate(body.landmark(landmark)):
            for i in range(3):
                A[:, body.start + 3 * t + i, column + i] += sign * c

    def _with_forces(self, q: Floats) -> tuple[Floats, dict[str, int], int]:
        """`_rigid` with the columns of the force on each segment, by name, and the next free column.

        At a joint the force acts on both segments, the coincidence of their joint centres.
        """
        A, column = self._rigid(q)
        columns = {}
        for link in sorted(self.links, key=lambda link: link.joint is None):
            if link.joint is not None:
                self._set_point(A, column, link.parent, link.at, 1.0)
            self._set_point(A, column, link.body, link.at, -1.0)
            columns[link.body] = column
            column += 3
        return A, columns, column

    def _wrenches(self, x: Floats, columns: Mapping[str, int], torques: Floats) -> Floats:
        """(f, links, 6) of the solution `x` (f, n) with forces at `columns`, and of `torques` (f, links, 3)."""
        forces = np.stack([x[:, columns[link.body] :][:, :3] for link in self.links], axis=1)
        return np.concatenate([forces, torques], axis=-1)

    # ---------------------------------------------------------------------------------------------- the methods

    def _newton(self, q: Floats, missing: Floats) -> Floats:
        """[Jᵀ -Gᵀ] {λ; f} = Q - M q̈ with a residual force at the root point and a torque on each segment (5.31)."""
        A, columns, column = self._with_forces(q)
        torques = column
        for link in self.links:
            body = self.subject.bodies[link.body]
            A[:, body.columns, column : column + 3] -= angular_matrix(body, q).swapaxes(-1, -2)
            if link.parent != GROUND:
                parent = self.subject.bodies[link.parent]
                A[:, parent.columns, column : column + 3] += angular_matrix(parent, q).swapaxes(-1, -2)
            column += 3
        x = np.asarray(np.linalg.solve(A, -missing[..., None])[..., 0], dtype=np.float64)
        return self._wrenches(x, columns, x[:, torques:].reshape(len(q), -1, 3))

    def _lagrange(self, q: Floats, missing: Floats) -> Floats:
        """Jᵀ λ = Q - M q̈ with drivers that hold the child's axes at target axes of the parent (2.100-2.102).

        Targets t_k = A_parent R e_k, with R the relative attitude of the frame, coincide with the child's axes d_k. The
        rows t_2·d_3, t_3·d_1, t_1·d_2 are independent in every posture; their multipliers are torques about d_1, d_2,
        d_3.
        """
        A, columns, column = self._with_forces(q)
        drivers = column
        unit = np.eye(3)
        for link in self.links:
            body = self.subject.bodies[link.body]
            d, c = body.axes(q), body.direction(unit)
            parent = None if link.parent == GROUND else self.subject.bodies[link.parent]
            R = None if parent is None else parent.axes(q).swapaxes(-1, -2) @ d
            for target, driven in ((1, 2), (2, 0), (0, 1)):
                along = np.einsum("t,fx->ftx", c[driven], d[:, :, target])
                A[:, body.columns, column] += along.reshape(len(q), -1)
                if parent is not None and R is not None:
                    weights = R[:, :, target] @ parent.direction(unit)
                    against = np.einsum("ft,fx->ftx", weights, d[:, :, driven])
                    A[:, parent.columns, column] += against.reshape(len(q), -1)
                column += 1
        x = np.asarray(np.linalg.solve(A, -missing[..., None])[..., 0], dtype=np.float64)
        axes = np.stack([self.subject.bodies[link.body].axes(q) for link in self.links], axis=1)
        torques = np.einsum("flxk,flk->flx", axes, x[:, drivers:].reshape(len(q), -1, 3))
        return self._wrenches(x, columns, torques)

    def _transformed(self, q: Floats, missing: Floats) -> Floats:
        """Rᵀ (M q̈ - Q) for motions R in which everything beyond a joint shifts, or turns about its centre (2.104).

        A shift moves the points beyond the joint and no unit vector; a turn moves both. R is not formed.
        """
        x, y = q.reshape(len(q), -1, 3), missing.reshape(len(q), -1, 3)
        points, beyond = self._beyond()
        turning = np.cross(x, y)
        force = np.einsum("lt,ftx->flx", beyond * points, y)
        about_origin = np.einsum("lt,ftx->flx", beyond, turning)
        centres = np.stack([self._centre(q, link) for link in self.links], axis=1)
        return np.concatenate([force, about_origin - np.cross(centres, force)], axis=-1)

    def _beyond(self) -> tuple[Floats, Floats]:
        """(triples,) 1 for points, and (links, triples) 1 beyond a link's joint."""
        index_of = {link.body: k for k, link in enumerate(self.links)}
        within = np.eye(len(self.links))
        for k in range(len(self.links) - 1, -1, -1):
            parent = self.links[k].parent
            if parent != GROUND:
                within[index_of[parent]] += within[k]
        points, owners = [], []
        for body in self.subject.bodies.values():
            points.extend([1.0] * len(body.points) + [0.0] * len(body.vectors))
            owners.extend([index_of[body.name]] * body.triples)
        return np.array(points), within[:, owners]

    def _centre(self, q: Floats, link: Link) -> Floats:
        body = self.subject.bodies[link.body]
        return body.position(q, body.landmark(link.at))
