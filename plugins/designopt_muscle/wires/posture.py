"""Virtual links of a wire model in many frames at once: their poses under given muscle tensions, and what follows.

The pose minimises the potential of all wires (Nakamura et al., JP 2002-154853; formulation P3 of the project's
specification of wires), so that nothing is left on the links; by the theorem of implicit functions the moments of the
wires are functions of the muscle tensions alone, with the slopes that sharing needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from designopt_mechanics.anatomy.companion import Anatomy, Muscle
from designopt_mechanics.anatomy.equilibrium import tensions_and_potential
from designopt_mechanics.dynamics.recursion import efforts, inverse_dynamics
from designopt_mechanics.state import TreeState
from designopt_mechanics.wires import lengths, pulls

from designopt.arrays import Floats, Mask
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca

_STEPS, _HALVINGS = 60, 40
#: Resultant on a link, relative to the muscle tensions, that is aimed at, and that is accepted.
_AIMED, _ACCEPTED = 1e-13, 1e-8


@dataclass(frozen=True, eq=False)
class Posture:
    """Postures of n frames: `pose` (n, c) of the links and whether it has `converged` (n,); generalised forces
    `moments` (n, m) of all wires on the joints and their `slopes` (n, m, k) by the muscle tensions; `tensions` (n, w) N
    of all wires."""

    pose: Floats
    converged: Mask
    moments: Floats
    slopes: Floats
    tensions: Floats


class WireRows:
    """The wires of an `anatomy`, over the rows of arrays."""

    def __init__(self, anatomy: Anatomy) -> None:
        self.anatomy = anatomy
        self.muscles = tuple(name for name, law in anatomy.laws.items() if isinstance(law, Muscle))

    def posture(self, q: Floats, pull: Floats, start: Floats | None = None) -> Posture:
        """The posture at joints `q` (n, m) under tensions `pull` (n, k) N of the muscles, from the poses `start` (n,
        c)."""
        a = self.anatomy
        m, n = len(a.joints), len(q)
        x = np.tile(a.tree.reference[m:], (n, 1)) if start is None else np.array(start)
        x, good = self._minimum(q, pull, x)
        moments, by_pull, cross_slopes, pose_jacobian, across, tensions = self._results(q, x, pull)
        slopes = by_pull
        if x.shape[1]:
            follows = -np.linalg.solve(pose_jacobian, across)
            slopes = by_pull - np.matmul(cross_slopes, follows)
        return Posture(x, good, moments, slopes, tensions)

    def required_moments(self, q: Floats, dq: Floats, ddq: Floats) -> Floats:
        """(n, m) generalised forces that the motion needs beside gravity; links have no mass, or move slowly."""
        reference = np.tile(self.anatomy.tree.reference[len(self.anatomy.joints) :], (len(q), 1))
        return np.asarray(self._inverse(q, dq, ddq, reference)[0]).reshape(len(q), -1)

    def contacts(self, q: Floats, dq: Floats, ddq: Floats, pose: Floats, pull: Floats) -> dict[str, Floats]:
        """(n, 3) N by bone: the force in its joint, from the bone before it, in the axes of the ground."""
        joint_forces = np.asarray(self._contact(q, dq, ddq, pose, pull)[0]).reshape(len(q), -1, 3)
        return {frame.name: joint_forces[:, i] for i, frame in enumerate(self.anatomy.tree.frames)}

    # ---------------------------------------------------------------------------------------------------- functions

    def _minimum(self, q: Floats, pull: Floats, x: Floats) -> tuple[Floats, Mask]:
        """Newton's method with backtracking on the potential; frames that are done leave."""
        n, c = x.shape
        if not c:
            return x, np.ones(n, dtype=np.bool_)
        scale = np.maximum(1.0, pull.sum(axis=1))
        left = np.arange(n)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            for _ in range(_STEPS):
                value, g, hessian = self._potential(q[left], x[left], pull[left])
                fine = ~(np.abs(g).max(axis=1) > _AIMED * scale[left])
                left, value, g, hessian = left[~fine], value[~fine], g[~fine], hessian[~fine]
                if not len(left):
                    break
                values, vectors = np.linalg.eigh(hessian)
                stiff = np.maximum(values, 1e-9 * np.maximum(1e-9, values.max(axis=1, keepdims=True)))
                along = (vectors.transpose(0, 2, 1) @ g[:, :, None])[:, :, 0] / stiff
                way = -(vectors @ along[:, :, None])[:, :, 0]
                part = self._parts(q[left], x[left], pull[left], way, value, (g * way).sum(axis=1))
                x[left] += part[:, None] * way
                left = left[part * np.abs(way).max(axis=1) > 1e-15]
            _, g, _ = self._potential(q, x, pull)
        return x, np.asarray(np.abs(g).max(axis=1) <= _ACCEPTED * scale)

    def _parts(self, q: Floats, x: Floats, pull: Floats, way: Floats, value: Floats, slope: Floats) -> Floats:
        """(n,) the part of a step from which on the potential falls."""
        part = np.ones(len(q))
        left = np.arange(len(q))
        for _ in range(_HALVINGS):
            energies, _, _ = self._potential(q[left], x[left] + part[left, None] * way[left], pull[left])
            fall = energies - value[left]
            fine = (fall <= 1e-4 * part[left] * slope[left]) | (
                np.abs(fall) <= 1e-14 * np.maximum(1.0, np.abs(value[left]))
            )
            left = left[~fine]
            if not len(left):
                break
            part[left] *= 0.5
        return part

    def _potential(self, q: Floats, x: Floats, pull: Floats) -> tuple[Floats, Floats, Floats]:
        n, c = x.shape
        value, gradient, hessian = self._energy(q, x, pull)
        return np.asarray(value).reshape(n), np.asarray(gradient).reshape(n, c), np.asarray(hessian).reshape(n, c, c)

    def _results(self, q: Floats, x: Floats, pull: Floats) -> tuple[Floats, ...]:
        """Moments (n, m), their slopes by tensions (n, m, k) and by poses (n, m, c), turned; see `_slopes`."""
        n, m, c, k = len(q), q.shape[1], x.shape[1], pull.shape[1]
        shapes = ((n, m), (n, m, k), (n, m, c), (n, c, c), (n, c, k), (n, -1))
        return tuple(np.asarray(r).reshape(shape) for r, shape in zip(self._slopes(q, x, pull), shapes, strict=True))

    @cached_property
    def _symbols(self) -> tuple[Any, Any, Any, Any, Any]:
        """Joints, poses, muscle tensions; tensions and potential of all wires."""
        a = self.anatomy
        m = len(a.joints)
        q, x = ca.SX.sym("q", m), ca.SX.sym("x", len(a.tree.names) - m)
        pull = ca.SX.sym("pull", len(self.muscles))
        z = ca.vertcat(q, x)
        length = lengths(TreeState(a.tree, z, ca.SX.zeros(z.shape), ca.SX.zeros(z.shape)), a.wires)
        return q, x, pull, *tensions_and_potential(a, length, pull)

    @cached_property
    def _energy(self) -> Rows:
        q, x, pull, _, energy = self._symbols
        gradient = ca.gradient(energy, x)
        return _rows("potential", [q, x, pull], [energy, gradient, ca.jacobian(gradient, x)])

    @cached_property
    def _slopes(self) -> Rows:
        q, x, pull, tension, energy = self._symbols
        by_q, by_x = ca.gradient(energy, q), ca.gradient(energy, x)
        return _rows(
            "slopes",
            [q, x, pull],
            [
                -by_q,
                -ca.jacobian(by_q, pull),
                ca.jacobian(by_q, x),
                ca.jacobian(by_x, x),
                ca.jacobian(by_x, pull),
                tension,
            ],
        )

    @cached_property
    def _moving(self) -> tuple[Any, Any, Any, Any]:
        """The state with still links, and its symbols."""
        a = self.anatomy
        q, x, _, _, _ = self._symbols
        dq, ddq = ca.SX.sym("dq", len(a.joints)), ca.SX.sym("ddq", len(a.joints))
        zeros = ca.SX.zeros(x.shape)
        return TreeState(a.tree, ca.vertcat(q, x), ca.vertcat(dq, zeros), ca.vertcat(ddq, zeros)), dq, ddq, x

    @cached_property
    def _inverse(self) -> Rows:
        state, dq, ddq, x = self._moving
        m = len(self.anatomy.joints)
        return _rows("needed", [state.z[:m], dq, ddq, x], [inverse_dynamics(state, self.anatomy.gravity)[:m]])

    @cached_property
    def _contact(self) -> Rows:
        a = self.anatomy
        state, dq, ddq, x = self._moving
        _, _, pull, tension, _ = self._symbols
        joints = efforts(state, a.gravity, pulls(state, a.wires, tension)).joints
        forces = ca.vertcat(*(joints[frame.name][0] for frame in a.tree.frames))
        return _rows("contact", [state.z[: len(a.joints)], dq, ddq, x, pull], [forces])


def _rows(name: str, inputs: list[Any], results: list[Any]) -> Rows:
    return Rows(ca.Function(name, inputs, [ca.densify(ca.cse(r)) for r in results]))
