"""Gaps of a recording filled cluster by cluster, with a status for every marker and frame; or by a spline in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats, Integers, Mask
from designopt_recordings.errors import RecordingError, errors_about
from designopt_recordings.frames import FrameStatus
from designopt_recordings.gaps.rigid import fit, fit_triad, shape, spread
from designopt_recordings.recording import Recording
from designopt_recordings.signals.runs import runs

Method = Literal["rigid", "triad"]


@dataclass(frozen=True, eq=False)
class Filling:
    """A recording with its gaps filled, and how.

    `status` (n, m) of every marker in every frame: `FrameStatus.OK`, `REBUILT`, `INTERPOLATED` or `MISSING_MARKER`.
    `misfit` gives for each cluster the RMS distance (m) of measured markers from the rigid shape (NaN where no frame
    has three of them): skin motion, and what to expect of a rebuilt marker.
    """

    recording: Recording
    status: Integers
    misfit: Mapping[str, float]

    @property
    def frames(self) -> Integers:
        """(n,) the worst status of the markers in each frame."""
        return np.asarray(self.status.max(axis=1, initial=FrameStatus.OK))

    def report(self) -> list[str]:
        """One sentence for each marker that was not measured throughout."""
        lines = []
        for j, name in enumerate(self.recording.marker_names):
            counts = {s: int(np.sum(self.status[:, j] == s)) for s in FrameStatus}
            parts = [
                f"{counts[status]} {word}"
                for status, word in (
                    (FrameStatus.REBUILT, "rebuilt"),
                    (FrameStatus.INTERPOLATED, "interpolated"),
                    (FrameStatus.MISSING_MARKER, "missing"),
                )
                if counts[status]
            ]
            if parts:
                lines.append(f"{name}: {', '.join(parts)} of {len(self.status)} frames")
        return lines


def fill(
    recording: Recording,
    clusters: Mapping[str, Sequence[str]],
    static_recording: Recording | None = None,
    *,
    longest: float = 0.2,
    method: Method = "rigid",
) -> Filling:
    """Fill the gaps of `recording` with the help of `clusters`: markers that move as one body, by the body's name.

    Where at least three markers of a cluster are present and not on a line, the missing ones are rebuilt from its rigid
    shape: by least squares over all that are present, or from the largest triangle ("triad"). Elsewhere just enough
    markers are interpolated by a cubic spline over gaps of at most `longest` s to have three, then the others are
    rebuilt. Markers in no cluster are interpolated. The shape is that of `static_recording`, where given, and else that
    of the frames in which the whole cluster is present; markers of a cluster that only `static_recording` has are
    added. Measured positions never change. Raises `RecordingError` where a cluster has no shape. Nunes 2017, section
    3.2.3.
    """
    names = list(recording.marker_names)
    new_names = [
        n
        for members in clusters.values()
        for n in members
        if n not in names and static_recording and n in static_recording.marker_names
    ]
    names += list(dict.fromkeys(new_names))
    positions = np.full((len(recording.time), len(names), 3), np.nan)
    positions[:, : len(recording.marker_names)] = recording.markers
    positions[~np.isfinite(positions).all(axis=2)] = np.nan
    missing = np.isnan(positions[:, :, 0])
    status = np.where(missing, int(FrameStatus.MISSING_MARKER), int(FrameStatus.OK))
    misfit = {}
    for body, members in clusters.items():
        columns = [_column(body, name, names) for name in members]
        if len(set(columns)) < 3:
            raise RecordingError(f"cluster '{body}' has {len(set(columns))} markers; a rigid body needs three")
        cluster_shape = _shape(body, members, recording, static_recording)
        misfit[body] = _fill_cluster(recording.time, positions, status, columns, cluster_shape, longest, method)
    for j in np.flatnonzero((status == FrameStatus.MISSING_MARKER).any(axis=0)):
        positions[:, j], is_interpolated = interpolate_gaps(recording.time, positions[:, j], longest)
        status[is_interpolated, j] = FrameStatus.INTERPOLATED
    complete_recording = replace(recording, marker_names=tuple(names), markers=positions)
    return Filling(complete_recording, status, misfit)


def _column(body: str, name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise RecordingError(f"cluster '{body}': neither the recording nor the static one has a marker '{name}'")
    return list(names).index(name)


def _shape(body: str, members: Sequence[str], recording: Recording, static_recording: Recording | None) -> Floats:
    source = static_recording or recording
    with errors_about("", f"cluster '{body}'"):
        frames = source.selected(members)
    frames = frames[np.isfinite(frames).all(axis=(1, 2))]
    try:
        cluster_shape = shape(frames)
    except RecordingError:
        source_name = "the static recording" if static_recording else "the recording; give a static one"
        raise RecordingError(f"cluster '{body}': no frame has all of {', '.join(members)} in {source_name}") from None
    if not spread(cluster_shape):
        raise RecordingError(f"cluster '{body}': its markers lie on a line and do not determine a pose")
    return cluster_shape


def _fill_cluster(
    time: Floats,
    positions: Floats,
    status: Integers,
    columns: list[int],
    cluster_shape: Floats,
    longest: float,
    method: Method,
) -> float:
    """Fill `positions` and `status` of one cluster in place; returns the RMS misfit of the measured markers, m."""
    has_marker = np.isfinite(positions[:, columns, 0])
    squares, count = _rebuild(positions, status, columns, cluster_shape, has_marker, method)
    lacking = np.flatnonzero((status[:, columns] == FrameStatus.MISSING_MARKER).any(axis=1))
    if lacking.size:
        _interpolate_to_three(time, positions, status, columns, cluster_shape, lacking, longest)
        _rebuild(positions, status, columns, cluster_shape, np.isfinite(positions[:, columns, 0]), method, only=lacking)
    return float(np.sqrt(squares / count)) if count else float("nan")


def _rebuild(
    positions: Floats,
    status: Integers,
    columns: list[int],
    cluster_shape: Floats,
    present: Floats,
    method: Method,
    only: Integers | None = None,
) -> tuple[float, int]:
    """Rebuild missing markers of frames with three present ones; sum of squared misfits of these and their number."""
    marker_columns, pose = np.array(columns), {"rigid": fit, "triad": fit_triad}[method]
    rows = np.arange(len(positions)) if only is None else only
    squares, count = 0.0, 0
    patterns, member = np.unique(present[rows], axis=0, return_inverse=True)
    for i, pattern in enumerate(patterns):
        frames = rows[np.asarray(member).ravel() == i]
        if not spread(cluster_shape[pattern]):
            continue
        visible = positions[frames[:, None], marker_columns[pattern]]
        rotation, translation, rms = pose(cluster_shape[pattern], visible)
        squares, count = squares + float(np.sum(rms**2)), count + len(frames)
        if not pattern.all():
            gone = marker_columns[~pattern]
            rebuilt = np.einsum("fij,kj->fki", rotation, cluster_shape[~pattern]) + translation[:, None]
            positions[frames[:, None], gone] = rebuilt
            status[frames[:, None], gone] = FrameStatus.REBUILT
    return squares, count


def _interpolate_to_three(
    time: Floats,
    positions: Floats,
    status: Integers,
    columns: list[int],
    cluster_shape: Floats,
    lacking: Integers,
    longest: float,
) -> None:
    """Interpolate, in frames that lack them, as many markers as a pose needs, those with the shortest gaps first."""
    splines = {}
    for k, j in enumerate(columns):
        values, is_interpolated = interpolate_gaps(time, positions[:, j], longest)
        splines[k] = (values, is_interpolated)
    lengths = {k: int(np.sum(is_interpolated[lacking])) for k, (_, is_interpolated) in splines.items()}
    for frame in lacking:
        present = [k for k, j in enumerate(columns) if np.isfinite(positions[frame, j, 0])]
        able = sorted((k for k in splines if k not in present and splines[k][1][frame]), key=lambda k: lengths[k])
        while able and not spread(cluster_shape[present]):
            k = able.pop(0)
            positions[frame, columns[k]] = splines[k][0][frame]
            status[frame, columns[k]] = FrameStatus.INTERPOLATED
            present.append(k)


def interpolate_gaps(time: ArrayLike, positions: ArrayLike, longest: float = 0.2) -> tuple[Floats, Mask]:
    """`positions` (n, k) at `time` (n,) s with gaps of at most `longest` s filled, and where (n,).

    A sample is missing where any of its k values is. One cubic spline goes through all measured samples. Gaps at the
    beginning or the end are no gaps between samples and stay.
    """
    from scipy.interpolate import CubicSpline

    t, values = np.asarray(time, dtype=float), np.array(positions, dtype=float)
    present = np.isfinite(values).all(axis=1)
    is_filled = np.zeros(len(t), dtype=bool)
    if present.sum() < 4:
        return values, is_filled
    step = float(np.median(np.diff(t)))
    for first, end in runs(~present):
        if first > 0 and end < len(t) and t[end] - t[first - 1] <= longest + 1.001 * step:
            is_filled[first:end] = True
    if is_filled.any():
        values[is_filled] = CubicSpline(t[present], values[present])(t[is_filled])
    return values, is_filled
