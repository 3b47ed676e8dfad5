"""Net moments and joint forces of a trial from masses, motion and external loads: inverse dynamics without muscles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from designopt_mechanics.robot_files.xml import ModelError
from designopt_mechanics.tree_rows import TreeRows
from designopt_recordings.table import TimeTable

from designopt.arrays import Floats, Integers
from designopt.plugin import InputFile
from designopt_muscle.geometry.kinematics import Kinematics
from designopt_muscle.geometry.loads import BodyLoad, body_loads, sum_by_body
from designopt_muscle.geometry.passive import at_coordinates, passive_action
from designopt_muscle.models.errors import TrialError
from designopt_muscle.osim.model import GROUND, OsimModel
from designopt_muscle.osim.tree import joint_frame, tree_of


@dataclass(frozen=True, eq=False)
class Dynamics:
    """A moving model: `z`, `dz`, `ddz` (n, m) of its free coordinates, and `loads` (n, 6) on bodies, both in SI.

    Springs, ligaments and bushings of the model are among the loads; `passive` (n, m) are its generalised forces at
    coordinates.
    """

    rows: TreeRows
    z: Floats
    dz: Floats
    ddz: Floats
    loads: Mapping[str, Floats]
    passive: Floats

    @classmethod
    def from_model(
        cls,
        model: OsimModel,
        motion: Mapping[str, tuple[Floats, Floats, Floats]],
        loads: Mapping[str, Floats],
    ) -> Dynamics:
        """The `model` with the coordinates of `motion` by name, each with its rates and accelerations (n,).

        Coordinates that do not move are left at their defaults. Frames with numbers that are missing have NaN results.
        """
        names = model.free
        n = len(next(iter(motion.values()))[0])
        default = {c.name: c.default for c in model.coordinates}
        rest_motion = {name: (np.full(n, default[name]), np.zeros(n), np.zeros(n)) for name in names}
        z, dz, ddz = (np.column_stack([{**rest_motion, **motion}[name][i] for name in names]) for i in range(3))
        all_loads, passive = dict(loads), np.zeros(z.shape)
        if model.passive:
            values, rates = (dict(zip(names, np.nan_to_num(part).T, strict=True)) for part in (z, dz))
            action = passive_action(model, values, rates)
            for body, load in action.bodies.items():
                if body != GROUND:
                    all_loads[body] = all_loads[body] + load if body in all_loads else load
            passive = at_coordinates(model, action.coordinates, values)
        return cls(_rows(model, tuple(all_loads)), z, dz, ddz, all_loads, passive)

    @property
    def coordinates(self) -> tuple[str, ...]:
        return self.rows.tree.names

    def moments(self) -> Floats:
        """(n, m) generalised forces that the motion needs beside gravity, loads and passive forces."""
        return self.rows.inverse_dynamics(self.z, self.dz, self.ddz, self.loads) - self.passive

    def joint_forces(self, children: Sequence[str]) -> dict[str, Floats]:
        """(n, 3) N by child body: the force of the parent on it if no muscle pulls, in the axes of the ground."""
        return {child: wrench[:, :3] for child, wrench in self.joint_wrenches(children).items()}

    def joint_wrenches(self, children: Sequence[str]) -> dict[str, Floats]:
        """(n, 6) by child body: that force (N), then the moment (N m) about the centre of the joint on the child."""
        wrenches = self.rows.joint_forces(self.z, self.dz, self.ddz, self.loads)
        return {child: wrenches[joint_frame(child)] for child in children}

    def take(self, frames: Integers) -> Dynamics:
        """Some of the frames."""
        loads = {body: load[frames] for body, load in self.loads.items()}
        return Dynamics(self.rows, self.z[frames], self.dz[frames], self.ddz[frames], loads, self.passive[frames])


@lru_cache(maxsize=4)
def _rows(model: OsimModel, bodies: tuple[str, ...]) -> TreeRows:
    """The functions of a model, which are built once for all its trials."""
    return TreeRows(tree_of(model), gravity=model.gravity, loaded=bodies, couplers=True)


def read_body_loads(file: InputFile, table: TimeTable, motion: Kinematics, time: Floats) -> tuple[BodyLoad, ...]:
    """The loads of an ExternalLoads file at `time` (n,) s; raises `TrialError` with the place in the file."""
    try:
        return body_loads(file.content, table, motion, time)
    except ModelError as error:
        raise TrialError(f"{file.name}: {error}") from None


def read_loads(file: InputFile, table: TimeTable, motion: Kinematics, time: Floats) -> dict[str, Floats]:
    """(n, 6) on each body at `time`; raises `TrialError` with the place in the file of loads."""
    return sum_by_body(read_body_loads(file, table, motion, time))
