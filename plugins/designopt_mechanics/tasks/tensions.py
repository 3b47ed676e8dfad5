"""Wires that carry a motion in place of drives: the tensions with the least sum of squares that only pull."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from designopt.arrays import Floats
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt.lazy import scipy
from designopt_mechanics.mechanism.forces import LoopForces, MotionRows
from designopt_mechanics.mechanism.mechanism import Mechanism, MechanismParameter
from designopt_mechanics.mechanism.signals import MotionSignals
from designopt_mechanics.springs import WirePull
from designopt_mechanics.wires import moment_arms

#: Weight of the balance beside the squares of the tensions, over the size of the arms; its square is its accuracy.
_WEIGHT = 1e5
#: Part of the largest tension below which a wire is slack.
_PULLS = 1e-7
#: Part of an effort that may be missing.
_MISSING = 1e-6


class NotCarried(ValueError):
    """A motion that the wires cannot carry by pulling."""


def with_pulls(mechanism: Mechanism, wires: Sequence[str]) -> Mechanism:
    """The mechanism with the tensions (N) of `wires` as its last parameters."""
    tensions = [MechanismParameter(f"tension_of_{name}", "N", 0.0) for name in wires]
    pulls = [WirePull(mechanism.wire(name), t.symbol) for name, t in zip(wires, tensions, strict=True)]
    return replace(mechanism, springs=(*mechanism.springs, *pulls), parameters=(*mechanism.parameters, *tensions))


def shared_tensions(forces: LoopForces, wires: Sequence[str], motion: MotionRows, p: Floats, efforts: Floats) -> Floats:
    """(n, k) N that give the `efforts` (n, f) of the independent coordinates. Raises `NotCarried`."""
    mechanism, state = forces.loops.mechanism, forces.state
    arms = moment_arms(state, [mechanism.wire(name) for name in wires])
    rows = Rows(ca.Function("arms", [state.z, forces.p], [ca.densify(arms)]), compiled=False)
    by_coordinate = rows(motion.z, p)[0].reshape(len(motion.z), -1, len(wires))
    along = np.einsum("nmf,nmk->nfk", forces.tangent(motion.z, p), by_coordinate)
    tensions = np.empty((len(motion.z), len(wires)))
    for i, (A, u) in enumerate(zip(along, efforts, strict=True)):
        weight = _WEIGHT / max(float(np.abs(A).max()), 1e-12)
        stacked = np.vstack([weight * A, np.eye(len(wires))])
        tensions[i] = scipy.optimize.nnls(stacked, np.concatenate([weight * u, np.zeros(len(wires))]))[0]
        left = np.abs(A @ tensions[i] - u)
        if left.max(initial=0.0) > _MISSING * max(1e-9, float(np.abs(efforts).max())):
            name = forces.driven[int(left.argmax())]
            raise NotCarried(
                f"the wires {', '.join(wires)} do not carry the motion: at {motion.time[i]:.6g} s {left.max():.3g} N m "
                f"(or N) are missing at '{name}', as wires only pull"
            )
    return tensions


def carried_slopes(
    signals: MotionSignals, wires: Sequence[str], motion: MotionRows, p: Floats, prescribed: Floats
) -> Floats:
    """(n, s, q) derivatives of the signals by the q parameters before the tensions, which come last in `p` (n, q + k).

    `prescribed` (n, 3 f, q) are those of the independent coordinates, their rates and accelerations. The tensions t of
    the wires that pull are R' w with J w = 0 (the least squares that balance the joints), those of the others stay 0.
    """
    forces, k, n = signals.forces, len(wires), len(motion.time)
    state, q = forces.state, p.shape[1] - k
    R = moment_arms(state, [forces.loops.mechanism.wire(name) for name in wires])
    J = forces.loops.jacobian if forces.loops.labels else ca.SX(0, state.z.numel())
    w, pulling, t = ca.SX.sym("w", state.z.numel()), ca.SX.sym("pulling", k), forces.p[q:]
    equations, unknowns = signals.equations
    shared = ca.vertcat(signals.efforts, t - pulling * (R.T @ w), J @ w)
    rows, Y = ca.vertcat(equations, shared), ca.vertcat(unknowns, t, w)
    results = [
        ca.densify(ca.jacobian(e, v)) for e in (rows, ca.vertcat(*signals.expressions)) for v in (Y, forces.p[:q])
    ]
    function = ca.Function("carried", [*signals.arguments, signals.statics[0], w, pulling], ca.cse(results))
    solved = forces.solve(motion, p)  # type: ignore[arg-type]
    active = p[:, q:] > _PULLS * np.abs(p[:, q:]).max(initial=1e-300)
    matrices = Rows(ca.Function("arms", [state.z, forces.p], [ca.densify(R), ca.densify(J)]), compiled=False)
    arms, slopes = (part.reshape(n, -1, width) for part, width in zip(matrices(motion.z, p), (k, state.z.numel()),
                                                                      strict=True))  # fmt: skip
    left = np.concatenate([np.swapaxes(arms, 1, 2) * active[:, :, None], slopes], axis=1)
    right = np.concatenate([p[:, q:] * active, np.zeros((n, slopes.shape[1]))], axis=1)
    weights = np.einsum("nij,nj->ni", np.linalg.pinv(left), right)
    arrays = (motion.z, motion.dz, motion.ddz, motion.time, p, solved.efforts, solved.cuts)
    mu = signals.multipliers(motion, solved, p)  # type: ignore[arg-type]
    R_y, R_p, s_y, s_p = Rows(function, compiled=False)(*arrays, mu, weights, active.astype(np.float64))
    count = rows.numel()
    change = R_p.reshape(n, count, q)
    change[:, : prescribed.shape[1]] -= prescribed
    y_p = -np.linalg.pinv(R_y.reshape(n, count, -1)) @ change
    result: Floats = s_p.reshape(n, -1, q) + s_y.reshape(n, len(signals.signals), -1) @ y_p
    return result
