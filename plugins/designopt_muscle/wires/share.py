"""Tensions of a wire model that carry a motion: the same sharing, with the poses of virtual links as unknowns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from designopt_mechanics.anatomy.companion import Anatomy, Muscle
from designopt_mechanics.moment_balance import MomentBalance
from designopt_mechanics.scene import drawing
from designopt_mechanics.sharing.muscles import Muscles
from designopt_mechanics.sharing.statement.criteria import Reserves
from designopt_mechanics.sharing.statement.formulation import Terms
from designopt_mechanics.sharing.static.share import share
from designopt_mechanics.sharing.static.sharing import Sharing
from designopt_mechanics.sharing.status import SharingStatus
from designopt_mechanics.tree import GROUND, Point
from designopt_mechanics.tree_rows import TreeRows

from designopt.arrays import Floats, Mask
from designopt_muscle.wires.posture import Posture, WireRows

_ROUNDS = 100
#: Largest change of an activation in a round that ends the iteration.
_SETTLED = 1e-10
#: Status of frames whose numbers are missing.
_NOT_FINITE = 120


@dataclass(frozen=True, eq=False)
class JointMotion:
    """Joints `q` (n, m), rad or m, with their rates `dq` and accelerations `ddq`, at `time` (n,) s."""

    time: Floats
    q: Floats
    dq: Floats
    ddq: Floats


@dataclass(frozen=True, eq=False)
class WireSharing:
    """The `sharing` of a wire model: its columns are the muscles; activations are shares of their maximum tension.

    `tensions` (n, w) N of all wires, `pose` (n, c) of the virtual links, `contact` (n, 3) N by bone the force in its
    joint, in the axes of the ground; NaN in frames without a solution. `rounds` of linearisation.
    """

    sharing: Sharing
    tensions: Floats
    pose: Floats
    contact: dict[str, Floats]
    rounds: int


def share_wires(
    anatomy: Anatomy,
    motion: JointMotion,
    terms: Terms | None = None,
    *,
    reserve: float = 0.0,
    strength: float = 1.0,
) -> WireSharing:
    """Tensions that carry the joints of the `anatomy` through a `motion`.

    The moments of the wires are a function of the muscle tensions, as the links follow them. Its slopes make a balance
    of moments, which is shared; where the links move with the answer, they make the next one, until it settles. In a
    settled frame the optimality conditions are those of the problem with the poses as unknowns. `reserve` (N m or N) is
    the generalised force of a reserve at control 1 in each row, `strength` a factor on the maximum tensions. Raises
    `ValueError` for arrays that do not fit.
    """
    q, dq, ddq = motion.q, motion.dq, motion.ddq
    n, m = len(motion.time), len(anatomy.joints)
    for name, values in (("q", q), ("dq", dq), ("ddq", ddq)):
        if np.shape(values) != (n, m):
            raise ValueError(f"{name} has the shape {np.shape(values)}, not {(n, m)}: frames and joints")
    rows = _wire_rows(anatomy)
    good = np.isfinite(np.concatenate([q, dq, ddq], axis=1)).all(axis=1)
    q, dq, ddq = (np.where(good[:, None], v, 0.0) for v in (q, dq, ddq))
    muscles = _muscles(anatomy, n, strength)
    needed_moments = rows.required_moments(q, dq, ddq)
    help_ = Reserves(np.full(m, reserve))
    s = np.maximum(0.05, muscles.lower) * muscles.strength
    pose: Floats | None = None
    part, last = np.ones(n), np.full(n, np.inf)
    for _round in range(1, _ROUNDS + 1):
        posture = rows.posture(q, s, pose)
        pose = posture.pose
        sharing = share(_balance(anatomy, motion.time, needed_moments, posture, s, good), muscles, terms, help_)
        change = np.asarray(np.abs(np.nan_to_num(sharing.forces - s) / muscles.strength).max(axis=1))
        if change.max() <= _SETTLED:
            break
        part = np.where(change > last, 0.5 * part, part)
        last = change
        s = s + part[:, None] * np.nan_to_num(sharing.forces - s)  # frames without an answer stay
    open_ = (change > _SETTLED) & (sharing.status < SharingStatus.INFEASIBLE)
    lost = (~posture.converged & good) | open_
    status = np.where(lost, int(SharingStatus.NOT_CONVERGED), sharing.status)
    gone = np.reshape(status >= int(SharingStatus.EMPTY_BOUNDS), (-1, 1))
    contact = rows.contacts(q, dq, ddq, posture.pose, s)
    return WireSharing(
        replace(sharing, status=status, activations=np.where(gone, np.nan, sharing.activations), separable=False),
        np.where(gone, np.nan, posture.tensions),
        np.where(gone, np.nan, posture.pose),
        {bone: np.where(gone, np.nan, force) for bone, force in contact.items()},
        _round,
    )


@lru_cache(maxsize=4)
def _wire_rows(anatomy: Anatomy) -> WireRows:
    """Made once for all motions: to derive its functions takes longer than to share one."""
    return WireRows(anatomy)


def _muscles(anatomy: Anatomy, frames: int, strength: float) -> Muscles:
    laws = {name: law for name, law in anatomy.laws.items() if isinstance(law, Muscle)}
    max_tensions = np.array([law.max_tension for law in laws.values()]) * strength
    tone = np.array([law.min_tension for law in laws.values()])
    if (tone > max_tensions).any():
        name = list(laws)[int((tone - max_tensions).argmax())]
        raise ValueError(
            f"the tone of '{name}' is above its maximum tension, {max_tensions[list(laws).index(name)]:g} N"
        )
    return Muscles(tuple(laws), np.tile(max_tensions, (frames, 1)), lower=tone / max_tensions, isometric=max_tensions)


def _balance(
    anatomy: Anatomy, time: Floats, required_moments: Floats, posture: Posture, s: Floats, good: Mask
) -> MomentBalance:
    """The balance of the muscles with the moments of all wires linearised about the tensions `s`."""
    units = {c.name: "N m" if c.unit == "rad" else "N" for c in anatomy.tree.coordinates}
    return MomentBalance(
        time=time,
        rows=anatomy.joints,
        columns=tuple(name for name, law in anatomy.laws.items() if isinstance(law, Muscle)),
        arms=posture.slopes,
        moments=required_moments - posture.moments + np.einsum("nmk,nk->nm", posture.slopes, s),
        row_units=tuple(units[name] for name in anatomy.joints),
        status=np.where(good, 0, _NOT_FINITE),
    )


def drawing_arrays(anatomy: Anatomy, q: Floats, wire_solution: WireSharing) -> dict[str, Floats]:
    """`skeleton` (n, v, 3) and `paths` (n, w, v, 3) m of joints `q` (n, m); NaN without an answer."""
    rows = TreeRows(anatomy.tree, compiled=False)
    z = np.concatenate([np.where(np.isfinite(q), q, np.nan), wire_solution.pose], axis=1)
    bones = [
        [Point(frame.name), Point(frame.name, tuple(2.0 * np.asarray(frame.body.centre)))]
        for frame in anatomy.tree.frames
        if frame.body is not None
    ]
    points = [point for wire in anatomy.wires for point in wire.points]
    positions = rows.positions(points, z)
    paths = np.full((len(z), len(anatomy.wires), max(len(w.points) for w in anatomy.wires), 3), np.nan)
    at = 0
    for i, wire in enumerate(anatomy.wires):
        paths[:, i, : len(wire.points)] = positions[:, at : at + len(wire.points)]
        at += len(wire.points)
    return {"skeleton": drawing(rows, [[Point(GROUND), Point(GROUND)], *bones], z), "paths": paths}
