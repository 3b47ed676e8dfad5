"""What the root of a moving model needs beside the forces of the ground: do they fit its motion?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from designopt_recordings.table import TimeTable

from designopt.arrays import Floats, Integers
from designopt.plugin import InputFile
from designopt_muscle.geometry.kinematics import Kinematics, kinematics
from designopt_muscle.models.dynamics import read_body_loads
from designopt_muscle.models.trial import NetMoments
from designopt_muscle.osim.model import GROUND, OsimModel

#: Maximum number of frames that are compared, and share of them that shifted forces must cover.
_FRAMES, _COVERED = 300, 0.25
#: s, longest lag that is tried, the shortest one that counts, and the step of the estimate.
_LONGEST, _SHORTEST, _FINE = 1.5, 0.015, 0.001
#: Residual at another time over that at the recorded one, up to which it is a lag; largest residual (in weights, and
#: weights times 3 m) with which forces fit at all; factor on the smallest one within which the shortest lag counts.
_BETTER, _FITTING, _EQUAL = 0.85, 0.15, 1.25
#: Residual from which forces are those of another trial; public walks leave 0.06 to 0.13.
FOREIGN = 0.2
#: m, height over which a moment counts as a force: models leave moments at the root even with synchronous forces.
_ARM = 3.0
#: m from which points of application are displaced, and the share of the residual moment that may be left then.
_DISPLACED, _EXPLAINED = 0.05, 0.6


@dataclass(frozen=True, eq=False)
class GroundRecord:
    """A recorded force at its times (k,) s: `force` (k, 3) N, the `point` (k, 3) m where it acts, and the `free` torque
    (k,) N m about the vertical there, in the axes of the laboratory. `name` is the plate, or the body that it acts on;
    `side` that of the foot, None for plates, empty for other bodies and walls."""

    name: str
    side: str | None
    time: Floats
    force: Floats
    point: Floats
    free: Floats


def assigned_records(model: OsimModel, assignments: InputFile, table: TimeTable) -> list[GroundRecord]:
    """The forces of a `table` that the `assignments` (ExternalLoads) put on bodies, without sides; none that are in the
    axes of moving bodies. Raises `TrialError` for files that do not fit."""
    default_pose = kinematics(model, {}).take(np.zeros(len(table.time), dtype=int))
    return [
        GroundRecord(load.body, "", table.time, load.force, load.centre, load.torque[:, 1])
        for load in read_body_loads(assignments, table, default_pose, table.time)
        if load.in_ground
    ]


def root_rows(model: OsimModel) -> tuple[list[str], list[str]]:
    """Coordinates of the joint with which a model floats in the ground, translations and rotations; none where it is
    fixed to it."""
    ground_joints = {joint.name for joint in model.joints if joint.parent == GROUND}
    free = [c for c in model.coordinates if c.joint in ground_joints and not c.locked]
    translations = [c.name for c in free if not c.rotational]
    return (translations, [c.name for c in free if c.rotational]) if len(translations) > 1 else ([], [])


def root_residual(model: OsimModel, net: NetMoments) -> Floats:
    """(n, 2) size of the force (N) and of the moment (N m) that the root lacks; (n, 0) where it is fixed."""
    columns = [
        np.linalg.norm(net.values[:, [net.rows.index(name) for name in names if name in net.rows]], axis=1)
        for names in root_rows(model)
        if names
    ]
    return np.stack(columns, axis=1) if columns else np.zeros((len(net.values), 0))


def body_mass(model: OsimModel) -> float:
    """kg, of all bodies."""
    return sum(body.mass for body in model.bodies)


def body_weight(model: OsimModel) -> float:
    """N, of all bodies in the gravity of the model."""
    return body_mass(model) * float(np.linalg.norm(model.gravity))


def force_factor(net: NetMoments, motion: Kinematics, loads: Mapping[str, Floats], frames: Integers) -> float:
    """The vertical force that the motion needs over the recorded one, median of those of `frames` in which this is more
    than half of its maximum; NaN without any."""
    names = [name for name in root_rows(motion.model)[0] if name in net.rows]
    if not loads or not names:
        return float("nan")
    vertical_force = np.asarray(sum(load[frames, 1] for load in loads.values()))
    lacking = np.asarray(
        sum(net.values[frames, net.rows.index(name)] * motion.moving[name][frames, 1] for name in names)
    )
    usable = np.isfinite(vertical_force + lacking)
    usable &= vertical_force > 0.5 * np.max(vertical_force[usable], initial=0.0)
    return 1.0 + float(np.median(lacking[usable] / vertical_force[usable])) if usable.any() else float("nan")


@dataclass(frozen=True, eq=False)
class RootBalance:
    """The forces that the root needs from the ground in n frames at `time` (s): `demand` (n, r) N and N m along its
    coordinates, those of the `turning` (r,) about them; `lacking` (n, r) is the part that the loads on the bodies do
    not provide. `jacobian` (n, r, 6) maps force and moment about the ground's origin to these. `records` are forces of
    the ground; `weight` N.
    """

    time: Floats
    demand: Floats
    lacking: Floats
    turning: tuple[bool, ...]
    jacobian: Floats
    records: Sequence[GroundRecord]
    weight: float

    @classmethod
    def of_motion(
        cls, motion: Kinematics, net: NetMoments, loads: Mapping[str, Floats], frames: Integers, time: Floats,
        records: Sequence[GroundRecord],
    ) -> RootBalance | None:  # fmt: skip
        """The balance in `frames`, at most 300, of net moments with `loads` (n, 6) on bodies at `time` (n,) s; None
        without forces, or for a root that is not free."""
        rows = [[name for name in names if name in net.rows] for names in root_rows(motion.model)]
        names = [*rows[0], *rows[1]]
        frames = frames[np.isfinite(net.values[frames]).all(axis=1)]
        if not records or not rows[0] or len(frames) < 10:
            return None
        frames = frames[:: -(-len(frames) // _FRAMES)]
        lacking = net.values[frames][:, [net.rows.index(name) for name in names]]
        jacobian = np.stack([np.hstack([motion.moving[n][frames], motion.turning[n][frames]]) for n in names], axis=1)
        weight = body_weight(motion.model)
        turning = tuple(name in rows[1] for name in names)
        wrench = np.asarray(sum(load[frames] for load in loads.values()))
        demand = lacking + np.einsum("nrk,nk->nr", jacobian, wrench)
        return cls(time[frames], demand, lacking, turning, jacobian, records, weight)

    @cached_property
    def _recorded(self) -> tuple[tuple[Floats, Floats], ...]:
        """Times (k,) and wrenches (k, 6) of the records; where nothing acts they are zero."""
        wrenches = []
        for record in self.records:
            force = record.force
            acts = (np.nan_to_num(force) != 0.0).any(axis=1)[:, None]
            moment = np.cross(np.where(acts, record.point, 0.0), force)
            moment[:, 1] += np.where(acts[:, 0], record.free, 0.0)
            wrenches.append((record.time, np.hstack([force, moment])))
        return tuple(wrenches)

    def _loads(self, delay: float) -> Floats:
        """(n, r) generalised forces of the records at `delay` s later; NaN outside of them, and where they carry less
        than half of their maximum: a foot may be beside the plates."""
        total = np.zeros((len(self.time), 6))
        for time, wrench in self._recorded:
            at = self.time + delay
            total += np.column_stack([np.interp(at, time, column, left=np.nan, right=np.nan) for column in wrench.T])
        total[total[:, 1] < 0.5 * np.nanmax(total[:, 1], initial=0.0)] = np.nan
        return np.asarray(np.einsum("nrk,nk->nr", self.jacobian, total))

    def _residuals(self, delay: float, loads: Floats) -> tuple[float, float]:
        """RMS of what is left, forces in weights and moments in weights times 3 m, with the forces `delay` s later and
        with those of `loads`, in frames with both; infinite where they are few. The size of the forces is free."""
        later = self._loads(delay)
        in_common = np.isfinite(later + loads).all(axis=1)
        if in_common.mean() < _COVERED:
            return np.inf, np.inf
        demand = self.demand[in_common]
        return self._residual(demand, later[in_common]), self._residual(demand, loads[in_common])

    def _residual(self, demand: Floats, loads: Floats) -> float:
        forces = ~np.array(self.turning)
        size = float((loads[:, forces] ** 2).sum())
        factor = float((demand * loads)[:, forces].sum()) / size if size > 0.0 else 0.0
        residual = (demand - factor * loads) / np.where(self.turning, _ARM, 1.0)
        return float(np.sqrt(np.mean((residual**2).sum(axis=1)))) / self.weight

    def lag(self) -> float:
        """s by which the forces lag behind the motion (negative: lead), 0 where no other time fits clearly better.

        The lag leaves the smallest residual force and moment at the root.
        """
        loads, step = self._loads(0.0), float(np.median(np.diff(self.time)))
        step = min(step, 0.02)
        count = int(_LONGEST / step)
        delays = step * np.arange(-count, count + 1)
        residuals, unshifted_residuals = np.array([self._residuals(delay, loads) for delay in delays]).T
        usable = np.isfinite(residuals) & (residuals < _FITTING) & (residuals < _BETTER * unshifted_residuals)
        if not usable.any():
            return 0.0
        near = usable & (residuals <= _EQUAL * residuals[usable].min())
        coarse = delays[near][np.argmin(np.abs(delays[near]))]
        fine = coarse + _FINE * np.arange(-int(step / _FINE) - 1, int(step / _FINE) + 2)
        best = float(fine[np.argmin([self._residuals(delay, loads)[0] for delay in fine])])
        return best if abs(best) > _SHORTEST else 0.0

    def residual(self) -> float:
        """RMS of what is left at the recorded times, as `_residuals`; 0 where the forces cover few frames."""
        loads = self._loads(0.0)
        residual = self._residuals(0.0, loads)[0]
        return residual if np.isfinite(residual) else 0.0

    def displacements(self) -> dict[str, tuple[float, float]]:
        """m along X and Z by which the points of records are off, by name, where this explains the residual moment."""
        rows = np.flatnonzero(self.turning)
        if not len(rows):
            return {}
        forces = [np.column_stack([np.interp(self.time, t, w[:, i]) for i in range(3)]) for t, w in self._recorded]
        columns = [
            np.einsum("nrk,nk->nr", self.jacobian[:, rows, 3:], np.cross(axis, force))
            for force in forces
            for axis in (np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0]))
        ]
        effects, lacking = np.stack(columns, axis=2), self.lacking[:, rows]
        usable = np.isfinite(effects).all(axis=(1, 2)) & np.isfinite(self._loads(0.0)).all(axis=1)
        if not usable.any() or np.sqrt((lacking[usable] ** 2).sum(axis=1).mean()) < _DISPLACED * self.weight:
            return {}
        effects, lacking = effects[usable].reshape(-1, len(columns)), lacking[usable].ravel()
        moves = np.linalg.lstsq(effects, lacking, rcond=None)[0]
        if np.linalg.norm(lacking - effects @ moves) > _EXPLAINED * np.linalg.norm(lacking):
            return {}
        by_name = {record.name: -moves[2 * i : 2 * i + 2] for i, record in enumerate(self.records)}
        return {name: (float(x), float(z)) for name, (x, z) in by_name.items() if np.hypot(x, z) > _DISPLACED}
