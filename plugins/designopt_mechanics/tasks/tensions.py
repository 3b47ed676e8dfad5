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
from designopt_mechanics.springs import WirePull
from designopt_mechanics.wires import moment_arms

#: Weight of the balance beside the squares of the tensions, over the size of the arms; its square is its accuracy.
_WEIGHT = 1e5
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
