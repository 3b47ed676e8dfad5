"""Motion that muscle tensions make: virtual links are in equilibrium at every instant (formulation P3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.lazy import casadi as ca
from designopt_mechanics.anatomy.companion import Anatomy
from designopt_mechanics.anatomy.equilibrium import Equilibrium
from designopt_mechanics.anatomy.frames import load_rows, load_symbols
from designopt_mechanics.dynamics.recursion import inverse_dynamics
from designopt_mechanics.state import TreeState


@dataclass(frozen=True, eq=False)
class Replay:
    """A motion under given tensions: `time` (n,) s, joints `q` and rates `dq` (n, m), links `pose` (n, k)."""

    time: Floats
    q: Floats
    dq: Floats
    pose: Floats


class Forward:
    """Forward dynamics of an `anatomy` under muscle tensions, with loads (see `TreeRows`) on the frames `loaded`."""

    def __init__(self, anatomy: Anatomy, loaded: Sequence[str] = ()) -> None:
        self.anatomy, self.loaded = anatomy, tuple(loaded)
        self.equilibrium = Equilibrium(anatomy)

    def accelerations(
        self,
        q: ArrayLike,
        dq: ArrayLike,
        muscles: ArrayLike,
        pose: ArrayLike | None = None,
        loads: Mapping[str, ArrayLike] | None = None,
    ) -> Floats:
        """(m,) at joints `q` with rates `dq` (m) under the tensions of `muscles`; links start from `pose`.

        Raises `ValueError` for arrays that do not fit and `NoEquilibrium`.
        """
        balance = self.equilibrium.at(q, muscles, pose)
        outer = load_rows(self.loaded, loads, 1)[0]
        accelerations = self._moved(
            np.asarray(q, dtype=np.float64), np.asarray(dq, dtype=np.float64), balance.tau, outer
        )
        return np.asarray(accelerations, dtype=np.float64).ravel()

    def replay(self, time: ArrayLike, muscles: ArrayLike, q: ArrayLike, dq: ArrayLike, rtol: float = 1e-9) -> Replay:
        """The motion from `q` and `dq` (m) while `muscles` (n, s) pull as recorded at `time` (n,), cubic in between.

        Open loop: nothing corrects what drifts. Raises `ValueError` and `NoEquilibrium` as `accelerations`, and
        `ValueError` when the integration fails.
        """
        from scipy.integrate import solve_ivp
        from scipy.interpolate import CubicSpline

        at, pulled = np.asarray(time, dtype=np.float64), np.asarray(muscles, dtype=np.float64)
        m, names = len(self.anatomy.joints), self.equilibrium.muscles
        if at.ndim != 1 or len(at) < 2 or not (np.diff(at) > 0.0).all() or pulled.shape != (len(at), len(names)):
            raise ValueError(
                f"time must increase and muscles must be (n, {len(names)}), not {at.shape} and {pulled.shape}"
            )
        through = CubicSpline(at, pulled)

        def tensions(t: Any) -> Floats:
            return np.asarray(np.maximum(through(t), 0.0), dtype=np.float64)  # a cubic may dip below slack

        last: list[Floats | None] = [None]

        def rates(t: float, x: Floats) -> Floats:
            balance = self.equilibrium.at(x[:m], tensions(t), last[0])
            last[0] = balance.pose
            none = np.zeros(6 * len(self.loaded))
            moved = np.asarray(self._moved(x[:m], x[m:], balance.tau, none), dtype=np.float64)
            return np.concatenate([x[m:], moved.ravel()])

        start = np.concatenate([np.asarray(q, dtype=np.float64), np.asarray(dq, dtype=np.float64)])
        if start.shape != (2 * m,):
            raise ValueError(f"q and dq must be {m} numbers each")
        run = solve_ivp(rates, (at[0], at[-1]), start, "DOP853", at, rtol=rtol, atol=0.01 * rtol)
        if not run.success:
            raise ValueError(f"the integration failed at {run.t[-1]:g} s: {run.message}")
        states, poses, pose = np.asarray(run.y.T, dtype=np.float64), [], None
        for x, pull in zip(states, tensions(at), strict=True):
            pose = self.equilibrium.at(x[:m], pull, pose).pose
            poses.append(pose)
        return Replay(at, states[:, :m], states[:, m:], np.array(poses))

    @cached_property
    def _moved(self) -> Any:
        """(q, dq, generalised forces, loads) -> accelerations; links have no mass and are no part of it."""
        a, m = self.anatomy, len(self.anatomy.joints)
        z, dq, ddq = ca.SX.sym("z", len(a.tree.names)), ca.SX.sym("dq", m), ca.SX.sym("ddq", m)
        outer, forces = ca.SX.sym("loads", 6 * len(self.loaded)), ca.SX.sym("forces", m)
        still = ca.SX.zeros(len(a.links))
        state = TreeState(a.tree, z, ca.vertcat(dq, still), ca.vertcat(ddq, still))
        needed = inverse_dynamics(state, a.gravity, load_symbols(self.loaded, outer))[:m]
        matrix = ca.densify(ca.jacobian(needed, ddq))
        left = forces - ca.substitute(needed, ddq, ca.SX.zeros(m))
        accelerations = ca.ldl_solve(left, *ca.ldl(matrix, False)) if m else ca.SX(0, 1)
        return ca.Function("moved", [z[:m], dq, forces, outer], [accelerations])
