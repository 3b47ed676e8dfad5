"""Loads of feet: which foot stands on which force plate, and the load that it puts on its body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from designopt_muscle.geometry.kinematics import Kinematics
from designopt_muscle.models.errors import TrialError
from designopt_muscle.osim.model import OsimModel
from designopt_recordings.frames import FrameStatus, worst_status
from designopt_recordings.loads.contacts import SHORTEST, THRESHOLD, ContactInterval, contacts
from designopt_recordings.loads.frames import PlateLoad, load_at
from designopt_recordings.loads.segments import bearing_segment, outline_distances
from designopt_recordings.plate import ForcePlate
from designopt_recordings.recording import Recording

from designopt.arrays import Floats, Integers, Mask
from designopt.counts import plural
from designopt_laboratory.trial.poses import TrialStatus

SIDES = ("right", "left")
#: Usual names of the bodies that stand on plates, right and left.
_NAMES = (("calcn_r", "calcn_l"), ("foot_r", "foot_l"), ("r_foot", "l_foot"), ("RFoot", "LFoot"))

#: m from the outline of a foot beyond which a load is not its own.
FARTHEST = 0.2
#: m outside its outline, and share of the frames in which the other foot is nearer, from which feet are exchanged.
_OUTSIDE, _EXCHANGED = 0.05, 0.8
#: m from the point of application up to the lowest origin of a loaded foot (median), between which poses are plausible:
#: public walks have 0.03 to 0.06, a foot whose only origin is the ankle some 0.1.
_LOWEST, _HIGHEST = -0.05, 0.12
#: Force (N) outside of a plate's contacts that a note mentions.
_LEAST_LEFT_OUT = 5.0

#: Statuses of plates as those of trials.
_STATUSES = {
    int(FrameStatus.AMBIGUOUS_PLATE): TrialStatus.AMBIGUOUS_PLATE,
    int(FrameStatus.MISSING_LOAD): TrialStatus.MISSING_LOAD,
}


@dataclass(frozen=True, eq=False)
class FootLoads:
    """The loads of plates, or assigned loads, on the feet in n frames, by side: `force`, `point`, `torque` (n, 2, 3) N,
    m, N m, ground axes.

    `point` is the centre of pressure, NaN while a foot is unloaded; `torque` acts besides the force there. `by_body` is
    the load (n, 6) on each body, about the origin of the ground. `strikes` are the times (s) at which each side
    is loaded. `status` (n,) are numbers of `TrialStatus`; `notes` for the reader, `doubts` on loads that are probably
    wrong.
    """

    force: Floats
    point: Floats
    torque: Floats
    by_body: Mapping[str, Floats]
    strikes: Mapping[str, tuple[float, ...]]
    status: Integers
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def bodies_of_feet(model: OsimModel, body_of_side: Mapping[str, str] | None = None) -> dict[str, str]:
    """The bodies that stand on plates, by side: `body_of_side`, or those with usual names.

    Raises `TrialError` for a body that the model does not have, and without any.
    """
    names = {body.name for body in model.bodies}
    if body_of_side:
        for side, body in body_of_side.items():
            if side not in SIDES:
                raise TrialError(f"feet: '{side}' is no side; write right and left")
            if body not in names:
                raise TrialError(f"feet: '{body}' is not a body of the model '{model.name}' ({', '.join(names)})")
        return dict(body_of_side)
    if usual := usual_feet(model):
        return usual
    raise TrialError(
        f"no body of the model '{model.name}' has a usual name of a foot (calcn_r, foot_r); name them with the setting"
        f" feet: {{right: BODY, left: BODY}}; its bodies: {', '.join(sorted(names))}"
    )


def usual_feet(model: OsimModel) -> dict[str, str]:
    """The bodies with usual names of feet, by side; none where the model has none."""
    names = {body.name for body in model.bodies}
    return next((dict(zip(SIDES, pair, strict=True)) for pair in _NAMES if set(pair) <= names), {})


def foot_bodies(model: OsimModel, foot: str) -> set[str]:
    """A foot and the bodies beyond it."""
    bodies = {foot}
    for joint in model.joints:  # parents come first
        if joint.parent in bodies:
            bodies.add(joint.child)
    return bodies


def foot_points(motion: Kinematics, foot: str, extra_points: Sequence[tuple[str, Floats]] = ()) -> dict[str, Floats]:
    """Points (n, 3) m on a foot and the bodies beyond it, by name: origins, and `extra_points` (body, place in it)."""
    bodies = foot_bodies(motion.model, foot)
    points = {body: motion.origin[body] for body in sorted(bodies)}
    for number, (body, place_in_body) in enumerate(extra_points):
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
    has_pose: Mask | None = None,
) -> FootLoads:
    """The loads of `plates` at `time` (n,) s on the `feet` (bodies by side) of a moving model.

    Each contact of a plate belongs to the foot over whose outline the centre of pressure lies (`bearing_segment`);
    the outline is that of the origins of foot and toes, and of the `markers` (body, place) on them. Loads are filtered
    at `cutoff` Hz if given. Only frames with `has_pose` (n,) tell where a foot is. Frames of a contact that no foot or
    both could have made are `AMBIGUOUS_PLATE`.
    """
    points = {side: foot_points(motion, body, markers) for side, body in feet.items()}
    outline = {f"{side} {name}": x for side, side_points in points.items() for name, x in side_points.items()}
    rate = (len(time) - 1) / (time[-1] - time[0])
    positions = np.stack(list(outline.values()), axis=1)
    if has_pose is not None:
        positions = np.where(has_pose[:, None, None], positions, np.nan)
    shapes = Recording(rate, time, tuple(outline), positions)
    segments = {side: [f"{side} {name}" for name in side_points] for side, side_points in points.items()}
    n = len(time)
    wrench = {side: np.zeros((n, 6)) for side in SIDES}
    weighted_points, pressing = np.zeros((n, 2, 3)), np.zeros((n, 2, 1))
    status, notes, doubts = np.zeros(n, dtype=np.int64), [], []
    strikes: dict[str, list[float]] = {side: [] for side in SIDES}
    for plate in plates:
        load = load_at(plate, time, cutoff=cutoff, open_ends=True)
        bearing = bearing_segment(shapes, plate, load, segments)
        of_plate = [_STATUSES.get(value, TrialStatus.OK) for value in bearing.status.tolist()]
        status = worst_status(status, of_plate)
        for side in feet:
            share = bearing.frames_of(side)
            wrench[side] += _shared_load(load, share)
            normal_force = share * np.abs(np.nan_to_num(load.force) @ plate.normal)
            i = SIDES.index(side)
            weighted_points[:, i] += normal_force[:, None] * np.nan_to_num(load.point)
            pressing[:, i, 0] += normal_force
        strikes_of_plate, unclear = _strikes(plate, bearing.segment_indices, bearing.segments, time)
        for side, moment in strikes_of_plate:
            strikes[side].append(moment)
        doubts += unclear
        notes += _beside_contacts(plate, load, time)
    point = np.where(pressing > 0.0, weighted_points / np.where(pressing > 0.0, pressing, 1.0), np.nan)
    force = np.stack([wrench[side][:, :3] for side in SIDES], axis=1)
    about = np.stack([wrench[side][:, 3:] for side in SIDES], axis=1)
    torque = np.where(pressing > 0.0, about - np.cross(np.nan_to_num(point), force), 0.0)
    by_body = {feet[side]: wrench[side] for side in feet}
    times = {side: tuple(sorted(instants)) for side, instants in strikes.items()}
    return FootLoads(force, point, torque, by_body, times, status, tuple(notes), tuple(doubts))


def _shared_load(load: PlateLoad, share: Floats) -> Floats:
    """(n, 6) of a plate's load where a foot has it; NaN where the plate has no finite value."""
    wrench = np.hstack([load.force, load.moment])
    factor = np.where(load.status == FrameStatus.MISSING_LOAD, np.nan, share)
    return np.asarray(np.where(factor[:, None] == 0.0, 0.0, factor[:, None] * wrench))


def _strikes(
    plate: ForcePlate, foot_index: Integers, sides: Sequence[str], time: Floats
) -> tuple[list[tuple[str, float]], list[str]]:
    """The side and the time of each strike on a plate that begins within the recording; and notes on contacts of no
    foot."""
    strikes, notes = [], []
    for contact in contacts(plate, open_ends=True):
        frames = (time >= contact.start) & (time <= contact.end)
        if not frames.any():
            continue
        indices = foot_index[frames]
        indices = indices[indices >= 0]
        if not len(indices):
            highest = float(np.nanmax(np.interp(time[frames], plate.time, np.nan_to_num(plate.normal_force))))
            notes.append(
                f"{plate_title(plate)}: no foot is over the contact from {contact.start:.3f} to {contact.end:.3f} s;"
                f" its load of up to {highest:.3g} N is left out"
            )
            continue
        if begins(plate, contact):
            strikes.append((sides[int(np.bincount(indices).argmax())], contact.start))
    return strikes, notes


def begins(plate: ForcePlate, contact: ContactInterval) -> bool:
    """Whether a contact begins with a foot strike: not at the first sample, and not behind a gap."""
    before = int(np.searchsorted(plate.time, contact.start - 1e-9)) - 1
    return before >= 0 and bool(np.isfinite(plate.normal_force[before]))


def plate_title(plate: ForcePlate) -> str:
    """The name of a plate as a plate's."""
    return plate.name if "plate" in plate.name.lower() else f"plate {plate.name}"


def _beside_contacts(plate: ForcePlate, load: PlateLoad, time: Floats) -> list[str]:
    """A note on what a plate measures beside its contacts, which counts as no load."""
    inside = (time >= plate.time[0]) & (time <= plate.time[-1]) & ~load.is_loaded
    force = np.where(inside, np.interp(time, plate.time, np.nan_to_num(plate.normal_force)), 0.0)
    if not len(force) or force.max() < _LEAST_LEFT_OUT:
        return []
    return [
        f"{plate_title(plate)}: beside its contacts (above {THRESHOLD:g} N for {SHORTEST:g} s) up to {force.max():.3g}"
        f" N at {time[force.argmax()]:.3f} s are left out"
    ]


@dataclass(frozen=True, eq=False)
class FootShapes:
    """The points from which the distance of a load to the feet is measured: the `motion`, the `feet` (bodies by side)
    and the `markers` (body, place) on them."""

    motion: Kinematics
    feet: Mapping[str, str]
    markers: Sequence[tuple[str, Floats]] = ()

    def distances(self, point: Floats) -> Floats:
        """(n, 2, 2) m, horizontal, from the centre of pressure `point` (n, 2, 3) of each side to the outline of each
        foot: origins and centres of mass of its bodies, and its markers."""
        floor = ForcePlate("floor", 1.0, np.zeros((1, 3)), np.zeros((1, 3)))
        centres = [(body.name, body.centre) for body in self.motion.model.bodies]
        distances = np.full((*point.shape[:2], 2), np.nan)
        for foot, body in self.feet.items():
            points = foot_points(self.motion, body, [*centres, *self.markers])
            outline = np.stack(list(points.values()), axis=1)
            for i in range(2):
                distances[:, i, SIDES.index(foot)] = outline_distances(outline, floor, point[:, i], np.inf)
        return distances

    def heights(self, point: Floats) -> Floats:
        """(n, 2) m from the centre of pressure `point` (n, 2, 3) of each side up to the lowest origin of its foot's
        bodies; NaN without a foot or a point."""
        heights = np.full(point.shape[:2], np.nan)
        for side, body in self.feet.items():
            origins = np.stack(list(foot_points(self.motion, body).values()), axis=1)
            i = SIDES.index(side)
            heights[:, i] = origins[:, :, 1].min(axis=1) - point[:, i, 1]
        return heights


def _height_doubts(heights: Floats, is_loaded: Mask) -> list[str]:
    """A doubt on feet that float or sink where `is_loaded` (n, 2), from `heights` (n, 2) m."""
    usable = is_loaded & np.isfinite(heights)
    medians = {side: float(np.median(heights[usable[:, i], i])) for i, side in enumerate(SIDES) if usable[:, i].any()}
    off = {side: median for side, median in medians.items() if not _LOWEST <= median <= _HIGHEST}
    if not off:
        return []
    feet = " and ".join(
        f"the {side} foot is {abs(m):.2g} m {'above' if m > 0.0 else 'below'}" for side, m in off.items()
    )
    return [
        f"while it bears load, {feet} its points of application (median of its lowest origin): check the height of the"
        " pelvis, the lengths of the legs (scaling), and the height of the plates"
    ]


def judged_points(
    loads: FootLoads, shapes: FootShapes, frames: Integers, least: float, names: tuple[str, str]
) -> FootLoads:
    """The loads; of `frames` those are `OFF_FOOT` in which more than `least` N act more than 0.2 m beside their foot.

    `names` are the files of the loads and of their assignment. Raises `TrialError` where this is so in most frames of a
    foot, with the probable reason: points in mm, feet that are exchanged, loads of another trial.
    """
    is_loaded = (np.linalg.norm(np.nan_to_num(loads.force), axis=2) > least) & np.isfinite(loads.point).all(axis=2)
    is_loaded &= np.isin(np.arange(len(is_loaded)), frames)[:, None]
    distances = shapes.distances(loads.point)
    sides = [i for i, side in enumerate(SIDES) if side in shapes.feet and is_loaded[:, i].any()]
    to_own = {i: distances[is_loaded[:, i], i, i] for i in sides}
    to_other = {i: distances[is_loaded[:, i], i, 1 - i] for i in sides}
    if sides and all(
        np.median(to_own[i]) > _OUTSIDE
        and np.median(to_other[i]) < FARTHEST  # NaN of a single foot compares as false
        and np.mean(to_other[i] < to_own[i]) > _EXCHANGED
        for i in sides
    ):
        raise TrialError(
            f"{names[1]}: the loads on the {' and the '.join(f'{SIDES[i]} foot' for i in sides)} act under the other"
            f" foot ({np.median(to_own[sides[0]]):.2g} m beside their own): are the feet exchanged, or is it another"
            " trial?"
        )
    for i in sides:
        if np.median(to_own[i]) > FARTHEST:
            in_metres = shapes.distances(1e-3 * loads.point)[is_loaded[:, i], i, i]
            reason = "check their axes, their time (time_offset), and whether they belong to the trial"
            if np.median(in_metres) < FARTHEST:
                reason = "are the points of application in mm? They must be in m (divide them by 1000)"
            raise TrialError(
                f"{names[0]}: the loads on the {SIDES[i]} foot act {np.median(to_own[i]):.3g} m beside it (median of"
                f" {len(to_own[i])} frames): {reason}"
            )
    loads = replace(loads, doubts=(*loads.doubts, *_height_doubts(shapes.heights(loads.point), is_loaded)))
    off = is_loaded & (np.diagonal(distances, axis1=1, axis2=2) > FARTHEST)
    is_off = off.any(axis=1)
    if not is_off.any():
        return loads
    status = np.where(is_off, np.maximum(loads.status, int(TrialStatus.OFF_FOOT)), loads.status)
    largest = np.linalg.norm(loads.force[off], axis=1).max()
    note = (
        f"in {plural(int(is_off.sum()), 'frame')} up to {largest:.3g} N act more than"
        f" {FARTHEST:g} m beside their foot: these frames have no moments"
    )
    return replace(loads, status=status, doubts=(*loads.doubts, note))
