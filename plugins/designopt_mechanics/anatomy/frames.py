"""An anatomy over the frames of a trial: arrays of wires, links and joints, and the balance with frozen links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt_mechanics.anatomy.companion import Anatomy, Elastic
from designopt_mechanics.dynamics.recursion import efforts
from designopt_mechanics.loads import Load
from designopt_mechanics.moment_balance import MomentBalance
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Point
from designopt_mechanics.wires import lengths, moment_arms, pulls


@dataclass(frozen=True, eq=False)
class AnatomyFrames:
    """n frames of w wires, m joint coordinates, k coordinates of virtual links and f frames of the tree.

    `lengths` and `rates` (n, w) of the wires, m and m/s; `jacobian` (n, w, m + k), dl/dz; `tensions` (n, w) N; `power`
    (n, w) W delivered by the wires. `moments` (n, m) are the generalised forces that the motion needs less weight and
    loads, `forces` (n, m) those of the wires, `resultants` (n, k) the remaining ones on the links. `places` (n, f, 3)
    m, `axes` (n, f, 3, 3), `velocities` (n, f, 3) m/s and `turning` (n, f, 3) rad/s of the frames; `joints` (n, f, 6)
    force and moment in the joint of each, exerted by the previous frame about the frame's origin, in the axes of the
    ground; `joints_own` in those of the frame.
    """

    lengths: Floats
    rates: Floats
    jacobian: Floats
    tensions: Floats
    power: Floats
    moments: Floats
    forces: Floats
    resultants: Floats
    places: Floats
    axes: Floats
    velocities: Floats
    turning: Floats
    joints: Floats
    joints_own: Floats


class AnatomyRows:
    """An `anatomy` for many frames at once, with loads (see `TreeRows`) on the frames `loaded`.

    Joints `q` (n, m) come with rates and accelerations, links with a `pose` (n, k). Raises `ValueError` for arrays that
    do not fit.
    """

    def __init__(self, anatomy: Anatomy, loaded: Sequence[str] = (), compiled: Literal["auto"] | bool = "auto") -> None:
        self.anatomy, self.loaded, self._compiled = anatomy, tuple(loaded), compiled
        for name in self.loaded:
            anatomy.tree.frame(name)

    def at(
        self,
        q: ArrayLike,
        dq: ArrayLike,
        ddq: ArrayLike,
        pose: ArrayLike,
        tensions: ArrayLike,
        loads: Mapping[str, ArrayLike] | None = None,
        pose_rate: ArrayLike | None = None,
    ) -> AnatomyFrames:
        """All arrays for `tensions` (n, w) of all wires; links without given motion are at rest.

        Raises `ValueError` for arrays of another shape.
        """
        a = self.anatomy
        m, k, w, f = len(a.joints), len(a.links), len(a.wires), len(a.tree.frames)
        joints = np.asarray(q, dtype=np.float64)
        n = len(joints) if joints.ndim == 2 else 0
        columns = {"q": (joints, m), "dq": (dq, m), "ddq": (ddq, m), "pose": (pose, k), "tensions": (tensions, w)}
        columns["pose_rate"] = (np.zeros((n, k)) if pose_rate is None else pose_rate, k)
        arrays = {}
        for name, (value, size) in columns.items():
            arrays[name] = np.asarray(value, dtype=np.float64)
            if arrays[name].shape != (n, size) or not n:
                raise ValueError(f"{name} has shape {arrays[name].shape}, not ({n or 'n'}, {size})")
        outer = load_rows(self.loaded, loads, n)
        z = np.hstack([arrays["q"], arrays["pose"]])
        dz = np.hstack([arrays["dq"], arrays["pose_rate"]])
        results = self._rows(z, dz, arrays["ddq"], arrays["tensions"], outer)
        length, rate, jacobian, moments, force, places, axes, speed, turning, joint, joints_alone = results
        pulled = force.reshape(n, m + k)
        return AnatomyFrames(
            lengths=length.reshape(n, w),
            rates=rate.reshape(n, w),
            jacobian=jacobian.reshape(n, w, m + k),
            tensions=arrays["tensions"],
            power=-arrays["tensions"] * rate.reshape(n, w),
            moments=moments.reshape(n, m),
            forces=pulled[:, :m],
            resultants=pulled[:, m:],
            places=places.reshape(n, f, 3),
            axes=axes.reshape(n, f, 3, 3),
            velocities=speed.reshape(n, f, 3),
            turning=turning.reshape(n, f, 3),
            joints=joint.reshape(n, f, 6),
            joints_own=joints_alone.reshape(n, f, 6),
        )

    def frozen(
        self,
        time: ArrayLike,
        q: ArrayLike,
        dq: ArrayLike,
        ddq: ArrayLike,
        pose: ArrayLike,
        loads: Mapping[str, ArrayLike] | None = None,
        *,
        elastic: Literal["free", "law"] = "free",
    ) -> MomentBalance:
        """The moment balance of the tensions with the links fixed in `pose` (formulation P1).

        Rows are the joints, and the coordinates of the links, which carry no load; columns are all wires, tendons and
        ligaments with their own tension, or with ``elastic="law"`` the muscles: springs follow their law. In a fixed
        pose there are often no admissible tensions: the sharing problem reports which frames are infeasible and by how
        much.
        """
        a, m = self.anatomy, len(self.anatomy.joints)
        n = len(np.asarray(q, dtype=np.float64))
        rows_at = self.at(q, dq, ddq, pose, np.zeros((n, len(a.wires))), loads)
        arms = -rows_at.jacobian.transpose(0, 2, 1)
        moments = np.hstack([rows_at.moments, np.zeros((n, len(a.links)))])
        laws = [a.laws[wire.name] for wire in a.wires]
        springs = [i for i, law in enumerate(laws) if isinstance(law, Elastic) and elastic == "law"]
        if springs:
            pulled = np.column_stack([np.asarray(self._tension(i, rows_at.lengths[:, i])) for i in springs])
            moments = moments - np.einsum("nmk,nk->nm", arms[:, :, springs], pulled)
        columns = [i for i in range(len(a.wires)) if i not in springs]
        return MomentBalance(
            time=np.asarray(time, dtype=np.float64),
            rows=(*a.joints, *a.links),
            columns=tuple(a.wires[i].name for i in columns),
            arms=arms[:, :, columns],
            moments=moments,
            row_units=tuple("N m" if c.unit == "rad" else "N" for c in a.tree.coordinates[: m + len(a.links)]),
        )

    def _tension(self, wire: int, length: Floats) -> Floats:
        law = self.anatomy.laws[self.anatomy.wires[wire].name]
        assert isinstance(law, Elastic)
        return np.asarray(law.tension(ca.DM(length)), dtype=np.float64).ravel()

    @cached_property
    def _rows(self) -> Rows:
        a, m = self.anatomy, len(self.anatomy.joints)
        z, dz = ca.SX.sym("z", len(a.tree.names)), ca.SX.sym("dz", len(a.tree.names))
        ddq, tension = ca.SX.sym("ddq", m), ca.SX.sym("tension", len(a.wires))
        state = TreeState(a.tree, z, dz, ca.vertcat(ddq, ca.SX.zeros(len(a.links))))
        outer = ca.SX.sym("loads", 6 * len(self.loaded))
        loads = load_symbols(self.loaded, outer)
        length, arms = lengths(state, a.wires), moment_arms(state, a.wires)
        joints, names = efforts(state, a.gravity, [*loads, *pulls(state, a.wires, tension)]).joints, a.tree.frames
        turned = [state.axes(f.name) for f in names]
        results = [
            length,
            state.rate(length),
            ca.vec(-arms),  # by columns of arms: rows of the Jacobian
            efforts(state, a.gravity, loads).forces[:m],
            arms @ tension,
            ca.vertcat(*(state.position(Point(f.name)) for f in names)),
            ca.vertcat(*(ca.vec(t.T) for t in turned)),
            ca.vertcat(*(state.velocity(Point(f.name)) for f in names)),
            ca.vertcat(*(state.angular_velocity(f.name) for f in names)),
            ca.vertcat(*(ca.vertcat(*joints[f.name]) for f in names)),
            ca.vertcat(*(t.T @ part for f, t in zip(names, turned, strict=True) for part in joints[f.name])),
        ]
        return Rows(ca.Function("anatomy", [z, dz, ddq, tension, outer], ca.cse([ca.densify(r) for r in results])),
                    self._compiled)  # fmt: skip


def load_symbols(loaded: Sequence[str], symbol: ca.SX) -> list[Load]:
    """Loads on the frames `loaded` whose forces and moments follow one another in `symbol` (6 k, 1)."""
    return [Load(f, symbol[6 * i : 6 * i + 3], symbol[6 * i + 3 : 6 * i + 6]) for i, f in enumerate(loaded)]


def load_rows(loaded: Sequence[str], by_frame: Mapping[str, ArrayLike] | None, rows: int) -> Floats:
    """(rows, 6 k) force and moment about the ground's origin on each of the frames `loaded`, zero where not given.

    Raises `ValueError` for other frames and for arrays that are not (rows, 6) or (6,).
    """
    loads = by_frame or {}
    if unknown := sorted(set(loads) - set(loaded)):
        raise ValueError(f"'{unknown[0]}' is not among the loaded frames ({', '.join(loaded) or 'none'})")
    wrenches = np.zeros((rows, 6 * len(loaded)))
    for i, name in enumerate(loaded):
        part = np.asarray(loads.get(name, np.zeros(6)), dtype=np.float64)
        if part.shape not in ((6,), (rows, 6)) or not np.isfinite(part).all():
            raise ValueError(f"loads on '{name}' are ({rows}, 6) or (6,) finite numbers, not {part.shape}")
        wrenches[:, 6 * i : 6 * i + 6] = part
    return wrenches
