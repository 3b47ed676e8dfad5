"""Loads of feet: which foot stands on which force plate, and the load that it puts on its body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from designopt_muscle.geometry.kinematics import Kinematics
from designopt_muscle.models.errors import TrialError
from designopt_muscle.osim.model import OsimModel
from designopt_recordings.frames import FrameStatus, worst
from designopt_recordings.loads.contacts import contacts
from designopt_recordings.loads.frames import PlateLoad, load_at
from designopt_recordings.loads.segments import bearing_segment
from designopt_recordings.plate import ForcePlate
from designopt_recordings.recording import Recording

from designopt.arrays import Floats, Integers
from designopt_laboratory.trial.poses import TrialStatus

SIDES = ("right", "left")
#: Usual names of the bodies that stand on plates, right and left.
_NAMES = (("calcn_r", "calcn_l"), ("foot_r", "foot_l"), ("r_foot", "l_foot"), ("RFoot", "LFoot"))

#: Statuses of plates as those of trials.
_STATUSES = {
    int(FrameStatus.AMBIGUOUS_PLATE): TrialStatus.AMBIGUOUS_PLATE,
    int(FrameStatus.MISSING_LOAD): TrialStatus.MISSING_LOAD,
}


@dataclass(frozen=True, eq=False)
class FootLoads:
    """What plates put on the feet in n frames, by side: `force`, `point`, `torque` (n, 2, 3) N, m, N m, ground axes.

    `point` is the centre of pressure, NaN while a foot is unloaded; `torque` acts besides the force there. `by_body` is
    the load (n, 6) on each foot's body, about the origin of the ground. `strikes` are the times (s) at which each side
    loads a plate. `status` (n,) are numbers of `TrialStatus`; `notes` for the reader.
    """

    force: Floats
    point: Floats
    torque: Floats
    by_body: Mapping[str, Floats]
    strikes: Mapping[str, tuple[float, ...]]
    status: Integers
    notes: tuple[str, ...] = ()


def bodies_of_feet(model: OsimModel, stated: Mapping[str, str] | None = None) -> dict[str, str]:
    """The bodies that stand on plates, by side: as `stated`, or those with usual names.

    Raises `TrialError` for a body that the model does not have, and without any.
    """
    names = {body.name for body in model.bodies}
    if stated:
        for side, body in stated.items():
            if side not in SIDES:
                raise TrialError(f"feet: '{side}' is no side; write right and left")
            if body not in names:
                raise TrialError(f"feet: '{body}' is not a body of the model '{model.name}' ({', '.join(names)})")
        return dict(stated)
    for pair in _NAMES:
        if set(pair) <= names:
            return dict(zip(SIDES, pair, strict=True))
    raise TrialError(
        f"no body of the model '{model.name}' has a usual name of a foot (calcn_r, foot_r); name them with the setting"
        f" feet: {{right: BODY, left: BODY}}; its bodies: {', '.join(sorted(names))}"
    )


def foot_points(motion: Kinematics, foot: str, more: Sequence[tuple[str, Floats]] = ()) -> dict[str, Floats]:
    """Points (n, 3) m on a foot and the bodies beyond it, by name: origins, and `more` (body, place in it)."""
    bodies = {foot}
    for joint in motion.model.joints:  # parents come first
        if joint.parent in bodies:
            bodies.add(joint.child)
    points = {body: motion.origin[body] for body in sorted(bodies)}
    for number, (body, place_in_body) in enumerate(more):
        if body in bodies:
            points[f"{body}_{number}"] = motion.position(body, place_in_body)
    return points


def foot_loads(
    plates: Sequence[ForcePlate],
    motion: Kinematics,
    time: Floats,
    feet: Mapping[str, str],
    *,
    cutoff: float | None = None,
    markers: Sequence[tuple[str, Floats]] = (),
) -> FootLoads:
    """The loads of `plates` at `time` (n,) s on the `feet` (bodies by side) of a moving model.

    Each contact of a plate belongs to the foot over whose outline the centre of pressure lies (`bearing_segment`);
    the outline is that of the origins of foot and toes, and of the `markers` (body, place) on them. Loads are filtered
    at `cutoff` Hz if given. Frames of a contact that no foot or both could have made are `AMBIGUOUS_PLATE`.
    """
    points = {side: foot_points(motion, body, markers) for side, body in feet.items()}
    outline = {f"{side} {name}": x for side, some in points.items() for name, x in some.items()}
    rate = (len(time) - 1) / (time[-1] - time[0])
    shapes = Recording(rate, time, tuple(outline), np.stack(list(outline.values()), axis=1))
    segments = {side: [f"{side} {name}" for name in some] for side, some in points.items()}
    n = len(time)
    wrench = {side: np.zeros((n, 6)) for side in SIDES}
    weighted, pressing = np.zeros((n, 2, 3)), np.zeros((n, 2, 1))
    status, notes = np.zeros(n, dtype=np.int64), []
    strikes: dict[str, list[float]] = {side: [] for side in SIDES}
    for plate in plates:
        load = load_at(plate, time, cutoff=cutoff)
        bearing = bearing_segment(shapes, plate, load, segments)
        of_plate = [_STATUSES.get(value, TrialStatus.OK) for value in bearing.status.tolist()]
        status = worst(status, of_plate)
        for side in feet:
            share = bearing.frames_of(side)
            wrench[side] += _shared(load, share)
            pressed = share * np.abs(np.nan_to_num(load.force) @ plate.normal)
            i = SIDES.index(side)
            weighted[:, i] += pressed[:, None] * np.nan_to_num(load.point)
            pressing[:, i, 0] += pressed
        strikes_of_plate, unclear = _strikes(plate, bearing.which, bearing.segments, time)
        for side, moment in strikes_of_plate:
            strikes[side].append(moment)
        notes += unclear
    point = np.where(pressing > 0.0, weighted / np.where(pressing > 0.0, pressing, 1.0), np.nan)
    force = np.stack([wrench[side][:, :3] for side in SIDES], axis=1)
    about = np.stack([wrench[side][:, 3:] for side in SIDES], axis=1)
    torque = np.where(pressing > 0.0, about - np.cross(np.nan_to_num(point), force), 0.0)
    by_body = {feet[side]: wrench[side] for side in feet}
    times = {side: tuple(sorted(some)) for side, some in strikes.items()}
    return FootLoads(force, point, torque, by_body, times, status, tuple(notes))


def _shared(load: PlateLoad, share: Floats) -> Floats:
    """(n, 6) of a plate's load where a foot has it; NaN where the plate has no finite value."""
    wrench = np.hstack([load.force, load.moment])
    factor = np.where(load.status == FrameStatus.MISSING_LOAD, np.nan, share)
    return np.asarray(np.where(factor[:, None] == 0.0, 0.0, factor[:, None] * wrench))


def _strikes(
    plate: ForcePlate, which: Integers, sides: Sequence[str], time: Floats
) -> tuple[list[tuple[str, float]], list[str]]:
    """The side and the time of each strike on a plate that begins within the recording; and notes on contacts of no
    foot."""
    strikes, notes = [], []
    for contact in contacts(plate):
        frames = (time >= contact.start) & (time <= contact.end)
        if not frames.any():
            continue
        chosen = which[frames]
        chosen = chosen[chosen >= 0]
        if not len(chosen):
            notes.append(
                f"plate {plate.name}: no foot is over the contact from {contact.start:.3g} to {contact.end:.3g} s; its"
                " load is left out"
            )
            continue
        if contact.start > plate.time[0]:
            strikes.append((sides[int(np.bincount(chosen).argmax())], contact.start))
    return strikes, notes
