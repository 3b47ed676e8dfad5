"""Tensions that a motion needs: muscles share the moments, virtual links find their pose with them (formulation P2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Vector
from designopt.lazy import casadi as ca
from designopt_mechanics.anatomy.companion import Anatomy
from designopt_mechanics.anatomy.frames import load_rows, load_symbols
from designopt_mechanics.anatomy.laws import Elastic, Muscle
from designopt_mechanics.dynamics.recursion import efforts, inverse_dynamics
from designopt_mechanics.state import TreeState
from designopt_mechanics.wires import lengths, moment_arms, pulls


class Infeasible(ValueError):
    """No tensions within their bounds carry the motion; the message has the joint and the moment that is missing."""


@dataclass(frozen=True, eq=False)
class Shared:
    """The answer of one frame.

    `tensions` (w) N of all wires, `pose` (k) of the virtual links, the needed moments `tau` (m), the `cost`, the
    largest `residual` of moments and resultants, and `contact` of each frame the force and moment (6) in its joint.
    """

    tensions: Vector
    pose: Vector
    tau: Vector
    cost: float
    residual: float
    contact: dict[str, Vector]


class Inverse:
    """Minimum of the sum of (s / max)^2 over an anatomy's muscles, by IPOPT.

    The unknowns are the tensions s between tone and maximum and the pose of the links; tendons and ligaments follow
    their laws. One object serves many frames; the last solution is the best start for the next. Frames `loaded` may
    carry external forces and moments (see `TreeRows`).
    """

    def __init__(self, anatomy: Anatomy, loaded: Sequence[str] = ()) -> None:
        self.anatomy, self.loaded = anatomy, tuple(loaded)
        self._muscles = [law for law in anatomy.laws.values() if isinstance(law, Muscle)]

    def at(
        self,
        q: ArrayLike,
        dq: ArrayLike,
        ddq: ArrayLike,
        start: Shared | None = None,
        loads: Mapping[str, ArrayLike] | None = None,
    ) -> Shared:
        """At joints (m) with their rates and accelerations, and `loads` (6) on the loaded frames.

        Raises `ValueError` for arrays that do not fit and `Infeasible`.
        """
        a, m = self.anatomy, len(self.anatomy.joints)
        motion = [np.asarray(v, dtype=np.float64) for v in (q, dq, ddq)]
        if any(v.shape != (m,) or not np.isfinite(v).all() for v in motion):
            raise ValueError(f"joints, rates and accelerations must be {m} finite numbers each")
        data = np.concatenate([*motion, load_rows(self.loaded, loads, 1)[0]])
        muscle = [isinstance(law, Muscle) for law in a.laws.values()]
        tone, most = (np.array([getattr(law, n) for law in self._muscles]) for n in ("min_tension", "max_tension"))
        reference = a.tree.reference[m:]
        s0 = np.maximum(0.05 * most, tone) if start is None else start.tensions[muscle]
        x0 = reference if start is None else start.pose
        near = np.full(len(reference), 0.5)
        solved = self._program(
            x0=np.concatenate([s0 / most, x0]),
            p=data,
            lbx=np.concatenate([tone / most, reference - near]),
            ubx=np.concatenate([np.ones(len(most)), reference + near]),
            lbg=0.0,
            ubg=0.0,
        )
        found = np.asarray(solved["x"], dtype=np.float64).ravel()
        left = np.abs(np.asarray(solved["g"], dtype=np.float64).ravel())
        if not left.max(initial=0.0) < 1e-6:
            row = int(left.argmax())
            names = [*a.joints, *a.links]
            raise Infeasible(f"the wires do not carry the motion: at '{names[row]}' {left[row]:.3g} is missing")
        tensions, tau, contact = (np.asarray(r, dtype=np.float64).ravel() for r in self._results(found, data))
        parts = {f.name: contact[6 * i : 6 * i + 6] for i, f in enumerate(a.tree.frames)}
        cost = float(((tensions[muscle] / most) ** 2).sum())
        return Shared(tensions, found[len(most) :], tau, cost, float(left.max(initial=0.0)), parts)

    @cached_property
    def _statement(self) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
        """Unknowns, data, cost, residuals, tensions, required moments and joint forces."""
        a, m = self.anatomy, len(self.anatomy.joints)
        z = ca.SX.sym("z", len(a.tree.names))
        dq, ddq, share = ca.SX.sym("dq", m), ca.SX.sym("ddq", m), ca.SX.sym("share", len(self._muscles))
        still = ca.SX.zeros(z.numel() - m)
        state = TreeState(a.tree, z, ca.vertcat(dq, still), ca.vertcat(ddq, still))
        length = lengths(state, a.wires)
        tension, k = [], 0
        for i, law in enumerate(a.laws.values()):
            if isinstance(law, Elastic):
                tension.append(law.tension(length[i]))
            else:
                tension.append(law.max_tension * share[k])
                k += 1
        tensions = ca.vertcat(*tension)
        outer = ca.SX.sym("loads", 6 * len(self.loaded))
        loads = load_symbols(self.loaded, outer)
        tau = inverse_dynamics(state, a.gravity, loads)[:m]
        balance = moment_arms(state, a.wires) @ tensions - ca.vertcat(tau, still)
        joints = efforts(state, a.gravity, [*loads, *pulls(state, a.wires, tensions)]).joints
        contact = ca.vertcat(*(ca.vertcat(*joints[f.name]) for f in a.tree.frames))
        unknowns = ca.vertcat(share, z[m:])
        return unknowns, ca.vertcat(z[:m], dq, ddq, outer), ca.sumsqr(share), balance, tensions, tau, contact

    @cached_property
    def _program(self) -> Any:
        x, p, cost, balance, _, _, _ = self._statement
        quiet: dict[str, Any] = {
            "print_time": False,
            "ipopt": {"print_level": 0, "sb": "yes", "tol": 1e-10, "max_iter": 300, "bound_relax_factor": 0.0},
        }
        return ca.nlpsol("inverse", "ipopt", {"x": x, "p": p, "f": cost, "g": balance}, quiet)

    @cached_property
    def _results(self) -> Any:
        x, p, _, _, tensions, tau, contact = self._statement
        return ca.Function("results", [x, p], [tensions, tau, contact])
