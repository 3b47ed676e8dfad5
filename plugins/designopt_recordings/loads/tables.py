"""Plates from tables of ground reactions (MOT files), and back: force, point of application and torque of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt_recordings.errors import RecordingError
from designopt_recordings.loads.contacts import THRESHOLD
from designopt_recordings.loads.frames import PlateLoad
from designopt_recordings.plate import ForcePlate
from designopt_recordings.signals.even_steps import even_rate
from designopt_recordings.table import TimeTable


@dataclass(frozen=True)
class Columns:
    """Prefixes of three columns each, ending in x, y, z: as an ExternalForce of OpenSim names them.

    `name` of the plate; `force` in N, `point` of application in m, `torque` in N·m ("" for none).
    """

    name: str
    force: str
    point: str
    torque: str = ""


def ground_reactions(table: TimeTable) -> tuple[Columns, ...]:
    """Columns of ground reactions found by their usual names: ``ground_force_r_vx ..._px ... ground_torque_r_x``."""
    reactions = []
    for name in table.names:
        match = re.fullmatch(r"(.*force.*)vx", name)
        if match and all(f"{match[1]}{part}" in table.names for part in ("vy", "vz", "px", "py", "pz")):
            stem = match[1]
            torque = stem.replace("force", "torque")
            has_torque = all(f"{torque}{axis}" in table.names for axis in "xyz")
            title = re.sub(r"_*ground_force_*|_+$", "", stem) or "ground"
            reactions.append(Columns(title, f"{stem}v", f"{stem}p", torque if has_torque else ""))
    return tuple(reactions)


def plates_from_table(
    table: TimeTable, columns: Sequence[Columns] | None = None, level: float = 0.0
) -> tuple[ForcePlate, ...]:
    """A plate for each of `columns` (by default all `ground_reactions`), on the horizontal plane through `level` m.

    Points of application are read only where there is a force: tables contain large meaningless numbers elsewhere.
    Raises `RecordingError` for missing columns or unevenly spaced times.
    """
    columns = ground_reactions(table) if columns is None else columns
    if not columns:
        raise RecordingError("the table has no columns of ground reactions (ground_force_..._vx, ..._px)")
    rate = even_rate(table.time)
    return tuple(_plate(table, columns_of_plate, rate, level) for columns_of_plate in columns)


def _plate(table: TimeTable, plate_columns: Columns, rate: float, level: float) -> ForcePlate:
    force, point = _three(table, plate_columns.force), _three(table, plate_columns.point)
    torque = _three(table, plate_columns.torque) if plate_columns.torque else np.zeros_like(force)
    force, point, torque = idle_as_zero(force, point, torque)
    acting = (force != 0.0).any(axis=1)
    moment = torque + np.cross(np.where(acting[:, None], point, 0.0), force)
    return ForcePlate(plate_columns.name, rate, force, moment, level=level, start=float(table.time[0]))


def idle_as_zero(force: Floats, point: Floats, torque: Floats) -> tuple[Floats, Floats, Floats]:
    """The same (n, 3) arrays, without a load where a force below the threshold of a contact has no point or torque:
    programs that divide by the force write none there. The point is then between those before and after."""
    lost = ~np.isfinite(np.hstack([point, torque])).all(axis=1)
    idle = lost & (np.linalg.norm(force, axis=1) < THRESHOLD)
    if not idle.any():
        return force, point, torque
    force, torque, point = (np.where(idle[:, None], 0.0, part) for part in (force, torque, point))
    rows = np.arange(len(point))
    if not lost.all():
        for column in point.T:
            column[idle] = np.interp(rows[idle], rows[~lost], column[~lost])
    return force, point, torque


def _three(table: TimeTable, prefix: str) -> Floats:
    return np.column_stack([table.column(f"{prefix}{axis}") for axis in "xyz"])


def reaction_table(time: Floats, loads: Sequence[PlateLoad], title: str = "ground reactions") -> TimeTable:
    """Loads (n frames each) at `time` (n,) s as a table that OpenSim's ExternalLoads read, to be written as MOT.

    Columns are ``ground_force_NAME_vx``, ``_px`` and ``ground_torque_NAME_x``; blanks of a plate's name become ``_``.
    `plates_from_table` gives the same forces and moments back. Frames without a load are NaN.
    Raises `RecordingError` without loads.
    """
    names: list[str] = []
    columns: list[Floats] = []
    for load in loads:
        name = "_".join(load.name.split())
        torque = load.moment - np.cross(load.point, load.force)
        for stem, vectors in (("force_%s_v", load.force), ("force_%s_p", load.point), ("torque_%s_", torque)):
            names += [f"ground_{stem % name}{axis}" for axis in "xyz"]
            columns.append(vectors)
    if not columns:
        raise RecordingError("there are no loads to write")
    return TimeTable(time, tuple(names), np.hstack(columns), title=title)
