"""What the files of a trial show by themselves about the forces of the ground: unit, sign, time, and where they act."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from designopt_muscle.geometry.kinematics import kinematics
from designopt_muscle.models.errors import TrialError
from designopt_muscle.models.plausibility import weight_of
from designopt_muscle.models.root_balance import GroundRecord, assigned_records, root_rows
from designopt_recordings.loads.frames import load_at
from designopt_recordings.plausibility import LEAST_LOAD, load_notes, pull_of_ground

from designopt.arrays import Floats
from designopt_laboratory.trial.feet import FARTHEST, foot_bodies, plate_title, usual_feet
from designopt_laboratory.trial.files import TrialFiles
from designopt_laboratory.trial.poses import measured_poses
from designopt_laboratory.trial.strikes import strikes_of_events

#: N, and share of the weight, between which the least force of a plate is an offset.
_LEAST_OFFSET, _LARGEST_OFFSET = 5.0, 0.1
#: m between a centre of pressure and the nearest marker (or body) from which a load is not that of the trial.
_FARTHEST = 2.0
#: Cosine of the slope up to which a plate is stood on.
_LEVEL = 0.7
#: m, torque about the vertical over the force beyond which a foot could not turn on the ground.
_LARGEST_LEVER = 0.2
#: Poses at which the bodies of measured coordinates are compared with the forces.
_POSES = 60


def ground_records(files: TrialFiles, feet: Mapping[str, str] | None = None) -> tuple[GroundRecord, ...]:
    """The recorded forces of a trial, of plates or as `external_loads` assigns them; none in the axes of bodies.
    `feet` are the bodies that stand on the ground, by side; those with usual names if None."""
    if files.assignments is not None and files.reactions is not None:
        sides = usual_feet(files.model) if feet is None else feet
        side_of = {body: side for side, foot in sides.items() for body in foot_bodies(files.model, foot)}
        return tuple(
            replace(record, side=side_of.get(record.name, ""))
            for record in assigned_records(files.model, files.assignments, files.reactions)
        )
    records = []
    for plate in files.plates:
        load = load_at(plate, plate.time, open_ends=True)
        side = None if plate.normal[1] > _LEVEL else ""  # a wall is not stood on
        records.append(GroundRecord(plate_title(plate), side, plate.time, plate.force, load.point, load.free))
    return tuple(records)


def check_records(
    files: TrialFiles, window: tuple[float, float] | None = None, feet: Mapping[str, str] | None = None
) -> None:
    """Raise `TrialError` with the first of `record_mistakes`."""
    for mistake in record_mistakes(files, window, feet):
        raise TrialError(mistake)


def record_mistakes(
    files: TrialFiles, window: tuple[float, float] | None = None, feet: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Why forces of the ground cannot be those of the trial, a sentence each: they pull, act metres away from the body,
    or were recorded at another time."""
    records = ground_records(files, feet)
    if not records:
        return
    name, trial = files.loads_name, _span(files, window)
    if any(len(record.time) < 2 for record in records):
        yield f"{name}: a single row of forces; at least two are needed"
        return
    for record in records:
        first, last = float(record.time[0]), float(record.time[-1])
        if first >= trial[1] or last <= trial[0]:
            yield (
                f"{name}: {record.name}: the forces are from {first:.4g} to {last:.4g} s, the motion {files.name} from"
                f" {trial[0]:.4g} to {trial[1]:.4g} s: they have no time in common (time_offset of the trial shifts"
                " them)"
            )
            return
    yield from _point_mistakes(files, records, trial)
    standing = [np.nan_to_num(record.force) for record in records if record.side != ""]
    if not standing:
        return
    force = np.concatenate(standing)
    if pull := pull_of_ground(force[:, 1], weight_of(files.model)):
        yield (
            f"{name}: the ground pulls with up to {pull:.3g} N: turn the sign of the forces, or their axes; they act"
            " on the subject, and Y is up"
        )
    along = np.abs(force).max(axis=0, initial=0.0)
    if max(along[1], LEAST_LOAD * weight_of(files.model)) < along.max():
        axis = "XZ"[int(along[2] > along[0])]
        yield (
            f"{name}: the forces of the ground are largest along {axis} ({along.max():.3g} N, along Y"
            f" {along[1]:.3g} N): Y must be up, turn the axes of the table"
        )


def check_source(source: str, files: TrialFiles) -> None:
    """Raise `TrialError` where the files do not have the `source` of foot strikes."""
    recording = files.recording
    if source == "events" and (recording is None or not any(strikes_of_events(recording.events).values())):
        raise TrialError(
            f"{files.name}: cycles: events: the recording has no event of a foot strike; auto takes plates or feet"
        )
    if source == "plates" and not files.plates and files.assignments is None:
        raise TrialError(f"{files.name}: cycles: plates: the trial has no force plate and no reactions; name them")


def record_notes(
    files: TrialFiles, window: tuple[float, float] | None = None, feet: Mapping[str, str] | None = None
) -> list[str]:
    """Sentences on forces of the ground that are implausible, or that do not cover the trial."""
    records = ground_records(files, feet)
    if not records and not files.plates and files.assignments is None:
        if not root_rows(files.model)[0]:
            return []
        return [
            f"{files.name}: no force plate and no reactions: frames that need forces of the ground have no moments"
            " (setting residual_limit)"
        ]
    if not records:
        return []
    notes = _notes_of_feet_and_plates(files, [record for record in records if record.side != ""])
    first, last = max(record.time[0] for record in records), min(record.time[-1] for record in records)
    trial = _span(files, window)
    rate, motion_rate = (1.0 / np.median(np.diff(time)) for time in (records[0].time, files.times))
    if rate < 0.9 * motion_rate:
        notes.append(
            f"{files.loads_name}: the forces of the ground have {rate:.3g} rows per second, fewer than {files.name}"
            f" ({motion_rate:.3g})"
        )
    step = max(float(np.median(np.diff(record.time))) for record in records if len(record.time) > 1)
    if first > trial[0] + step or last < trial[1] - step:
        notes.append(
            f"{files.loads_name}: the forces of the ground are from {first:.4g} to {last:.4g} s; other frames of"
            f" {files.name} ({trial[0]:.4g} to {trial[1]:.4g} s) have no moments"
        )
    return notes


def _notes_of_feet_and_plates(files: TrialFiles, records: list[GroundRecord]) -> list[str]:
    """Sentences on the size of forces on feet and plates."""
    if not records:
        return []
    weight, name = weight_of(files.model), files.loads_name
    up = np.concatenate([record.force[:, 1] for record in records])
    if not np.isfinite(up).any():
        return [f"{name}: the forces of the ground have no value in any frame"]
    notes = [f"{name}: {note}" for note in load_notes(up, weight)]
    for record in records:
        if empty := int((~np.isfinite(record.force)).any(axis=1).sum()):
            notes.append(
                f"{name}: {record.name}: the force has no value in {empty} of {len(record.force)} rows: frames"
                " there have no moments"
            )
        if record.side and not np.nan_to_num(record.force).any():
            notes.append(
                f"{name}: {record.name}: the force is zero in all rows: is the plate connected, and is its column the"
                " right one?"
            )
        least = float(np.nanmin(record.force[:, 1], initial=np.inf))
        if _LEAST_OFFSET < least < _LARGEST_OFFSET * weight:
            notes.append(
                f"{name}: {record.name}: the force never falls below {least:.3g} N: take the offset of the unloaded"
                " plate off; it hides foot strikes"
            )
    return notes


def _span(files: TrialFiles, window: tuple[float, float] | None) -> tuple[float, float]:
    """First and last time of the motion within the `window`."""
    time = files.times
    if window is None:
        return float(time[0]), float(time[-1])
    return max(float(time[0]), window[0]), min(float(time[-1]), window[1])


def _point_mistakes(files: TrialFiles, records: tuple[GroundRecord, ...], span: tuple[float, float]) -> Iterator[str]:
    """Sentences on forces that act far from every marker or body, or under the other foot than their own."""
    time, bodies, landmarks = _landmarks(files)
    sides = {record.side: foot_bodies(files.model, record.name) for record in records if record.side}
    exchanges = []
    for record in records:
        is_loaded = np.linalg.norm(np.nan_to_num(record.force), axis=1) > LEAST_LOAD * weight_of(files.model)
        rows = np.flatnonzero(is_loaded & (record.time >= span[0]) & (record.time <= span[1]))
        rows = rows[:: max(len(rows) // _POSES, 1)]
        points, near = (
            record.point[rows],
            landmarks[np.clip(np.searchsorted(time, record.time[rows]), 0, len(time) - 1)],
        )
        far, far_in_m = (_distance_to_nearest(factor * points, near) for factor in (1.0, 1e-3))
        if far > _FARTHEST:
            point_kind = "marker" if files.recording is not None else "body"
            sentence = f"{files.loads_name}: {record.name}: the force acts {far:.3g} m from the nearest {point_kind}"
            if far_in_m < _FARTHEST:
                yield f"{sentence}: are its points in mm? They must be in m (divide them by 1000)"
            else:
                yield f"{sentence}: check unit and axes of its points, and whether it belongs to {files.name}"
            continue
        lever = np.abs(record.free[rows]) / np.linalg.norm(record.force[rows], axis=1)
        if record.side != "" and len(rows) and np.nanmedian(lever) > _LARGEST_LEVER:
            yield (
                f"{files.loads_name}: {record.name}: the torque about the vertical is {np.nanmedian(lever):.3g} m"
                " times the force: is it in N mm? It must be in N m (divide it by 1000)"
            )
        if record.side and len(sides) > 1:
            to_feet = {
                side: _distance_to_nearest(points, near[:, np.isin(bodies, list(side_bodies))])
                for side, side_bodies in sides.items()
            }
            to_other = min(distance for side, distance in to_feet.items() if side != record.side)
            exchanges.append(to_other < FARTHEST < to_feet[record.side])
    if exchanges and all(exchanges) and files.assignments is not None:
        yield (
            f"{files.assignments.name}: the loads of each foot act under the other one: are the feet exchanged, or"
            " is it another trial?"
        )


def _distance_to_nearest(points: Floats, landmarks: Floats) -> float:
    """m, median horizontal distance of `points` (k, 3) from the nearest of `landmarks` (k, m, 3); NaN without any."""
    distances = np.linalg.norm((landmarks - points[:, None])[:, :, [0, 2]], axis=2)
    nearest = np.min(np.where(np.isfinite(distances), distances, np.inf), axis=1, initial=np.inf)
    nearest = nearest[np.isfinite(nearest)]
    return float(np.median(nearest)) if len(nearest) else float("nan")


def _landmarks(files: TrialFiles) -> tuple[Floats, list[str], Floats]:
    """Times (n,) s, and points (n, m, 3) m of the subject with their bodies: recorded markers (of no body where they
    are not on the model), or origins of bodies at measured coordinates."""
    if files.recording is not None:
        body_of = {marker.name: marker.body for marker in files.markers}
        bodies = [body_of.get(name, "") for name in files.recording.marker_names]
        return files.recording.time, bodies, files.recording.markers
    assert files.table is not None
    series = measured_poses(files.table, files.model, files.name)
    frames = np.arange(0, len(series.time), max(len(series.time) // _POSES, 1))
    motion = kinematics(files.model, dict(zip(series.names, np.nan_to_num(series.values[frames]).T, strict=True)))
    bodies = [body.name for body in files.model.bodies]
    return series.time[frames], bodies, np.stack([motion.origin[name] for name in bodies], axis=1)
