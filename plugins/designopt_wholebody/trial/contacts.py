"""Loads of plates on the segments that they carry."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from designopt_recordings.loads.frames import load_at
from designopt_recordings.loads.segments import Bearing, bearing_segment
from designopt_recordings.recording import Recording

from designopt.arrays import Integers
from designopt_wholebody.dynamics.loads import Loads
from designopt_wholebody.subject import Subject
from designopt_wholebody.trial.landmarks import Landmarks


@dataclass(frozen=True, eq=False)
class PlateLoads:
    """`loads` on segments, `status` (n,) of `FrameStatus`, and which segment each plate carries (`bearings`)."""

    loads: Loads
    status: Integers
    bearings: tuple[Bearing, ...]


def plate_loads(
    subject: Subject,
    recording: Recording,
    landmarks: Landmarks,
    *,
    cutoff: float | None = None,
) -> PlateLoads:
    """Loads of all plates at the frames of `recording`, filtered at `cutoff` Hz, on the model's contact segments.

    A plate carries the segment over whose outline the centre of pressure lies; a plate without load gives zeros,
    whatever its centre of pressure. Frames in which a plate carries two segments, changes its segment, or carries none
    within reach have the status AMBIGUOUS_PLATE: its load then belongs to the most frequent segment, or to none.
    """
    outlines = {name: list(columns_of_plate) for name, columns_of_plate in subject.model.contacts.items()}
    frames = len(recording.time)
    if not recording.plates or not outlines:
        return PlateLoads(Loads.zero(frames), np.zeros(frames, dtype=np.int64), ())
    names = list(dict.fromkeys(name for columns_of_plate in outlines.values() for name in columns_of_plate))
    markers = np.stack([landmarks.positions[name] for name in names], axis=1)
    markers[~np.isfinite(markers).all(axis=(1, 2))] = np.nan  # what is left of an outline decides nothing
    landmark_recording = replace(recording, marker_names=tuple(names), markers=markers, results=None)
    force = {name: np.zeros((frames, 3)) for name in outlines}
    moment = {name: np.zeros((frames, 3)) for name in outlines}
    status = np.zeros(frames, dtype=np.int64)
    bearings = []
    for plate in recording.plates:
        load = load_at(plate, recording.time, cutoff=cutoff)
        bearing = bearing_segment(landmark_recording, plate, load, outlines)
        bearings.append(bearing)
        status = np.maximum(status, bearing.status)
        for name in outlines:
            share = bearing.frames_of(name)[:, None]
            force[name] += np.where(share > 0.0, load.force, 0.0)
            moment[name] += np.where(share > 0.0, load.moment, 0.0)
        lost = ~np.isfinite(load.force).all(axis=1)
        for name in outlines:
            force[name][lost] = np.nan
    bodies = tuple(outlines)
    loads = Loads(bodies, np.stack([force[n] for n in bodies], axis=1), np.stack([moment[n] for n in bodies], axis=1))
    return PlateLoads(loads, status, tuple(bearings))
