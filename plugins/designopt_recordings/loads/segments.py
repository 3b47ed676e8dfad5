"""Which segment carries a plate's load: the one over whose outline the centre of pressure lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from designopt.arrays import Floats, Integers
from designopt_recordings.errors import RecordingError
from designopt_recordings.frames import FrameStatus
from designopt_recordings.loads.frames import PlateLoad
from designopt_recordings.plate import ForcePlate
from designopt_recordings.recording import Recording
from designopt_recordings.signals.runs import runs

REACH = 0.1  # m: how far outside the outline of its markers a segment still bears on the surface
CLEARANCE = 0.25  # m: a segment whose lowest marker is higher above the surface does not touch it
_SHARE = 0.9  # of the frames of a contact that must name the same segment


@dataclass(frozen=True, eq=False)
class Bearing:
    """Which of `segments` bears on a plate in each of n frames: `segment_indices` (n,), -1 where none does.

    `distance` (n,) m from the centre of pressure to the outline of that segment's markers, NaN while unloaded.
    `status` (n,) is `FrameStatus.AMBIGUOUS_PLATE` for all frames of a contact in which the nearest segment changes, or
    whose centre of pressure is within reach of none: the load then belongs to the most frequent segment, or to none.
    """

    plate: str
    segments: tuple[str, ...]
    segment_indices: Integers
    distance: Floats
    status: Integers

    def frames_of(self, segment: str) -> Floats:
        """(n,) factor for the load: 1 while `segment` bears on the plate, else 0.

        Raises `RecordingError` for an unknown segment.
        """
        if segment not in self.segments:
            raise RecordingError(f"there is no segment '{segment}'; known: {', '.join(self.segments)}")
        return np.asarray(self.segment_indices == self.segments.index(segment), dtype=float)


def bearing_segment(
    recording: Recording,
    plate: ForcePlate,
    load: PlateLoad,
    segments: Mapping[str, Sequence[str]],
    *,
    reach: float = REACH,
    clearance: float = CLEARANCE,
) -> Bearing:
    """The one of `segments`, given by their markers' names, that bears on `plate` while it is loaded.

    In each loaded frame the distance is measured, in the plane of the surface, from the centre of pressure to the
    outline of the segment's markers (their convex hull; zero inside). Segments whose lowest marker is higher than
    `clearance` above the surface, or that lack markers, do not count. A contact belongs to the segment that is nearest
    in at least nine of ten frames and on average within `reach`.
    """
    if not segments:
        raise RecordingError("no segments are given that could load the plate")
    names = tuple(segments)
    distances = np.stack(
        [
            outline_distances(recording.selected(member_names), plate, load.point, clearance)
            for member_names in segments.values()
        ],
        axis=1,
    )
    count = len(recording.time)
    segment_index, distance = np.full(count, -1), np.full(count, np.nan)
    status = load.status.copy()
    for first, end in runs(load.is_loaded):
        rows = slice(first, end)
        is_visible = np.isfinite(distances[rows]).any(axis=1)
        if not is_visible.any():
            status[rows] = FrameStatus.AMBIGUOUS_PLATE
            continue
        nearest = np.nanargmin(distances[rows][is_visible], axis=1)
        segment = int(np.bincount(nearest).argmax())
        distance[rows] = distances[rows, segment]
        near = float(np.nanmean(distance[rows])) <= reach
        if near:
            segment_index[rows] = segment
        if not near or np.mean(nearest == segment) < _SHARE:
            status[rows] = FrameStatus.AMBIGUOUS_PLATE
    return Bearing(plate.name, names, segment_index, distance, status)


def outline_distances(markers: Floats, plate: ForcePlate, point: Floats, clearance: float) -> Floats:
    """(n,) m from `point` (n, 3) to the outline of `markers` (n, k, 3) in the plane of the plate; NaN if too high."""
    normal = plate.normal
    across = np.cross(normal, [1.0, 0.0, 0.0] if abs(normal[0]) < 0.9 else [0.0, 0.0, 1.0])
    across = across / np.linalg.norm(across)
    plane = np.stack([across, np.cross(normal, across)], axis=1)
    height = ((markers - plate.centre) @ normal).min(axis=1)
    outline = (markers - point[:, None]) @ plane  # (n, k, 2), seen from the centre of pressure
    count = outline.shape[1]
    distance = np.linalg.norm(outline, axis=2).min(axis=1)
    for i, j in combinations(range(count), 2):
        distance = np.minimum(distance, _to_edge(outline[:, i], outline[:, j]))
    for i, j, k in combinations(range(count), 3):
        distance = np.where(_contains_origin(outline[:, i], outline[:, j], outline[:, k]), 0.0, distance)
    return np.where(height <= clearance, distance, np.nan)


def _to_edge(a: Floats, b: Floats) -> Floats:
    """(n,) distance of the origin to the edges from `a` to `b` (n, 2)."""
    along = b - a
    length = np.sum(along**2, axis=1)
    share = np.clip(-np.sum(a * along, axis=1) / np.where(length > 0.0, length, 1.0), 0.0, 1.0)
    return np.asarray(np.linalg.norm(a + share[:, None] * along, axis=1))


def _contains_origin(a: Floats, b: Floats, c: Floats) -> Floats:
    """(n,) whether the origin lies in the triangles a b c (n, 2)."""
    turns = np.stack([p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0] for p, q in ((a, b), (b, c), (c, a))], axis=1)
    return np.asarray((turns >= 0.0).all(axis=1) | (turns <= 0.0).all(axis=1))
