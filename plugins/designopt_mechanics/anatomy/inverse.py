"""Tensions that a motion needs: muscles share the moments, virtual links find their pose with them (formulation P2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.lazy import casadi as ca
from designopt_mechanics.anatomy.companion import Anatomy, Elastic, Muscle
from designopt_mechanics.anatomy.frames import load_rows, load_symbols
from designopt_mechanics.dynamics.recursion import efforts, inverse_dynamics
from designopt_mechanics.state import TreeState
from designopt_mechanics.wires import lengths, moment_arms, pulls

#: Largest residual (N m or N) of an answer.
_TOLERANCE = 1e-6
_SOLVED = ("Solve_Succeeded", "Solved_To_Acceptable_Level")


class Infeasible(ValueError):
    """No tensions within their bounds carry the motion; the message has what is missing at which joint, or else what
    remains on which virtual link.
    """


class NotConverged(ValueError):
    """The tensions carry the motion, but are not of least cost; the message has the solver's status."""


@dataclass(frozen=True, eq=False)
class Shared:
    """The answer of one frame.

    `tensions` (w) N of all wires, `pose` (k) of the virtual links, the needed moments `tau` (m), the `cost`, the
    largest `residual` of moments and resultants, and `contact` of each frame the force and moment (6) in its joint.
    """

    tensions: Floats
    pose: Floats
    tau: Floats
    cost: float
    residual: float
    contact: dict[str, Floats]


class Inverse:
    """Minimum of the sum of (s / max)^2 over an anatomy's muscles, by IPOPT.

    The unknowns are the tensions s between tone and maximum and the pose of the links; tendons and ligaments follow
    their laws. Where equations outnumber unknowns there is nothing to share: the answer minimises the sum of squared
    residuals, which must then be zero. One object serves many frames; the last solution is the best start for the
    next. Frames `loaded` may carry external forces and moments (see `TreeRows`).
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

        Raises `ValueError` for arrays that do not fit, `Infeasible` for residuals above 1e-6 N m or N, and
        `NotConverged`.
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
        x0 = np.concatenate([s0 / most, x0])
        low, high = (
            np.concatenate([tone / most, reference - near]),
            np.concatenate([np.ones(len(most)), reference + near]),
        )
        if self._overdetermined:
            unknowns, status = self._least_residuals(x0, data, low, high), _SOLVED[0]
        else:
            solved = self._program(x0=x0, p=data, lbx=low, ubx=high, lbg=0.0, ubg=0.0)
            unknowns, status = np.asarray(solved["x"], dtype=np.float64).ravel(), self._program.stats()["return_status"]
        left = np.abs(np.asarray(self._residuals(unknowns, data)[0], dtype=np.float64).ravel())
        if not left.max(initial=0.0) < _TOLERANCE:
            raise Infeasible(self._missing(left))
        if status not in _SOLVED:
            raise NotConverged(f"the least tensions that carry the motion were not found: IPOPT ends with {status}")
        tensions, tau, contact = (np.asarray(r, dtype=np.float64).ravel() for r in self._results(unknowns, data))
        parts = {f.name: contact[6 * i : 6 * i + 6] for i, f in enumerate(a.tree.frames)}
        cost = float(((tensions[muscle] / most) ** 2).sum())
        return Shared(tensions, unknowns[len(most) :], tau, cost, float(left.max(initial=0.0)), parts)

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

    @property
    def _overdetermined(self) -> bool:
        unknowns, _, _, balance, _, _, _ = self._statement
        return bool(balance.numel() > unknowns.numel())

    @cached_property
    def _residuals(self) -> Any:
        """(unknowns, data) -> residuals and their derivatives by the unknowns."""
        x, p, _, balance, _, _, _ = self._statement
        return ca.Function("residuals", [x, p], [balance, ca.densify(ca.jacobian(balance, x))])

    def _least_residuals(self, x0: Floats, data: Floats, low: Floats, high: Floats) -> Floats:
        """The unknowns within `low` and `high` with the least sum of squared residuals."""
        from scipy.optimize import least_squares

        def part(i: int) -> Callable[[Floats], Floats]:
            return lambda x: np.asarray(self._residuals(x, data)[i], dtype=np.float64)

        fit = least_squares(
            lambda x: part(0)(x).ravel(), x0, part(1), (low, high), x_scale="jac", xtol=1e-15, ftol=1e-15, gtol=1e-15
        )
        return np.asarray(fit.x, dtype=np.float64)  # its status is of no use beside the residuals, which are checked

    def _missing(self, left: Floats) -> str:
        """The joint with the largest residual, or the coordinate of a link where all joints are balanced."""
        a, m = self.anatomy, len(self.anatomy.joints)
        row = int(left[:m].argmax()) if (~(left[:m] < _TOLERANCE)).any() else m + int(left[m:].argmax())
        unit = "N m" if a.tree.coordinates[row].unit == "rad" else "N"
        where = f"at joint '{a.joints[row]}'" if row < m else f"on the virtual link's coordinate '{a.links[row - m]}'"
        counts = ""
        if self._overdetermined:
            counts = f" ({len(left)} equations for {self._statement[0].numel()} tensions and link coordinates)"
        return f"the wires do not carry the motion: {where} {left[row]:.3g} {unit} are missing{counts}"

    @cached_property
    def _results(self) -> Any:
        x, p, _, _, tensions, tau, contact = self._statement
        return ca.Function("results", [x, p], [tensions, tau, contact])
