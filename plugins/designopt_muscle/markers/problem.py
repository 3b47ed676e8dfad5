"""The problem of an inverse kinematics: which markers, frames and coordinates take part, and in which bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from designopt_recordings.recording import Recording
from designopt_recordings.signals.even_steps import linear_values

from designopt.arrays import Floats, Integers
from designopt.counts import first_of
from designopt.study.language.findings import nearest_or_all
from designopt_muscle.markers.names import suggestion
from designopt_muscle.markers.residuals import MarkerLayout, MarkerResiduals
from designopt_muscle.markers.status import MarkerError
from designopt_muscle.markers.tasks import IkTasks
from designopt_muscle.osim.markers import OsimMarker
from designopt_muscle.osim.model import GROUND, OsimCoordinate, OsimModel

#: Markers that a note lists.
_NAMED = 24

Limits = Literal["clamped", "hard", "penalty", "none"]


@dataclass(frozen=True, eq=False)
class MotionProblem:
    """The `objective` over the chosen `frames` (n,) of a recording, and bounds `low`, `high` (m,) of its coordinates.

    `ranges` (2, m) are the limits at which a coordinate is reported; `notes` name what does not take part.
    """

    objective: MarkerResiduals
    frames: Integers
    low: Floats
    high: Floats
    ranges: Floats
    defaults: Floats
    notes: tuple[str, ...]


def motion_problem(
    model: OsimModel, markers: tuple[OsimMarker, ...], recording: Recording, tasks: IkTasks, limits: Limits
) -> MotionProblem:
    """The problem of `fit_motion`; raises `MarkerError` as it does."""
    notes: list[str] = []
    fit_markers = _chosen_markers(model, markers, recording, tasks, notes)
    frames = _frames(recording, tasks)
    free = free_coordinates(model)
    if not free:
        raise MarkerError(f"the model '{model.name}' has no coordinate that is free to move")
    names = tuple(c.name for c in free)
    observations = recording.selected([m.name for m in fit_markers])[frames]
    weights = np.array([tasks.markers.get(m.name, 1.0) for m in fit_markers])
    if not ((weights > 0.0) & np.isfinite(observations).all(axis=2)).any():
        raise MarkerError("no frame has a weighted marker; check the window and the weights")
    pull, targets = coordinate_targets(model, tasks, recording.time[frames])
    hard = _ranges(free, clamped=False)
    low, high = {"clamped": _ranges(free, clamped=True), "hard": hard}.get(limits, np.tile(_OPEN, (len(free), 1)).T)
    objective = MarkerResiduals(
        MarkerLayout(model, fit_markers, names),
        observations,
        weights,
        pull,
        targets,
        hard if limits == "penalty" else None,
    )
    ranges = hard if limits == "penalty" else np.stack([low, high])
    defaults = np.clip([c.default for c in free], low, high)
    return MotionProblem(objective, frames, low, high, ranges, defaults, tuple(notes))


_OPEN = np.array([-np.inf, np.inf])


def _ranges(free: list[OsimCoordinate], *, clamped: bool) -> Floats:
    """(2, m) ranges of the coordinates; open for those that are not clamped if only `clamped` ones count."""
    return np.array([(c.low, c.high) if c.clamped or not clamped else _OPEN for c in free]).reshape(-1, 2).T


def _chosen_markers(
    model: OsimModel, markers: tuple[OsimMarker, ...], recording: Recording, tasks: IkTasks, notes: list[str]
) -> tuple[OsimMarker, ...]:
    """Markers of the model that are recorded and weighted; others are noted."""
    bodies = {GROUND, *(body.name for body in model.bodies)}
    for marker in markers:
        if marker.body not in bodies:
            raise MarkerError(
                f"the marker '{marker.name}' is fixed to '{marker.body}', which is not a body of the model"
                f" '{model.name}'{nearest_or_all(marker.body, sorted(bodies))}"
            )
    names = [marker.name for marker in markers]
    recorded_names = set(recording.marker_names)
    for name in tasks.markers:
        if name not in names and name not in recorded_names:
            near = nearest_or_all(name, names)
            notes.append(f"the weight of '{name}' has no effect: neither model nor recording has the marker{near}")
    absent = [n for n in names if n not in recorded_names]
    unknown = [n for n in recording.marker_names if n not in names]
    for description, missing in (
        ("on the model, but not recorded", absent),
        ("recorded, but not on the model", unknown),
        ("without a weight", [n for n in names if n in recorded_names and tasks.markers and n not in tasks.markers]),
    ):
        if missing:
            near = suggestion(unknown, absent) if missing is unknown else ""
            count = "1 marker is" if len(missing) == 1 else f"{len(missing)} markers are"
            notes.append(f"{count} {description}, without effect: {first_of(missing, _NAMED)}{near}")
    fit_markers = tuple(
        m for m in markers if m.name in recorded_names and (not tasks.markers or m.name in tasks.markers)
    )
    if not fit_markers:
        raise MarkerError(
            f"no weighted marker is both on the model ({', '.join(names) or 'none'}) and in the recording"
            f" ({', '.join(recording.marker_names)})"
        )
    return fit_markers


def _frames(recording: Recording, tasks: IkTasks) -> Integers:
    if tasks.window is None:
        return np.arange(len(recording.time))
    first, last = tasks.window
    frames = np.flatnonzero((recording.time >= first - 1e-9) & (recording.time <= last + 1e-9))
    if not len(frames):
        raise MarkerError(
            f"no frame lies between {first:g} and {last:g} s; the recording runs from {recording.time[0]:g} to"
            f" {recording.time[-1]:g} s"
        )
    return frames


def free_coordinates(model: OsimModel) -> list[OsimCoordinate]:
    """The coordinates that inverse kinematics determines."""
    return [c for c in model.coordinates if c.name in set(model.free) and not c.locked]


def coordinate_targets(model: OsimModel, tasks: IkTasks, time: Floats) -> tuple[Floats, Floats]:
    """Weights (m,) of the free coordinates and their targets (n, m) at `time` (n,) s.

    Raises `MarkerError` for coordinates that the model does not have, and for a table that is missing or has no value.
    """
    free = free_coordinates(model)
    for name in (*tasks.coordinates, *tasks.targets):
        if name not in model.names:
            raise MarkerError(f"the task names '{name}', which is not a coordinate{nearest_or_all(name, model.names)}")
    pull = np.array([tasks.coordinates.get(c.name, 0.0) for c in free])
    targets = np.array([tasks.targets.get(c.name, c.default) for c in free])
    targets = np.tile(targets, (len(time), 1))
    table_indices = [i for i, c in enumerate(free) if c.name in tasks.from_table and pull[i] > 0.0]
    if not table_indices:
        return pull, targets
    if tasks.references is None:
        raise MarkerError(
            f"the task for '{free[table_indices[0]].name}' reads a table of coordinates, and none is given"
        )
    table = tasks.references.radians([free[i].name for i in table_indices if free[i].rotational])
    for i in table_indices:
        targets[:, i] = linear_values(table.time, table.column(free[i].name), time)
        if not np.isfinite(targets[:, i]).all():
            raise MarkerError(
                f"the table of coordinates runs from {table.time[0]:g} to {table.time[-1]:g} s and has no value of"
                f" '{free[i].name}' at {time[np.flatnonzero(~np.isfinite(targets[:, i]))[0]]:g} s"
            )
    return pull, targets
