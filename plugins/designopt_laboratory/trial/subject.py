"""The subject of a trial: a model that is scaled, or as it is, with the markers on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from designopt_mechanics.robot_files.xml import ModelError
from designopt_muscle.markers.names import renamed
from designopt_muscle.markers.needed import check_needed
from designopt_muscle.markers.status import MarkerError
from designopt_muscle.markers.tasks import IkTasks
from designopt_muscle.models.errors import TrialError, readable
from designopt_muscle.osim.markers import OsimMarker, read_markers
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.osim.read import read_model
from designopt_muscle.scaling.apply import scale_model
from designopt_muscle.scaling.factors import moved_markers
from designopt_muscle.scaling.scale import ScaledModel, scale_subject
from designopt_muscle.scaling.setup import Measurement, Method, ScaleSetup, read_scale_setup
from designopt_recordings.files.read import read_recording
from designopt_recordings.recording import Recording

from designopt.arrays import Floats
from designopt.plugin import InputFile
from designopt.study.language.findings import nearest_or_all
from designopt_laboratory.trial.functional import (
    FunctionalJoint,
    FunctionalMarkers,
    functional_markers,
    join_recordings,
)

if TYPE_CHECKING:
    pass

#: A mass beyond this times that of the model, or below its inverse, is probably in another unit.
_MASSES = 5.0
#: m, shortest length between two markers of a body that is compared; number of such lengths, and how far their median
#: ratio is from 1 for another subject.
_LEAST_LENGTH, _LEAST_RATIOS, _OTHER_SUBJECT = 0.08, 4, 0.04


@dataclass(frozen=True)
class Scaling:
    """How the model is scaled: by OpenSim's `setup`, or by least squares on all markers of the static pose
    (`to_static`), `measurements` and `factors` (3,) of bodies; each replaces the factors of the one before.
    `functional` joints are markers of the static pose, too."""

    setup: InputFile | None = None
    to_static: bool = False
    measurements: tuple[Measurement, ...] = ()
    factors: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    functional: Mapping[str, FunctionalJoint] = field(default_factory=dict)

    @property
    def needs_static(self) -> bool:
        """Whether it reads the markers of a static pose."""
        return self.setup is not None or self.to_static or bool(self.measurements)

    @property
    def methods(self) -> tuple[Method, ...]:
        """Those of a scaling without a set-up."""
        use: dict[Method, bool] = {
            "least_squares": self.to_static,
            "measurements": bool(self.measurements),
            "manualScale": bool(self.factors),
        }
        return tuple(method for method, is_used in use.items() if is_used)

    def with_functional(self, setup: ScaleSetup, markers: tuple[OsimMarker, ...]) -> ScaleSetup:
        """The set-up with the weights of the functional joints among those of the `markers`."""
        if setup.placing is None:
            return setup
        joints = {marker: joint.weight for name, joint in self.functional.items() for marker in joint.names(name)}
        weights = setup.placing.markers or {marker.name: 1.0 for marker in markers}
        return replace(setup, placing=replace(setup.placing, markers={**weights, **joints}))


@dataclass(frozen=True)
class MarkerSettings:
    """Markers on the model by a file of a `marker_set`, `new_names` of recorded ones, `weights` of single ones."""

    marker_set: InputFile | None = None
    new_names: Mapping[str, str] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)

    def on_model(self, recording: Recording) -> Recording:
        """A recording with the names of the model."""
        return renamed(recording, self.new_names) if self.new_names else recording

    def notes(self, recording: Recording) -> list[str]:
        """A sentence on names that do not replace a recorded one; `recording` has the names of the model."""
        unused_names = [name for name, new in self.new_names.items() if new not in recording.marker_names]
        near = nearest_or_all(unused_names[0], recording.marker_names) if unused_names else ""
        return (
            [f"rename_markers names '{', '.join(unused_names)}', which is not recorded{near}"] if unused_names else []
        )

    def check(self, model: OsimModel, markers: tuple[OsimMarker, ...], recording: Recording, tasks: IkTasks) -> None:
        """Raise `MarkerError` for a recording that lacks markers which the pose needs: see `check_needed`."""
        if not np.isfinite(recording.markers).all(axis=2).any():
            raise MarkerError("no marker has a position in any frame: the trajectories are empty")
        weights = {**(tasks.markers or {m.name: 1.0 for m in markers}), **self.weights}
        if not any(weights.get(m.name, 0.0) > 0.0 for m in markers):
            raise MarkerError("no marker of the model has a weight: look at the tasks and at marker_weights")
        try:
            check_needed(model, markers, recording, replace(tasks, markers=weights))
        except MarkerError as error:
            raise MarkerError(
                f"{error} Assign names by rename_markers: {{RECORDED NAME: NAME ON THE MODEL}}, or name a marker_set"
                " with the recorded names; markers that were not measured get the weight 0 by marker_weights"
            ) from None


@dataclass(frozen=True)
class SubjectSettings:
    """Settings of the subject: the generic or scaled `model`, its `scaling` and `markers`, the file of the `tasks`
    (weights) of inverse kinematics, with further `coordinate_weights`, and the `window` (s) of the trial."""

    model: InputFile
    scaling: Scaling = field(default_factory=Scaling)
    markers: MarkerSettings = field(default_factory=MarkerSettings)
    tasks: InputFile | None = None
    coordinate_weights: Mapping[str, float] = field(default_factory=dict)
    window: tuple[float, float] | None = None


def markers_on(model: InputFile, marker_set: InputFile | None) -> tuple[OsimMarker, ...]:
    """The markers of a model, or of a marker set in its place.

    Raises `TrialError` for unusable files and without any marker.
    """
    with readable(marker_set or model):
        if marker_set is not None:
            return read_markers(marker_set.content)
        try:
            return read_markers(model.content)
        except ModelError as error:
            raise MarkerError(f"{error}: name a file of them with the setting marker_set") from None


def subject_of(
    settings: SubjectSettings,
    files: Mapping[str, InputFile | None],
    movements: tuple[InputFile, ...],
    mass: float | None,
) -> ScaledModel:
    """The model of the subject of a trial with the markers on it; `movements` are those of the functional joints,
    `mass` in kg. Raises `TrialError`."""
    own_model, static, scaling = files["subject_model"], files["static"], settings.scaling
    scales = own_model is None and static is not None and (scaling.setup is not None or bool(scaling.methods))
    source, marker_set = own_model or settings.model, None if own_model else settings.markers.marker_set
    with readable(source):
        model = read_model(source.content)
    markers = markers_on(source, marker_set) if marker_set or files["recording"] is not None or scales else ()
    notes = [f"{source.name}: {note}" for note in model.notes]
    if mass is not None and own_model is not None:
        kilograms = sum(body.mass for body in model.bodies)
        notes.append(f"the mass of {mass:g} kg has no effect: the bodies of {own_model.name} have {kilograms:.4g} kg")
    if static is not None and own_model is not None:
        notes.append(f"{static.name} has no effect: {own_model.name} is the subject's own model")
    mass = None if mass is None else float(mass)
    if scales and static is not None:
        setup = _setup(scaling, mass)
        with readable(static):
            recording = settings.markers.on_model(read_recording(static))
            if setup.placing is not None:
                settings.markers.check(model, markers, recording, setup.placing)
        if movements:
            joints = _functional(settings, model, markers, recording, movements)
            markers, recording = (*markers, *joints.on_model), joints.static
            setup = scaling.with_functional(setup, markers)
            notes += joints.notes
        with readable(static):
            _check_measurements(scaling.measurements, recording)
            subject = scale_subject(source.content, recording, setup, markers)
        if scaling.setup is not None:
            notes += unread(scaling.setup, setup.without_effect)
        at_joints = {marker for name, joint in scaling.functional.items() for marker in joint.names(name)}
        return replace(
            subject,
            markers=tuple(marker for marker in subject.markers if marker.name not in at_joints),
            notes=(*notes, *(f"{static.name}: {note}" for note in subject.notes)),
        )
    factors = {body: np.array(factor) for body, factor in scaling.factors.items()} if own_model is None else {}
    content = source.content
    if own_model is None and (factors or mass is not None):
        content, markers = scale_model(content, factors, mass), moved_markers(markers, factors)
    return ScaledModel(content, factors, markers, None, tuple(notes))


def _functional(
    settings: SubjectSettings,
    model: OsimModel,
    markers: tuple[OsimMarker, ...],
    static_recording: Recording,
    movements: tuple[InputFile, ...],
) -> FunctionalMarkers:
    """The markers at the functional joints, by all frames of the movements together."""
    recordings = []
    for file in movements:
        with readable(file):
            recordings.append(settings.markers.on_model(read_recording(file)))
    name = ", ".join(file.name for file in movements)
    try:
        joints = functional_markers(
            model, markers, (static_recording, join_recordings(recordings)), settings.scaling.functional
        )
    except MarkerError as error:
        raise TrialError(f"{name}: {error}") from None
    return replace(joints, notes=tuple(f"{name}: {note}" for note in joints.notes))


def subject_doubts(
    settings: SubjectSettings, files: Mapping[str, InputFile | None], subject: ScaledModel, mass: float | None
) -> list[str]:
    """Reasons to doubt the model of a subject: its mass, and a static pose that it does not fit."""
    doubts, own_model, static = [], files["subject_model"], files["static"]
    model = read_model((own_model or settings.model).content)
    generic, scaled_mass = (sum(body.mass for body in each.bodies) for each in (model, subject.model))
    if own_model is None and generic > 0.0 and not 1.0 / _MASSES < scaled_mass / generic < _MASSES:
        mass_text = f"the subject's mass of {scaled_mass:g} kg"
        if mass is None and settings.scaling.setup is not None:
            mass_text = f"{settings.scaling.setup.name}: the <mass> of {scaled_mass:g} kg"
        doubts.append(f"{mass_text} is {scaled_mass / generic:.3g} times that of {settings.model.name}: check its unit")
    if static is not None and subject.static is not None:
        doubts += [f"{static.name}: {doubt}" for doubt in subject.static.doubts]
    return doubts


def static_doubts(
    static_file: InputFile | None, settings: SubjectSettings, subject: ScaledModel, recording: Recording
) -> list[str]:
    """A sentence where the lengths between markers of one body differ between a static pose and a trial: the median of
    their ratios tells another subject, or another unit."""
    if static_file is None or subject.static is None:
        return []
    with readable(static_file):
        pose = settings.markers.on_model(read_recording(static_file))
    body_of = {marker.name: marker.body for marker in subject.markers}
    names = [name for name in body_of if name in recording.marker_names and name in pose.marker_names]
    ratios = []
    for a, b in combinations(names, 2):
        if body_of[a] == body_of[b]:
            standing, moving = (_length(each.marker(a) - each.marker(b)) for each in (pose, recording))
            if standing > _LEAST_LENGTH and moving > 0.0:
                ratios.append(standing / moving)
    if len(ratios) < _LEAST_RATIOS or abs(float(np.median(ratios)) - 1.0) < _OTHER_SUBJECT:
        return []
    return [
        f"{static_file.name}: markers of a body are {np.median(ratios):.3g} times as far apart as in the trial (median"
        f" of {len(ratios)} lengths): is the static pose that of the same subject, and are both in the same unit?"
    ]


def _length(difference: Floats) -> float:
    """m, median of the lengths of (n, 3); 0 without a finite one."""
    lengths = np.linalg.norm(difference, axis=1)
    lengths = lengths[np.isfinite(lengths)]
    return float(np.median(lengths)) if len(lengths) else 0.0


def unread(file: InputFile, elements: tuple[str, ...] | list[str]) -> list[str]:
    """A sentence on elements of a set-up file that have no effect here."""
    return [f"{file.name}: without effect here: {', '.join(elements)}"] if elements else []


def _setup(scaling: Scaling, mass: float | None) -> ScaleSetup:
    """The set-up of a scaling for a subject; a `mass` (kg) replaces that of the file."""
    setup = ScaleSetup(
        measurements=scaling.measurements, manual=scaling.factors, order=scaling.methods, placing=IkTasks()
    )
    if scaling.setup is not None:
        with readable(scaling.setup):
            setup = read_scale_setup(scaling.setup.content)
    return setup if mass is None else replace(setup, mass=mass)


def _check_measurements(measurements: tuple[Measurement, ...], static_recording: Recording) -> None:
    for measurement in measurements:
        for name in (name for pair in measurement.pairs for name in pair):
            if (
                name not in static_recording.marker_names
                or not np.isfinite(static_recording.marker(name)).all(axis=1).any()
            ):
                near = nearest_or_all(name, sorted({*static_recording.marker_names} - {name}))
                raise MarkerError(f"the measurement '{measurement.name}' needs the marker '{name}'{near}")
