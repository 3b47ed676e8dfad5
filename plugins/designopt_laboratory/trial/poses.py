"""Coordinates of a trial at even times: measured, or by inverse kinematics from markers; then filtered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from designopt_muscle.markers.fit import fit_motion
from designopt_muscle.markers.problem import Limits
from designopt_muscle.markers.status import MotionStatus
from designopt_muscle.models.columns import motion_notes, present_coordinates
from designopt_muscle.models.errors import TrialError
from designopt_muscle.models.trial import MovedCoordinates
from designopt_muscle.osim.markers import OsimMarker
from designopt_muscle.osim.model import OsimModel
from designopt_recordings.frames import FrameStatus, StatusEnum, worst_status
from designopt_recordings.gaps.fill import interpolate_gaps
from designopt_recordings.recording import Recording
from designopt_recordings.signals.derivatives import derivatives
from designopt_recordings.signals.even_steps import EVEN, deviations, for_filter
from designopt_recordings.signals.filters import lowpass
from designopt_recordings.table import TimeTable

from designopt.arrays import Floats, Integers, Mask
from designopt.counts import first_of
from designopt.study.language.findings import nearest_or_all
from designopt_laboratory.trial.files import TrialFiles

#: Order of the zero-phase low-pass filter of coordinates.
_ORDER = 3
#: Frequency (Hz) of the motion of skin over bones that a study assumes.
_SKIN_FREQUENCY = 3.0
#: Markers that a pose needs; those that a message lists.
_LEAST_MARKERS, _NAMED = 3, 8
#: RMS distance (m) of measured markers from those of the model beyond which no pose is that of the subject.
_FAR = 0.3


class TrialStatus(StatusEnum):
    """Outcome of poses and loads for one frame; those of inverse kinematics have the numbers of `MotionStatus`."""

    OK = 0, "the pose is determined"
    MISSING_MARKER = 10, MotionStatus.MISSING_MARKER.sentence
    AT_LIMIT = 20, MotionStatus.AT_LIMIT.sentence
    LARGE_ERROR = 30, MotionStatus.LARGE_ERROR.sentence
    AMBIGUOUS_PLATE = 35, FrameStatus.AMBIGUOUS_PLATE.sentence
    UNOBSERVABLE = 40, MotionStatus.UNOBSERVABLE.sentence
    ROUGH = 104, "accelerations are poor: unfiltered, at an end of the record, or beside a gap"
    BESIDE_PLATES = (
        105,
        "the loads leave much of the weight at the root: forces are missing, or do not fit the motion",
    )
    OFF_FOOT = 107, "a load acts far beside the foot that carries it"
    SEGMENT_LOST = 109, "a segment has none of its markers: its coordinates are unobservable"
    NOT_CONVERGED = 110, MotionStatus.NOT_CONVERGED.sentence
    MISSING_LOAD = 115, FrameStatus.MISSING_LOAD.sentence
    NO_POSE = 120, "no marker or no coordinates are there"


@dataclass(frozen=True)
class MarkerErrors:
    """Assumed errors of markers: motion of the `skin` (RMS, m), error of the `placement` (RMS, m), and the `seed` of
    both."""

    skin: float = 0.0
    placement: float = 0.0
    seed: int = 1


@dataclass(frozen=True, eq=False)
class PoseSeries:
    """Free coordinates `names` at `time` (n,) s: `values` (n, m) rad or m, NaN where unusable.

    `markers` and `errors` (n, k) m are the distances of measured markers from those on the model, NaN where missing;
    empty for measured coordinates. `status` (n,) are numbers of `TrialStatus`: below 100 a frame is usable. `doubts`
    are those of the `notes` that make poses doubtful.
    """

    time: Floats
    names: tuple[str, ...]
    values: Floats
    markers: tuple[str, ...]
    errors: Floats
    status: Integers
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def check_poses(files: TrialFiles, weighted_names: Iterable[str]) -> None:
    """Raise `TrialError` where model and markers (`weighted_names` too) or coordinates of a trial do not fit, without
    solving anything."""
    if len(files.times) < 2:
        raise TrialError(f"{files.name}: a single frame is no motion")
    if files.recording is None:
        assert files.table is not None
        measured_poses(files.table, files.model, files.name)
        return
    recorded_names = set(files.recording.marker_names)
    shared = sorted(m.name for m in files.markers if m.name in recorded_names)
    if len(shared) < _LEAST_MARKERS:
        on_model, in_recording = (
            first_of(names, _NAMED) or "none" for names in ([m.name for m in files.markers], sorted(recorded_names))
        )
        raise TrialError(
            f"{files.name}: model and recording share {', '.join(shared) or 'no marker'}; a pose needs at least"
            f" {_LEAST_MARKERS} markers. The recording has {in_recording}; the model has"
            f" {on_model}: name a marker set for the recording's markers"
        )
    visible = np.isfinite(files.recording.selected(shared)).all(axis=2).sum(axis=1)
    if visible.max(initial=0) < _LEAST_MARKERS:
        raise TrialError(
            f"{files.name}: no frame has {_LEAST_MARKERS} of the markers that model and recording share"
            f" ({first_of(shared, _NAMED)}): their trajectories are empty"
        )
    for name in weighted_names:
        if name not in shared:
            raise TrialError(
                f"{files.name}: weights: '{name}' is not a marker of both recording and model"
                f"{nearest_or_all(name, shared)}"
            )


def poses(
    files: TrialFiles,
    errors: MarkerErrors | None = None,
    weights: Mapping[str, float] | None = None,
    limits: Limits = "clamped",
) -> PoseSeries:
    """The coordinates of a trial, not filtered; `errors` are added to the markers, `weights` replace those of single
    markers, `limits` of the coordinates are those of `fit_motion`.

    Raises `TrialError` for files that do not fit the model.
    """
    if files.recording is None:
        assert files.table is not None
        return measured_poses(files.table, files.model, files.name)
    recording, markers = with_errors(files.recording, files.markers, errors or MarkerErrors())
    tasks = files.tasks
    if weights:
        shared = {m.name: 1.0 for m in markers if m.name in recording.marker_names}
        tasks = replace(tasks, markers={**(tasks.markers or shared), **weights})
    fit = fit_motion(files.model, markers, recording, tasks, limits=limits)
    _check_distances(fit.errors, files.name)
    columns = [i for i, name in enumerate(fit.coordinates) if name in files.model.free]
    body_of = {marker.name: marker.body for marker in markers}
    pulling = [i for i, name in enumerate(fit.markers) if not tasks.markers or tasks.markers.get(name, 0.0) > 0.0]
    lost, doubts = lost_segments(fit.errors[:, pulling], [body_of[fit.markers[i]] for i in pulling])
    status = worst_status(fit.status, np.where(lost, int(TrialStatus.SEGMENT_LOST), 0))
    values = np.where(status[:, None] >= 100, np.nan, fit.values[:, columns])
    names = tuple(fit.coordinates[i] for i in columns)
    time = np.linspace(fit.time[0], fit.time[-1], len(fit.time))  # files round the times: accelerations would show it
    doubts = [*fit.doubts, *(f"{files.name}: {doubt}" for doubt in doubts)]
    return PoseSeries(time, names, values, fit.markers, fit.errors, status, (*fit.notes, *doubts), tuple(doubts))


def lost_segments(errors: Floats, bodies: Sequence[str]) -> tuple[Mask, list[str]]:
    """(n,) frames in which a segment has none of its markers, so that its coordinates are unobservable; and sentences.

    `errors` (n, k) are NaN where a marker of the `bodies` (k,) is missing. Segments without a marker in any frame do
    not count: their coordinates follow from their defaults in all of them.
    """
    lost, sentences = np.zeros(len(errors), dtype=bool), []
    for body in dict.fromkeys(bodies):
        of_body = [i for i, name in enumerate(bodies) if name == body]
        visible = np.isfinite(errors[:, of_body]).any(axis=1)
        if visible.all() or not visible.any():
            continue
        lost |= ~visible
        sentences.append(
            f"no marker of {body} is there in {int((~visible).sum())} of {len(errors)} frames: its coordinates are"
            " unobservable, and these frames have no result; fill the gaps of its markers, or give them the weight 0 by"
            " marker_weights if the segment does not matter"
        )
    return lost, sentences


def _check_distances(errors: Floats, name: str) -> None:
    """Raise `TrialError` for markers that are `_FAR` from those of the model in half of the frames."""
    has_error = np.isfinite(errors)
    frames = has_error.any(axis=1)
    rms = np.sqrt(np.nanmean(np.where(has_error, errors, np.nan)[frames] ** 2, axis=1))
    if len(rms) and (typical := float(np.median(rms))) > _FAR:
        raise TrialError(
            f"{name}: the markers are {typical:.2g} m (RMS) from those of the model: check the unit of the recording,"
            " the names of the markers, and whether the static pose is of the same subject"
        )


def measured_poses(table: TimeTable, model: OsimModel, name: str) -> PoseSeries:
    """The coordinates in a `table`. Raises `TrialError` where none of its columns is one of the `model`."""
    moving = present_coordinates(table, model.names)
    names = tuple(n for n in model.free if n in moving)
    if not names:
        raise TrialError(f"{name}: none of its columns is a coordinate of the model '{model.name}'")
    notes = motion_notes(table, name, model, moments=False)
    turns = {c.name for c in model.coordinates if c.rotational}
    if float(np.max(deviations(table.time), initial=0.0)) > EVEN:
        table = for_filter(table, 0.5)
    radians = table.radians([n for n in names if n in turns])
    values = np.column_stack([radians.column(n) for n in names])
    n = len(table.time)
    status = np.where(np.isfinite(values).all(axis=1), int(TrialStatus.OK), int(TrialStatus.NO_POSE))
    radian_notes = tuple(f"{name}: {note}" for note in radians.notes if note not in table.notes)
    return PoseSeries(table.time, names, values, (), np.zeros((n, 0)), status, (*notes, *radian_notes))


def filter_coordinates(series: PoseSeries, cutoff: float, max_gap: float) -> tuple[MovedCoordinates, Integers]:
    """The coordinates filtered at `cutoff` Hz (0: as they are), with rates and accelerations; and statuses (n,).

    Unusable frames between usable ones are bridged by a spline over at most `max_gap` s, so that a frame is lost
    without its neighbours; they keep their status. Longer gaps part the motion.
    """
    bridged_values, _ = interpolate_gaps(series.time, series.values, max_gap)
    rate = (len(series.time) - 1) / (series.time[-1] - series.time[0])
    smooth = lowpass(bridged_values, rate, cutoff, _ORDER) if cutoff > 0.0 else bridged_values
    rates, accelerations = derivatives(series.time, smooth)
    return MovedCoordinates(series.time, series.names, smooth, rates, accelerations), series.status


def with_errors(
    recording: Recording, markers: tuple[OsimMarker, ...], errors: MarkerErrors
) -> tuple[Recording, tuple[OsimMarker, ...]]:
    """Markers with assumed errors: the recorded ones with a slow motion of the skin, those on the model out of place.

    Each marker has its own errors, which depend on its name and the seed and not on the other markers.
    """
    if errors.skin > 0.0:
        shifted_markers = recording.markers + np.stack(
            [_slow(name, recording, errors) for name in recording.marker_names], axis=1
        )
        recording = replace(recording, markers=shifted_markers)
    if errors.placement > 0.0:
        markers = tuple(
            replace(
                m, location=m.location + errors.placement / np.sqrt(3.0) * _random(m.name, errors).standard_normal(3)
            )
            for m in markers
        )
    return recording, markers


def _slow(name: str, recording: Recording, errors: MarkerErrors) -> Floats:
    """(n, 3) m of smooth noise with the RMS distance of the skin's motion."""
    noise = _random(f"{name} skin", errors).standard_normal((len(recording.time), 3))
    if recording.rate > 2.5 * _SKIN_FREQUENCY:
        noise = lowpass(noise, recording.rate, _SKIN_FREQUENCY)
    noise = noise - noise.mean(axis=0)
    size = np.sqrt((noise**2).sum(axis=1).mean())
    return np.asarray(noise * (errors.skin / size if size > 0.0 else 0.0))


def _random(name: str, errors: MarkerErrors) -> np.random.Generator:
    return np.random.default_rng([errors.seed, *name.encode()])
