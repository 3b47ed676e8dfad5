"""Markers that the pose of a model needs, and a recording lacks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from designopt_recordings.recording import Recording

from designopt.arrays import Mask
from designopt.counts import first_of
from designopt_muscle.markers.minimise import unobservable
from designopt_muscle.markers.names import suggest_names, suggestion
from designopt_muscle.markers.problem import coordinate_targets, free_coordinates
from designopt_muscle.markers.residuals import MarkerLayout, MarkerResiduals
from designopt_muscle.markers.status import MarkerError
from designopt_muscle.markers.tasks import IkTasks
from designopt_muscle.osim.markers import OsimMarker
from designopt_muscle.osim.model import OsimModel

#: Markers that determine the pose of a body.
_POSE = 3
#: Names that a message lists.
_NAMED = 8
#: Change (rad, m) of the default pose at which coordinates are determined or not; a straight limb can hide one.
_BENT = 0.1


@dataclass(frozen=True)
class _Names:
    """Markers of a model with a weight, names with a position in some frame, and those of them not on the model."""

    markers: tuple[OsimMarker, ...]
    present: frozenset[str]
    unknown: tuple[str, ...]


def check_needed(model: OsimModel, markers: tuple[OsimMarker, ...], recording: Recording, tasks: IkTasks) -> None:
    """Raise `MarkerError` if the pose of a body of the model lacks the markers that are missing in a recording.

    These are bodies of which no marker is recorded, if bodies beyond them have markers; bodies with less than three of
    three or more, or with none, if a recorded name resembles a missing one; and coordinates that all markers of the
    model determine, but the recorded ones do not, if the recording has names that are not on the model. Markers without
    a weight in the `tasks` are not needed.
    """
    weight = dict(tasks.markers) if tasks.markers else {m.name: 1.0 for m in markers}
    finite: Mask = np.asarray(np.isfinite(recording.markers).all(axis=2).any(axis=0))
    present = frozenset(name for name, is_finite in zip(recording.marker_names, finite, strict=True) if is_finite)
    on_model = {m.name for m in markers}
    names = _Names(
        tuple(m for m in markers if weight.get(m.name, 0.0) > 0.0),
        present,
        tuple(name for name in recording.marker_names if name in present - on_model),
    )
    bodies = _bodies_without_markers(model, names)
    lost = _lost(model, names, tasks) if names.unknown and not bodies else []
    if not bodies and not lost:
        return
    absent = [m.name for m in names.markers if m.name not in present and (m.body in bodies or not bodies)]
    sentences = [f"the pose of {first_of(bodies or lost, _NAMED)} lacks the markers {first_of(absent, _NAMED)}"]
    if empty := [name for name in absent if name in recording.marker_names]:
        sentences.append(f"Without any position: {first_of(empty, _NAMED)}")
    if names.unknown:
        near = suggestion(names.unknown, absent)
        sentences.append(f"Recorded, but not on the model: {first_of(names.unknown, _NAMED)}{near}")
    raise MarkerError(" ".join(text if text.endswith("?") else f"{text}." for text in sentences))


def _bodies_without_markers(model: OsimModel, names: _Names) -> list[str]:
    """Bodies whose pose lacks markers."""
    bodies = []
    beyond = _bodies_beyond(model)
    absent = {m.name for m in names.markers} - names.present
    likely = set(suggest_names(names.unknown, absent).values())
    marker_bodies = {m.body for m in names.markers if m.name not in absent}
    for body in dict.fromkeys(m.body for m in names.markers):
        on_body = {m.name for m in names.markers if m.body == body}
        left = len(on_body - absent)
        within = not marker_bodies or marker_bodies & beyond.get(body, set())
        if (not left and within) or ((not left or left < _POSE <= len(on_body)) and likely & on_body):
            bodies.append(body)
    return bodies


def _bodies_beyond(model: OsimModel) -> dict[str, set[str]]:
    """The bodies that move with each body."""
    beyond: dict[str, set[str]] = {}
    for joint in reversed(model.joints):
        beyond.setdefault(joint.parent, set()).update({joint.child}, beyond.get(joint.child, set()))
    return beyond


def _lost(model: OsimModel, names: _Names, tasks: IkTasks) -> list[str]:
    """Coordinates that all markers of the model determine, but those that are recorded do not."""
    free = tuple(c.name for c in free_coordinates(model))
    if not free or not names.markers:
        return []
    pull, targets = coordinate_targets(model, replace(tasks, references=None, from_table=frozenset()), np.zeros(1))
    q = targets + _BENT * np.cos(np.arange(len(free)))

    def undetermined(markers: Collection[OsimMarker]) -> set[str]:
        layout = MarkerLayout(model, tuple(markers), free)
        weights = np.ones(len(markers))
        objective = MarkerResiduals(layout, np.zeros((1, len(markers), 3)), weights, pull, targets)
        return {
            name for name, lost in zip(free, unobservable(objective.normal_equations(q)[2])[0], strict=True) if lost
        }

    present_markers = [m for m in names.markers if m.name in names.present]
    return sorted(
        (undetermined(present_markers) if present_markers else set(free)) - undetermined(names.markers), key=free.index
    )
