"""Landmarks of a trial: those that are measured, and those that are rebuilt from their segment's others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from designopt_recordings.frames import FrameStatus
from designopt_recordings.gaps.fill import interpolate_gaps
from designopt_recordings.gaps.rigid import fit
from designopt_recordings.recording import Recording

from designopt.arrays import Floats, Integers
from designopt_wholebody.body.body import BodySegment
from designopt_wholebody.body.frames import axes_of, with_derived
from designopt_wholebody.model.schema import BodyModel
from designopt_wholebody.subject import Subject, SubjectError, make_subject
from designopt_wholebody.trial.marker_set import MarkerSet

#: Rounds in which segments complete each other: a joint centre that one places helps the next.
_PASSES = 3


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Positions (n, 3) m by name and `status` (n,) of `FrameStatus`; `marker_landmarks`: those that markers give."""

    positions: Mapping[str, Floats]
    status: Integers
    marker_landmarks: tuple[str, ...]


def static_subject(model: BodyModel, static_recording: Recording, markers: MarkerSet, mass: float) -> Subject:
    """The subject of a static recording, by the means of its landmarks over the stillest fifth of a second.

    Raises `SubjectError` for landmarks that the recording does not give, and where no frame has all of them.
    """
    model = markers.with_clusters(model)
    positions = markers.place_landmarks(static_recording, tuple(model.landmarks))
    visible = {name: p for name, p in positions.items() if np.isfinite(p).all(axis=1).any()}
    if missing := [name for name in positions if name not in visible]:
        raise SubjectError(f"landmark '{missing[0]}' is missing in all frames of the static recording")
    if not visible:
        return make_subject(model, {}, mass)
    points = np.stack(list(visible.values()), axis=1)
    window = stillest(points, max(1, round(0.2 * static_recording.rate)))
    if window is None:
        raise SubjectError("no frame of the static recording has all landmarks; fill its gaps, or take another one")
    return make_subject(model, dict(zip(visible, points[window].mean(axis=0), strict=True)), mass)


def stillest(positions: Floats, width: int) -> slice | None:
    """The `width` complete frames of (n, k, 3) that move least (fewer if there are fewer); None without any."""
    complete = np.asarray(np.isfinite(positions).all(axis=(1, 2)), dtype=bool).reshape(-1)
    best, least = None, np.inf
    for size in (width, 1):
        for start in np.flatnonzero(complete[: len(positions) - size + 1]):
            window = slice(int(start), int(start) + size)
            if complete[window].all():
                extent = float(np.ptp(positions[window], axis=0).max())
                if extent < least:
                    best, least = window, extent
        if best is not None:
            break
    return best


def find_landmarks(subject: Subject, recording: Recording, markers: MarkerSet, max_gap: float = 0.0) -> Landmarks:
    """Landmarks of all segments in every frame.

    If a segment has three landmarks or more, the missing ones follow from the rigid fit of these to the static shape
    (Söderkvist & Wedin 1993): landmarks inside the body, which have no marker, and gaps. Otherwise as many markers as
    needed are interpolated by a cubic spline in time, those with the fewest missing frames first, over gaps of at most
    `max_gap` s, and the others are rebuilt (Nunes 2017, section 3.2.3). A frame in which a landmark has no position is
    MISSING_MARKER; one in which a marker that other frames have was rebuilt is REBUILT, or INTERPOLATED. Measured
    landmarks do not change. Raises `ValueError` for a landmark that cannot be placed.
    """
    model = subject.model
    marker_positions = markers.place_landmarks(recording, tuple(model.landmarks))
    marker_landmarks = tuple(name for name, p in marker_positions.items() if np.isfinite(p).all(axis=1).any())
    frames = len(recording.time)
    status = np.zeros(frames, dtype=np.int64)
    positions = {name: np.array(marker_positions[name]) for name in marker_landmarks}
    for body in subject.bodies.values():
        for name in body.local:
            if name in model.landmarks:
                positions.setdefault(name, np.full((frames, 3), np.nan))
    _complete_all(subject, positions, status, marker_landmarks)
    gaps = {name: int(np.isnan(positions[name][:, 0]).sum()) for name in marker_landmarks if max_gap > 0.0}
    for name in sorted(gaps, key=gaps.__getitem__):
        if np.isnan(positions[name]).any():
            positions[name], gaps_filled = interpolate_gaps(recording.time, positions[name], max_gap)
            status[gaps_filled] = FrameStatus.INTERPOLATED
            _complete_all(subject, positions, status, marker_landmarks)
    positions = with_derived(model, positions)
    names = [name for body in subject.bodies.values() for name in body.local]
    for name in dict.fromkeys(names):
        missing = ~np.isfinite(positions[name]).all(axis=1) if name in positions else np.ones(frames, dtype=bool)
        if missing.all():
            raise ValueError(
                f"landmark '{name}' cannot be placed: its segment has fewer than three landmarks with markers"
            )
        status[missing] = FrameStatus.MISSING_MARKER
    return Landmarks(positions, status, marker_landmarks)


def _complete_all(
    subject: Subject, positions: dict[str, Floats], status: Integers, marker_landmarks: tuple[str, ...]
) -> None:
    """Place missing landmarks of all segments, until nothing more can be placed."""
    for _ in range(_PASSES):
        before = _missing(positions)
        for body in subject.bodies.values():
            _complete(body, subject.model, positions, status, marker_landmarks)
        if _missing(positions) == before:
            break


def _missing(positions: Mapping[str, Floats]) -> int:
    return sum(int(np.isnan(p[:, 0]).sum()) for p in positions.values())


def _complete(
    body: BodySegment,
    model: BodyModel,
    positions: dict[str, Floats],
    status: Integers,
    marker_landmarks: tuple[str, ...],
) -> None:
    """Place missing landmarks of one segment, in `positions` and `status`, from its other landmarks."""
    own_landmarks = [name for name in body.local if name in model.landmarks]
    gaps = {name: ~np.isfinite(positions[name]).all(axis=1) for name in own_landmarks}
    lacking = [name for name, gap in gaps.items() if gap.any()]
    if not lacking:
        return
    all_positions = with_derived(model, positions)
    visible = [name for name in body.local if name in all_positions]
    rebuilt = _rebuild(body.local, visible, all_positions, len(status), lacking)
    for name in lacking:
        positions[name][gaps[name]] = rebuilt[name][gaps[name]]
        if name in marker_landmarks:
            status[gaps[name]] = np.maximum(status[gaps[name]], FrameStatus.REBUILT)


def _rebuild(
    local: Mapping[str, Floats], visible: list[str], positions: Mapping[str, Floats], frames: int, lacking: list[str]
) -> dict[str, Floats]:
    """(frames, 3) of each of `lacking`; NaN with fewer than three landmarks of the segment."""
    rebuilt = {name: np.full((frames, 3), np.nan) for name in lacking}
    if len(visible) < 3:
        return rebuilt
    points = np.stack([positions[name] for name in visible], axis=1)
    present = np.isfinite(points).all(axis=2)
    for pattern in np.unique(present, axis=0):
        if pattern.sum() < 3:
            continue
        frames_of_pattern = np.flatnonzero((present == pattern).all(axis=1))
        shape = np.stack([local[name] for name, is_visible in zip(visible, pattern, strict=True) if is_visible])
        singular = np.linalg.svd(shape - shape.mean(axis=0), compute_uv=False)
        if singular[1] < 1e-3:
            continue  # on a line: they do not fix the attitude
        rotation, translation, _ = fit(shape, points[frames_of_pattern][:, pattern])
        for name in lacking:
            rebuilt[name][frames_of_pattern] = rotation @ local[name] + translation
    return rebuilt


def raw_coordinates(subject: Subject, landmarks: Mapping[str, Floats]) -> Floats:
    """(n, N) raw coordinates q*: basic points as landmarks, axes by the formulas of the segments' frames or by fits.

    NaN in the coordinates of segments whose landmarks are missing.
    """
    model = subject.model
    all_positions = with_derived(model, landmarks)
    frames = len(next(iter(all_positions.values())))
    q = np.empty((frames, subject.n))
    for name, body in subject.bodies.items():
        frame = model.segments[name].frame
        triples = [all_positions[point] for point in body.points]
        if frame is not None:
            if model.segments[name].pose == "fit":
                axes = _fit_attitudes(body, [n for n in body.local if n in model.landmarks], all_positions, frames)
            else:
                axes = axes_of(frame, all_positions, mirrored=body.mirrored)
            triples.extend(axes[..., "uvw".index(v)] for v in body.vectors)
        q[:, body.columns] = np.concatenate(triples, axis=1)
    return q


def _fit_attitudes(body: BodySegment, names: list[str], all_positions: Mapping[str, Floats], frames: int) -> Floats:
    """(frames, 3, 3) attitude of a segment by the rigid fit of its landmarks to the static shape; NaN where missing."""
    axes = np.full((frames, 3, 3), np.nan)
    points = np.stack([all_positions[name] for name in names], axis=1)
    ready = np.flatnonzero(np.isfinite(points).all(axis=(1, 2)))
    if len(ready):
        axes[ready] = fit(np.stack([body.local[name] for name in names]), points[ready])[0]
    return axes
