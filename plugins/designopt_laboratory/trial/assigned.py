"""Loads that OpenSim's ExternalLoads assigns to bodies: on the feet with strikes, as those of plates, and on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from designopt_muscle.geometry.kinematics import Kinematics
from designopt_muscle.geometry.loads import BodyLoad, sum_by_body
from designopt_muscle.models.dynamics import read_body_loads
from designopt_muscle.osim.model import OsimModel
from designopt_recordings.loads.contacts import contacts
from designopt_recordings.plate import ForcePlate
from designopt_recordings.signals.even_steps import linear_values
from designopt_recordings.signals.filters import lowpass
from designopt_recordings.table import TimeTable

from designopt.arrays import Floats
from designopt.plugin import InputFile
from designopt_laboratory.trial.feet import SIDES, FootLoads, begins, foot_bodies
from designopt_laboratory.trial.poses import TrialStatus


def assigned_loads(
    file: InputFile,
    table: TimeTable,
    motion: Kinematics,
    time: Floats,
    feet: Mapping[str, str],
    *,
    cutoff: float | None = None,
) -> FootLoads:
    """The loads of `table` at `time` (n,) s on the bodies that the ExternalLoads `file` names; loads on a foot (or
    beyond it) of `feet`, bodies by side, are contacts of that side.

    Loads are filtered at `cutoff` Hz if given, else interpolated linearly. Contacts begin and end as those of plates
    (`loads.contacts`), at the rate of the table. Frames without a finite load are `MISSING_LOAD`. Raises `TrialError`
    for a file that does not fit model or table.
    """
    loads = read_body_loads(file, table, motion, time)
    steps = max(round(float(table.time[-1] - table.time[0]) / float(np.median(np.diff(table.time)))), 1)
    even = np.linspace(table.time[0], table.time[-1], steps + 1)
    nearest = np.clip(np.searchsorted(time, even), 0, len(time) - 1)  # for loads in the axes of a body
    records = read_body_loads(file, table, motion.take(nearest), even)
    rate = steps / float(table.time[-1] - table.time[0])
    if cutoff is not None:
        loads = tuple(
            _filter_load(load, fine, (even, time), rate, cutoff) for load, fine in zip(loads, records, strict=True)
        )
    n = len(time)
    force, point, torque = np.zeros((n, 2, 3)), np.full((n, 2, 3), np.nan), np.zeros((n, 2, 3))
    doubts: list[str] = []
    strikes: dict[str, tuple[float, ...]] = dict.fromkeys(SIDES, ())
    for side, foot in feet.items():
        i, bodies = SIDES.index(side), foot_bodies(motion.model, foot)
        of_side = [k for k, load in enumerate(loads) if load.body in bodies]
        if not of_side:
            doubts.append(f"{file.name}: no load acts on {foot}, the {side} foot")
            continue
        force[:, i] = sum(loads[k].force for k in of_side)
        point[:, i] = _centre([loads[k] for k in of_side])
        about = np.asarray(sum(loads[k].wrench[:, 3:] for k in of_side))
        acting = (force[:, i] != 0.0).any(axis=1)[:, None]
        torque[:, i] = np.where(acting, about - np.cross(_or_zero(point[:, i]), force[:, i]), 0.0)
        fine_force = np.asarray(sum(records[k].force for k in of_side))
        plate = ForcePlate(side, rate, fine_force, np.zeros_like(fine_force), start=float(even[0]))
        strikes[side] = tuple(c.start for c in contacts(plate, open_ends=True) if begins(plate, c))
    by_body = sum_by_body(loads)
    missing = np.logical_or.reduce([~np.isfinite(load).all(axis=1) for load in by_body.values()] or [np.zeros(n, bool)])
    status = np.where(missing, int(TrialStatus.MISSING_LOAD), int(TrialStatus.OK))
    doubts += _beside_feet(file.name, loads, motion.model, feet)
    return FootLoads(force, point, torque, by_body, strikes, status, doubts=tuple(doubts))


def _beside_feet(name: str, loads: tuple[BodyLoad, ...], model: OsimModel, feet: Mapping[str, str]) -> tuple[str, ...]:
    """A note for each body under a load that is no foot."""
    if not feet:
        return ()
    bodies = {body for foot in feet.values() for body in foot_bodies(model, foot)}
    beside = [load for load in loads if load.body not in bodies]
    sizes = [np.linalg.norm(np.nan_to_num(load.force), axis=1).max() for load in beside]
    return tuple(
        f"{name}: up to {size:.3g} N act on {load.body}, which is no foot: they give no foot strike (setting feet)"
        for load, size in zip(beside, sizes, strict=True)
    )


def _centre(loads: list[BodyLoad]) -> Floats:
    """(n, 3) mean of the centres of pressure of `loads`, weighted by their forces; NaN without a force."""
    centres = [load.centre for load in loads]
    weights = [
        np.where(np.isfinite(centre).all(axis=1), np.nan_to_num(load.force[:, 1]), 0.0)[:, None]
        for centre, load in zip(centres, loads, strict=True)
    ]
    total = np.asarray(sum(weights))
    weighted_sum = sum(w * _or_zero(centre) for w, centre in zip(weights, centres, strict=True))
    return np.where(total > 0.0, weighted_sum / np.where(total > 0.0, total, 1.0), np.nan)


def _or_zero(values: Floats) -> Floats:
    return np.asarray(np.nan_to_num(values))


def _filter_load(
    load: BodyLoad, fine_load: BodyLoad, times: tuple[Floats, Floats], rate: float, cutoff: float
) -> BodyLoad:
    """The `load` with the force and moment of `fine_load`, which is filtered at its even times; its point stays."""
    even, time = times
    wrench = lowpass(fine_load.wrench, rate, cutoff)
    at = np.column_stack([linear_values(even, column, time) for column in wrench.T])
    return replace(load, force=at[:, :3], torque=at[:, 3:] - np.cross(_or_zero(load.point), at[:, :3]))
